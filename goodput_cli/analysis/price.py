"""What time costs in accelerator hours and money."""

from __future__ import annotations

from dataclasses import dataclass

from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.units import NS_PER_HOUR


@dataclass(frozen=True)
class Price:
    """What the job's accelerators cost."""

    accelerators: float
    """How many the job holds."""
    per_hour: float | None = None
    """Of one of them for an hour, in any currency; None where it is not known."""

    def hours(self, ns: float) -> float:
        """Accelerator hours in which the job held its accelerators for `ns`."""
        return ns / NS_PER_HOUR * self.accelerators

    def money(self, ns: float) -> float | None:
        """The price of that; None where no price is known."""
        return None if self.per_hour is None else self.hours(ns) * self.per_hour


def price_of(accelerators: float | None, per_hour: float | None) -> Price | None:
    """The price, None where nobody says how many accelerators the job holds. `UsageError`: a price of none."""
    if per_hour is not None and accelerators is None:
        raise UsageError("--price-per-hour needs --accelerators: how many are held")
    return None if accelerators is None else Price(accelerators, per_hour)


def hours_and_money(price: Price | None, ns: float) -> tuple[float | None, float | None]:
    """Accelerator hours and their price, None as far as they are not known."""
    return (None, None) if price is None else (price.hours(ns), price.money(ns))

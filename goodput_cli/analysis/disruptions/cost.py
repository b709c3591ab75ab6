"""What lost time costs in accelerator hours and money."""

from __future__ import annotations

from dataclasses import dataclass

_NS_PER_HOUR = 3600 * 10**9


@dataclass(frozen=True)
class Price:
    """accelerators: how many the job holds. per_hour: price of one for an hour, in any currency; None = unknown."""

    accelerators: float
    per_hour: float | None = None

    def hours(self, ns: int) -> float:
        """Accelerator hours in which the job held its accelerators for `ns`."""
        return ns / _NS_PER_HOUR * self.accelerators

    def money(self, ns: int) -> float | None:
        """The price of that; None where no price is known."""
        return None if self.per_hour is None else self.hours(ns) * self.per_hour

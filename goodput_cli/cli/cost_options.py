"""`--accelerators` and `--price-per-hour`: what time costs, for every command that says it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from goodput_cli.cli.parameters import Checked, option
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.amounts import bounded

if TYPE_CHECKING:
    from goodput_cli.analysis.price import Price

AMOUNT = Checked("number", bounded(float, "is not an amount; write a number above 0", above=0))
_ACCELERATORS = option("Cost", "--accelerators", metavar="N", type=AMOUNT, help="Accelerators the job holds.")
_PER_HOUR = option(
    "Cost",
    "--price-per-hour",
    metavar="P",
    type=AMOUNT,
    help="Price of one accelerator for an hour; needs --accelerators.",
)


def cost_options(command: Callable[..., int]) -> Callable[..., int]:
    """The two options; the command is given `price`, None where no accelerators are named."""

    @wraps(command)
    def priced(*args: Any, accelerators: float | None, price_per_hour: float | None, **given: Any) -> int:
        return command(*args, price=_price(accelerators, price_per_hour), **given)

    both: Callable[..., int] = _ACCELERATORS(_PER_HOUR(priced))
    return both


def _price(accelerators: float | None, per_hour: float | None) -> Price | None:
    from goodput_cli.analysis.price import Price

    if per_hour is not None and accelerators is None:
        raise UsageError("--price-per-hour needs --accelerators: how many are held")
    return None if accelerators is None else Price(accelerators, per_hour)

"""`--accelerators` and `--price-per-hour`: what time costs, for every command that says it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from goodput_cli.analysis.price import price_of
from goodput_cli.cli.parameters import Checked, option
from goodput_cli.vocabulary.amounts import bounded

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
    def priced(*args: Any, **values: Any) -> int:
        price = price_of(values.pop("accelerators"), values.pop("price_per_hour"))
        return command(*args, **values, price=price)

    both: Callable[..., int] = _ACCELERATORS(_PER_HOUR(priced))
    return both

"""Thresholds as they were judged: what `--fail-if` and its kin say of an analysis, a change, advice or a fleet."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from goodput_cli.errors import UsageError

Verdict = Literal["failed", "warning", "passed", "not_recorded"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
NUMBER = r"[+-]?\d{1,18}(?:\.\d{1,18})?"
"""How a limit is written, as a pattern."""
UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
EXPRESSION = re.compile(rf"\s*(.+?)\s*(<=|>=|==|!=|<|>)\s*({NUMBER})\s*(%|[A-Za-z]+)?\s*", re.DOTALL)
"""`NAME OP VALUE[UNIT]`, in four groups."""
COMPARISONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def check_can_hold(text: str, comparison: str, limit: Fraction, *, is_share: bool) -> None:
    """`UsageError` for an expression that no value makes true, such as 'goodput<0': a gate that never fails. is_share:
    whether values are from 0 to 100 %; all others are 0 or more."""
    above = is_share and ((comparison == ">" and limit >= 100) or (comparison in (">=", "==") and limit > 100))
    if above or (comparison == "<" and limit <= 0) or (comparison in ("<=", "==") and limit < 0):
        side = "above 100 %" if above else "below 0"
        raise UsageError(f"{text!r} never holds, since nothing is {side}: it is no gate")


@dataclass(frozen=True)
class Threshold:
    """One `--fail-…`/`--warn-if` expression."""

    expression: str
    """As it was written."""
    fails: bool
    """Whether the run fails when it holds, or is only warned of."""
    met: bool | None
    """Whether what it says holds; None: it was not recorded."""
    value: float | None
    """What was found, in the unit."""
    limit: float
    """In the unit."""
    unit: str
    """ "%", "pp" (points), "s", or "" for a plain number."""
    hint: str | None = None
    """Where it was not recorded, what may have been meant; it may hold text of the log."""

    @property
    def verdict(self) -> Verdict:
        """What the expression did: fail the run, warn, nothing (passed), or it could not be judged."""
        if self.met is None:
            return "not_recorded"
        if not self.met:
            return "passed"
        return "failed" if self.fails else "warning"

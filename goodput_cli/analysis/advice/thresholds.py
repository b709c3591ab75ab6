"""Thresholds on advice (`advice.gain>5pp`): the names that they accept.

These are the names of improvements. This module must not import NumPy, because `--help` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from goodput_cli.analysis.threshold import POINTS, UNIT_SECONDS, VALUE, Expression, NamedMeasure, Subject, read
from goodput_cli.errors import UsageError

LEVERS: Mapping[str, bool] = {
    "interval": False,
    "async_saves": False,
    "newest_checkpoint": False,
    "failures": True,
    "starts_that_hold": True,
    "restart": True,
    "restore": True,
    "downtime": True,
    "spares": True,
    "evals": True,
    "data_loading": False,
    "stalls": False,
    "slow_steps": False,
    "longest_outage": True,
    "checkpoint_bound": True,
}
"""Each improvement, and True if every record covers it, even with a gain of nothing; `levers.judged_improvements` knows
when a record covers the others. There is one more for each `custom:LABEL`."""


PREFIX = "advice."
CUSTOM = "custom:"
GAIN, GAIN_LOW, RATIO = OF_INTERVAL = ("gain", "gain_low", "interval_ratio")
"""Measures of the advised interval between saves; every improvement is a measure too."""
_ACCEPTED = "advice.NAME OP VALUE[UNIT], as in 'advice.gain>5pp', 'advice.gain_low>1pp' or 'advice.restart>30m'"


def _find(name: str, text: str) -> NamedMeasure:
    if not name.lower().startswith(PREFIX):
        raise UsageError(f"{text!r} is not {ADVICE.noun}", tip=f"write {_ACCEPTED}")
    lever = name[len(PREFIX) :].lower()
    if lever.startswith(CUSTOM):
        lever = CUSTOM + lever.removeprefix(CUSTOM).upper()
    elif lever not in (*OF_INTERVAL, *LEVERS):
        raise UsageError(f"{text!r}: unknown name {name!r}", tip=f"use one of {', '.join((*OF_INTERVAL, *LEVERS))}")
    return NamedMeasure(lever, "count" if lever == RATIO else "share")


ADVICE = Subject(
    "a threshold on advice",
    _ACCEPTED,
    _find,
    {"share": (POINTS, *UNIT_SECONDS), "count": ("",)},
    shape=VALUE,
    only_positive=False,
)


def parse_advice(text: str, *, fails: bool = True) -> Expression:
    """`advice.NAME OP VALUE[UNIT]`; without a unit in points of goodput. `UsageError`: not such an expression, an
    unknown name, a unit that the name cannot have."""
    return read(text, ADVICE, fails=fails)

"""Names in thresholds on one job (`goodput<90`) and on advice (`advice.gain>5pp`). This module does not import NumPy,
because `--help` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.analysis.measures import MEASURES, PREFIXES
from goodput_cli.analysis.threshold import (
    PERCENT,
    POINTS,
    UNIT_SECONDS,
    VALUE,
    Dimension,
    Expression,
    NamedMeasure,
    Subject,
    parse,
    read,
    read_fail_under,
)
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.categories import CAUSES, GROUPS, category_named
from goodput_cli.vocabulary.text import did_you_mean

INSIGHT = "insight"
"""Prefix of the code of a kind of insights."""
CAUSE = "cause"
"""Prefix of a cause, or of a group of causes."""
PHASE = "phase"
"""Prefix of a phase of steps."""
OOM = "oom"
"""Name for all causes in which memory ran out."""


def measure_named(name: str, text: str, *, insights: bool = False) -> NamedMeasure:
    """Return the measure with a name, or one label of it: `custom:LABEL`.

    Raise `UsageError` with a hint for an unknown name. insights: whether kinds of insights are allowed.
    """
    prefix, colon, label = name.partition(":")
    if colon and prefix.lower() in PREFIXES and label.strip():
        return MEASURES[PREFIXES[prefix.lower()]].named_measure(label.strip().upper())
    if name.lower() in MEASURES:
        return MEASURES[name.lower()].named_measure()
    named = category_named(name)
    if named is not None and named[0].id in MEASURES and (named[1] or not named[0].row.has_labels):
        return MEASURES[named[0].id].named_measure(named[1])
    known = [*MEASURES, *(f"{INSIGHT}:{code}" for code in BY_CODE if insights)]
    kinds = f"custom:LABEL and {INSIGHT}:CODE" if insights else "custom:LABEL"
    hint = did_you_mean(name, known, f"names are {', '.join(MEASURES)}, {kinds}")
    raise UsageError(f"{text!r}: unknown measure {name!r}", tip=hint)


def _find_measure(name: str, text: str) -> NamedMeasure:
    prefix, _, code = (part.strip().lower() for part in name.partition(":"))
    if prefix == PHASE and code:
        return NamedMeasure(PHASE, "ratio", code)
    if ":" not in name or prefix not in (CAUSE, INSIGHT):
        return measure_named(name, text, insights=True)
    if prefix == CAUSE:
        known: tuple[str, ...] = (*CAUSES, *GROUPS, OOM)
        words = f"causes are {', '.join(CAUSES)}; groups are {', '.join(GROUPS)}; and {OOM}"
    else:
        known, words = tuple(BY_CODE), f"kinds are {', '.join(BY_CODE)}"
    if code in known:
        return NamedMeasure(prefix, "losses" if prefix == CAUSE else "share", code)
    raise UsageError(f"{text!r}: unknown {prefix} {code!r}", tip=did_you_mean(code, known, words))


TIMES = tuple(UNIT_SECONDS)
UNITS: Mapping[Dimension, tuple[str, ...]] = {
    "share": (PERCENT, *TIMES), "ratio": (PERCENT,), "time": TIMES, "count": ("",), "losses": ("", *TIMES),
}  # fmt: skip
JOB = Subject(
    "a threshold",
    "NAME OP VALUE[UNIT], as in 'goodput<90', 'custom:EVAL>=5%', 'queued>30m', 'steps.p99>2s', 'insight:hang>10m', "
    "'disruptions>3', 'phase:data>20' or 'cause:hardware>0'",
    _find_measure,
    UNITS,
)


def parse_threshold(text: str, *, fails: bool = True) -> Expression:
    """Parse `NAME OP VALUE[UNIT]`. Without a unit, goodput, categories and slices are in %, times in s."""
    return parse(text, JOB, fails=fails)


def read_threshold(text: str, *, fails: bool = True) -> Expression:
    """Parse an expression that a person wrote. Raise `UsageError` also if one on goodput probably means something
    else."""
    return read(text, JOB, fails=fails)


def parse_fail_under(text: str) -> Expression:
    """Return the expression of `--fail-under PCT`, which is `goodput<PCT`. Raise `UsageError` if it is not a number."""
    return read_fail_under(text, JOB)


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


def _find_advice(name: str, text: str) -> NamedMeasure:
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
    _find_advice,
    {"share": (POINTS, *UNIT_SECONDS), "count": ("",)},
    shape=VALUE,
    only_positive=False,
)


def parse_advice(text: str, *, fails: bool = True) -> Expression:
    """`advice.NAME OP VALUE[UNIT]`; without a unit in points of goodput. `UsageError`: not such an expression, an
    unknown name, a unit that the name cannot have."""
    return read(text, ADVICE, fails=fails)

"""Thresholds on one job (`goodput<90`): what can be named. No NumPy here, as `--help` reads this."""

from __future__ import annotations

from collections.abc import Mapping

from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.analysis.measures import MEASURES, PREFIXES
from goodput_cli.analysis.threshold import (
    PERCENT,
    UNIT_SECONDS,
    Dimension,
    Expression,
    Named,
    Subject,
    parse,
    read,
    read_fail_under,
)
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.categories import category_named
from goodput_cli.vocabulary.causes import CAUSES, GROUPS
from goodput_cli.vocabulary.text import did_you_mean

INSIGHT = "insight"
"""What stands before the code of a kind of insights."""
CAUSE = "cause"
"""What stands before a cause, or a group of causes."""
PHASE = "phase"
"""What stands before a phase inside steps."""
OOM = "oom"
"""What stands for every cause by which memory ran out."""


def measure_named(name: str, text: str, *, insights: bool = False) -> Named:
    """The measure with a name, or one label of it: `custom:LABEL`.

    `UsageError` with a hint where there is no such name. insights: whether kinds of them could be meant.
    """
    prefix, colon, label = name.partition(":")
    if colon and prefix.lower() in PREFIXES and label.strip():
        return MEASURES[PREFIXES[prefix.lower()]].named(label.strip().upper())
    if name.lower() in MEASURES:
        return MEASURES[name.lower()].named()
    named = category_named(name)
    if named is not None and named[0].id in MEASURES and not named[0].row.has_labels:
        return MEASURES[named[0].id].named()
    known = [*MEASURES, *(f"{INSIGHT}:{code}" for code in BY_CODE if insights)]
    kinds = f"custom:LABEL and {INSIGHT}:CODE" if insights else "custom:LABEL"
    hint = did_you_mean(name, known, f"names are {', '.join(MEASURES)}, {kinds}")
    raise UsageError(f"{text!r}: unknown measure {name!r}; {hint}")


def _find(name: str, text: str) -> Named:
    prefix, _, code = (part.strip().lower() for part in name.partition(":"))
    if prefix == PHASE and code:
        return Named(PHASE, "ratio", code)
    if ":" not in name or prefix not in (CAUSE, INSIGHT):
        return measure_named(name, text, insights=True)
    if prefix == CAUSE:
        known: tuple[str, ...] = (*CAUSES, *GROUPS, OOM)
        words = f"causes are {', '.join(CAUSES)}; groups are {', '.join(GROUPS)}; and {OOM}"
    else:
        known, words = tuple(BY_CODE), f"kinds are {', '.join(BY_CODE)}"
    if code in known:
        return Named(prefix, "losses" if prefix == CAUSE else "share", code)
    raise UsageError(f"{text!r}: unknown {prefix} {code!r}; {did_you_mean(code, known, words)}")


TIMES = tuple(UNIT_SECONDS)
UNITS: Mapping[Dimension, tuple[str, ...]] = {
    "share": (PERCENT, *TIMES), "ratio": (PERCENT,), "time": TIMES, "count": ("",), "losses": ("", *TIMES),
}  # fmt: skip
JOB = Subject(
    "a threshold",
    "NAME OP VALUE[UNIT], as in 'goodput<90', 'custom:EVAL>=5%', 'queued>30m', 'steps.p99>2s', 'insight:hang>10m', "
    "'disruptions>3', 'phase:data>20' or 'cause:hardware>0'",
    _find,
    UNITS,
)


def parse_threshold(text: str, *, fails: bool = True) -> Expression:
    """`NAME OP VALUE[UNIT]`. Without a unit, goodput, categories and slices are in %, times in s."""
    return parse(text, JOB, fails=fails)


def read_threshold(text: str, *, fails: bool = True) -> Expression:
    """An expression as a person wrote it. `UsageError` also for one on goodput that was probably meant otherwise."""
    return read(text, JOB, fails=fails)


def parse_fail_under(text: str) -> Expression:
    """`--fail-under PCT`, which is `goodput<PCT`. `UsageError` if it is not a number."""
    return read_fail_under(text, JOB)

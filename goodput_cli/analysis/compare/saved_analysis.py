"""A saved answer of `goodput analyze --format json` as a `Summary`.

The file may come from anywhere: it is read as the declaration of the answer says (analysis/goodput/answer.py), and the
amounts must add up as they do in every analysis. Percentages are never read; they are made from the ns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from itertools import pairwise
from typing import Any, TypeVar

from msgspec import ValidationError, convert

from goodput_cli.analysis.goodput.answer import AnalysisAnswer
from goodput_cli.analysis.results import Window
from goodput_cli.analysis.sheet import SCHEMA_VERSION
from goodput_cli.analysis.summary import (
    DisruptionSummary,
    SavedProgress,
    Size,
    Summary,
    failures_of,
    step_range_of,
)
from goodput_cli.analysis.wire import result_of, wire_type
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import SourceError
from goodput_cli.vocabulary.categories import NOT_BADPUT, Category, CategoryKey

_ANEW = "save it anew with `goodput analyze LOG -o FILE.json`"
_KIND = "analysis"
_OF_AN_ANALYSIS = ("job", "window", "goodput", "badput", "reference", "steps", "not_recorded")
_BADPUT = {category.id: category.row for category in Category if category not in NOT_BADPUT}
_MOST_NS = 1 << 62
Declared = TypeVar("Declared")


_BEYOND_ALL = 2**64


class _Wrong(Exception):
    """What is wrong with a saved answer."""


def summary_of_saved(document: Mapping[str, Any], source: str) -> Summary:
    """The summary that a saved analysis holds. source: its name, for errors.

    Raises SourceError: of another schema version, the answer of another command, or not what `analyze` writes.
    """
    _check_kind(document, source)
    try:
        return _summary(_read(document, wire_type(AnalysisAnswer)))
    except _Wrong as wrong:
        raise SourceError(f"{source}: is no answer of `goodput analyze`: {wrong}; {_ANEW}") from wrong


def _check_kind(document: Mapping[str, Any], source: str) -> None:
    version = document.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise SourceError(
            f"{source}: is JSON of schema_version {str(version)[:20]}, and this goodput reads {SCHEMA_VERSION}; {_ANEW}"
        )
    kind = document.get("kind", _KIND)  # answers of older versions do not say it
    missing = [key for key in _OF_AN_ANALYSIS if key not in document]
    if kind != _KIND or missing:
        why = f"its kind is {str(kind)[:40]!r}" if kind != _KIND else f"it has no {missing[0]!r}"
        raise SourceError(f"{source}: is no saved analysis but another answer of goodput ({why}); {_ANEW}")


def _read(value: Any, declared: type[Declared], path: str = "") -> Declared:
    """The value as it is declared. `_Wrong` says where it is not. path: where it stands in the document."""
    if _is_beyond_all(value):
        raise _Wrong(f"{path or 'it'} holds a number beyond all that an analysis counts")
    try:
        return convert(value, declared)
    except ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        where = (path + place.strip("`").removeprefix("$")).removeprefix(".")
        if "matching regex" in message:
            message = "is not written as it should be"
        raise _Wrong(f"{where}: {message[:1].lower()}{message[1:]}") from error


def _is_beyond_all(value: Any) -> bool:
    """Whether a number in it is larger than any time in ns or count is."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, int | float) and abs(one) >= _BEYOND_ALL:
            return True
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return False


def _summary(answer: Any) -> Summary:
    window, badput, not_recorded = _window(answer.window), _badput(answer), frozenset(answer.not_recorded)
    if answer.goodput.ns is not None and answer.goodput.ns + sum(badput.values()) != window.counted_ns:
        raise _Wrong("goodput and badput do not add up to the window without what is excluded")
    if not_recorded & {category for category, _ in badput}:
        raise _Wrong("a category has time and is not recorded")
    rows: Any = list[wire_type(DisruptionSummary)]  # type: ignore[misc]
    each_disruption = tuple(result_of(one) for one in _read(answer.disruptions, rows, "disruptions"))
    counted = sum(one.ended != "scale_up" for one in each_disruption)  # planned: listed, and not counted
    reliability, reference = answer.reliability, answer.reference
    return Summary(
        job=answer.job.name,
        window=window,
        goodput_ns=answer.goodput.ns,
        badput=badput,
        not_recorded=not_recorded,
        overlapped_ns=sum(row.ns for row in answer.overlapped) if answer.overlapped else None,
        attempts=answer.job.attempts,
        runs=answer.job.runs,
        kept_steps=answer.job.kept_steps,
        step_range=step_range_of(answer.job.first_step, answer.job.last_step),
        disruptions=answer.job.disruptions,
        failures=failures_of(answer.job.disruptions, answer.job.ending, window, _instant(answer.job.end, "job.end")),
        each_disruption=each_disruption if counted == answer.job.disruptions else None,
        mtbf_seconds=reliability.mtbf_seconds,
        mean_downtime_seconds=reliability.mean_downtime_seconds,
        mean_time_to_regain_seconds=reliability.mean_time_to_regain_seconds,
        longest_unproductive_seconds=_longest(reliability),
        steps=result_of(answer.steps),
        step_blocks=tuple(answer.step_blocks),
        progress=_progress(answer, window),
        size=_size(answer.size),
        saves=None if answer.saves.count is None else result_of(answer.saves),
        at_risk_seconds=answer.at_risk.seconds,
        at_risk_steps=answer.at_risk.steps,
        elastic=result_of(answer.elastic),
        reference_seconds=reference.step_time_seconds,
        origin=None if reference.step_time_seconds is None else reference.origin or "given",
        method=answer.method,
        diagnostics=_diagnostics(answer.diagnostics),
    )


def _size(part: Any) -> Size:
    """What is not a number above 0 is not known."""
    numbers = astuple(result_of(part))
    return Size(*(one if one is not None and 0 < one < _MOST_NS else None for one in numbers))


def _progress(answer: Any, window: Window) -> SavedProgress | None:
    """None where the answer does not say it: older ones did not, and checkpoint logs have none."""
    points = tuple((int(step), float(seconds)) for step, seconds in answer.progress)
    if len(points) < 2:
        return None
    if points[0][1] != 0 or not all(one[0] < two[0] and one[1] <= two[1] for one, two in pairwise(points)):
        raise _Wrong("progress: steps and seconds do not rise from 0")
    if not points[-1][1] * 1e9 <= window.ns + 1:
        raise _Wrong("progress: goes beyond the window")
    return SavedProgress(points)


def _window(part: Any) -> Window:
    start, end = _instant(part.start, "window.start"), _instant(part.end, "window.end")
    if part.ns < 1:
        raise _Wrong("window.ns: expected `int` >= 1")
    if end - start != part.ns:
        raise _Wrong("window.ns is not the time from window.start to window.end")
    if part.excluded_ns >= part.ns:
        raise _Wrong("all of the window is excluded")
    return Window(start, end, part.excluded_ns)


def _instant(text: str, path: str) -> int:
    """An instant (ns since 1970 UTC)."""
    from goodput_cli.events.timestamps import TimestampReader
    from goodput_cli.vocabulary.when import load_zone

    instant = TimestampReader(load_zone("UTC")).read(text)
    if instant is None:
        raise _Wrong(f"{path} is not a time")
    return instant.ns


def _badput(answer: Any) -> dict[CategoryKey, int]:
    amounts: dict[CategoryKey, int] = {}
    for place, row in enumerate(answer.badput):
        path = f"badput[{place}]"
        category = _BADPUT.get(row.category)
        if category is None:
            raise _Wrong(f"{path}.category is not a kind of badput")
        if (row.label is None) == category.has_labels:
            raise _Wrong(f"{path}.label does not go with {row.category}")
        if not (-_MOST_NS if category.may_be_negative else 0) <= row.ns <= _MOST_NS:
            raise _Wrong(f"{path}.ns is not an amount of time")
        key = (row.category, row.label)
        amounts[key] = amounts.get(key, 0) + row.ns
    return {key: ns for key, ns in amounts.items() if ns}


def _longest(part: Any) -> float | None:
    """Seconds; null is no such stretch where the other figures are known."""
    if part.longest_unproductive is None:
        return None if part.exposure_seconds is None else 0.0
    seconds: float = part.longest_unproductive.seconds
    return seconds


def _diagnostics(parts: Sequence[Any]) -> tuple[Diagnostic, ...]:
    return tuple(Diagnostic(one.code, one.severity, one.message, one.count, tuple(one.where)) for one in parts)

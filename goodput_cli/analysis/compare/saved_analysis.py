"""A saved answer of `goodput analyze --format json` as a `Summary`.

The file may come from anywhere: it is read according to the declaration of the answer (analysis/goodput/answer.py), and
the amounts must add up as in every analysis. Percentages are never read; they are made from the ns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from itertools import pairwise
from typing import Any, TypeVar

from msgspec import ValidationError, convert

from goodput_cli.accounting.options import Bound
from goodput_cli.analysis.goodput.answer import AnalysisAnswer, Badput
from goodput_cli.analysis.results import UNKNOWN_IN_VERSION_1, Window
from goodput_cli.analysis.sheet import READ_VERSIONS, SCHEMA_VERSION
from goodput_cli.analysis.summary import DisruptionSummary, SavedProgress, Size, Summary, summary_from
from goodput_cli.analysis.to_json import json_type
from goodput_cli.errors import SourceError
from goodput_cli.vocabulary.categories import CONFIRMED, CONFIRMED_IN_VERSION_1, NOT_BADPUT, UNCOUNTED, Category

_ANEW = "save it again with `goodput analyze LOG -o FILE.json`"
_KIND = "analysis"
_OF_AN_ANALYSIS = ("job", "window", "goodput", "badput", "reference", "steps", "not_recorded")
_BADPUT = {category.id: category.row for category in Category if category not in NOT_BADPUT}
_MOST_NS = 1 << 62
_MOST_RULES = 10**6
_BEYOND_ALL = 2**64
Declared = TypeVar("Declared")


class _SavedAnswerError(Exception):
    """Error in a saved answer."""


def summary_of_saved(document: Mapping[str, Any], source: str) -> Summary:
    """Return the summary in a saved analysis. source: its name, for errors.

    Raises SourceError for another schema version, the answer of another command, or a file that `analyze` did not
    write.
    """
    _check_kind(document, source)
    document = with_current_values(document)
    try:
        summary = _summary(_read(document, json_type(AnalysisAnswer).saved))
        return replace(summary, rules=_rules(document))
    except _SavedAnswerError as wrong:
        raise SourceError(f"{source}: not an answer of `goodput analyze`: {wrong}", tip=_ANEW) from wrong


def with_current_values(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a saved analysis with the values of today for those that `schema_version` 1 wrote."""
    rows, last_end = document.get("disruptions"), document.get("last_end")
    changed: dict[str, Any] = {}
    if isinstance(rows, list):
        changed["disruptions"] = [_current(row, _OF_DISRUPTIONS) for row in rows]
    if last_end is not None:
        changed["last_end"] = _current(last_end, _OF_LAST_END)
    return {**document, **changed}


_OF_DISRUPTIONS: Mapping[str, Mapping[str, str | None]] = {
    "cause_certainty": {CONFIRMED_IN_VERSION_1: CONFIRMED},
    "recovery": {UNKNOWN_IN_VERSION_1: None},
}
_OF_LAST_END: Mapping[str, Mapping[str, str | None]] = {"certainty": {CONFIRMED_IN_VERSION_1: CONFIRMED}}


def _current(row: Any, changes: Mapping[str, Mapping[str, str | None]]) -> Any:
    """Return an object of a saved answer with its old values replaced; anything else as it is."""
    if not isinstance(row, Mapping):
        return row
    values = {key: row[key] for key in changes if isinstance(row.get(key), str)}
    return {**row, **{key: changes[key].get(value, value) for key, value in values.items()}}


def _rules(document: Mapping[str, Any]) -> int:
    """Return the version of the rules that made it."""
    rules = document.get("rules", 1)
    if type(rules) is not int or not 1 <= rules <= _MOST_RULES:
        raise _SavedAnswerError("rules: expected an integer of at least 1")
    return rules


def _check_kind(document: Mapping[str, Any], source: str) -> None:
    version = document.get("schema_version")
    if type(version) is not int or version not in READ_VERSIONS:
        raise SourceError(
            f"{source}: has schema_version {str(version)[:20]}, but this goodput reads {SCHEMA_VERSION}", tip=_ANEW
        )
    kind = document.get("kind", _KIND)  # answers of older versions do not contain it
    missing = [key for key in _OF_AN_ANALYSIS if key not in document]
    if kind != _KIND or missing:
        why = f"its kind is {str(kind)[:40]!r}" if kind != _KIND else f"it has no {missing[0]!r}"
        raise SourceError(f"{source}: not a saved analysis but another answer of goodput ({why})", tip=_ANEW)


def _read(value: Any, declared: type[Declared], path: str = "") -> Declared:
    """Return the value as declared. Raises `_SavedAnswerError` with the location of an error. path: location in the
    document."""
    if _is_beyond_all(value):
        raise _SavedAnswerError(f"{path or 'it'} contains a number out of range")
    try:
        return convert(value, declared)
    except ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        where = (path + place.strip("`").removeprefix("$")).removeprefix(".")
        if "matching regex" in message:
            message = "has the wrong format"
        raise _SavedAnswerError(f"{where}: {message[:1].lower()}{message[1:]}") from error


def _is_beyond_all(value: Any) -> bool:
    """Return True if it contains a number larger than any time in ns or count, or one that is not finite."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, int | float) and not abs(one) < _BEYOND_ALL:
            return True
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return False


def _summary(saved: Any) -> Summary:
    try:
        answer: AnalysisAnswer = json_type(AnalysisAnswer).back(saved)
    except ValueError as error:
        raise _SavedAnswerError(str(error)) from error
    _check_window(answer.window, saved.window.ns)
    _check_badput(answer.badput)
    goodput_ns, not_recorded = answer.goodput.ns, frozenset(answer.not_recorded)
    if goodput_ns is not None and goodput_ns + sum(row.ns for row in answer.badput) != answer.window.counted_ns:
        raise _SavedAnswerError("goodput and badput do not add up to the window without what is excluded")
    if any(row.ns and row.category in not_recorded for row in answer.badput):
        raise _SavedAnswerError("a category has time although it is listed as not recorded")
    rows = json_type(tuple[DisruptionSummary, ...])
    disruptions = rows.back(_read(saved.disruptions, rows.saved, "disruptions"))
    counted = sum(one.ended not in UNCOUNTED for one in disruptions)
    return summary_from(
        answer,
        goodput_ns=goodput_ns,
        bounds=tuple(
            Bound(one.quantity, one.direction, one.ns, one.reason, one.text, tuple(one.lines)) for one in answer.bounds
        ),
        each_disruption=disruptions if counted == answer.job.disruptions else None,
        step_blocks=tuple(answer.step_blocks),
        progress=_progress(answer.progress, answer.window),
        size=_size(answer.size),
        kept_work=lambda: None if answer.inside is None else answer.inside.work,
    )


def _size(size: Size | None) -> Size:
    """Return the size; a value that is not a number above 0 is unknown."""
    numbers = () if size is None else astuple(size)
    return Size(*(one if one is not None and 0 < one < _MOST_NS else None for one in numbers))


def _progress(points: Sequence[tuple[int, float]], window: Window) -> SavedProgress | None:
    """Return the progress; None if the answer does not contain it: older ones did not, and checkpoint logs
    have none."""
    if len(points) < 2:
        return None
    if points[0][1] != 0 or not all(one[0] < two[0] and one[1] <= two[1] for one, two in pairwise(points)):
        raise _SavedAnswerError("progress: steps and seconds must increase from 0")
    if not points[-1][1] * 1e9 <= window.ns + 1:
        raise _SavedAnswerError("progress: exceeds the window")
    return SavedProgress(tuple((int(step), float(seconds)) for step, seconds in points))


def _check_window(window: Window, ns: int) -> None:
    """Check the window. ns: its length in the answer."""
    if ns < 1:
        raise _SavedAnswerError("window.ns: expected `int` >= 1")
    if window.ns != ns:
        raise _SavedAnswerError("window.ns is not the time from window.start to window.end")
    if window.excluded_ns >= ns:
        raise _SavedAnswerError("all of the window is excluded")


def _check_badput(rows: Sequence[Badput]) -> None:
    for place, row in enumerate(rows):
        path = f"badput[{place}]"
        category = _BADPUT.get(row.category)
        if category is None:
            raise _SavedAnswerError(f"{path}.category is not a category of badput")
        if (row.label is None) == category.has_labels:
            raise _SavedAnswerError(f"{path}.label does not match {row.category}")
        if not (-_MOST_NS if category.may_be_negative else 0) <= row.ns <= _MOST_NS:
            raise _SavedAnswerError(f"{path}.ns is not a duration")

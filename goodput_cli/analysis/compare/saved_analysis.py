"""A saved answer of `goodput analyze --format json` as a `Summary`.

The file may come from anywhere: every value that is used is checked, and the amounts must add up as docs/schema.json
says that they do. Percentages are never read; they are made from the ns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goodput_cli.analysis.compare.summary import Key, Passage, Slices, Summary
from goodput_cli.analysis.results import Method, Saves, StepStatistics, Window
from goodput_cli.diagnostics.diagnostic import Diagnostic, Severity
from goodput_cli.errors import SourceError
from goodput_cli.vocabulary.categories import CATEGORIES

SCHEMA_VERSION = 1
"""The version of JSON answers that is written and read (docs/schema.json)."""

_ANEW = "save it anew with `goodput analyze LOG -o FILE.json`"
_OF_AN_ANALYSIS = ("job", "window", "goodput", "badput", "reference", "steps", "not_recorded")
_MOST_NS = 1 << 62
_BADPUT = frozenset(CATEGORIES) - {"productive", "excluded"}
_LABELLED = "custom_badput_events"
_MAY_BE_NEGATIVE = "training_slowdown"
_SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")


def summary_of_saved(document: Mapping[str, Any], source: str) -> Summary:
    """The summary that a saved analysis holds. source: its name, for errors.

    Raises SourceError: of another schema version, the answer of another command, or not what `analyze` writes.
    """
    _check_kind(document, source)
    whole = _Part(document, source, "")
    job, steps, reference = whole.part("job"), whole.part("steps"), whole.part("reference")
    window, badput, not_recorded = _window(whole.part("window")), _badput(whole), frozenset(whole.texts("not_recorded"))
    goodput_ns = whole.part("goodput").whole("ns")
    if goodput_ns + sum(badput.values()) != window.counted_ns:
        raise whole.wrong("goodput and badput do not add up to the window without what is excluded")
    if not_recorded & {category for category, _ in badput}:
        raise whole.wrong("a category has time and is not recorded")
    reliability, risk = whole.part("reliability", {}), whole.part("at_risk", {})
    passages = tuple(_passage(part) for part in whole.parts("disruptions", ()))
    disruptions = job.whole("disruptions")
    seconds = reference.number("step_time_seconds")
    return Summary(
        job=job.text("name"),
        window=window,
        goodput_ns=goodput_ns,
        badput=badput,
        not_recorded=not_recorded,
        overlapped_ns=_overlapped(whole),
        attempts=job.whole("attempts"),
        runs=job.whole("runs"),
        kept_steps=job.number("kept_steps"),
        disruptions=disruptions,
        passages=passages if len(passages) == disruptions else None,
        mtbf_seconds=reliability.number("mtbf_seconds"),
        mean_downtime_seconds=reliability.number("mean_downtime_seconds"),
        mean_time_to_regain_seconds=reliability.number("mean_time_to_regain_seconds"),
        longest_unproductive_seconds=_longest(reliability),
        steps=_steps(steps),
        saves=_saves(whole.part("saves", {})),
        at_risk_seconds=risk.number("seconds"),
        at_risk_steps=risk.number("steps"),
        slices=_slices(whole.part("elastic", {})),
        reference_seconds=seconds,
        origin=None if seconds is None else "auto" if reference.text("origin") == "auto" else "given",
        method=_method(whole),
        diagnostics=tuple(_diagnostic(part) for part in whole.parts("diagnostics", ())),
    )


def _check_kind(document: Mapping[str, Any], source: str) -> None:
    version = document.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise SourceError(
            f"{source}: is JSON of schema_version {str(version)[:20]}, and this goodput reads {SCHEMA_VERSION}; {_ANEW}"
        )
    missing = [key for key in _OF_AN_ANALYSIS if key not in document]
    if missing:
        raise SourceError(
            f"{source}: is no saved analysis but another answer of goodput (it has no {missing[0]!r}); {_ANEW}"
        )


@dataclass(frozen=True)
class _Part:
    """An object of the document; path: where it stands."""

    values: Mapping[str, Any]
    source: str
    path: str

    def wrong(self, what: str) -> SourceError:
        return SourceError(f"{self.source}: is no answer of `goodput analyze`: {what}; {_ANEW}")

    def _not(self, key: str, kind: str) -> SourceError:
        return self.wrong(f"{self.path}{key} is not {kind}")

    def part(self, key: str, default: Mapping[str, Any] | None = None) -> _Part:
        """An object. default: stands for one that older answers do not have."""
        return self._as_part(self.values.get(key, default), f"{self.path}{key}")

    def parts(self, key: str, default: tuple[()] | None = None) -> list[_Part]:
        """A list of objects."""
        return [self._as_part(value, f"{self.path}{key}[{at}]") for at, value in enumerate(self._list(key, default))]

    def texts(self, key: str) -> list[str]:
        """A list of texts."""
        values = self._list(key, None)
        if not all(isinstance(value, str) for value in values):
            raise self._not(key, "a list of texts")
        return values

    def _as_part(self, value: Any, path: str) -> _Part:
        if not isinstance(value, dict):
            raise self.wrong(f"{path} is not an object")
        return _Part(value, self.source, f"{path}.")

    def _list(self, key: str, default: tuple[()] | None) -> list[Any]:
        value = self.values.get(key, default)
        if not isinstance(value, list | tuple):
            raise self._not(key, "a list")
        return list(value)

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self._not(key, "a text")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key)
        if not isinstance(value, bool):
            raise self._not(key, "true or false")
        return value

    def whole(self, key: str, least: int = 0) -> int:
        """A whole number from `least` to 2^62."""
        value = self.values.get(key)
        if type(value) is not int or not least <= value <= _MOST_NS:
            raise self._not(key, "a whole number" if least < 0 else f"a whole number of {least} or more")
        return value

    def number(self, key: str) -> float | None:
        """A number of 0 or more; None where it is null, or where older answers do not have it."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise self._not(key, "a number of 0 or more")
        return float(value)


def _window(part: _Part) -> Window:
    length, excluded = part.whole("ns", least=1), part.whole("excluded_ns")
    start, end = _instant(part, "start"), _instant(part, "end")
    if end - start != length:
        raise part.wrong("window.ns is not the time from window.start to window.end")
    if excluded >= length:
        raise part.wrong("all of the window is excluded")
    return Window(start, end, excluded)


def _instant(part: _Part, key: str) -> int:
    """An instant (ns since 1970 UTC)."""
    from goodput_cli.events.timestamps import TimestampReader
    from goodput_cli.vocabulary.zones import load_zone

    instant = TimestampReader(load_zone("UTC")).read(part.text(key))
    if instant is None:
        raise part.wrong(f"{part.path}{key} is not a time")
    return instant.ns


def _badput(whole: _Part) -> dict[Key, int]:
    amounts: dict[Key, int] = {}
    for part in whole.parts("badput"):
        category = part.text("category")
        if category not in _BADPUT:
            raise part.wrong(f"{part.path}category is not a kind of badput")
        label = None if part.values.get("label") is None else part.text("label")
        if (label is None) == (category == _LABELLED):
            raise part.wrong(f"{part.path}label does not go with {category}")
        key = (category, label)
        amounts[key] = amounts.get(key, 0) + part.whole("ns", -_MOST_NS if category == _MAY_BE_NEGATIVE else 0)
    return {key: ns for key, ns in amounts.items() if ns}


def _overlapped(whole: _Part) -> int | None:
    amounts = [part.whole("ns") for part in whole.parts("overlapped", ())]
    return sum(amounts) if amounts else None


def _steps(part: _Part) -> StepStatistics:
    names = ("ideal_seconds", "mean_seconds", "median_seconds", "p90_seconds", "p99_seconds")
    return StepStatistics(part.whole("count"), *(part.number(name) for name in names))


def _slices(part: _Part) -> Slices:
    names = ("stepping_slice_efficiency", "available_slice_efficiency", "goodput_x_stepping_percent")
    return Slices(*(part.number(name) for name in names))


def _longest(part: _Part) -> float | None:
    """Seconds; null is no such stretch where the other figures are known."""
    if part.values.get("longest_unproductive") is None:
        return None if part.number("ettr") is None else 0.0
    return part.part("longest_unproductive").number("seconds")


def _saves(part: _Part) -> Saves | None:
    if part.values.get("count") is None:
        return None
    return Saves(part.whole("count"), part.number("interval_seconds"))


def _passage(part: _Part) -> Passage:
    lost = None if part.values.get("steps_lost") is None else part.whole("steps_lost")
    wasted = part.number("wasted_seconds")
    if wasted is None:
        raise part.wrong(f"{part.path}wasted_seconds is missing")
    return Passage(part.text("ended"), lost, wasted)


def _method(whole: _Part) -> Method | None:
    if whole.values.get("method") is None:
        return None
    part = whole.part("method")
    loading = part.text("data_loading")
    factor = part.number("stall_factor")
    if loading not in ("overlapped", "blocking") or factor is None:
        raise part.wrong("method names no way of accounting")
    return Method(
        data_loading="blocking" if loading == "blocking" else "overlapped",
        async_saves=part.flag("async_saves"),
        stall_factor=factor,
        exclude_stopped=part.flag("exclude_stopped"),
        hindsight=part.flag("hindsight"),
    )


def _diagnostic(part: _Part) -> Diagnostic:
    severity = next((known for known in _SEVERITIES if known == part.values.get("severity")), None)
    if severity is None:
        raise part.wrong(f"{part.path}severity is not one of {', '.join(_SEVERITIES)}")
    return Diagnostic(
        part.text("code"), severity, part.text("message"), part.whole("count"), tuple(part.texts("where"))
    )

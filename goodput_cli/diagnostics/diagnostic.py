"""Diagnostics: problems noticed in a log, which are reported instead of being repaired silently.

Those of the reading are stored compactly until its end, so that millions of bad lines do not fill the memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from operator import itemgetter
from pathlib import Path
from typing import Literal, Protocol, TypeVar, get_args

from goodput_cli.vocabulary.option import TomlRows
from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.text import file_line

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""Most severe first."""


@dataclass(frozen=True)
class DiagnosticCode:
    """A table of `codes.toml`. The texts are sentences."""

    severity: Severity
    """Severity: `error` lost data, `warning` may change a number, `info` changes none."""
    meaning: str
    """Description of the problem."""
    effect: str
    """Effect on the numbers."""
    advice: str
    """Advice."""
    mild: Severity | None = None
    """Severity of mild cases, which `meaning` defines; None without any."""
    of_formats: Mapping[str, str] = field(default_factory=dict)
    """Advice for logs of some formats, by format name (several separated by spaces). The first that a job has
    counts."""

    @property
    def advices(self) -> tuple[str, ...]:
        """Return all advice, one or more sentences each."""
        of_formats = ((names.replace(" ", ", "), advice) for names, advice in self.of_formats.items())
        return self.advice, *(f"In logs of {names}: {advice}" for names, advice in of_formats)

    def advice_for(self, formats: Iterable[str]) -> str:
        """Return the advice for a job with these log formats."""
        has = set(formats)
        return next((advice for names, advice in self.of_formats.items() if has & set(names.split())), self.advice)


CODES: Mapping[str, DiagnosticCode] = TomlRows(Path(__file__).with_name("codes.toml"), DiagnosticCode)
"""Every code; docs/diagnostics.md lists them by severity."""

_UNKNOWN = DiagnosticCode("warning", "", "See the message.", "See the documentation of the plug-in that reports it.")


def severity_of(code: str, mild: bool = False) -> Severity:
    """Return the severity of a code. mild: of its mild cases. Raises ValueError for a code without a table."""
    declared = CODES.get(code)
    if declared is None:
        raise ValueError(f"unknown diagnostic {code!r}: a new one needs a table in goodput_cli/diagnostics/codes.toml")
    return (declared.mild if mild else None) or declared.severity


def code_texts(code: str) -> DiagnosticCode:
    """Return the texts of a code; neutral ones for an unregistered code of a plug-in."""
    return CODES.get(code, _UNKNOWN)


@dataclass(frozen=True)
class Diagnostic:
    """A problem noticed in a log. `Diagnostic.of` creates those of this package; plug-ins with their own codes, and
    saved results, pass the severity."""

    code: str
    """A stable name, documented in docs/diagnostics.md."""
    severity: Severity
    """`error` lost data, `warning` may change a number, `info` changes none."""
    message: str
    """Description of the problem and its effect on the numbers, in one sentence."""
    count: int = 1
    """Number of occurrences."""
    where: tuple[str, ...] = ()
    """Locations (`file:line` or insertId), each once, in order; there may be fewer than `count`."""

    @classmethod
    def of(
        cls, code: str, message: str, count: int = 1, where: tuple[str, ...] = (), *, mild: bool = False
    ) -> Diagnostic:
        """Return a diagnostic with the severity of its code, and with secrets removed from the message. Those that
        never occurred are never shown.

        mild: use the severity of mild cases. Raises ValueError for a code without a table."""
        said = without_secrets(message) if count else message
        return cls(code, severity_of(code, mild), said, count, tuple(dict.fromkeys(where)))


class HasSeverity(Protocol):
    """Protocol: has a severity."""

    @property
    def severity(self) -> Severity: ...


AnyGraded = TypeVar("AnyGraded", bound=HasSeverity)
_GRAVITY = {severity: place for place, severity in enumerate(SEVERITIES)}

MAX_PLACES = 100_000
"""Maximum number of locations of one diagnostic; `count` stays exact."""


def worst_first(graded: Iterable[AnyGraded]) -> list[AnyGraded]:
    """Return errors, then warnings, then infos, otherwise in the given order."""
    return sorted(graded, key=lambda item: _GRAVITY.get(item.severity, 0))


def problems(diagnostics: Iterable[AnyGraded]) -> list[AnyGraded]:
    """Return errors and warnings."""
    return [diagnostic for diagnostic in diagnostics if diagnostic.severity != "info"]


def merge(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Merge diagnostics with the same code and message: add counts, and join locations in the given order."""
    merged: dict[tuple[str, str], Diagnostic] = {}
    for diagnostic in diagnostics:
        key = (diagnostic.code, diagnostic.message)
        before = merged.get(key)
        if before is None:
            merged[key] = diagnostic
            continue
        places = tuple(dict.fromkeys(before.where + diagnostic.where))[:MAX_PLACES]
        merged[key] = replace(before, count=before.count + diagnostic.count, where=places)
    return tuple(merged.values())


def folded(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics with one info per code: the first message, and the number of others. Counts are added and
    locations joined."""
    found: dict[tuple[str, str], list[Diagnostic]] = {}
    for one in diagnostics:
        found.setdefault((one.code, "" if one.severity == "info" else one.message), []).append(one)
    return tuple(_as_one(same) if len(same) > 1 else same[0] for same in found.values())


def _as_one(same: Sequence[Diagnostic]) -> Diagnostic:
    message = f"{same[0].message}; and {len(same) - 1} more (--verbose lists each)"
    places = tuple(dict.fromkeys(place for one in same for place in one.where))
    return replace(same[0], message=message, count=sum(one.count for one in same), where=places)


def renamed(old: str, new: Sequence[str], then: str) -> str:
    """Return the message for a job name from before 0.2. new: its names now, several if they shared the old name. then:
    effect of the old name until 0.3."""
    old, *names = (one if len(one) <= MAX_NAME_LENGTH else f"{one[:MAX_NAME_LENGTH]}…" for one in (old, *new))
    more = len(names) - _FEW_NAMES
    few = " and ".join(names) if more <= 0 else f"{', '.join(names[:_FEW_NAMES])} and {more} more"
    if len(new) == 1:
        return f"{old} is named {few} since 0.2. Use the new name; until 0.3 {then}"
    return f"{old} was the name of {len(new)} jobs before 0.2: {few}. Use the new names; until 0.3 {then}"


_FEW_NAMES = 3
MAX_NAMES = 50
"""Number of different names in a log (keys, event types) that get a separate diagnostic, per code."""
MAX_NAME_LENGTH = 80
FEW_PLACES = 20
"""Number of locations of an `info` diagnostic: it changes no number, so a few examples suffice."""

_WIDTH = 3  # numbers per location: source, line, entry
_SLACK = 4


@dataclass
class _Occurrences:
    """Occurrences of one code and message."""

    count: int = 0
    """Number of occurrences."""
    places: array[int] = field(default_factory=lambda: array("q"))
    """`_WIDTH` numbers per location, one location after the other."""


class DiagnosticCollector:
    """Collector of occurrences by code and message; `diagnostics` adds severities and locations."""

    def __init__(self) -> None:
        self._collected: dict[tuple[str, str], _Occurrences] = {}
        """By code and message."""
        self._names: dict[str, set[str]] = {}

    def add(
        self,
        code: str,
        message: str,
        source: int,
        lines: Sequence[int],
        entries: Sequence[int] = (),
        count: int | None = None,
    ) -> None:
        """Add an occurrence at each of `lines` of a source. Raises ValueError for a code without a table.

        entries: codes of their Cloud Logging entries, if any. count: the number of occurrences, if only the first
        MAX_PLACES lines are given.
        """
        limit = _limit(code)
        same = self._collected.setdefault((code, message), _Occurrences())
        same.count += len(lines) if count is None else count
        places = zip(repeat(source), lines[:limit], entries or repeat(-1), strict=False)
        same.places.extend(chain.from_iterable(places))
        if len(same.places) > _SLACK * limit * _WIDTH:
            same.places = array("q", [number for place in _first(same.places, limit) for number in place])

    def has_code(self, code: str) -> bool:
        """Return True if a diagnostic with this code was added."""
        return any(known == code for known, _ in self._collected)

    def bounded(self, code: str, name: str) -> str:
        """Return a name from a log for a message: shortened, or `(others)` after MAX_NAMES names."""
        names = self._names.setdefault(code, set())
        shown = name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…"
        if shown not in names and len(names) >= MAX_NAMES:
            return "(others)"
        names.add(shown)
        return shown

    def diagnostics(self, sources: Sequence[str], entries: Sequence[tuple[str, str, str]]) -> tuple[Diagnostic, ...]:
        """Return all diagnostics in order of code and message, with locations in order of source and line."""
        diagnostics = []
        for (code, message), same in sorted(self._collected.items(), key=itemgetter(0)):
            places = [
                entries[entry][2] if line <= 0 and entry >= 0 else file_line(sources[source], line)
                for source, line, entry in _first(same.places, _limit(code))
            ]
            diagnostics.append(Diagnostic.of(code, message, same.count, tuple(places)))
        return tuple(diagnostics)


def _limit(code: str) -> int:
    return FEW_PLACES if severity_of(code) == "info" else MAX_PLACES


def _first(flat: array[int], limit: int) -> list[tuple[int, int, int]]:
    """Return the first locations by source and line, each once, whatever the order in which blocks were decoded."""
    # A dict keeps the order, and most locations are in order: sorting them takes linear time.
    return sorted(dict.fromkeys(zip(flat[0::_WIDTH], flat[1::_WIDTH], flat[2::_WIDTH], strict=True)))[:limit]

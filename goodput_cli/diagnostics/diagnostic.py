"""Diagnostics: what looked wrong in a log, said instead of clamped, zeroed or raised away.

Diagnostics of the reading, kept compactly until its end: millions of bad lines must not fill the memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Literal, Protocol, TypeVar, get_args

from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.toml_rows import TomlRows

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The gravest first."""


@dataclass(frozen=True)
class Code:
    """What is known of a diagnostic before it occurs: a table of `codes.toml`. The texts are sentences."""

    severity: Severity
    """`error` lost data, `warning` may change a number, `info` changes none."""
    meaning: str
    """What was noticed."""
    effect: str
    """What that does to the numbers."""
    advice: str
    """What to do about it."""
    mild: Severity | None = None
    """How grave its mild cases are, where it has some: the meaning says which."""
    of_formats: Mapping[str, str] = field(default_factory=dict)
    """What to do about it in logs of some formats, by a name or several with spaces between: the first that a job has
    counts."""

    @property
    def advices(self) -> tuple[str, ...]:
        """All advice, a sentence or more each."""
        of_formats = ((names.replace(" ", ", "), advice) for names, advice in self.of_formats.items())
        return self.advice, *(f"In logs of {names}: {advice}" for names, advice in of_formats)

    def advice_for(self, formats: Iterable[str]) -> str:
        """What to do about it, for a job whose log has these formats."""
        has = set(formats)
        return next((advice for names, advice in self.of_formats.items() if has & set(names.split())), self.advice)


CODES: Mapping[str, Code] = TomlRows(Path(__file__).with_name("codes.toml"), Code)
"""Every code, in the order in which docs/diagnostics.md lists them."""

_UNKNOWN = Code("warning", "", "See the message.", "See the documentation of the plug-in that reports it.")


def severity_of(code: str, mild: bool = False) -> Severity:
    """How grave a diagnostic of ours is. mild: a mild case. Raises ValueError for a code that has no table."""
    declared = CODES.get(code)
    if declared is None:
        raise ValueError(
            f"no diagnostic is called {code!r}: a new one needs a table in goodput_cli/diagnostics/codes.toml"
        )
    return (declared.mild if mild else None) or declared.severity


def code_texts(code: str) -> Code:
    """The texts of a code; a code of a plug-in that is not registered gets neutral ones."""
    return CODES.get(code, _UNKNOWN)


@dataclass(frozen=True)
class Diagnostic:
    """Something noticed about a log. Those of this package are made by `Diagnostic.of`; a plug-in that has codes of its
    own, and an answer that was saved, give the severity themselves."""

    code: str
    """A stable name, documented in docs/diagnostics.md."""
    severity: Severity
    """`error` lost data, `warning` may change a number, `info` changes none."""
    message: str
    """One sentence for a person: what, and what it does to the numbers."""
    count: int = 1
    """How often."""
    where: tuple[str, ...] = ()
    """Evidence, `file:line` or insertId, sorted; may hold fewer than `count` places."""

    @classmethod
    def of(
        cls, code: str, message: str, count: int = 1, where: tuple[str, ...] = (), *, mild: bool = False
    ) -> Diagnostic:
        """A diagnostic with the severity that the table of codes says; mild: with that of its mild cases. What a
        message quotes of a log shows no secret. Raises ValueError for a code without a row."""
        return cls(code, severity_of(code, mild), without_secrets(message), count, where)


class Graded(Protocol):
    """What has a severity."""

    @property
    def severity(self) -> Severity: ...


AnyGraded = TypeVar("AnyGraded", bound=Graded)
_GRAVITY = {severity: place for place, severity in enumerate(SEVERITIES)}

MAX_PLACES = 100_000
"""How many places one diagnostic names at the most; `count` stays exact."""


def worst_first(graded: Iterable[AnyGraded]) -> list[AnyGraded]:
    """Errors, then warnings, then what only informs; otherwise in the order given."""
    return sorted(graded, key=lambda item: _GRAVITY.get(item.severity, 0))


def problems(diagnostics: Iterable[AnyGraded]) -> list[AnyGraded]:
    """What looks wrong: what only informs does not count."""
    return [diagnostic for diagnostic in diagnostics if diagnostic.severity != "info"]


def merge(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Diagnostics of one code and message as one: counts added, places joined in the order given."""
    merged: dict[tuple[str, str], Diagnostic] = {}
    for diagnostic in diagnostics:
        key = (diagnostic.code, diagnostic.message)
        before = merged.get(key)
        if before is None:
            merged[key] = diagnostic
            continue
        places = (before.where + diagnostic.where)[:MAX_PLACES]
        merged[key] = replace(before, count=before.count + diagnostic.count, where=places)
    return tuple(merged.values())


def folded(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """With one for each code of what only informs, which else has a message a job: the first, and how many more there
    are; counts added, places joined."""
    found: dict[tuple[str, str], list[Diagnostic]] = {}
    for one in diagnostics:
        found.setdefault((one.code, "" if one.severity == "info" else one.message), []).append(one)
    return tuple(_as_one(same) if len(same) > 1 else same[0] for same in found.values())


def _as_one(same: Sequence[Diagnostic]) -> Diagnostic:
    message = f"{same[0].message}; and {len(same) - 1} more of the kind (--verbose says each)"
    places = tuple(place for one in same for place in one.where)
    return replace(same[0], message=message, count=sum(one.count for one in same), where=places)


def renamed(old: str, new: Sequence[str], then: str) -> str:
    """That a job was named as it was called before 0.2. new: what it is called now; several, where its old name was
    theirs too. then: what the old name does
    until it counts no longer."""
    old, *names = (one if len(one) <= MAX_NAME_LENGTH else f"{one[:MAX_NAME_LENGTH]}…" for one in (old, *new))
    more = len(names) - _FEW_NAMES
    few = " and ".join(names) if more <= 0 else f"{', '.join(names[:_FEW_NAMES])} and {more} more"
    if len(new) == 1:
        return f"{old} is called {few} since 0.2: use the new name; until 0.3 {then}"
    return f"{old} is what {len(new)} jobs were called before 0.2, {few}: use the new names; until 0.3 {then}"


_FEW_NAMES = 3
MAX_NAMES = 50
"""How many different names of a log (keys, event types) get a diagnostic of their own, per code."""
MAX_NAME_LENGTH = 80
FEW_PLACES = 20
"""How many places an `info` diagnostic names: it changes no number, so a few examples do."""

_WIDTH = 3  # numbers per place: source, line, entry
_SLACK = 4


@dataclass
class _Collected:
    """What was noticed under one code and message."""

    count: int = 0
    """How often."""
    places: array[int] = field(default_factory=lambda: array("q"))
    """`_WIDTH` numbers a place, one place after the other."""


class DiagnosticCollector:
    """Collects what is noticed by code and message; `diagnostics` gives each its severity and its places."""

    def __init__(self) -> None:
        self._collected: dict[tuple[str, str], _Collected] = {}
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
        """Something noticed at each of `lines` of a source; `entries`: codes of their Cloud Logging entries, if they
        have. Raises ValueError for a code without a row in the table of codes.

        count: how often it was noticed, if only the first MAX_PLACES lines are given.
        """
        limit = _limit(code)
        same = self._collected.setdefault((code, message), _Collected())
        same.count += len(lines) if count is None else count
        for at, line in enumerate(lines[:limit]):
            same.places.extend((source, line, entries[at] if entries else -1))
        if len(same.places) > _SLACK * limit * _WIDTH:
            same.places = array("q", [number for place in _first(same.places, limit) for number in place])

    def bounded(self, code: str, name: str) -> str:
        """A name taken from a log, fit for a message: shortened, and `(others)` once there are too many of them."""
        names = self._names.setdefault(code, set())
        shown = name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…"
        if shown not in names and len(names) >= MAX_NAMES:
            return "(others)"
        names.add(shown)
        return shown

    def diagnostics(self, sources: Sequence[str], entries: Sequence[tuple[str, str, str]]) -> tuple[Diagnostic, ...]:
        """Everything noticed, in order of code and message, places in order of source and line."""
        diagnostics = []
        for (code, message), same in sorted(self._collected.items(), key=itemgetter(0)):
            places = [
                entries[entry][2] if line <= 0 and entry >= 0 else f"{sources[source]}:{line}"
                for source, line, entry in _first(same.places, _limit(code))
            ]
            diagnostics.append(Diagnostic.of(code, message, same.count, tuple(places)))
        return tuple(diagnostics)


def _limit(code: str) -> int:
    return FEW_PLACES if severity_of(code) == "info" else MAX_PLACES


def _first(flat: array[int], limit: int) -> list[tuple[int, int, int]]:
    """The first places in order of source and line, in whatever order the parts of a block were decoded."""
    return sorted(zip(flat[0::_WIDTH], flat[1::_WIDTH], flat[2::_WIDTH], strict=True))[:limit]

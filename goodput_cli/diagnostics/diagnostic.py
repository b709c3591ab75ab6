"""Diagnostics: what looked wrong in a log, said instead of clamped, zeroed or raised away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from goodput_cli.diagnostics.codes import SEVERITIES, Severity, severity_of


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
        """A diagnostic with the severity that the table of codes says; mild: with that of its mild cases. Raises
        ValueError for a code without a row."""
        return cls(code, severity_of(code, mild), message, count, where)


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

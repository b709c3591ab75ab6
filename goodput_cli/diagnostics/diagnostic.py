"""Diagnostics: what looked wrong in a log, said instead of clamped, zeroed or raised away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from goodput_cli.vocabulary.text import well_formed

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Diagnostic:
    """One finding about a log.

    code: a stable name, documented in docs/diagnostics.md.
    severity: `info` changes no number, `warning` may, `error` lost data.
    message: one sentence for a person: what, and what it does to the numbers.
    count: how often.
    where: evidence, `file:line` or insertId, sorted; may hold fewer than `count` places.
    """

    code: str
    severity: Severity
    message: str
    count: int = 1
    where: tuple[str, ...] = ()


MAX_PLACES = 100_000
"""How many places one diagnostic names at the most; `count` stays exact."""


def problems(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """What looks wrong: what only informs does not count."""
    return [found for found in diagnostics if found.severity != "info"]


def merge(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Diagnostics of one code and message as one: counts added, places joined in the order given."""
    merged: dict[tuple[str, str], Diagnostic] = {}
    for found in diagnostics:
        key = (found.code, found.message)
        old = merged.get(key)
        if old is None:
            merged[key] = found
            continue
        places = (old.where + found.where)[:MAX_PLACES]
        merged[key] = Diagnostic(found.code, old.severity, found.message, old.count + found.count, places)
    return tuple(merged.values())


def diagnostic_dict(found: Diagnostic) -> dict[str, Any]:
    """A diagnostic as every JSON answer writes it."""
    return {
        "code": found.code,
        "severity": found.severity,
        "count": found.count,
        "message": well_formed(found.message),
        "where": [well_formed(place) for place in found.where],
    }

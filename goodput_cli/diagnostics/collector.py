"""What was noticed while reading, kept compactly until the end: millions of bad lines must not fill the memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from goodput_cli.diagnostics.diagnostic import MAX_PLACES, Diagnostic, Severity

SEVERITIES: dict[str, Severity] = {
    "malformed_lines": "error",
    "bad_value": "error",
    "missing_job_name": "error",
    "unplaced_duration": "error",
    "unrecognised_lines": "warning",
    "unknown_event": "warning",
    "format_plugin_failed": "warning",
    "ambiguous_local_time": "warning",
    "nonexistent_local_time": "warning",
    "naive_timestamps": "info",
    "unknown_keys": "info",
}
"""Every code that decoding can give, with its severity."""

MAX_NAMES = 50
"""How many different names of a log (keys, event types) get a diagnostic of their own, per code."""
MAX_NAME_LENGTH = 80
FEW_PLACES = 20
"""How many places an `info` diagnostic names: it changes no number, so a few examples do."""

_WIDTH = 3  # numbers per place: source, line, entry
_SLACK = 4


@dataclass
class _Note:
    count: int = 0
    places: array[int] = field(default_factory=lambda: array("q"))


class Notes:
    """Collects findings by code and message; `diagnostics` turns them into sentences with places."""

    def __init__(self) -> None:
        self._notes: dict[tuple[str, str], _Note] = {}
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
        """One finding at each of `lines` of a source; `entries`: codes of their Cloud Logging entries, if they have.

        count: how many findings there are, if only the first MAX_PLACES lines are given.
        """
        note = self._notes.setdefault((code, message), _Note())
        note.count += len(lines) if count is None else count
        limit = _limit(code)
        for at, line in enumerate(lines[:limit]):
            note.places.extend((source, line, entries[at] if entries else -1))
        if len(note.places) > _SLACK * limit * _WIDTH:
            note.places = array("q", [number for place in _first(note.places, limit) for number in place])

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
        found = sorted(self._notes.items(), key=lambda item: item[0])
        places = {key: _first(note.places, _limit(key[0])) for key, note in found}
        return tuple(
            Diagnostic(key[0], SEVERITIES[key[0]], key[1], note.count, tuple(_places(places[key], sources, entries)))
            for key, note in found
        )


def _limit(code: str) -> int:
    return FEW_PLACES if SEVERITIES[code] == "info" else MAX_PLACES


def _first(flat: array[int], limit: int) -> list[tuple[int, int, int]]:
    """The first places in order of source and line, in whatever order the parts of a block were decoded."""
    return sorted(zip(flat[0::_WIDTH], flat[1::_WIDTH], flat[2::_WIDTH], strict=True))[:limit]


def _places(
    places: Sequence[tuple[int, int, int]], sources: Sequence[str], entries: Sequence[tuple[str, str, str]]
) -> Iterable[str]:
    for source, line, entry in places:
        yield entries[entry][2] if line <= 0 and entry >= 0 else f"{sources[source]}:{line}"

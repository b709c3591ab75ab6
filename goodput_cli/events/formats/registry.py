"""Which log formats there are: those of other packages, which are asked first, and our own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.formats.base import Format
from goodput_cli.events.formats.collected import TRACKED, MlDiagnostics, Sacct, Timeless
from goodput_cli.events.formats.native import Native
from goodput_cli.events.formats.orbax import Orbax
from goodput_cli.events.formats.recorder import Recorder
from goodput_cli.events.formats.resiliency import Resiliency

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "goodput_cli.formats"
BUILT_IN: tuple[Callable[[], Format], ...] = (
    Orbax, Recorder, MlDiagnostics, Resiliency, Native, Sacct, Timeless, *TRACKED,
)  # fmt: skip
"""A row each; of two that recognise a record, the first reads it."""


def all_formats(notes: DiagnosticCollector) -> tuple[Format, ...]:
    """A new object of each format, foreign ones first; one that cannot be loaded is a diagnostic."""
    foreign = [_load(point, notes) for point in plugged_in()]
    return (*(one for one in foreign if one is not None), *(make() for make in BUILT_IN))


@cache
def plugged_in() -> tuple[EntryPoint, ...]:
    """The formats of other packages, looked for once."""
    from importlib.metadata import entry_points  # takes longer than to read a small log

    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def _load(point: EntryPoint, notes: DiagnosticCollector) -> Format | None:
    try:
        loaded: Format = point.load()()
    except Exception as error:  # a foreign package may fail in any way
        message = f"the log format {point.name} ({point.value}) could not be loaded and is not read: {error}"
        notes.add("format_plugin_failed", message, 0, [])
        return None
    return loaded

"""Which log formats there are: our own, and those of other packages, which are asked first."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from goodput_cli.diagnostics.collector import Notes
from goodput_cli.events.formats.base import Format
from goodput_cli.events.formats.orbax import Orbax
from goodput_cli.events.formats.recorder import Recorder
from goodput_cli.events.formats.resiliency import Resiliency

ENTRY_POINT_GROUP = "goodput_cli.formats"


def all_formats(notes: Notes) -> tuple[Format, ...]:
    """Installed formats, foreign ones first; one that cannot be loaded is a diagnostic."""
    foreign = [_load(point, notes) for point in entry_points(group=ENTRY_POINT_GROUP)]
    return (*(one for one in foreign if one is not None), Orbax(), Recorder(), Resiliency())


def _load(point: Any, notes: Notes) -> Format | None:
    try:
        loaded: Format = point.load()()
    except Exception as error:  # a foreign package may fail in any way
        message = f"the log format {point.name} ({point.value}) could not be loaded and is not read: {error}"
        notes.add("format_plugin_failed", message, 0, [])
        return None
    return loaded

"""Which log formats there are: those of other packages, which are asked first, and our own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
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
    """The formats of other packages, looked for once, and only where a package may declare some: to import what looks
    for them takes a twelfth of a small analysis."""
    elsewhere = any(hasattr(one, "find_distributions") for one in sys.meta_path if one is not PathFinder)
    if not elsewhere and not any(map(_may_declare, sys.path)):
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def _may_declare(place: str) -> bool:
    """Whether a package at a place of Python's path may declare a format: its metadata says so, or is out of sight."""
    try:
        about = [name for name in os.listdir(place or ".") if name.lower().endswith(_METADATA)]
        files = (Path(place, name, "entry_points.txt") for name in about)
        return any(ENTRY_POINT_GROUP.encode() in one.read_bytes() for one in files if one.is_file())
    except FileNotFoundError:
        return False
    except OSError:  # an archive
        return True


_METADATA = (".dist-info", ".egg-info", "egg-info")
"""How the names of folders end that hold what a package says of itself."""


def _load(point: EntryPoint, notes: DiagnosticCollector) -> Format | None:
    try:
        loaded: Format = point.load()()
    except Exception as error:  # a foreign package may fail in any way
        message = f"the log format {point.name} ({point.value}) could not be loaded and is not read: {error}"
        notes.add("format_plugin_failed", message, 0, [])
        return None
    return loaded

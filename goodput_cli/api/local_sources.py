"""The names of sources, and whether rules for them may be inferred without being asked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from goodput_cli.errors import UsageError

_LARGEST = 1 << 30
"""Maximum size of a file in bytes for inferring rules without being asked."""
_NO_TEXT = (".parquet", ".db", ".wandb")
"""Suffixes of files without lines of text."""


def names_of(sources: Any) -> list[str]:
    """Return the names of the sources; empty if one has no name."""
    from goodput_cli.api.options import addresses

    try:
        return addresses(sources)
    except UsageError:
        return []


def is_local(name: str) -> bool:
    """Return True for a directory, or a file small enough for inferring rules without being asked."""
    path = Path(name)
    try:
        named = path.is_file() and path.suffix.lower() not in _NO_TEXT
        return path.is_dir() or (named and path.stat().st_size <= _LARGEST)
    except OSError:
        return False


def changed_at(names: Sequence[str]) -> int:
    """Return the time of the last change of the files (ns); the current time if unknown."""
    try:
        return max(Path(one).stat().st_mtime_ns for one in names)
    except (OSError, ValueError):
        return time.time_ns()

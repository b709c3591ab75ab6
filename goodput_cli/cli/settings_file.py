"""The file of settings, `goodput.toml` or `[tool.goodput]` of `pyproject.toml`: found from here upward, and read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.vocabulary.text import safe

FILE_NAMES = ("goodput.toml", "pyproject.toml")
"""In the order in which they are looked for in a folder."""
WITHOUT = "; --no-config leaves it out"


@dataclass(frozen=True)
class Settings:
    """A file of settings."""

    shown: str
    """Its path as messages show it."""
    table: Mapping[str, Any]
    """What it says, unchecked."""


def find_settings(folder: Path) -> Settings | None:
    """The nearest file with settings, in `folder` or above it, up to the root of the repository or of the disk."""
    for place in (folder, *folder.parents):
        for name in FILE_NAMES:
            settings = _read(place / name) if _is_file(place / name) else None
            if settings is not None:
                return settings
        if _exists(place / ".git"):
            return None
    return None


def named_settings(path: str) -> Settings:
    """The file that was named. `UsageError` if there is none, or nothing in it is meant for goodput."""
    if not _is_file(Path(path)):
        raise UsageError(f"{path}: there is no such file of settings")
    settings = _read(Path(path))
    if settings is None:
        raise UsageError(f"{path}: has no table [tool.goodput]")
    return settings


def _read(path: Path) -> Settings | None:
    """The settings in a file; None where a `pyproject.toml` has none."""
    import tomllib  # few runs have a file

    shown = safe(_shown(path))
    try:
        text = path.read_bytes().decode()
        table: Any = tomllib.loads(text, parse_float=str)
    except OSError as error:
        raise GoodputError(f"{shown}: cannot be read: {error.strerror or error}{WITHOUT}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{shown}: is not TOML: {safe(str(error))}{WITHOUT}") from None
    if path.name == FILE_NAMES[1]:
        table = _inside(_inside(table, "tool"), "goodput")
        if table is None:
            return None
    if not isinstance(table, dict):
        raise UsageError(f"{shown}: tool.goodput: is a table")
    return Settings(shown, table)


def _inside(table: Any, key: str) -> Any:
    return table.get(key) if isinstance(table, dict) else None


def _shown(path: Path) -> str:
    """As short as it can be without climbing more than it must."""
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):
        return str(path)
    return relative if not relative.startswith(os.path.join("..", "..")) else str(path)


def working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        return Path(os.devnull)  # it was removed: nothing is above it


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False

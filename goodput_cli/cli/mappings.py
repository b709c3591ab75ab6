"""The mappings that count for a command: those that were typed, those of the project, and those of the person."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

NAME = "mapping"
"""Of the option, and of the table of a project's settings that declares log formats."""


def personal_mappings() -> list[str]:
    """The files `~/.config/goodput/mappings/*.toml`, in order of their names."""
    try:
        home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        return sorted(str(file) for file in (home / "goodput" / "mappings").glob("*.toml") if file.is_file())
    except (OSError, RuntimeError):  # nobody's home
        return []


def with_personal(context: click.Context, command: click.Command) -> None:
    """Let a person's mappings count below those of the project, which are among the defaults already."""
    if any(option.name == NAME for option in command.params):
        defaults = dict(context.default_map or {})
        if found := personal_mappings():
            context.default_map = {**defaults, NAME: [*defaults.get(NAME, ()), *found]}


def every_mapping(typed: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The mappings of the command line, and all that count: of those of one name the first. typed: the option's value,
    which is the defaults' where nothing was typed."""
    context = click.get_current_context(silent=True)
    defaults: Sequence[str] = () if context is None else (context.default_map or {}).get(NAME, ())
    if context is None or context.get_parameter_source(NAME) is not click.core.ParameterSource.DEFAULT_MAP:
        return tuple(typed), tuple(dict.fromkeys((*typed, *defaults)))
    return (), tuple(typed)

"""Settings of a project (`goodput.toml`, or `[tool.goodput]` in `pyproject.toml`) as defaults of options.

The command line and the environment override them. A file may come with an unknown folder, so it cannot set inputs,
outputs or --quiet.

Also the mappings of a command: typed ones, those of the project, and those of the user.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import click

from goodput_cli.accounting.options import HOW, WHEN
from goodput_cli.cli.group import FileName
from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.events.reading_options import WHAT
from goodput_cli.vocabulary.text import did_you_mean, safe

FILE_NAMES = ("goodput.toml", "pyproject.toml")
"""File names in their order of precedence within a directory."""
WITHOUT = " (or use --no-config)"
SETTINGS = "goodput_cli.settings"
"""The key of the settings file in the context of a command."""


@dataclass(frozen=True)
class Settings:
    """A settings file."""

    path: Path
    """Its path."""
    shown: str
    """Its path in messages."""
    table: Mapping[str, Any]
    """The unchecked contents."""


def find_settings(folder: Path) -> Settings | None:
    """Return the nearest settings file, in `folder` or above it, up to the root of the repository or of the disk."""
    for place in (folder, *folder.parents):
        for name in FILE_NAMES:
            settings = _read(place / name) if os.path.isfile(place / name) else None
            if settings is not None:
                return settings
        if os.path.exists(place / ".git"):
            return None
    return None


def named_settings(path: str) -> Settings:
    """Return the given settings file. Raises UsageError if it does not exist or has no settings for goodput."""
    if not os.path.isfile(path):
        raise UsageError(f"{path}: no such settings file")
    settings = _read(Path(path))
    if settings is None:
        raise UsageError(f"{path}: no table [tool.goodput]")
    return settings


def _read(path: Path) -> Settings | None:
    """Return the settings in a file; None if a `pyproject.toml` has none."""
    from tomllib import TOMLDecodeError  # few runs have a settings file

    shown = safe(_shown(path))
    try:
        table: Any = _contents(path.read_bytes().decode())
    except OSError as error:
        raise GoodputError(f"{shown}: cannot be read: {error.strerror or error}{WITHOUT}") from error
    except (UnicodeDecodeError, TOMLDecodeError) as error:
        raise UsageError(f"{shown}: is not TOML: {safe(str(error))}{WITHOUT}") from None
    if path.name == FILE_NAMES[1]:
        table = _subtable(_subtable(table, "tool"), "goodput")
        if table is None:
            return None
    if not isinstance(table, dict):
        raise UsageError(f"{shown}: tool.goodput: must be a table")
    return Settings(path, shown, table)


@lru_cache(maxsize=8)
def _contents(text: str) -> Mapping[str, Any]:
    """Return the contents of a settings file. A process that runs many commands parses each file once."""
    from goodput_cli.events.mappings.toml import read_toml

    return read_toml(text, parse_float=str)


def _subtable(table: Any, key: str) -> Any:
    return table.get(key) if isinstance(table, dict) else None


def _shown(path: Path) -> str:
    """Return the relative path, or the given one if the relative one climbs more than one directory."""
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):
        return str(path)
    return relative if not relative.startswith(os.path.join("..", "..")) else str(path)


def working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        return Path(os.devnull)  # the current directory was deleted: it has no parents


NAME = "mapping"
"""Name of the option, and of the table of project settings that declares log formats."""


def personal_mappings() -> list[str]:
    """Return the files `~/.config/goodput/mappings/*.toml`, sorted by name."""
    try:
        home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        return sorted(str(file) for file in (home / "goodput" / "mappings").glob("*.toml") if file.is_file())
    except (OSError, RuntimeError):  # no home directory
        return []


def with_personal(context: click.Context, command: click.Command) -> None:
    """Add the user's mappings after those of the project, which are among the defaults already."""
    found = personal_mappings() if any(option.name == NAME for option in command.params) else []
    if found:
        defaults = dict(context.default_map or {})
        context.default_map = {**defaults, NAME: [*defaults.get(NAME, ()), *found]}


def every_mapping(typed: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the mappings of the command line, and all active ones; the first of several with one name takes
    precedence. typed: the value of the option, which is its default if not typed."""
    context = click.get_current_context(silent=True)
    defaults: Sequence[str] = () if context is None else (context.default_map or {}).get(NAME, ())
    if context is None or context.get_parameter_source(NAME) is not click.core.ParameterSource.DEFAULT_MAP:
        return tuple(typed), tuple(dict.fromkeys((*typed, *defaults)))
    return (), tuple(typed)


JOBS = "job"
"""The table with one table of settings per job."""
ONLY_TYPED = (
    "job_name", "log_name", "output", "targets", "history", "parent", "force", "update", "quiet", "config", "no_config",
    "scheduler", "insecure_scheduler",
)  # fmt: skip
"""Options that files cannot set, by the names of their parameters. Options with file names cannot be set either."""
_SHARED_GROUPS = (WHAT, HOW, WHEN)
_ANALYZE, _FLEET = "analyze", "fleet"


def defaults_for(command: click.Command, context: click.Context, settings: Settings, job: str | None) -> dict[str, Any]:
    """Return the settings of a command as typed values, by the names of their parameters.

    Top-level settings are for `analyze`. Other commands use those about reading and accounting, but not those about
    output. The table of a command and the table of the job override them.

    Raises UsageError for an unknown key, for a wrong value, and if `analyze` needs --job-name to select a table.
    """
    reader = _SettingsConverter(settings, context)
    tables = {key: value for key, value in settings.table.items() if isinstance(value, dict)}
    top = {key: value for key, value in settings.table.items() if key not in tables}
    jobs, mappings = tables.pop(JOBS, {}), tables.pop(NAME, {})
    reader.check_names(tables)
    analyze = _analyze_command(context)
    shared = _sharing(command)
    defaults = reader.read(top, "", analyze, shared)
    own = tables.get(command.name or "", {})
    defaults |= reader.read(own, f"{command.name}.", command, {option.name for option in _options(command)})
    called = _called(jobs, job, command)
    defaults |= reader.read(_of_job(jobs, called, command, settings), f"{JOBS}.{called}.", analyze, shared)
    if mappings and any(option.name == NAME for option in _options(command)):
        named = defaults.get(NAME, [])
        defaults[NAME] = [*([named] if isinstance(named, str) else named), settings.shown]  # the settings file
    several = {option.name for option in _options(command) if option.multiple}
    return {
        name: [value] if name in several and not isinstance(value, list) else value for name, value in defaults.items()
    }


@dataclass(frozen=True)
class _SettingsConverter:
    """Converter of the keys of one file to defaults of options."""

    settings: Settings
    context: click.Context

    def check_names(self, tables: Iterable[str]) -> None:
        """Raise UsageError if a table does not have the name of a command."""
        group = self.context.parent
        known = group.command.list_commands(group) if group and isinstance(group.command, click.Group) else []
        for name in tables:
            if name not in known:
                tip = did_you_mean(name, [*known, JOBS])
                if name == "tool":
                    tip = "in this file, settings are at the top level, not in [tool.goodput]"
                raise self._wrong(f"[{name}]", "no such command", tip)

    def read(
        self, table: Mapping[str, Any], prefix: str, owner: click.Command, names: Collection[str | None]
    ) -> dict[str, Any]:
        """Return the options of `owner` that a table sets. All are checked, those with these names are returned."""
        options = {name: option for option in _options(owner) for name in _long_names(option)}
        values = {}
        for key, value in table.items():
            option = options.get(key)
            if option is None and isinstance(value, bool) and f"no-{key}" in options:
                option, value = options[f"no-{key}"], not value  # `draft = false` is `no-draft = true`
            if option is None:
                raise self._wrong(prefix + key, "no such option", did_you_mean(key, options))
            if option.name in ONLY_TYPED or isinstance(option.type, FileName):
                raise self._wrong(prefix + key, "inputs and outputs can only be set on the command line")
            checked = self._value(option, value, prefix + key)
            if option.name is not None and option.name in names:
                values[option.name] = checked
        return values

    def _value(self, option: click.Option, value: Any, key: str) -> Any:
        if option.is_flag:
            if not isinstance(value, bool):
                raise self._wrong(key, "must be true or false")
            return not value if option.flag_value is False else value  # --no-cache sets False
        if isinstance(value, list) and not option.multiple:
            raise self._wrong(key, "must be one value")
        if isinstance(value, bool) and getattr(option.type, "choices", None) == ("yes", "no"):
            value = "yes" if value else "no"
        texts = [self._text(one, key) for one in (value if isinstance(value, list) else [value])]
        typed: str | list[str] = texts if option.multiple else texts[0]
        try:
            option.type_cast_value(self.context, typed)
        except click.BadParameter as error:
            raise self._wrong(key, error.message, getattr(error, "tip", "")) from None
        return typed

    def _text(self, value: Any, key: str) -> str:
        """Return a value as typed on a command line; numbers keep their digits."""
        if isinstance(value, bool) or not (isinstance(value, str | int) or hasattr(value, "isoformat")):
            raise self._wrong(key, "must be a text or a number")
        return value.isoformat() if hasattr(value, "isoformat") else str(value)

    def _wrong(self, key: str, what: str, tip: str = "") -> UsageError:
        return UsageError(f"{self.settings.shown}: {safe(key)}: {what}", tip=tip)


def load_defaults(command: click.Command, context: click.Context, arguments: list[str]) -> Iterator[str]:
    """Set the defaults of a command from the settings. The command line and the environment override them.

    Yields messages: the file, and the options that it sets.
    """
    typed, _, _ = command.make_parser(context).parse_args(arguments)
    if any(param.is_eager and param.name in typed for param in command.get_params(context)):
        return  # --help
    names = ("config", "no_config", "job_name", "quiet")
    chosen = {name: _typed_value(command, context, typed, name) for name in names}
    if chosen["no_config"] and chosen["config"]:
        raise UsageError("use either --config or --no-config, not both")
    if chosen["no_config"]:
        return
    settings = named_settings(chosen["config"]) if chosen["config"] else find_settings(working_folder())
    if settings is None:
        with_personal(context, command)
        return
    context.meta[SETTINGS] = str(settings.path)
    job = _one_job(chosen["job_name"])
    old_name = _old_name(settings.table.get(JOBS), job)
    if old_name is not None and command.name in _MANY_LOGS:
        yield f"warning: {settings.shown}: [{JOBS}.{safe(old_name)}] is not applied to {safe(job or '')}"
    elif old_name is not None:
        context.meta[OLD_NAME] = old_name
    defaults = defaults_for(command, context, settings, job)
    context.default_map = {**(context.default_map or {}), **defaults}
    with_personal(context, command)
    used = [option for option in _options(command) if option.name in defaults and not _is_typed(option, context, typed)]
    if used and not chosen["quiet"]:
        yield f"Settings from {settings.shown}: {', '.join(_long_names(option)[0] for option in used)}"
    ignored = _periods_left_out(command, settings, job)
    if ignored and not chosen["quiet"]:
        yield f"Settings from {settings.shown}: {' and '.join(ignored)} ignored: {command.name} covers whole jobs"


def _periods_left_out(command: click.Command, settings: Settings, job: str | None) -> list[str]:
    """Return settings for a part of a job that a command for jobs ignores, because its answer covers more."""
    own = {option.name for option in _options(command)}
    if command.name == _FLEET:
        return [name for name in ("from", "to", "as-of") if name in settings.table]
    if "as_of" not in own:
        return []
    jobs = settings.table.get(JOBS, {})
    set_there = {*settings.table, *_of_job(jobs, _called(jobs, job, command), command, settings)}
    return [name for option, name in (("start", "from"), ("end", "to")) if option not in own and name in set_there]


def _typed_value(command: click.Command, context: click.Context, typed: Mapping[str, Any], name: str) -> Any:
    """Return the value of an option from the command line or the environment; None if it is not set there."""
    for option in _options(command):
        if option.name == name and _is_typed(option, context, typed):
            return option.type_cast_value(context, option.consume_value(context, typed)[0])
    return None


def _is_typed(option: click.Option, context: click.Context, typed: Mapping[str, Any]) -> bool:
    """Return True if the command line or the environment sets an option."""
    source = option.consume_value(context, typed)[1]
    return source in (click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT)


def _one_job(named: str | tuple[str, ...] | None) -> str | None:
    """Return the selected job; None if a comparison selects several."""
    if isinstance(named, tuple):
        return named[0] if len(named) == 1 else None
    return named


OLD_NAME = "goodput_cli.old_name"
"""The key of a job name from before version 0.2 in the context of a command, if the settings use that name."""
_MANY_LOGS = ("compare", "watch", "monitor")
"""Commands that read several logs, or start before the job exists: they do not accept old names of jobs."""


def _old_name(jobs: Any, job: str | None) -> str | None:
    """Return the name of a job before version 0.2, without its folder, if the settings contain only that name."""
    name = (job or "").rpartition("/")[2]
    return name if isinstance(jobs, dict) and job not in jobs and name != job and name in jobs else None


def _called(jobs: Any, job: str | None, command: click.Command) -> str | None:
    """Return the key of the settings of a job."""
    return job if command.name in _MANY_LOGS else _old_name(jobs, job) or job


def _of_job(jobs: Any, job: str | None, command: click.Command, settings: Settings) -> Mapping[str, Any]:
    if not isinstance(jobs, dict) or not all(isinstance(table, dict) for table in jobs.values()):
        raise UsageError(f"{settings.shown}: {JOBS}: must contain a table per job, such as [{JOBS}.llm-7b]")
    if jobs and job is None and command.name == _ANALYZE:
        raise UsageError(
            f"{settings.shown}: has settings for single jobs ({', '.join(safe(name) for name in jobs)})",
            tip=f"select one with --job-name{WITHOUT}",
        )
    settings_of_job: Mapping[str, Any] = jobs.get(job, {})
    return settings_of_job


def _sharing(command: click.Command) -> set[str | None]:
    """Return the settings of `analyze` that apply to a command, by name: all for `analyze`, those about accounting for
    others."""
    groups = [group for group in _SHARED_GROUPS if command.name != _FLEET or group != WHEN]
    shared = [one for one in _options(command) if command.name == _ANALYZE or getattr(one, "group", "") in groups]
    return {option.name for option in shared}


def _analyze_command(context: click.Context) -> click.Command:
    root = context.find_root()
    assert isinstance(root.command, click.Group)
    _, analyze, _ = root.command.resolve_command(root, [_ANALYZE])
    assert analyze is not None
    return analyze


def _options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option)]


def _long_names(option: click.Option) -> list[str]:
    return [name.removeprefix("--") for name in option.opts if name.startswith("--")]

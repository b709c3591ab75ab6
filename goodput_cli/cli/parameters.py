"""What an option is: its type, its group in `--help`, its environment variable, its place in a project's settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from goodput_cli.cli.console import print_message
from goodput_cli.cli.group import FILE, LazyGroup
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.option import Declared

_OTHER_NAMES = {
    "--from": ("--since", "--after", "--begin"),
    "--to": ("--until", "--before", "--end"),
    "--job-name": ("--job", "--name"),
    "--fail-under": ("--threshold", "--min-goodput", "--fail-below"),
    "--timezone": ("--tz", "--utc"),
    "--format": ("--json", "--csv", "--html", "--markdown"),
    "--reference-step-time": ("--step-time", "--ideal-step-time"),
    "--output": ("--out", "--report"),
    "--limit": ("--top", "--head"),
    "--slowest": ("--top", "--limit"),
}
"""What other tools call the same: nothing in the spelling leads from one to the other."""
_MOST_COMMANDS = 5
"""An option that more commands have leads nowhere."""
Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Decorated], Decorated]


class Checked(click.ParamType[Any]):
    """A value that a function of the library reads; its `UsageError` becomes click's.

    A repeated option's environment variable holds several values with `;` between them.
    """

    envvar_list_splitter = ";"

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)


class GroupedOption(click.Option):
    """An option that stands under a heading in `--help`. gate: it decides about the exit code."""

    def __init__(self, *args: Any, group: str = "Other", gate: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group
        self.gate = gate


class GroupedCommand(click.Command):
    """A command whose `--help` shows its options under the headings of their groups.

    Each option can come from the environment: `GOODPUT_ANALYZE_JOB_NAME` stands for `goodput analyze --job-name`, and
    below that from the settings of the project (`goodput_cli.cli.settings`).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _settings_options()
        for param in self.params:
            if isinstance(param, GroupedOption):
                param.envvar = environment_name(f"goodput-{self.name}", param)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return self._parsed(ctx, args)
        except click.NoSuchOption as error:
            message = self._leads(ctx, error.option_name)
            if message is None:
                raise
            raise click.NoSuchOption(error.option_name, message, ctx=ctx) from error

    def _leads(self, ctx: click.Context, name: str) -> str | None:
        """What to say of an option that the command has not, where another name or another command has it."""
        known = {one for param in self.params for one in param.opts}
        meant = next((ours for ours, theirs in _OTHER_NAMES.items() if name in theirs and ours in known), None)
        if meant is not None:
            return f"No such option {name!r}. Did you mean {meant!r}?"
        group = ctx.parent.command if ctx.parent is not None else None
        others = group.commands_with(name) if isinstance(group, LazyGroup) else []
        if not 0 < len(others) <= _MOST_COMMANDS:
            return None
        *first, last = others
        having = f"{', '.join(first)} and {last} have" if first else f"{last} has"
        return f"No such option {name!r} of goodput {self.name}: goodput {having} it."

    def _parsed(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            from goodput_cli.cli.settings import load_defaults, misread_variables

            variables = {
                one.envvar: one.gate
                for one in self.params
                if isinstance(one, GroupedOption) and isinstance(one.envvar, str)
            }
            for warning in misread_variables(self.name or "", variables, os.environ):
                print_message(warning)
            for sentence in load_defaults(self, ctx, list(args)):
                print_message(sentence)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                groups.setdefault(getattr(param, "group", "Other"), []).append(record)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)


def _settings_options() -> list[click.Parameter]:
    """Where settings come from."""
    names = "goodput.toml or [tool.goodput] of pyproject.toml"
    return [
        GroupedOption(
            ["--config"],
            metavar="FILE",
            type=FILE,
            expose_value=False,
            help=f"Settings of the project.  [default: the nearest {names}]",
        ),
        GroupedOption(["--no-config"], is_flag=True, expose_value=False, help="Leave such settings out."),
    ]


def declared_option(one: Declared, more: Mapping[str, Any] | None = None) -> Decorator[Any]:
    """The option that a field of a dataclass declares; `more` are settings of `click.option` that count instead."""
    said = one.option
    settings: dict[str, Any] = {"help": said.help, "default": one.default, "metavar": said.metavar}
    if isinstance(one.default, bool):
        settings |= {"is_flag": True, "default": one.default and not said.negative}
        if settings["default"]:
            settings["flag_value"] = False
    elif said.choices:
        settings["type"] = click.Choice(said.choices)
    elif said.path:
        settings["type"] = FILE
    elif said.read is not None:
        settings["type"] = Checked("text", said.read)
    if one.several:
        settings |= {"multiple": True, "default": None}
    return option(said.group, *one.names, one.keyword, **settings | dict(said.settings) | dict(more or {}))


def option(group: str, *names: str, **settings: Any) -> Decorator[Any]:
    """An option of a group."""
    return click.option(*names, cls=GroupedOption, group=group, **settings)


def environment_name(command: str, param: click.Option) -> str:
    """The environment variable that stands for an option of a command."""
    long = max((name for name in param.opts if name.startswith("--")), key=len)
    return f"{command}_{long.lstrip('-')}".replace("-", "_").upper()

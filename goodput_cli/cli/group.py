"""The commands, each imported when it is asked for; what shells complete, and what is said of an unknown name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem


@dataclass(frozen=True)
class LazyCommand:
    """A command in a module that is imported when it is called.

    file: of the module in `cli/commands`, which holds it as a `click.Command` of the command's name. summary: the first
    line of its help.
    """

    file: str
    summary: str

    @property
    def module(self) -> str:
        """The module by its whole name."""
        return f"goodput_cli.cli.commands.{self.file}"

    def load(self, name: str) -> click.Command:
        """The command itself, imported now."""
        command = getattr(import_module(self.module), name)
        assert isinstance(command, click.Command)
        return command


HELP = "help"
_LOG = re.compile(r"-|.*://.*|.*[*?].*|.*\.(jsonl?|ndjson|log|out|err|txt|gz|zst)", re.DOTALL)
"""Names that are no command's: standard input, addresses, globs, and the usual endings of logs."""


def _is_log(name: str) -> bool:
    """Whether a name in the place of a command is that of a log, be it there or not: no command has a dot."""
    return _LOG.fullmatch(name) is not None or "." in name or "/" in name or os.path.exists(name)


class LazyGroup(click.Group):
    """A group that knows where its commands live.

    elsewhere: the commands by name, in the order in which people are shown them. Lists of them (`--help`, completion,
    what somebody may have meant) are made of the summaries. default: the command that is meant where a log stands in
    the place of a command.
    """

    def __init__(
        self, *args: object, elsewhere: Mapping[str, LazyCommand], default: str | None = None, **kwargs: object
    ) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._elsewhere = dict(elsewhere)
        self.default = default
        for name, command in elsewhere.items():
            self.add_command(click.Command(name, help=command.summary))

    def commands_with(self, option: str) -> list[str]:
        """The commands that have an option, all of them imported."""
        commands = {name: one.load(name) for name, one in self._elsewhere.items()}
        return [name for name, one in commands.items() if any(option in param.opts for param in one.params)]

    def _command_to_explain(self, ctx: click.Context, names: list[str]) -> list[str]:
        """The command whose help is wanted; other help is shown here, and that is all."""
        if names and names[0] in self.commands:
            return [names[0], "--help"]
        from goodput_cli.cli.explained import explain, suggestion

        asked = " ".join(names)
        text = explain(asked, self.commands) if names else ctx.get_help()
        if not text and names:
            meant = suggestion(asked, self.commands)
            ctx.fail(f"there is no help on {asked!r}; {meant or '`goodput help words` lists what has some'}")
        if text:
            click.echo(text, color=ctx.color)
            ctx.exit()
        return [names[0]]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options of the command that is meant may stand before the log: `goodput --fail-under 80 run.jsonl`."""
        own = {name for param in self.get_params(ctx) for name in param.opts}
        first = args[0].partition("=")[0] if args else ""
        if self.default is not None and first.startswith("-") and first not in {"-", "--", *own}:
            rest = args[1:]
            if not any(one in self.commands for one in rest) and any(map(_is_log, rest)):
                args = [self.default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is called, imported now. `help` stands for `--help`, and a log alone is analysed."""
        if args[0] == HELP:
            args = self._command_to_explain(ctx, args[1:])
        elif self.default is not None and args[0] not in self.commands and _is_log(args[0]):
            args = [self.default, *args]
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise _with_words(error, args[0]) from None
        if name in self._elsewhere:
            command = self._elsewhere[name].load(name)
        return name, command, rest


def _with_words(error: click.UsageError, name: str) -> click.UsageError:
    """What is said of a name that is no command's and like none: a word of which there is help may have been meant."""
    from goodput_cli.cli.explained import word_meant

    meant = "" if "?" in error.format_message() else word_meant(name)
    if not meant:
        return error
    said = f"{error.format_message()} {meant[0].upper()}{meant[1:]} `goodput help WORD` explains it."
    return click.UsageError(said, error.ctx)


class FileName(click.ParamType[Any]):
    """A name that the shell completes as that of a file. It may be a glob or an address as well, so nothing is checked.

    Not `click.Path`: a repeated option's environment variable holds several names with `;` between them, as those of
    other options do.
    """

    name = "text"
    envvar_list_splitter = ";"

    def __init__(self, *, written: bool = False) -> None:
        self.written = written
        """Whether the command writes the file. It reads all others, and writes over none of these."""

    def file_of(self, value: str) -> str:
        """The file that a value names."""
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        return [CompletionItem(incomplete, type="file")]


class FileLine(FileName):
    """`FILE:LINE`."""

    def file_of(self, value: str) -> str:
        return value.rpartition(":")[0]


FILE, WRITTEN, LINE = FileName(), FileName(written=True), FileLine()


def complete_format(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The formats that can be written, those of plug-ins among them."""
    from goodput_cli.report.base import format_names

    return _beginning_with(incomplete, format_names())


def complete_category(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The categories. `custom:LABEL` is left out: nobody knows the labels before a log is read."""
    from goodput_cli.vocabulary.categories import CATEGORIES

    return _beginning_with(incomplete, CATEGORIES)


def _beginning_with(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete.lower())]

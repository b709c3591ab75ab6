"""The command group, which imports a command when it is called; shell completion; errors for unknown names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem


class UsageErrorWithTip(click.UsageError):
    """A wrong use of a command, with what to do about it."""

    def __init__(self, message: str, tip: str, ctx: click.Context | None = None) -> None:
        super().__init__(message, ctx)
        self.tip = tip


@dataclass(frozen=True)
class LazyCommand:
    """A command whose module is imported when the command is called.

    file: the module in `cli/commands` that defines it. summary: the first line of its help.
    """

    file: str
    summary: str

    @property
    def module(self) -> str:
        """Return the full name of the module."""
        return f"goodput_cli.cli.commands.{self.file}"

    def load(self, name: str) -> click.Command:
        """Import the module and return the command."""
        command = getattr(import_module(self.module), name)
        assert isinstance(command, click.Command)
        return command


HELP = "help"
_LOG = re.compile(r"-|.*://.*|.*[*?].*|.*\.(jsonl?|ndjson|log|out|err|txt|gz|zst)", re.DOTALL)
"""Sources rather than commands: standard input, addresses, globs, and the usual endings of logs."""


def _is_log(name: str) -> bool:
    """Return True if a first argument names a log, which need not exist. Commands contain no dot."""
    return _LOG.fullmatch(name) is not None or "." in name or "/" in name or os.path.exists(name)


SHORT_LINES = 40
"""The most lines of the short help."""


class Command(click.Command):
    """A command with a short help, `-h`, next to the full one, `--help`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(short_help_option())

    def short_help_text(self, ctx: click.Context) -> str:
        """Return the text of `-h`: at most SHORT_LINES lines."""
        return self.get_help(ctx)


def short_help_option() -> click.Option:
    """Return the option `-h`."""

    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if not value or ctx.resilient_parsing:
            return
        command = ctx.command
        assert isinstance(command, Command | LazyGroup)
        click.echo(command.short_help_text(ctx), color=ctx.color)
        ctx.exit()

    return click.Option(
        ["-h", "short_help"], is_flag=True, is_eager=True, expose_value=False, callback=show,
        help="Show a short help.",
    )  # fmt: skip


class LazyGroup(click.Group):
    """A group that imports a command when it is called.

    elsewhere: the commands by name, in the order of `--help`. `--help`, completion and suggestions use only their
    summaries. default: the command that runs if the first argument is a log.
    """

    def __init__(
        self, *args: object, elsewhere: Mapping[str, LazyCommand], default: str | None = None, **kwargs: object
    ) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._elsewhere = dict(elsewhere)
        self.default = default
        self.params.append(short_help_option())
        for name, command in elsewhere.items():
            self.add_command(click.Command(name, help=command.summary))

    def commands_with(self, option: str) -> list[str]:
        """Return the commands that have an option. Imports all commands."""
        commands = {name: one.load(name) for name, one in self._elsewhere.items()}
        return [name for name, one in commands.items() if any(option in param.opts for param in one.params)]

    def _command_to_explain(self, ctx: click.Context, names: list[str]) -> list[str]:
        """Return the arguments that show the help of a command. Other help is printed here, and the program ends."""
        if names and names[0] in self.commands:
            return [names[0], "--help"]
        from goodput_cli.cli.explained import explain, suggestion

        asked = " ".join(names)
        text = ctx.get_help() if names in ([], [HELP]) else explain(asked, self.commands)
        if not text and names:
            meant = suggestion(asked, self.commands)
            raise UsageErrorWithTip(
                f"no help on {asked!r}", meant or "`goodput help words` lists all words that have help"
            )
        if text:
            click.echo(text, color=ctx.color)
            ctx.exit()
        return [names[0]]

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the option `--help`. `-h` lists it too, so its text is true in both."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "Show the full help."
        return option

    def short_help_text(self, ctx: click.Context) -> str:
        """Return the text of `-h`: the commands, without examples."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)
        return f"{formatter.getvalue()}\n`goodput COMMAND -h` shows a short help of a command, `--help` the full help."

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept options of the default command before the log: `goodput --fail-under 80 run.jsonl`."""
        own = {name for param in self.get_params(ctx) for name in param.opts}
        first = args[0].partition("=")[0] if args else ""
        if self.default is not None and first.startswith("-") and first not in {"-", "--", *own}:
            rest = args[1:]
            if not any(one in self.commands for one in rest) and any(map(_is_log, rest)):
                args = [self.default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """Write the commands, and `help`, which is not a command of its own."""
        limit = formatter.width - 6 - max(map(len, self.commands))
        rows = [(name, command.get_short_help_str(limit)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl([*rows, (HELP, "Explain a command, or a word such as gates or MTTR.")])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import and return the command. `help` works like `--help`; a log without a command is analyzed."""
        if args[0] == HELP:
            args = self._command_to_explain(ctx, args[1:])
        elif self.default is not None and args[0] not in self.commands and _is_log(args[0]):
            args = [self.default, *args]
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise self._unknown(error, args[0]) from None
        if name in self._elsewhere:
            command = self._elsewhere[name].load(name)
        return name, command, rest

    def _unknown(self, error: click.UsageError, name: str) -> click.UsageError:
        """Return the error for a first argument that is neither a command nor a file or folder, with similar names.

        Similar files come first, then the same word if it has help, then similar commands and words.
        """
        import shlex

        from goodput_cli.cli.explained import has_help, word_meant
        from goodput_cli.sources.other_files import similar_path
        from goodput_cli.vocabulary.text import likeliest

        message = f"no such command, file or folder: {name!r}"
        path = similar_path(name)
        if not path and has_help(name):
            return click.UsageError(f"{message} `goodput help {shlex.quote(name)}` explains the word.", error.ctx)
        if close := [shlex.quote(path)] if path else likeliest(name, self.commands):
            return UsageErrorWithTip(message, f"did you mean {' or '.join(close)}?", error.ctx)
        if meant := word_meant(name):
            meant = f"{meant} `goodput help WORD` explains a word"
        return UsageErrorWithTip(message, meant, error.ctx)


class FileName(click.ParamType[Any]):
    """A file name, which the shell completes. It can also be a glob or an address, so it is not checked.

    Not `click.Path`: the environment variable of a repeated option separates names with `;`, like other options.
    """

    name = "text"
    envvar_list_splitter = ";"

    def __init__(self, *, written: bool = False) -> None:
        self.written = written
        """True if the command writes the file. All other files are inputs, which are never overwritten."""

    def file_of(self, value: str) -> str:
        """Return the file that a value names."""
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        return [CompletionItem(incomplete, type="file")]


class FileLine(FileName):
    """`FILE:LINE`."""

    def file_of(self, value: str) -> str:
        return value.rpartition(":")[0]


FILE, WRITTEN, LINE = FileName(), FileName(written=True), FileLine()


def complete_format(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete output formats, including those of plug-ins."""
    from goodput_cli.report.base import format_names

    return _beginning_with(incomplete, format_names())


def complete_category(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete categories, without `custom:LABEL`: labels are unknown before a log is read."""
    from goodput_cli.vocabulary.categories import CATEGORIES

    return _beginning_with(incomplete, CATEGORIES)


def _beginning_with(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete.lower())]

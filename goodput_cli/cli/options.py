"""Options that commands share, and the typed objects in which a command gets their values.

Options for reading and accounting are declared where they are used (`Reading`, `Question`, `Method`); options that only
the command line has are declared here. All values are checked while the command line is parsed, before logs are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import click

from goodput_cli.accounting.options import HOW, WHEN
from goodput_cli.analysis.question import WORK, Question, price_of
from goodput_cli.api.options import JOB, Reading, parsed_options
from goodput_cli.cli.console import print_message
from goodput_cli.cli.group import FILE, SHORT_LINES, WRITTEN, Command, LazyGroup, UsageErrorWithTip, complete_format
from goodput_cli.cli.settings import OLD_NAME, every_mapping
from goodput_cli.errors import UsageError
from goodput_cli.events.reading_options import WHAT
from goodput_cli.report.base import is_format, no_such_format
from goodput_cli.vocabulary import option as declare
from goodput_cli.vocabulary.option import DeclaredOption, bounded, bounded_text, read_length

if TYPE_CHECKING:
    from goodput_cli.api.keywords import JobOptions


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
"""Names of these options in other tools, which are too different to be found by spelling."""
_MOST_COMMANDS = 5
"""Commands are not suggested for an option that more commands have."""
OUTPUT, SELECTION, COST, OTHER = "Output", "Selection", "Cost", "Other"
"""Headings in `--help`."""
_SHARED_GROUPS = (WHEN, HOW, WORK, COST, OUTPUT, OTHER, WHAT)
"""Groups of options that many commands have, in the order of `--help`."""
_BASIC = ("job_name", "run", "start", "end", "format_", "output")
"""Shared options that the short help shows."""
_SHORT_EXAMPLES = 3
Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Decorated], Decorated]


class RefusedValueError(click.BadParameter):
    """A value that the library refused, with the same tip."""

    def __init__(self, error: UsageError, param: click.Parameter | None, ctx: click.Context | None) -> None:
        super().__init__(error.message, ctx, param)
        self.tip = error.tip


class ParsedParameter(click.ParamType[Any]):
    """A value that a function of the library parses. Its `UsageError` becomes an error of click.

    The environment variable of a repeated option contains values separated by `;`.
    """

    envvar_list_splitter = ";"

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(bounded_text(value))
        except UsageError as error:
            raise RefusedValueError(error, param, ctx) from error


class GroupedOption(click.Option):
    """An option with a heading in `--help`.

    gate: it decides about the exit code. shared: many commands have it, so the short help leaves it out.
    """

    def __init__(self, *args: Any, group: str = OTHER, gate: bool = False, shared: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group
        self.gate = gate
        self.shared = shared


class GroupedCommand(Command):
    """A command whose `--help` shows its options in groups.

    Each option can also come from the environment (`GOODPUT_ANALYZE_JOB_NAME` for `goodput analyze --job-name`), and
    below that from the settings of the project (`goodput_cli.cli.settings`).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _settings_options()
        for param in self.params:
            if isinstance(param, GroupedOption):
                long = max((name for name in param.opts if name.startswith("--")), key=len)
                param.envvar = f"goodput-{self.name}_{long.lstrip('-')}".replace("-", "_").upper()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return self._parsed(ctx, args)
        except click.NoSuchOption as error:
            tip = self._leads(ctx, error.option_name) or self._begun(error.option_name)
            if tip is None:
                raise
            raise UsageErrorWithTip(f"no such option: {error.option_name}", tip, ctx) from error

    def _begun(self, name: str) -> str | None:
        """Return a suggestion if exactly one option begins with `name`."""
        known = sorted({one for param in self.params for one in param.opts if len(name) > 3 and one.startswith(name)})
        return f"did you mean {known[0]}?" if len(known) == 1 else None

    def _leads(self, ctx: click.Context, name: str) -> str | None:
        """Return a suggestion if the option has another name, or if other commands have it."""
        known = {one for param in self.params for one in param.opts}
        meant = next((ours for ours, theirs in _OTHER_NAMES.items() if name in theirs and ours in known), None)
        if meant is not None:
            return f"did you mean {meant}?"
        group = ctx.parent.command if ctx.parent is not None else None
        others = group.commands_with(name) if isinstance(group, LazyGroup) else []
        if not 0 < len(others) <= _MOST_COMMANDS:
            return None
        *first, last = (f"`goodput {name}`" for name in others)
        return f"{', '.join(first)} and {last} have it" if first else f"{last} has it"

    def _parsed(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            from goodput_cli.cli.settings import load_defaults

            for one in self.params:
                if isinstance(one, GroupedOption) and one.gate and _is_set_empty(one.envvar):
                    print_message(f"warning: the environment variable {one.envvar} is empty, so this gate is off")
            for sentence in load_defaults(self, ctx, list(args)):
                print_message(sentence)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                groups.setdefault(getattr(param, "group", OTHER), []).append(record)
        for group, records in sorted(groups.items(), key=lambda item: _group_order(item[0])):
            with formatter.section(group):
                formatter.write_dl(records)

    def short_help_text(self, ctx: click.Context) -> str:
        """Return the usage, the command's own options and some examples, in at most SHORT_LINES lines.

        Own options that do not fit are listed by name.
        """
        options = [one for one in self.get_params(ctx) if isinstance(one, GroupedOption) and not one.hidden]
        own = [one for one in options if not one.shared and one.group != OTHER]
        own.sort(key=lambda one: _group_order(one.group))
        basic = [one for one in options if one.shared and one.name in _BASIC]
        shown = len(own)
        text = self._short_help(ctx, own, basic, shown)
        while shown and text.count("\n") >= SHORT_LINES:
            shown -= 1
            text = self._short_help(ctx, own, basic, shown)
        return text

    def _short_help(
        self, ctx: click.Context, own: Sequence[GroupedOption], basic: Sequence[GroupedOption], shown: int
    ) -> str:
        """Return the short help with the first `shown` of the command's own options."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text((self.help or "").partition("\n\n")[0])
        with formatter.section("Options"):
            records = [one.get_help_record(ctx) for one in (*own[:shown], *basic)]
            formatter.write_dl([record for record in records if record is not None])
        if more := [one.opts[0] for one in own[shown:]]:
            formatter.write_paragraph()
            formatter.write_text(f"More options: {', '.join(more)}")
        examples = [line.strip() for line in (self.epilog or "").splitlines() if line.startswith("      goodput")]
        with formatter.section("Examples"):
            for line in examples[:_SHORT_EXAMPLES]:
                formatter.write(f"  {line}\n")
        formatter.write_paragraph()
        formatter.write_text(f"`{ctx.command_path} --help` describes all options.")
        return formatter.getvalue().rstrip("\n")


def _group_order(group: str) -> int:
    """Return where a group of options comes in `--help`: the command's own groups first, options about logs last."""
    return _SHARED_GROUPS.index(group) if group in _SHARED_GROUPS else -1


def _is_set_empty(variable: object) -> bool:
    """Return True if an environment variable is set and has no value: click treats it as not set."""
    return isinstance(variable, str) and variable in os.environ and not os.environ[variable].strip()


def _settings_options() -> list[click.Parameter]:
    """Return the options that select the settings file."""
    names = "goodput.toml or [tool.goodput] of pyproject.toml"
    return [
        GroupedOption(
            ["--config"],
            metavar="FILE",
            type=FILE,
            expose_value=False,
            help=f"Read the settings of the project from FILE.  [default: the nearest {names}]",
        ),
        GroupedOption(["--no-config"], is_flag=True, expose_value=False, help="Read no settings."),
    ]


def declared_option(one: DeclaredOption, more: Mapping[str, Any] | None = None) -> Decorator[Any]:
    """Return the decorator for the option that a field of a dataclass declares. `more` overrides settings of
    `click.option`."""
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
        settings["type"] = ParsedParameter("text", said.read)
    if one.several:
        settings |= {"multiple": True, "default": None}
    return option(said.group, *one.names, one.keyword, **settings | dict(said.settings) | dict(more or {}))


def option(group: str, *names: str, **settings: Any) -> Decorator[Any]:
    """Return the decorator for an option of a group."""
    return click.option(*names, cls=GroupedOption, group=group, **settings)


P = ParamSpec("P")
_WINDOWS = ("window", "every", "no_hindsight")


def format_name(text: str) -> str:
    """Return the name of an output format. Raises UsageError for an unknown one."""
    name = text.strip().lower()
    if not is_format(name):
        raise no_such_format(text)
    return name


LENGTH = ParsedParameter("duration", read_length)
FORMAT = ParsedParameter("format", format_name)


@dataclass(frozen=True, kw_only=True)
class _Sources:
    """The log sources and their options."""

    log_file: tuple[str, ...] = declare.option(
        (), WHAT, "Read one more SOURCE. Repeatable.", metavar="FILE", follows="job_name", settings={"type": FILE}
    )
    draft: bool = declare.option(
        True,
        WHAT,
        "Infer no rules for a log of an unknown format; exit with an error.",
        names=("--no-draft",),
        follows="mapping",
    )
    strict: bool = declare.option(
        False,
        WHAT,
        "Exit with 5 if there is an error or a warning about the logs (with check, also an info).",
        follows="timezone",
        settings={"gate": True},
    )


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Options about output."""

    format_: str | None = declare.option(
        None,
        OUTPUT,
        "Format of stdout: table, json, csv, markdown, html, junit, openmetrics or parquet.  [default: table]",
        names=("--format",),
        metavar="FORMAT",
        read=format_name,
        settings={"shell_complete": complete_format},
    )
    """Format of standard output. None writes the table, unless files are written."""
    output: tuple[str, ...] = declare.option(
        (),
        OUTPUT,
        "Write to FILE; its ending sets the format. Repeatable.",
        names=("--output", "-o"),
        metavar="FILE",
        settings={"type": WRITTEN},
    )
    """Files to write."""
    force: bool = declare.option(False, OUTPUT, "Overwrite existing output files.")
    """True if they may exist already."""
    quiet: bool = declare.option(False, OUTPUT, "Print no diagnostics.", names=("--quiet", "-q"))
    """Print only messages that fail the run to standard error."""
    verbose: bool = declare.option(False, OUTPUT, "List every location of each diagnostic.", names=("--verbose", "-v"))
    """List every location of each diagnostic."""
    no_progress: bool = declare.option(False, OUTPUT, "Show no progress bar.")
    """Show no progress line."""

    @property
    def replaces(self) -> bool:
        """Return True if existing reports are overwritten: with `--force`, and in continuous integration, where a
        repeated step finds its own output. GitHub, GitLab and most others set `CI`. Logs that are read are never
        overwritten."""
        return self.force or os.environ.get("CI", "").strip().lower() not in ("", "0", "false", "no")


@dataclass(frozen=True)
class CommandLine:
    """The shared options as typed and checked."""

    sources: tuple[str, ...]
    """SOURCE, and the logs of `--log-file`."""
    strict: bool
    """True if warnings about the logs fail the run."""
    draft: bool
    """True if rules are inferred for a log of an unknown format."""
    mappings: tuple[str, ...]
    """The typed mappings. Those of the project and of the user are added to the arguments."""
    library: JobOptions
    """Arguments of the library's functions for reading and accounting."""
    output: OutputOptions
    """Options about output, if the command has them."""


def shared_options(
    *groups: str,
    output: bool = True,
    leave_out: Iterable[str] = (),
    several: Mapping[str, str] | None = None,
    drafts: bool = False,
    work: bool = False,
) -> Callable[[Callable[Concatenate[CommandLine, P], int]], Callable[P, int]]:
    """Add the shared options to a command, which gets them as a `CommandLine`.

    groups: only these headings of `--help`; all by default. output: add the options of `OutputOptions`. drafts: the
    command infers rules for logs of an unknown format. work: add the options about work. leave_out: options that do
    not apply. several: options that can be repeated, with their help; the command gets these by their names.
    """
    several = several or {}
    kinds = (Reading, Question, _Sources)
    shared = declare.in_order(one for kind in kinds for one in declare.declared(kind) if one.keyword not in _WINDOWS)
    leave_out = (*leave_out, *(() if drafts else ("draft",)))
    shared = [one for one in shared if one.name not in leave_out and (not groups or one.option.group in groups)]
    shared = [one for one in shared if work or one.option.group != WORK]
    shared += declare.declared(OutputOptions) if output else ()
    names = {*(one.keyword for one in shared), *(one.keyword for one in JOB.all)} - several.keys()
    repeated = {"multiple": True, "default": None, "show_default": False}
    more = {name: {"help": text, **repeated} for name, text in several.items()}

    def decorate(command: Callable[Concatenate[CommandLine, P], int]) -> Callable[P, int]:
        @wraps(command)
        def with_command_line(*args: P.args, **values: P.kwargs) -> int:
            line = _command_line(values, names)
            return command(line, *args, **values)

        options = [declared_option(one, {**more.get(one.name, {}), "shared": True}) for one in shared]
        return _apply(with_command_line, click.argument("source", nargs=-1, type=FILE), *options)

    return decorate


def _command_line(values: dict[str, Any], names: Iterable[str]) -> CommandLine:
    """Take the values with these names from the typed values."""
    mine = {name: values.pop(name) for name in names if name in values}
    output = OutputOptions(**{one.name: mine.pop(one.name) for one in fields(OutputOptions) if one.name in mine})
    sources = (*values.pop("source"), *mine.pop("log_file"))
    typed, mine["mapping"] = every_mapping(mine.get("mapping", ()))
    draft = mine.pop("draft", False) and not typed
    context = click.get_current_context(silent=True)
    if context is not None and OLD_NAME in context.meta:
        mine["settings_of"] = context.meta[OLD_NAME]
    return CommandLine(sources, mine.pop("strict"), draft, typed, cast("JobOptions", mine), output)


def window_options(command: Decorated) -> Decorated:
    """Add the options of rolling windows."""
    windows = (one for one in declare.declared(Question) if one.keyword in _WINDOWS)
    return _apply(command, *map(declared_option, declare.in_order(windows)))


def options_of(kind: type, argument: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the options that a frozen dataclass declares. The command gets them as one object, named `argument`."""

    def change(values: dict[str, Any]) -> dict[str, Any]:
        made: Any
        made, others = parsed_options(kind, values)
        return {**others, argument: made}

    return _changed_by(change, *map(declared_option, declare.in_order(declare.declared(kind))))


def threshold_options(
    parse: Callable[..., Any],
    under: Callable[[str], Any] | None = None,
    holds: str = "Exit with 3 if EXPR is true. Repeatable.",
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the gates to a command, which gets the expressions as `thresholds`, failing ones first.

    parse: reads an expression, with `fails=False` one that only warns. under: reads --fail-under; None to leave it out.
    holds: the help of --fail-if.
    """
    expressions = {"metavar": "EXPR", "multiple": True, "gate": True}
    fails, warns = ParsedParameter("expr", parse), ParsedParameter("expr", partial(parse, fails=False))
    options = [
        option(OUTPUT, "--fail-if", type=fails, help=holds, **expressions),
        option(OUTPUT, "--warn-if", type=warns, help="Print a warning if EXPR is true. Repeatable.", **expressions),
    ]
    if under is not None:
        shape: dict[str, Any] = {"metavar": "PCT", "type": ParsedParameter("percent", under), "gate": True}
        options.insert(0, option(OUTPUT, "--fail-under", help="Exit with 3 if goodput is below PCT percent.", **shape))

    def change(values: dict[str, Any]) -> dict[str, Any]:
        below = values.pop("fail_under", None)
        typed = (*(() if below is None else (below,)), *values.pop("fail_if"), *values.pop("warn_if"))
        return {**values, "thresholds": typed}

    return _changed_by(change, *options)


def _changed_by(
    change: Callable[[dict[str, Any]], dict[str, Any]], *options: Decorator[Any]
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add options whose values are converted for the command. change: converts all typed values."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def changed(*args: Any, **values: Any) -> int:
            return command(*args, **change(values))

        return _apply(changed, *options)

    return decorate


def _apply(command: Decorated, *decorators: Decorator[Any]) -> Decorated:
    """Apply the decorators in the order in which `--help` shows them."""
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


AMOUNT = ParsedParameter("number", bounded(float, "is not an amount; use a number above 0", above=0))


def cost_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the two options of cost. The command gets `price`, None if no accelerators are given."""

    def change(values: dict[str, Any]) -> dict[str, Any]:
        price = price_of(values.pop("accelerators"), values.pop("price_per_hour"))
        return {**values, "price": price}

    per_hour = "Price per accelerator and hour; needs --accelerators."
    return _changed_by(
        change,
        option(COST, "--accelerators", metavar="N", type=AMOUNT, help="Number of accelerators of the job."),
        option(COST, "--price-per-hour", metavar="P", type=AMOUNT, help=per_hour),
    )(command)

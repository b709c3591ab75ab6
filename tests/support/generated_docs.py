"""What is made from the code: parts of documents (commands, folders, diagnostic codes, insights, categories), a man
page and completions, a picture of the terminal, and the headings of all tables.
"""

from __future__ import annotations

import ast
import inspect
import io
import itertools
import re
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any, cast

import click
from click.shell_completion import get_completion_class
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import goodput_cli
from goodput_cli.analysis.advice.interval import VERDICTS
from goodput_cli.analysis.advice.results import SHOWN
from goodput_cli.analysis.capabilities import CAPABILITIES
from goodput_cli.analysis.capability import HOOKS, Capability
from goodput_cli.analysis.insights.kinds import BY_CODE, InsightKind
from goodput_cli.analysis.sheet import Audience
from goodput_cli.cli.main import goodput
from goodput_cli.diagnostics.diagnostic import CODES, SEVERITIES, DiagnosticCode
from goodput_cli.events.text.event_passes import EVENT_PASSES
from goodput_cli.events.text.passes import JOB_PASSES, LOG_PASSES, TIME_PASSES
from goodput_cli.report.base import Page
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.programs import words
from tests.support.answers import as_table as render
from tests.support.documents import ROOT

PACKAGE = ROOT / "goodput_cli"
WIDTH = 100
SHARED_BY = 3
"""An option that as many commands describe in the same words is described once, under "Shared options"."""
_DEFAULT_ORIGIN = "our default"
"""Begins the origin of limits that docs/insights.md explains once."""
_SEVERITY_HEADINGS = {"error": "Errors", "warning": "Warnings", "info": "Infos"}
MANY_FORMATS = 5
"""More formats than this with one advice are the trainers whose log output is read."""
Record = tuple[str, str]
"""The names of an option, and its help."""
Option = tuple[str, Record]
"""The group of an option, and its record."""


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command with its full name (`goodput analyze`), the group itself first."""
    yield from _below("goodput", goodput, None)


def cli_reference() -> str:
    """Return the options that commands share, and a section per command with its own options, each described once."""
    every = list(commands())
    counts = Counter(option for _, command, context in every for option in _options(command, context))
    shared = [option for option, count in counts.items() if count >= SHARED_BY]
    described: dict[Option, str] = {}
    sections = [_shared_section(shared)]
    for name, command, context in every:
        options = list(_options(command, context))
        sections.append(_command_section(name, options, shared, described))
        described |= {option: name for option in options if option not in described}
    return "\n".join(sections)


def command_list() -> str:
    """Return a list of the commands, each with the first sentence of its help."""
    return "".join(
        f"- [{name.removeprefix('goodput ')}](#{name.replace(' ', '-')}): {command.get_short_help_str(WIDTH)}\n"
        for name, command, _ in commands()
        if " " in name
    )


def verdict_table() -> str:
    """A table of the verdicts of advice, in the order in which they are tried."""
    rows = [
        f"| {rule.verdict} | {f'`{rule.reason}`' if rule.reason else ''} | `{SHOWN[rule.verdict]}` | {rule.when} |"
        for rule in VERDICTS
    ]
    return "\n".join(["| verdict | reason | first words | condition |", "| --- | --- | --- | --- |", *rows, ""])


def folders() -> str:
    """Return the layers of the import contract, the highest first: each folder, and the first sentence of its
    docstring. Folders inside a layer follow it."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    rows = [row for layer in contract[0]["layers"] for name in layer.split(" | ") for row in _folder_rows(name)]
    return "\n".join([*rows, ""])


def code_sections() -> str:
    """Return a section for each severity, with a heading and the text of each of its diagnostics."""
    parts = []
    for severity in SEVERITIES:
        parts.append(f"## {_SEVERITY_HEADINGS[severity]}\n")
        parts += [_code_section(name, code) for name, code in CODES.items() if code.severity == severity]
    return "\n".join(parts)


def word_table() -> str:
    """Return a list of all words with their meanings."""
    return "".join(f"{_wrapped(f'- *{word}*: {row.means}', '  ')}\n" for word, row in words().items())


def category_table() -> str:
    """Return a list of all categories with their short descriptions."""
    return "".join(f"- `{category.id}`: {category.row.brief}\n" for category in Category)


def insight_sections() -> str:
    """A heading for each kind of insights, with what is declared of it."""
    return "\n".join(_insight_section(*row) for row in BY_CODE.items())


def _insight_section(code: str, kind: InsightKind) -> str:
    origin = "" if kind.origin.startswith(_DEFAULT_ORIGIN) else f" ({kind.origin})"
    advice = f" *Do:* {kind.advice}." if kind.advice else ""
    text = f"**{kind.title}.** {kind.meaning} *From* {kind.least_percent:g} %{origin}.{advice}"
    return f"### {code}\n\n{_wrapped(text)}\n"


def _code_section(name: str, code: DiagnosticCode) -> str:
    """Return the heading of a diagnostic and its text, without an absent effect or advice. Advice is in italics."""
    advice = [code.advice, *(f"In {_log_formats(names)}: {text}" for names, text in code.of_formats.items())]
    needed = " ".join(text.removeprefix("No action needed.").strip() for text in advice)
    effect = code.effect.removeprefix("None.").strip()
    text = f"{code.meaning} {effect} {f'*{needed}*' if needed else ''}"
    return f"### {name}\n\n{_wrapped(' '.join(text.split()))}\n"


def _log_formats(names: str) -> str:
    """Return the log formats that an advice is for; the long list of formats of log output has a name of its own."""
    several = names.split()
    return "log output of trainers" if len(several) > MANY_FORMATS else f"logs of {', '.join(several)}"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _below(name: str, command: click.Command, parent: click.Context | None) -> Iterator[Any]:
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, info_name=name.rpartition(" ")[2], parent=parent, **settings)
    yield name, command, context
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            _, found, _ = command.resolve_command(context, [child])
            assert found is not None
            yield from _below(f"{name} {child}", found, context)


def _options(command: click.Command, context: click.Context) -> Iterator[Option]:
    """Yield each documented option with the heading of its group. Thresholds are a group of their own."""
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None and isinstance(param, click.Option) and not {"-h", "--help"} & {*param.opts}:
            group = getattr(param, "group", "Options")
            group = "Thresholds" if group == "Output" and getattr(param, "gate", False) else group
            help_text = re.sub(r"; repeatable(?=\.)| Repeatable\.", "", record[1].replace("[default: ", "["))
            yield group, (f"{record[0]}..." if param.multiple else record[0], help_text)


def _shared_section(shared: Iterable[Option]) -> str:
    return (
        "## Shared options\n\n"
        "Defaults and limits are in brackets, `...` marks what can be repeated. Every command has `--help` and `-h`.\n"
        f"\n{_option_table(shared)}"
    )


def _command_section(
    name: str, options: Sequence[Option], shared: Sequence[Option], described: Mapping[Option, str]
) -> str:
    """Return the options that only this command describes, and where the others are described."""
    own = [option for option in options if option not in shared]
    elsewhere: dict[str, list[Option]] = {}
    for option in own:
        if option in described:
            elsewhere.setdefault(described[option], []).append(option)
    names = {_long_name(option) for option in options}
    used = [option for option in options if option in shared]
    lacking = [option for option in shared if _long_name(option) not in names]
    also = [_shared_groups(used, lacking, shared)] if used else []
    also += [f"also {_spelled(those)} of `{other}`" for other, those in elsewhere.items()]
    new = [option for option in own if option not in described]
    parts = [_option_table(new)] if new else []
    parts += [_wrapped(f"Shared: {'; '.join(also)}.") + "\n"] if also else []
    return "\n".join([f"## {name}\n", *(parts or ["No options.\n"])])


def _shared_groups(used: Sequence[Option], lacking: Sequence[Option], shared: Sequence[Option]) -> str:
    """Return the groups and options that a command uses, or all except those that it lacks, whichever is shorter."""
    with_exceptions, exceptions = [], []
    for group in dict.fromkeys(group for group, _ in shared):
        every, having, missing = ([one for one in some if one[0] == group] for some in (shared, used, lacking))
        if len(missing) < len(having):
            with_exceptions.append(f"*{group}*" + (f" without {_spelled(missing)}" if missing else ""))
        elif having:
            with_exceptions.append(_spelled(having))
        if missing:
            exceptions.append(f"*{group}*" if missing == every else _spelled(missing))
    ways = ["; ".join(with_exceptions), f"all except {', '.join(exceptions)}" if exceptions else "all"]
    return min(ways, key=lambda way: len(way.split()))


def _spelled(options: Iterable[Option]) -> str:
    return ", ".join(f"`{_long_name(option)}`" for option in options)


def _long_name(option: Option) -> str:
    """Return the longest spelling of an option, without its value: `--job-name`."""
    spelled: list[str] = re.findall(r"--?[\w-]+", option[1][0])
    return max(spelled, key=len)


def _option_table(options: Iterable[Option]) -> str:
    formatter = click.HelpFormatter(width=WIDTH, max_width=WIDTH)
    groups: dict[str, list[Record]] = {}
    for group, record in options:
        groups.setdefault(group, []).append(record)
    for group, records in groups.items():
        with formatter.section(group):
            formatter.write_dl(records)
    return f"```text\n{formatter.getvalue().strip()}\n```\n"


def _folder_rows(name: str) -> Iterator[str]:
    module = PACKAGE / f"{name}.py"
    if module.exists():
        yield _wrapped(f"- `{module.name}`: {_first_sentence(module)}", "  ")
        return
    for path in sorted((PACKAGE / name).rglob("__init__.py")):
        if "drop_in" in path.parent.parent.parts:
            continue  # their folders are those of the libraries whose names they have
        if len(path.parent.relative_to(PACKAGE).parts) > 2:
            continue  # described by the folder above
        yield _wrapped(f"- `{path.parent.relative_to(PACKAGE).as_posix()}/`: {_first_sentence(path)}", "  ")


def _first_sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring, as Markdown."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    sentence = re.split(r"(?<=[a-z`)\"])\. (?=[A-Z`])", paragraph)[0]
    return sentence.rstrip(".").replace("<", "&lt;")


def cause_table() -> str:
    """Return the causes with their evidence and advice, in the order of their groups."""
    from goodput_cli.vocabulary.categories import CAUSES, GROUPS

    sections = []
    for group in GROUPS:
        rows = ((code, row) for code, row in CAUSES.items() if row.group == group)
        items = [_wrapped(f"- `{code}`: {row.says}. *Do:* {row.advice}.", "  ") for code, row in rows]
        sections.append("\n".join([f"**{group}**\n", *items, ""]))
    return "\n".join(sections)


def pass_tables() -> str:
    """Return a table for each list of passes over text: their names, and the first sentences of their docstrings."""
    lists: dict[str, tuple[Sequence[tuple[str, Callable[..., object]]], str]] = {
        "Times": (TIME_PASSES, "All sources: from lines to lines with times."),
        "Events": (EVENT_PASSES, "One source: from lines with times to events."),
        "Jobs": (LOG_PASSES, "All sources: from events to jobs."),
        "Events of a job": (JOB_PASSES, "All files of one job."),
    }
    parts = []
    for title, (passes, about) in lists.items():
        rows = [f"| `{name}` | {_purpose(run)} |" for name, run in passes]
        parts += [f"### {title}", "", about, "", "| pass | what it does |", "| --- | --- |", *rows, ""]
    return "\n".join(parts)


def _purpose(function: Callable[..., object]) -> str:
    return " ".join((inspect.getdoc(function) or "").split()).partition(". ")[0].removesuffix(".")


def capability_lists() -> str:
    """Return the capabilities with the hooks that they use and their folders, and the meaning of each hook."""
    rows = ["| capability | about | folders | hooks |", "| --- | --- | --- | --- |"]
    for one in CAPABILITIES:
        used = [f"`{name}`" for name in HOOKS if getattr(one, name) is not getattr(Capability, name)]
        places = [f"`{path.relative_to(PACKAGE)}/`" for path in sorted(PACKAGE.glob(f"*/{one.name}"))]
        rows.append(f"| {one.name.replace('_', ' ')} | {one.about} | {', '.join(places)} | {', '.join(used)} |")
    words = attribute_words(Capability)
    return "\n".join([*rows, "", *(_wrapped(f"- `{name}`: {words[name]}", "  ") for name in HOOKS), ""])


def attribute_words(kind: type) -> dict[str, str]:
    """Return the string below each annotated attribute of a class, in one line."""
    body = cast(ast.ClassDef, ast.parse(inspect.getsource(kind)).body[0]).body
    found: dict[str, str] = {}
    for field, below in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[cast(ast.Name, field.target).id] = " ".join(str(below.value.value).split()).rstrip(".")
    return found


# --- Files that are made from the program.

COMPLETIONS = {
    "bash": "share/bash-completion/completions/goodput",
    "zsh": "share/zsh/site-functions/_goodput",
    "fish": "share/fish/vendor_completions.d/goodput.fish",
}
"""Location of the completions of each shell, below the folder into which the package is installed."""
MAN_PAGE = "share/man/man1/goodput.1"
PICTURES: dict[str, tuple[int, int | None]] = {
    "docs/images/terminal.svg": (80, None),
    "docs/images/first-screen-80.svg": (80, 24),
    "docs/images/first-screen-120.svg": (120, 24),
}
"""Pictures of the terminal: how wide it is, and how many lines it has (None: all that there are)."""
_THEME = TerminalTheme(
    (15, 20, 25),
    (230, 233, 236),
    [(40, 46, 54), (255, 123, 114), (76, 214, 166), (242, 189, 102), (124, 192, 255), (210, 168, 255), (118, 227, 234),
     (230, 233, 236)],
    [(110, 118, 129), (255, 154, 143), (126, 231, 190), (255, 214, 140), (160, 210, 255), (226, 196, 255),
     (160, 240, 245), (255, 255, 255)],
)  # fmt: skip
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def completion(shell: str) -> str:
    """The script that completes in a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(goodput, {}, "goodput", "_GOODPUT_COMPLETE").source()


def man_page() -> str:
    """Return all commands with their help, as troff."""
    return "\n".join(_man_lines()) + "\n"


def _man_lines() -> Iterator[str]:
    yield '.TH GOODPUT 1 "" "goodput-cli" "User Commands"'
    yield from (".SH NAME", "goodput \\- where the time of a training job went")
    yield from (".SH SYNOPSIS", ".B goodput", "[OPTIONS] COMMAND [ARGS]...", ".br", ".B goodput", "LOG")
    for name, command, context in commands():
        yield f'.SH "{name.upper()}"' if name == "goodput" else f'.SH "{_troff(name)}"'
        yield from (".nf", *map(_troff, dedent(command.get_help(context)).splitlines()), ".fi")
    yield from (".SH EXIT STATUS", ".nf")
    yield from ("0 fine, 1 could not do it, 2 wrong usage, 3 a threshold failed, 4 inconclusive,",)
    yield from ("5 \\-\\-strict or goodput check found problems, 130 interrupted", ".fi")


def _troff(line: str) -> str:
    escaped = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    escaped = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "\\(aq")) else escaped


def terminal_picture(log: str, width: int, lines: int | None) -> str:
    """Return the output of the command for a log, in color, as SVG without external fonts."""
    text = render(goodput_cli.analyze(log), Page(width, colour=True, depth="truecolor"))
    return picture_of("\n".join(text.splitlines()[:lines]), width, f"$ goodput {log}")


def picture_of(text: str, width: int, title: str) -> str:
    """Text with a terminal's colours as SVG."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(text), soft_wrap=True)
    svg = console.export_svg(title=title, theme=_THEME, unique_id="goodput")
    return _FONT.sub("", svg).rstrip("\n") + "\n"


# --- The headings that people read above the columns of any command's tables.

_NOT_FOR_PEOPLE = {one.name for one in (Audience.PROGRAMS, Audience.TABLES, Audience.JSON)}


@cache
def headings() -> dict[str, set[str]]:
    """Each heading, and the folders of the tables that have it."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for heading in _headings(ast.parse(text)) if "Column(" in text or "heading" in text else ():
            found.setdefault(heading, set()).add(_package_name(path))
    return {heading: places for heading, places in found.items() if heading}


def _package_name(path: Path) -> str:
    """The folder of a question, or its module where it is one."""
    return path.stem if path.parent.name == "analysis" else path.parent.name


def _headings(tree: ast.AST) -> Iterator[str]:
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        given = {one.arg: one.value for one in call.keywords if one.arg}
        if call.func.id == "Column" and call.args and _is_for_people(call, given):
            yield from _texts(given.get("title", call.args[0]))
        elif "heading" in given:  # `column`, and what makes columns of one kind by it
            yield from _texts(given["heading"])


def _is_for_people(call: ast.Call, given: dict[str, ast.expr]) -> bool:
    audience = given.get("audience", call.args[2] if len(call.args) > 2 else None)
    named = {one.attr for one in ast.walk(audience) if isinstance(one, ast.Attribute)} if audience else set()
    return not named or not named <= _NOT_FOR_PEOPLE


def _texts(value: ast.expr) -> Iterator[str]:
    """A literal, or both sides of a choice."""
    yield from (one.value for one in ast.walk(value) if isinstance(one, ast.Constant) and isinstance(one.value, str))

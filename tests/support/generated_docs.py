"""The parts of the documents that are made from the code: commands, the rooms of the house, diagnostic codes."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from goodput_cli.cli.main import goodput
from goodput_cli.diagnostics.codes import CODES
from goodput_cli.diagnostics.collector import SEVERITIES
from tests.support.markdown_docs import ROOT

PACKAGE = ROOT / "goodput_cli"
WIDTH = 100
_CODE = re.compile(r"[a-z]+(?:_[a-z]+)+")


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command with its full name (`goodput analyze`), the group itself first."""
    yield from _below("goodput", goodput, None)


def cli_reference() -> str:
    """One section a command: its `--help`, and the environment variables of its options."""
    return "\n".join(_command_section(name, command, context) for name, command, context in commands())


def questions() -> str:
    """A table of the commands, each with the first sentence of its help."""
    rows = [f"| `{name}` | {command.get_short_help_str(WIDTH)} |" for name, command, _ in commands() if " " in name]
    return "\n".join(["| command | |", "| --- | --- |", *rows, ""])


def rooms() -> str:
    """A table a folder of the package: each module, and the first sentence of what it says of itself."""
    folders = sorted({path.parent for path in PACKAGE.rglob("*.py")})
    return "\n".join(text for folder in folders if (text := _room(folder)))


def code_sections() -> str:
    """A heading for each diagnostic code, with what the registry says of it."""
    return "\n".join(
        f"### {name}\n\n{_wrapped(f'**{code.severity}** · {code.meaning}')}\n"
        f"{_wrapped(f'- *Effect:* {code.effect}', '  ')}\n{_wrapped(f'- *Do:* {code.advice}', '  ')}\n"
        for name, code in CODES.items()
    )


def emitted_codes() -> dict[str, set[str]]:
    """Every code that the package can give a diagnostic, with the severities it is given where the code says so."""
    found: dict[str, set[str]] = {code: {severity} for code, severity in SEVERITIES.items()}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and (code := _code_of(node)):
                found.setdefault(code, set()).update(_severities_of(node))
    return found


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


def _command_section(name: str, command: click.Command, context: click.Context) -> str:
    text = f"## {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
    variables = [param.envvar for param in command.params if isinstance(param.envvar, str)]
    if variables:
        text += "\nEnvironment: " + ", ".join(f"`{variable}`" for variable in variables) + ".\n"
    return text


def _room(folder: Path) -> str:
    modules = {path.name: _first_sentence(path) for path in sorted(folder.glob("*.py"))}
    title = modules.pop("__init__.py", "")
    rows = [f"| `{name}` | {text} |" for name, text in modules.items() if text]
    shown = folder.relative_to(ROOT).as_posix()
    about = [f"{title}.\n"] if title and folder != PACKAGE else []
    return "\n".join([f"### {shown}/\n", *about, "| module | |", "| --- | --- |", *rows, ""])


def _first_sentence(path: Path) -> str:
    """The first sentence of a module's docstring, as the text of a Markdown table."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    sentence = re.split(r"(?<=[a-z`)\"])\. (?=[A-Z`])", paragraph)[0]
    return sentence.rstrip(".").replace("|", r"\|").replace("<", "&lt;")


def _code_of(call: ast.Call) -> str | None:
    """The code in calls such as `Diagnostic("code", …)`, `_found("code", …)` and `output.report("code", …)`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in ("Diagnostic", "_found", "found", "finding", "report", "add") or len(call.args) < 2:
        return None
    first = call.args[0]
    if isinstance(first, ast.Constant) and isinstance(first.value, str) and _CODE.fullmatch(first.value):
        return first.value
    return None


def _severities_of(call: ast.Call) -> set[str]:
    second = call.args[1]
    value = second.value if isinstance(second, ast.Constant) else None
    return {str(value)} if value in ("info", "warning", "error") else set()

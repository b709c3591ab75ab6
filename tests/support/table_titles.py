"""The headings that people read above the columns of any command's tables, found in the code that declares them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from goodput_cli.analysis.sheet import Audience
from tests.support.generated_docs import PACKAGE

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

"""All patterns are linear: twice the text takes at most twice the steps, whatever its content.

Patterns are found in the source code. Those of rules are tested in test_patterns.py; those of evidence and mappings use
RE2.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from tests.support.patterns import BOTH_ENDS, Steps, worse_than_linear

PACKAGE = Path(goodput_cli.__file__).parent
METHODS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")


FILES = [file for file in sorted(PACKAGE.rglob("*.py")) if "\nimport re\n" in file.read_text(encoding="utf-8")]
BOUNDED = {
    "analysis.threshold:VALUE": "an expression of at most 1000 characters",
    "analysis.goodput.phrases:_AMOUNT": "a duration that we printed",
    "analysis.threshold:CHANGE": "an expression of at most 1000 characters",
    r"events.mappings.patterns:'\\[\\?.*?\\?\\]'": "a template of a mapping, of 4000 characters at the most",
    "events.mappings.draft.words:f'{EVAL}|{PREP}|{SAVE}|{RESUME}|^test$'": "60 characters",
    "events.mappings.draft.guess:f'{SAVE}|{RESUME}'": "60 characters",
    "events.mappings.draft.words:f'{CRASHED}|{FINISHED}|{STOPPED}|{SAVE}|\\\\bwarn(?:ing)?\\\\b'": "200 characters",
    "events.mappings.draft.words:SAVE": "200 characters",
    "events.text.jobs:_TAIL": "the name of a file",
    "report.html.fleet:_LABELLED": "a chart that we drew, with names escaped",
    "report.html.drawing:_EMPTY": "a chart that we drew",
    "report.html.drawing:_MARKS": "a chart that we drew",
}
"""Patterns that are not linear, and why their input is short or trusted."""
MADE_OF_VALUES = {
    "accounting.attempts.evidence_of_attempts": "around a literal",
    "events.hangs.dump_files": "around a literal",
    "events.hangs.opcodes": "around a literal",
    "events.json_documents": "around a literal",
    "events.mappings.draft.guess": "its own words, asked about 600 characters",
    "events.mappings.toml": "around a literal, asked about a mapping",
    "events.mappings.times": "a layout of times, asked about the head of a line",
    "events.text.log_lines": "rules, which test_patterns.py attacks",
    "sources.object_store": "a glob that a person types, asked about names of at most 1024 characters",
}
"""Modules with patterns that are built from values at run time, and the values."""


def uses(tree: ast.Module) -> dict[str, set[str]]:
    """Return the methods called on each pattern name; `*` if the pattern is passed on."""
    found: dict[str, set[str]] = defaultdict(set)
    bases = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            bases.add(node.value)
            found[node.value.id].add(node.attr)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in bases:
            found[node.id].add("*")
    return found


def method_of(asked: set[str]) -> str:
    """Return the most expensive method."""
    if asked & {"finditer", "findall", "sub", "subn", "split"}:
        return "finditer"
    known = asked & {"search", "match", "fullmatch"}
    if "*" in asked or "search" in known or not known:
        return "search"
    return "match" if "match" in known else "fullmatch"


@cache
def patterns(file: Path) -> list[tuple[str, str, re.Pattern[Any] | None]]:
    """Return each pattern of a module with its location and method; None where only values make the pattern."""
    return list(find_patterns(file))


def find_patterns(file: Path) -> Iterator[tuple[str, str, re.Pattern[Any] | None]]:
    module = ".".join(("goodput_cli", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    asked = uses(tree)
    named = {
        id(node.value): node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        way = node.func.attr
        if ast.unparse(node.func.value) != "re" or way not in ("compile", *METHODS):
            continue
        name, written = named.get(id(node), ""), ast.unparse(node.args[0])
        method = method_of(asked[name] if name else set() if way == "compile" else {way})
        others = [ast.unparse(one) for one in (*node.args[1:], *(keyword.value for keyword in node.keywords))]
        flags = next((one for one in others if one.startswith("re.")), "0")
        try:
            space = {**vars(import_module(module)), "re": re}
            made = eval(f"re.compile({written}, {flags})", space)
        except NameError:
            made = None
        yield f"{module.removeprefix('goodput_cli.')}:{name or written}", method, made


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_patterns_are_linear(file: Path, deep: None) -> None:
    for where, method, pattern in patterns(file):
        if pattern is not None and where not in BOUNDED:
            assert worse_than_linear(pattern, method, ends=BOTH_ENDS[:1]) is None, where


def test_listed_exceptions_exist_and_are_needed(deep: None) -> None:
    found = {where: (method, pattern) for file in FILES for where, method, pattern in patterns(file)}
    assert len(found) > 180
    assert found.keys() >= BOUNDED.keys()
    for where in BOUNDED:
        method, pattern = found[where]
        assert pattern is not None
        assert worse_than_linear(pattern, method) is not None, where
    assert {
        where.partition(":")[0] for where, (_, pattern) in found.items() if pattern is None
    } == MADE_OF_VALUES.keys()


@pytest.fixture
def deep() -> Iterator[None]:
    """Raise the recursion limit to a frame or two per character of an attack."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize(
    ("written", "method"),
    [
        (r"\s*\d+:", "search"),
        (r"(\d+)$", "search"),
        (r"key: *(?:'([^']*)'|(.*?))\s*$", "match"),
        (r"(?:a+)+b", "match"),
        (r"a*a*b", "match"),
        (r"x.*y.*z", "finditer"),
        (r"(?:a|a)*b", "match"),
        (r"\|? *(?:(?P<n>\d+) *)? *\[", "search"),
    ],
)
def test_backtracking_patterns_are_detected(written: str, method: str, deep: None) -> None:
    assert worse_than_linear(re.compile(written), method) is not None


@pytest.mark.parametrize(
    ("written", "method"),
    [(r"\d+:", "match"), (r"(?<!\d)\d++:", "search"), (r"a*+a*b", "match"), (r"x[^xy]{0,200}y", "finditer")],
)
def test_linear_patterns_are_accepted(written: str, method: str, deep: None) -> None:
    assert worse_than_linear(re.compile(written), method) is None


def test_count_equals_the_steps_of_python(deep: None) -> None:
    """The count finds the same matches as Python in lines of real logs."""
    samples = sorted((Path(__file__).parent / "samples").rglob("*"))
    lines = [
        line[:200] for file in samples if file.is_file() for line in file.read_text(errors="replace").splitlines()[:5]
    ]
    checked = 0
    for file in FILES:
        for where, method, pattern in patterns(file):
            if pattern is None or isinstance(pattern.pattern, bytes) or where in BOUNDED:
                continue
            steps = Steps(pattern, exact=True)
            for line in lines[checked % 7 :: 7]:
                steps.taken = 0
                theirs = [getattr(pattern, method)(line)] if method != "finditer" else pattern.finditer(line)
                mine = [span for span in steps.found(line, method) if method != "finditer" or span[0] != span[1]]
                assert mine == [one.span() for one in theirs if one and (method != "finditer" or one.group())], (
                    where,
                    line,
                )
            checked += 1
    assert checked > 150

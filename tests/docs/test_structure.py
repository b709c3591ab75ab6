"""What keeps the house one that can be held in mind: imports go one way, at the top of a module and inside functions.

The layers are the import contract of pyproject.toml (`make lint`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from goodput_cli.analysis.advice.amounts import PARTS
from goodput_cli.analysis.disruptions.costs import CATEGORIES_OF
from goodput_cli.vocabulary.categories import Category, in_group

ROOT = Path(__file__).parent.parent.parent
PACKAGE = "goodput_cli"
CLEAN = ("analysis", "events")
"""Folders in which no circle goes through an import for types either."""


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name; a package by its folder's."""
    paths = {path.relative_to(ROOT): path for path in (ROOT / PACKAGE).rglob("*.py")}
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): full for path, full in paths.items()}


def imported(node: ast.AST, known: dict[str, Path], package: str = PACKAGE, *, types: bool = False) -> Iterator[str]:
    """The modules that are imported when this runs, be it in a function; what is for types alone never is, and counts
    if asked for. package: where it stands, for `from . import`."""
    for child in ast.iter_child_nodes(node):
        if not types and isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - child.level] if child.level else []
            module = ".".join([*above, *filter(None, [child.module])])
            names = {f"{module}.{alias.name}" for alias in child.names}
            yield from (name if name in known else module for name in names)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        yield from imported(child, known, package, types=types)


def imports(*, types: bool = False) -> dict[str, set[str]]:
    """Each module with those of ours that it imports; types: also for types alone. What a package's __init__ offers
    lazily is no import of its own: `goodput_cli` and `goodput_cli.plugins` are fronts, which nothing inside depends on
    but for the version."""
    known = modules()
    graph = {
        name: set(
            imported(
                ast.parse(path.read_text(encoding="utf-8")),
                known,
                name if path.name == "__init__.py" else name.rpartition(".")[0],
                types=types,
            )
        )
        for name, path in known.items()
    }
    fronts = {PACKAGE, f"{PACKAGE}.plugins"}
    return {name: {one for one in found if one in known and one != name} - fronts for name, found in graph.items()}


def circle_in(graph: dict[str, set[str]]) -> str | None:
    """One of the circles of a graph, if there is any."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        return " -> ".join(circle.args[1])
    return None


def test_no_imports_go_in_a_circle() -> None:
    """Neither at the top of modules nor inside functions: a circle is one module that was cut in the wrong place."""
    assert circle_in(imports()) is None


def test_none_goes_in_a_circle_for_types_either() -> None:
    """A module that names the types of one above it is as hard to hold in mind as one that calls it."""
    every = imports(types=True)
    clean = {name for name in every if name.split(".")[1:2] and name.split(".")[1] in CLEAN}
    assert circle_in({name: every[name] & clean for name in clean}) is None


def test_a_circle_would_be_seen() -> None:
    """Also one that hides in a function; what is imported for types alone is none."""
    hidden = "def f():\n    from goodput_cli.errors import UsageError\n"
    for_types = "if TYPE_CHECKING:\n    from goodput_cli.errors import UsageError\n"
    assert set(imported(ast.parse(hidden), modules())) == {"goodput_cli.errors"}
    relative = "from ..errors import UsageError\nfrom . import names"
    here = "goodput_cli.record"
    assert set(imported(ast.parse(relative), modules(), here)) == {"goodput_cli.errors", "goodput_cli.record.names"}
    assert set(imported(ast.parse(for_types), modules())) == set()
    assert set(imported(ast.parse(for_types), modules(), types=True)) == {"goodput_cli.errors"}
    assert circle_in({"one": {"other"}, "other": {"one"}}) is not None


def test_advice_has_a_lever_for_every_category_between_two_attempts() -> None:
    """What is planned, or cannot be told apart, is no lever's."""
    between = {*in_group("down"), *in_group("starting")}
    assert between - {category for part in PARTS.values() for category in part} == {
        Category.STOPPED,
        Category.UNDETERMINED,
    }


def test_what_attempts_cost_has_one_column_for_every_category() -> None:
    """Then the columns of a row add up to its time."""
    columns = [category for group in CATEGORIES_OF.values() for category in group]
    assert sorted(columns) == sorted(Category)

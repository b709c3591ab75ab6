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


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name; a package by its folder's."""
    paths = {path.relative_to(ROOT): path for path in (ROOT / PACKAGE).rglob("*.py")}
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): full for path, full in paths.items()}


def imported(node: ast.AST, known: dict[str, Path], package: str = PACKAGE) -> Iterator[str]:
    """The modules that are imported at the top, in a function, or for types alone. package: where it stands, for
    `from . import`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - child.level] if child.level else []
            module = ".".join([*above, *filter(None, [child.module])])
            names = {f"{module}.{alias.name}" for alias in child.names}
            yield from (name if name in known else module for name in names)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        yield from imported(child, known, package)


def imports() -> dict[str, set[str]]:
    """Each module with those of ours that it imports. What a package's __init__ offers lazily is no import of its
    own: `goodput_cli` and `goodput_cli.plugins` are fronts, which nothing inside depends on but for the version."""
    known = modules()
    graph = {
        name: set(
            imported(
                ast.parse(path.read_text(encoding="utf-8")),
                known,
                name if path.name == "__init__.py" else name.rpartition(".")[0],
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
    """Neither at the top of modules, nor inside functions, nor for types alone: a module that names the types of one
    above it is as hard to hold in mind as one that calls it."""
    assert circle_in(imports()) is None


def test_a_circle_would_be_seen() -> None:
    """Also one that hides in a function, or among the types."""
    hidden = "def f():\n    from goodput_cli.errors import UsageError\n"
    for_types = "if TYPE_CHECKING:\n    from goodput_cli.errors import UsageError\n"
    assert set(imported(ast.parse(hidden), modules())) == {"goodput_cli.errors"}
    relative = "from ..errors import UsageError\nfrom . import names"
    here = "goodput_cli.record"
    assert set(imported(ast.parse(relative), modules(), here)) == {"goodput_cli.errors", "goodput_cli.record.names"}
    assert set(imported(ast.parse(for_types), modules())) == {"goodput_cli.errors"}
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

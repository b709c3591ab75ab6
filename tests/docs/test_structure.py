"""The structure of the package: imports have one direction, at the top of modules and inside functions.

The layers are the import contract of pyproject.toml (`make lint`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from goodput_cli.analysis.advice.amounts import PARTS
from goodput_cli.analysis.disruptions.costs import CATEGORIES_OF
from goodput_cli.vocabulary.categories import Category, in_group
from tests.support.patterns import imports_in, imports_of

ROOT = Path(__file__).parent.parent.parent
PACKAGE = "goodput_cli"


def modules() -> dict[str, Path]:
    """Return every module of the package by its dotted name. A package has the name of its directory."""
    paths = {path.relative_to(ROOT): path for path in (ROOT / PACKAGE).rglob("*.py")}
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): full for path, full in paths.items()}


def imported(
    statements: Iterable[ast.Import | ast.ImportFrom], known: dict[str, Path], package: str = PACKAGE
) -> Iterator[str]:
    """Return the modules imported at the top, in a function, or for types alone. package: the importing package, for
    `from . import`."""
    for child in statements:
        if isinstance(child, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - child.level] if child.level else []
            module = ".".join([*above, *filter(None, [child.module])])
            names = {f"{module}.{alias.name}" for alias in child.names}
            yield from (name if name in known else module for name in names)
        else:
            yield from (alias.name for alias in child.names)


def imports() -> dict[str, set[str]]:
    """Return the imports of each module among ours. Lazy exports of a package's __init__ do not count: `goodput_cli`
    and `goodput_cli.plugins` are fronts, and modules inside import only the version from them."""
    known = modules()
    graph = {
        name: set(
            imported(
                imports_of(path),
                known,
                name if path.name == "__init__.py" else name.rpartition(".")[0],
            )
        )
        for name, path in known.items()
    }
    fronts = {PACKAGE, f"{PACKAGE}.plugins"}
    return {name: {one for one in found if one in known and one != name} - fronts for name, found in graph.items()}


def find_cycle(graph: dict[str, set[str]]) -> str | None:
    """Return one of the cycles of a graph, or None."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        return " -> ".join(circle.args[1])
    return None


def test_imports_have_no_cycle() -> None:
    """This includes imports inside functions and for types alone: a module that names types of a module above it is
    as hard to understand as one that calls it."""
    assert find_cycle(imports()) is None


def test_no_module_imports_another_of_ours_by_a_whole_name() -> None:
    """Such an import is in no contract. Registries name the modules of their own folder only."""
    said = {name for name, path in modules().items() if 'import_module("goodput_cli' in path.read_text("utf-8")}
    assert said == set()


def test_import_cycle_is_found() -> None:
    """This includes cycles in functions, or among types."""
    hidden = "def f():\n    from goodput_cli.errors import UsageError\n"
    for_types = "if TYPE_CHECKING:\n    from goodput_cli.errors import UsageError\n"
    assert set(imported(imports_in(ast.parse(hidden)), modules())) == {"goodput_cli.errors"}
    relative = "from ..errors import UsageError\nfrom . import names"
    here = "goodput_cli.record"
    assert set(imported(imports_in(ast.parse(relative)), modules(), here)) == {
        "goodput_cli.errors",
        "goodput_cli.record.names",
    }
    assert set(imported(imports_in(ast.parse(for_types)), modules())) == {"goodput_cli.errors"}
    assert find_cycle({"one": {"other"}, "other": {"one"}}) is not None


def test_advice_covers_every_category_between_attempts() -> None:
    """Planned or ambiguous time has no improvement."""
    between = {*in_group("down"), *in_group("starting")}
    assert between - {category for part in PARTS.values() for category in part} == {
        Category.STOPPED,
        Category.UNDETERMINED,
    }


def test_attempt_costs_have_one_column_per_category() -> None:
    """The columns of a row then add up to its time."""
    columns = [category for group in CATEGORIES_OF.values() for category in group]
    assert sorted(columns) == sorted(Category)

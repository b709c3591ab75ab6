"""Every field of a result of the library has a description: a docstring, or the words of its column."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
ENGINE = ("goodput_cli.accounting.", "goodput_cli.events.")
"""Columns of the accounting engine: `Analysis.timeline` and `.table` lead there."""
Place = tuple[str, str]
"""Module and name."""


@cache
def tree(module: str) -> ast.Module:
    path = ROOT.joinpath(*module.split("."))
    package = path / "__init__.py"
    file = package if package.exists() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def find_imports(module: str) -> dict[str, Place]:
    """Return our names that the module imports, also those for types alone."""
    return {
        name.asname or name.name: (node.module, name.name)
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("goodput_cli")
        for name in node.names
    }


def names_in(*nodes: ast.expr | None) -> Iterator[str]:
    for node in nodes:
        yield from (one.id for one in ast.walk(node) if isinstance(one, ast.Name)) if node else ()


def types_of(node: ast.AST) -> Iterator[str]:
    """Return the names of the types reachable from here: results of functions, and types of fields and properties."""
    match node:
        case ast.FunctionDef():
            yield from names_in(node.returns)
        case ast.ClassDef():
            yield from names_in(*node.bases)
            fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            properties = [one for one in methods if any("property" in ast.unparse(by) for by in one.decorator_list)]
            yield from names_in(*(one.annotation for one in fields), *(one.returns for one in properties))
        case ast.Assign():
            yield from names_in(node.value)


def find_result_classes() -> dict[Place, ast.ClassDef]:
    """Return every class of ours that results contain, with its module."""
    classes: dict[Place, ast.ClassDef] = {}
    waiting, seen = list(find_imports("goodput_cli").values()), set[Place]()
    while waiting:
        module, name = place = waiting.pop()
        if place in seen or module.startswith(ENGINE):
            continue
        seen.add(place)
        if name in find_imports(module):
            waiting.append(find_imports(module)[name])
        for node in tree(module).body:
            own = node.targets[0] if isinstance(node, ast.Assign) else node
            if name in (getattr(own, "name", None), getattr(own, "id", None)):
                waiting += [(module, type_name) for type_name in types_of(node)]
                if isinstance(node, ast.ClassDef):
                    classes[place] = node
    return classes


_DECLARES = ("column", "percent_of", "hours_of", "used_of", "option")
"""Functions that take the description as an argument."""


def undescribed_fields(declared: ast.ClassDef) -> Iterator[str]:
    """Return fields that have neither a docstring nor a column or option that describes them."""
    for field, below in zip(declared.body, [*declared.body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign):
            continue
        described = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        declares = isinstance(field.value, ast.Call) and ast.unparse(field.value.func) in _DECLARES
        if not described and not declares:
            yield ast.unparse(field.target)


def is_result(declared: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(one) for one in declared.decorator_list)


def test_every_field_of_a_result_is_described() -> None:
    results = {place: declared for place, declared in find_result_classes().items() if is_result(declared)}
    expected = {"Analysis", "Window", "Insight", "Improvement", "JobSummary", "Manifest", "FleetTotals"}
    assert expected <= {name for _, name in results}
    silent = [
        f"{module}.{name}.{field}" for (module, name), one in results.items() for field in undescribed_fields(one)
    ]
    assert not silent, "no string under these fields: " + ", ".join(sorted(silent))

"""The import statements of a module, at any level."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def imports_of(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return the import statements of a file, which is parsed once."""
    return tuple(imports_in(ast.parse(path.read_text(encoding="utf-8"))))


def imports_in(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the import statements in the blocks of a module or statement. No expression is visited."""
    for block in ("body", "handlers", "cases", "orelse", "finalbody"):
        for statement in getattr(node, block, ()):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                yield statement
            else:
                yield from imports_in(statement)

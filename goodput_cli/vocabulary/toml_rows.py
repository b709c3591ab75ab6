"""Declarations in a TOML file, one table per row, next to the module that defines the row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeVar

Row = TypeVar("Row")


class TomlRows(Mapping[str, Row]):
    """The rows of a file by name, in its order. Nothing is read until needed, and rows are parsed one by one: a run
    needs three or four of a hundred, and help none."""

    def __init__(self, file: Path, kind: type[Row]) -> None:
        """kind: the dataclass of a row. A file that does not fit is a bug (msgspec raises its errors)."""
        self._file, self._kind = file, kind
        self._rows: dict[str, Row] = {}

    @cached_property
    def _tables(self) -> dict[str, str]:
        """Return the text below each heading. A heading with a dot is part of the table above it."""
        pieces = re.split(r"^\[(\w+)\]$", self._file.read_text("utf-8"), flags=re.MULTILINE)
        return dict(zip(pieces[1::2], pieces[2::2], strict=True))

    def __getitem__(self, name: str) -> Row:
        if name not in self._rows:
            import msgspec  # takes six milliseconds, which help does not need

            table = f"[{name}]{self._tables[name]}"
            self._rows[name] = msgspec.toml.decode(table, type=dict[str, self._kind])[name]  # type: ignore[name-defined]
        return self._rows[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

"""Locations in logs: `file:line`, also of a document that consists of several files, such as the parts of a rotated
log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class FilePart(NamedTuple):
    """Consecutive lines of a document that are in one file."""

    first: int
    """Number of the first of them in the document, from 1."""
    file: str
    line: int
    """Number of that line in the file."""


class JoinedName(str):
    """The name of a document that consists of several files; as a string, the name that one file would have."""

    def __init__(self, _: str) -> None:
        self.parts: list[FilePart] = []
        """In order of their lines."""

    def place(self, line: int) -> tuple[str, int]:
        """Return the file and the line in it of a line of the document."""
        if not self.parts:
            return str(self), line
        part = self.parts[max(bisect_right(self.parts, line, key=lambda one: one.first) - 1, 0)]
        return part.file, line - part.first + part.line if line > 0 else line

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of the files, in order."""
        return tuple(dict.fromkeys(one.file for one in self.parts)) or (str(self),)


def place_of(source: str, line: int) -> tuple[str, int]:
    """Return the file that contains a line of a source, and its number there."""
    return source.place(line) if isinstance(source, JoinedName) else (source, line)


def file_line(source: str, line: int) -> str:
    """Return `file:line` of a line of a source."""
    file, line = place_of(source, line)
    return f"{file}:{line}"


def files_of(sources: Iterable[str]) -> tuple[str, ...]:
    """Return the files of some sources."""
    every = (one.files if isinstance(one, JoinedName) else (one,) for one in sources)
    return tuple(file for files in every for file in files)

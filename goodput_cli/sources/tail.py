"""One growing file: what is new in it since the last look, whole lines only, and whether it began anew."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from goodput_cli.sources.base import RawBatch, ReadContext
from goodput_cli.sources.blocks import BLOCK_BYTES, line_blocks
from goodput_cli.sources.inflate import GZIP_MAGIC, ZSTD_MAGIC, until_damaged

MARK_BYTES = 64
_NOT_BY_LINES = (GZIP_MAGIC, ZSTD_MAGIC, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass
class Tail:
    """Where reading of a file stands.

    offset: bytes read. line: number of the line that comes next. rest: the beginning of a line that has no end yet.
    mark: the last bytes before `offset`; if they are others the next time, the file was written anew.
    size, changed: of the file at the last look; changed in ns. whole: it is packed, and only read as a whole.
    idle: looks without anything new, in a row.
    """

    name: str
    offset: int = 0
    line: int = 1
    rest: list[bytes] = field(default_factory=list)
    mark: bytes = b""
    size: int = -1
    changed: int = -1
    whole: bool = False
    idle: int = 0

    def read_new(self, descriptor: int, context: ReadContext) -> Iterator[RawBatch]:
        """The lines that are new. A line without an end is new once it is a whole JSON value that stays as it is."""
        status = os.fstat(descriptor)
        if (status.st_size, status.st_mtime_ns) == (self.size, self.changed):
            self.idle += 1
            yield from self._unfinished()
            return
        self.size, self.changed, self.idle = status.st_size, status.st_mtime_ns, 0
        if self._began_anew(descriptor):
            context.say(f"{self.name}: was written anew; reading it from its beginning, what was read before counts")
            self._restart()
        if self.offset == 0:
            self.whole = os.pread(descriptor, 4, 0).startswith(_NOT_BY_LINES)
        yield from self._read_whole(descriptor, context) if self.whole else self._read_on(descriptor, context)

    def _began_anew(self, descriptor: int) -> bool:
        if self.whole or not self.offset:
            return False
        return os.pread(descriptor, len(self.mark), self.offset - len(self.mark)) != self.mark

    def _restart(self) -> None:
        self.offset, self.line, self.mark, self.whole = 0, 1, b"", False
        self.rest.clear()

    def _read_on(self, descriptor: int, context: ReadContext) -> Iterator[RawBatch]:
        while chunk := os.pread(descriptor, BLOCK_BYTES, self.offset):
            context.advance(len(chunk))
            self.mark = (self.mark + chunk[-MARK_BYTES:])[-MARK_BYTES:]
            first, self.offset = self.offset == 0, self.offset + len(chunk)
            yield from self._lines(chunk.removeprefix(codecs.BOM_UTF8) if first else chunk)

    def _lines(self, chunk: bytes) -> Iterator[RawBatch]:
        end = chunk.rfind(b"\n") + 1
        if not end:
            self.rest.append(chunk)
            return
        data = b"".join([*self.rest, chunk[:end]])
        self.rest = [chunk[end:]] if chunk[end:] else []
        yield RawBatch(self.name, self.line, data)
        self.line += data.count(b"\n")

    def _unfinished(self) -> Iterator[RawBatch]:
        """The last line, if its writer left out the line end; a writer that stopped inside of it may go on."""
        rest = b"".join(self.rest)
        if not rest or not _is_json(rest):
            return
        self.rest.clear()
        yield RawBatch(self.name, self.line, rest)

    def _read_whole(self, descriptor: int, context: ReadContext) -> Iterator[RawBatch]:
        self.offset = self.size
        chunks = _chunks(descriptor, context)
        yield from line_blocks(self.name, until_damaged(self.name, chunks, context.report))


def _chunks(descriptor: int, context: ReadContext) -> Iterator[bytes]:
    at = 0
    while chunk := os.pread(descriptor, BLOCK_BYTES, at):
        context.advance(len(chunk))
        at += len(chunk)
        yield chunk


def _is_json(text: bytes) -> bool:
    if not text.rstrip().endswith((b"}", b"]")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True

"""From bytes as they are stored to blocks of whole lines: unpacked, in UTF-8, with line numbers, in bounded memory.

What is packed is told from the first bytes, never from the name: a log called `.gz` that was unpacked on the way is
read, and so is a packed one on standard input. Everything before a cut or a damaged place is kept. Also how files are
named that hold logs, and what goodput itself has written: told from its first block, so that a log is read once.
"""

from __future__ import annotations

import codecs
import importlib
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import orjson

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import SourceError, to_install
from goodput_cli.sources.base import Batch, RawBatch

BLOCK_BYTES = 1 << 22
"""How much is read at once: ten thousands of lines, so that work per block is small beside work per line."""
PIECE = 1 << 18
"""So many characters are compared at once: what comes of it stays in the processor's cache."""

_LINE_END = ord("\n")
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


LONGEST_LINE_MIB = 16
"""A line without an end must not fill the memory."""
LONGEST_DOCUMENT = 1 << 28
"""Bytes that one line may have where it can be a whole document: an array, or an answer that was saved."""
_ONE_DOCUMENT = re.compile(rb'\s*(?:\[|\{\s*"schema_version")')


def line_blocks(
    source: str,
    chunks: Iterable[bytes],
    modified_ns: int | None = None,
    *,
    longest_mib: int = LONGEST_LINE_MIB,
    report: Callable[[Diagnostic], None] | None = None,
) -> Iterator[RawBatch]:
    """Cut a stream of chunks at line ends. A line longer than a chunk makes its block longer. modified_ns: when the
    source was last written to, if that is known.

    longest_mib: what a line has beyond so many MiB is left out, and `report` is told. A byte order mark at the start
    is dropped; a stream that a mark says to be UTF-16 is turned into UTF-8.
    """

    def too_long(most: int) -> None:
        if report is not None:
            message = f"{source}: a line is longer than {most >> 20} MiB; the rest of it is left out"
            report(Diagnostic.of("line_too_long", message, 1, (source,)))

    first_line = 1
    waiting: list[bytes] = []
    for chunk in _bounded(_as_utf8(chunks), longest_mib << 20, too_long):
        end = chunk.rfind(b"\n") + 1
        if not end:
            waiting.append(chunk)
            continue
        data = b"".join((*waiting, memoryview(chunk)[:end]))
        waiting = [chunk[end:]]
        del chunk  # while a block is read there is no other one
        lines = _line_ends(data)
        yield RawBatch(source, first_line, data, modified_ns)
        first_line += lines
        del data
    rest = b"".join(waiting)
    if rest:
        yield RawBatch(source, first_line, rest, modified_ns)


def _bounded(chunks: Iterable[bytes], longest: int, too_long: Callable[[int], None]) -> Iterator[bytes]:
    """The same bytes, but for the rest of a line that is longer. Where carriage returns part such a line, as they do
    the states of a progress bar, one of them ends it instead."""
    most = open_bytes = 0  # bytes of the line that has not ended
    leaving_out = False
    for chunk in chunks:
        most = most or (max(longest, LONGEST_DOCUMENT) if _ONE_DOCUMENT.match(chunk) else longest)
        first = chunk.find(b"\n")
        if leaving_out and first < 0:
            continue
        if leaving_out:
            chunk, leaving_out = chunk[first:], False
        elif first >= 0 and open_bytes + first > most:  # its end is here already
            chunk = chunk[: most - open_bytes] + chunk[first:]
            too_long(most)
        end = chunk.rfind(b"\n") + 1
        open_bytes = len(chunk) - end + (0 if end else open_bytes)
        if open_bytes > most:
            turn = chunk.rfind(b"\r", end)
            if turn >= 0:
                chunk = b"".join((chunk[:turn], b"\n", chunk[turn + 1 :]))
                open_bytes = len(chunk) - turn - 1
            else:
                chunk, leaving_out = chunk[: len(chunk) - (open_bytes - most)], True
                too_long(most)
        yield chunk


def _line_ends(data: bytes) -> int:
    """How many there are; six times as fast as `bytes.count`, which stops at each."""
    characters = np.frombuffer(data, dtype=np.uint8)
    return sum(int(np.count_nonzero(characters[at : at + PIECE] == _LINE_END)) for at in range(0, len(data), PIECE))


def _as_utf8(chunks: Iterable[bytes]) -> Iterator[bytes]:
    head, stream = _with_head(chunks, len(codecs.BOM_UTF8))
    if head.startswith(_UTF16_MARKS):
        text = codecs.iterdecode(_chain(head, stream), "utf-16", errors="replace")
        return (part.encode() for part in text)
    return _chain(head.removeprefix(codecs.BOM_UTF8), stream)


GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
MAX_PIECE = 1 << 20
"""How many unpacked bytes are held at once, however well they were packed."""
MOST_GROWN_BYTES, MOST_GROWTH = 1 << 30, 800
"""What unpacks to more than both, bytes and times its size, is made to fill a disk or a memory: it is read no further.
Logs grow to 10 to 100 times."""


class DamagedStreamError(Exception):
    """The packed stream ends too early or cannot be unpacked further; all that came before has been given."""


def unpack(source: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The plain bytes of a stream that may be packed with gzip (one member or several) or zstd.

    Raises DamagedStreamError where the stream is cut or damaged, SourceError if zstd is needed and not installed.
    """
    head, stream = _with_head(chunks, len(ZSTD_MAGIC))
    packed = _chain(head, stream)
    if head.startswith(GZIP_MAGIC):
        return _inflate(packed, _gzip_pieces, lambda: zlib.decompressobj(wbits=31), GZIP_MAGIC)
    if head.startswith(ZSTD_MAGIC):
        return _inflate(packed, _zstd_pieces, _zstd(source).ZstdDecompressor, ZSTD_MAGIC)
    return packed


def until_damaged(source: str, chunks: Iterable[bytes], report: Callable[[Diagnostic], None]) -> Iterator[bytes]:
    """The plain bytes as of `unpack`, up to where the stream is cut or damaged; that place is a diagnostic."""
    try:
        yield from unpack(source, chunks)
    except DamagedStreamError as damage:
        message = f"{source}: {damage}; everything before this point counts, everything after it is lost"
        report(Diagnostic.of("truncated_file", message, 1, (source,)))


def _with_head(chunks: Iterable[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """The beginning of a stream, of so many bytes if it has them, and its rest."""
    stream = iter(chunks)
    head = b""
    for chunk in stream:
        head += chunk
        if len(head) >= size:
            break
    return head, stream


def _chain(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    del head  # it is as large as a block
    yield from rest


def _zstd(source: str) -> Any:
    """The module of the standard library, which Python has from 3.14 on, or the same for an older one."""
    try:
        return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError as error:
        hint = f"install the extra zst with {to_install('zst')}, or decompress it first with `zstd -d`"
        raise SourceError(f"{source}: compressed with zstd; {hint}") from error


def _inflate(
    chunks: Iterable[bytes],
    pieces: Callable[[Any, bytes], Iterator[bytes]],
    new: Callable[[], Any],
    magic: bytes,
) -> Iterator[bytes]:
    unpacker, data, packed_bytes, plain_bytes = new(), b"", 0, 0
    for chunk in chunks:
        packed_bytes += len(chunk)
        data = _without_padding(unpacker, data + chunk)
        while len(data) >= (len(magic) if unpacker.eof else 1):  # fewer bytes do not tell whether a member begins
            if unpacker.eof:
                _check_member(data, magic)
                unpacker = new()
            for piece in pieces(unpacker, data):
                plain_bytes += len(piece)
                if plain_bytes > MOST_GROWN_BYTES and plain_bytes > MOST_GROWTH * packed_bytes:
                    raise DamagedStreamError(
                        f"it expands to more than {MOST_GROWTH} times its size, which is not plausible for a log"
                    )
                yield piece
            data = _without_padding(unpacker, unpacker.unused_data) if unpacker.eof else b""
    _check_member(data, magic)
    if not unpacker.eof:
        raise DamagedStreamError("the compressed data is cut off")


def _without_padding(unpacker: Any, data: bytes) -> bytes:
    """Behind a member, without the zeros that tapes and blocks are filled up with."""
    return data.lstrip(b"\0") if unpacker.eof else data


def _check_member(data: bytes, magic: bytes) -> None:
    """DamagedStreamError if what follows a member does not begin another one."""
    if data and not data.startswith(magic):
        raise DamagedStreamError("there is uncompressed data after the compressed data")


def _gzip_pieces(unpacker: Any, data: bytes) -> Iterator[bytes]:
    while data and not unpacker.eof:
        before = unpacker.copy()
        try:
            piece = unpacker.decompress(data, MAX_PIECE)
        except zlib.error as error:
            yield _up_to_damage(before, data)
            raise DamagedStreamError("the compressed data is damaged") from error
        data = unpacker.unconsumed_tail
        yield piece


def _up_to_damage(unpacker: Any, data: bytes) -> bytes:
    # zlib gives nothing of a call that fails; byte by byte the good part comes out first
    good = bytearray()
    try:
        for at in range(len(data)):
            good += unpacker.decompress(data[at : at + 1])
    except zlib.error:
        pass
    return bytes(good)


def _zstd_pieces(unpacker: Any, data: bytes) -> Iterator[bytes]:
    try:
        yield unpacker.decompress(data, MAX_PIECE)
        while not (unpacker.eof or unpacker.needs_input):
            yield unpacker.decompress(b"", MAX_PIECE)
    except Exception as error:  # ZstdError, of a module that is loaded only when needed
        if type(error).__name__ != "ZstdError":
            raise
        raise DamagedStreamError("the compressed data is damaged") from error


LOG_ENDINGS = (".jsonl", ".json", ".log", ".ndjson", ".out", ".err", ".txt")
PACKED_ENDINGS = ("", ".gz", ".zst")
_ENDING, _PACKED = ("|".join(map(re.escape, endings)) for endings in (LOG_ENDINGS, PACKED_ENDINGS))
_LOG_NAME = re.compile(rf"(?:{_ENDING})(?:\.\d{{1,4}}|[-.]\d{{8}}(?:-\d+)?)?(?:{_PACKED})$")
"""What is read of a folder, files that were rotated (`train.log.1`, `train.log-20260301.gz`) among it."""
EVENT_FILE = "tfevents"
"""What stands in the names of TensorBoard's event files, which have no ending of their own."""
PARQUET_ENDING = ".parquet"
MANIFEST_ENDING = ".manifest"
"""Of a snapshot, and of what stands beside one (`sources.snapshot`)."""


def is_event_file(name: str) -> bool:
    """Whether a file is called as TensorBoard calls its event files."""
    return EVENT_FILE in name.replace("\\", "/").rpartition("/")[2]


MONITOR_STATE, MONITOR = ".goodput-monitor.json", b"goodput monitor"
"""What the monitor keeps beside its event files, and how the first record of these names their writer."""
_PUBLISHED = re.compile(
    rb"""
    \s*\{\s*"schema_version"\s*:\s*\d+\s*,\s*"kind"\s*:\s*"   # an answer as JSON
    | \#\ (?:HELP|TYPE)\ goodput_                              # OpenMetrics
    | .{,64}brain\.Event:2.{,8}goodput\ monitor                # an event file of the monitor
    | \s*\{\s*"kind":\ "goodput\ fleet\ site"                  # what a site is made of
    | \{"format":\ \d+,\ "check":\ "                            # a store of results
    """,
    re.DOTALL | re.VERBOSE,
)
_PUBLISHED_BYTES = 256


def is_published(head: bytes) -> bool:
    """Whether a file that begins like this is no log, but was written by goodput itself about one."""
    return _PUBLISHED.match(head) is not None


def head_of(descriptor: int) -> bytes:
    """As much of a file as `is_published` needs."""
    return os.pread(descriptor, _PUBLISHED_BYTES, 0)


def is_log_name(name: str) -> bool:
    """Whether a file is read where the folder that it is in was named."""
    if name == MONITOR_STATE:
        return False
    return _LOG_NAME.search(name.lower()) is not None or is_event_file(name)


_BEGINS = re.compile(rb'\s*\{\s*"schema_version"\s*:')
_HAS_VERSION = b'"schema_version"'


def single_answer(batches: Iterator[Batch]) -> tuple[dict[str, Any] | None, Iterator[Batch]]:
    """The one JSON object with the key `schema_version` that a source holds, or None, and its batches as they were.

    Raises SourceError where it looks like one and cannot be read: cut off, too long, or one file among others.
    """
    first = next(batches, None)
    if first is None:
        return None, iter(())
    whole = chain([first], batches)
    if not isinstance(first, RawBatch) or not _may_be_answer(first.data):
        return None, whole
    held, total = [first], len(first.data)
    for batch in batches:
        if not isinstance(batch, RawBatch) or batch.first_line == 1:
            raise SourceError(f"{first.source}: is a saved answer, which must be a SOURCE of its own")
        held.append(batch)
        total += len(batch.data)
        if total > LONGEST_DOCUMENT:
            raise SourceError(
                f"{first.source}: is longer than {LONGEST_DOCUMENT >> 20} MiB, which is too long for a saved answer"
            )
    try:
        value = orjson.loads(b"".join(batch.data for batch in held))
    except orjson.JSONDecodeError as error:
        if _BEGINS.match(first.data):
            raise SourceError(
                f"{first.source}: looks like a saved answer, but is not a complete JSON object ({error}); save it again"
            ) from None
        return None, iter(held)
    return (value if isinstance(value, dict) else None), iter(held)


def _may_be_answer(data: bytes) -> bool:
    """Whether a document that begins like this can be one object with the key: printed over lines, or all in one."""
    if not data.lstrip().startswith(b"{") or _HAS_VERSION not in data:
        return False
    line, _, rest = data.lstrip().partition(b"\n")
    try:
        first = orjson.loads(line)
    except orjson.JSONDecodeError:
        return True
    return not rest.strip() and isinstance(first, dict) and "schema_version" in first

"""Conversion of stored bytes to blocks of whole lines: unpacked, in UTF-8, with line numbers, in bounded memory.

Packed data is recognized by its first bytes, never by the name: a log named `.gz` that was unpacked on the way is
readable, and so is a packed one on standard input. All lines before a cut or damaged position are kept. Also the names
of log files, and files that goodput itself has written: they are recognized by their first block, so that a log is read
once.
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
"""Bytes read at once: tens of thousands of lines, so that the work per block is small compared with the work per
line."""
PIECE = 1 << 18
"""Characters compared at once: the results fit into the processor's cache."""

_LINE_END = ord("\n")
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


LONGEST_LINE_MIB = 16
"""Maximum length of a line, so that an unterminated one cannot fill the memory."""
LONGEST_DOCUMENT = 1 << 28
"""Maximum bytes of a line that can be a whole document: an array, or a saved result."""
_ONE_DOCUMENT = re.compile(rb'\s*(?:\[|\{\s*"schema_version")')


def line_blocks(
    source: str,
    chunks: Iterable[bytes],
    modified_ns: int | None = None,
    *,
    longest_mib: int = LONGEST_LINE_MIB,
    report: Callable[[Diagnostic], None] | None = None,
) -> Iterator[RawBatch]:
    """Split a stream of chunks at line ends. A line longer than a chunk makes its block longer. modified_ns: the last
    change of the source, if known.

    longest_mib: the rest of a line beyond this many MiB is left out and reported with `report`. A byte order mark at
    the start is dropped; a stream with a UTF-16 mark is converted to UTF-8. Marks of a viewer or a quote before each
    line become blanks.
    """

    def too_long(most: int) -> None:
        if report is not None:
            message = f"{source}: a line is longer than {most >> 20} MiB; the rest of it is left out"
            report(Diagnostic.of("line_too_long", message, 1, (source,)))

    first_line = 1
    waiting: list[bytes] = []
    for chunk in _bounded(without_marks(_as_utf8(chunks)), longest_mib << 20, too_long):
        end = chunk.rfind(b"\n") + 1
        if not end:
            waiting.append(chunk)
            continue
        data = b"".join((*waiting, memoryview(chunk)[:end]))
        waiting = [chunk[end:]]
        del chunk  # free it before the next block is read
        lines = count_lines(data)
        yield RawBatch(source, first_line, data, modified_ns)
        first_line += lines
        del data
    rest = b"".join(waiting)
    if rest:
        yield RawBatch(source, first_line, rest, modified_ns)


def _bounded(chunks: Iterable[bytes], longest: int, too_long: Callable[[int], None]) -> Iterator[bytes]:
    """Yield the same bytes without the excess of long lines. If carriage returns divide such a line, as in a progress
    bar, one of them ends it instead."""
    most = open_bytes = 0  # bytes of the unterminated line
    leaving_out = False
    for chunk in chunks:
        most = most or (max(longest, LONGEST_DOCUMENT) if _ONE_DOCUMENT.match(chunk) else longest)
        first = chunk.find(b"\n")
        if leaving_out and first < 0:
            continue
        if leaving_out:
            chunk, leaving_out = chunk[first:], False
        elif first >= 0 and open_bytes + first > most:  # its end is in this chunk
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


def count_lines(data: bytes) -> int:
    """Return the number of line ends, six times as fast as `bytes.count`, which stops at each."""
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


def is_packed(head: bytes) -> bool:
    """Return True for the begin of a packed file, or of one in another encoding than UTF-8."""
    return head.startswith((GZIP_MAGIC, ZSTD_MAGIC, *_UTF16_MARKS))


MAX_PIECE = 1 << 20
"""Maximum number of unpacked bytes in memory, for any compression ratio."""
MOST_GROWN_BYTES, MOST_GROWTH = 1 << 30, 800
"""Limits of unpacking, in bytes and as a ratio. Data beyond both is made to fill a disk or a memory, and is not read
further. Logs have ratios of 10 to 100."""


class DamagedStreamError(Exception):
    """Raised for a packed stream that is truncated or damaged, after everything before it was returned."""


def unpack(source: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the plain bytes of a stream that may be packed with gzip (one or several members) or zstd.

    Raises DamagedStreamError for a truncated or damaged stream, SourceError if zstd is needed and not installed.
    """
    head, stream = _with_head(chunks, len(ZSTD_MAGIC))
    packed = _chain(head, stream)
    if head.startswith(GZIP_MAGIC):
        return _inflate(packed, _gzip_pieces, lambda: zlib.decompressobj(wbits=31), GZIP_MAGIC)
    if head.startswith(ZSTD_MAGIC):
        return _inflate(packed, _zstd_pieces, _zstd(source).ZstdDecompressor, ZSTD_MAGIC)
    return packed


def until_damaged(source: str, chunks: Iterable[bytes], report: Callable[[Diagnostic], None]) -> Iterator[bytes]:
    """Yield the bytes of `unpack`, up to a truncated or damaged position, which becomes a diagnostic."""
    try:
        yield from unpack(source, chunks)
    except DamagedStreamError as damage:
        message = f"{source}: {damage}; everything before this point counts, everything after it is lost"
        report(Diagnostic.of("truncated_file", message, 1, (source,)))


def _with_head(chunks: Iterable[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """Return the first `size` bytes of a stream, if it has them, and its rest."""
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
    del head  # free it: it is as large as a block
    yield from rest


def _zstd(source: str) -> Any:
    """Return the zstd module: the one of the standard library from Python 3.14 on, otherwise its backport."""
    try:
        return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError as error:
        hint = f"install the extra zst with {to_install('zst')}, or decompress it first with `zstd -d`"
        raise SourceError(f"{source}: compressed with zstd", tip=hint) from error


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
        while len(data) >= (len(magic) if unpacker.eof else 1):  # fewer bytes do not show whether a member begins
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
    """Return the data after a member, without the zeros that pad tapes and blocks."""
    return data.lstrip(b"\0") if unpacker.eof else data


def _check_member(data: bytes, magic: bytes) -> None:
    """Raise DamagedStreamError if the data does not begin another member."""
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
    # zlib returns nothing from a call that fails; byte by byte, the valid part comes out first
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
    except Exception as error:  # ZstdError, of a module that is loaded on demand
        if type(error).__name__ != "ZstdError":
            raise
        raise DamagedStreamError("the compressed data is damaged") from error


LOG_ENDINGS = (".jsonl", ".json", ".log", ".ndjson", ".out", ".err", ".txt")
PACKED_ENDINGS = ("", ".gz", ".zst")
_ENDING, _PACKED = ("|".join(map(re.escape, endings)) for endings in (LOG_ENDINGS, PACKED_ENDINGS))
_LOG_NAME = re.compile(
    rf"(?:(?:{_ENDING})(?:\.\d{{1,4}}|[-._]\d{{8}}(?:[-_T.]\d+)*|[-._]\d{{4}}-\d\d-\d\d(?:[-_T.]\d+)*|\.?a[a-z])?"
    rf"|(?:{_ENDING}|(?:^|/)log)[-._]?part[-._]?(?:\d{{1,4}}|[a-z]{{2}}))(?:{_PACKED})$"
)
"""Names of files to read in a folder, including parts of logs (`train.log.1`, `train.log-20260301`, `train.log.aa`)."""
EVENT_FILE = "tfevents"
"""Part of the names of TensorBoard's event files, which have no ending."""
PARQUET_ENDING = ".parquet"
MANIFEST_ENDING = ".manifest"
"""Ending of a snapshot's manifest, which is next to it (`sources.snapshot`)."""


def is_event_file(name: str) -> bool:
    """Return True for the name of a TensorBoard event file."""
    return EVENT_FILE in name.replace("\\", "/").rpartition("/")[2]


MONITOR_STATE, MONITOR = ".goodput-monitor.json", b"goodput monitor"
"""The monitor's state file next to its event files, and the name of their writer in the first record."""
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
    """Return True if a file that begins like this is not a log, but was written by goodput itself."""
    return _PUBLISHED.match(head) is not None


def head_of(descriptor: int) -> bytes:
    """Return as much of a file as `is_published` needs."""
    return os.pread(descriptor, _PUBLISHED_BYTES, 0)


def is_log_name(name: str) -> bool:
    """Return True if a file of this name is read when its folder is given."""
    if name == MONITOR_STATE:
        return False
    return _LOG_NAME.search(name.lower()) is not None or is_event_file(name)


_BEGINS = re.compile(rb'\s*\{\s*"schema_version"\s*:')
_HAS_VERSION = b'"schema_version"'


def single_answer(batches: Iterator[Batch]) -> tuple[dict[str, Any] | None, Iterator[Batch]]:
    """Return the only JSON object of a source, if it has the key `schema_version`, otherwise None; and the unchanged
    batches.

    Raises SourceError if it looks like one and cannot be read: truncated, too long, or one file of several.
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
                f"{first.source}: looks like a saved answer, but is not a complete JSON object ({error})",
                tip="save it again",
            ) from None
        return None, iter(held)
    return (value if isinstance(value, dict) else None), iter(held)


def _may_be_answer(data: bytes) -> bool:
    """Return True if a document that begins like this can be one object with the key, over several lines or in one."""
    if not data.lstrip().startswith(b"{") or _HAS_VERSION not in data:
        return False
    line, _, rest = data.lstrip().partition(b"\n")
    try:
        first = orjson.loads(line)
    except orjson.JSONDecodeError:
        return True
    return not rest.strip() and isinstance(first, dict) and "schema_version" in first


# Marks of a viewer, or of a quote, before each line

_MARKED_HEAD = 1 << 16
"""Bytes that decide if lines are marked."""
_FEWEST = 3
"""Minimum number of lines."""
_QUOTED = re.compile(rb"^[ \t]{0,3}>(?=[ \t\r]|$)", re.MULTILINE)
_NUMBERED = re.compile(rb"^[ \t]{0,9}\[?(\d{1,9})(?:\]|[:|.])?(?=[ \t\r]|$)", re.MULTILINE)
_LONGEST_MARK = 32
"""Bytes from the begin of a line within which its mark ends."""


def without_marks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Return the chunks of a text, of whole lines or parts of them, with blanks instead of the marks of a viewer or a
    quote: a quote has `> ` before each line, a viewer the number of each line, also of empty ones."""
    stream = iter(chunks)
    head = next(stream, b"")
    marks = _marks_of(head[:_MARKED_HEAD])
    stream = chain((head,), stream)
    return stream if marks is None else _blanked(stream, marks)


def _marks_of(head: bytes) -> re.Pattern[bytes] | None:
    """Return the pattern of the marks that all lines of a text begin with; None without marks. head: its begin."""
    lines = head.split(b"\n")[: -1 if len(head) == _MARKED_HEAD else None]
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) < _FEWEST:
        return None
    if all(_QUOTED.match(line) or not line.strip() for line in lines) and _QUOTED.match(lines[0]):
        return _QUOTED
    found = [_NUMBERED.match(line) for line in lines]
    numbers = [int(one[1]) for one in found if one is not None]
    counts = len(numbers) == len(lines) and numbers == [*range(numbers[0], numbers[0] + len(lines))]
    # A program may number its steps, but no step is empty.
    is_viewed = counts and any(one is not None and not one.string[one.end() :].strip() for one in found)
    return _NUMBERED if is_viewed else None


def _blanked(chunks: Iterable[bytes], marks: re.Pattern[bytes]) -> Iterator[bytes]:
    """Yield the chunks with blanks instead of marks, which keep the columns of the text."""
    rest = b""
    is_inside = False
    for chunk in chain(chunks, (None,)):
        text = rest + (chunk or b"")
        end = text.rfind(b"\n") + 1
        if chunk is None or len(text) - end > _LONGEST_MARK:  # The mark of the last line is complete.
            end = len(text)
        text, rest = text[:end], text[end:]
        if text:
            own = text.find(b"\n") + 1 or len(text) if is_inside else 0
            yield text[:own] + marks.sub(_blank, text[own:])
            is_inside = not text.endswith(b"\n")


def _blank(found: re.Match[bytes]) -> bytes:
    return b" " * len(found[0])

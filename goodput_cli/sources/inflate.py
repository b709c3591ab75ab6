"""Unpack gzip and zstd streams piece by piece, keeping everything before a cut or a damaged place.

The kind is told from the first bytes, never from the name: a log called `.gz` that was unpacked on the way is read,
and so is a packed one on standard input.
"""

from __future__ import annotations

import importlib
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import SourceError, to_install

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
MAX_PIECE = 1 << 20
"""How many unpacked bytes are held at once, however well they were packed."""


class DamagedStreamError(Exception):
    """The packed stream ends too early or cannot be unpacked further; all that came before has been given."""


def unpack(source: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The plain bytes of a stream that may be packed with gzip (one member or several) or zstd.

    Raises DamagedStreamError where the stream is cut or damaged, SourceError if zstd is needed and not installed.
    """
    stream = iter(chunks)
    head = b""
    for chunk in stream:
        head += chunk
        if len(head) >= len(ZSTD_MAGIC):
            break
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
        message = f"{source}: {damage}; everything before that place counts, what came after is lost"
        report(Diagnostic.of("truncated_file", message, 1, (source,)))


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
        hint = f"install what reads it with {to_install('zst')}, or unpack it first with `zstd -d`"
        raise SourceError(f"{source}: packed with zstd; {hint}") from error


def _inflate(
    chunks: Iterable[bytes],
    pieces: Callable[[Any, bytes], Iterator[bytes]],
    new: Callable[[], Any],
    magic: bytes,
) -> Iterator[bytes]:
    unpacker, data = new(), b""
    for chunk in chunks:
        data = _without_padding(unpacker, data + chunk)
        while len(data) >= (len(magic) if unpacker.eof else 1):  # fewer bytes do not tell whether a member begins
            if unpacker.eof:
                _check_member(data, magic)
                unpacker = new()
            yield from pieces(unpacker, data)
            data = _without_padding(unpacker, unpacker.unused_data) if unpacker.eof else b""
    _check_member(data, magic)
    if not unpacker.eof:
        raise DamagedStreamError("the packed data is cut off")


def _without_padding(unpacker: Any, data: bytes) -> bytes:
    """Behind a member, without the zeros that tapes and blocks are filled up with."""
    return data.lstrip(b"\0") if unpacker.eof else data


def _check_member(data: bytes, magic: bytes) -> None:
    """DamagedStreamError if what follows a member does not begin another one."""
    if data and not data.startswith(magic):
        raise DamagedStreamError("what follows the packed data is not packed")


def _gzip_pieces(unpacker: Any, data: bytes) -> Iterator[bytes]:
    while data and not unpacker.eof:
        before = unpacker.copy()
        try:
            piece = unpacker.decompress(data, MAX_PIECE)
        except zlib.error as error:
            yield _up_to_damage(before, data)
            raise DamagedStreamError("the packed data is damaged") from error
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
        raise DamagedStreamError("the packed data is damaged") from error

"""The frames of an event file: length, checksum, data, checksum; little-endian, CRC-32C, masked."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import google_crc32c

_LENGTH, _SUM = struct.Struct("<Q"), struct.Struct("<I")
HEAD = _LENGTH.size + _SUM.size
MAX_BYTES = 1 << 28
"""A record that says it is longer is damaged."""


class Frame(NamedTuple):
    """A record. data: None where its checksum is wrong."""

    data: bytes | None


class BrokenFrameError(ValueError):
    """A length is wrong: where the next record begins is not known."""


def begins(data: bytes) -> bool:
    """Whether bytes begin with the head of a frame."""
    return len(data) >= HEAD and _is_sum(data[: _LENGTH.size], data[_LENGTH.size : HEAD])


def frames(data: bytes) -> Iterator[tuple[Frame, int]]:
    """The whole frames that bytes begin with, each with the place behind it. Raises BrokenFrameError."""
    at = 0
    while len(data) - at >= HEAD:
        length = data[at : at + _LENGTH.size]
        if not _is_sum(length, data[at + _LENGTH.size : at + HEAD]):
            raise BrokenFrameError
        (size,) = _LENGTH.unpack(length)
        if size > MAX_BYTES:
            raise BrokenFrameError
        end = at + HEAD + size + _SUM.size
        if end > len(data):
            return
        body = data[at + HEAD : at + HEAD + size]
        yield Frame(body if _is_sum(body, data[end - _SUM.size : end]) else None), end
        at = end


def _is_sum(data: bytes, checksum: bytes) -> bool:
    plain = google_crc32c.value(data)
    masked = (((plain >> 15) | (plain << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    return _SUM.pack(masked) == checksum

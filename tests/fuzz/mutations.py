"""Mutations of an input: bytes, lines and values, as damage and as an attacker cause them."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable, Sequence

Mutation = Callable[[random.Random, bytes, Sequence[bytes]], bytes]
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_STRING = re.compile(rb'"[^"\\\n]*"')
_NUMBERS = (
    b"0", b"-1", b"1e308", b"-1e308", b"1e-320", b"NaN", b"Infinity", b"9223372036854775807", b"-9223372036854775808",
    b"18446744073709551616", b"1" * 400, b"0.1", b"253402300799.5", b"-62135596800", b"null", b"true", b'"7"', b"[]",
    b"{}", b"1_0", b"007", b"1.", b"2147483648",
)  # fmt: skip
_TEXTS = (
    b'""', b'"\\ud800"', b'"\\u0000"', b'"\\u202e"', b'"a\\nb"', b"null", b"[1]", b'{"a":1}', b"12",
    b'"' + b"x" * 5000 + b'"',
    b'"9999-12-31T23:59:59Z"', b'"0001-01-01T00:00:00+14:00"', b'"2026-02-30T25:61:61Z"', b'"</script>"', b'"\xff\xfe"',
    b'"job_started"', b'"checkpoint_saved"', b'"step_finished"',
)  # fmt: skip
_BITS = (
    b"\x00", b"\xff", b"\n", b"\r", b"\r\n", b"\x1b[31m", b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":",
    b"\xe2\x80\xa8",
    b"\xef\xbb\xbf", b" " * 300, b"[" * 300, b"{\"a\":" * 300, b"100%|" * 40, b"\x0a\x05", b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
)  # fmt: skip


def mutated(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return the input with one to six mutations; now and then packed, whole or truncated."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        data = chance.choice(_MUTATIONS)(chance, data, others)
    if chance.random() < 0.03:
        packed = gzip.compress(data, 1)
        data = packed if chance.random() < 0.5 else packed[: chance.randrange(len(packed) + 1)]
    return data


def _position(chance: random.Random, data: bytes) -> int:
    return chance.randrange(len(data) + 1)


def _flip(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    changed = bytearray(data)
    for _bit in range(chance.choice((1, 1, 4, 30))):
        if changed:
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _insert(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = _position(chance, data)
    return data[:at] + chance.choice(_BITS) + data[at:]


def _cut(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return data[: _position(chance, data)]


def _drop(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    first, last = sorted((_position(chance, data), _position(chance, data)))
    return data[:first] + data[min(last, first + chance.choice((1, 10, 1000))) :]


def _lines(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Duplicate lines, drop them, or reorder them."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at = chance.randrange(len(lines))
    match chance.randrange(5):
        case 0:
            lines.insert(at, chance.choice(lines))
        case 1:
            del lines[at]
        case 2:
            chance.shuffle(lines)
        case 3:
            lines = lines[at:] + lines[:at]
        case _:
            lines[at:at] = lines[at : at + 20] * 3
    return b"".join(lines)


def _splice(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Join the beginning of one input and the end of another."""
    other = chance.choice(others)
    return data[: _position(chance, data)] + other[_position(chance, other) :]


def _mix(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Insert lines of another input between the lines."""
    lines = data.splitlines(keepends=True)
    strange = chance.choice(others).splitlines(keepends=True)
    for line in chance.sample(strange, min(len(strange), 5)):
        lines.insert(chance.randrange(len(lines) + 1), line)
    return b"".join(lines)


def _put(pattern: re.Pattern[bytes], values: Sequence[bytes]) -> Mutation:
    """Replace one value that a pattern finds, or all equal ones."""

    def put(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
        found = list(pattern.finditer(data))
        if not found:
            return data
        one, value = chance.choice(found), chance.choice(values)
        if chance.random() < 0.1:
            return data.replace(one[0], value)
        return data[: one.start()] + value + data[one.end() :]

    return put


def _shift(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Make a number a little larger or smaller: times that go back, steps that repeat."""
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    one = chance.choice(found)
    try:
        number = float(one[0])
        moved = number + chance.choice((-1, 1, 0.5, -60, 3600, -86_400, 1e6))
        text = str(int(moved)) if b"." not in one[0] else repr(moved)
    except (OverflowError, ValueError):
        return data
    return data[: one.start()] + text.encode() + data[one.end() :]


_ODD: tuple[object, ...] = (
    None, True, 0, -1, 7.5, 10**30, 1e308, "", "7", "x" * 3000, "\ud800", "\u202e\x1b[31m", [], {}, [[[]]], [None],
    {"": None}, "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "2026-02-30T25:61:61Z", "1970-01-01T00:00:00Z",
)  # fmt: skip


def restructured(chance: random.Random, document: object) -> object:
    """Replace one to four values, keys or items of a JSON document."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        document = _replace_value(chance, document)
    return document


def _replace_value(chance: random.Random, node: object) -> object:
    if not isinstance(node, dict | list) or not node or chance.random() < 0.1:
        return chance.choice(_ODD)
    items = dict(node) if isinstance(node, dict) else dict(enumerate(node))
    key = chance.choice(list(items))
    match chance.randrange(12):
        case 0:
            del items[key]
        case 1:
            items[chance.choice(list(items))] = items[key]
        case 2 if isinstance(node, dict):
            items = {str(chance.choice(_ODD))[:50] if name == key else name: one for name, one in items.items()}
        case _:
            items[key] = _replace_value(chance, items[key])
    return items if isinstance(node, dict) else list(items.values())


_MUTATIONS: tuple[Mutation, ...] = (
    _flip, _insert, _cut, _drop, _lines, _lines, _splice, _mix, _put(_NUMBER, _NUMBERS), _put(_NUMBER, _NUMBERS),
    _put(_STRING, _TEXTS), _shift, _shift,
)  # fmt: skip

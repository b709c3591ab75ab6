"""Detect patterns whose matches do not depend on the values of digits: at each position they accept all ten or none."""

from __future__ import annotations

from functools import lru_cache
from re import _constants, _parser  # type: ignore[attr-defined]  # only a parse tree shows which characters count
from typing import Any
from warnings import catch_warnings, simplefilter

_DIGITS = frozenset(range(ord("0"), ord("9") + 1))
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
_MASKED = str.maketrans("123456789", "000000000")


def masked(text: str) -> str:
    """Return a text with each ASCII digit replaced by 0."""
    return text.translate(_MASKED)


def as_bytes(text: str) -> str:
    """Return a text in which each byte of another one (UTF-8) is a character."""
    return text if text.isascii() else text.encode().decode("latin-1")


def bytes_of(text: str) -> int:
    """Return the number of bytes of a text (UTF-8)."""
    return len(text) if text.isascii() else len(text.encode())


def has_digits(text: str) -> bool:
    """Return True if a text contains an ASCII digit."""
    return not _DIGITS.isdisjoint(map(ord, text))


@lru_cache(maxsize=4096)
def depends_on_digits(pattern: str, flags: int = 0) -> bool:
    """Return True if matches of a pattern may depend on the value of an ASCII digit, not only on its position. flags:
    for `re`; 0 for RE2."""
    try:
        with catch_warnings():
            simplefilter("ignore")
            return not _is_blind(_parser.parse(pattern, flags))
    except (_constants.error, OverflowError, RecursionError):
        return True


def _is_blind(parsed: Any) -> bool:
    return all(_is_blind_item(kind, value) for kind, value in parsed)


def _is_blind_item(kind: Any, value: Any) -> bool:
    if kind in (_constants.LITERAL, _constants.NOT_LITERAL):
        return value not in _DIGITS
    if kind is _constants.IN:
        return len({_accepts(value, digit) for digit in _DIGITS}) == 1
    if kind in _REPEATS:
        return _is_blind(value[2])
    if kind is _constants.SUBPATTERN:
        return _is_blind(value[3])
    if kind is _constants.BRANCH:
        return all(map(_is_blind, value[1]))
    if kind in (_constants.ASSERT, _constants.ASSERT_NOT):
        return _is_blind(value[1])
    if kind is _constants.ATOMIC_GROUP:
        return _is_blind(value)
    return kind in (_constants.ANY, _constants.AT)


def _accepts(members: Any, digit: int) -> bool:
    """Return True if a member of a set accepts a digit; a negation applies to all digits alike."""
    return any(
        (kind is _constants.LITERAL and value == digit)
        or (kind is _constants.RANGE and value[0] <= digit <= value[1])
        or (kind is _constants.CATEGORY and value in _ACCEPTING)
        for kind, value in members
    )


_ACCEPTING = (_constants.CATEGORY_DIGIT, _constants.CATEGORY_WORD, _constants.CATEGORY_NOT_SPACE)

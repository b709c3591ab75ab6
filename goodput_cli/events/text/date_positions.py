"""What does not depend on the values of digits: patterns that accept all ten digits or none at each position, and the
position of the date, which is the same in all lines that differ only in digits.
"""

from __future__ import annotations

import re
from functools import lru_cache
from re import _constants, _parser  # type: ignore[attr-defined]  # only a parse tree shows which characters count
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

from goodput_cli.events.text.line_timestamps import (
    AMERICAN_TIMESTAMP,
    AT_BEGIN,
    CLOCK_AT_BEGIN,
    DATE_LINE,
    DATED,
    HEAD,
    LONGEST_TIMESTAMP,
    Timestamp,
    TimestampError,
    Zone,
    find_date_line,
    read_dated,
    timestamp_of,
)
from goodput_cli.vocabulary.when import NS_PER_SECOND

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


_CENTURIES = ("19", "20", "21")


def _of_any_digits(pattern: re.Pattern[str]) -> str:
    """Return the text of a pattern changed to accept dates of any century."""
    return re.sub(r"\(\?:19\|20\|21\)", r"\\d\\d", pattern.pattern).replace(r"20\d\d)", r"\d{4})")


_DATED = re.compile(_of_any_digits(DATED), re.ASCII)
_AMERICAN = re.compile(_of_any_digits(AMERICAN_TIMESTAMP), re.ASCII)
_DATE_LINE = re.compile(_of_any_digits(DATE_LINE), re.ASCII)
_COLLECTED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(?P<fraction>\d{1,9}))?Z ", re.ASCII)
_RICH = re.compile(r"\[\d\d/\d\d/\d\d \d\d:", re.ASCII)


class DatePosition(NamedTuple):
    """Position of the date in the lines of a template."""

    at: int
    """Column of the year; -1 if no line has a date, a time of day or another timestamp."""
    fraction: slice
    """Columns of the digits after the second; empty if there are none."""
    zone: Zone
    end: int
    """Column after the date and its zone."""

    def in_bytes(self, line: str, begin: int = 0) -> DatePosition:
        """Return the position in the bytes of a line. begin: byte at which the text of the line begins."""
        if self.at < 0:
            return self
        ahead = begin + bytes_of(line[: self.at]) - self.at
        fraction = slice((self.fraction.start or 0) + ahead, self.fraction.stop + ahead)
        return DatePosition(self.at + ahead, fraction, self.zone, self.end + ahead)

    def read(self, line: str) -> Timestamp | None:
        """Return what `timestamp_of` returns. Raises TimestampError."""
        return None if self.at < 0 else self.read_here(line) or timestamp_of(line)

    def read_here(self, line: str) -> Timestamp | None:
        """Return the date at the position; None for invalid digits."""
        at = self.at
        minute = minute_of(line[at : at + 16])
        second = int(line[at + 17 : at + 19])
        if minute is None or second > 60:
            return None
        digits = line[self.fraction]
        ns = minute + second * NS_PER_SECOND
        return Timestamp(ns + int(digits.ljust(9, "0")) if digits else ns, self.zone, not digits)


def collected_position(line: str, cut: int) -> DatePosition | None:
    """Return the position of a collector's time in the prefixes of a line; None if there is none in UTC. cut: length of
    the prefixes."""
    found = _COLLECTED.search(line, 0, cut)
    if found is None:
        return None
    fraction = slice(*found.span("fraction")) if found["fraction"] else slice(0)
    return DatePosition(found.start(), fraction, Zone.EXACT, found.end())


def find_date(line: str) -> DatePosition | None:
    """Return the position of the date in a line, and in all lines that differ from it in digits; None if each line has
    to be searched."""
    if any(one.match(line) for one in AT_BEGIN):
        return None
    found = _DATED.search(line, 0, HEAD + LONGEST_TIMESTAMP)
    if found is not None and found.start() < HEAD:
        zone = (found["z"] or "").strip()
        is_value = line[found.start() - 1 : found.start()] == "="
        if is_value or found["noon"] or zone not in ("", "Z", "UTC") or found["y"][:2] not in _CENTURIES:
            return None
        fraction = slice(*found.span("f")) if found["f"] else slice(0)
        return DatePosition(found.start(), fraction, Zone.EXACT if zone else Zone.NAIVE, found.end())
    others = (_AMERICAN.search(line, 0, HEAD + LONGEST_TIMESTAMP), find_date_line(line, _DATE_LINE), _RICH.match(line))
    if any(others) or "datetime: " in line or CLOCK_AT_BEGIN.match(line):
        return None
    return DatePosition(-1, slice(0), Zone.NAIVE, -1)


@lru_cache(maxsize=4096)
def minute_of(text: str) -> int | None:
    """Return the ns of `2026-03-01 10:00`; None if it is not a time, or of another century."""
    if text[:2] not in _CENTURIES:
        return None
    try:
        return read_dated(f"{text}:00").ns
    except TimestampError:
        return None

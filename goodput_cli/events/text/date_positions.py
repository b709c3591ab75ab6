"""Find the position of the date in a line, which is the same in all lines that differ only in digits."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from goodput_cli.events.text.digit_values import bytes_of
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
    read_dated,
    timestamp_of,
)
from goodput_cli.vocabulary.when import NS_PER_SECOND

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
    others = (_AMERICAN.search(line, 0, HEAD + LONGEST_TIMESTAMP), _DATE_LINE.match(line), _RICH.match(line))
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

"""Units of time, time zones, and times, windows and durations as users write them.

A time is parsed before any log is read (`parse_when`), and resolved once the job is known (`When.resolve`): `-2h` is
two hours before the job's end, `attempt:3` the start of its third attempt. Times and durations are integer nanoseconds;
times are since 1970 UTC.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import product
from typing import Literal

from goodput_cli.errors import UsageError

NS_PER_MS = 10**6
NS_PER_SECOND = 10**9
NS_PER_MINUTE = 60 * NS_PER_SECOND
NS_PER_HOUR = 60 * NS_PER_MINUTE
NS_PER_DAY = 24 * NS_PER_HOUR
"""Units of time in ns."""

_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")


AUTO = "auto"
"""Replaces a zone: the zone of the log, otherwise UTC."""


def load_zone(name: str) -> tzinfo:
    """Return the zone of a name such as `Europe/Berlin`, `UTC` or `+05:30`. Raises UsageError for an unknown name."""
    if name.upper() in ("UTC", "Z", AUTO.upper()):
        return UTC
    offset = _OFFSET.fullmatch(name)
    try:
        if offset:
            sign = -1 if offset[1] == "-" else 1
            return timezone(sign * timedelta(hours=int(offset[2]), minutes=int(offset[3])))
        from zoneinfo import ZoneInfo  # few runs use a named zone

        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        hint = "use a name such as UTC, Europe/Berlin or America/Los_Angeles, or an offset such as +05:30"
        raise UsageError(f"unknown time zone {name!r}", tip=hint) from error


ACCEPTED = (
    "ISO 8601 (2026-01-31, 2026-01-31T14:05, 2026-01-31T14:05:07.25+01:00), now, "
    "14:05 (if the job covers it on one day only), -2h (before the end), +30m (after the start) or attempt:3"
)
ACCEPTED_DURATIONS = "90s, 15m, 2h, 1d or 1h30m"

_UNITS = {
    "w": 7 * NS_PER_DAY,
    "d": NS_PER_DAY,
    "h": NS_PER_HOUR,
    "m": NS_PER_MINUTE,
    "s": NS_PER_SECOND,
    "ms": NS_PER_MS,
}
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*(ms|[wdhms])\s*")
_FRACTION = re.compile(r"(.*\d\d:?\d\d:?\d\d)[.,](\d+)(.*)", re.DOTALL)
_EPOCH_SECONDS = re.compile(r"\d{9,10}(?:\.\d{1,9})?")
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NS_MAX = 2**63 - 1

Kind = Literal["instant", "local", "time_of_day", "now", "before_end", "after_start", "attempt"]


@dataclass(frozen=True)
class Anchors:
    """The reference points of relative times.

    start_ns, end_ns: the job window. attempt_starts: ns, one per attempt, in order. now_ns: the clock.
    zone: the zone of times without one.
    """

    start_ns: int
    end_ns: int
    attempt_starts: Sequence[int]
    now_ns: int
    zone: tzinfo


@dataclass(frozen=True)
class TimeArgument:
    """A time as typed.

    value: ns since 1970 UTC (`instant`), ns of the wall clock since 1970 (`local`) or since midnight (`time_of_day`),
    ns before the end or after the start, or the attempt's number from 1.
    """

    text: str
    kind: Kind
    value: int = 0

    def resolve(self, anchors: Anchors) -> int:
        """Return the time in ns since 1970 UTC. Raises UsageError if the attempt does not exist, or if the zone skips
        or repeats a wall-clock time."""
        match self.kind:
            case "instant":
                return self.value
            case "local":
                return _from_wall_clock(self.text, self.value, anchors.zone)
            case "time_of_day":
                return _on_the_only_day(self.text, self.value, anchors)
            case "now":
                return anchors.now_ns
            case "before_end":
                return anchors.end_ns - self.value
            case "after_start":
                return anchors.start_ns + self.value
            case "attempt":
                starts = anchors.attempt_starts
                if self.value > len(starts):
                    raise UsageError(f"{self.text}: the job has {len(starts)} attempt{'s' if len(starts) != 1 else ''}")
                return int(starts[self.value - 1])


@dataclass(frozen=True)
class Span:
    """`START/END` as typed: a window to exclude."""

    text: str
    start: TimeArgument
    end: TimeArgument

    def resolve(self, anchors: Anchors) -> tuple[int, int]:
        """Return [start, end) in ns since 1970 UTC. Raises UsageError if it is empty or ends before its start."""
        start, end = self.start.resolve(anchors), self.end.resolve(anchors)
        if start >= end:
            raise UsageError(f"{self.text}: the end is not after the start")
        return start, end


def parse_when(value: str | datetime | int | TimeArgument) -> TimeArgument:
    """Parse a time from text (see `ACCEPTED`), a datetime (without a zone: in the zone of the question) or ns since
    1970 UTC. The UsageError contains the text and the accepted forms."""
    if isinstance(value, TimeArgument):
        return value
    if isinstance(value, datetime):
        return _from_datetime(str(value), value)
    if isinstance(value, int):
        return TimeArgument(str(value), "instant", value)
    text = value.strip()
    lower = text.lower()
    if lower == "now":
        return TimeArgument(text, "now")
    if lower.startswith("attempt:"):
        return _parse_attempt(text)
    if lower[:1] in ("-", "+"):
        kind: Kind = "before_end" if lower[0] == "-" else "after_start"
        return TimeArgument(text, kind, parse_duration(text[1:], whole=text))
    if match := _TIME_OF_DAY.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return TimeArgument(text, "time_of_day", (hours * 3600 + minutes * 60 + seconds) * _UNITS["s"])
    if _EPOCH_SECONDS.fullmatch(text):
        from fractions import Fraction

        return TimeArgument(text, "instant", round(Fraction(text) * 1_000_000) * 1000)
    return _parse_calendar(text)


def parse_duration(text: str, *, whole: str | None = None) -> int:
    """Parse a duration (`90s`, `15m`, `1h30m`; also `w`, `d`, `ms`, decimals) to exact ns.

    The UsageError contains `whole`, the text that the duration is part of, and the accepted forms.
    """
    from fractions import Fraction

    total = Fraction(0)
    position, largest = 0, max(_UNITS.values()) + 1
    stripped = text.strip().lower()
    while match := _DURATION.match(stripped, position):
        unit = _UNITS[match[2]]
        if unit >= largest:
            break
        total += Fraction(match[1]) * unit
        position, largest = match.end(), unit
    if position == 0 or position != len(stripped) or total > _NS_MAX:
        raise UsageError(f"{whole or text!r} is not a duration", tip=f"use one such as {ACCEPTED_DURATIONS}")
    return round(total)


def parse_span(text: str | Span) -> Span:
    """Parse `START/END`, each a time. The UsageError contains the text and the accepted forms."""
    if isinstance(text, Span):
        return text
    parts = text.split("/")
    if len(parts) != 2 or not all(part.strip() for part in parts):
        raise UsageError(f"{text!r} is not a window", tip=f"use START/END, each {ACCEPTED}")
    return Span(text, parse_when(parts[0]), parse_when(parts[1]))


def _parse_attempt(text: str) -> TimeArgument:
    number = text.partition(":")[2].strip()
    if not (number.isascii() and number.isdigit() and len(number) <= 9 and int(number) > 0):
        raise UsageError(f"{text!r}: attempts are numbered from 1, such as attempt:3")
    return TimeArgument(text, "attempt", int(number))


def _parse_calendar(text: str) -> TimeArgument:
    """Parse ISO 8601 with 0 to 9 fractional digits, otherwise text that dateutil reads in one way only."""
    upper, rest_ns = text.upper(), 0
    if match := _FRACTION.fullmatch(upper):
        upper = match[1] + match[3]
        if len(match[2]) > 9:
            raise UsageError(f"{text!r}: at most 9 fractional digits (nanoseconds)")
        rest_ns = int(match[2].ljust(9, "0"))
    try:
        moment = datetime.fromisoformat(upper)
    except ValueError:
        moment, rest_ns = _parse_freely(text), 0
    return _from_datetime(text, moment, rest_ns)


def _parse_freely(text: str) -> datetime:
    """Parse text with dateutil if nothing is ambiguous: neither the year, nor day and month, nor the zone."""
    from dateutil.parser import parse
    from dateutil.tz import tzlocal

    zones = {"UTC": UTC, "GMT": UTC, "Z": UTC}
    ways = product((datetime(2000, 1, 1), datetime(2004, 2, 2)), (False, True))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            readings = {parse(text, default=default, dayfirst=first, tzinfos=zones) for default, first in ways}
    except (ValueError, ArithmeticError, TypeError, Warning):
        raise UsageError(f"{text!r} is not a time", tip=f"use {ACCEPTED}") from None
    moment = readings.pop()
    if readings or isinstance(moment.tzinfo, tzlocal):
        raise UsageError(f"{text!r} is ambiguous", tip=f"use {ACCEPTED}")
    return moment


def _from_datetime(text: str, moment: datetime, rest_ns: int = 0) -> TimeArgument:
    kind: Kind = "local" if moment.tzinfo is None else "instant"
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    ns = (utc - _EPOCH) // timedelta(microseconds=1) * 1000 + rest_ns
    if abs(ns) > _NS_MAX:
        raise UsageError(f"{text!r} is out of range (years 1678 to 2261)")
    return TimeArgument(text, kind, ns)


def _on_the_only_day(text: str, of_day_ns: int, anchors: Anchors) -> int:
    """Return the time in the job window with this time of day. Raises UsageError if there are none or several."""
    first, last = (
        (_EPOCH + timedelta(microseconds=ns // 1000)).astimezone(anchors.zone).date()
        for ns in (anchors.start_ns, anchors.end_ns)
    )
    days: list[str] = []
    instants: list[int] = []
    while first <= last and len(days) < 3:
        midnight = (datetime(first.year, first.month, first.day, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
        instant = _from_wall_clock(text, midnight * _UNITS["s"] + of_day_ns, anchors.zone)
        if anchors.start_ns <= instant <= anchors.end_ns:
            days.append(first.isoformat())
            instants.append(instant)
        first += timedelta(days=1)
    if len(instants) == 1:
        return instants[0]
    if instants:
        raise UsageError(
            f"{text!r} is in the job on {', '.join(days[:2])} and maybe more days", tip=f"use {days[0]}T{text}"
        )
    raise UsageError(f"{text!r} is not in the job", tip=f"add a date, such as {last.isoformat()}T{text}")


def _from_wall_clock(text: str, wall_ns: int, zone: tzinfo) -> int:
    """Return the time at which the clocks of `zone` show `wall_ns`."""
    seconds, rest = divmod(wall_ns, NS_PER_SECOND)
    local = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=zone)
    first, second = (local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    if first != second:
        what = "does not exist" if first < second else "is ambiguous"
        raise UsageError(f"{text!r} {what} in {zone} (clocks change there)", tip="add an offset such as +01:00")
    return (seconds - int(first.total_seconds())) * NS_PER_SECOND + rest

"""Read the prefixes of a line: timestamps, with or without zone and year, and what launchers and collectors add, such
as colors, ranks and pods."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import I64, Characters, blocks
from goodput_cli.sources.blocks import PIECE
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_MINUTE, NS_PER_SECOND

LONGEST_PREFIX = 256
"""Maximum length of the prefixes that launchers, loggers and collectors put before an object."""
HEAD = 96
"""Number of characters of a line in which a timestamp may begin."""
PLACEHOLDER_YEAR = 1972
"""Year of timestamps without one: a leap year, so that 29 February is valid."""
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SHORT = re.compile(
    r"(?:<\d+>)?\[?(?:[A-Z][a-z]{2} )?(?P<month>[A-Z][a-z]{2}) (?P<day>[ \d]\d) (?P<time>\d\d:\d\d:\d\d)"
    r"(?: (?P<year>\d{4})\])?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OF_KERNEL = re.compile(
    r"(?:<\d+>)?(?:kern *:\w+ *: )?(?:\[ *\d+\.\d{3,6}\] |\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] "
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d{6}[+-]\d\d:\d\d (?!\S+ \S+: )|\S+ \S+ kernel: "
    r"|[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S+ kernel: |\S+ +kernel: |NVRM: )"
)


class Zone(IntEnum):
    """Part of the time that a timestamp leaves open."""

    EXACT = 0
    NAIVE = 1
    """Local time."""
    YEARLESS = 2
    """Local time, in PLACEHOLDER_YEAR."""
    DAYLESS = 3
    """Local time of an unknown day, on the first day of 1970; `with_days` finds the day."""


class Timestamp(NamedTuple):
    """A timestamp as written."""

    ns: int
    """Since 1970, UTC if it has no zone."""
    zone: Zone
    whole: bool
    """True if written in whole seconds."""


class TimestampError(ValueError):
    """Raised for text that looks like a timestamp but is invalid."""


_DATED = (
    r"(?P<y>(?:19|20|21)\d\d)[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[T ](?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)"
    r"(?:[.,](?P<f>\d{1,9}))?(?P<noon> ?[AaPp][Mm]\b)?"
    r"(?P<z> ?(?:Z\b|UTC\b)|[+-]\d\d:?\d\d(?!\d))?"
)
DATED = re.compile(_DATED, re.ASCII)
AMERICAN_TIMESTAMP = re.compile(
    r"(?P<mo>\d\d)/(?P<d>\d\d)/(?P<y>20\d\d)[ ,]+(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?"
    r"(?P<noon> ?[AaPp][Mm]\b)?(?P<z>)",
    re.ASCII,
)
"""Format of the example scripts of Hugging Face."""
_GLOG = re.compile(
    r"[IWEFD](?P<mo>\d\d)(?P<d>\d\d) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)\.(?P<f>\d{3,9})\s+\d+ \S+:\d+\]", re.ASCII
)
_C10 = re.compile(
    r"\[[IWEFV](?P<mo>\d{1,2})(?P<d>\d\d) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)\.(?P<f>\d{6,9}) \S+:\d+\]", re.ASCII
)
"""Format of the C++ part of PyTorch."""
_VLLM = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<mo>\d\d)-(?P<d>\d\d) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?P<f>) "
    r"\[?\S+:\d+\]",
    re.ASCII,
)
AT_BEGIN = (_GLOG, _C10, _VLLM)
DATE_LINE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<month>[A-Z][a-z]{2}) {1,2}(?P<d>\d{1,2}) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)"
    r"(?P<noon> [AP]M)?(?: (?P<z>[A-Z]{3,5}|[+-]\d\d(?:\d\d)?))? (?P<y>(?:19|20|21)\d\d)\b",
    re.ASCII,
)
"""Format of `date` and C's `ctime`, at the beginning of a line, or at the end of one that reports a begin or an end;
elsewhere it is often a build time."""
_REPORTS_A_MOMENT = re.compile(r"\b(?:start|beg[ai]n|end|finish|complet|stopp|exit|done)[a-z]*\b[^\d]*$", re.IGNORECASE)
_RICH = re.compile(
    r"\[(?P<mo>0[1-9]|1[0-2])/(?P<d>\d\d)/(?P<y>\d\d) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?P<f>)\](?= |$)", re.ASCII
)
"""Format of rich's handler of `logging`, at the beginning of a line. A repeated time is left blank."""
CLOCK_AT_BEGIN = re.compile(
    r"\[?(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?(?P<end>\]|(?=[ \t|]))", re.ASCII
)
"""A time of day at the beginning of a line."""
LONGEST_TIMESTAMP = 40
_COLON, _NEWLINE = ord(":"), ord("\n")
_AROUND, _DIGITS_OF_CLOCK = 12, (4, 5, 7, 8, 10, 11)
"""Characters around a timestamp such as `1-02 03:04:05`, from the sixth before its first colon to the fifth after it;
and the positions of the digits of its time of day."""
_INITIALS = np.frombuffer(b"MTWFS", dtype=np.uint8)
"""First letters of weekdays."""
_MANY = 10
"""Number of timestamps with the same fraction that cannot be a coincidence."""
_HALF_A_DAY = NS_PER_DAY // 2


def timestamp_of(line: str) -> Timestamp | None:
    """Return the timestamp of a line without prefixes. Raises TimestampError for a month 13."""
    found = find_timestamp(line)
    return None if found is None else found[0]


def find_timestamp(line: str) -> tuple[Timestamp, tuple[int, int]] | None:
    """Return the timestamp of a line without prefixes, and its begin and end. Raises TimestampError for a month 13."""
    found = next((found for shape in AT_BEGIN if (found := shape.match(line)) is not None), None)
    if found is not None:
        return _read(found, PLACEHOLDER_YEAR, Zone.YEARLESS), found.span()
    for shape in (DATED, AMERICAN_TIMESTAMP):
        found = shape.search(line, 0, HEAD + LONGEST_TIMESTAMP)
        if found is not None and found.start() < HEAD and not _is_value(line, found.start()):
            return dated(found), found.span()
    found = find_date_line(line)
    if found is not None and found["month"] in _MONTHS:
        return _of_date_line(found), found.span()
    place = line.find("datetime: ")
    found = DATED.search(line, place) if place >= 0 else None
    if found is not None:
        return dated(found), found.span()
    found = _RICH.match(line)
    if found is not None:
        return _read(found, 2000 + int(found["y"]), Zone.NAIVE), found.span()
    found = CLOCK_AT_BEGIN.match(line)
    stamp = None if found is None else _time_of_day(found)
    return None if stamp is None or found is None else (stamp, found.span())


def find_date_line(line: str, pattern: re.Pattern[str] = DATE_LINE) -> re.Match[str] | None:
    """Return the match of a date as `date` prints it at the beginning of a line, or at the end of one that reports a
    begin or an end (`echo "job started at $(date)"`)."""
    found = pattern.match(line) or pattern.search(line, 0, HEAD + LONGEST_TIMESTAMP)
    if found is None or found.start() == 0:
        return found
    ends_line = not line[found.end() :].strip()
    return found if ends_line and _REPORTS_A_MOMENT.search(line[: found.start()]) else None


def have_one_fraction(times: Iterable[int]) -> bool:
    """Return True if all times (ns) have the same fraction of a second: none, or a constant such as the .456 of a
    layout that was mistaken for a format."""
    fractions = (ns % NS_PER_SECOND for ns in times)
    first = next(fractions, None)
    return first is not None and all(one == first for one in fractions)


def without_invented_fraction(stamps: Sequence[Timestamp]) -> Sequence[Timestamp]:
    """Return timestamps in whole seconds if many have the same fraction other than 0, which is not a measured one."""
    if len(stamps) < _MANY or stamps[0].ns % NS_PER_SECOND == 0 or not have_one_fraction(one.ns for one in stamps):
        return stamps
    return [one._replace(ns=one.ns - one.ns % NS_PER_SECOND, whole=True) for one in stamps]


def _is_value(line: str, begin: int) -> bool:
    """Return True if a date is the value of a name, `[step=100 | time=2026-…]`, in a line that begins with a time of
    day."""
    return line[begin - 1 : begin] == "=" and CLOCK_AT_BEGIN.match(line) is not None


def timestamp_or_none(line: str) -> Timestamp | None:
    """Return the timestamp of a line without prefixes; None if there is none or it is invalid."""
    try:
        return timestamp_of(line)
    except TimestampError:
        return None


def _of_date_line(found: re.Match[str]) -> Timestamp:
    """Read the output of `date`; of named zones, only UTC is known."""
    month, zone = _MONTHS.index(found["month"]) + 1, found["z"] or ""
    known = "Z" if zone in ("UTC", "GMT") else zone.ljust(5, "0") if zone[:1] in ("+", "-") else ""
    day, noon = int(found["d"]), found["noon"] or ""
    clock = f"{found['h']}:{found['mi']}:{found['s']}"
    return read_dated(f"{found['y']}-{month:02d}-{day:02d} {clock}{noon}{known}")


def _time_of_day(found: re.Match[str]) -> Timestamp | None:
    if bool(found["end"]) != found[0].startswith("["):
        return None
    hour, minute, second, fraction = int(found["h"]), int(found["mi"]), int(found["s"]), found["f"]
    if hour > 23 or minute > 59 or second > 60:
        return None
    ns = ((hour * 60 + minute) * 60 + second) * NS_PER_SECOND
    return Timestamp(ns + int((fraction or "").ljust(9, "0")), Zone.DAYLESS, fraction is None)


def with_days(
    stamps: Sequence[Timestamp], last_change: int, begin: int | None, year: int | None
) -> tuple[list[Timestamp], bool]:
    """Return the timestamps of a document, in line order, with days.

    A timestamp without a day gets that of the nearest dated one: a fall of more than 12 h is midnight, a smaller one is
    a clock set back. If none is dated, the first is as near as possible to `begin`, otherwise the last is on the latest
    day on which it is not after `last_change`; then return True, as the day is assumed. Times are ns in the zone of the
    timestamps. year: for timestamps without one, if given; those stay unchanged.
    """
    found = with_years(stamps, last_change, year)
    dated = next((at for at, one in enumerate(found) if one.zone is not Zone.DAYLESS), None)
    if dated is not None:
        _count_days(found, range(dated, len(found)))
        _count_days(found, range(dated, -1, -1))
        pairs = zip(stamps, found, strict=True)
        return [new if old.zone is Zone.DAYLESS else old for old, new in pairs], False
    _count_days(found, range(len(found)))
    last = max(one.ns for one in found)
    days = (last_change - last if begin is None else begin - found[0].ns + _HALF_A_DAY) // NS_PER_DAY * NS_PER_DAY
    return [one._replace(ns=one.ns + days) for one in found], begin is None


def with_years(
    stamps: Sequence[Timestamp], last_change: int, year: int | None = None, others: Sequence[int] = ()
) -> list[Timestamp]:
    """Return the timestamps of a document with years: those without one get the year of the nearest that has one,
    before it rather than after it, otherwise that of the nearest in `others`, otherwise the latest in which they are
    not after `last_change` (ns). year: the year to use for all of them, if it was given."""
    near = next((one.ns for one in stamps if one.zone not in (Zone.YEARLESS, Zone.DAYLESS)), None)
    if near is None and stamps and others:
        near = min(others, key=lambda ns: abs(with_year(stamps[0], year_of(ns), ns).ns - ns))
    dated: list[Timestamp] = []
    for one in stamps:
        if one.zone is Zone.YEARLESS:
            if near is None and year is None:
                one = in_latest_year(one, last_change)
            else:
                one = with_year(one, year or year_of(near or 0), None if year else near)
        if one.zone is not Zone.DAYLESS:
            near = one.ns
        dated.append(one)
    return dated


def _count_days(stamps: list[Timestamp], places: range) -> None:
    """Set the days at these positions, each within half a day of the timestamp before."""
    before: int | None = None
    for at in places:
        if stamps[at].zone is Zone.DAYLESS:
            ns = stamps[at].ns
            if before is not None:
                ns += (before - ns + _HALF_A_DAY) // NS_PER_DAY * NS_PER_DAY
            stamps[at] = Timestamp(ns, Zone.NAIVE, stamps[at].whole)
        before = stamps[at].ns


def read_dated(text: str) -> Timestamp:
    """Return the timestamp of a text. Raises TimestampError."""
    found = DATED.fullmatch(text.strip())
    if found is None:
        raise TimestampError(f"{text.strip()[:40]} is not a time")
    return dated(found)


def dated(found: re.Match[str]) -> Timestamp:
    """Return the timestamp of a match. Raises TimestampError."""
    zone = (found["z"] or "").strip()
    if not zone:
        return _read(found, int(found["y"]), Zone.NAIVE)
    stamp = _read(found, int(found["y"]), Zone.EXACT)
    if zone in ("Z", "UTC"):
        return stamp
    digits = zone[1:].replace(":", "")
    east = (int(digits[:2]) * 60 + int(digits[2:])) * NS_PER_MINUTE
    return stamp._replace(ns=stamp.ns + (east if zone[0] == "-" else -east))


def _read(found: re.Match[str], year: int, zone: Zone) -> Timestamp:
    month, day = int(found["mo"]), int(found["d"])
    hour, minute, second = _hour(found), int(found["mi"]), int(found["s"])
    midnight = _midnight(year, month, day)
    if midnight is None or hour > 23 or minute > 59 or second > 60:
        raise TimestampError(f"{found[0][:30].strip()} is not a time")
    ns = midnight + ((hour * 60 + minute) * 60 + second) * NS_PER_SECOND
    fraction = found["f"]
    return Timestamp(ns + int(fraction.ljust(9, "0")) if fraction else ns, zone, fraction is None)


@lru_cache(maxsize=4096)
def _midnight(year: int, month: int, day: int) -> int | None:
    """Return the time (ns since 1970) at which a day begins; None for an invalid day. Cached: most lines of a log share
    a day."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    is_day = 1970 <= year < 2255 and 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1]
    if not is_day or ((month, day) == (2, 29) and not leap):
        return None
    return timegm((year, month, day, 0, 0, 0)) * NS_PER_SECOND


def _hour(found: re.Match[str]) -> int:
    """Return the hour of the day, 0 to 23; timestamps may use 12 hours with `AM` or `PM`."""
    hour = int(found["h"])
    half = (found["noon"] or "").strip().upper() if "noon" in found.re.groupindex else ""
    if not half or not 1 <= hour <= 12:
        return hour
    return hour % 12 + (12 if half == "PM" else 0)


def candidates(text: Characters) -> I64:
    """Return the positions where a timestamp may begin in a block, int64[n]: `hh:mm:ss` after a date, after a day of a
    month, or at the beginning of a line; or after a weekday, a month and a day at the beginning of a line."""
    if len(text) <= _AROUND:
        return np.empty(0, dtype=np.int64)
    first, second = text[7:-5], text[10:-2]
    colons = [
        np.flatnonzero((first[start:stop] == _COLON) & (second[start:stop] == _COLON)) + (start + 7)
        for start, stop in blocks(len(first), PIECE)
    ]
    colon = np.concatenate(colons)
    around = np.lib.stride_tricks.sliding_window_view(text, _AROUND)[colon - 6]
    digit, before = np.less(around - np.uint8(ord("0")), 10), around[:, 0]
    clock = digit[:, _DIGITS_OF_CLOCK].all(axis=1)
    long = ((before == ord("-")) | (before == ord("/"))) & (colon >= 13)
    rich = (before == ord("/")) & (colon >= 12) & (text[np.maximum(colon - 12, 0)] == ord("["))
    short = (around[:, 3] == ord(" ")) & digit[:, 2] & digit[:, 0]
    first = (around[:, 3] == _NEWLINE) | ((around[:, 3] == ord("[")) & (around[:, 2] == _NEWLINE))
    begin = np.where(rich, colon - 11, np.where(long, colon - 13, np.where(first, colon - 2, np.maximum(colon - 8, 0))))
    found: I64 = begin[clock & (long | rich | short | first)]
    weekdays = _weekdays(text, colon[clock & (around[:, 3] == ord(" ")) & digit[:, 2] & ~digit[:, 0]])
    return np.union1d(found, weekdays) if len(weekdays) else found


def _weekdays(text: Characters, colon: I64) -> I64:
    """Return the positions of `Mon Jan  5 ` before the given colons, int64[n]."""
    wide = text[colon - 6] == ord(" ")
    begin = colon - np.where(wide, 13, 12)
    begin = begin[begin >= 0]
    found: I64 = begin[(text[begin + 3] == ord(" ")) & (text[begin + 7] == ord(" ")) & np.isin(text[begin], _INITIALS)]
    return found


def year_of(ns: int) -> int:
    """Return the year of a time, UTC."""
    return int(np.datetime64(ns, "ns").astype("datetime64[Y]").astype(int)) + 1970


def with_year(stamp: Timestamp, year: int, near: int | None, latest: bool = False) -> Timestamp:
    """Return a timestamp with the year that brings it nearest to `near`; with `latest`, the latest year in which it is
    not after `near`; without `near`, with `year`. 29 February moves to the previous leap year."""
    years = [year] if near is None else [year + 1, year, year - 1]
    dates = [one for one in (_moved(stamp, each) for each in years) if one is not None]
    dates = dates or [one for one in (_moved(stamp, each) for each in range(year, year - 9, -1)) if one is not None][:1]
    if near is not None:
        if latest:
            dates = [ns for ns in dates if ns <= near] or dates[-1:]
            dates.sort(reverse=True)
        else:
            dates.sort(key=lambda ns: abs(ns - near))
    return Timestamp(dates[0], Zone.NAIVE, stamp.whole)


def in_latest_year(stamp: Timestamp, last_change: int) -> Timestamp:
    """Return a timestamp with the latest year in which it is at most a day (a zone) after the last change of its file
    (ns)."""
    latest = last_change + NS_PER_DAY
    return with_year(stamp, year_of(latest), latest, latest=True)


def _moved(stamp: Timestamp, year: int) -> int | None:
    days, rest = divmod(stamp.ns, NS_PER_DAY)
    month, day = str(np.datetime64(days, "D"))[5:].split("-")
    try:
        moved = np.datetime64(f"{year:04d}-{month}-{day}", "D").astype(int)
    except ValueError:
        return None
    return int(moved) * NS_PER_DAY + rest


_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_MOST = 8
_PREFIX = re.compile(
    r"""\s*(?:
    (?P<collected>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))[ ]
    |\[(?:default|rank)?(?P<rank>\d+)\]:[ \t]?
    |(?P<srun>\d+):(?!\d\d:)[ \t]?
    |\[\d+,(?:mpirank:)?(?P<mpi>\d+)(?:,[\w.-]+)?\]<std(?:out|err)>:?[ ]?
    |\[pod/(?P<pod>[^\]\s]+)\][ ]
    |(?P<replica>(?=[\w.-]*[A-Za-z])[\w.-]+/\d+)[ ](?=\[|[IWEFD]\d{4}[ ]|Training[ ]epoch|\d{4}-\d\d-\d\d)
    |(?P<compose>[\w.-]+)[ ]+\|[ ]
    |(?:stdout|stderr)[ ][FP][ ]
    )""",
    re.VERBOSE | re.ASCII,
)


class PlainLine(NamedTuple):
    """A line without its prefixes."""

    text: str
    stream: str
    """Ranks and pods in the prefixes, joined by `/`."""
    collected: Timestamp | None
    """Exact time of collection (`kubectl logs --timestamps`)."""


def strip_prefixes(line: str) -> PlainLine:
    """Remove colors, text overwritten after a carriage return, and prefixes in any order."""
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    if "\b" in line:  # Progress bars that go back over themselves.
        line = line.replace("\b", "")
    if "\r" in line:
        line = next((part for part in reversed(line.split("\r")) if part.strip()), "")
    streams: list[str] = []
    collected: Timestamp | None = None
    place = 0
    for _ in range(_MOST):
        found = _PREFIX.match(line, place)
        if found is None:
            break
        if found["collected"]:
            if collected is not None:
                break
            collected = read_or_none(found["collected"])
        name = found["rank"] or found["srun"] or found["mpi"] or found["pod"] or found["replica"] or found["compose"]
        if name:
            streams.append(name)
        place = found.end()
    return PlainLine(line[place:] if place else line, "/".join(streams), collected)


def is_kernel_log(head: str) -> bool:
    """Return True if text with this beginning is a kernel log: a third of its lines has a kernel prefix."""
    lines = [line for line in head.split("\n")[:200] if line.strip()]
    kernel = sum(bool(_OF_KERNEL.match(line)) for line in lines)
    return bool(lines) and 3 * kernel >= len(lines)


def kernel_timestamp(line: str) -> Timestamp | None:
    """Return the timestamp of a kernel line in one of its formats: `Mar  1 10:10:05` or `[Sun Mar  1 10:10:05 2026]`.
    Seconds since boot give none."""
    match = _SHORT.match(line)
    if match is None or match["month"] not in _MONTHS:
        return None
    month = _MONTHS.index(match["month"]) + 1
    year = match["year"] or str(PLACEHOLDER_YEAR)
    stamp = read_or_none(f"{year}-{month:02d}-{int(match['day']):02d} {match['time']}")
    return stamp if stamp is None or match["year"] else stamp._replace(zone=Zone.YEARLESS)


_DESCRIBED = re.compile(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d:\d\d:\d\d) ([+-]\d\d)(\d\d)$")


def described_timestamp(text: str) -> Timestamp | None:
    """Return the timestamp that `kubectl describe` writes: `Sun, 01 Mar 2026 10:10:05 +0000`."""
    match = _DESCRIBED.match(text)
    if match is None or match[2] not in _MONTHS:
        return None
    day, month, year, clock, hours, minutes = match.groups()
    return read_or_none(f"{year}-{_MONTHS.index(month) + 1:02d}-{day} {clock}{hours}:{minutes}")


def read_or_none(text: str) -> Timestamp | None:
    """Return the timestamp of a text; None if it is not one."""
    try:
        return read_dated(text)
    except TimestampError:
        return None

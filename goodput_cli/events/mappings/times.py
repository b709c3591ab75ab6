"""Times in the formats that mappings name (a fixed name, or a format of `strptime`), and the format that the lines of
a text log have, with the position of the message after them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise

from goodput_cli.events.text.line_timestamps import (
    AMERICAN_TIMESTAMP,
    HEAD,
    PLACEHOLDER_YEAR,
    Timestamp,
    TimestampError,
    Zone,
    find_timestamp,
    read_dated,
)
from goodput_cli.events.text.log_lines import BadValueError
from goodput_cli.events.values import number, round_to_us
from goodput_cli.vocabulary.text import likeliest
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_SECOND

EPOCHS = {"epoch_s": 1.0, "epoch_ms": 1e-3, "epoch_us": 1e-6, "epoch_ns": 1e-9}
NAMED = (*EPOCHS, "iso", "glog")
MAX_EPOCH = 9e9
_LONGEST = 100
_TRIED_TIME = datetime(2026, 11, 22, 21, 43, 56, 123456, tzinfo=UTC)
_PATTERNS = {
    "Y": r"\d{4}", "y": r"\d\d", "m": r"\d{1,2}", "d": r"[ \d]?\d", "H": r"[ \d]?\d", "I": r"[ \d]?\d", "M": r"\d\d",
    "S": r"\d\d", "f": r"\d{1,9}", "p": r"[AaPp]\.?[Mm]\.?", "b": r"[A-Za-z]{3}", "B": r"[A-Za-z]{3,9}",
    "a": r"[A-Za-z]{3}", "A": r"[A-Za-z]{6,9}", "j": r"\d{1,3}", "z": r"(?:Z|UTC|[+-]\d\d:?\d\d)",
    "Z": r"(?:Z|UTC|GMT)", "%": "%",
}  # fmt: skip
_DIRECTIVE = re.compile(r"%(.)", re.DOTALL)
_YEARS, _DAYS = frozenset("Yy"), frozenset("dj")


class ClockError(ValueError):
    """Raised for an unusable time format; args: a sentence."""


def check_format(written: str) -> None:
    """Raise ClockError for a format in which no time can be read."""
    if not written or written in NAMED:
        return
    if "%" not in written:
        named = " or ".join(likeliest(written, NAMED) or NAMED)
        raise ClockError(
            f"`{written[:40]}` is not a time format: write {named}, or a strptime format such as %d/%m/%Y %H:%M:%S"
        )
    if len(written) > _LONGEST:
        raise ClockError(f"a time format has at most {_LONGEST} characters")
    directives = frozenset(_DIRECTIVE.findall(written.replace("%%", "")))
    unknown = sorted(directives - _PATTERNS.keys())
    if unknown or written.replace("%%", "").endswith("%"):
        named = f"%{unknown[0]}" if unknown else "%"
        raise ClockError(f"`{named}` is not supported in a time format; use %Y %m %d %H %M %S %f %z %b %j %p")
    try:
        read_time(_TRIED_TIME.strftime(written.replace("%y", "26") if "%Y" in written else written), written)
    except (BadValueError, ValueError) as error:
        raise ClockError(f"`{written}` cannot be read as a time: {error}") from None


def read_time(text: str, written: str) -> Timestamp:
    """Return a time in the given format. Raises BadValueError or TimestampError."""
    if written in EPOCHS or (not written and number(text) is not None):
        return _of_epoch(text, EPOCHS.get(written, 1.0))
    if written in ("", "iso"):
        return read_dated(text)
    if written == "glog":
        return _parsed(f"{text.lstrip('IWEFD')}", "%m%d %H:%M:%S.%f")
    return _parsed(text.strip(), written)


def find_time(line: str, written: str) -> Timestamp | None:
    """Return the time in a `strptime` format at the beginning of a line; None if there is none. Raises BadValueError
    for a month 13."""
    found = pattern_of(written).search(line, 0, HEAD + _LONGEST)
    return None if found is None or found.start() >= HEAD else _parsed(found[0], written)


def is_searched(written: str) -> bool:
    """Return True if lines are searched for times of this format."""
    return "%" in written


@cache
def pattern_of(written: str) -> re.Pattern[str]:
    """Return the pattern of times in a format, without unbounded repeats."""
    parts = [
        _PATTERNS[part[1]] if len(part) == 2 and part[0] == "%" else r"\s{1,3}" if part.isspace() else re.escape(part)
        for part in re.findall(r"%.|\s+|[^%\s]+", written, re.DOTALL)
    ]
    pattern = "".join(parts).replace(_PATTERNS["m"] + _PATTERNS["d"], r"\d{4}")
    return re.compile(rf"(?<!\d){pattern}(?!\d)", re.ASCII)


def _of_epoch(text: str, unit: float) -> Timestamp:
    seconds = number(text)
    if seconds is None or not 0 <= seconds < MAX_EPOCH / unit:  # An integer may have thousands of digits.
        raise BadValueError(f"{text[:40]} is not a time between 1970 and 2255")
    ns = int(seconds) * round(unit * 1e9) if seconds == int(seconds) else round_to_us(seconds * unit)
    return Timestamp(ns, Zone.EXACT, False)


def _parsed(text: str, written: str) -> Timestamp:
    """Return a time in a `strptime` format; without a year, it has the placeholder year."""
    directives = _DIRECTIVE.findall(written.replace("%%", ""))
    dayless = not _DAYS.intersection(directives)
    yearless = not dayless and not _YEARS.intersection(directives)
    read, as_written = text, written
    if "Z" in directives or "z" in directives:
        read = re.sub(r"(?:UTC|GMT|Z)\b", "+0000", read)
        as_written = as_written.replace("%Z", "%z")
    if "f" in directives:
        read = re.sub(r"([.,]\d{6})\d{1,3}(?!\d)", r"\1", read)
    if yearless:
        read, as_written = f"{PLACEHOLDER_YEAR} {read}", f"%Y {as_written}"
    if dayless:
        read, as_written = f"1970-01-01 {read}", f"%Y-%m-%d {as_written}"
    try:
        moment = datetime.strptime(read, as_written)
    except ValueError:
        raise BadValueError(f"{text[:40]} is not a time in the format {written}") from None
    if dayless:
        zone = Zone.DAYLESS
    else:
        zone = Zone.YEARLESS if yearless else Zone.NAIVE if moment.tzinfo is None else Zone.EXACT
    since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.fromtimestamp(0, UTC)
    ns = (since.days * 86_400 + since.seconds) * NS_PER_SECOND + since.microseconds * 1000
    if ns < 0:
        raise BadValueError(f"{text[:40]} is not a time between 1970 and 2255")
    return Timestamp(ns, zone, "f" not in directives)


_FORMATS = (
    "%d/%m/%Y %H:%M:%S", "%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%H:%M:%S", "%d-%b-%Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y", "%b %d %Y %H:%M:%S", "%b %d, %Y %H:%M:%S", "%d %b %Y %H:%M:%S", "%m/%d/%y %H:%M:%S",
    "%d/%m/%y %H:%M:%S", "%y/%m/%d %H:%M:%S", "%Y.%m.%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y%m%d %H:%M:%S",
    "%Y%m%d-%H:%M:%S", "%Y-%m-%d:%H:%M:%S", "%Y%m%d-%H%M%S", "%m/%d/%Y %I:%M:%S %p", "%Y-%m-%d,%H:%M:%S",
    "%b %d %H:%M:%S", "%m-%d %H:%M:%S", "%m/%d %H:%M:%S", "%d/%m %H:%M:%S", "[%m%d %H:%M:%S @",
    "%d-%m-%Y %H:%M:%S", "%m-%d-%Y %H:%M:%S", "%Y-%m-%d_%H:%M:%S", "%Y-%m-%d-%H:%M:%S", "%Y%m%d_%H%M%S",
    "%Y%m%dT%H%M%S%z", "%Y%m%dT%H%M%S", "%m%d %H:%M:%S",
    "INFO %H:%M:%S", "[INFO] %H:%M:%S", "INFO [%H:%M:%S]", "INFO:%H:%M:%S",
)  # fmt: skip
"""Timestamp formats that are not detected in logs, the likeliest first."""
_SINCE = 1_388_534_400 * NS_PER_SECOND
"""2014: two digits before this year are a day or month."""
UNIX_TIME = re.compile(r"(?<![\w.])1[4-9]\d{8}(?:\d{3})?(?:\.\d{1,9})?(?![\w.])")
_MAY_HAVE_TIME = re.compile(r"\d:\d\d|\d{6}", re.ASCII)
_TRIED, _BEFORE, _SHARE = 400, 40, 0.2
_CLOSING = " \t])}>|."
"""Closing characters after a timestamp at the end of a text."""
_LEVEL = r"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL|SUCCESS|TRACE|NOTICE|[DIWE](?=[\] ]))"
_LOGGER = (
    r"(?:[A-Za-z_]\w*(?:[.:][A-Za-z_<]\w*>?)+(?::\d+)?|[\w./-]+\.py(?::\d+|:\w+)*|__\w+__|root"
    r"|\d++(?!\]\s+[A-Za-z_/][\w/.-]*[=:]))(?:\[\d+\])?"
)
_FRACTION = re.compile(r"[.,]\d{1,9}(?=\D)")
_AROUND = r"[\s\[\]()|:,>-]*"
_HEADER = re.compile(
    rf"{_AROUND}(?:[\w.]+\s+-\s+(?={_LEVEL}\b))?(?:{_LEVEL}\b{_AROUND})?"
    rf"(?:{_LOGGER}(?:\]:?|\)|\s*[|:>-])[\s\[\](|:>-]+(?:{_LEVEL}\b{_AROUND})?)*"
)


def message_begin(text: str, span: tuple[int, int] | None) -> int:
    """Return the position of the message after a timestamp, a level and a logger."""
    begin = span[1] if span is not None and span[0] < _BEFORE and text[span[1] :].strip(_CLOSING) else 0
    fraction = _FRACTION.match(text, begin) if begin else None
    begin = begin if fraction is None else fraction.end()
    header = _HEADER.match(text, begin)
    begin = header.end() if header is not None and header.end() < len(text) else begin
    # The bracket of `[100] loss=…` is part of the message.
    return begin - (text[begin - 1 : begin] == "[" and text[begin].isdigit())


def read_clock(text: str, clock: str) -> tuple[Timestamp, tuple[int, int]] | None:
    """Return the timestamp of a text and its position; None if there is none. clock: its format; empty: any format that
    is detected in logs."""
    try:
        if not clock:
            return find_timestamp(text)
        pattern, head = (UNIX_TIME, _BEFORE) if clock == "epoch" else (pattern_of(clock), HEAD)
        found = pattern.search(text, 0, head)
        if found is None:
            return None
        stamp = read_time(found[0], epoch_format(found[0]) if clock == "epoch" else clock)
    except (TimestampError, BadValueError):
        return None
    return None if "%y" in clock and stamp.ns < _SINCE else (stamp, found.span())


def epoch_format(text: str) -> str:
    """Return the format of an epoch time."""
    return "epoch_ms" if len(text.partition(".")[0]) > 10 else "epoch_s"


def clock_of(text: Callable[[int], str], count: int, changed: int) -> str:
    """Return the time format of most first lines; of several, the one whose times rise and end before the modification
    time of the file. text: returns one of `count` lines."""
    places = (*range(min(count, _TRIED)), *range(max(0, count - _TRIED), count))
    texts = list(map(text, places))
    tried = texts[:_TRIED]
    may_have = [one for one in tried if _MAY_HAVE_TIME.search(one)]
    is_plain = not any(AMERICAN_TIMESTAMP.search(one, 0, _BEFORE) for one in may_have)
    counts = {"": sum(read_clock(one, "") is not None for one in may_have)}
    if is_plain and counts[""] == len(may_have):
        return ""
    counts |= {clock: sum(read_clock(one, clock) is not None for one in may_have) for clock in (*_FORMATS, "epoch")}
    most = max(counts.values())
    fitting = [clock for clock, count in counts.items() if count == most]
    if most < _SHARE * min(len(tried), 20) or (is_plain and "" in fitting):
        return ""

    def against(clock: str) -> tuple[int, bool]:
        times = [found[0].ns for one in texts if (found := read_clock(one, clock)) is not None]
        dated = not clock or "%Y" in clock or "%y" in clock
        return sum(b < a for a, b in pairwise(times)), dated and max(times) > changed + NS_PER_DAY

    return min(fitting, key=against)

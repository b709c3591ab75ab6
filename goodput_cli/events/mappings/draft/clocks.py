"""Find the clock of a text log: the format of its times, and the position of the message after them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from goodput_cli.events.mappings.times import pattern_of, read_time
from goodput_cli.events.text.line_timestamps import AMERICAN_TIMESTAMP, HEAD, Timestamp, TimestampError, find_timestamp
from goodput_cli.events.text.log_lines import BadValueError
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_SECOND

_FORMATS = (
    "%d/%m/%Y %H:%M:%S", "%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%H:%M:%S", "%d-%b-%Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y", "%b %d %Y %H:%M:%S", "%b %d, %Y %H:%M:%S", "%d %b %Y %H:%M:%S", "%m/%d/%y %H:%M:%S",
    "%d/%m/%y %H:%M:%S", "%y/%m/%d %H:%M:%S", "%Y.%m.%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y%m%d %H:%M:%S",
    "%Y%m%d-%H:%M:%S", "%Y-%m-%d:%H:%M:%S", "%Y%m%d-%H%M%S", "%m/%d/%Y %I:%M:%S %p", "%Y-%m-%d,%H:%M:%S",
    "%b %d %H:%M:%S", "%m-%d %H:%M:%S", "%m/%d %H:%M:%S", "%d/%m %H:%M:%S", "[%m%d %H:%M:%S @",
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
_AROUND = r"[\s\[\]()|:,>-]*"
_HEADER = re.compile(
    rf"{_AROUND}(?:[\w.]+\s+-\s+(?={_LEVEL}\b))?(?:{_LEVEL}\b{_AROUND})?"
    rf"(?:{_LOGGER}(?:\]:?|\)|\s*[|:>-])[\s\[\](|:>-]+(?:{_LEVEL}\b{_AROUND})?)*"
)


def message_begin(text: str, span: tuple[int, int] | None) -> int:
    """Return the position of the message after a timestamp, a level and a logger."""
    begin = span[1] if span is not None and span[0] < _BEFORE and text[span[1] :].strip(_CLOSING) else 0
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

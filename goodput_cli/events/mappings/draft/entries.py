"""The lines of a log as messages with their times: what stands before a message is taken off."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from goodput_cli.events.mappings.clocks import find_time, pattern_of, read_time
from goodput_cli.events.text.prefixes import bare
from goodput_cli.events.text.rules import BadValueError
from goodput_cli.events.text.stamps import DATED, HEAD, Stamp, StampError, stamp_of

FORMATS = (
    "%d/%m/%Y %H:%M:%S", "%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%H:%M:%S", "%d-%b-%Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y", "%b %d %Y %H:%M:%S", "%b %d, %Y %H:%M:%S", "%d %b %Y %H:%M:%S", "%y/%m/%d %H:%M:%S",
    "%Y.%m.%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y%m%d %H:%M:%S", "%Y%m%d-%H:%M:%S", "%Y%m%d-%H%M%S",
    "%m/%d/%y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%b %d %H:%M:%S", "%m-%d %H:%M:%S", "%m/%d %H:%M:%S",
)  # fmt: skip
"""Stamps that logs are not searched for, the likeliest first."""
AMERICAN = "%m/%d/%Y %H:%M:%S"
"""Every log is searched for it; whether the day comes first cannot be told before the 13th."""
_GLOG = re.compile(r"^\[?[IWEFDV]\d{4} \d\d:\d\d:\d\d\.\d+\s+(?:\d+ )?\S+:\d+\]")
_TRIED = 400
_LONGEST = 600
_SHARE = 0.2
_EPOCH = re.compile(r"(?<![\w.])1[4-9]\d{8}(?:\d{3})?(?:\.\d{1,9})?(?![\w.])")
_BEFORE = 40
_LEVEL = r"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL|SUCCESS|TRACE|NOTICE|[DIWE](?=[\] ]))"
_LOGGER = (
    r"(?:[A-Za-z_]\w*(?:[.:][A-Za-z_<]\w*>?)+(?::\d+)?|[\w./-]+\.py(?::\d+|:\w+)*|__\w+__|root|\d+)"
    r"(?:\[\d+\])?"
)
_AROUND = r"[\s\[\]()|:,>-]*"
_HEADER = re.compile(
    rf"{_AROUND}(?:[\w.]+\s+-\s+(?={_LEVEL}\b))?(?:{_LEVEL}\b{_AROUND})?"
    rf"(?:{_LOGGER}(?:\]:?|\)|\s*[|:>-])[\s\[\](|:>-]+(?:{_LEVEL}\b{_AROUND})?)*"
)


@dataclass(frozen=True)
class Entry:
    """A message."""

    line: str
    """As it stands in the log: what a sample holds."""
    text: str
    """Without prefixes of launchers."""
    begin: int
    """Where the message begins in the text, behind its stamp, level and logger."""
    ns: int | None
    """Its time, as written; None: it has none."""
    stamp: tuple[int, int] | None = None
    """Where a time stands in the text."""

    @property
    def message(self) -> str:
        """What was said."""
        return self.text[self.begin :]


@dataclass(frozen=True)
class Clock:
    """How the lines of a log say when they were written."""

    format: str = ""
    """Of `strptime`; "": as every log is searched for it."""
    epoch: bool = False
    """Seconds or milliseconds since 1970 stand in front."""

    def read(self, text: str) -> tuple[Stamp | None, tuple[int, int] | None]:
        """The stamp of a text, and where it stands."""
        try:
            if self.epoch:
                found = _EPOCH.search(text, 0, _BEFORE)
                return (None, None) if found is None else (_of_epoch(found[0]), found.span())
            if self.format:
                stamp = find_time(text, self.format)
                return stamp, None if stamp is None else _span(text, self.format)
            stamp = stamp_of(text)
        except (StampError, BadValueError):
            return None, None
        shapes = (_GLOG, DATED, pattern_of(AMERICAN)) if stamp is not None else ()
        found = next((one for shape in shapes if (one := shape.search(text, 0, HEAD + _BEFORE))), None)
        return stamp, None if found is None else found.span()


def clock_of(texts: Sequence[str]) -> Clock:
    """The clock that most of the first lines have."""
    tried = texts[:_TRIED]
    usual = sum(Clock().read(text)[0] is not None for text in tried)
    counts: Counter[Clock] = Counter()
    for clock in (*(Clock(one) for one in FORMATS), Clock(epoch=True)):
        counts[clock] = sum(clock.read(text)[0] is not None for text in tried)
    best, count = max(counts.items(), key=lambda one: one[1])  # of equals the first
    return best if count > usual and count >= _SHARE * min(len(tried), 20) else Clock()


def entry_of(line: str, clock: Clock) -> Entry | None:
    """A line as a message; None for a blank one."""
    taken = bare(line[:_LONGEST])
    text = taken.text.rstrip()
    if not text.strip():
        return None
    stamp, span = clock.read(text)
    stamp = taken.collected or stamp
    begin = span[1] if span is not None and span[0] < _BEFORE else 0
    header = _HEADER.match(text, begin)
    begin = header.end() if header is not None and header.end() < len(text) else begin
    return Entry(line, text, begin, None if stamp is None else stamp.ns, span)


def _span(text: str, written: str) -> tuple[int, int] | None:
    found = pattern_of(written).search(text, 0, HEAD)
    return None if found is None else found.span()


def _of_epoch(text: str) -> Stamp:
    return read_time(text, "epoch_ms" if len(text.partition(".")[0]) > 10 else "epoch_s")

"""Numbers, times, durations and locations (`file:line`) as text, safe printing of untrusted text, suggestions for
mistyped names, and wrapping.

Durations are integer nanoseconds, times ns since 1970 UTC. Lines are never wrapped inside an amount, such as `p99 1
min 21 s`. A location may be in a document that consists of several files, such as the parts of a rotated log.
"""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_HOUR, NS_PER_MINUTE, NS_PER_MS, NS_PER_SECOND

_EPOCH = datetime(1970, 1, 1)  # UTC
_YEAR_SECONDS = 365.25 * 86_400
_ROUGH_UNITS = ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h"), (3 * _YEAR_SECONDS, 86_400, "days"))
"""For each unit: the number of seconds up to which it is used, its seconds, and its name."""
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Unicode categories that control a terminal or are invisible: controls, bidi and zero-width marks, surrogates."""


def safe(text: str) -> str:
    r"""Text from a log, a path or an argument, with everything that could act on a terminal or hide shown as an
    escape: `\x1b`, `\u202e`, `\n`. Never longer than one line."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def safe_lines(text: str) -> str:
    """Return text as by `safe`, line by line: for messages of this program with several lines."""
    return "\n".join(safe(line) for line in text.split("\n"))


def well_formed(text: str) -> str:
    """Return the text with lone surrogates replaced by U+FFFD, so that it can be encoded."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shorten(text: str, width: int, ellipsis: str = "…") -> str:
    """Return at most `width` characters; the middle of longer texts is cut."""
    if len(text) <= width:
        return text
    room = max(width - len(ellipsis), 2)
    head = (room + 1) // 2
    return text[:head] + ellipsis + text[len(text) - (room - head) :]


def plural(count: float, noun: str) -> str:
    """Return a count with its noun: `1 attempt`, `2 attempts`."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def number(value: float) -> str:
    """Return a count: integers exactly, other numbers with few digits."""
    return str(int(value)) if value == int(value) else f"{value:.6g}"


def duration(ns: int) -> str:
    """Return a duration in two units at most: `4 d 05 h` (from 100 h on), `2 h 05 min`, `3 min 20 s`, `12.3 s`, `850
    ms`."""
    if ns < 0:
        return "-" + duration(-ns)
    if ns < 999_500_000:
        return _milliseconds(ns)
    if ns < NS_PER_MINUTE - 50 * NS_PER_MS:
        seconds = ns / NS_PER_SECOND
        return f"{seconds:.1f} s" if seconds >= 9.995 else f"{seconds:.2f} s"
    if ns < NS_PER_HOUR - NS_PER_SECOND // 2:
        minutes, seconds = divmod(_rounded(ns, NS_PER_SECOND), 60)
        return f"{minutes} min {seconds:02d} s"
    if ns < 100 * NS_PER_HOUR - NS_PER_MINUTE // 2:
        hours, minutes = divmod(_rounded(ns, NS_PER_MINUTE), 60)
        return f"{hours} h {minutes:02d} min"
    days, hours = divmod(_rounded(ns, NS_PER_HOUR), 24)
    return f"{days} d {hours:02d} h"


def tenths(number: float) -> str:
    """Return a number with one decimal, or two significant digits below 1, so that nonzero values are never 0.
    `17,831.0`, `0.03`, `0`."""
    if number and abs(number) < _LEAST_TENTH:
        return f"{number:.2g}" if abs(number) >= _LEAST_SHOWN else f"<{_LEAST_SHOWN}"
    return f"{number:,.1f}"


_LEAST_TENTH, _LEAST_SHOWN = 0.095, 0.001


def duration_of_seconds(seconds: float) -> str:
    """Return a duration in seconds in the form of `duration`."""
    return duration(round(seconds * 1e9))


def rough_duration(ns: float) -> str:
    """Return a duration rounded to one unit, for a sentence: `12.5 s`, `25 min`, `3.2 h`, `40 days`, `55 years`."""
    seconds = abs(ns) / NS_PER_SECOND
    for limit, unit, name in _ROUGH_UNITS:
        if seconds < limit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / _YEAR_SECONDS:.3g} years"


def change(ns: int) -> str:
    """Return a gained or lost duration: `+3 min 20 s`, `-12.3 s`, `0 s`."""
    return f"+{duration(ns)}" if ns > 0 else duration(ns)


def points(value: float) -> str:
    """Return gained or lost percentage points: `+1.25`, `-0.50`; `-<0.01` for tiny nonzero values."""
    if not math.isfinite(value):
        return "n/a"
    if value == 0:
        return "0.00"
    sign = "+" if value > 0 else "-"
    return f"{sign}<0.01" if abs(value) < 0.005 else f"{value:+.2f}"


def as_typed(ns: int) -> str:
    """Return a duration exactly, as typed by a person: `1h30m`; `1m30s` for `90s`."""
    rest, parts = ns, []
    for unit, name in ((NS_PER_DAY, "d"), (NS_PER_HOUR, "h"), (NS_PER_MINUTE, "m")):
        count, rest = divmod(rest, unit)
        parts += [f"{count}{name}"] if count else []
    return "".join(parts + ([f"{seconds_text(rest)}s"] if rest or not parts else []))


def exact(value: float) -> str:
    """Return a number that reads back as the same float: `120`, `0.002569`."""
    return repr(float(value)).removesuffix(".0")


def seconds_text(ns: int) -> str:
    """Return exact seconds without superfluous zeros: `12000`, `5.299`."""
    sign, (whole, rest) = "-" if ns < 0 else "", divmod(abs(ns), NS_PER_SECOND)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{sign}{whole}{fraction}"


def percent(value: float, decimals: int = 2) -> str:
    """Return `50.00 %`, or `<0.01 %` and `>99.99 %` for values that only round to 0 or 100."""
    if not math.isfinite(value):
        return "n/a"
    least = 10.0**-decimals
    if 0 < abs(value) < least / 2:
        return f"{'-' if value < 0 else ''}<{least:.{decimals}f} %"
    if 100 - least / 2 <= value < 100:
        return f">{100 - least:.{decimals}f} %"
    return f"{value:.{decimals}f} %"


def telling_decimals(value: float, limit: float) -> int:
    """Return the number of decimals, at least two, that show on which side of the limit the value is."""
    for decimals in range(2, 17):
        shown, edge = round(value, decimals), limit
        if value == limit or (shown != edge and (shown < edge) == (value < edge)):
            return decimals
    return 17


def iso(ns: int) -> str:
    """Return a time as ISO 8601 in UTC with `Z` and 0, 3, 6 or 9 fractional digits, as few as are exact."""
    seconds, rest = divmod(ns, NS_PER_SECOND)
    moment = (_EPOCH + timedelta(seconds=seconds)).isoformat()
    digits = f"{rest:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{moment}.{digits}Z" if digits else f"{moment}Z"


def iso_to_the_second(ns: int) -> str:
    """Return a time as ISO 8601 in UTC with `Z`, cut to whole seconds."""
    return iso(ns - ns % NS_PER_SECOND)


def iso_of_nine_digits(ns: int) -> str:
    """Return a time as ISO 8601 in UTC with `Z` and nine fractional digits, which sorts like the times."""
    return f"{iso_to_the_second(ns)[:-1]}.{ns % NS_PER_SECOND:09d}Z"


def clock(ns: int) -> tuple[str, str]:
    """Return date and time of day (UTC, to the second) for people."""
    day, _, time = iso_to_the_second(ns).removesuffix("Z").partition("T")
    return day, time


def period(start_ns: int, end_ns: int, dash: str = "-") -> str:
    """Return a period: `2026-01-31 10:00:00 - 13:20:00 UTC`. The second date is left out if equal."""
    (first_day, first), (last_day, last) = clock(start_ns), clock(end_ns)
    until = last if first_day == last_day else f"{last_day} {last}"
    return f"{first_day} {first} {dash} {until} UTC"


def finite(value: float | None) -> float | None:
    """Return the number, or None for NaN and infinities, which JSON cannot contain."""
    return value if value is not None and math.isfinite(value) else None


def _visible(char: str) -> str:
    if char.isprintable() and unicodedata.category(char) not in _UNSEEN:
        return char
    if unicodedata.category(char) == "Zs":
        return char
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _milliseconds(ns: int) -> str:
    if ns == 0:
        return "0 s"
    if ns < 1000:
        return "<0.001 ms"
    return f"{ns / NS_PER_MS:.3g} ms"


def _rounded(ns: int, unit: int) -> int:
    """Return `ns / unit` rounded to the nearest integer, halves up."""
    return (ns + unit // 2) // unit


_ALIKE, _SLIP = 0.6, 0.2
_LIKELIEST = 2


def likeliest(name: str, known: Iterable[str]) -> list[str]:
    """Return at most two of the known names, the most likely first.

    Names that contain the name as a word come first, then names that begin with it, then names with a similar spelling.
    Case, `-` and `_` make no difference.
    """
    names = {_plain(one): one for one in known}
    words = _plain(name)
    if not words:
        return []
    held = [one for one in names if f" {words} " in f" {one} "]
    begun = [one for one in names if one.startswith(words)]
    spelled = difflib.get_close_matches(words, names, n=_LIKELIEST, cutoff=_ALIKE)
    alike = [one for one in spelled if one not in held]
    if alike and (best := likeness(words, alike[0])) > _ALIKE + _SLIP:  # a typing error rather than half a name
        held = [alike[0], *held]
        alike = [one for one in alike[1:] if likeness(words, one) > best - _SLIP]
    return [names[one] for one in dict.fromkeys((*held, *begun, *alike))][:_LIKELIEST]


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return `did you mean A or B?`; `otherwise` without a suggestion."""
    close = likeliest(name, known)
    return f"did you mean {' or '.join(close)}?" if close else otherwise


def _plain(name: str) -> str:
    return " ".join(re.split(r"[\s_.:-]+", name.strip().lower()))


def likeness(one: str, other: str) -> float:
    """Return the similarity of two spellings, 0 to 1."""
    return difflib.SequenceMatcher(None, one, other).ratio()


_TOGETHER = re.compile(
    r"(?<=\d) (?=[a-z%]|UTC\b)"  # a number and its unit
    r"|(?<=\d h) (?=\d\d min)|(?<=\d d) (?=\d\d h)|(?<=\d min) (?=\d\d s)"  # two units
    r"|(?<=\b(?:p90|p99)) (?=\d)|(?<=\bmean) (?=\d)|(?<=\bmedian) (?=\d)|(?<=\bideal) (?=\d)|(?<=\bMTBF) (?=\d)"
    r"|(?<=\d\d\d\d-\d\d-\d\d) (?=\d\d:\d\d)"  # a date and its time
)


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Return lines of at most `width` columns, indented after the first. A longer word is cut."""
    spans = wrap_spans(text, width, len(indent))
    return [text[start:end] if at == 0 else indent + text[start:end] for at, (start, end) in enumerate(spans)]


def wrap_spans(text: str, width: int, indent: int = 0) -> list[tuple[int, int]]:
    """Return begin and end of each line in a text, without the blanks between them."""
    if text_width(text) <= width:
        return [(0, len(text))]
    kept = {match.start() for match in _TOGETHER.finditer(text)}
    spans: list[tuple[int, int]] = []
    start = end = 0
    for word in _words(text, kept):
        room = max(width - (indent if spans else 0), 1)
        if end > start and text_width(text[start : word[1]]) > room:
            spans.append((start, end))
            start, room = word[0], max(width - indent, 1)
        end = word[1]
        while text_width(text[start:end]) > room:
            cut = _cut(text, start, room)
            spans.append((start, cut))
            start, room = cut, max(width - indent, 1)
    return [*spans, (start, end)]


def text_width(text: str) -> int:
    """Return the number of terminal columns; wide characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _words(text: str, kept: set[int]) -> list[tuple[int, int]]:
    """Return begin and end of words. A leading blank belongs to the first one; `kept` blanks are inside a word."""
    blanks = [one.span() for one in re.finditer(r" +", text) if one.start() not in kept and one.start() > 0]
    starts, ends = [0, *(end for _, end in blanks)], [*(start for start, _ in blanks), len(text)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if end > start]


def _cut(text: str, start: int, room: int) -> int:
    end = start + 1
    while end < len(text) and text_width(text[start : end + 1]) <= room:
        end += 1
    return end


class FilePart(NamedTuple):
    """Consecutive lines of a document that are in one file."""

    first: int
    """Number of the first of them in the document, from 1."""
    file: str
    line: int
    """Number of that line in the file."""


class JoinedName(str):
    """The name of a document that consists of several files; as a string, the name that one file would have."""

    def __init__(self, _: str) -> None:
        self.parts: list[FilePart] = []
        """In order of their lines."""

    def place(self, line: int) -> tuple[str, int]:
        """Return the file and the line in it of a line of the document."""
        if not self.parts:
            return str(self), line
        part = self.parts[max(bisect_right(self.parts, line, key=lambda one: one.first) - 1, 0)]
        return part.file, line - part.first + part.line if line > 0 else line

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of the files, in order."""
        return tuple(dict.fromkeys(one.file for one in self.parts)) or (str(self),)


def place_of(source: str, line: int) -> tuple[str, int]:
    """Return the file that contains a line of a source, and its number there."""
    return source.place(line) if isinstance(source, JoinedName) else (source, line)


def file_line(source: str, line: int) -> str:
    """Return `file:line` of a line of a source."""
    file, line = place_of(source, line)
    return f"{file}:{line}"


def files_of(sources: Iterable[str]) -> tuple[str, ...]:
    """Return the files of some sources."""
    every = (one.files if isinstance(one, JoinedName) else (one,) for one in sources)
    return tuple(file for files in every for file in files)

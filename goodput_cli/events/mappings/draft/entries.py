"""What a log says, taken apart: its lines, JSON objects or rows of a table as entries with a time, and those that
differ in their values only as groups with columns."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from sys import intern
from typing import Any

from goodput_cli.events.mappings.draft.words import EPOCH, STEP, plain, unit_of
from goodput_cli.events.mappings.times import pattern_of, read_time
from goodput_cli.events.text.date_places import DatePlace, place_of_date
from goodput_cli.events.text.digit_values import has_digits, masked
from goodput_cli.events.text.log_lines import BadValueError
from goodput_cli.events.text.stamps import (
    AMERICAN_STAMP,
    DATED,
    HEAD,
    Stamp,
    StampError,
    Zone,
    bare,
    placed_stamp,
    with_days,
    with_years,
)
from goodput_cli.events.values import clock_seconds, decimal
from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_SECOND

_FORMATS = (
    "%d/%m/%Y %H:%M:%S", "%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%H:%M:%S", "%d-%b-%Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y", "%b %d %Y %H:%M:%S", "%b %d, %Y %H:%M:%S", "%d %b %Y %H:%M:%S", "%m/%d/%y %H:%M:%S",
    "%d/%m/%y %H:%M:%S", "%y/%m/%d %H:%M:%S", "%Y.%m.%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y%m%d %H:%M:%S",
    "%Y%m%d-%H:%M:%S", "%Y-%m-%d:%H:%M:%S", "%Y%m%d-%H%M%S", "%m/%d/%Y %I:%M:%S %p", "%Y-%m-%d,%H:%M:%S",
    "%b %d %H:%M:%S", "%m-%d %H:%M:%S", "%m/%d %H:%M:%S", "%d/%m %H:%M:%S", "[%m%d %H:%M:%S @",
)  # fmt: skip
"""Stamps that logs are not searched for, the likeliest first."""
_SINCE = 1_388_534_400 * NS_PER_SECOND
"""2014: two digits that would be an earlier year are the day or the month."""
UNIX_TIME = re.compile(r"(?<![\w.])1[4-9]\d{8}(?:\d{3})?(?:\.\d{1,9})?(?![\w.])")
_MAY_HAVE_TIME = re.compile(r"\d:\d\d|\d{6}", re.ASCII)
_FAR_BACK = 600 * NS_PER_SECOND
_TRIED, LONGEST, _BEFORE, _SHARE = 400, 600, 40, 0.2
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
_TOKEN = re.compile(
    rf"(?P<stamp>{re.sub(r'[?]P<[a-z]+>', '?:', DATED.pattern)})"
    r"|(?P<quoted>(?<!\w)\"(?![-+.\d]+\")[^\"]{0,200}\"(?!:)|'[^']{0,200}')"
    r"|(?P<hex>0x[0-9a-fA-F]+|(?<![\w])(?=[0-9a-f]{7})(?=[0-9a-f-]{0,64}\d)(?=[0-9a-f-]{0,64}[a-f])"
    r"[0-9a-f]{7,}(?:-[0-9a-f]{4,})*(?!\w))"
    r"|(?P<clock>(?<![\w:])(?:(?:\d+:)?\d{1,2}:\d\d(?:\.\d+)?"
    r"|\d{1,4}d \d{1,2}h(?: \d{1,2}m(?: \d{1,2}s)?)?|\d{1,4}h \d{1,2}m(?: \d{1,2}s)?|\d{1,4}m \d{1,2}s)(?![\w:]))"
    r"|(?P<number>(?:(?<![\w.)\]])[+-](?=\d)|(?<![A-Za-z.])|(?<=step)|(?<=iter)|(?<=epoch)|(?<=ckpt))"
    r"(?:\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\d.]*\.\d)|nan\b|inf\b))",
    re.ASCII,
)
"""What differs from line to line."""
_OF_DIGITS = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T ]|\dx", re.ASCII)
"""Texts that are a token only with some digits: those that may be a date or a hexadecimal number."""
_MOST_SHAPES = 8192
_COUNTED = re.compile(r"\s?(epoch|batch|iter|step|it)s?\b(?!/s)")
"""A word directly behind a number that says what it counts, as in `3epoch`, if no word before does."""
_OF = re.compile(r"(?:it|iter|step|batch)?s? ?(?:/|of) ?")
_FILLING = re.compile(r"[\s.=#█▏▎▍▌▋▊▉━╸╺>-]+")
"""What fills up a line or a progress bar, as much of it as there is room."""
_JOINED_BEHIND = re.compile(r"[A-Za-z]{1,2}\b|_|-(?=\w)|\.\w|/\w")
_NAMED = re.compile(r"(?:step|iter|iteration|epoch|ckpt|checkpoint)[-_=]?0*$", re.IGNORECASE)
_NO_VALUES: Mapping[str, Any] = {}


@dataclass(eq=False, slots=True)
class Entry:
    """A line, a state of a progress bar, or a record."""

    place: int
    """Its number in the log, from 0."""
    line: str
    """As it stands in the log: what a sample holds; of a row of a table the JSON object that it is."""
    where: str
    """FILE:LINE."""
    text: str = ""
    """Without prefixes of launchers."""
    begin: int = 0
    """Where the message begins in the text, behind its stamp, level and logger."""
    ns: int | None = None
    """Its time, as written; None: it has none."""
    process: str = ""
    """Its file, and the rank or pod that prefixes name."""
    span: tuple[int, int] | None = None
    """Where its time stands in the text."""
    values: Mapping[str, Any] = field(default_factory=lambda: _NO_VALUES)
    """Of a record, by path."""

    @property
    def message(self) -> str:
        """What was said."""
        return self.text[self.begin :]


@dataclass(frozen=True)
class ValueColumn:
    """The values that one place of similar lines, or one key of similar records, holds."""

    name: str
    """The words that may be its name."""
    texts: Sequence[str]
    unit: tuple[str, bool] | None = None
    """Of a time, and whether it is that of one step."""
    of: int | None = None
    """The column that says of how many it is one: `3/100`."""
    counts: bool = True
    """Whether it may count something: no clock, and no percentage."""
    is_elapsed: bool = False
    joined: bool = False
    """Whether it is a part of a word or path, as in `exp-16`: a name, until something proves that it is a number."""
    path: str = ""
    """Of a key."""

    @cached_property
    def whole(self) -> list[int] | None:
        """As whole numbers; None if some are none."""
        found = [text.replace(",", "") for text in self.texts]
        if not all(re.fullmatch(r"\+?\d{1,15}(?:\.0+)?", text) for text in found):
            return None
        return [int(float(text)) for text in found]

    @cached_property
    def numbers(self) -> list[float]:
        """As numbers, a clock such as 1:02:03 in seconds; what is none as nan."""
        return [_number(text) for text in self.texts]

    @property
    def is_step_time(self) -> bool:
        """Whether it is the time of one step by its unit."""
        return self.unit is not None and self.unit[1]


@dataclass(eq=False)
class Group:
    """Entries that differ in their values only."""

    entries: list[Entry]
    columns: list[ValueColumn]
    about: str
    """What is said, in small letters."""
    tokens: tuple[re.Match[str], ...] = ()
    """What differs in the first line of text."""
    where: str = ""
    """What tells records from others, as TOML."""
    only: tuple[int, str] | None = None
    """The column that says the same in all of them, and else in other lines alike."""

    @property
    def first(self) -> Entry:
        return self.entries[0]

    @property
    def places(self) -> list[int]:
        return [one.place for one in self.entries]

    def of_one(self, at: int) -> Group | None:
        """Those of which a column says what it says most often, where that is of half of them at least; None: all."""
        text, count = Counter(self.columns[at].texts).most_common(1)[0]
        if not self.tokens or not len(self.entries) / 2 <= count < len(self.entries):
            return None
        rows = [row for row, one in enumerate(self.columns[at].texts) if one == text]
        columns = [replace(one, texts=[one.texts[row] for row in rows]) for one in self.columns]
        entries = [self.entries[row] for row in rows]
        tokens = tuple(_TOKEN.finditer(entries[0].text, entries[0].begin))
        return Group(entries, columns, self.about, tokens, only=(at, text))


@dataclass(frozen=True)
class Log:
    """A log taken apart."""

    entries: list[Entry]
    groups: list[Group]
    """The most frequent first."""
    top: tuple[str, ...] = ()
    """Keys of its mapping, as TOML."""
    beside: tuple[str, ...] = ()
    """Keys of each of its rules."""
    time: str = ""
    """The key of a record's time."""
    records: bool = False
    assumed: tuple[str, ...] = ()
    """What the parting of it rests on."""

    @cached_property
    def window(self) -> int:
        """ns between the first and the last time."""
        times = [one.ns for one in self.entries if one.ns is not None]
        return max(times) - min(times) if times else 0

    @property
    def jumps_back(self) -> list[Entry]:
        """Entries whose time is far before that of the one before in their file."""
        timed = [one for one in self.entries if one.ns is not None]
        pairs = ((a, b) for a, b in pairwise(timed) if a.process == b.process)
        return [b for a, b in pairs if (a.ns or 0) - (b.ns or 0) > _FAR_BACK]


def quoted(text: str) -> str:
    """A text as TOML: literal where it can be."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in escaped) + '"'


def log_of_text(lines: Sequence[tuple[str, str]], changed: int, *, split: bool) -> Log:
    """A log of lines, each with its FILE:LINE. changed: when its file was last written to (ns). split: whether what a
    carriage return overwrote counts too."""
    states = [(where, [one for one in text.split("\r") if one.strip()]) for where, text in lines]
    parts = [(where, part) for where, some in states for part in (some if split else some[-1:])]
    clock = _clock_of([bare(text).text for _, text in [*parts[:_TRIED], *parts[-_TRIED:]]], changed)
    entries = text_entries(((where, part, part) for where, part in parts), clock, changed)
    top = [f"time = {{ format = {quoted(clock)} }}"] if clock not in ("", "epoch") else []
    top += ['split = "\\r"             # each state of a progress bar counts'] if split else []
    return Log(entries, text_groups(entries), tuple(top))


def text_entries(texts: Iterable[tuple[str, str, str]], clock: str, changed: int) -> list[Entry]:
    """Texts as entries, without those that are blank behind their prefixes. texts: each with its FILE:LINE and the line
    that it stands in. clock: how its times are written."""
    entries: list[Entry] = []
    dates = _Dates(clock)
    timed: list[tuple[Entry, Stamp]] = []
    for place, (where, line, said) in enumerate(texts):
        taken = bare(said[:LONGEST])
        text = taken.text.rstrip()
        if not text:
            continue
        stamp, span, begin = dates.read(text)
        process = intern(where.rpartition(":")[0] + (f" {taken.stream}" if taken.stream else ""))
        entries.append(Entry(place, line, where, text, begin, process=process, span=span))
        stamp = taken.collected or stamp
        if stamp is not None:
            timed.append((entries[-1], stamp))
    stamps: Sequence[Stamp] = with_years([stamp for _, stamp in timed], changed)
    if any(stamp.zone is Zone.DAYLESS for stamp in stamps):
        stamps, _ = with_days(stamps, changed, None, None)
    for (one, _), stamp in zip(timed, stamps, strict=True):
        one.ns = stamp.ns
    return entries


class _Dates:
    """Reads the times of texts, those of one template at the same place."""

    def __init__(self, clock: str) -> None:
        self._clock = clock
        self._known: dict[str, tuple[DatePlace | None, int]] = {}
        """By masked text, the place of its date, and where its message begins."""

    def read(self, text: str) -> tuple[Stamp | None, tuple[int, int] | None, int]:
        """Return the stamp of a text, where it stands, and where the message begins."""
        key = masked(text)
        place, begin = self._known.get(key, (None, 0))
        stamp = None if place is None or place.at < 0 else place.read_here(text)
        if place is not None and stamp is not None:
            return stamp, (place.at, place.end), begin
        stamp, span = _read(text, self._clock) or (None, None)
        begin = _message(text, span)
        if not self._clock and span is not None:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            self._known[key] = place_of_date(text), begin
        return stamp, span, begin


def _message(text: str, span: tuple[int, int] | None) -> int:
    """Where the message begins, behind a stamp, a level and a logger."""
    begin = span[1] if span is not None and span[0] < _BEFORE else 0
    header = _HEADER.match(text, begin)
    begin = header.end() if header is not None and header.end() < len(text) else begin
    return begin - (text[begin - 1 : begin] == "[" and text[begin].isdigit())  # `[100] loss=…`: the bracket tells


def _read(text: str, clock: str) -> tuple[Stamp, tuple[int, int]] | None:
    """The stamp of a text, and where it stands. clock: how it is written; "": as every log is searched for it."""
    try:
        if not clock:
            return placed_stamp(text)
        pattern, head = (UNIX_TIME, _BEFORE) if clock == "epoch" else (pattern_of(clock), HEAD)
        found = pattern.search(text, 0, head)
        if found is None:
            return None
        stamp = read_time(found[0], epoch_format(found[0]) if clock == "epoch" else clock)
    except (StampError, BadValueError):
        return None
    return None if "%y" in clock and stamp.ns < _SINCE else (stamp, found.span())


def epoch_format(text: str) -> str:
    """How a time since 1970 is written."""
    return "epoch_ms" if len(text.partition(".")[0]) > 10 else "epoch_s"


def _clock_of(texts: Sequence[str], changed: int) -> str:
    """The clock that most of the first lines have: of several, that which goes forward, and ends before the file was
    last written to. texts: the first and the last lines."""
    tried = texts[:_TRIED]
    may_have = [text for text in tried if _MAY_HAVE_TIME.search(text)]
    is_plain = not any(AMERICAN_STAMP.search(text, 0, _BEFORE) for text in may_have)
    counts = {"": sum(_read(text, "") is not None for text in may_have)}
    if is_plain and counts[""] == len(may_have):
        return ""
    counts |= {clock: sum(_read(text, clock) is not None for text in may_have) for clock in (*_FORMATS, "epoch")}
    most = max(counts.values())
    fitting = [clock for clock, count in counts.items() if count == most]
    if most < _SHARE * min(len(tried), 20) or (is_plain and "" in fitting):
        return ""

    def against(clock: str) -> tuple[int, bool]:
        times = [one[0].ns for one in (_read(text, clock) for text in texts) if one is not None]
        dated = not clock or "%Y" in clock or "%y" in clock
        return sum(b < a for a, b in pairwise(times)), dated and max(times) > changed + NS_PER_DAY

    return min(fitting, key=against)


def text_groups(entries: Iterable[Entry]) -> list[Group]:
    """Entries that differ in their values only, together."""
    found: dict[str, tuple[list[Entry], list[tuple[str, ...]]]] = {}
    shapes = _Shapes()
    for one in entries:
        key, values = shapes.shape_of(one)
        rows, texts = found.setdefault(key, ([], []))
        rows.append(one)
        texts.append(values)
    groups = []
    for rows, texts in sorted(found.values(), key=lambda group: -len(group[0])):
        tokens = tuple(_TOKEN.finditer(rows[0].text, rows[0].begin))
        columns = [_column(rows[0], tokens, at, values) for at, values in enumerate(zip(*texts, strict=True))]
        groups.append(Group(rows, columns, plain(rows[0].message), tokens))
    return groups


class _Shapes:
    """Takes lines apart, those of one template at the same places."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[str, list[slice]]] = {}
        """By begin and masked text."""

    def shape_of(self, one: Entry) -> tuple[str, tuple[str, ...]]:
        """Return what `_shape` returns."""
        known = self._known.get((one.begin, masked(one.text)))
        if known is not None:
            return known[0], tuple([one.text[place] for place in known[1]])
        key, values = _shape(one)
        if not has_digits(key) and not _OF_DIGITS.search(one.text, one.begin):
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            places = [slice(*match.span()) for match in _TOKEN.finditer(one.text, one.begin)]
            self._known[one.begin, masked(one.text)] = key, places
        return key, values


def _shape(one: Entry) -> tuple[str, tuple[str, ...]]:
    """What is the same in all lines that differ in their values only, and these values."""
    parts: list[str] = []
    values: list[str] = []
    text, place = one.text, one.begin
    for match in _TOKEN.finditer(text, place):
        begin, end = match.span()
        parts += text[place:begin], "\0", match.lastgroup or "", "\0"
        values.append(match[0])
        place = end
    parts.append(text[place:])
    return _FILLING.sub(" ", "".join(parts)), tuple(values)


def _column(one: Entry, tokens: Sequence[re.Match[str]], at: int, texts: Sequence[str]) -> ValueColumn:
    """The values of a place, with what the text around the first says of them."""
    token, text = tokens[at], one.text
    before = text[tokens[at - 1].end() if at else one.begin : token.start()]
    after = text[token.end() : tokens[at + 1].start() if at + 1 < len(tokens) else len(text)]
    is_number, is_total = token.lastgroup == "number", before.strip() in ("/", "of")
    is_of = at + 1 < len(tokens) and _OF.fullmatch(after) is not None
    label = _label(one, tokens, at)
    said = _COUNTED.match(after) if is_number and not (STEP.search(label) or EPOCH.search(label)) else None
    head = text[: token.start()].rpartition(" ")[2]
    joined = head.endswith("/") or (head.endswith(("-", "_")) and _ends_in_a_name(head[:-1]))
    joined = joined or bool(_JOINED_BEHIND.match(after) and not said)
    return ValueColumn(
        "total" if is_total else said[1] if said is not None else label,
        texts,
        unit_of(before, after) if is_number and not is_total else None,
        of=at + 1 if is_number and is_of else None,
        counts=is_number and not after.startswith("%"),
        is_elapsed=token.lastgroup == "clock" and (after.startswith("<") or "elapsed" in before.lower()),
        joined=is_number and joined and not (is_total or is_of) and not ("/" not in head and _NAMED.search(head)),
    )


def _ends_in_a_name(text: str) -> bool:
    """Whether the word at the end of a text has a letter."""
    return any(map(str.isalpha, re.split(r"[^\w.-]", text)[-1]))


def _label(one: Entry, tokens: Sequence[re.Match[str]], at: int) -> str:
    """The words before a token that may be its name; those before the digits of a name such as `acc-5`, which is no
    number of its own."""
    before = one.text[tokens[at - 1].end() if at else one.begin : tokens[at].start()]
    if at and not before.strip(" :=|,"):
        earlier = one.text[tokens[at - 2].end() if at > 1 else one.begin : tokens[at - 1].start()]
        if re.search(r"[A-Za-z][-@]$", earlier):
            return _label(one, tokens, at - 1)
    words = re.findall(r"[A-Za-z]+", without_secrets(before).replace("_", " "))
    return " ".join(words[-3:]).lower()


def _number(text: str) -> float:
    value = clock_seconds(text)
    value = decimal(text.replace(",", "")) if value is None else value
    return math.nan if value is None else value

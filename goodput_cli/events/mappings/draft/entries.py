"""What a log says, taken apart: its lines, JSON objects or rows of a table as entries with a time, and those that
differ in their values only as groups with columns."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from sys import intern
from typing import Any, NamedTuple

from goodput_cli.events.documents import cells
from goodput_cli.events.mappings.times import find_time, pattern_of, read_time
from goodput_cli.events.text.log_lines import BadValueError
from goodput_cli.events.text.stamps import (
    AMERICAN_STAMP,
    DATED,
    HEAD,
    Stamp,
    StampError,
    Zone,
    bare,
    in_latest_year,
    placed_stamp,
)
from goodput_cli.events.values import number
from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_SECOND

FORMATS = (
    "%d/%m/%Y %H:%M:%S", "%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%H:%M:%S", "%d-%b-%Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y", "%b %d %Y %H:%M:%S", "%b %d, %Y %H:%M:%S", "%d %b %Y %H:%M:%S", "%m/%d/%y %H:%M:%S",
    "%d/%m/%y %H:%M:%S", "%y/%m/%d %H:%M:%S", "%Y.%m.%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y%m%d %H:%M:%S",
    "%Y%m%d-%H:%M:%S", "%Y%m%d-%H%M%S", "%m/%d/%Y %I:%M:%S %p", "%Y-%m-%d,%H:%M:%S", "%b %d %H:%M:%S",
    "%m-%d %H:%M:%S", "%m/%d %H:%M:%S", "%d/%m %H:%M:%S",
)  # fmt: skip
"""Stamps that logs are not searched for, the likeliest first."""
_SINCE = 1_388_534_400 * NS_PER_SECOND
"""2014: two digits that would be an earlier year are the day or the month."""
UNIX_TIME = re.compile(r"(?<![\w.])1[4-9]\d{8}(?:\d{3})?(?:\.\d{1,9})?(?![\w.])")
_FAR_BACK = 600 * NS_PER_SECOND
_TRIED, _LONGEST, _BEFORE, _SHARE = 400, 600, 40, 0.2
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
    r"|(?P<clock>(?<![\w:])(?:\d+:)?\d{1,2}:\d\d(?:\.\d+)?(?![\w:]))"
    r"|(?P<number>(?:(?<![\w.)\]])[+-](?=\d)|(?<![A-Za-z.])|(?<=step)|(?<=iter)|(?<=epoch)|(?<=ckpt))"
    r"(?:\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\d.]*\.\d)|nan\b|inf\b))",
    re.ASCII,
)
_CLOCK = re.compile(r"(?:(?:(\d+) ?d(?:ays?)?,? )?(\d+):)?(\d{1,2}):(\d\d(?:\.\d{1,9})?)", re.ASCII)
_COUNTED = re.compile(r"\s?(epoch|batch|iter|step|it)s?\b(?!/s)")
"""A word directly behind a number that says what it counts, as in `3epoch`."""
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
    text: str
    """Without prefixes of launchers."""
    begin: int
    """Where the message begins in the text, behind its stamp, level and logger."""
    ns: int | None
    """Its time, as written; None: it has none."""
    where: str
    """FILE:LINE."""
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


class Token(NamedTuple):
    """What differs from line to line."""

    kind: str
    text: str
    begin: int
    end: int


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


@dataclass(eq=False)
class Group:
    """Entries that differ in their values only."""

    entries: list[Entry]
    columns: list[ValueColumn]
    about: str
    """What is said, in small letters."""
    tokens: tuple[Token, ...] = ()
    """Of the first line of text."""
    where: str = ""
    """What tells records from others, as TOML."""

    @property
    def places(self) -> list[int]:
        return [one.place for one in self.entries]


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


def plain(text: str) -> str:
    """Small letters, with blanks for all that parts words."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", text)
    return re.sub(r"[\s_./:=\\-]+", " ", apart).lower().strip()


def quoted(text: str) -> str:
    """A text as TOML: literal where it can be."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in escaped) + '"'


Units = Callable[[str, str], tuple[str, bool] | None]
"""The unit of a number by the text before it and behind it, or of a key (behind it ""), and whether of one step."""


def taken_apart(lines: Sequence[tuple[str, str]], units: Units, changed: int, *, split: bool = False) -> Log:
    """A log of lines, each with its FILE:LINE. changed: when its file was last written to (ns). split: whether what a
    carriage return overwrote counts too."""
    lines = [(where, text) for where, text in lines if text.strip()]
    rows = None if split else _records(lines) or _table(lines)
    if rows is None:
        return _of_text(lines, units, changed, split)
    top, entries = rows
    time = _time_key(entries)
    if time is not None:
        path, written = time
        top += [f'time = {{ format = "{written}" }}'] if written else []
        for one in entries:
            one.ns = _ns(one.values.get(path), written)
    message = _message_key(entries)
    if message is not None:
        return _of_messages(entries, message, time, units, top, changed)
    rank = _rank_key(entries)
    groups = _record_groups(entries, rank, time, units)
    assumed = () if rank is None else (f"of {rank[2]} processes by `{rank[0]}` the steps of {rank[1][:80]} are read",)
    return Log(entries, groups, tuple(top), (), time[0] if time else "", records=True, assumed=assumed)


def _of_text(lines: Sequence[tuple[str, str]], units: Units, changed: int, split: bool) -> Log:
    """A log of lines of text."""
    parts = [(where, part) for where, text in lines for part in _split(text)[0 if split else -1 :]]
    ends = [*parts[:_TRIED], *parts[-_TRIED:]]
    clock = _clock_of([bare(text).text for _, text in ends], changed)
    found = (_entry(at, where, part, clock, changed) for at, (where, part) in enumerate(parts))
    entries = [one for one in found if one is not None]
    _with_days(entries)
    top = [f"time = {{ format = {quoted(clock)} }}"] if clock not in ("", "epoch") else []
    top += ['split = "\\r"             # each state of a progress bar counts'] if split else []
    return Log(entries, _text_groups(entries, units), tuple(top))


def _of_messages(
    entries: list[Entry], message: str, time: tuple[str, str] | None, units: Units, top: list[str], changed: int
) -> Log:  # fmt: skip
    """A log of texts that stand in records."""
    found = []
    for one in entries:
        made = _entry(one.place, one.where, str(one.values.get(message, "")), "", changed)
        if made is not None:
            made.line, made.ns = one.line, one.ns if one.ns is not None else made.ns
            found.append(made)
    keys = {"text": message, **({"time": time[0]} if time is not None else {})}
    beside = f"keys = {{ {', '.join(f'{name} = {quoted(path)}' for name, path in keys.items())} }}"
    return Log(found, _text_groups(found, units), tuple(top), (beside,), time[0] if time else "")


def _split(text: str) -> list[str]:
    return [part for part in text.split("\r") if part.strip()]


def _entry(place: int, where: str, line: str, clock: str, changed: int) -> Entry | None:
    """A line as an entry; None for one that is blank without its prefixes."""
    taken = bare(line[:_LONGEST])
    text = taken.text.rstrip()
    if not text.strip():
        return None
    stamp, span = _read(text, clock)
    stamp = taken.collected or stamp
    if stamp is not None and stamp.zone is Zone.YEARLESS:
        stamp = in_latest_year(stamp, changed)
    begin = span[1] if span is not None and span[0] < _BEFORE else 0
    header = _HEADER.match(text, begin)
    begin = header.end() if header is not None and header.end() < len(text) else begin
    if text[begin - 1 : begin] == "[" and text[begin].isdigit():  # `[100] loss=…`: the bracket tells what is a step
        begin -= 1
    ns = None if stamp is None else stamp.ns - (NS_PER_DAY << 20 if stamp.zone is Zone.DAYLESS else 0)
    process = intern(where.rpartition(":")[0] + (f" {taken.stream}" if taken.stream else ""))
    return Entry(place, line, text, begin, ns, where, process, span)


def _with_days(entries: Sequence[Entry]) -> None:
    """Put times without a day within half a day of the time before, or of the first one that has a day."""
    dated = next((one.ns for one in entries if one.ns is not None and one.ns >= 0), None)
    before = dated
    for one in entries:
        if one.ns is None:
            continue
        if one.ns < 0:
            ns = one.ns + (NS_PER_DAY << 20)
            one.ns = ns if before is None else ns + (before - ns + NS_PER_DAY // 2) // NS_PER_DAY * NS_PER_DAY
        before = one.ns


def _read(text: str, clock: str) -> tuple[Stamp | None, tuple[int, int] | None]:
    """The stamp of a text, and where it stands. clock: how it is written; "": as every log is searched for it."""
    try:
        if clock == "epoch":
            found = UNIX_TIME.search(text, 0, _BEFORE)
            if found is None:
                return None, None
            return read_time(found[0], epoch_format(found[0])), found.span()
        if clock:
            stamp = find_time(text, clock)
            if stamp is None or ("%y" in clock and stamp.ns < _SINCE):
                return None, None
            span = pattern_of(clock).search(text, 0, HEAD)
            return stamp, None if span is None else span.span()
        return placed_stamp(text) or (None, None)
    except (StampError, BadValueError):
        return None, None


def epoch_format(text: str) -> str:
    return "epoch_ms" if len(text.partition(".")[0]) > 10 else "epoch_s"


def _clock_of(texts: Sequence[str], changed: int) -> str:
    """The clock that most of the first lines have: of several, that which goes forward, and ends before the file was
    last written to. texts: the first and the last lines."""
    tried = texts[:_TRIED]
    usual = sum(_read(text, "")[0] is not None for text in tried)
    counts = {clock: sum(_read(text, clock)[0] is not None for text in tried) for clock in (*FORMATS, "epoch")}
    most = max(counts.values())
    if most <= usual and not (most and any(AMERICAN_STAMP.search(text, 0, _BEFORE) for text in tried)):
        return ""
    if most < _SHARE * min(len(tried), 20):
        return ""
    fitting = [*([""] if usual == most else []), *(clock for clock, count in counts.items() if count == most)]

    def against(clock: str) -> tuple[int, bool]:
        read = [_read(text, clock)[0] for text in texts]
        times = [one.ns for one in read if one is not None]
        dated = not clock or "%Y" in clock or "%y" in clock
        return sum(b < a for a, b in pairwise(times)), dated and max(times) > changed + NS_PER_DAY

    return min(fitting, key=against) if len(fitting) > 1 else fitting[0]


def _text_groups(entries: Iterable[Entry], units: Units) -> list[Group]:
    found: dict[str, tuple[list[Entry], list[tuple[str, ...]]]] = {}
    for one in entries:
        key, values = _shape(one)
        rows, texts = found.setdefault(key, ([], []))
        rows.append(one)
        texts.append(values)
    groups = []
    for rows, texts in sorted(found.values(), key=lambda group: -len(group[0])):
        first = rows[0]
        tokens = tuple(
            Token(match.lastgroup or "", match[0], *match.span()) for match in _TOKEN.finditer(first.text, first.begin)
        )
        columns = [_column(first, tokens, at, values, units) for at, values in enumerate(zip(*texts, strict=True))]
        groups.append(Group(rows, columns, plain(first.message), tokens))
    return groups


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


def _column(one: Entry, tokens: Sequence[Token], at: int, texts: Sequence[str], units: Units) -> ValueColumn:
    token = tokens[at]
    begin = tokens[at - 1].end if at else one.begin
    end = tokens[at + 1].begin if at + 1 < len(tokens) else len(one.text)
    before, after = one.text[begin : token.begin], one.text[token.end : end]
    is_number = token.kind == "number"
    over = before.strip() in ("/", "of") and at > 0
    is_of = is_number and _OF.fullmatch(after) is not None and at + 1 < len(tokens) and tokens[at + 1].kind == "number"
    said = _COUNTED.match(after)
    name = "total" if over else said[1] if said is not None and is_number else _label(one, tokens, at)
    word = re.search(r"\S*$", one.text[: token.begin])
    head = word[0] if word else ""
    glued = head.endswith("/") or (head.endswith(("-", "_")) and _ends_in_a_name(head[:-1]))
    glued = glued or bool(_JOINED_BEHIND.match(after) and not said)
    glued = glued and not (over or is_of)
    return ValueColumn(
        name, texts, units(before, after) if is_number and not over else None, at + 1 if is_of else None,
        is_number and not after.startswith("%"),
        token.kind == "clock" and (after.startswith("<") or "elapsed" in before.lower()),
        is_number and glued and not (word and _NAMED.search(word[0]) and "/" not in word[0]),
    )  # fmt: skip


def _ends_in_a_name(text: str) -> bool:
    """Whether the word at the end of a text has a letter."""
    for sign in reversed(text):
        if sign.isalpha():
            return True
        if not (sign.isalnum() or sign in "._-"):
            return False
    return False


def _label(one: Entry, tokens: Sequence[Token], at: int) -> str:
    """The words before a token that may be its name; those before the digits of a name such as `acc-5`, which is no
    number of its own."""
    begin = tokens[at - 1].end if at else one.begin
    before = one.text[begin : tokens[at].begin]
    if at and not before.strip(" :=|,"):
        earlier = one.text[tokens[at - 2].end if at > 1 else one.begin : tokens[at - 1].begin]
        if re.search(r"[A-Za-z][-@]$", earlier):
            return _label(one, tokens, at - 1)
    words = re.findall(r"[A-Za-z]+", without_secrets(before).replace("_", " "))
    return " ".join(words[-3:]).lower()


def _number(text: str) -> float:
    clock = _CLOCK.fullmatch(text.strip())
    if clock is not None:
        days, hours, minutes = (int(part or 0) for part in clock.groups()[:3])
        return ((days * 24 + hours) * 60 + minutes) * 60 + float(clock[4])
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return math.nan


_DELIMITERS = ",\t;|"
_DEPTH, _KINDS, _MOST, _MOST_RANKS = 3, 40, 500, 40
_TIME_NAME = re.compile(r"\b(?:time|timestamp|ts|date|datetime|asctime|created|wall|when|t)\b")
_RANK_NAME = re.compile(r"\b(?:rank|process index|process id|worker|host|hostname|node|pid)$")
_KIND_WORDS = re.compile(
    r"\b(?:step|train\w*|iter\w*|start\w*|begin\w*|launch\w*|init\w*|sav\w+|checkpoint|ckpt|eval\w*|val\w*|test|finish\w*"
    r"|done|complete\w*|resum\w*|restor\w*|load\w*|boot)\b"
)
_TEXT_NAMES = ("message", "msg", "event", "text", "log", "body", "content")
_SIZES = ((1e18, "epoch_ns"), (1e15, "epoch_us"), (1e12, "epoch_ms"), (1e9, "epoch_s"))


def flat(record: Mapping[str, Any], above: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    """The values of a record that are no containers, by their paths."""
    for key, value in record.items():
        path = f"{above}{key}"
        if isinstance(value, Mapping) and depth > 1:
            yield from flat(value, f"{path}.", depth - 1)
        elif value is not None and not isinstance(value, list | Mapping):
            yield path, value


def _records(lines: Sequence[tuple[str, str]]) -> tuple[list[str], list[Entry]] | None:
    """The records of a log that mostly consists of JSON objects."""
    from goodput_cli.events.mappings.samples import record_of

    begun = lines[:20]
    if not begun or sum(text.lstrip().startswith("{") for _, text in begun) <= len(begun) / 2:
        return None
    found = [
        Entry(at, text, text, 0, None, where, where.rpartition(":")[0], values=dict(flat(record)))
        for at, (where, text) in enumerate(lines) if (record := record_of(text)) is not None
    ]  # fmt: skip
    return ([], found) if len(found) > len(begun) / 2 else None


def _table(lines: Sequence[tuple[str, str]]) -> tuple[list[str], list[Entry]] | None:
    """The rows of a table with a header."""
    head = lines[0][1] if lines else ""
    for delimiter in _DELIMITERS:
        columns = cells(head, delimiter)
        if len(columns) < 2 or not all(re.fullmatch(r"[A-Za-z_@][\w /.@()-]*", column) for column in columns):
            continue
        rows = [(at, where, cells(text, delimiter)) for at, (where, text) in enumerate(lines) if text != head]
        fitting = [row for row in rows if len(row[2]) == len(columns)]
        if rows and len(fitting) > 0.9 * len(rows):
            top = "csv = true" if delimiter == "," else f"csv = {{ delimiter = {quoted(delimiter)} }}"
            found = []
            for at, where, row in fitting:
                values = dict(zip(columns, row, strict=True))
                kept = {key: value for key, value in values.items() if value}
                process = where.rpartition(":")[0]
                found.append(Entry(at, json.dumps(values), "", 0, None, where, process, values=kept))
            return [top], found
    return None


def _ns(value: Any, written: str) -> int | None:
    try:
        return None if value is None else read_time(str(value), written).ns
    except (BadValueError, StampError):
        return None


def _time_key(entries: Sequence[Entry]) -> tuple[str, str] | None:
    """The key that most records have and whose values are times, and how they are written."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in entries[:_MOST]:
        for path, value in one.values.items():
            written = _written(value)
            if written is not None:
                counts[path, written] += 1
    few = min(len(entries), _MOST)
    return max(counts, key=lambda one: counts[one] + few * bool(_TIME_NAME.search(plain(one[0]))), default=None)


def _written(value: Any) -> str | None:
    """How a value that is a time is written; None if it is none."""
    size = number(value) if not isinstance(value, bool) else None
    if size is not None:
        return next((name for least, name in _SIZES if least <= size < 4 * least), None)
    if not isinstance(value, str) or not any(sign in value for sign in ":-"):
        return None
    return "" if _ns(value, "iso") is not None else None


def _message_key(entries: Sequence[Entry]) -> str | None:
    """The key of a text in which records say what they say; None: their other keys say it."""
    numbers: Counter[str] = Counter()
    texts: Counter[str] = Counter()
    for one in entries[:_MOST]:
        for path, value in one.values.items():
            if (
                isinstance(value, str)
                and _written(value) is None
                and number(value) is None
                and (" " in value or re.fullmatch(r"\d+ ?/ ?\d+", value))
            ):
                texts[path] += bool(re.search(r"\d", value)) or path.rpartition(".")[2].lower() in _TEXT_NAMES
            elif not isinstance(value, bool) and number(value) is not None and _written(value) is None:
                numbers[path] += re.search(r"step|iter|batch|epoch|update|round", path.lower()) is not None
    best = max(texts, key=lambda path: texts[path], default=None)
    if best is None or max(numbers.values(), default=0) >= 2 or 2 * texts[best] < min(len(entries), _MOST):
        return None
    return best


def _record_groups(
    entries: Sequence[Entry], rank: tuple[str, str, int] | None, time: tuple[str, str] | None, units: Units
) -> list[Group]:  # fmt: skip
    """By their kind, or else their keys. rank: the key of a process, and that of which the records are taken."""
    own = entries if rank is None else [one for one in entries if str(one.values.get(rank[0])) == rank[1]]
    kind = _kind_key(entries, time)
    groups: defaultdict[Any, list[Entry]] = defaultdict(list)
    for one in own:
        key = str(one.values.get(kind)) if kind is not None else frozenset(one.values)
        if key in groups or len(groups) < _KINDS:
            groups[key].append(one)
    found = []
    for key, rows in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        paths = [path for path in rows[0].values if all(path in one.values for one in rows)]
        conditions = [_is(rank[0], rows[0].values[rank[0]])] if rank is not None else []
        conditions += [_is(kind, rows[0].values.get(kind))] if kind is not None else _telling(key, groups)
        columns = [
            ValueColumn(plain(path.rpartition(".")[2].rpartition("/")[2]), [str(one.values[path]) for one in rows],
                   units(path, ""), path=path)
            for path in paths if time is None or path != time[0]
        ]  # fmt: skip
        where = f"{{ {', '.join(conditions)} }}" if conditions else ""
        found.append(Group(rows, columns, plain(str(key)[:_LONGEST]) if kind is not None else "", where=where))
    return found


def _telling(keys: frozenset[str], groups: Mapping[Any, object]) -> list[str]:
    """A key that records of other groups have not."""
    others = {path for other in groups if other != keys for path in other}
    telling = sorted(keys - others, key=lambda path: ("loss" not in path, path))
    return [f'{_key_of(telling[0])} = "any"'] if telling and len(groups) > 1 else []


def _is(path: str, value: Any) -> str:
    """The condition that a key has a value: a rank is a number, `true` is none."""
    return f"{_key_of(path)} = {value if type(value) is int else quoted(str(value))}"


def _key_of(path: str) -> str:
    return path if re.fullmatch(r"[A-Za-z0-9_-]+", path) else json.dumps(path)


def _kind_key(entries: Sequence[Entry], time: tuple[str, str] | None) -> str | None:
    """The key whose few values say what a record is about: no host or level, which part records and name no kinds."""
    values: defaultdict[str, Counter[str]] = defaultdict(Counter)
    some = entries[: 20 * _MOST]
    for one in some:
        for path, value in one.values.items():
            if isinstance(value, str) and _is_word(value) and len(values[path]) <= _KINDS:
                values[path][value] += 1
    said = {
        path: sum(_KIND_WORDS.search(plain(value)) is not None for value in counts)
        for path, counts in values.items()
        if 1 < len(counts) <= min(_KINDS, len(entries) / 2) and (time is None or path != time[0])
        and sum(counts.values()) >= 0.8 * len(some)
    }  # fmt: skip
    best = max(said, key=lambda path: said[path], default=None)
    return best if best is not None and said[best] else None


def _is_word(value: str) -> bool:
    """Whether a value can name a kind: no number, and none with its unit (`6.95s`)."""
    return len(value) <= 80 and not value[:1].isdigit() and number(value) is None


def _rank_key(entries: Sequence[Entry]) -> tuple[str, str, int] | None:
    """The key that says which process a record is of, where several write the same steps; the first of them, and how
    many there are."""
    for path in entries[0].values if entries else ():
        if _RANK_NAME.search(plain(path)) and all(path in one.values for one in entries[:_MOST]):
            ranks: defaultdict[str, set[str]] = defaultdict(set)
            for one in entries[:_MOST]:
                steps = (f"{key}={value}" for key, value in one.values.items() if re.search("step|iter|batch", key))
                ranks[str(one.values[path])].update(steps)
            if 1 < len(ranks) <= _MOST_RANKS and _share_most(list(ranks.values())):
                return path, min(ranks), len(ranks)
    return None


def _share_most(sets: Sequence[set[str]]) -> bool:
    """Whether most of what one says another says too."""
    shared = sum(len(a & b) for a, b in pairwise(sets))
    return 2 * shared > sum(min(len(a), len(b)) for a, b in pairwise(sets)) > 0

"""Read lines of text as entries: lines that differ only in digits are analyzed once, and their times and values are
read at the same positions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import I64, Mask, alike, blocks
from goodput_cli.events.mappings.draft.cells import Cells, parse
from goodput_cli.events.mappings.draft.clocks import clock_of, message_begin, read_clock
from goodput_cli.events.mappings.draft.entries import NO_TIME, Entries, Entry, Group, Log, ValueColumn, quoted
from goodput_cli.events.mappings.draft.lines import LogLines
from goodput_cli.events.mappings.draft.tokens import OF_DIGITS, TOKEN, column_of, shape
from goodput_cli.events.mappings.draft.words import plain
from goodput_cli.events.text.date_positions import find_date, minute_of
from goodput_cli.events.text.digit_values import has_digits
from goodput_cli.events.text.line_timestamps import PlainLine, Timestamp, Zone, strip_prefixes, with_days, with_years
from goodput_cli.events.text.lines import MASK
from goodput_cli.events.text.templates import prefix_length
from goodput_cli.vocabulary.when import NS_PER_SECOND

LONGEST = 600
"""Maximum number of characters read from a text."""
_MOST_TEMPLATES = 8192
_COLLECTED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(?P<fraction>\d{1,9}))?Z ", re.ASCII)
_COLORS = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x08")


class SourceTexts(NamedTuple):
    """Texts that are parts of bytes."""

    data: bytes
    begin: I64
    end: I64
    source: I64
    """A number for the source of each, int64[n]."""
    line: Callable[[int], tuple[str, str]]
    """Returns the whole line of a text, and its FILE:LINE."""
    key: str = ""
    """The key of the text in JSON objects or rows; "": it is a line."""


class DateBytes(NamedTuple):
    """Position of a date with its prefixes."""

    begin: int
    """-1: no text has a date."""
    fraction: int
    """Number of digits after the second."""
    end_of_collected: int
    """End of the collector's time; 0 if the date is another one."""


_NO_DATE = DateBytes(-1, 0, 0)


@dataclass(eq=False, slots=True)
class TextTemplate:
    """Texts that differ only in digits, or a single text whose digits decide how it is read."""

    key: str
    """Common part of all texts that differ only in their values."""
    cut: int
    """Bytes of the prefixes before the text."""
    length: int
    """Bytes of the text without trailing blanks."""
    begin: int
    """Characters before the message."""
    values: tuple[tuple[int, int], ...]
    """Positions of the values, in bytes from the begin of the text."""
    span: tuple[int, int] | None
    """Position of the time."""
    date: DateBytes | None
    """Position of the date; None: the time of each text is searched."""
    stream: str | None
    """Ranks and pods in the prefixes; None: each prefix is read."""
    stamp: Timestamp | None = None
    """Time of a text whose digits decide how it is read."""
    is_shared: bool = True


class TextEntries(Entries):
    """Entries that are read from bytes when they are needed."""

    def __init__(self, texts: SourceTexts, places: I64, templates: Sequence[TextTemplate], template: I64) -> None:
        super().__init__((), places, np.full(len(places), NO_TIME), np.zeros(len(places), dtype=np.int64))
        self.texts, self.templates, self.template = texts, templates, template
        cut = np.array([one.cut for one in templates], dtype=np.int64)
        self.begin: I64 = texts.begin[places] + cut[template]
        """Position in the bytes where the text of each entry begins, int64[n]."""
        self.is_long: Mask = np.zeros(len(places), dtype=np.bool_)
        """bool[n]: whether the end of the text was left out."""

    def text(self, row: int) -> str:
        """Return the text of an entry."""
        begin = int(self.begin[row])
        return self.texts.data[begin : begin + self.templates[int(self.template[row])].length].decode()

    def __getitem__(self, row: int) -> Entry:
        place, template = int(self.places[row]), self.templates[int(self.template[row])]
        line, where = self.texts.line(place)
        return Entry(place, line, where, self.text(row), template.begin, template.span)

    def containing(self, texts: Iterable[str]) -> I64:
        """Return the rows of entries that contain one of some texts, and of shortened entries, int64[n]."""
        found = self.is_long.copy()
        for text in texts:
            starts = (one.start() for one in re.finditer(re.escape(text.encode()), self.texts.data))
            places = np.fromiter(starts, dtype=np.int64)
            found[np.maximum(np.searchsorted(self.begin, places, side="right") - 1, 0)] = True
        return np.flatnonzero(found)

    def cells(self, rows: I64, spans: I64) -> Cells:
        """Return parts of the texts of some entries. spans: byte ranges in the texts, int64[n, 2]."""
        begin = self.begin[rows]
        return Cells(self.texts.data, begin + spans[:, 0], begin + spans[:, 1])

    def column(self, rows: I64, at: int) -> Cells:
        """Return one of the values of some entries."""
        each, inverse = np.unique(self.template[rows], return_inverse=True)
        spans = np.array([self.templates[one].values[at] for one in each.tolist()], dtype=np.int64)
        return self.cells(rows, spans[inverse])


def log_of_text(lines: LogLines, changed: int, *, split: bool) -> Log:
    """Return a log of lines of text, none of which is blank. changed: modification time of its file (ns). split: True
    if text overwritten after a carriage return counts too."""
    states = lines.states(split)

    def text(at: int) -> str:
        return strip_prefixes(lines.data[int(states.begin[at]) : int(states.end[at])].decode()).text

    def line(at: int) -> tuple[str, str]:
        return lines.data[int(states.begin[at]) : int(states.end[at])].decode(), lines.where(int(states.line[at]))

    clock = clock_of(text, len(states.begin), changed)
    texts = SourceTexts(lines.data, states.begin, states.end, lines.source[states.line], line)
    entries = text_entries(texts, clock, changed)
    top = [f"time = {{ format = {quoted(clock)} }}"] if clock not in ("", "epoch") else []
    top += ['split = "\\r"             # each state of a progress bar counts'] if split else []
    return Log(entries, text_groups(entries), tuple(top))


def texts_in_bytes(
    texts: Sequence[str], source: I64, line: Callable[[int], tuple[str, str]], key: str = ""
) -> SourceTexts:
    """Return texts as parts of bytes."""
    encoded = [text.encode(errors="replace") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return SourceTexts(b"".join(encoded), ends[:-1], ends[1:], source, line, key)


def text_entries(texts: SourceTexts, clock: str, changed: int) -> TextEntries:
    """Return texts as entries, without those that are blank after their prefixes. clock: format of their times."""
    return _Reader(texts, clock).entries(changed)


class _Reader:
    """Reads texts as entries."""

    def __init__(self, texts: SourceTexts, clock: str) -> None:
        self._texts, self._clock = _without_colors(_shortened(texts)), clock
        self._is_long = texts.end - texts.begin > LONGEST
        self._templates: list[TextTemplate] = []
        self._known: dict[bytes, int] = {}
        """Templates by masked text; -1: blank."""

    def entries(self, changed: int) -> TextEntries:
        """Return the entries."""
        template = self._read_templates()
        places = np.flatnonzero(template >= 0)
        template = template[places]
        stamps, moved = self._looked_for(places, template)
        ns, no_dates = self._placed(places, template)
        for row in (*moved, *no_dates):
            template[row] = self._add(self._template_of(int(places[row]), alone=True))
            stamps[row], ns[row] = self._templates[-1].stamp, NO_TIME
        self._add_times(ns, stamps, changed)
        found = TextEntries(self._texts, places, self._templates, template)
        found.ns, found.processes, found.is_long = ns, self._processes(found), self._is_long[places]
        return found

    def _raw(self, place: int) -> bytes:
        return self._texts.data[int(self._texts.begin[place]) : int(self._texts.end[place])]

    def _read_templates(self) -> I64:
        """Return the template of each text, int64[n]; -1 if it is blank."""
        texts, known = self._texts, self._known
        found: list[int] = []
        for start, stop in blocks(len(texts.begin)):
            base = int(texts.begin[start])
            masked = texts.data[base : int(texts.end[stop - 1])].translate(MASK)
            places = zip(
                (texts.begin[start:stop] - base).tolist(), (texts.end[start:stop] - base).tolist(), strict=True
            )
            for begin, end in places:
                key = masked[begin:end]
                template = known.get(key)
                found.append(self._new(len(found), key) if template is None else template)
        return np.array(found, dtype=np.int64)

    def _new(self, place: int, key: bytes) -> int:
        made = self._template_of(place)
        number = -1 if made is None else self._add(made)
        if (made is None or made.is_shared) and len(self._known) < _MOST_TEMPLATES:
            self._known[key] = number
        return number

    def _add(self, made: TextTemplate | None) -> int:
        assert made is not None
        self._templates.append(made)
        return len(self._templates) - 1

    def _template_of(self, place: int, *, alone: bool = False) -> TextTemplate | None:
        """Return the template of a text; None if it is blank. alone: True for a template of this text only."""
        raw = self._raw(place).decode()
        line = strip_prefixes(raw)
        text = line.text.rstrip()
        if not text:
            return None
        stamp, span = read_clock(text, self._clock) or (None, None)
        begin = message_begin(text, span)
        key, spans = shape(text, begin)
        cut = bytes_of(raw[: raw.rfind(line.text)])
        values = tuple((bytes_of(text[:at]), bytes_of(text[:end])) for at, end in spans)
        date = None if alone else self._date_of(raw, line, text, cut)
        known = prefix_length(raw, line) >= 0 or (line.collected is not None and date is not None)
        is_shared = known and not (alone or has_digits(key) or OF_DIGITS.search(text, begin))
        stream = None if is_shared and cut else line.stream
        stamp = line.collected or stamp
        return TextTemplate(
            key, cut, bytes_of(text), begin, values, span, date if is_shared else None, stream, stamp, is_shared
        )

    def _date_of(self, raw: str, line: PlainLine, text: str, cut: int) -> DateBytes | None:
        """Return the position of the date in all texts of a template; None if each text has to be searched."""
        place = None if self._clock else find_date(text)
        if place is None:
            return None
        if line.collected is not None:
            found = _COLLECTED.search(raw, 0, len(raw) - len(line.text))
            if found is None:
                return None
            begin, end = (bytes_of(raw[:at]) for at in found.span())
            return DateBytes(begin, len(found["fraction"] or ""), end)
        if place.at < 0:
            return _NO_DATE
        return DateBytes(cut + bytes_of(text[: place.at]), len(text[place.fraction]), 0)

    def _looked_for(self, places: I64, template: I64) -> tuple[dict[int, Timestamp | None], list[int]]:
        """Return the times of texts whose date has no fixed position, by row, and the rows whose time is at another
        position than in their template."""
        found: dict[int, Timestamp | None] = {}
        moved: list[int] = []
        without_place = np.array([one.date is None for one in self._templates], dtype=np.bool_)
        for row in np.flatnonzero(without_place[template]).tolist():
            one = self._templates[int(template[row])]
            if not one.is_shared:
                found[row] = one.stamp
                continue
            text = self._raw(int(places[row]))[one.cut :][: one.length].decode()
            found[row], span = read_clock(text, self._clock) or (None, None)
            if span != one.span:
                moved.append(row)
        return found, moved

    def _placed(self, places: I64, template: I64) -> tuple[I64, list[int]]:
        """Return the times of texts whose date has a fixed position, int64[n], and the rows with an invalid date."""
        ns = np.full(len(places), NO_TIME)
        dates = np.array([one.date or _NO_DATE for one in self._templates], dtype=np.int64).reshape(-1, 3)
        rows = np.flatnonzero(dates[template, 0] >= 0)
        if not len(rows):
            return ns, []
        begin = self._texts.begin[places[rows]] + dates[template[rows], 0]
        found, good = dates_at(self._texts.data, begin, dates[template[rows], 1])
        ns[rows] = found
        return ns, rows[~good].tolist()

    def _add_times(self, ns: I64, stamps: dict[int, Timestamp | None], changed: int) -> None:
        """Add the searched times; those without a year or a day get one."""
        timed = {row: stamp for row, stamp in stamps.items() if stamp is not None}
        if any(one.zone in (Zone.YEARLESS, Zone.DAYLESS) for one in timed.values()):
            placed = np.flatnonzero(ns != NO_TIME).tolist()
            timed |= {row: Timestamp(int(ns[row]), Zone.NAIVE, False) for row in placed if row not in timed}
            order = sorted(timed)
            dated: Sequence[Timestamp] = with_years([timed[row] for row in order], changed)
            if any(one.zone is Zone.DAYLESS for one in dated):
                dated, _ = with_days(dated, changed, None, None)
            timed = dict(zip(order, dated, strict=True))
        ns[list(timed)] = [one.ns for one in timed.values()]

    def _processes(self, found: TextEntries) -> I64:
        """Return a number for the source of each entry and the ranks and pods in its prefixes, int64[n]."""
        streams: dict[str | bytes, int] = {"": 0}
        numbers = [
            streams.setdefault(one.stream, len(streams)) if one.stream is not None else -1 for one in found.templates
        ]
        number = np.array(numbers, dtype=np.int64)[found.template]
        texts = self._texts
        for row in np.flatnonzero(number < 0).tolist():
            place = int(found.places[row])
            date = found.templates[int(found.template[row])].date
            begin = int(texts.begin[place]) + (0 if date is None else date.end_of_collected)
            prefix = texts.data[begin : int(found.begin[row])]
            if prefix not in streams:
                stream = strip_prefixes(self._raw(place).decode()).stream
                streams[prefix] = streams.setdefault(stream, len(streams))
            number[row] = streams[prefix]
        return texts.source[found.places] * (len(streams) + 1) + number


def dates_at(data: bytes, begin: I64, fraction: I64) -> tuple[I64, Mask]:
    """Return the times (ns) at positions of some bytes, such as 2026-03-01 10:00:00.123, int64[n], and True for valid
    ones, bool[n]. fraction: number of digits after the second, int64[n]."""
    minute = np.zeros(len(begin), dtype=np.int64)
    digits = parse(data, begin + 17, begin + 19)
    named = [parse(data, begin + first, begin + last).digits for first, last in _PARTS_OF_MINUTE]
    code = named[0]
    for part in named[1:]:
        code = code * 100 + part
    heads = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
    minutes = [minute_of(data[at : at + 16].decode()) for at in begin[heads].tolist()]
    known = np.array([one is not None for one in minutes], dtype=np.bool_)
    lengths = np.diff(np.append(heads, len(begin)))
    minute = np.repeat(np.array([one or 0 for one in minutes], dtype=np.int64), lengths)
    after = parse(data, begin + 20, begin + 20 + fraction)
    ns = minute + digits.digits * NS_PER_SECOND + np.where(fraction > 0, after.digits * 10 ** (9 - fraction), 0)
    return ns, np.repeat(known, lengths) & (digits.digits <= 60)


_PARTS_OF_MINUTE = ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16))


def _shortened(texts: SourceTexts) -> SourceTexts:
    """Return texts without the characters beyond the limit."""
    long = np.flatnonzero(texts.end - texts.begin > LONGEST)
    end = texts.end.copy() if len(long) else texts.end
    for at in long.tolist():
        begin = int(texts.begin[at])
        end[at] = begin + bytes_of(texts.data[begin : int(end[at])].decode()[:LONGEST])
    return texts._replace(end=end)


def _without_colors(texts: SourceTexts) -> SourceTexts:
    """Return texts without colors, and without the characters with which progress bars go back."""
    if b"\x1b" not in texts.data and b"\b" not in texts.data:
        return texts
    spans = np.array([one.span() for one in _COLORS.finditer(texts.data)], dtype=np.int64).reshape(-1, 2)
    removed = np.append(0, np.cumsum(spans[:, 1] - spans[:, 0]))
    ends = np.append(0, spans[:, 1])

    def moved(places: I64) -> I64:
        before = np.searchsorted(spans[:, 0], places)
        inside = np.maximum(0, ends[before] - places)  # a text may end within a color
        found: I64 = places - removed[before] + inside
        return found

    return texts._replace(data=_COLORS.sub(b"", texts.data), begin=moved(texts.begin), end=moved(texts.end))


def text_groups(entries: TextEntries) -> list[Group]:
    """Return groups of entries that differ only in their values, the most frequent first."""
    keys: dict[str, int] = {}
    of_template = np.array([keys.setdefault(one.key, len(keys)) for one in entries.templates], dtype=np.int64)
    groups = [TextGroup(entries, rows) for rows in alike(of_template[entries.template]).values()]
    return sorted(groups, key=lambda group: (-len(group), group.rows[0]))


class TextGroup(Group):
    """Lines that differ only in their values."""

    entries: TextEntries

    @cached_property
    def tokens(self) -> tuple[re.Match[str], ...]:  # type: ignore[override]
        """Return the values in the first line."""
        return tuple(TOKEN.finditer(self.first.text, self.first.begin))

    @cached_property
    def columns(self) -> Sequence[ValueColumn]:
        """Return the values in which they differ."""
        places = range(len(self.tokens))
        return [column_of(self.first, self.tokens, at, self.entries.column(self.rows, at)) for at in places]

    @cached_property
    def about(self) -> str:
        """Return the text of the first entry in lowercase."""
        return plain(self.first.message)


def bytes_of(text: str) -> int:
    """Return the number of bytes of a text."""
    return len(text) if text.isascii() else len(text.encode())

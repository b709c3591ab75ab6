"""Read lines of text as entries: lines that differ only in digits are analyzed once, and their times and values are
read at the same positions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import digits
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64, Mask, Rows, alike, blocks
from goodput_cli.events.mappings.draft.entries import NO_TIME, Entries, Entry, Group, Log, Texts, ValueColumn, quoted
from goodput_cli.events.mappings.draft.lines import LogLines
from goodput_cli.events.mappings.draft.templates import OF_DIGITS, TOKEN, column_of, shape
from goodput_cli.events.mappings.draft.words import plain
from goodput_cli.events.mappings.times import clock_of, message_begin, read_clock
from goodput_cli.events.text.date_positions import (
    DatePosition,
    as_bytes,
    bytes_of,
    collected_position,
    find_date,
    has_digits,
)
from goodput_cli.events.text.equal_widths import with_equal_widths
from goodput_cli.events.text.line_shapes import LineShapes
from goodput_cli.events.text.line_timestamps import PlainLine, Timestamp, Zone, strip_prefixes, with_days, with_years
from goodput_cli.events.text.lines import MASK, Lines
from goodput_cli.events.text.step_columns import FieldColumns, NumberColumn, Take, dates_at, numbers_at
from goodput_cli.events.text.templates import Fields, prefix_length

LONGEST = 600
"""Maximum number of characters read from a text."""
_MOST_TEMPLATES = 8192
_UNKNOWN = -2
_FEW = 4
"""Fewer values are read one by one."""
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
    head: I64 | None = None
    """Where the line of each begins, if carriage returns separate texts; int64[n]."""
    written: SourceTexts | None = None
    """The texts as written, if those after the end of its data have numbers of equal widths."""


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
    date: DatePosition | None
    """Position of the date in the bytes of a line with its prefixes; None: the time of each text is searched."""
    end_of_collected: int
    """End of the collector's time, which is the date; 0 if there is none."""
    stream: str | None
    """Ranks and pods in the prefixes; None: each prefix is read."""
    fixed: tuple[int, ...] = ()
    """Bytes of the text that are digits of a name, such as `top1`: the same in all texts of the template."""
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
        text, written, quote = self.text(row), self.texts.written, None
        if written is not None and self.texts.begin[place] >= len(written.data):
            raw = written.data[int(written.begin[place]) : int(written.end[place])].decode()
            quote = _message_as_written(strip_prefixes(raw).text, text, template.begin)
        return Entry(place, line, where, text, template.begin, template.span, quote=quote)

    @cached_property
    def files(self) -> I64:
        """Return a number for the file of each, int64[n]."""
        return self.texts.source[self.places]

    @cached_property
    def rows_of_templates(self) -> dict[int, Rows]:
        """Return the rows of the entries of each template."""
        return alike(self.template)

    def fields(self, found: Fields, rows: Rows) -> FieldColumns:
        """Return the fields of entries of one template. found: their positions in its text."""
        text = self.text(int(rows[0]))
        return FieldColumns(as_bytes(text), found.in_bytes(text), self.take(rows))

    def take(self, rows: Rows) -> Take:
        """Return a function that gives bytes of the texts of some entries."""
        return characters_at(self.texts.data, self.begin[rows])

    def column(self, rows: I64, at: int) -> TextColumn:
        """Return one of the values of some entries."""
        return TextColumn(self, rows, at)


class TextColumn(Texts):
    """Values at one position of similar entries."""

    def __init__(self, entries: TextEntries, rows: I64, at: int) -> None:
        self._entries, self._rows, self._at = entries, rows, at

    def _text(self, row: int) -> str:
        begin, end = self._entries.templates[int(self._entries.template[row])].values[self._at]
        start = int(self._entries.begin[row])
        return self._entries.texts.data[start + begin : start + end].decode()

    @property
    def texts(self) -> Sequence[str]:
        """Return all texts."""
        return list(map(self._text, self._rows.tolist()))

    @property
    def first(self) -> str:
        """Return the first text."""
        return self._text(int(self._rows[0]))

    def take(self, rows: I64) -> TextColumn:
        """Return some of the texts."""
        return TextColumn(self._entries, self._rows[rows], self._at)

    @cached_property
    def whole(self) -> I64 | None:
        """Return the texts as integers, int64[n]; None if some are not."""
        if Texts([self.first]).whole is None:
            return None
        whole = np.zeros(len(self._rows), dtype=np.int64)
        for places, found, others in self._parts():
            if found is None:
                values = others.whole
            elif not found.after_point:
                values = found.digits
            else:
                values, rest = np.divmod(found.digits, 10**found.after_point)
                values = None if rest.any() else values
            if values is None:
                return None
            whole[places] = values
        return whole

    @cached_property
    def numbers(self) -> F64:
        """Return the texts as numbers, float64[n], a clock such as 1:02:03 in seconds; nan for other texts."""
        numbers = np.zeros(len(self._rows))
        for places, found, others in self._parts():
            numbers[places] = others.numbers if found is None else found.decimal()
        return numbers

    def _parts(self) -> Iterator[tuple[Rows, NumberColumn | None, Texts]]:
        """Yield the places of values of one template, the values as numbers, and otherwise as texts."""
        for template, places in alike(self._entries.template[self._rows]).items():
            rows = self._rows[places]
            one = self._entries.templates[template]
            found = None
            if len(rows) >= _FEW:
                text = as_bytes(self._entries.text(int(rows[0])))
                found = numbers_at(text, slice(*one.values[self._at]), self._entries.take(rows))
            yield places, found, Texts(() if found is not None else list(map(self._text, rows.tolist())))


def log_of_text(lines: LogLines, changed: int, *, split: bool) -> Log:
    """Return a log of lines of text, none of which is blank. changed: modification time of its file (ns). split: True
    if text overwritten after a carriage return counts too."""
    states = lines.states(split)

    def text(at: int) -> str:
        return strip_prefixes(lines.data[int(states.begin[at]) : int(states.end[at])].decode()).text

    def line(at: int) -> tuple[str, str]:
        return lines.data[int(states.begin[at]) : int(states.end[at])].decode(), lines.where(int(states.line[at]))

    clock = clock_of(text, len(states.begin), changed)
    head = lines.begin[states.line] if lines.have_states else None
    source = lines.source[states.line] if lines.have_states else lines.source
    texts = SourceTexts(lines.data, states.begin, states.end, source, line, head=head)
    entries = text_entries(texts, clock, changed)
    top = [f"time = {{ format = {quoted(clock)} }}"] if clock not in ("", "epoch") else []
    top += ['split = "\\r"             # each state of a progress bar counts'] if split else []
    return Log(entries, text_groups(entries), tuple(top))


def text_between(lines: LogLines, records: I64, changed: int) -> Sequence[Group]:
    """Return groups of the lines of text between records. records: indexes of the lines that are records, int64[n].
    changed: modification time of their file (ns)."""
    if len(records) == len(lines) or lines.have_states:
        return ()

    def line(at: int) -> tuple[str, str]:
        return lines.text(at), lines.where(at)

    end = lines.end.copy()
    end[records] = lines.begin[records]
    return text_groups(text_entries(SourceTexts(lines.data, lines.begin, end, lines.source, line), "", changed))


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
        self._known: dict[tuple[bytes, bytes], int] = {}
        """Templates by masked text and the digits that are the same in all of its texts; -1: blank."""
        self._fixed: dict[bytes, tuple[int, ...]] = {}
        """Positions of these digits by masked text."""

    def entries(self, changed: int) -> TextEntries:
        """Return the entries."""
        template = self._read_templates()
        places = np.flatnonzero(template >= 0)
        template = template[places]
        stamps, moved = self._looked_for(places, template)
        ns, no_dates = self._placed(places, template)
        for row in (*moved, *no_dates):
            template[row] = self._add(self._template_of(self._raw(int(places[row])), alone=True))
            stamps[row], ns[row] = self._templates[-1].stamp, NO_TIME
        self._add_times(ns, stamps, changed)
        found = TextEntries(self._texts, places, self._templates, template)
        found.ns, found.processes, found.is_long = ns, self._processes(found), self._is_long[places]
        return found

    def _raw(self, place: int) -> bytes:
        return self._texts.data[int(self._texts.begin[place]) : int(self._texts.end[place])]

    def _read_templates(self) -> I64:
        """Return the template of each text, int64[n]; -1 if it is blank."""
        texts = self._texts
        found = np.where(texts.end > texts.begin, _UNKNOWN, -1)
        shapes = LineShapes(self._fixed_in, self._shared_template)
        widened = _Widened(texts)
        for start, stop in blocks(len(texts.begin)):
            is_left = found[start:stop] == _UNKNOWN
            if not is_left.any():
                continue
            base, end = int(texts.begin[start]), int(texts.end[stop - 1])
            block = Lines.of(texts.data[base:end], texts.begin[start:stop] - base, texts.end[start:stop] - base)
            for lines, template in shapes.alike(block, is_left):
                found[start + lines] = template
            equal = with_equal_widths(block, np.flatnonzero(found[start:stop] == _UNKNOWN))
            if equal is not None and texts.head is None:
                for lines, template in shapes.alike(equal.lines, np.ones(len(equal.rows), dtype=np.bool_)):
                    found[start + equal.rows[lines]] = template
                    widened.add(start + equal.rows[lines], equal.lines, lines)
            for hit in block.hits(np.flatnonzero(found[start:stop] == _UNKNOWN)):
                found[start + hit.at], _ = self._number_of(hit.raw, hit.masked)
        self._texts = widened.texts()
        return found

    def _shared_template(self, raw: bytes) -> int | None:
        """Return the template of all texts that differ from one only in digits, -1 if they are blank; None if digits
        decide."""
        number, is_shared = self._number_of(raw, raw.translate(MASK))
        return number if is_shared else None

    def _fixed_in(self, raw: bytes, masked: bytes) -> tuple[int, ...]:
        """Return the positions of digits that are the same in all texts of a template."""
        if masked not in self._fixed:
            made = self._template_of(raw)
            fixed = () if made is None else made.fixed
            if len(self._fixed) >= _MOST_TEMPLATES:
                return fixed
            self._fixed[masked] = fixed
        return self._fixed[masked]

    def _number_of(self, raw: bytes, masked: bytes) -> tuple[int, bool]:
        """Return the template of a text, -1 if it is blank, and True if it is that of all texts that differ only in
        digits of values."""
        key = masked, bytes(raw[at] for at in self._fixed_in(raw, masked))
        known = self._known.get(key)
        if known is not None:
            return known, True
        made = self._template_of(raw)
        number, is_shared = -1 if made is None else self._add(made), made is None or made.is_shared
        if is_shared and len(self._known) < _MOST_TEMPLATES:
            self._known[key] = number
        return number, is_shared

    def _add(self, made: TextTemplate | None) -> int:
        assert made is not None
        self._templates.append(made)
        return len(self._templates) - 1

    def _template_of(self, text_as_written: bytes, *, alone: bool = False) -> TextTemplate | None:
        """Return the template of a text; None if it is blank. alone: True for a template of this text only."""
        raw = text_as_written.decode()
        line = strip_prefixes(raw)
        text = line.text.rstrip()
        if not text:
            return None
        stamp, span = read_clock(text, self._clock) or (None, None)
        begin = message_begin(text, span)
        key, spans = shape(text, begin)
        cut = bytes_of(raw[: raw.rfind(line.text)])
        values = tuple((bytes_of(text[:at]), bytes_of(text[:end])) for at, end in spans)
        date, end = (None, 0) if alone else self._date_of(raw, line, text, cut)
        known = prefix_length(raw, line) >= 0 or (line.collected is not None and date is not None)
        is_shared = known and not (alone or OF_DIGITS.search(text, begin))
        fixed = _digits_outside(text, begin, spans, cut) if is_shared and has_digits(key) else ()
        stream = None if is_shared and cut else line.stream
        stamp = line.collected or stamp
        if not is_shared:
            date = None
        return TextTemplate(key, cut, bytes_of(text), begin, values, span, date, end, stream, fixed, stamp, is_shared)

    def _date_of(self, raw: str, line: PlainLine, text: str, cut: int) -> tuple[DatePosition | None, int]:
        """Return the position of the date in all texts of a template, None if each text has to be searched; and the end
        of the collector's time, if it is that."""
        place = None if self._clock else find_date(text)
        if place is None:
            return None, 0
        if line.collected is None:
            return place.in_bytes(text, cut), 0
        collected = collected_position(raw, len(raw) - len(line.text))
        if collected is None:
            return None, 0
        moved = collected.in_bytes(raw)
        return moved, moved.end

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
        bad: list[int] = []
        for number, rows in alike(template).items():
            date = self._templates[number].date
            if date is None or date.at < 0:
                continue
            text = as_bytes(self._raw(int(places[rows[0]])).decode())
            take = characters_at(self._texts.data, self._texts.begin[places[rows]])
            ns[rows], good = dates_at(date, text, take)
            bad += rows[~good].tolist()
        return ns, bad

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
        streams: dict[str, int] = {"": 0}
        numbers = [
            streams.setdefault(one.stream, len(streams)) if one.stream is not None else -1 for one in found.templates
        ]
        number = np.array(numbers, dtype=np.int64)[found.template]
        texts = self._texts
        if texts.head is not None:  # A prefix applies to the whole line, not only up to the first carriage return.
            after = np.flatnonzero((number == 0) & (texts.head[found.places] < texts.begin[found.places]))
            heads, which = np.unique(texts.head[found.places[after]], return_inverse=True)
            begun = [streams.setdefault(self._stream_at(head), len(streams)) for head in heads.tolist()]
            number[after] = np.array(begun, dtype=np.int64)[which]
        for template, rows in found.rows_of_templates.items():
            one = found.templates[template]
            if one.stream is not None:
                continue
            prefixes = characters_at(texts.data, texts.begin[found.places[rows]])(one.end_of_collected, one.cut)
            _, examples, kind = np.unique(prefixes, axis=0, return_index=True, return_inverse=True)
            names = (strip_prefixes(self._raw(int(found.places[rows[at]])).decode()).stream for at in examples.tolist())
            number[rows] = np.array([streams.setdefault(name, len(streams)) for name in names])[kind.reshape(-1)]
        return texts.source[found.places] * (len(streams) + 1) + number

    def _stream_at(self, begin: int) -> str:
        """Return the ranks and pods in the prefixes of a line."""
        first, _, _ = self._texts.data[begin : begin + LONGEST].partition(b"\r")
        return strip_prefixes(first.decode(errors="replace")).stream


class _Widened:
    """Texts, some of which are replaced by texts that have numbers of equal widths."""

    def __init__(self, texts: SourceTexts) -> None:
        self._texts = texts
        self._size = len(texts.data)
        self._pieces: list[tuple[I64, Lines, I64]] = []

    def add(self, places: I64, block: Lines, lines: I64) -> None:
        """Replace texts by lines of a block."""
        self._pieces.append((places, block, lines))

    def texts(self) -> SourceTexts:
        """Return the texts."""
        if not self._pieces:
            return self._texts
        begin, end = self._texts.begin.copy(), self._texts.end.copy()
        data = {id(block): block.data for _, block, _ in self._pieces}
        starts = dict(zip(data, np.cumsum([self._size, *map(len, data.values())]).tolist(), strict=False))
        for places, block, lines in self._pieces:
            begin[places], end[places] = (starts[id(block)] + one[lines] for one in (block.start, block.end))
        return self._texts._replace(
            data=b"".join([self._texts.data, *data.values()]), begin=begin, end=end, written=self._texts
        )


def _message_as_written(text: str, widened: str, begin: int) -> str:
    """Return the message of a text. widened: the same text with more zeros in its numbers, where the message begins at
    `begin`."""
    at = 0
    for character in widened[:begin]:
        at += text[at : at + 1] == character
    return text[at:]


def _digits_outside(text: str, begin: int, spans: Sequence[tuple[int, int]], cut: int) -> tuple[int, ...]:
    """Return the bytes of a line that are digits of its text, but of no value. begin: of the message. cut: bytes before
    the text."""
    inside = [*spans, (len(text), len(text))]
    found: list[int] = []
    done = begin
    for first, end in inside:
        found += [cut + bytes_of(text[:at]) for at in range(done, first) if text[at] in digits]
        done = end
    return tuple(found)


def characters_at(data: bytes, begin: I64) -> Take:
    """Return a function that gives the bytes at some distance from each of some positions."""
    view = np.frombuffer(data, dtype=np.uint8)
    return lambda start, stop: np.lib.stride_tricks.sliding_window_view(view, stop - start)[begin + start]


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

    return texts._replace(
        data=_COLORS.sub(b"", texts.data), begin=moved(texts.begin), end=moved(texts.end),
        head=None if texts.head is None else moved(texts.head),
    )  # fmt: skip


def text_groups(entries: TextEntries) -> list[Group]:
    """Return groups of entries that differ only in their values, the most frequent first."""
    keys: dict[str, int] = {}
    of_template = np.array([keys.setdefault(one.key, len(keys)) for one in entries.templates], dtype=np.int64)
    groups = [TextGroup(entries, rows) for rows in alike(of_template[entries.template]).values()]
    return sorted(groups, key=lambda group: (-len(group), group.rows[0]))


class TextGroup(Group):
    """Lines that differ only in their values."""

    entries: TextEntries
    is_text = True

    def take(self, at: Rows) -> TextGroup:
        """Return some of its entries."""
        return TextGroup(self.entries, self.rows[at])

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

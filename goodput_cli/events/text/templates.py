"""Group lines into templates: lines that differ only in digits.

Rules that accept any digits find the same fields at the same positions in all lines of a template. The positions are
stored, so that further lines are read without regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Generic, NamedTuple, cast

from goodput_cli.events.text.date_positions import DatePosition, bytes_of, collected_position, find_date, masked
from goodput_cli.events.text.line_timestamps import PlainLine, Timestamp, TimestampError, strip_prefixes, timestamp_of
from goodput_cli.events.text.lines import Hit, LineRules
from goodput_cli.events.text.log_lines import (
    BadValueError,
    LineReading,
    LineRule,
    ParsedEvent,
    RuleOfLines,
    line_readings,
)

_MOST = 8192
"""Maximum number of templates of one document that are stored."""
_LONGEST = 1024
"""Maximum length of a line whose template is stored, in bytes."""
_MOST_STREAMS = 64
_CHANGED = re.compile("[\x1b\b\r]")
"""Characters of lines that contain more than is shown."""
_COLLECTED = re.compile(r"\d{4}-\d\d-\d\dT", re.ASCII)


class TextMatch:
    """Fields of a line, at the positions found in another line of its template."""

    __slots__ = ("_names", "_places", "string")

    def __init__(self, string: str, places: dict[str | int, slice | None], names: Sequence[str]) -> None:
        self.string = string
        """The whole text."""
        self._places, self._names = places, names

    def __getitem__(self, name: str | int) -> str | None:
        place = self._places[name]
        return None if place is None else self.string[place]

    def groupdict(self) -> dict[str, str | None]:
        """Return the texts of all named groups; None for unused ones."""
        return {name: self[name] for name in self._names}


class Fields(NamedTuple):
    """A rule that reads the lines of a template, with the positions of its fields."""

    rule: LineRule
    places: dict[str | int, slice | None]
    names: tuple[str, ...]

    def in_bytes(self, text: str) -> Fields:
        """Return the rule with the positions in the bytes of the lines. text: one of them."""
        if text.isascii():
            return self
        places = {
            name: place if place is None else slice(bytes_of(text[: place.start]), bytes_of(text[: place.stop]))
            for name, place in self.places.items()
        }
        return self._replace(places=places)


class ReadLine(NamedTuple):
    """Content of a line."""

    line: PlainLine
    """The line without prefixes."""
    said: Sequence[ParsedEvent] = ()
    known: bool = False
    """True if a rule matches it."""
    reason: str = ""
    """Reason why its values are wrong; empty if they are valid."""
    moments: Sequence[ParsedEvent] = ()
    template: Template | None = None

    def timestamp(self) -> Timestamp | None:
        """Return its timestamp. Raises TimestampError."""
        place = None if self.template is None else self.template.date
        return timestamp_of(self.line.text) if place is None else place.read(self.line.text)


class Template:
    """Stored positions for the lines of a template."""

    __slots__ = (
        "begin",
        "collected",
        "cut",
        "date",
        "is_plain",
        "is_silent",
        "rules",
        "signs",
        "silent",
        "streams",
        "worth",
    )

    def __init__(self, raw: str, line: PlainLine, rules: list[Fields], signs: list[Fields], worth: bool | None) -> None:
        self.rules, self.signs, self.is_silent = rules, signs, not rules and not signs
        self.date: DatePosition | None = find_date(line.text)
        self.cut = prefix_length(raw, line)
        """Length of the prefixes; -1 if they have to be read."""
        has_begin = not _CHANGED.search(raw)
        self.begin = len(raw) - len(line.text) if has_begin else -1
        """Position of the text in a line; -1 if it varies."""
        self.collected = collected_position(raw, self.begin) if has_begin and line.collected is not None else None
        """Position of the collector's time in a line."""
        self.streams: dict[str, str] = {}
        """Stream by prefixes."""
        self.worth = worth
        """True if a line may report a death; None if its digits decide."""
        has_time = self.date is None or self.date.at >= 0
        self.is_plain = self.cut == 0 and not has_time and not signs and worth is False
        """True if a line contains only fields of its rules: no prefix, timestamp or death."""
        self.silent = ReadLine(PlainLine("", "", None), template=self)

    def bare(self, raw: str) -> PlainLine:
        """Return a line without prefixes."""
        cut = self.cut
        if cut == 0:
            return PlainLine(raw, "", None)
        stream = self.streams.get(raw[:cut]) if cut > 0 else None
        if stream is not None:
            return PlainLine(raw[cut:], stream, None)
        line = strip_prefixes(raw)
        if cut > 0 and len(self.streams) < _MOST_STREAMS:
            self.streams[raw[:cut]] = line.stream
        return line


def prefix_length(raw: str, line: PlainLine) -> int:
    """Return the length of the prefixes of a line; -1 if it varies within its template."""
    cut = len(raw) - len(line.text)
    return -1 if _CHANGED.search(raw) or line.collected is not None or _COLLECTED.search(raw, 0, cut) else cut


class LineReader:
    """Reads the lines of a document by rules and stores its templates."""

    def __init__(self, rules: LineRules) -> None:
        self._rules = rules
        self._templates: tuple[dict[bytes, Template | None], ...] = {}, {}
        """By masked line, for remaining and for overwritten lines; None: its lines are read one by one."""
        self._seen: set[bytes] = set()
        """Masked lines that were read once."""

    def template_of(self, hit: Hit) -> Template | None:
        """Return the template of a line; None if it is not stored."""
        return self._templates[hit.overwritten].get(hit.masked)

    def template(self, raw: str, key: bytes, overwritten: bool = False) -> Template | None:
        """Return the template of a line, which is stored now; None if its digits decide how it is read. key: the line
        with its digits masked."""
        templates = self._templates[overwritten]
        if key not in templates:
            _bound(templates)
            templates[key] = self._template(raw, key, overwritten)
        return templates[key]

    def read(self, hit: Hit) -> ReadLine:
        """Return the content of a line of a block."""
        key, overwritten = hit.masked, hit.overwritten
        raw = hit.raw.decode(errors="replace")
        templates = self._templates[overwritten]
        template = templates.get(key)
        if template is None:
            if key in templates or len(key) > _LONGEST:
                return self._read_alone(raw, overwritten)
            if key not in self._seen:
                _bound(self._seen)
                self._seen.add(key)
                return self._read_alone(raw, overwritten)
            _bound(templates)
            template = templates[key] = self._template(raw, key, overwritten)
            if template is None:
                return self._read_alone(raw, overwritten)
        if template.is_silent:
            return template.silent
        line = template.bare(raw)
        said, reason = _events(template.rules, line.text)
        moments = _events(template.signs, line.text)[0] if template.signs else []
        return ReadLine(line, [] if reason else said, bool(template.rules), reason, moments, template)

    def _read_alone(self, raw: str, overwritten: bool) -> ReadLine:
        line = strip_prefixes(raw)
        said, known, reason = self._rules.read(line.text, overwritten)
        moments = self._rules.signs_in(line.text, overwritten) if self._rules.signs else []
        return ReadLine(line, said, known, reason, moments)

    def _template(self, raw: str, key: bytes, overwritten: bool) -> Template | None:
        """Return the template of a line; None if digits decide how it is read."""
        line = strip_prefixes(raw)
        rules, signs = (_fields(each, line.text, overwritten) for each in (self._rules.rules, self._rules.signs))
        if rules is None or signs is None:
            return None
        causes = self._rules.causes
        worth = None if any(one in key for one in causes.masked_anchors) else causes.may_read(key)
        return Template(raw, line, rules, signs, worth)


class FirstRule(Generic[RuleOfLines]):
    """Reads texts with the first matching rule, which is stored by template."""

    def __init__(self, rules: Sequence[RuleOfLines]) -> None:
        self._rules = rules
        self._known: dict[str, list[Fields] | None] = {}

    def fields_of(self, text: str) -> list[Fields] | None:
        """Return the rules for the texts of a template, in order of precedence; None if digits decide."""
        key = masked(text)
        if key not in self._known:
            _bound(self._known)
            self._known[key] = _fields(self._rules, text, overwritten=False)
        return self._known[key]

    def read(self, text: str) -> LineReading[RuleOfLines] | None:
        """Return the result of the first matching rule; None if no rule matches."""
        found = self.fields_of(text)
        if found is None:
            return next(line_readings(self._rules, text), None)
        if not found:
            return None
        rule = cast(RuleOfLines, found[0].rule)
        try:
            return LineReading(rule, rule.read(TextMatch(text, found[0].places, found[0].names)))
        except (BadValueError, TimestampError) as error:
            return LineReading(rule, None, error)


def _bound(known: set[bytes] | dict[Any, Any]) -> None:
    if len(known) >= _MOST:
        known.clear()


def _fields(rules: Iterable[LineRule], text: str, overwritten: bool) -> list[Fields] | None:
    """Return the rules for the lines of a template; None if digits decide. text: one of the lines."""
    found: list[Fields] = []
    shape = masked(text)
    for rule in rules:
        if (overwritten and not rule.split) or rule.masked_anchor not in shape:
            continue
        if rule.depends_on_digits:
            return None
        match = rule.pattern.search(text)
        if match is not None:
            found.append(_placed(rule, match))
            if not rule.also:
                break
    return found


def _placed(rule: LineRule, match: Any) -> Fields:
    names = tuple(match.groupdict())
    numbers = range(len(match.groups()) + 1) if isinstance(match, re.Match) else ()
    return Fields(rule, {name: _slice_of(*match.span(name)) for name in (*names, *numbers)}, names)


def _slice_of(begin: int, end: int) -> slice | None:
    return None if begin < 0 else slice(begin, end)


def _events(rules: Iterable[Fields], text: str) -> tuple[list[ParsedEvent], str]:
    """Return the events of a line up to the first rule that rejects it, and the reason; an empty reason if it is
    valid."""
    events: list[ParsedEvent] = []
    for rule, places, names in rules:
        try:
            event = rule.read(TextMatch(text, places, names))
        except (BadValueError, TimestampError) as error:
            return events, str(error)
        if event is not None:
            events.append(event)
    return events, ""

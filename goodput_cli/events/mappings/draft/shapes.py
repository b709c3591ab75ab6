"""Lines that differ in their numbers only, and what those numbers are called."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from goodput_cli.events.mappings.draft.entries import Entry
from goodput_cli.events.text.stamps import DATED

MOST = 500
"""So many lines of a shape are looked at."""
_SHAPES = 5000
_TOKEN = re.compile(
    rf"(?P<stamp>{re.sub(r'[?]P<[a-z]+>', '?:', DATED.pattern)})"
    r"|(?P<quoted>\"[^\"]{0,200}\"|'[^']{0,200}')"
    r"|(?P<hex>0x[0-9a-fA-F]+|(?<![\w])(?=[0-9a-f-]*\d)(?=[0-9a-f-]*[a-f])[0-9a-f]{7,}(?:-[0-9a-f]{4,})*(?!\w))"
    r"|(?P<clock>(?<![\w:])(?:\d+:)?\d{1,2}:\d\d(?:\.\d+)?(?![\w:]))"
    r"|(?P<number>(?:(?<![\w.)\]])[+-](?=\d)|(?<![A-Za-z.])|(?<=step)|(?<=iter)|(?<=epoch)|(?<=ckpt))"
    r"(?:\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\d.]*\.\d)|nan\b|inf\b))",
    re.ASCII,
)


@dataclass(frozen=True)
class Token:
    """What differs from line to line."""

    kind: str
    text: str
    begin: int
    end: int


@dataclass
class Shape:
    """Lines that differ in their tokens only."""

    example: Entry
    tokens: tuple[Token, ...]
    """Of the example."""
    count: int = 0
    rows: list[tuple[int, Entry, tuple[str, ...]]] = field(default_factory=list)
    """Of the first lines: their number, and the texts of their tokens."""

    @property
    def message(self) -> str:
        """That of the example."""
        return self.example.message

    @property
    def places(self) -> list[int]:
        """The numbers of its lines."""
        return [number for number, _, _ in self.rows]

    def column(self, at: int) -> list[str]:
        """The texts of a token."""
        return [texts[at] for _, _, texts in self.rows]

    def before(self, at: int) -> str:
        """The literal text before a token, from the token before it on."""
        begin = self.tokens[at - 1].end if at else self.example.begin
        return self.example.text[begin : self.tokens[at].begin]

    def after(self, at: int) -> str:
        """The literal text behind a token, up to the next one."""
        end = self.tokens[at + 1].begin if at + 1 < len(self.tokens) else len(self.example.text)
        return self.example.text[self.tokens[at].end : end]

    def label(self, at: int) -> str:
        """The words before a token that may be its name, in small letters."""
        words = re.findall(r"[A-Za-z][A-Za-z]*", self.before(at).replace("_", " "))
        return " ".join(words[-3:]).lower()


def shapes_of(entries: Iterable[Entry]) -> list[Shape]:
    """The shapes of a log, the most frequent first."""
    found: dict[str, Shape] = {}
    for number, entry in enumerate(entries):
        tokens = tuple(_tokens(entry))
        key = _key(entry, tokens)
        shape = found.get(key)
        if shape is None:
            if len(found) >= _SHAPES:
                continue
            shape = found[key] = Shape(entry, tokens)
        shape.count += 1
        if len(shape.rows) < MOST:
            shape.rows.append((number, entry, tuple(token.text for token in tokens)))
    return sorted(found.values(), key=lambda shape: -shape.count)


def _tokens(entry: Entry) -> Iterable[Token]:
    for found in _TOKEN.finditer(entry.text, entry.begin):
        yield Token(found.lastgroup or "", found[0], found.start(), found.end())


def _key(entry: Entry, tokens: tuple[Token, ...]) -> str:
    parts: list[str] = []
    place = entry.begin
    for token in tokens:
        parts += [entry.text[place : token.begin], f"\0{token.kind}\0"]
        place = token.end
    return re.sub(r"[\s.=#█▏▎▍▌▋▊▉━╸╺>-]+", " ", "".join([*parts, entry.text[place:]]))

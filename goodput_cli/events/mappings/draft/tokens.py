"""Find the values in which similar texts differ."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goodput_cli.events.mappings.draft.cells import Texts
from goodput_cli.events.mappings.draft.entries import Entry, ValueColumn
from goodput_cli.events.mappings.draft.words import EPOCH, STEP, unit_of
from goodput_cli.events.text.line_timestamps import DATED
from goodput_cli.vocabulary.secrets import without_secrets

TOKEN = re.compile(
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
"""Pattern of values that differ between lines."""
OF_DIGITS = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T ]|\dx", re.ASCII)
"""Texts that are a token only with some digits: possible dates and hexadecimal numbers."""
_COUNTED = re.compile(r"\s?(epoch|batch|iter|step|it)s?\b(?!/s)")
"""A word right after a number that defines it, as in `3epoch`, if no word before it does."""
_OF = re.compile(r"(?:it|iter|step|batch)?s? ?(?:/|of) ?")
_FILLING = re.compile(r"[\s.=#█▏▎▍▌▋▊▉━╸╺>-]+")
"""Characters that fill a line or progress bar."""
_JOINED_BEHIND = re.compile(r"[A-Za-z]{1,2}\b|_|-(?=\w)|\.\w|/\w")
_NAMED = re.compile(r"(?:step|iter|iteration|epoch|ckpt|checkpoint)[-_=]?0*$", re.IGNORECASE)


def shape(text: str, begin: int) -> tuple[str, list[tuple[int, int]]]:
    """Return the common part of all texts that differ only in their values, and the positions of these. begin: position
    of the message."""
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    place = begin
    for match in TOKEN.finditer(text, begin):
        parts += text[place : match.start()], "\0", match.lastgroup or "", "\0"
        place = match.end()
        spans.append(match.span())
    parts.append(text[place:])
    filled = _FILLING.sub(" ", "".join(parts))
    return filled.replace("[ \0", "[\0").replace("( \0", "(\0"), spans  # a number may be filled up with blanks


def column_of(one: Entry, tokens: Sequence[re.Match[str]], at: int, values: Texts) -> ValueColumn:
    """Return the column of values at a position, described by the text around the first one."""
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
        values,
        unit_of(before, after) if is_number and not is_total else None,
        of=at + 1 if is_number and is_of else None,
        counts=is_number and not after.startswith("%"),
        is_elapsed=token.lastgroup == "clock" and (after.startswith("<") or "elapsed" in before.lower()),
        joined=is_number and joined and not (is_total or is_of) and not ("/" not in head and _NAMED.search(head)),
    )


def _ends_in_a_name(text: str) -> bool:
    """Return True if the word at the end of a text has a letter."""
    return any(map(str.isalpha, re.split(r"[^\w.-]", text)[-1]))


def _label(one: Entry, tokens: Sequence[re.Match[str]], at: int) -> str:
    """Return the words before a token that may be its name; for digits of a name such as `acc-5`, which are not a
    separate number, those before the name."""
    before = one.text[tokens[at - 1].end() if at else one.begin : tokens[at].start()]
    if at and not before.strip(" :=|,"):
        earlier = one.text[tokens[at - 2].end() if at > 1 else one.begin : tokens[at - 1].start()]
        if re.search(r"[A-Za-z][-@]$", earlier):
            return _label(one, tokens, at - 1)
    words = re.findall(r"[A-Za-z]+", without_secrets(before).replace("_", " "))
    return " ".join(words[-3:]).lower()

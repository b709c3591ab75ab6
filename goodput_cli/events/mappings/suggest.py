"""Drafts a mapping of a log that no format reads: its most frequent shapes of lines, and what may be a step in them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from goodput_cli.events.text.prefixes import bare
from goodput_cli.events.text.stamps import DATED, StampError, stamp_of

SHAPES = 200
"""So many of the most frequent shapes are looked at."""
_KEPT = 500
_LONGEST = 400
_CANDIDATES = 3
_NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?")
_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\"[^\"]*\"|'[^']*'")
_UNITS = (("ms", "ms"), ("it/s", "per_s"), ("sec", "s"), ("s", "s"))
_WORDS = (
    ("start", r"\b(?:start(?:ing|ed)?|launch\w*|initiali[sz]ing)\b"),
    ("resume", r"\b(?:resum\w+|restor\w+)\b"),
    ("save", r"\b(?:sav(?:ing|ed)|checkpoint)\b"),
    ("eval", r"\b(?:eval\w*|valid\w*)\b"),
    ("finished", r"\b(?:finish\w*|done|complet\w*)\b"),
    ("crashed", r"\b(?:error|abort\w*|fail\w*)\b"),
)


@dataclass
class Shape:
    """Lines that differ in their numbers only."""

    example: str
    count: int = 0
    rows: list[tuple[str, ...]] = field(default_factory=list)
    """The numbers of the first lines."""


@dataclass(frozen=True)
class Candidate:
    """A shape of which one number counts steps."""

    shape: Shape
    step: int
    """Which of its numbers."""
    took: int | None
    """Which of its numbers may be the time of a step."""
    unit: str
    rises: float
    """The share of lines in which the step is above that of the line before."""


def suggest(lines: Iterable[str], name: str) -> str:
    """A mapping of the log, as text to edit: the best candidate for steps, others commented out, and real lines."""
    shapes = _shapes(lines)
    candidates = sorted(
        (one for shape in shapes for one in _candidates(shape)),
        key=lambda one: (one.took is None, -one.rises, -one.shape.count),
    )
    chosen = list(_distinct(candidates))
    from_0 = bool(chosen) and _first_step(chosen[0]) == 0
    parts = [
        f'name = "{_plain(name)}"',
        f'steps = "{"index" if from_0 else "done"}"',
        '# "done": so many steps are done; "index": this step, from 0, is done; "start": it begins',
        "",
        *_step_rules(chosen),
    ]
    for event, shape in _others(shapes, [one.shape for one in chosen]):
        parts += ["[[rule]]", f'event = "{event}"', f"line = {_quoted(_template(shape.example, {}))}", ""]
    if chosen:
        parts += [
            "[[sample]]                # checked whenever the mapping is loaded",
            f"line = {_quoted(chosen[0].shape.example)}",
            f'gives = {{ event = "step", step = {_first_step(chosen[0]) + from_0} }}',
            "",
        ]
    return "\n".join(parts)


def _step_rules(chosen: Sequence[Candidate]) -> Iterable[str]:
    if not chosen:
        yield from (
            "# No line has a number that goes up from line to line: say what a step looks like.",
            "# [[rule]]",
            '# event = "step"',
            "# line = 'step {step:int} took {each:float}s'",
            "",
        )
    for at, one in enumerate(chosen):
        yield from (f"# {line}" if line and at else line for line in _step_rule(one))


def _first_step(one: Candidate) -> int:
    return _whole(one.shape.rows[0][one.step])


def _shapes(lines: Iterable[str]) -> list[Shape]:
    found: dict[str, Shape] = {}
    for line in lines:
        text = bare(line.rstrip("\n"))[0].strip()[:_LONGEST]
        if not text or text.startswith("{"):
            continue
        body = DATED.sub("", text)
        key = _NUMBER.sub("#", _VARIABLE.sub("*", body))
        shape = found.get(key)
        if shape is None:
            if len(found) >= 50 * SHAPES:
                continue
            shape = found[key] = Shape(text)
        shape.count += 1
        if len(shape.rows) < _KEPT:
            shape.rows.append(tuple(_NUMBER.findall(DATED.sub("", text))))
    return sorted(found.values(), key=lambda shape: -shape.count)[:SHAPES]


def _candidates(shape: Shape) -> Iterable[Candidate]:
    if shape.count < _CANDIDATES:
        return
    columns = list(zip(*shape.rows, strict=False))
    for at, column in enumerate(columns):
        if not all(re.fullmatch(r"\d[\d,]*", value) for value in column):
            continue
        numbers = [_whole(value) for value in column]
        rises = sum(b > a for a, b in pairwise(numbers)) / max(1, len(numbers) - 1)
        if rises < 0.8:
            continue
        took, unit = _duration(shape, columns, at)
        yield Candidate(shape, at, took, unit, rises)


def _duration(shape: Shape, columns: Sequence[Sequence[str]], step: int) -> tuple[int | None, str]:
    """A number with a unit of time behind it that is roughly the same on all lines."""
    places = list(_NUMBER.finditer(_blanked(shape.example)))
    for at in range(len(columns)):
        if at == step or at >= len(places):
            continue
        behind = shape.example[places[at].end() : places[at].end() + 6].lstrip(" (")
        unit = next((unit for text, unit in _UNITS if re.match(rf"{re.escape(text)}\b", behind)), None)
        before = shape.example[max(0, places[at].start() - 12) : places[at].start()]
        unit = unit or ("ms" if "(ms)" in before else "s" if re.search(r"\(s(?:ec)?\)", before) else None)
        if unit is not None:
            return at, unit
    return None, ""


def _blanked(text: str) -> str:
    """A text with its date as blanks, so that places stay and its digits do not count."""
    return DATED.sub(lambda found: " " * len(found[0]), text)


def _distinct(candidates: Sequence[Candidate]) -> Iterable[Candidate]:
    seen: set[int] = set()
    for one in candidates:
        if id(one.shape) not in seen:
            seen.add(id(one.shape))
            yield one
        if len(seen) == _CANDIDATES:
            return


def _step_rule(one: Candidate) -> list[str]:
    names = {one.step: "step:int"} | ({one.took: "each:float"} if one.took is not None else {})
    lines = ["[[rule]]", 'event = "step"', f"line = {_quoted(_template(one.shape.example, names))}"]
    if one.took is not None:
        lines.append(f'each = {{ unit = "{one.unit}" }}')
        if not _has_stamp(one.shape.example):
            lines.append('time = "cursor"          # the line has no time: count on from the last one')
    return [*lines, ""]


def _has_stamp(text: str) -> bool:
    try:
        return stamp_of(text) is not None
    except StampError:
        return False


def _template(example: str, names: dict[int, str]) -> str:
    """A template of a line: its numbers skipped, but for those with a name; its date and what follows the last name
    left out."""
    text = _blanked(example)
    parts: list[str] = []
    at = 0
    for number, found in enumerate(_NUMBER.finditer(text)):
        parts.append(_escaped(text[at : found.start()]))
        parts.append("{" + names[number] + "}" if number in names else "{_}")
        at = found.end()
        if names and number == max(names):
            break
    tail = re.match(r"[^\d,|]{0,12}", text[at:]) if names else None
    parts.append(_escaped(text[at:] if tail is None else tail[0]))
    whole = re.sub(r"\s+", " ", "".join(parts)).strip()
    first = whole.find("{")
    start = max((whole.rfind(mark, 0, first) for mark in ("] ", " - ", "| ")), default=-1) if first > 0 else -1
    return whole[start + 2 :].strip() if start > 0 and len(whole[start + 2 : first].strip()) > 3 else whole


def _escaped(text: str) -> str:
    return text.replace("{", " ").replace("}", " ")


def _others(shapes: Sequence[Shape], taken: Sequence[Shape]) -> Iterable[tuple[str, Shape]]:
    """The most frequent shape with a word for each other event."""
    found: defaultdict[str, list[Shape]] = defaultdict(list)
    for shape in shapes:
        if any(shape is one for one in taken):
            continue
        event = next((event for event, words in _WORDS if re.search(words, shape.example, re.IGNORECASE)), None)
        if event is not None and len(re.sub(r"[^A-Za-z]", "", _template(shape.example, {}))) > 5:
            found[event].append(shape)
    return [(event, found[event][0]) for event, _ in _WORDS if event in found and event != "crashed"]


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-.") or "my-log"


def _quoted(text: str) -> str:
    """A text as TOML: literal where it can be."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in escaped) + '"'

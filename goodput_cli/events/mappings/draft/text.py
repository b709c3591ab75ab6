"""Drafts the rules of a log of text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from goodput_cli.events.mappings.clocks import pattern_of
from goodput_cli.events.mappings.draft import words
from goodput_cli.events.mappings.draft.entries import AMERICAN, Clock, Entry
from goodput_cli.events.mappings.draft.phases import Attempts, Chosen, Thing, phases
from goodput_cli.events.mappings.draft.shapes import Shape, shapes_of
from goodput_cli.events.mappings.draft.steps import Candidate, Column, Lines, candidates, epochs_as_steps
from goodput_cli.events.mappings.draft.templates import template

_BEST = 3
_DAY_FIRST = 'time = { format = "%d/%m/%Y %H:%M:%S" }'
_SHAPES = 200


@dataclass
class Rule:
    """A drafted rule: its keys as TOML, and a line that it reads."""

    event: str
    keys: list[str]
    example: str
    lines: int
    note: str = ""
    active: bool = True


@dataclass
class Draft:
    """What a mapping is made of."""

    top: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What whoever drafts it should look at."""
    score: float = 0.0
    """How likely its steps are steps."""


def text_draft(entries: Sequence[Entry], clock: Clock) -> Draft:
    """The rules of lines of text."""
    shapes = shapes_of(entries)[:_SHAPES]
    timed = sum(entry.ns is not None for entry in entries) > 0
    found = [_lines(shape) for shape in shapes]
    epochs = _epoch_lines(found)
    named = [(at, one) for at, lines in enumerate(found) for one in candidates(lines, epochs)]
    if not named:
        named = [(at, one) for at, lines in enumerate(found) for one in epochs_as_steps(lines)]
    best = _best(named)
    draft = Draft()
    if clock.format:
        draft.top.append(f"time = {{ format = {quoted(clock.format)} }}")
    if not best:
        draft.notes.append("no line has a number that goes up from line to line: say what a step looks like")
        return draft
    chosen = best[0][1]
    draft.score = chosen.score - math.log10(chosen.lines.count)
    draft.top.append(f'steps = "{"index" if chosen.index else "done"}"')
    if _carries(chosen):
        draft.rules += _epoch_rules(shapes, found, chosen)
    for rank, (shape_at, one) in enumerate(best):
        draft.rules.append(_step_rule(shapes[shape_at], one, rank == 0))
    attempts = Attempts(list(chosen.lines.places), frozenset(chosen.falls))
    taken = {number for number, _ in best[:1]}
    things = [
        Thing(number, words.plain(shape.message), shape.places, shape.count, _took(lines) is not None)
        for number, (shape, lines) in enumerate(zip(shapes, found, strict=True))
        if number not in taken and not (_carries(chosen) and _epoch_column(lines) is not None)
    ]
    for phase in phases(things, attempts, timed):
        draft.rules.append(_phase_rule(shapes[phase.at], found[phase.at], phase, chosen))
    draft.notes += _remarks(chosen, timed)
    if not clock.format and any(pattern_of(AMERICAN).search(one.text, 0, 40) for one in entries[:20]):
        draft.notes.append(f"03/01/2026 is read as 1 March; if it is 3 January: {_DAY_FIRST}")
    return draft


def quoted(text: str) -> str:
    """A text as TOML: literal where it can be."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in escaped) + '"'


def _lines(shape: Shape) -> Lines:
    times = [entry.ns for _, entry, _ in shape.rows]
    said = words.plain(shape.message)
    penalty = 2.0 if re.search(f"{words.EVAL}|{words.PREP}|{words.SAVE}|{words.RESUME}", said[:60]) else 0.0
    return Lines([_column(shape, at) for at in range(len(shape.tokens))], shape.places, times, shape.count, penalty)


def _column(shape: Shape, at: int) -> Column:
    token, before, after = shape.tokens[at], shape.before(at), shape.after(at)
    is_number = token.kind == "number"
    over = before.strip() in ("/", "of", "/ ") and at > 0
    unit = words.unit_of(before, after) if is_number and not over else None
    elapsed = token.kind == "clock" and (after.startswith("<") or "elapsed" in before.lower())
    label = "" if over else shape.label(at)
    behind = shape.before(at + 1).strip() if at + 1 < len(shape.tokens) else ""
    of = at + 1 if is_number and behind in ("/", "of") and shape.tokens[at + 1].kind == "number" else None
    label = "total" if over else label
    return Column(label, shape.column(at), unit, of, is_number and not after.startswith("%"), elapsed)


def _epoch_column(lines: Lines) -> int | None:
    """The column of an epoch, in lines that name no step."""
    if any(words.step_likeness(column.name) > 0 for column in lines.columns):
        return None
    found = [at for at, one in enumerate(lines.columns) if words.EPOCH.search(one.name) and one.whole()]
    return found[0] if found and lines.count >= 2 else None


def _epoch_lines(found: Sequence[Lines]) -> list[tuple[int, int]]:
    """Places of lines that name an epoch and no step, and the epoch."""
    named: list[tuple[int, int]] = []
    for lines in found:
        at = _epoch_column(lines)
        if at is not None:
            named += zip(lines.places, lines.columns[at].whole() or (), strict=True)
            break
    return sorted(named)


def _best(named: Sequence[tuple[int, Candidate]]) -> list[tuple[int, Candidate]]:
    """The best candidate of each shape, the likeliest first."""
    best: dict[int, Candidate] = {}
    for at, one in sorted(named, key=lambda pair: -pair[1].score):
        best.setdefault(at, one)
    found = list(best.items())[:_BEST]
    return [(at, one) for at, one in found if one is found[0][1] or not one.lines.penalty]


def _carries(one: Candidate) -> bool:
    return one.epochs is not None and one.epochs.column is None


def _step_rule(shape: Shape, one: Candidate, active: bool) -> Rule:
    names = {one.step: "step:int"}
    more: list[str] = []
    if one.epochs is not None:
        if one.epochs.column is not None:
            names[one.epochs.column] = "epoch:int"
        if one.epochs.of is not None:
            names[one.epochs.of] = "of:int"
        if one.epochs.column is not None or one.epochs.steps is not None:
            steps = f", steps = {one.epochs.steps}" if one.epochs.steps is not None else ""
            more.append(f"epoch = {{ first = {one.epochs.first}{steps} }}")
    timed = all(time is not None for time in one.lines.times)
    if one.elapsed is not None:
        names[one.elapsed] = "elapsed:clock"
    elif one.each is not None:
        names[one.each] = "each:float"
        more.append(f'each = {{ unit = "{one.unit}" }}')
    if (one.elapsed is not None or one.each is not None) and not timed:
        more.append('time = "cursor"          # these lines have no time: count on from the last one')
    return _line_rule("step", shape, names, more, active)


def _epoch_rules(shapes: Sequence[Shape], found: Sequence[Lines], chosen: Candidate) -> Iterable[Rule]:
    """The lines that name the epoch of the steps behind them; the first epoch is where a process starts."""
    assert chosen.epochs is not None
    shape_at, column = next((at, col) for at, one in enumerate(found) if (col := _epoch_column(one)) is not None)
    more = [f"epoch = {{ first = {chosen.epochs.first} }}"] if chosen.epochs.first != 1 else []
    shape, first = shapes[shape_at], chosen.epochs.first
    rule = _line_rule("alive", shape, {column: "epoch:int"}, more, True)
    rule.example = shape.rows[-1][1].line
    begins = [entry.line for _, entry, texts in shape.rows if texts[column] == str(first)]
    if begins and not chosen.falls:
        line = quoted(template(shape, {column: "epoch:int"}).replace("{epoch:int}", str(first)))
        yield Rule("start", [f"line = {line}", "once = true", "also = true"], begins[0], len(begins))
    yield rule


def _phase_rule(shape: Shape, lines: Lines, phase: Chosen, steps: Candidate) -> Rule:
    names: dict[int, str] = {}
    more: list[str] = [f'edge = "{phase.edge}"'] if phase.edge else []
    took = _took(lines) if phase.uses_took else None
    if took is not None:
        names[took] = "took:float"
        more.append(f'took = {{ unit = "{(lines.columns[took].unit or ("s", False))[0]}" }}')
    step = step_of(lines, steps) if phase.event in ("save", "resume") else None
    if step is not None:
        names[step] = "step:int"
        if phase.event == "resume" and goes_on_from(lines, step, steps):
            more.append("step = { add = -1 }     # the number is that of the next step")
    if phase.once:
        more.append("once = true")
    timed = any(time is not None for time in lines.times)
    if took is not None and not timed:
        more.append('time = "cursor"')
    return _line_rule(phase.event, shape, names, more, True)


def _line_rule(event: str, shape: Shape, names: dict[int, str], more: list[str], active: bool) -> Rule:
    keys = [f"line = {quoted(template(shape, names))}", *more]
    return Rule(event, keys, shape.example.line, shape.count, active=active)


def _took(lines: Lines) -> int | None:
    """The column that says how long something took."""
    for at, column in enumerate(lines.columns):
        if column.unit is not None and not column.unit[1] and column.unit[0] != "per_s" and column.counts:
            return at
    return None


def step_of(lines: Lines, steps: Candidate) -> int | None:
    """The column whose values are numbers of steps that were recorded."""
    known = set(steps.done)
    for at, column in enumerate(lines.columns):
        values = column.whole()
        named = words.step_likeness(column.name) > 0 or any(word in column.name for word in ("checkpoint", "ckpt"))
        if values and named and column.unit is None and sum(one in known for one in values) >= 0.8 * len(values):
            return at
    return None


def goes_on_from(lines: Lines, column: int, steps: Candidate) -> bool:
    """Whether the first step behind a line is the one that it names."""
    values = lines.columns[column].whole() or []
    following = [
        next((done for at, done in zip(steps.lines.places, steps.done, strict=True) if at > place), None)
        for place in lines.places
    ]
    return bool(values) and all(a == b for a, b in zip(values, following, strict=False))


def _remarks(chosen: Candidate, timed: bool) -> Iterable[str]:
    if not timed and chosen.each is None and chosen.elapsed is None:
        yield "no line has a time, and no number is the time of a step: let the program print stamps"
    if chosen.epochs is not None and chosen.epochs.steps is not None:
        yield f"steps begin anew with each epoch; by the lines an epoch has {chosen.epochs.steps}"
    if chosen.falls:
        times = "once" if len(chosen.falls) == 1 else f"{len(chosen.falls)} times"
        yield f"the number of the step falls {times}: something was restarted"

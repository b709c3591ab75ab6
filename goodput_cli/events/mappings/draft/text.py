"""Drafts the rules of a log of text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from goodput_cli.events.mappings.draft import words
from goodput_cli.events.mappings.draft.lines import (
    AMERICAN,
    Clock,
    Entry,
    Shape,
    behind_epoch,
    epoch_unit,
    shapes_of,
    template,
    time_of_day,
)
from goodput_cli.events.mappings.draft.steps import Candidate, Column, Lines, candidates, epochs_as_steps, usual_step
from goodput_cli.events.mappings.draft.words import Attempts, Chosen, Thing, phases
from goodput_cli.events.mappings.times import pattern_of

_BEST = 3
_FAR_MORE = 5
_CLOSE = 0.01
"""Scores that differ by less are equal."""
_DAY_FIRST = 'time = { format = "%d/%m/%Y %H:%M:%S" }'
_SHAPES = 200
_COUNTED = re.compile(r"(epoch|batch|iter|step|it)s?\b(?!/)")
"""A word directly behind a number that says what it counts, as in `3epoch`."""
_SLOWEST = 86_400
"""Seconds; no step takes more."""
_LEAST_STEP = 1e-3
"""Seconds; no step that is logged takes less."""
_RARE = 20
"""Steps without a time of their own, to one time of another line between them, are too many."""
_MOST_OF_SPAN = 2.0
"""Steps that took longer than so many times the log did not take it."""


@dataclass
class DraftedRule:
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
    rules: list[DraftedRule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What whoever drafts it should look at."""
    assumed: list[str] = field(default_factory=list)
    """What its answers rest on: said under each until somebody has looked at it."""
    refused: list[str] = field(default_factory=list)
    """Why it would answer wrongly, and what to say by hand."""
    expected: list[tuple[int, str, int]] = field(default_factory=list)
    """Of the first lines of steps, where each stands, itself, and the number that its rule has to read there."""
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
        draft.refused.append(_without_steps(found))
        return draft
    chosen = best[0][1]
    draft.score = chosen.score - math.log10(chosen.lines.count)
    draft.top.append(f'steps = "{"index" if chosen.index else "done"}"')
    if _carries(chosen):
        draft.rules += _epoch_rules(shapes, found, chosen)
    for rank, (shape_at, one) in enumerate(best):
        draft.rules.append(_step_rule(shapes[shape_at], one, rank == 0))
    _add_phases(draft, shapes, found, best[0], timed)
    draft.notes += remarks(chosen)
    draft.assumed += assumptions(chosen)
    rows = shapes[best[0][0]].rows
    steps = expected_steps(chosen)
    draft.expected = [(at, entry.line, step) for (at, entry, _), step in zip(rows, steps, strict=False)]
    times = [entry.ns for entry in entries if entry.ns is not None]
    draft.refused += contradictions(chosen, times, "" if times else time_of_day(entries))
    draft.refused += _too_few_times(entries, chosen)
    if not clock.format and any(pattern_of(AMERICAN).search(one.text, 0, 40) for one in entries[:20]):
        draft.notes.append(f"03/01/2026 is read as 1 March; if it is 3 January: {_DAY_FIRST}")
    return draft


def _add_phases(
    draft: Draft, shapes: Sequence[Shape], found: Sequence[Lines], best: tuple[int, Candidate], timed: bool
) -> None:
    """The rules of what goes on beside the steps. best: where the shape of the steps stands, and their candidate."""
    taken, chosen = best
    attempts = Attempts(list(chosen.lines.places), frozenset(chosen.falls))
    things = [
        Thing(number, words.plain(shape.message), shape.places, shape.count, _took(lines) is not None)
        for number, (shape, lines) in enumerate(zip(shapes, found, strict=True))
        if number != taken and not (_carries(chosen) and _epoch_column(lines) is not None)
    ]
    for phase in phases(things, attempts, timed):
        draft.rules.append(_phase_rule(shapes[phase.at], found[phase.at], phase, chosen))
        if phase.event == "start" and not phase.once:
            draft.assumed.append(f"each launch begins with a line such as: {shapes[phase.at].example.message[:80]}")


def _without_steps(found: Sequence[Lines]) -> str:
    """Why nothing counts steps, with the numbers that go up and count something else."""
    others = [
        column.name
        for lines in found
        for column in lines.columns
        if lines.count >= 3 and column.name and column.unit is None and column.counts and _goes_up(column)
    ]
    if not others:
        return "no line has a number that goes up from line to line: say what a step looks like"
    named = " and ".join(f"`{name}`" for name in list(dict.fromkeys(others))[:2])
    return (
        f"no line has a number of a step: {named} goes up, and counts tokens, samples, epochs or another thing; let "
        "the program print the step, or say with a mapping of your own that this number is one"
    )


def _goes_up(column: Column) -> bool:
    numbers = column.numbers()
    rows = list(pairwise(numbers))
    return len(rows) > 1 and sum(b > a for a, b in rows) >= 0.9 * len(rows)


def quoted(text: str) -> str:
    """A text as TOML: literal where it can be."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in escaped) + '"'


def _lines(shape: Shape) -> Lines:
    times = [entry.ns for _, entry, _ in shape.rows]
    said = words.plain(shape.message)[:60]
    about = re.search(f"{words.EVAL}|{words.PREP}|{words.SAVE}|{words.RESUME}", said)
    of_both = about is not None and re.search(r"\btrain\b", said[: about.start()]) and re.match(words.EVAL, about[0])
    penalty = 2.0 if about is not None and not of_both else 0.0
    return Lines(
        [_column(shape, at) for at in range(len(shape.tokens))], shape.places, times, shape.count, penalty, True
    )


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
    unit_word = _COUNTED.match(after)
    label = unit_word[1] if unit_word is not None and is_number else label
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
    """The best candidate of each shape, the likeliest first; one of lines about saves and the like only if no others
    that are far more come into question."""
    best: dict[int, Candidate] = {}
    for at, one in sorted(named, key=lambda pair: -pair[1].score):
        if at not in best or (one.score > best[at].score - _CLOSE and _counts_for(best[at], one)):
            best[at] = one
    ranked = list(best.items())
    others = [pair for pair in ranked if _is_rather(pair[1], ranked[0][1])][:1]
    found = [*others, *(pair for pair in ranked if pair not in others)][:_BEST]
    return [(at, one) for at, one in found if one is found[0][1] or not one.lines.penalty]


def _is_rather(one: Candidate, best: Candidate) -> bool:
    """Whether steps are rather in lines that are far more, though others name a step: those may be about saves, or be
    the first line of each launch."""
    if one.lines.penalty or one.lines.count < 2 * best.lines.count:
        return False
    column = one.lines.columns[one.step]
    named = words.step_likeness(column.name) > 0 or column.of is not None
    return best.lines.penalty > 0 or (named and one.lines.count >= _FAR_MORE * best.lines.count)


def _counts_for(one: Candidate, other: Candidate) -> bool:
    """Whether the first counts so many of whatever for each one that the second counts, as samples for each step."""
    pairs = list(zip(one.done, other.done, strict=True))
    return all(b > 0 and a % b == 0 for a, b in pairs) and len({a // b for a, b in pairs} - {1}) == 1


def _carries(one: Candidate) -> bool:
    return one.epochs is not None and one.epochs.column is None


def _step_rule(shape: Shape, one: Candidate, active: bool) -> DraftedRule:
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
    if one.elapsed is not None and one.lines.columns[one.elapsed].unit is not None:
        names[one.elapsed] = "elapsed:float"
        more.append(f'elapsed = {{ unit = "{one.unit}", begins = true }}')
    elif one.elapsed is not None:
        names[one.elapsed] = "elapsed:clock"
    elif one.each is not None:
        names[one.each] = "each:float"
        more.append(f'each = {{ unit = "{one.unit}"{", of = " + quoted("last") if one.of_last else ""} }}')
    if (one.elapsed is not None or one.each is not None) and not timed:
        more.append('time = "cursor"          # these lines have no time: count on from the last one')
    return _line_rule("step", shape, names, more, active)


def _epoch_rules(shapes: Sequence[Shape], found: Sequence[Lines], chosen: Candidate) -> Iterable[DraftedRule]:
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
        yield DraftedRule("start", [f"line = {line}", "once = true", "also = true"], begins[0], len(begins))
    yield rule


def _phase_rule(shape: Shape, lines: Lines, phase: Chosen, steps: Candidate) -> DraftedRule:
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


def _line_rule(event: str, shape: Shape, names: dict[int, str], more: list[str], active: bool) -> DraftedRule:
    line, unit = template(shape, names), epoch_unit(shape.example)
    if unit:
        line, more = behind_epoch(shape.example, line), [*more, f'time = {{ format = "{unit}" }}']
    keys = [f"line = {quoted(line)}", *more]
    return DraftedRule(event, keys, shape.example.line, shape.count, active=active)


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


def contradictions(chosen: Candidate, times: Sequence[int], of_a_day: str = "") -> Iterable[str]:
    """Why the answers of a draft would be wrong: there is no time, or more than there can be. times: all of the log's,
    ns. of_a_day: one without a date, where lines have such times; else ""."""
    if not times and chosen.each is None and chosen.elapsed is None:
        yield from _without_time(chosen, of_a_day)
    yield from _no_steps(chosen)
    yield from _no_time_of_a_step(chosen, times)


def _without_time(chosen: Candidate, of_a_day: str) -> Iterable[str]:
    if of_a_day:
        yield (
            f"its lines have a time of day ({of_a_day}) that is read at their beginning alone, and no number is the "
            'time of a step: put it there, or say how it is written with `time = { format = "%H:%M:%S" }` in a mapping'
        )
    else:
        yield "no line has a time, and no number is the time of a step: let the program print stamps"
    timed = [one for at, one in enumerate(chosen.lines.columns) if one.unit is not None and at != chosen.step]
    for one in timed[:3]:
        yield (
            f"`{one.name}` never falls, and is no time since the start: it is not read as the time of a step; say "
            "what it is with a field `each` or `elapsed`"
        )


def _no_steps(chosen: Candidate) -> Iterable[str]:
    """Why its number may count something else than steps."""
    usual = usual_step(chosen.lines, chosen.done)
    if usual is not None and usual < _LEAST_STEP:
        yield (
            f"by the stamps of its lines one of `{_named(chosen, chosen.step)}` takes {1000 * usual:.3g} ms: it counts "
            "samples or tokens, and no steps; say by hand what counts steps"
        )
    if chosen.runs_to_its_end is not None:
        yield (
            f"`{_named(chosen, chosen.step)}` comes to its end, {chosen.runs_to_its_end}, and begins anew: these are "
            "epochs that no line numbers, or runs of their own, and nothing was restarted; say by hand which number is "
            "that of the epoch, or cut the log into its runs"
        )


def _no_time_of_a_step(chosen: Candidate, times: Sequence[int]) -> Iterable[str]:
    """Why its time of a step may be something else. times: all of the log's, ns."""
    each = None if chosen.each is None else chosen.lines.columns[chosen.each]
    slow = each is not None and chosen.trained is not None and len(chosen.done) > 1
    if each is not None and slow and (chosen.trained or 0) > _SLOWEST * max(1, max(chosen.done) - min(chosen.done)):
        yield (
            f"by `{_named(chosen, chosen.each or 0)}` a step takes over a day: that number is no time of one; say by "
            "hand what is, `each` with its unit"
        )
    if chosen.may_be_of_all:
        yield (
            f"`{_named(chosen, chosen.each or 0)}` may be the time of one step, or of all {chosen.apart} since the "
            'line before: say by hand which, `each = { unit = "s" }` or `each = { unit = "s", of = "all" }`'
        )
    span, trained = (max(times) - min(times)) / 1e9 if times else 0.0, chosen.trained
    if trained is not None and span > 0 and trained > _MOST_OF_SPAN * span and chosen.each is not None:
        yield (
            f"by `{chosen.lines.columns[chosen.each].name}` all steps took {trained:,.0f} s, and by its stamps the log "
            f"is {span:,.0f} s long: say by hand what that number is, `each` with its unit or `took`, or leave it out"
        )


def _too_few_times(entries: Sequence[Entry], chosen: Candidate) -> Iterable[str]:
    """Why nothing says when steps were, though some lines have a time."""
    places = chosen.lines.places
    if chosen.each is not None or chosen.elapsed is not None or any(time is not None for time in chosen.lines.times):
        return
    between = {entry.ns for entry in entries[places[0] : places[-1]]} - {None}
    if any(entry.ns is not None for entry in entries) and _RARE * len(between) < len(places):
        yield (
            f"its lines of steps have no time, and between {len(places)} of them other lines have {len(between)}: when "
            "a step was is not known; let the program print a stamp on each line, or say by hand which number is the "
            "time of a step (`each`)"
        )


def _named(chosen: Candidate, at: int) -> str:
    """What stands before a number, or such as it is."""
    column = chosen.lines.columns[at]
    return column.name or f"{column.texts[0]}, …"


def expected_steps(chosen: Candidate) -> list[int]:
    """What a rule for steps reads in each of its lines: the number of an epoch that other lines name is added later."""
    values = chosen.lines.columns[chosen.step].whole() or []
    own = chosen.epochs is None or chosen.epochs.column is None
    return [value + chosen.index for value in (values if own else chosen.done)]


def assumptions(chosen: Candidate) -> Iterable[str]:
    """What the answers of a draft rest on, and the log does not prove."""
    name = _named(chosen, chosen.step)
    unnamed = words.step_likeness(chosen.lines.columns[chosen.step].name) <= 0 and chosen.apart > 1
    samples = ", and counts no samples" if unnamed else ""
    if chosen.index:
        yield f"`{name}` is the index of the last step, from 0{samples}"
    else:
        yield f"`{name}` counts the steps that are done{samples}"
    if chosen.each is not None:
        each = _named(chosen, chosen.each)
        if chosen.of_last:
            yield (
                f"`{each}` is the time of the last step alone, in {chosen.unit}; one that is far longer, at an even "
                "distance, holds an evaluation"
            )
        else:
            apart = f", not of the {chosen.apart} between two lines" if chosen.apart > 1 else ""
            yield f"`{each}` is the mean time of one step, in {chosen.unit}{apart}"
    if chosen.elapsed is not None:
        unit = chosen.unit if chosen.lines.columns[chosen.elapsed].unit is not None else None
        yield f"`{_named(chosen, chosen.elapsed)}` never falls: read as time since the start, in {unit or 's'}"
    if chosen.falls:
        yield f"where `{name}` falls, which it does {_times(len(chosen.falls))}, something was restarted"
    if chosen.epochs is not None:
        steps = chosen.epochs.steps
        yield "steps begin anew with each epoch" + ("" if steps is None else f", which has {steps}")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def remarks(chosen: Candidate) -> Iterable[str]:
    """What whoever drafts a mapping should look at."""
    if chosen.epochs is not None and chosen.epochs.steps is not None:
        yield f"steps begin anew with each epoch; by the lines an epoch has {chosen.epochs.steps}"
    if chosen.falls:
        yield f"the number of the step falls {_times(len(chosen.falls))}: something was restarted"

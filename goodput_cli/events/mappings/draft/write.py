"""Writes a drafted mapping: the templates of its rules, what was proven of them and what was left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from goodput_cli.arrays import garbage_collection_paused
from goodput_cli.errors import UsageError
from goodput_cli.events.mappings.declared import mappings_in
from goodput_cli.events.mappings.draft import guess as guessing
from goodput_cli.events.mappings.draft import proof
from goodput_cli.events.mappings.draft.entries import (
    UNIX_TIME,
    Entry,
    Group,
    Log,
    epoch_format,
    quoted,
    taken_apart,
)
from goodput_cli.events.mappings.draft.guess import PhaseGuess, StepGuess
from goodput_cli.events.mappings.draft.proof import Contradiction, Steps, Whole
from goodput_cli.events.mappings.draft.templates import SKIPPED, literal, template
from goodput_cli.events.mappings.registry import Mappings, load_mapping
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.mappings.samples import read_line, shown
from goodput_cli.events.text.lines import LineRules
from goodput_cli.events.text.log_lines import EventType
from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.text import duration, plural, safe

_LONGEST_SAMPLE = 500
_SAMPLED = ("event", "step", "each", "took", "elapsed", "edge")
_VARIANTS = (0, 1, 2, 3, 5, 8)
"""So many words behind the last field are tried, until a rule reads the lines that it was made of and no others."""
_SLOW = "slow = true             # no text of four characters is in every line"
_STEP = "line = 'step {step:int} took {each:float}s'"


@dataclass(frozen=True)
class Rule:
    """A drafted rule: its keys as TOML, and a line that it reads."""

    event: str
    keys: tuple[str, ...]
    example: str
    lines: int
    note: str = ""


@dataclass(frozen=True)
class LeftOut:
    """A rule that the log contradicts."""

    event: str
    line: int | None
    reason: str
    test: str
    """Which test it fails (`proof`)."""


@dataclass(frozen=True)
class Draft:
    """A drafted mapping."""

    text: str
    """TOML: rules that read the log, what was left out and why, and samples of its lines. Of comments alone where no
    rule could be proven, or none is needed."""
    rules: int = 0
    lines: int = 0
    """How many lines it was made of."""
    left_out: tuple[LeftOut, ...] = ()
    refused: tuple[str, ...] = ()
    """Why it would answer wrongly, and what to do."""
    refused_by: str = ""
    """The test that the likeliest rule of the steps fails, or its answer (`proof`); "": no number may count steps."""
    doubts: tuple[str, ...] = ()
    """What stands beside its answer."""


@dataclass
class _Made:
    """What a draft is made of so far."""

    log: Log
    name: str
    top: list[str]
    rules: list[Rule] = field(default_factory=list)
    last: Rule | None = None
    """The rule of what no other reads."""
    left_out: list[tuple[str, Contradiction]] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    beside: dict[int, float] = field(default_factory=dict)
    """Seconds that phases name in the gap before a record."""
    untimed: set[int] = field(default_factory=set)
    """Records behind gaps that phases take which name no length."""
    starts: list[Entry] = field(default_factory=list)


def draft(
    lines: Sequence[tuple[str, str]], name: str, changed: int, account: Callable[[str], Whole | str]
) -> Draft:  # fmt: skip
    """A mapping of a log that no format reads: each of its rules was read over the whole log, and tested.

    lines: each with its FILE:LINE. changed: when the log was last written to (ns). account: what the accounting makes
    of the log with a mapping, or why it makes nothing."""
    with garbage_collection_paused():
        return _draft(lines, name, changed, account)


def _draft(
    lines: Sequence[tuple[str, str]], name: str, changed: int, account: Callable[[str], Whole | str]
) -> Draft:  # fmt: skip
    log = taken_apart(lines, guessing.unit_of, changed)
    guesses = guessing.step_guesses(log)
    if any("\r" in text for _, text in lines):
        drawn = taken_apart(lines, guessing.unit_of, changed, split=True)
        of_states = guessing.step_guesses(drawn)
        most = max((len(set(one.done)) for one in guesses), default=0)
        if of_states and len(set(of_states[0].done)) > 2 * most:
            log, guesses = drawn, of_states
    failed: list[Contradiction] = []
    for one in guesses:
        made = _Made(log, _plain(name), list(log.top))
        steps = _prove_steps(made, one)
        if isinstance(steps, Contradiction):
            failed.append(steps)
            continue
        _prove_beside(made, steps[0], steps[1])
        whole = account(_text(made))
        wrong = _of_whole(made, steps[0], steps[1], whole)
        if not wrong:
            return _finished(made, steps[1], whole)
        failed += wrong
    return _refused(log, _plain(name), guesses, failed)


def _prove_steps(made: _Made, guess: StepGuess) -> tuple[StepGuess, Steps] | Contradiction:
    """The rule of the steps, with its records; else the test that it fails."""
    made.top.append(f'steps = "{"index" if guess.index else "done"}"')
    proven = _first_variant(made, guess)
    if isinstance(proven, Contradiction):
        return proven
    more, rules, steps = proven
    wrong = _wrong_each(made.log, guess, steps)
    if wrong is not None:
        made.left_out.append(("each", wrong))
        guess = replace(guess, each=None)
        rules = _step_rules(made.log, guess, more)
        without = _loaded(made, rules)
        if without is None:
            return wrong
        steps = proof.steps_of(without, made.log, guess)
    steps = replace(steps, ends=tuple(proof.died_at(made.log)), by_lines=guess.each is not None)
    made.rules += rules
    made.assumed += [*made.log.assumed, *_assumptions(guess)]
    return guess, steps


def _first_variant(made: _Made, guess: StepGuess) -> tuple[int, list[Rule], Steps] | Contradiction:
    """The first way to write the rule of the steps that nothing contradicts, how many words it holds behind the last
    field, and what it reads; else what contradicts the first."""
    first: Contradiction | None = None
    for more, rules, mapped in _variants(made, guess):
        steps = proof.steps_of(mapped, made.log, guess)
        wrong = proof.step_contradiction(guess, steps, made.log)
        if wrong is None:
            return more, rules, steps
        first = first or wrong
    return first or Contradiction("S4", "no rule that can be written reads its lines", guess.group.entries[0].where)


def _variants(made: _Made, guess: StepGuess) -> list[tuple[int, list[Rule], Mapped]]:
    """The rules that a guess may be written as, and how many words behind the last field each holds: first those that
    read no line about a save or an evaluation."""
    found: list[tuple[int, list[Rule], Mapped]] = []
    for more in _VARIANTS if not made.log.records else (0,):
        rules = _step_rules(made.log, guess, more)
        mapped = None if any(rules == earlier for _, earlier, _ in found) else _loaded(made, rules)
        if mapped is not None:
            found.append((more, rules, mapped))
    return sorted(found, key=lambda one: _reads_others(one[2], made.log, guess))


def _wrong_each(log: Log, guess: StepGuess, steps: Steps) -> Contradiction | None:
    """Why the time of a step is none, alone or with the length of one other thing that lines name."""
    wrong = proof.each_contradiction(guess, steps, {})
    if wrong is None or not guess.is_epoch:
        return wrong
    for phase in guessing.phase_guesses(log, [guess.group]):
        for took in phase.took:
            if proof.each_contradiction(guess, steps, proof.lengths_by_gap(phase, took, steps)) is None:
                return None
    return wrong


def _reads_others(mapped: Mapped, log: Log, guess: StepGuess) -> bool:
    """Whether a rule for steps reads lines about a save or an evaluation."""
    for group in log.groups[:400]:
        if group is not guess.group and guessing.is_other(group.about):
            read = read_line(mapped, group.entries[0].line)
            if read is not None and mapped.declared.rule[read.rule].event is EventType.STEP:
                return True
    return False


def _prove_beside(made: _Made, guess: StepGuess, steps: Steps) -> None:
    """The rules of what goes on beside the steps, one by one."""
    taken = [guess.group, *((guess.carried[0],) if guess.carried is not None else ())]
    natively = Mappings().ruleset
    phases = [
        one for one in guessing.phase_guesses(made.log, taken)
        if not _is_native(natively, one.group.entries[0])
        and not _reads(made, one.group.entries[0], ("step", "step_start"))
    ]  # fmt: skip
    _add_starts(made, phases, guess, steps, taken, natively)
    for event in _ADD:
        for one in (one for one in phases if one.event == event):
            if not any(one.group is group for group in taken):
                _ADD[event](made, one, guess, steps)
    _add_alive(made)
    _add_phases(made, [one for one in phases if one.event in ("save", "eval")], guess, steps)


def _add_alive(made: _Made) -> None:
    """Any other record shows that its process was alive."""
    log = made.log
    others = [one for group in log.groups for one in group.entries[:1] if log.time in one.values]
    if log.records and log.time and len(log.groups) > 1 and others:
        keys = (f"keys = {{ time = {quoted(log.time)} }}",)
        note = "any other record shows that the process was alive"
        made.last = Rule("alive", keys, others[-1].line, len(log.entries), note)


def _is_native(natively: LineRules, one: Entry) -> bool:
    said = (*natively.read(one.message)[0], *natively.read(one.text)[0])
    return any(not event.common for event in said) or natively.causes.read(one.message) is not None


def _reads(made: _Made, one: Entry, events: Sequence[str]) -> bool:
    """Whether rules so far read an entry of another group as one of some events, and its words say nothing else."""
    if guessing.is_other(" ".join(one.message.lower().split())):
        return False
    mapped = _loaded(made, made.rules)
    read = None if mapped is None else read_line(mapped, one.line)
    return read is not None and mapped is not None and mapped.declared.rule[read.rule].event.value in events


def _add_starts(
    made: _Made, phases: Sequence[PhaseGuess], guess: StepGuess, steps: Steps, taken: list[Group], natively: LineRules
) -> None:  # fmt: skip
    """The line with which a process begins: the first of the log whose words or places say so."""
    worded = [one.group for one in phases if one.event == "start"]
    head = steps.places[0]
    others = [
        group for group in made.log.groups[:400]
        if group.entries[0].place < head and not any(group is one for one in (*taken, *worded))
        and len(group.entries) <= 4 * (1 + len(steps.falls)) and not guessing.is_other(group.about)
        and not guessing.tells_end(group.about) and not _is_native(natively, group.entries[0])
    ]  # fmt: skip
    failed: list[Contradiction] = []
    candidates = sorted((one for one in worded if not guessing.names_epoch(one)), key=lambda one: one.places[0])
    tried = [(one, True) for one in candidates] + [
        (one, False) for one in sorted(others, key=lambda one: one.places[0])[:20] if one.tokens or not one.columns
    ]
    for group, named in tried:
        wrong = proof.start_contradiction(group, steps, named=named)
        if wrong is None and _append(made, _line_rule(made.log, "start", group, {}, _once(group, steps))):
            made.starts = group.entries
            taken.append(group)
            _start_and_resume(made, group, guess, steps)
            return
        if wrong is not None and named:
            failed.append(wrong)
    if failed:
        made.left_out.append(("start", failed[0]))


def _once(group: Group, steps: Steps) -> list[str]:
    return ["once = true"] if proof.repeats_at_once(group, steps) or len(group.entries) == 1 else []


def _start_and_resume(made: _Made, group: Group, guess: StepGuess, steps: Steps) -> None:
    """A start line that names the step from which it goes on is read twice."""
    number = proof.resume_number(group, steps, guess)
    if isinstance(number, Contradiction) or len(group.entries) < 2 or group.columns[number[0]].joined:
        return
    at, add = number
    more = ["step = { add = -1 }     # the number is that of the next step"] if add else []
    rule = _line_rule(made.log, "resume", group, {at: "step:int"}, more)
    start = made.rules[-1]
    made.rules[-1] = replace(start, keys=(*start.keys, "also = true"))
    made.rules.append(rule)
    if _loaded(made, made.rules) is None:
        made.rules[-2:] = [start]


def _add_end(made: _Made, phase: PhaseGuess, _: StepGuess, steps: Steps) -> None:
    wrong = proof.end_contradiction(phase.group, steps)
    if wrong is not None:
        made.left_out.append((phase.event, wrong))
    elif not any(rule.event == phase.event for rule in made.rules):
        _append(made, _line_rule(made.log, phase.event, phase.group, {}, []))


def _add_resume(made: _Made, phase: PhaseGuess, guess: StepGuess, steps: Steps) -> None:
    number = proof.resume_number(phase.group, steps, guess)
    if not all(steps.is_passage(steps.following(one.place)) for one in phase.group.entries):
        number = Contradiction("R1", "a restore stands between two steps of one process", phase.group.entries[0].where)
    took = phase.took[0] if phase.took else None
    names = {} if took is None else {took[0]: "took:float"}
    more = [] if took is None else [f'took = {{ unit = "{took[1]}" }}']
    if not isinstance(number, Contradiction):
        if any(rule.event == "resume" and "step:int" in "".join(rule.keys) for rule in made.rules):
            return
        more += ["step = { add = -1 }     # the number is that of the next step"] if number[1] else []
        _append(made, _line_rule(made.log, "resume", phase.group, {**names, number[0]: "step:int"}, more))
    elif took is not None and number.test == "R1":
        _append(made, _line_rule(made.log, "restore", phase.group, names, more))
    else:
        made.left_out.append(("resume", number))


def _add_prep(made: _Made, phase: PhaseGuess, guess: StepGuess, steps: Steps) -> None:
    if not phase.took:
        return
    wrong = proof.phase_contradiction(phase, phase.took[0], steps, {})
    if wrong is not None:
        made.left_out.append((phase.event, wrong))
        return
    _append(made, _phase_rule(made.log, phase, phase.took[0], guess, steps))


_ADD: dict[str, Callable[[_Made, PhaseGuess, StepGuess, Steps], None]] = {
    "finished": _add_end, "stopped": _add_end, "resume": _add_resume, "init": _add_prep, "prep": _add_prep,
}  # fmt: skip


def _add_phases(made: _Made, phases: Sequence[PhaseGuess], guess: StepGuess, steps: Steps) -> None:
    """Saves and evaluations: those with a length first, then pairs, then single lines in gaps."""
    lengths = {
        id(one): proof.lengths_by_gap(one, one.took[0], steps) for one in phases if one.took and one.edge != "begin"
    }
    told: set[str] = set()
    for one in sorted(phases, key=lambda phase: (not phase.took, not phase.edge)):
        if one.event in told and (one.edge or not one.took):
            continue
        wrong: Contradiction | None = None
        for took in one.took:
            others = _added(length for key, length in lengths.items() if key != id(one))
            found = proof.phase_contradiction(one, took, steps, others)
            wrong = wrong or found
            if found is None and _append(made, _phase_rule(made.log, one, took, guess, steps)):
                made.beside = _added([made.beside, proof.lengths_by_gap(one, took, steps)])
                told.add(one.event)
                break
        else:
            _add_untimed(made, one, guess, steps, wrong, phases, told)


def _add_untimed(
    made: _Made, one: PhaseGuess, guess: StepGuess, steps: Steps, wrong: Contradiction | None,
    phases: Sequence[PhaseGuess], told: set[str],
) -> None:  # fmt: skip
    """A pair of lines, or a line that stands alone in gaps."""
    if one.event in told or one.background:
        return
    if one.edge:
        others = [other for other in phases if other.event == one.event and other.edge and other.edge != one.edge]
        other = min(others, key=lambda two: abs(len(two.group.entries) - len(one.group.entries)), default=None)
        if other is not None and _add_pair(made, [one, other], guess, steps):
            told.add(one.event)
            return
    found = proof.phase_contradiction(one, None, steps, made.beside)
    if found is not None and found.test == "F0":
        return
    if found is not None or not _append(made, _phase_rule(made.log, replace(one, edge=""), None, guess, steps)):
        made.left_out.append((one.event, wrong or found or Contradiction("F2", "no rule reads it", "")))
        return
    made.untimed |= {at for entry in one.group.entries if (at := steps.following(entry.place)) is not None}
    told.add(one.event)


def _add_pair(made: _Made, pair: Sequence[PhaseGuess], guess: StepGuess, steps: Steps) -> bool:
    """The lines with which a phase begins and ends, each end in the gap of its begin."""
    begin, end = sorted(pair, key=lambda phase: phase.edge)
    spans: dict[int, float] = {}
    for one in end.group.entries:
        before = [
            a
            for a in begin.group.entries
            if a.place < one.place and steps.following(a.place) == steps.following(one.place)
        ]
        at = steps.following(one.place)
        if before and before[-1].ns is not None and one.ns is not None and at is not None:
            spans[at] = spans.get(at, 0.0) + (one.ns - before[-1].ns) / 1e9
    if not spans or 2 * len(spans) < len([one for one in end.group.entries if steps.following(one.place)]):
        return False
    rules = list(made.rules)
    if not all(_append(made, _phase_rule(made.log, edge, None, guess, steps)) for edge in (begin, end)):
        made.rules = rules
        return False
    made.beside = _added([made.beside, spans])
    return True


def _added(lengths: Iterable[Mapping[int, float]]) -> dict[int, float]:
    total: dict[int, float] = {}
    for one in lengths:
        for at, length in one.items():
            total[at] = total.get(at, 0.0) + length
    return total


def _append(made: _Made, rule: Rule) -> bool:
    """Add a rule, before others where one of these would read its lines; False: it cannot be read."""
    for keys in (rule.keys, (*rule.keys, _SLOW)):
        tried = replace(rule, keys=keys)
        alone = _loaded(made, [tried])
        if alone is None or _reads_too_many(alone, made.log, tried):
            continue
        for order in ([*made.rules, tried], [tried, *made.rules]):
            mapped = _loaded(made, order)
            if mapped is not None and all(_reads_own(mapped, at, one) for at, one in enumerate(order)):
                made.rules = order
                return True
    return False


def _reads_too_many(mapped: Mapped, log: Log, rule: Rule) -> bool:
    """Whether a rule would read many more lines than it was made of."""
    read = sum(len(group.entries) for group in log.groups if read_line(mapped, group.entries[0].line) is not None)
    return read > 1.2 * rule.lines + 1


def _reads_own(mapped: Mapped, at: int, rule: Rule) -> bool:
    read = read_line(mapped, rule.example)
    return read is not None and not read.refused and (read.rule == at or mapped.declared.rule[read.rule].also)


def _of_whole(made: _Made, guess: StepGuess, steps: Steps, whole: Whole | str) -> list[Contradiction]:
    if isinstance(whole, str):
        return [Contradiction("W", f"with it the log cannot be analysed: {whole}", steps.records[0].entry.where)]
    total = None
    of = guess.column.of
    if of is not None and guess.epoch is None and guess.carried is None:
        total = max(guess.group.columns[of].whole or (0,)) or None
    return list(proof.whole_contradictions(whole, steps, len(made.starts), total))


def _finished(made: _Made, steps: Steps, whole: Whole | str) -> Draft:
    assert isinstance(whole, Whole)
    told = {rule.event for rule in made.rules}
    doubts = [_shown(wrong.reason) for event, wrong in made.left_out if event in ("save", "eval") and event not in told]
    doubts = [f"left out: {', '.join(dict.fromkeys(doubts))}"] if doubts else []
    begun = {at for one in made.starts if (at := steps.following(one.place)) is not None}
    over = proof.unexplained(steps, made.beside, begun | made.untimed)
    if over > proof.UNEXPLAINED * whole.window / 1e9:
        doubts.append(f"{duration(round(over * 1e9))} between steps are unexplained")
    back = made.log.jumps_back
    if back:
        doubts.append(f"stamps jump back {plural(len(back), 'time')}, first at {back[0].where}")
    left = tuple(LeftOut(event, wrong.line, _shown(wrong.reason), wrong.test) for event, wrong in made.left_out)
    return Draft(_text(made), len(made.rules), sum(rule.lines for rule in made.rules), left, doubts=tuple(doubts))


def _refused(log: Log, name: str, guesses: Sequence[StepGuess], failed: Sequence[Contradiction]) -> Draft:
    """Why no rule could be proven, with the best candidate and the rule to write by hand."""
    step = _STEP
    if failed:
        best = failed[0]
        step = _step_rules(log, guesses[0], 0)[-1].keys[0]
        reason = f"{best.reason}{f' ({best.where})' if best.where else ''}"
    else:
        reason = _without_steps(log)
    by_hand = f'write it by hand into my.toml, and name that with --mapping: [[rule]] event = "step" {step}'
    reason = _shown(f"no rule could be proven: {reason}; {by_hand} (docs/mappings.md)")
    text = f'name = "{name}"\n# refused: {reason}\n\n# [[rule]]\n# event = "step"\n# {_shown(step)}\n'
    return Draft(text, refused=(reason,), refused_by=failed[0].test if failed else "")


def _without_steps(log: Log) -> str:
    rising = [
        column.name for group in log.groups for column in group.columns
        if len(group.entries) >= 3 and column.name and column.unit is None and column.counts
        and _goes_up(column.numbers)
    ]  # fmt: skip
    most = next((one for one in log.groups if len(one.entries) >= 3), None)
    like = ""
    if most is not None:
        first = most.entries[0]
        like = f'; {len(most.entries):,} lines like "{first.message.strip()[:80]}" ({first.where}) may be steps'
    if not rising:
        return f"no line looks like a step, with a number that goes up from line to line{like}"
    named = " and ".join(f"`{name}`" for name in list(dict.fromkeys(rising))[:2])
    return f"no line has a number of a step: {named} goes up, and counts tokens, samples or another thing{like}"


def _goes_up(numbers: Sequence[float]) -> bool:
    return len(numbers) > 2 and sum(b > a for a, b in pairwise(numbers)) >= 0.9 * (len(numbers) - 1)


def _shown(sentence: str) -> str:
    """A sentence that names what the log says."""
    return safe(without_secrets(sentence))


def _assumptions(guess: StepGuess) -> Iterator[str]:
    """What the answers of a draft rest on, and the log does not prove."""
    name = without_secrets(guess.name)
    unnamed = guessing.likeness(guess.column.name) <= 0 and guess.stride > 1 and not guess.is_epoch
    samples = ", and counts no samples" if unnamed else ""
    if guess.index:
        yield f"`{name}` is the index of the last step, from 0{samples}"
    elif (guess.stride == 1 or unnamed) and not guess.begins:
        yield f"`{name}` counts the steps that are done{samples}"
    if guess.elapsed is not None:
        column = guess.group.columns[guess.elapsed[0]]
        named, unit = without_secrets(column.name) or column.texts[0], guess.elapsed[1] or "s"
        yield f"`{named}` never falls: read as time since the start, in {unit}"


# --- TOML


def _text(made: _Made) -> str:
    """The mapping as TOML."""
    parts = _head(made)
    for event, wrong in made.left_out:
        line = f" (line {wrong.line})" if wrong.line is not None else ""
        parts.append(f"# left out: {event}: {_shown(wrong.reason)}{line}")
    rules = [*made.rules, *([made.last] if made.last is not None else [])]
    for rule in rules:
        parts += ["", *_written(rule)]
    mapped = _loaded(made, rules)
    if mapped is not None:
        parts += _samples(mapped, rules)
    return "\n".join([*parts, ""])


def _head(made: _Made) -> list[str]:
    parts = [f'name = "{made.name}"', *made.top]
    if made.assumed:
        parts.append("assumed = [             # said under each answer; delete what you have looked at")
        parts += [f"  {quoted(sentence)}," for sentence in made.assumed] + ["]"]
    return parts


def _loaded(made: _Made, rules: Sequence[Rule]) -> Mapped | None:
    """Rules as what reads lines; None if they cannot be loaded."""
    text = "\n".join([*_head(made), *(line for rule in rules for line in _written(rule))])
    if not any(rule.event in ("step", "step_start", "start") for rule in rules):
        text += "\n[[rule]]\nevent = 'start'\nline = 'a rule of goodput that no line is of'\n"
    try:
        (mapping,) = mappings_in("draft.toml", text)
        return load_mapping(mapping)
    except UsageError:
        return None


def _written(rule: Rule) -> list[str]:
    count = f"{rule.lines:,} lines like it" if rule.lines > 1 else "one line like it"
    return [f"[[rule]]{' ' * 17}# {rule.note or count}", f'event = "{rule.event}"', *rule.keys]


def _samples(mapped: Mapped, rules: Sequence[Rule]) -> list[str]:
    """A sample for each rule, with what it gives."""
    found: list[str] = []
    for at, rule in enumerate(rules):
        example = without_secrets(rule.example)
        read = read_line(mapped, example) if len(rule.example) <= _LONGEST_SAMPLE else None
        if read is None or read.event is None or read.rule != at:
            continue
        values = {
            key: value for key, value in shown(read.event, read.stamp).items()
            if key in _SAMPLED and value is not None and (key, value) != ("edge", "point")
        }  # fmt: skip
        gives = ", ".join(
            f"{key} = {quoted(value) if isinstance(value, str) else value}" for key, value in values.items()
        )
        head = "[[sample]]               # checked whenever the mapping is loaded" if not found else "[[sample]]"
        found += ["", head, f"line = {quoted(example)}", f"gives = {{ {gives} }}"]
    return found


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-._") or "my-log"


def _step_rules(log: Log, guess: StepGuess, more: int) -> list[Rule]:
    names = {guess.step: "step:int"}
    keys: list[str] = []
    if guess.epoch is not None:
        names[guess.epoch] = "epoch:int"
    if guess.of is not None:
        names[guess.of] = "of:int"
    if guess.epoch is not None or guess.steps is not None:
        steps = f", steps = {guess.steps}" if guess.steps is not None else ""
        keys.append(f"epoch = {{ first = {guess.first}{steps} }}")
    timed = sum(one.ns is not None for one in guess.group.entries) == len(guess.group.entries)
    if guess.elapsed is not None:
        at, unit = guess.elapsed
        names[at] = "elapsed:float" if unit else "elapsed:clock"
        keys += [f'elapsed = {{ unit = "{unit}", begins = true }}'] if unit else []
    elif guess.each is not None:
        at, unit, of = guess.each
        names[at] = "each:float"
        keys.append(f'each = {{ unit = "{unit}"{f", of = {quoted(of)}" if of != "mean" else ""} }}')
    if guess.each is None and (timed or guess.elapsed is not None):
        keys.append(
            'each = { of = "usual" }  # what lies between two lines beyond what steps mostly take is no training'
        )
    if (guess.elapsed is not None or guess.each is not None) and not timed:
        keys.append('time = "cursor"          # these lines have no time: count on from the last one')
    step = _line_rule(log, "step_start" if guess.begins else "step", guess.group, names, keys, more)
    if not log.records and not _has_text(step):
        step = replace(step, keys=(*step.keys, _SLOW))
    return [*_epoch_rules(log, guess), step] if guess.carried is not None else [step]


def _has_text(rule: Rule) -> bool:
    """Whether some text of four characters is in every line that a rule reads."""
    line = next((key for key in rule.keys if key.startswith("line = ")), "")
    return any(len(part) >= 4 for word in line[8:-1].split() for part in re.split(r"\{\w+(?::\w+)?\}", word))


def _epoch_rules(log: Log, guess: StepGuess) -> list[Rule]:
    """The lines that name the epoch of the steps behind them; the first epoch is where a process starts."""
    assert guess.carried is not None
    group, at = guess.carried
    more = [f"epoch = {{ first = {guess.first} }}"] if guess.first != 1 else []
    rule = _line_rule(log, "alive", group, {at: "epoch:int"}, more)
    rule = replace(rule, example=group.entries[-1].line)
    begins = [
        one.line for one, text in zip(group.entries, group.columns[at].texts, strict=True) if text == str(guess.first)
    ]
    if not begins or log.records or any(b < a for a, b in pairwise(guess.done)):
        return [rule]
    line = quoted(template(group, {at: "epoch:int"}).replace("{epoch:int}", str(guess.first)))
    start = Rule("start", (f"line = {line}", "once = true", "also = true", *log.beside), begins[0], len(begins))
    return [start, rule]


def _phase_rule(log: Log, phase: PhaseGuess, took: tuple[int, str] | None, guess: StepGuess, steps: Steps) -> Rule:
    names: dict[int, str] = {}
    more = [f'edge = "{phase.edge}"'] if phase.edge and took is None else []
    if took is not None:
        names[took[0]] = "took:float"
        more.append(f'took = {{ unit = "{took[1]}" }}')
    number = proof.save_number(phase.group, steps, guess) if phase.event == "save" else None
    if number is not None:
        names[number] = "step:int"
    if took is not None and all(one.ns is None for one in phase.group.entries):
        more.append('time = "cursor"')
    return _line_rule(log, phase.event, phase.group, names, more)


def _line_rule(
    log: Log, event: str, group: Group, names: Mapping[int, str], more: Sequence[str], words: int = 0
) -> Rule:  # fmt: skip
    example = group.entries[0]
    if log.records:
        named = {name.partition(":")[0]: group.columns[at].path for at, name in names.items()}
        named |= {"time": log.time} if log.time else {}
        keys = [f"keys = {{ {', '.join(f'{name} = {quoted(path)}' for name, path in named.items())} }}"]
        keys += [f"where = {group.where}"] if group.where else []
        return Rule(event, (*keys, *more), example.line, len(group.entries))
    line = template(group, names, words)
    stamp = "" if example.span is None else example.text[slice(*example.span)]
    keys = []
    if UNIX_TIME.fullmatch(stamp):
        line = _behind_epoch(example, line)
        keys = [f'time = {{ format = "{epoch_format(stamp)}" }}']
    return Rule(event, (f"line = {quoted(line)}", *more, *keys, *log.beside), example.line, len(group.entries))


def _behind_epoch(one: Entry, said: str) -> str:
    """A template of a message, behind a field for its stamp."""
    begin, end = one.span or (0, 0)
    before = re.sub(r"\w+", SKIPPED, literal(one.text[:begin].strip()))
    between = one.text[end : one.begin]
    closing = re.match(r"[\])|,:;]*", between)
    behind = closing[0] if closing is not None else ""
    starts = one.message.lstrip().startswith(said.partition("{")[0].strip() or "\0")
    skipped = " " if starts and not between[len(behind) :].strip() else f" {SKIPPED} "
    return f"{before}{{time:float}}{behind}{skipped}{said}"

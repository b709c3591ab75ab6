"""Test a user's mapping with the tests of drafts, on the events that its rules read from a log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from goodput_cli.events.mappings.draft import proof
from goodput_cli.events.mappings.draft.entries import NO_TIME, Entries, Group, Log, Texts, ValueColumn
from goodput_cli.events.mappings.draft.expected import Whole, expected_of, whole_contradictions
from goodput_cli.events.mappings.draft.guess import PhaseGuess, StepGuess
from goodput_cli.events.mappings.draft.lines import LogLines
from goodput_cli.events.mappings.draft.phases import phase_contradiction
from goodput_cli.events.mappings.draft.proof import Contradiction
from goodput_cli.events.mappings.draft.records import taken_apart
from goodput_cli.events.mappings.draft.steps import Steps, added, died_at, lengths_by_gap, steps_of
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.mappings.samples import read_line
from goodput_cli.events.schema import Edge
from goodput_cli.events.text.log_lines import EventType, ParsedEvent
from goodput_cli.vocabulary.when import NS_PER_SECOND

_STEPS = (EventType.STEP, EventType.STEP_START)
_DEATHS = (EventType.EXITED, EventType.TERMINATED, EventType.PREEMPTED, EventType.CRASHED)
_BEGINS = (EventType.START, EventType.RESUME, EventType.SCHEDULED)
_LEAST_RECORDS = 10
"""Minimum number of step records for a test."""
_TOOK = (0, "s")
"""Column and unit of durations in a group of matched lines."""


@dataclass
class _Read:
    """The lines that match a rule, and their events."""

    entries: Entries
    rows: list[int] = field(default_factory=list)
    events: list[ParsedEvent] = field(default_factory=list)

    @property
    def places(self) -> list[int]:
        """Return the indexes of the lines."""
        found: list[int] = self.entries.places[self.rows].tolist()
        return found

    def group(self, values: Callable[[ParsedEvent], float | None], name: str) -> Group:
        """Return the lines with one column of values; without a column if some have none."""
        numbers = [values(one) for one in self.events]
        texts = [f"{one:.17g}" for one in numbers if one is not None]
        columns = [] if None in numbers else [ValueColumn(name, Texts(texts))]
        found = Group(self.entries, np.array(self.rows, dtype=np.int64))
        found.columns = columns
        return found


def contradictions(
    made: Mapped, lines: LogLines, changed: int, whole: Whole | None = None
) -> Iterator[tuple[int, Contradiction]]:  # fmt: skip
    """Yield the index of each rule that the log contradicts, with the failed test. Mappings with few matched steps, or
    with epochs on other lines than steps, are not tested.

    changed: modification time of the log (ns). whole: result of the accounting; None if there is none or there are
    several jobs.
    """
    log = taken_apart(lines, changed, split=made.declared.split is not None)
    by_rule = _by_rule(made, log)
    numbers = [one for one in by_rule if made.declared.rule[one].event in _STEPS]
    if not numbers or any(_takes_epochs_elsewhere(made, one) for one in numbers):
        return
    number = max(numbers, key=lambda one: len(by_rule[one].rows))
    guess = _guess(made, number, by_rule[number])
    steps = steps_of(made, log, guess)
    if len(steps) < _LEAST_RECORDS:
        return
    ends = [
        place for rule, read in by_rule.items() if made.declared.rule[rule].event in _DEATHS for place in read.places
    ]
    steps = replace(steps, ends=tuple(sorted((*ends, *died_at(log)))), by_lines=guess.each is not None)
    wrong = proof.step_contradiction(guess, steps, log, proof.OF_A_MAPPING)
    if wrong is not None:
        yield number, wrong
        return
    lengths = {
        rule: lengths_by_gap(phase, _TOOK, steps)
        for rule, read in by_rule.items()
        if (phase := _phase(made, rule, read)) is not None
    }
    wrong = proof.each_contradiction(guess, steps, added(lengths.values())) if guess.each is not None else None
    if wrong is not None:
        yield number, wrong
        steps = replace(steps, by_lines=False)
    found = []
    starts = [
        place for rule, read in by_rule.items() if made.declared.rule[rule].event in _BEGINS for place in read.places
    ]
    begun = set(map(steps.following, starts))
    for rule, read in by_rule.items():
        others = added(one for other, one in lengths.items() if other != rule)
        wrong = _of_rule(made, rule, read, guess, steps, others, begun)
        found += [] if wrong is None else [(rule, wrong)]
    yield from found
    if whole is not None and not found:
        totals = {one.running.of for one in by_rule[number].events if one.running and one.running.epoch is None}
        total = max((one for one in totals if one is not None), default=None)
        for wrong in whole_contradictions(whole, expected_of(steps), len(starts) + len(ends), total):
            yield number, wrong


def _by_rule(made: Mapped, log: Log) -> dict[int, _Read]:
    entries = log.entries
    found: defaultdict[int, _Read] = defaultdict(lambda: _Read(entries))
    for row, one in enumerate(entries):
        read = read_line(made, one.line, made.declared.split is not None)
        if read is not None and read.event is not None:
            if entries.ns[row] == NO_TIME and read.stamp is not None:
                entries.ns[row] = read.stamp.ns
            found[read.rule].rows.append(row)
            found[read.rule].events.append(read.event)
    return dict(found)


def _takes_epochs_elsewhere(made: Mapped, number: int) -> bool:
    rule = made.declared.rule[number]
    return rule.epoch is not None and "epoch" not in rule.keys and "epoch" not in rule.text.replace("epochs", "")


def _guess(made: Mapped, number: int, read: _Read) -> StepGuess:
    """Return a step rule as a guess: its number, and the mean step time if its lines contain it."""
    group = read.group(lambda one: one.step, "step")
    times = read.group(lambda one: one.step_time and one.step_time / NS_PER_SECOND, "step time")
    of = made.declared.rule[number].each
    is_mean = (of is None or of.of == "mean") and bool(times.columns)
    group.columns = [*group.columns, *(times.columns if is_mean else ())]
    done = np.array([one.step or 0 for one in read.events], dtype=np.int64)
    return StepGuess(group, 0, 0.0, done, each=(1, "s", "mean") if is_mean else None)


def _phase(made: Mapped, number: int, read: _Read) -> PhaseGuess | None:
    """Return the save or evaluation of a rule whose lines contain its duration; None for others."""
    rule = made.declared.rule[number]
    group = read.group(lambda one: None if one.took is None else one.took / NS_PER_SECOND, "took")
    points = all(one.edge is Edge.POINT and not one.begins for one in read.events)
    if rule.event not in (EventType.SAVE, EventType.EVAL) or not group.columns or not points:
        return None
    return PhaseGuess(rule.event.value, group, "", (_TOOK,))


def _of_rule(
    made: Mapped,
    number: int,
    read: _Read,
    guess: StepGuess,
    steps: Steps,
    others: dict[int, float],
    begun: Collection[int],
) -> Contradiction | None:
    """Return the contradiction of a rule other than that of the steps. begun: records after start lines."""
    event = made.declared.rule[number].event
    phase = _phase(made, number, read)
    if phase is not None:
        wrong = phase_contradiction(phase, _TOOK, steps, others)
        return None if wrong is None or wrong.test == "F0" else wrong
    if event is EventType.START:
        return proof.start_contradiction(read.group(lambda _: None, ""), steps, named=True)
    if event in (EventType.FINISHED, EventType.STOPPED):
        return proof.end_contradiction(read.group(lambda _: None, ""), steps, begun)
    if event is EventType.RESUME:
        group = read.group(lambda one: one.step, "step")
        leads = proof.resume_number(group, steps, guess) if group.columns else None
        return leads if isinstance(leads, Contradiction) else None
    return None

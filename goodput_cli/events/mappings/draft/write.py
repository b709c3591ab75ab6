"""Write a draft: prove the rule for steps, then each rule for other lines, then the result as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from goodput_cli.arrays import garbage_collection_paused
from goodput_cli.events.mappings.draft import expected, proof, rules, words
from goodput_cli.events.mappings.draft.background_saves import background_saves
from goodput_cli.events.mappings.draft.entries import NO_TIME, Entry, Group, Log, names_loss, quoted
from goodput_cli.events.mappings.draft.expected import Draft, DraftCandidate, Whole, shown
from goodput_cli.events.mappings.draft.guess import PhaseGuess, StepGuess, phase_guesses, step_guesses
from goodput_cli.events.mappings.draft.heads import (
    Heads,
    Stages,
    begun_without_falls,
    process_heads,
    repeated_headers,
    repeated_heads,
    stages_of,
)
from goodput_cli.events.mappings.draft.lines import LogLines
from goodput_cli.events.mappings.draft.phases import (
    are_between_all,
    evaluation_in,
    has_others_before,
    moments,
    phase_contradiction,
    since_of,
    without_phases,
)
from goodput_cli.events.mappings.draft.proof import Contradiction
from goodput_cli.events.mappings.draft.records import taken_apart, without_clocks
from goodput_cli.events.mappings.draft.rules import Rule
from goodput_cli.events.mappings.draft.steps import added, died_at, lengths_by_gap, log_of_run, no_steps, steps_of
from goodput_cli.events.mappings.registry import RESERVED, SHIPPED, SHIPPED_OF_RECORDS, Mappings
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.mappings.samples import read_line
from goodput_cli.events.text.log_lines import EventType
from goodput_cli.vocabulary.text import plural

_VARIANTS = (0, 1, 2, 3, 5, 8)
"""Numbers of words after the last field that are tried until a rule matches its own lines and no others."""
_BEFORE = ["step = { add = -1 }     # the number is that of the next step"]
_MOST_GROUPS = 400
_PHASES = ("save", "eval")


def draft(read: Callable[[], LogLines], name: str, changed: int, account: Callable[[str], Whole | str]) -> Draft:
    """Return a mapping for a log in an unknown format, whose rules were tested on the whole log.

    read: reads the lines of the log; again after a wrong result, as no line is kept while a result is computed.
    changed: modification time of the log (ns). account: returns the result of the accounting with a mapping, or why
    there is none.
    """
    name = re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-._") or "my-log"
    if name in (*RESERVED, *SHIPPED, *SHIPPED_OF_RECORDS):
        name = f"{name}-log"
    failed: list[Contradiction] = []
    tried = 0
    with garbage_collection_paused():
        while True:
            found = _next_candidate(read(), changed, name, tried, failed)
            if isinstance(found, Draft):
                return found
            candidate, tried = found
            whole = account(candidate.text)
            wrong = candidate.contradictions(whole)
            if not wrong and isinstance(whole, Whole):
                return candidate.finished(whole)
            failed += wrong


def _next_candidate(
    lines: LogLines, changed: int, name: str, tried: int, failed: list[Contradiction]
) -> tuple[DraftCandidate, int] | Draft:
    """Return a draft with the next guess whose rules pass all tests, and the number of tried guesses; a refusal if
    there is none. tried: number of guesses to skip. failed: receives the contradictions of the guesses."""
    lines = lines.full()  # The others are freed.
    log, guesses = _guessed(lines, changed)
    for number, one in enumerate(guesses[tried:], tried + 1):
        made = _first_variant(log, name, one)
        if isinstance(made, Contradiction):
            failed.append(made)
            continue
        made.add_other_rules()
        return made.candidate(), number
    return expected.refusal(log, name, guesses, failed)


def _guessed(lines: LogLines, changed: int) -> tuple[Log, list[StepGuess]]:
    """Return a log and the guesses for its steps; each state of a progress bar is an entry if that gives far more
    steps."""
    log = taken_apart(lines, changed)
    guesses = step_guesses(log)
    if lines.have_states:
        drawn = taken_apart(lines, changed, split=True)
        of_states = step_guesses(drawn)
        most = max((len(np.unique(one.done)) for one in guesses), default=0)
        if of_states and len(np.unique(of_states[0].done)) > 2 * most:
            return drawn, of_states
    return log, guesses


def _first_variant(log: Log, name: str, guess: StepGuess) -> _Making | Contradiction:
    """Return a draft with the first step rule that passes all tests, with preference for rules that match no save or
    evaluation line; otherwise the contradiction of the first."""
    stages = stages_of(log, guess)
    heads = process_heads(log, guess, stages)
    guess = guess if heads is None else guess.in_processes(heads.places)
    first: Contradiction | None = None
    for more, made, mapped in _variants(log, name, guess):
        made.heads, made.stages = heads, stages
        made.taken += stages.groups
        made.steps = steps_of(mapped, log, guess)
        if made.steps.has_timed_zero and not (guess.index or guess.begins):
            return _first_variant(log, name, replace(guess, index=True))
        begun = (*made.steps.ends_of_runs(guess.totals if guess.is_epoch else ()), *(heads.places if heads else ()))
        begun += tuple(stages.places.tolist())
        made.steps = replace(made.steps, ends=tuple(sorted(begun)), heads=begun)
        wrong = proof.step_contradiction(guess, made.steps, log)
        if wrong is None:
            return made.with_proven_time(more)
        first = first or wrong
    return first or Contradiction("S4", "no rule matches its lines", guess.group.first.where)


def _variants(log: Log, name: str, guess: StepGuess) -> Iterator[tuple[int, _Making, Mapped]]:
    """Yield the variants of the step rule, each with the number of words after its last field; last those that match
    lines about a save or an evaluation."""
    tried: list[list[Rule]] = []
    read_others = []
    for more in _VARIANTS if not log.records else (0,):
        made = _Making(log, name, guess, rules.step_rules(log, guess, more))
        mapped = made.loaded(made.rules) if made.rules not in tried else None
        tried.append(made.rules)
        if mapped is None:
            continue
        others = _read_as_steps(mapped, log, guess)
        if not others:
            yield more, made, mapped
            continue
        # Lines about a save or an evaluation only show that the process is alive.
        alive = [rules.line_rule(log, "alive", group, {}, (), 0) for group in others if words.is_other(group.about)]
        guarded = _Making(log, name, guess, [*alive, *made.rules])
        loaded = guarded.loaded(guarded.rules)
        if loaded is not None and rules.reads_step(loaded, guess.group.first):
            made, mapped = guarded, loaded
        read_others.append((more, made, mapped))
    yield from read_others


def _read_as_steps(mapped: Mapped, log: Log, guess: StepGuess) -> list[Group]:
    """Return the groups of lines that a step rule matches though they are about a save or an evaluation, or have no
    loss if the step lines have one: another program may count in the same words."""
    has_loss = names_loss(guess.group)
    others = (one for one in log.groups[:_MOST_GROUPS] if one is not guess.group)
    others = (one for one in others if words.is_other(one.about) or (has_loss and not names_loss(one)))
    return [group for group in others if rules.reads_step(mapped, group.first)]


class _Making:
    """A draft in progress."""

    def __init__(self, log: Log, name: str, guess: StepGuess, steps: Sequence[Rule]) -> None:
        self.log, self.name, self.guess, self.rules = log, name, guess, list(steps)
        self.steps = no_steps(log)
        self.heads: Heads | None = None
        """The first lines of processes, if there are several."""
        self.stages: Stages | None = None
        """Lines that announce its stages."""
        self.last: list[Rule] = []
        """Rule for lines that no other rule matches."""
        self.left_out: list[tuple[str, Contradiction]] = []
        self.beside: dict[int, float] = {}
        """Seconds of phases in the gap before a record."""
        self.known: set[int] = set()
        """Records after starts, and after gaps of phases without a duration."""
        self.starts = 0
        """Number of start lines."""
        self.taken = [guess.group, *((guess.carried[0],) if guess.carried is not None else ())]
        """Groups that rules match."""

    def with_proven_time(self, more: int) -> _Making | Contradiction:
        """Return the draft without the step time in its lines if that is wrong. more: words after the last field."""
        without = replace(self.guess, each=None)
        wrong = proof.each_contradiction(self.guess, self.steps, {}) or self._lines_without_it(without, more)
        if wrong is not None:
            made = _first_variant(self.log, self.name, without)
            if isinstance(made, _Making):
                made.left_out.append(("each", wrong))
            return made
        ends = tuple(sorted({*self.steps.ends, *died_at(self.log)}))
        self.steps = replace(self.steps, ends=ends, by_lines=self.guess.each is not None)
        return self

    def _lines_without_it(self, without: StepGuess, more: int) -> Contradiction | None:
        """C2: the step time is in nearly all step lines, if timestamps show the time of the others too."""
        name = "" if self.guess.each is None else self.guess.group.columns[self.guess.each[0]].name or "its time"
        mine, other = self.loaded(self.rules), self.loaded(rules.step_rules(self.log, without, more))
        if not name or self.steps.usual is None or mine is None or other is None:
            return None
        others = [one for one in self.log.groups[:_MOST_GROUPS] if not words.is_other(one.about) and one.tokens]
        missed = [one for one in others if not rules.reads_step(mine, one.first) and rules.reads_step(other, one.first)]
        lines = sum(map(len, missed))
        if lines <= 0.02 * len(self.steps):
            return None
        return Contradiction("C2", f"`{name}` is missing in {plural(lines, 'similar line')}", missed[0].first.where)

    def add_other_rules(self) -> None:
        """Add the rules for other events, one by one."""
        natively = Mappings().ruleset

        def is_native(group: Group) -> bool:
            one = group.first
            said = (*natively.read(one.message)[0], *natively.read(one.text)[0])
            known = (event for event in said if event.type is not EventType.STAGE)
            return any(not event.common for event in known) or natively.causes.read(one.message) is not None

        self.log = log_of_run(self.log, self.guess, self.steps, self.taken)
        phases = [
            without_clocks(one, self.guess, self.log) for one in phase_guesses(self.log, self.taken)
            if (not is_native(one.group) or (self.log.records and one.event == "rollback"))
            and not self._is_read_as_step(one.group.first)
        ]  # fmt: skip
        resumes = [one.group for one in phases if one.event == "resume"]
        loads = [one for one in resumes if isinstance(proof.resume_number(one, self.steps, self.guess), tuple)]
        begun = begun_without_falls(self.log, self.steps, self.taken, loads)
        heads = repeated_heads(self.log, self.steps, self.taken, [one.group for one in phases if one.event in _PHASES])
        self.steps = replace(self.steps, ends=tuple(sorted({*self.steps.ends, *begun, *heads})))
        self._add_stages()
        self._add_summaries()
        self._add_rollbacks([one.group for one in phases if one.event == "rollback"])
        loads = [one.group for one in phases if one.event in ("resume", "rollback")]
        self._add_start([one.group for one in phases if one.event == "start"], loads, is_native)
        for event in ("finished", "stopped", "resume", "init", "prep"):
            for one in phases:
                if one.event == event and one.group not in self.taken:
                    self._add_once(one)
        others = [group.first for group in self.log.groups if self.log.time in group.first.values]
        if self.log.records and self.log.time and len(self.log.groups) > 1 and others:
            keys = (f"keys = {{ time = {quoted(self.log.time)} }}",)
            note = "any other record shows that the process was alive"
            self.last = [Rule("alive", keys, others[-1].line, len(self.log.entries), note)]
        self._add_background_saves(is_native)
        self._add_phases([one for one in phases if one.event in _PHASES and one.group not in self.taken])
        self._add_evaluations_of_records()
        self._add_times()

    def _add_stages(self) -> None:
        """Add the rules for lines in other words than goodput knows with which a process begins its next stage."""
        for group, at in () if self.stages is None else self.stages.numbered:
            made = (rules.line_rule(self.log, "stage", group, {at: "step:int"}, (), one) for one in _VARIANTS)
            if any(map(self._append, made)):
                return

    def _add_background_saves(self, is_native: Callable[[Group], bool]) -> None:
        """Add the rules for saves that continue while training goes on."""
        groups = [one for one in self.log.every_group if one not in self.taken]
        saves = [one for one in background_saves(groups, self.steps, self.guess) if not is_native(one.group)]
        for one in saves:
            names = {} if one.number is None else {one.number: "step:int"}
            more = [] if one.event == "saved" else ['state = "begun"']
            if one.took is not None:
                names[one.took[0]] = "took:float"
                more = ['state = "blocking_done"', f'took = {{ unit = "{one.took[1]}" }}']
            ways = (rules.line_rule(self.log, one.event, one.group, names, more, count) for count in _VARIANTS)
            others = [other.group.first.line for other in saves if other is not one]
            if any(self._append(way) for way in ways if not self._reads_any(way, others)):
                self.taken.append(one.group)

    def _reads_any(self, rule: Rule, lines: Sequence[str]) -> bool:
        """Return True if a rule reads one of some lines."""
        alone = self.loaded([rule])
        return alone is not None and any(read_line(alone, line) is not None for line in lines)

    def _add_times(self) -> None:
        """Add a rule for other lines with times if step lines have none and the clock is specific to this log."""
        if self.log.records or self.guess.group.has_times(0) or not any("time = " in key for key in self.log.top):
            return
        timed = (group for group in self.log.groups[:_MOST_GROUPS] if group.has_all_times and group not in self.taken)
        for group in timed:
            self._append(self._rule("alive", group))

    def _add_summaries(self) -> None:
        """Add rules for lines with the number of completed steps at the end of an epoch, which show steps after the
        last record of a process."""
        guess, names, more = self.guess, "step:int", list[str]()
        if guess.steps is not None and guess.carried is None:
            names = "epoch:int"
            more = [f"epoch = {{ first = {guess.first}, steps = {guess.steps} }}", 'edge = "end"']
        elif guess.epoch is not None or guess.carried is not None or guess.of is not None or not guess.is_named:
            return
        number = proof.summary_number if guess.steps is None else proof.ended_epoch
        for group in self.log.groups[:_MOST_GROUPS]:
            at = None if group in self.taken or words.is_other(group.about) else number(group, self.steps, guess)
            if at is None:
                continue
            made = (rules.line_rule(self.log, "alive", group, {at: names}, more, one) for one in _VARIANTS)
            if any(map(self._append, made)):
                self.taken.append(group)

    def _is_read_as_step(self, one: Entry) -> bool:
        """Return True if the step rule matches a line of another group whose words have no other meaning."""
        mapped = None if words.is_other(" ".join(one.message.lower().split())) else self.loaded(self.rules)
        return mapped is not None and rules.reads_step(mapped, one)

    def _add_rollbacks(self, groups: Sequence[Group]) -> None:
        """Add rules for lines in which the program reports a rollback."""
        steps = self.steps
        for group in groups:
            if all(at in steps.falls and not steps.ended[at] for at in steps.after(group)):
                number = proof.resume_number(group, steps, self.guess)
                names, more = ({}, []) if isinstance(number, Contradiction) else ({number[0]: "step:int"}, number[1])
                self._append(self._rule("rollback", group, names, _BEFORE if more else []))
                self.taken.append(group)

    def _loaded_only(self, loads: Sequence[Group]) -> set[int]:
        """Return the records where steps fall after a checkpoint load, if no line from before the first record is
        repeated at a fall: these processes continued."""
        steps = self.steps
        falls = set(steps.falls)
        before = [group for group in self.log.every_group if group.first.place < steps.places[0]]
        if any(falls.intersection(steps.after(group)) for group in before):
            return set()
        return falls.intersection(at for group in loads for at in steps.after(group))

    def _add_start(self, worded: Sequence[Group], loads: Sequence[Group], is_native: Callable[[Group], bool]) -> None:
        """Add the rule for the line with which a process begins: the first in the log with fitting words or locations.
        loads: possible checkpoint load lines."""
        if self.heads is not None and self._add_heads(self.heads):
            return
        living = self._loaded_only(loads)
        others = [
            group for group in self.log.every_group[:_MOST_GROUPS]
            if group.first.place < self.steps.places[0] and group not in self.taken and group not in worded
            and len(group) <= 4 * (1 + len(self.steps.falls)) and not words.is_other(group.about)
            and not words.reports_end(group.about) and not is_native(group)
            and (group.tokens or group.where or not group.columns)
        ]  # fmt: skip
        unworded = sorted(others, key=lambda one: one.first.place)[:20]
        failed: list[Contradiction] = []
        for group in sorted((*worded, *unworded), key=lambda one: one.first.place):
            if self.stages is not None and self.stages.explain(self.steps.after(group)):
                continue
            wrong = proof.start_contradiction(group, self.steps, living, named=group in worded)
            once = proof.repeats_at_once(group, self.steps) or len(group) == 1
            more = ["once = true"] if once else []
            variants = (rules.line_rule(self.log, "start", group, {}, more, one) for one in _VARIANTS)
            if wrong is None and any(map(self._append, variants)):
                behind = set(self.steps.after(group))
                self.starts = (len(behind) if once else len(group)) + (0 not in behind)  # The head was truncated.
                self.known |= behind
                self.taken.append(group)
                self._add_resume_of_start(group)
                return
            failed += [wrong] if wrong is not None and group in worded else []
        self.left_out += [("start", one) for one in failed[:1]]

    def _add_heads(self, heads: Heads) -> bool:
        """Add the rule for the first line of processes if there are several."""
        more = ["once = true"] if heads.by_ranks else []
        for group in heads.groups:
            # With the words before its first number, and some after it.
            ways = [({}, 0), *(({0: "_"}, behind) for behind in (_VARIANTS if group.tokens else ()))]
            variants = (rules.line_rule(self.log, "start", group, names, more, behind) for names, behind in ways)
            if any(map(self._append, variants)):
                break
        else:
            return False
        self.starts = len(heads.places)
        self.known |= set(self.steps.after(group))
        self.taken.append(group)
        self._add_resume_of_start(group)
        self._add_totals()
        return True

    def _add_totals(self) -> None:
        """Add rules for other lines with the total of epochs, which distinguishes runs."""
        if any("epochs:int" in key for rule in self.rules for key in rule.keys):
            return
        for group in self.log.groups[:_MOST_GROUPS]:
            at = None if group in self.taken or words.is_other(group.about) else rules.numbered_epoch(group)
            if at is not None and any(self._append(rules.total_rule(self.log, group, at, one)) for one in _VARIANTS):
                self.taken.append(group)
                return

    def _add_resume_of_start(self, group: Group) -> None:
        """Add a second rule for a start line that contains the step from which it continues."""
        number = proof.resume_number(group, self.steps, self.guess)
        if isinstance(number, Contradiction) or len(group) < 2 or group.columns[number[0]].joined:
            return
        *before, start = self.rules
        resume = self._rule("resume", group, {number[0]: "step:int"}, _BEFORE if number[1] else [])
        both = [*before, replace(start, keys=(*start.keys, "also = true")), resume]
        self.rules = self.rules if self.loaded(both) is None else both

    def _add_once(self, phase: PhaseGuess) -> None:
        """Add a rule for an end, a resume or a preparation."""
        if phase.event == "resume":
            self._add_resume(phase)
            return
        is_end, took = phase.event in ("finished", "stopped"), (*phase.took, None)[0]
        if is_end:
            wrong = proof.end_contradiction(phase.group, self.steps, self.known)
        else:
            wrong = phase_contradiction(phase, took, self.steps, {}) if took is not None else None
        if wrong is not None:
            self.left_out.append((phase.event, wrong))
        elif not any(rule.event == phase.event for rule in self.rules) if is_end else took is not None:
            self._append_phase(phase, None if is_end else took)

    def _add_resume(self, phase: PhaseGuess) -> None:
        number = proof.resume_number(phase.group, self.steps, self.guess)
        if not all(self.steps.passages[at] for at in self.steps.after(phase.group)):
            said = "a restore is between two steps of one process"
            number = Contradiction("F1", said, phase.group.first.where)
        names = {at: "took:float" for at, _ in phase.took[:1]}
        more = [f'took = {{ unit = "{unit}" }}' for _, unit in phase.took[:1]]
        if isinstance(number, tuple):
            if not any(rule.event == "resume" and "step:int" in "".join(rule.keys) for rule in self.rules):
                more += _BEFORE if number[1] else []
                self._append(self._rule("resume", phase.group, {**names, number[0]: "step:int"}, more))
        elif not names or not self._append(self._rule("restore", phase.group, names, more)):
            self.left_out.append(("resume", number))

    def _add_phases(self, phases: Sequence[PhaseGuess]) -> None:
        """Add rules for saves and evaluations: first those with a duration, then pairs, then single lines in gaps."""
        lengths = {
            one.group.first.place: lengths_by_gap(one, one.took[0], self.steps)
            for one in phases if one.took and one.edge != "begin"
        }  # fmt: skip
        added_events: set[str] = set()
        self.steps = without_phases(self.steps, phases)
        left: list[tuple[PhaseGuess, Contradiction | None]] = []
        for one in sorted(phases, key=lambda phase: (not phase.took, not phase.edge, not phase.group.has_times(0))):
            if one.event in added_events and (one.edge or not one.took):
                continue
            others = added(length for place, length in lengths.items() if place != one.group.first.place)
            wrong: Contradiction | None = None
            for took in one.took:
                found = phase_contradiction(one, took, self.steps, others)
                wrong = wrong or found
                if found is None and self._append_phase(one, took):
                    self.beside = added([self.beside, lengths_by_gap(one, took, self.steps)])
                    added_events.add(one.event)
                    break
            else:
                left.append((one, wrong))
        for one, wrong in left:
            if one.event not in added_events and not one.background and self._add_untimed(one, phases, wrong):
                added_events.add(one.event)

    def _add_evaluations_of_records(self) -> None:
        """Add a second rule for step lines with the result of an evaluation, if no other lines are about one."""
        found = None if any(rule.event == "eval" for rule in self.rules) else evaluation_in(self.guess)
        if found is None or self.guess.begins:
            return
        at, unit = found
        names = {0: "_"} if at is None else {at: "took:float"}
        more = ["also = true", *([] if at is None else [f'took = {{ unit = "{unit}" }}'])]
        for count in _VARIANTS:
            rule = rules.line_rule(self.log, "eval", self.guess.group, names, more, count)
            if self.loaded([*self.rules, rule]) is not None:
                self.rules = [rule, *self.rules]
                return

    def _add_untimed(self, one: PhaseGuess, phases: Sequence[PhaseGuess], wrong: Contradiction | None) -> bool:
        """Add a pair of lines, or a single line in gaps; return True if added. wrong: why its duration is invalid."""
        others = [two for two in phases if two.event == one.event and {one.edge, two.edge} == {"begin", "end"}]
        other = min(others, key=lambda two: abs(len(two.group) - len(one.group)), default=None)
        if other is not None and self._add_pair(*sorted([one, other], key=lambda phase: phase.edge)):
            return True
        found = phase_contradiction(one, None, self.steps, self.beside)
        if found is not None and found.test == "F0" and (wrong is None or wrong.test == "F0"):
            return False
        since = ""
        if found is not None and found.test == "F2":
            since = since_of(one, phases, self.steps, self.guess, self.log)
            if since == "line" or are_between_all(self.steps, phases):
                found = None  # The accounting states which time is unknown.
        if found is not None or not self._append_phase(replace(one, edge=""), None, since):
            self.left_out.append(
                (one.event, wrong or found or Contradiction("F2", f"{one.event} lines: no rule matches them", ""))
            )
            return False
        self.known |= set(self.steps.after(one.group))
        return True

    def _add_pair(self, begin: PhaseGuess, end: PhaseGuess) -> bool:
        """Add the begin and end lines of a phase if most ends are in the gap of their begin; return True if added."""
        begun = dict(zip(self.steps.after(begin.group), moments(begin.group), strict=True))
        behind = self.steps.after(end.group)
        pairs = [(at, begun.get(at), moment) for at, moment in zip(behind, moments(end.group), strict=True)]
        spans = added(
            {at: (one[1] - before[1]) / 1e9} for at, before, one in pairs
            if at < len(self.steps) and before is not None and before[0] < one[0] and NO_TIME not in (before[1], one[1])
        )  # fmt: skip
        within = sum(0 < at < len(self.steps) for at in behind)
        earlier = list(self.rules)
        if not spans or 2 * len(spans) < within:
            return False
        if not all(self._append_phase(edge, None) for edge in (begin, end)):
            self.rules = earlier
            return False
        self.beside = added([self.beside, spans])
        return True

    def _rule(self, event: str, group: Group, names: dict[int, str] | None = None, more: Sequence[str] = ()) -> Rule:
        return rules.line_rule(self.log, event, group, names or {}, more)

    def _append_phase(self, phase: PhaseGuess, took: tuple[int, str] | None, since: str = "") -> bool:
        """Add the rule of a phase; return False if no wording of it matches its lines alone."""
        names = {} if took is None else {took[0]: "took:float"}
        more = [f'edge = "{phase.edge}"'] if phase.edge and took is None else []
        more += [] if took is None else [f'took = {{ unit = "{took[1]}" }}']
        number = proof.save_number(phase.group, self.steps, self.guess) if phase.event == "save" else None
        if number is not None:
            names[number] = "step:int"
        if took is not None and not phase.group.has_times(0):
            more.append('time = "cursor"')
        if took is None and phase.event == "save" and has_others_before(phase.group, self.steps, self.log):
            since = since or "line"
        more += [] if not since else [f'took = {{ since = "{since}" }}   # what precedes it is something else']
        ways = [(names, 0)]
        if not names and phase.group.tokens:  # Otherwise, words after its first number tell it from other lines.
            ways += [({0: "_"}, words) for words in _VARIANTS]
        return any(
            self._append(rules.line_rule(self.log, phase.event, phase.group, *way[:1], more, way[1])) for way in ways
        )

    def _append(self, rule: Rule) -> bool:
        """Add a rule; return False if it cannot be loaded, matches far more lines than its own, or another one matches
        its line."""
        # Instead of a rule that only keeps these lines from being steps.
        at = next(
            (at for at, one in enumerate(self.rules) if one.event == "alive" and one.example == rule.example), None
        )
        drafted = [*self.rules, rule] if at is None else [*self.rules[:at], rule, *self.rules[at + 1 :]]
        alone, mapped = self.loaded([rule]), self.loaded(drafted)
        if alone is None or mapped is None:
            return False
        read = (group for group in self.log.every_group if read_line(alone, group.first.line) is not None)
        many = sum(map(len, read)) > 1.2 * rule.lines + 1
        if many or not all(rules.reads_own(mapped, at, one) for at, one in enumerate(drafted)):
            return False
        self.rules = drafted
        return True

    def loaded(self, drafted: Sequence[Rule]) -> Mapped | None:
        """Load rules; None if they are invalid."""
        return rules.loaded(self._head(), drafted)

    def candidate(self) -> DraftCandidate:
        """Return the draft without its log."""
        begins, guess, steps = self.starts, self.guess, self.steps
        if guess.elapsed is not None:
            clock = guess.group.columns[guess.elapsed[0]].numbers
            begins = max(1, self.starts) + int((np.diff(clock) < 0).sum())
        back = self.log.jumps_back
        is_timed = guess.each is not None or guess.elapsed is not None
        return DraftCandidate(
            self.text(), sum(rule.lines for rule in self.rules), tuple(rule.event for rule in self.rules),
            tuple(self.left_out), expected.expected_of(steps), begins + repeated_headers(self.guess),
            self._total(), expected.unexplained(steps, self.beside, self.known),
            (int(steps.done[0]), expected.steps_before(steps, self.log.entries)),
            None if is_timed else expected.named_part(guess, steps), self.log.window,
            (len(back), self.log.entries[int(back[0])].where if len(back) else ""),
        )  # fmt: skip

    def _total(self) -> int | None:
        """Return the total number of steps; None if it is unknown, or that of one of several stages."""
        has_stages = self.stages is not None and len(self.stages.places) > 0
        return None if has_stages else max(self.guess.totals, default=0) or None

    def text(self) -> str:
        """Return the mapping as TOML."""
        parts = self._head()
        for event, wrong in self.left_out:
            line = f" (line {wrong.line})" if wrong.line is not None else ""
            parts.append(f"# ignored: {event}: {shown(wrong.reason)}{line}")
        drafted = [*self.rules, *self.last]
        parts += [line for rule in drafted for line in ("", *rules.written(rule))]
        mapped = self.loaded(drafted)
        return "\n".join([*parts, *(rules.samples(mapped, drafted) if mapped is not None else ()), ""])

    def _head(self) -> list[str]:
        steps = "index" if self.guess.index else "done"
        assumed = [f"  {quoted(sentence)}," for sentence in (*self.log.assumed, *rules.assumptions_of(self.guess))]
        if assumed:
            said = "assumed = [             # shown with each result; delete what you have checked"
            assumed = [said, *assumed, "]"]
        epochs = ['epochs = "unknown"       # where steps begin again: delete this if each is a restart']
        head = [f'name = "{self.name}"', *self.log.top, f'steps = "{steps}"', *assumed]
        return [*head, *epochs] if self.steps.falls else head

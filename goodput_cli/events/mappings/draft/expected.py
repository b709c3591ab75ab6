"""Test the result of drafted rules: a mapping before its result is known, what its log leads to expect of the
accounting with it, and whether that comes true.

The log itself is not kept: its lines and columns take more memory than the accounting.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64
from goodput_cli.events.mappings.draft.entries import NO_TIME, Entries, Log
from goodput_cli.events.mappings.draft.guess import StepGuess, missing_steps
from goodput_cli.events.mappings.draft.proof import UNEXPLAINED, Contradiction, by_record, of_records
from goodput_cli.events.mappings.draft.rules import step_rules
from goodput_cli.events.mappings.draft.steps import Steps
from goodput_cli.events.mappings.draft.words import OF_A_RECORD
from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.text import duration, plural, safe

_S = 10**9
_LEAST_NUMBERED = 3
_HALF, _LEAST_GOODPUT = 0.5, 1.0
_MOST_ATTEMPTS = 50
_CUT = 20
"""Ratio to the usual distance of two records from which the log between them is missing."""
_LEAST_PART = 0.3
_STEP = "line = 'step {step:int} took {each:float}s'"


@dataclass(frozen=True)
class Whole:
    """Result of the accounting with a drafted mapping."""

    attempts: int
    kept: float
    goodput: float
    """Percent."""
    window: int
    """ns."""
    trained: bool = True
    """True if it contains training."""
    longest: tuple[str, int] = ("", 0)
    """The longest save, evaluation, restore or data load, and its time in ns."""
    begin: int | None = None
    """ns of its begin, if it is only the last of several runs; None: all of the log."""
    launches: int = 0
    """Number of launches that the paths of its files show; each is an attempt even if steps continue."""
    groups: int = 0
    """Number of groups of workers that only their failures in lines of launchers show."""
    ends: int = 0
    """Number of ends that lines of known formats show: steps may go on in another process after each of them."""


class Excess(NamedTuple):
    """Times between records of one attempt beyond usual steps and phases, where they are long."""

    stamps: I64
    """Times of the records (ns)."""
    seconds: F64

    def since(self, ns: int | None) -> float:
        """Return the seconds from a time on; None for all."""
        return float((self.seconds if ns is None else self.seconds[self.stamps >= ns]).sum())


def unexplained(steps: Steps, beside: Mapping[int, float], starts: Collection[int]) -> Excess:
    """Return the times between records of one attempt beyond usual steps and phases. starts: records before which a
    process began."""
    over = steps.gaps - by_record(beside, len(steps))
    over[[at for at in starts if at < len(steps)]] = math.nan
    least = np.maximum(0.5 * (steps.usual or 0.0) * steps.ahead, 2.0 * steps.coarse)
    return Excess(steps.stamps[over > least], over[over > least])


def steps_before(steps: Steps, entries: Entries) -> float:
    """Return the seconds of the steps before the first record if they fit between the begin of the log and that record,
    unless the log is known to be truncated; otherwise 0."""
    first, ns, (stride, _) = int(steps.done[0]), int(steps.stamps[0]), steps.stride
    took = (first - stride) * (steps.usual or 0.0)
    if ns == NO_TIME or first <= 2 * stride or took > (ns - int(entries.ns[entries.timed.argmax()])) / _S:
        return 0.0
    return took


def named_part(guess: StepGuess, steps: Steps) -> tuple[str, float] | None:
    """Return the name and share of a time in step lines that covers all steps since the previous line but is far less
    than the elapsed time; None if there is none."""
    for column in guess.group.columns:
        if column.joined or not OF_A_RECORD.search(column.name):
            continue
        known = np.isin(steps.places, guess.group.places) & (steps.passed > 0)
        shares = of_records(guess, steps, column.numbers)[known] / steps.passed[known]
        if len(shares) < _LEAST_NUMBERED or shares.max() > 1 + UNEXPLAINED:
            continue
        if _LEAST_PART < np.median(shares) < 1 - UNEXPLAINED:
            return column.name, float(np.median(shares))
    return None


def kept_seconds(steps: Steps) -> float | None:
    """Return the seconds of steps that no later attempt repeated, according to the times in their lines, without those
    of the first record: it may have begun before the log. None if the lines have no times."""
    if not steps.by_lines or steps.others:
        return None
    (stride, _), first, each = steps.stride, int(steps.done[0]), np.nan_to_num(steps.each)
    each = np.where(
        steps.passages[:-1], np.minimum(each, np.median(each)), each
    )  # The first step of a process compiles.
    least = np.minimum.accumulate(steps.done[::-1])[::-1]
    kept = np.append(steps.done[:-1] < least[1:], True)  # No later record is at or below it.
    done = steps.done[kept]
    ahead = np.diff(done, prepend=0 if first <= 2 * stride else first - stride)
    seconds = np.where(ahead < _CUT * stride, ahead, stride) * each[kept]
    return float(seconds[int(kept[0]) :].sum())


class Expected(NamedTuple):
    """What the steps of a log lead to expect of the accounting."""

    records: int
    falls: int
    """How often steps fall, and how often after the end of a process."""
    ended_falls: int
    ended_rises: int
    """Number of records with a higher step than the one before, after a line with which a process ended or began."""
    first: str
    """FILE:LINE of the first record."""
    where: str
    """FILE:LINE of the first fall, otherwise of the first record."""
    end: tuple[int, int]
    """The step from which steps begin again most often, and how often."""
    clock_sets: int
    """How often timestamps fall."""
    seconds: float | None
    """See `kept_seconds`."""
    has_heads: bool
    """True if lines show where processes begin; days may pass between them."""
    after: int
    """Time (ns) from the last record to the last line: that of a hang, for example."""
    files: int
    """Number of files with records of steps, each of another process or run."""


def expected_of(steps: Steps) -> Expected:
    """Return what steps lead to expect of the accounting."""
    falls = steps.falls
    anew = [at for at in falls if steps.done[at] <= steps.done[0] and not steps.ended[at]]
    end = Counter(int(steps.done[at - 1]) for at in anew).most_common(1)[0] if anew else (0, 0)
    times = steps.stamps[steps.stamps != NO_TIME]
    where, ended = steps.where(falls[0] if falls else 0), sum(bool(steps.ended[at]) for at in falls)
    rises = int(steps.ended[1:-1].sum()) - ended
    sets = int((np.diff(times) < 0).sum())
    seconds, has_heads = kept_seconds(steps), bool(steps.heads)
    after = int(steps.entries.ns.max(initial=0) - times.max()) if len(times) else 0
    files = len(np.unique(steps.entries.files[np.searchsorted(steps.entries.places, steps.read)]))
    return Expected(
        len(steps), len(falls), ended, rises, steps.where(0), where, end, sets, seconds, has_heads, after, files
    )


def whole_contradictions(whole: Whole, steps: Expected, starts: int, total: int | None) -> Iterable[Contradiction]:
    """W1 to W4: yield reasons why the result with a draft is implausible."""
    where = steps.where
    end, same = steps.end
    if same > max(1, starts, steps.falls / 2):
        yield Contradiction(
            "W1", f"steps reach {end} {same} times and start again, but no line contains the epoch", where
        )
    begins = max(starts, whole.launches) + steps.files - 1
    # These are the same restarts.
    of_starts = min(steps.ended_falls, max(0, begins - 1))
    begun = max(steps.ended_rises, begins - 1 - of_starts, 0)
    restarts = steps.falls + begun + whole.groups + max(0, whole.ends - steps.falls)
    most = 1 + restarts + steps.clock_sets
    if whole.attempts > min(most, 1 + steps.records / 4 + begins + whole.groups, _MOST_ATTEMPTS):
        falls = plural(steps.falls, "time")
        said = f"with this rule, the job has {whole.attempts} attempts, but steps go back only {falls}"
        yield Contradiction("W1", said, where)
    if total is not None and whole.kept > 1.01 * total + 1:
        yield Contradiction(
            "W2", f"with this rule, {whole.kept:,.0f} steps are kept, but the log has a total of {total:,}", where
        )
    if whole.longest[1] > _HALF * whole.window:
        what, ns = whole.longest
        yield Contradiction("W2", f"with this rule, one {what} takes {duration(ns)} of {duration(whole.window)}", where)
    trained = steps.seconds
    if trained is not None and trained - whole.goodput / 100 * whole.window / _S > 0.05 * whole.window / _S:
        took, stated = duration(round(whole.goodput / 100 * whole.window)), duration(round(trained * _S))
        yield Contradiction("W4", f"with this rule, steps take {took}, but their lines add up to {stated}", where)
    is_little = whole.goodput * whole.window < _LEAST_GOODPUT * max(whole.window - steps.after, 1)
    if (is_little and not steps.has_heads) or not whole.trained:
        yield Contradiction("W3", f"with this rule, goodput is {whole.goodput:.2f} %", where)


@dataclass(frozen=True)
class LeftOut:
    """A rule that the log contradicts."""

    event: str
    line: int | None
    reason: str
    test: str
    """The failed test (`proof`)."""


@dataclass(frozen=True)
class Draft:
    """A drafted mapping."""

    text: str
    """TOML with rules that match the log, rejected rules with reasons, and sample lines; only comments if no rule could
    be proven or none is needed."""
    rules: int = 0
    lines: int = 0
    """Number of lines that it was made from."""
    left_out: tuple[LeftOut, ...] = ()
    refused: tuple[str, ...] = ()
    """Why its result would be wrong, and what to do."""
    refused_by: str = ""
    """The test that the likeliest step rule or its result fails (`proof`); empty if no number may count steps."""
    doubts: tuple[str, ...] = ()
    """Warnings about its result."""


@dataclass(frozen=True)
class DraftCandidate:
    """A drafted mapping whose result is unknown."""

    text: str
    lines: int
    """Number of lines that its rules match."""
    events: tuple[str, ...]
    """Event of each rule."""
    left_out: tuple[tuple[str, Contradiction], ...]
    """Events and reasons of rejected rules."""
    expected: Expected
    begins: int
    """Number of processes that lines show to begin."""
    total: int | None
    """Total number of steps in the log."""
    excess: Excess
    before: tuple[int, float]
    """The first step, and the seconds of the steps before it (`steps_before`)."""
    part: tuple[str, float] | None
    """A time that covers only a part of the time between records (`named_part`); None without one."""
    window: int
    """Time (ns) between the first and the last entry."""
    jumps_back: tuple[int, str]
    """How often timestamps jump back, and the first location."""

    def contradictions(self, whole: Whole | str) -> list[Contradiction]:
        """W: return the reasons why its result is implausible."""
        if isinstance(whole, str):
            where = self.expected.first
            return [Contradiction("W", f"with this rule, the log cannot be analyzed: {whole}", where)]
        return list(whole_contradictions(whole, self.expected, self.begins, self.total))

    def finished(self, whole: Whole) -> Draft:
        """Return the draft with the warnings about its result."""
        left = tuple(LeftOut(event, one.line, shown(one.reason), one.test) for event, one in self.left_out)
        doubts = tuple(self._doubts(whole, left))
        return Draft(self.text, len(self.events), self.lines, left, doubts=doubts)

    def _doubts(self, whole: Whole, left: tuple[LeftOut, ...]) -> Iterator[str]:
        unread = [one.reason for one in left if one.event in ("save", "eval") and one.event not in self.events]
        if unread:
            yield f"ignored {', '.join(dict.fromkeys(unread))}; their time may count as training"
        least = UNEXPLAINED * whole.window / _S
        over = self.excess.since(whole.begin)
        if over > least:
            yield f"{duration(round(over * _S))} between steps is unexplained, so goodput may be wrong"
        first, before = self.before
        if before > least and "resume" not in self.events:
            yield f"the first step line has step {first}; earlier steps are not counted"
        if self.part is not None:
            name, share = self.part
            yield f"`{name}` covers {share:.0%} of the time between step lines, but all of it counts as training"
        outside = self.window - whole.window if whole.begin is None else 0
        if outside > UNEXPLAINED * self.window:
            said = f"{duration(outside)} of output is outside the measured window"
            yield f"{said} (before the first or after the last event)"
        back, where = self.jumps_back
        if back:
            yield f"timestamps jump back {plural(back, 'time')}, first at {where}; steps may be counted twice or lost"


def shown(sentence: str) -> str:
    """Return a sentence with text from the log, made safe to show."""
    return safe(without_secrets(sentence))


def refusal(log: Log, name: str, guesses: Sequence[StepGuess], failed: Sequence[Contradiction]) -> Draft:
    """Return a draft without rules: why none could be proven, with the best candidate and the rule to write by hand."""
    step, reason = _STEP, missing_steps(log)
    for best in failed[:1]:
        step = step_rules(log, guesses[0], 0)[-1].keys[0]
        reason = f"{best.reason}{f' ({best.where})' if best.where else ''}"
    tip = "If the log prints steps, describe one in my.toml and pass --mapping my.toml (docs/mappings.md)"
    reason = shown(f'no step rule could be inferred: {reason}. {tip}: [[rule]] event = "step" {step}')
    text = f'name = "{name}"\n# refused: {reason}\n\n# [[rule]]\n# event = "step"\n# {shown(step)}\n'
    return Draft(text, refused=(reason,), refused_by=failed[0].test if failed else "")

"""Test the result of drafted rules: the accounting with them does what the steps of the log lead to expect."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64
from goodput_cli.events.mappings.draft.entries import NO_TIME, Entries
from goodput_cli.events.mappings.draft.guess import StepGuess
from goodput_cli.events.mappings.draft.proof import UNEXPLAINED, Contradiction, by_record, of_records
from goodput_cli.events.mappings.draft.steps import Steps
from goodput_cli.events.mappings.draft.words import OF_A_RECORD
from goodput_cli.vocabulary.text import duration, plural

_S = 10**9
_LEAST_NUMBERED = 3
_HALF, _LEAST_GOODPUT = 0.5, 1.0
_MOST_ATTEMPTS = 50
_CUT = 20
"""Ratio to the usual distance of two records from which the log between them is missing."""
_LEAST_PART = 0.3


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
    """Number of launches in the paths of its files; each is an attempt even if steps continue."""


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
    """Return the seconds of steps that no later attempt repeated, according to the times in their lines; None if these
    have none."""
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
    return float((np.where(ahead < _CUT * stride, ahead, stride) * each[kept]).sum())


class Expected(NamedTuple):
    """What the steps of a log lead to expect of the accounting."""

    records: int
    falls: int
    """How often steps fall, and how often after the end of a process."""
    ended_falls: int
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


def expected_of(steps: Steps) -> Expected:
    """Return what steps lead to expect of the accounting."""
    falls = steps.falls
    anew = [at for at in falls if steps.done[at] <= steps.done[0] and not steps.ended[at]]
    end = Counter(int(steps.done[at - 1]) for at in anew).most_common(1)[0] if anew else (0, 0)
    times = steps.stamps[steps.stamps != NO_TIME]
    where, ended = steps.where(falls[0] if falls else 0), sum(bool(steps.ended[at]) for at in falls)
    sets = int((np.diff(times) < 0).sum())
    seconds, has_heads = kept_seconds(steps), bool(steps.heads)
    return Expected(len(steps), len(falls), ended, steps.where(0), where, end, sets, seconds, has_heads)


def whole_contradictions(whole: Whole, steps: Expected, starts: int, total: int | None) -> Iterable[Contradiction]:
    """W1 to W4: yield reasons why the result with a draft is implausible."""
    where = steps.where
    end, same = steps.end
    if same > max(1, starts, steps.falls / 2):
        yield Contradiction(
            "W1", f"steps reach {end} {same} times and start again, but no line contains the epoch", where
        )
    begins = max(starts, whole.launches)
    # These are the same restarts.
    of_starts = min(steps.ended_falls, max(0, begins - 1))
    restarts = steps.falls + max(0, begins - 1) - of_starts
    most = 1 + restarts + steps.clock_sets
    if whole.attempts > min(most, 1 + steps.records / 4 + begins, _MOST_ATTEMPTS):
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
    if (whole.goodput < _LEAST_GOODPUT and not steps.has_heads) or not whole.trained:
        yield Contradiction("W3", f"with this rule, goodput is {whole.goodput:.2f} %", where)

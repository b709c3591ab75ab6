"""Cost of each attempt (accounting §10): the ledger by attempt, from which disruptions, insights and advice take their
sums. Also the lost training that saves could have kept.

Every second of a window is in one row, so that a column adds up to the ledger. A row begins when its attempt was up
(when it trained, if it did so before all its ranks were up) and ends at the begin of the next one. The first row
begins, and the last one ends, with the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Protocol

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import clipped, search
from goodput_cli.accounting.segments import Key
from goodput_cli.analysis.disruptions.losses import first_and_last_steps, lost_time
from goodput_cli.analysis.saves import Completion, judge_saves
from goodput_cli.analysis.table import FilledTable, TableDeclaration, column, columns_of
from goodput_cli.arrays import I64, Mask, Rows, sums_by
from goodput_cli.events.schema import NO_STEP
from goodput_cli.vocabulary.categories import Category, in_group

_TOP = np.iinfo(np.int64).max
DOWN, STARTING = in_group("down"), in_group("starting")


class AttemptCosts:
    """Ledger of a window by attempt: columns (ns) of n rows, each computed on demand.

    A row has three parts: until the attempt trains, until its last training, and until the next one begins. within: the
    window (ns), if not the whole job. A job without attempts has no rows.
    """

    def __init__(self, timeline: Timeline, within: tuple[int, int] | None = None) -> None:
        self._timeline = timeline
        self.within = within or (timeline.start, timeline.end)
        attempts, spans = timeline.attempts, timeline.training.spans
        begin = attempts.up.copy()
        bounds = search(spans.attempt, np.arange(len(begin) + 1))
        some = np.flatnonzero(bounds[1:] > bounds[:-1])
        begin[some] = spans.start[bounds[some]]
        left = np.maximum(attempts.up, spans.latest_end(attempts.up))
        before = np.append(timeline.start, left)[: len(left)]
        up, trained = np.maximum(before, attempts.up), np.maximum(before, begin)
        self._early: Mask = trained < up
        """True for attempts that trained before all their ranks were up."""
        rows = np.append(np.minimum(up, trained), timeline.end)
        rows[:1] = timeline.start
        edges = np.column_stack((rows[:-1], np.maximum(up, trained), left, rows[1:]))
        self._edges = clipped(np.maximum.accumulate(edges.ravel()), *self.within).reshape(-1, 4)

    def __len__(self) -> int:
        return len(self._edges)

    @property
    def number(self) -> Rows:
        """Number of each row's attempt, from 1."""
        return self._timeline.attempts.number

    @property
    def begin(self) -> I64:
        """Begin of each row (ns)."""
        return self._edges[:, 0]

    @property
    def end(self) -> I64:
        """End of each row (ns)."""
        return self._edges[:, -1]

    @cached_property
    def ledger(self) -> dict[Key, I64]:
        """Time of each category in each part of each row: int64[n, 3]; in total the ledger of the window."""
        start, end = self._edges[:, :-1].ravel(), self._edges[:, 1:].ravel()
        amounts = self._timeline.ledger.between(start, end)
        return {key: amount.reshape(-1, 3) for key, amount in amounts.items()}

    def of(self, *categories: Category) -> I64:
        """Return the time of some categories, with any label, by attempt."""
        return np.asarray(self._parts(categories).sum(axis=1))

    def total(self, *categories: Category) -> int:
        """Return the time of some categories over all attempts."""
        return int(self._parts(categories).sum())

    def until_up(self, *categories: Category) -> I64:
        """Return the time of some categories from the last training of each attempt until the next was up.

        There is one value for each attempt that another one follows. No second counts for two attempts.
        """
        starting, _, behind = self._parts(categories).T
        return np.asarray(behind[:-1] + np.where(self._early[1:], starting[1:], 0))

    def until_left(self, *categories: Category) -> I64:
        """Return the time of some categories from when each attempt was up until its last training; `until_up` has the
        rest. For an attempt that trained before all its ranks were up, it counts only from then on."""
        starting, training, _ = self._parts(categories).T
        return np.asarray(training + np.where(self._early, 0, starting))

    def until_trained(self, *categories: Category) -> I64:
        """Return the time of some categories until the next attempt trained, or until it was up if it never did."""
        starting, _, behind = self._parts(categories).T
        return np.asarray(behind[:-1] + np.where(self._early[1:], 0, starting[1:]))

    @property
    def left(self) -> I64:
        """Time (ns) at which each attempt last trained, or was up if it never trained."""
        return self._edges[:, 2]

    @property
    def gap_edges(self) -> tuple[I64, I64, I64]:
        """Times (ns) after each attempt that another one follows: the end of its training, and the ends of `until_up`
        and `until_trained`."""
        left, begin, trained = self._edges[:-1, 2], self._edges[1:, 0], self._edges[1:, 1]
        early = self._early[1:]
        return left, np.where(early, trained, begin), np.where(early, begin, trained)

    def _parts(self, categories: Sequence[Category]) -> I64:
        found = [amount for (category, _), amount in self.ledger.items() if category in categories]
        return sum(found, np.zeros((len(self), 3), dtype=np.int64))

    @cached_property
    def first_startup(self) -> I64:
        """`program_startup` of each attempt's first span of training, for any window."""
        attempt, start, end = self.startups
        return sums_by(attempt, end - start, len(self._timeline.attempts))

    @cached_property
    def startups(self) -> tuple[Rows, I64, I64]:
        """The start-ups of `first_startup` piece by piece: attempt, begin and end (ns). Startup after a
        re-initialization later in the attempt is not a restart."""
        segments, spans = self._timeline.segments, self._timeline.training.spans
        rows = np.flatnonzero(segments.category == Category.PROGRAM_STARTUP)
        if len(spans.restarted):
            rows = rows[~np.isin(segments.start[rows], spans.start[spans.restarted])]
        return segments.attempt(rows), segments.start[rows], segments.end[rows]

    @property
    def downtime(self) -> I64:
        """Downtime (`DOWN`) after each attempt that another one follows."""
        return self.until_up(*DOWN)

    @property
    def restart(self) -> I64:
        """Cost of starting again after each attempt that another one follows, in time that is not downtime."""
        return self.until_trained(*STARTING) + self.first_startup[1:]

    @cached_property
    def taken_back(self) -> I64:
        """Training of any attempt inside the window that the end of each one took back (ns)."""
        return lost_time(self._timeline, self.within)

    @cached_property
    def unplanned(self) -> Mask:
        """True if the end of an attempt that another one follows was a disruption that counts."""
        return self._timeline.failed[:-1]

    @cached_property
    def _saves(self) -> SavesOfAttempts:
        return find_saves(self._timeline)

    @cached_property
    def olders(self) -> tuple[OlderRestore, ...]:
        """Restores that skipped newer checkpoints."""
        return tuple(older_restores(self._timeline, self._saves))

    @cached_property
    def failed(self) -> tuple[OlderRestore, ...]:
        """Restores that had to skip saves which never completed; `newer` are these."""
        saves = self._saves
        return tuple(_passed_over(self._timeline, saves, saves.unfinished_owner, saves.unfinished))

    @cached_property
    def unknowns(self) -> tuple[OlderRestore, ...]:
        """Restores that skipped saves of unknown completion; `newer` are these."""
        saves = self._saves
        return tuple(_passed_over(self._timeline, saves, saves.unknown_owner, saves.unknown))

    @cached_property
    def older(self) -> I64:
        """The part of `taken_back` that a newer checkpoint would have kept."""
        return self._kept_by(self.olders)

    @cached_property
    def unfinished(self) -> I64:
        """The part of `taken_back`, beyond `older`, that saves which never completed would have kept."""
        return np.asarray(np.maximum(self._kept_by(self.failed) - self.older, 0))

    @cached_property
    def unknown(self) -> I64:
        """The part of `taken_back`, beyond both, that saves of unknown completion would have kept if complete."""
        return np.asarray(np.maximum(self._kept_by(self.unknowns) - self.older - self.unfinished, 0))

    def _kept_by(self, passed_over: Sequence[OlderRestore]) -> I64:
        """Return the lost training that the newest of the skipped saves of each restore would have kept."""
        count = len(self._timeline.attempts)
        if not passed_over:
            return np.zeros(count, dtype=np.int64)
        below = np.full(count, -_TOP)
        below[[one.ended for one in passed_over]] = [one.below for one in passed_over]
        return lost_time(self._timeline, self.within, below)


class _Stretch(Protocol):
    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...


class _WindowedAnalysis(Protocol):
    """Interface of an analysis, as far as it is needed here."""

    @property
    def timeline(self) -> Timeline: ...
    @property
    def window(self) -> _Stretch: ...


def costs_of(analysis: _WindowedAnalysis) -> AttemptCosts:
    """Return the ledger of the window of an analysis by attempt."""
    return AttemptCosts(analysis.timeline, (analysis.window.start_ns, analysis.window.end_ns))


@dataclass(frozen=True)
class OlderRestore:
    """A restore that skipped a newer checkpoint."""

    ended: int
    """Index of the attempt whose training it took back, from 0."""
    resumed: int
    """Index of the attempt that restored, from 0."""
    began: int
    """Step from which that attempt trained."""
    restored: int | None
    """Newest checkpoint that is not above it; None if not logged."""
    newer: tuple[int, ...]
    """Steps of the complete checkpoints above it, ascending."""

    @property
    def below(self) -> int:
        """Return the step from which training would have continued with the newest of them, at the same distance from
        it."""
        behind = 0 if self.restored is None else min(self.began - self.restored, 1)
        return self.newer[-1] + behind


@dataclass(frozen=True)
class SavesOfAttempts:
    """Saves by attempt and then by step."""

    owner: Rows
    step: I64
    unfinished_owner: Rows
    """Owners of saves that began and were never complete."""
    unfinished: I64
    unknown_owner: Rows
    """Owners of saves whose completion the log does not show."""
    unknown: I64


def older_restores(timeline: Timeline, saves: SavesOfAttempts) -> list[OlderRestore]:
    """Return attempts that began below the newest checkpoint that was complete when they started, and was not discarded
    before. A log that shows no saves has none."""
    began, _ = first_and_last_steps(timeline)
    stepping = np.flatnonzero(began != NO_STEP)
    before, newest = np.searchsorted(saves.owner, stepping), np.maximum.accumulate(np.append(NO_STEP, saves.step))
    if not (newest[before] > began[stepping]).any():
        return []  # This is the usual case: none began below a save of an earlier one, discarded or not.
    bounds, steps = before.tolist(), saves.step.tolist()
    # A rollback goes back on purpose: if one is possible, the older checkpoint is not reported.
    perhaps_rolled_back = timeline.attempts.perhaps_rolled_back
    usable: list[int] = []
    older: list[OlderRestore] = []
    for place, attempt in enumerate(stepping.tolist()):
        first = int(began[attempt])
        newer = tuple(saved for saved in usable if saved > first) if usable and usable[-1] > first else ()
        del usable[len(usable) - len(newer) :]
        if newer and not perhaps_rolled_back[attempt]:
            older.append(OlderRestore(int(stepping[place - 1]), attempt, first, usable[-1] if usable else None, newer))
        stop = bounds[place + 1] if place + 1 < len(stepping) else len(steps)
        for saved in steps[bounds[place] : stop]:
            if not usable or saved > usable[-1]:
                usable.append(saved)
    return older


def _passed_over(timeline: Timeline, saves: SavesOfAttempts, owner: Rows, step: I64) -> Iterator[OlderRestore]:
    """Yield attempts that began below some saves, which are not known to be complete, of the attempt before them."""
    if len(step) == 0:
        return
    began, _ = first_and_last_steps(timeline)
    stepping = np.flatnonzero(began != NO_STEP)
    for before, attempt in pairwise(stepping.tolist()):
        first = int(began[attempt])
        newer = np.unique(step[(owner == before) & (step > first)])
        if len(newer):
            complete = saves.step[(saves.owner <= before) & (saves.step <= first)]
            restored = int(complete.max()) if len(complete) else None
            yield OlderRestore(before, attempt, first, restored, tuple(newer.tolist()))


def find_saves(timeline: Timeline) -> SavesOfAttempts:
    """Return the saves by completion. A complete one that ended after the next attempt began was not there for it."""
    saves = judge_saves(timeline)
    saves = saves.take((saves.owner >= 0) & (saves.step != NO_STEP))
    following = np.append(timeline.attempts.begin[1:], _TOP)[saves.owner]
    complete = saves.take(saves.are(Completion.COMPLETE) & (saves.complete <= following))
    unfinished, unknown = (saves.take(saves.are(one)) for one in (Completion.UNFINISHED, Completion.UNKNOWN))
    return SavesOfAttempts(
        complete.owner, complete.step, unfinished.owner, unfinished.step, unknown.owner, unknown.step
    )  # fmt: skip


@dataclass(frozen=True)
class AttemptCost:
    """A row of the table for people and programs (ns): from `productive` to `excluded` they add up to `time`."""

    number: int = column("count", "of the attempt, from 1", least=1, heading="attempt")
    start_ns: int = column("instant", "start of its row: when it was up, or its first training if earlier")
    end_ns: int = column("instant", "start of the next row; for the last attempt, the end of the window")
    time_ns: int = column(
        "duration", "from start to end: the columns up to excluded add up to it", least=0, heading="time"
    )
    productive_ns: int = column("duration", "training that was kept", heading="productive")
    wasted_ns: int = column("duration", "training of this attempt that was lost", least=0, heading="wasted")
    downtime_ns: int = column(
        "duration", "recovery, undetermined and stopped time, mostly after it", least=0, heading="downtime"
    )
    startup_ns: int = column(
        "duration", "initialization, preparation and the extra time of first steps", least=0, heading="start-up"
    )
    restore_ns: int = column("duration", "checkpoint restores", least=0, heading="restore")
    saves_ns: int = column("duration", "saves that blocked training", least=0, heading="saves")
    data_ns: int = column("duration", "data loading outside steps", least=0, heading="data")
    stalls_ns: int = column("duration", "kept steps that hung, beyond a usual one", least=0, heading="stalls")
    slowdown_ns: int = column("duration", "beyond the reference step time", heading="slowdown")
    custom_ns: int = column("duration", "custom events, whatever their label", least=0, heading="custom")
    elastic_ns: int = column("duration", "elastic waits and reinitialization", least=0, heading="elastic")
    queued_ns: int = column("duration", "in the queue", least=0, heading="queued")
    other_ns: int = column("duration", "time that the log does not explain", least=0, heading="other")
    excluded_ns: int = column("duration", "taken out by the user", least=0)
    taken_back_ns: int = column(
        "duration", "training of any attempt that was lost when this one ended; not part of time", least=0
    )
    older_ns: int = column("duration", "the part of taken_back that a newer checkpoint would have kept", least=0)
    unfinished_ns: int = column(
        "duration", "the part of taken_back that saves which were never complete would have kept", least=0
    )


CATEGORIES_OF: dict[str, tuple[Category, ...]] = {
    "productive_ns": (Category.PRODUCTIVE,),
    "wasted_ns": (Category.WASTED,),
    "downtime_ns": DOWN,
    "startup_ns": (Category.PROGRAM_STARTUP, Category.TPU_INITIALIZATION, Category.TRAINING_PREP),
    "restore_ns": (Category.RESTORE,),
    "saves_ns": (Category.SAVE,),
    "data_ns": (Category.DATA_LOADING_SYNC,),
    "stalls_ns": (Category.STALL,),
    "slowdown_ns": (Category.SLOWDOWN,),
    "custom_ns": (Category.CUSTOM,),
    "elastic_ns": (Category.ELASTIC_DOWN, Category.ELASTIC_UP, Category.ELASTIC_REINIT),
    "queued_ns": (Category.QUEUED,),
    "other_ns": (Category.OTHER,),
    "excluded_ns": (Category.EXCLUDED,),
}
"""Columns of amounts; every category is in one."""
ATTEMPTS = TableDeclaration(
    "attempt_cost",
    "what an attempt cost in the window; every second of the window is in one row, and in one of the columns that add "
    "up to time",
    columns_of(AttemptCost, itemgetter),
)


def costs_of_attempts(costs: AttemptCosts) -> FilledTable:
    """Return the rows that reach into the window; the parts into which rollbacks cut an attempt are one row."""
    inside = np.flatnonzero(costs.end > costs.begin)
    number = costs.number[inside]
    heads = np.flatnonzero(np.diff(number, prepend=0))
    amounts = {
        "time_ns": costs.end - costs.begin,
        "taken_back_ns": costs.taken_back,
        "older_ns": costs.older,
        "unfinished_ns": costs.unfinished,
        **{name: costs.of(*categories) for name, categories in CATEGORIES_OF.items()},
    }
    columns = {
        "number": number[heads],
        "start_ns": costs.begin[inside[heads]],
        "end_ns": costs.end[inside[np.append(heads[1:], len(inside))[: len(heads)] - 1]],
        **{name: np.add.reduceat(amount[inside], heads) if len(heads) else heads for name, amount in amounts.items()},
    }
    return ATTEMPTS.of(len(inside), lambda: [columns])

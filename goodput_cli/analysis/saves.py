"""Saves of a job: their distances, and which of them are complete (accounting §2).

Analyze, advise, compare and insights share them, and so do older restores, unfinished saves, `at_risk` and charts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import Struct

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct, is_among, of_kind, rows_of, run_heads, search
from goodput_cli.arrays import I64, ColumnCode, Mask, Rows
from goodput_cli.events.schema import LEFT_OPEN_SAVE, NO_STEP, SAVE_STATE, Edge, Kind, SaveState


class DistanceFromStart(Struct, frozen=True):
    """Distances of saves from the start of their attempts, n items each."""

    ns: I64
    """For the first save of an attempt, the time from the begin of its training to the save's end (ns); otherwise 0."""
    steps: I64
    """For the first save of an attempt, the steps between; 0 if unknown."""
    last: Mask
    """True if its attempt finished no step after it: it was made at exit."""

    def take(self, chosen: Mask) -> DistanceFromStart:
        """Return the chosen saves."""
        return DistanceFromStart(self.ns[chosen], self.steps[chosen], self.last[chosen])


class SavesMade(Struct, frozen=True):
    """Saves, int64[n], in order of their beginnings.

    Reports of one step in one attempt are one save: those of several hosts, or of an Orbax save and a
    `checkpoint_saved` line. Lines without a step are one save if they overlap; every other one is a separate save.
    """

    attempt: I64
    step: I64
    """Step; for lines without a step the last one recorded before the save began; `NO_STEP` if unknown."""
    begin: I64
    """Begin of the first of its lines (ns)."""
    end: I64
    """End of the last of its lines (ns)."""
    behind: DistanceFromStart | None = None
    """Distances from the start of their attempts; None if not computed."""

    def __len__(self) -> int:
        return len(self.step)

    def take(self, chosen: Mask) -> SavesMade:
        """Return the chosen saves."""
        behind = None if self.behind is None else self.behind.take(chosen)
        return SavesMade(self.attempt[chosen], self.step[chosen], self.begin[chosen], self.end[chosen], behind)

    @property
    def apart_ns(self) -> float | None:
        """Return the median time (ns) from the end of a save to that of the next one in the same attempt.

        The time of a disruption is not between two saves. If the second save is always one at exit, which comes at any
        time, use the time from the begin of an attempt's training to its first save. None if unknown.
        """
        firsts = self._firsts
        apart = np.diff(self.end)[self._next] if firsts is None else firsts.ns
        return float(np.median(apart)) if len(apart) else None

    @property
    def apart_steps(self) -> int | None:
        """Return the lower median distance of the same saves in steps; if unknown, that of all saved steps."""
        firsts = self._firsts
        apart = np.diff(self.step)[self._next & (self.step[:-1] != NO_STEP)] if firsts is None else firsts.steps
        apart = apart[apart > 0]
        if len(apart) == 0:
            apart = np.diff(self.steps)
        return int(np.sort(apart)[(len(apart) - 1) // 2]) if len(apart) else None

    @property
    def _next(self) -> Mask:
        """Return, for each save but the last, True if one of the same attempt follows."""
        followed: Mask = self.attempt[1:] == self.attempt[:-1]
        return followed

    @property
    def _firsts(self) -> DistanceFromStart | None:
        """Return the first saves of attempts, if these determine the interval; None if two saves of one attempt do."""
        behind = self.behind
        if behind is None or not self._next.any() or (self._next & ~behind.last[1:]).any():
            return None
        firsts = behind.take((behind.steps > 0) & ~behind.last)
        return firsts if len(firsts.steps) else None

    @property
    def steps(self) -> I64:
        """Return the distinct saved steps, ascending."""
        return distinct(self.step[self.step != NO_STEP])


def saves_made(timeline: Timeline) -> SavesMade:
    """Return all saves of a job, including incomplete ones."""
    table = timeline.table
    rows = rows_of(table.kind, (Kind.SAVE, Kind.SAVED))
    owner, said = timeline.attempts.of_row[rows].astype(np.int64), table.step[rows]
    follows = (table.kind[rows] == Kind.SAVED) | (_facts_of_lines(timeline, rows)[0] == _BLOCKING_DONE)
    said = _steps_of_completions(owner, said, follows & (said == NO_STEP))
    return add_distances_from_start(
        timeline, joined(owner, steps_of_saves(timeline, rows), said, table.time[rows], table.end[rows])
    )


def add_distances_from_start(timeline: Timeline, saves: SavesMade) -> SavesMade:
    """Return saves with their distances from the start of their attempts. Saves of checkpoint logs, in which a save
    itself is progress, stay unchanged."""
    records, spans = timeline.records, timeline.training.spans
    chosen = np.flatnonzero((saves.attempt >= 0) & (saves.step != NO_STEP))
    if records is None or len(chosen) == 0 or len(spans.attempt) == 0:
        return saves
    owner, step = saves.attempt[chosen], saves.step[chosen]
    bounds = records.bounds
    highest = np.full(len(bounds) - 1, np.iinfo(np.int64).max)
    some = np.flatnonzero(bounds[1:] > bounds[:-1])
    highest[some] = np.maximum.reduceat(records.number, bounds[:-1][some]) if len(some) else 0
    last = np.zeros(len(saves), dtype=bool)
    last[chosen] = step >= highest[owner]
    stored = 0 if timeline.attempts.step_ends else 1  # Training continues after the saved step.
    _, of_first = np.unique(owner, return_index=True)  # Saves are in time order.
    begin = np.minimum(search(spans.attempt, owner[of_first]), len(spans.attempt) - 1)
    of_first, begin = of_first[spans.attempt[begin] == owner[of_first]], begin[spans.attempt[begin] == owner[of_first]]
    ns, steps = np.zeros(len(saves), dtype=np.int64), np.zeros(len(saves), dtype=np.int64)
    ns[chosen[of_first]] = saves.end[chosen[of_first]] - spans.start[begin]
    steps[chosen[of_first]] = np.maximum(step[of_first] + stored - records.began[owner[of_first]], 0)
    return SavesMade(saves.attempt, saves.step, saves.begin, saves.end, DistanceFromStart(ns, steps, last))


def joined(attempt: I64, step: I64, said: I64, begin: I64, end: I64) -> SavesMade:
    """Return the saves of some save lines, int64[k] each. said: the logged steps; step: with those that lines omit."""
    order = np.lexsort((begin, said, attempt))
    attempt, step, said, begin, end = (column[order] for column in (attempt, step, said, begin, end))
    if len(order) == 0:
        return SavesMade(attempt, step, begin, end)
    heads = np.flatnonzero(run_heads(attempt) | run_heads(said) | _is_unnumbered(attempt, said, begin, end))
    first, last = begin[heads], np.maximum.reduceat(end, heads)
    by_time = np.lexsort((heads, first))
    return SavesMade(attempt[heads][by_time], step[heads][by_time], first[by_time], last[by_time])


def _is_unnumbered(attempt: I64, said: I64, begin: I64, end: I64) -> Mask:
    """Return, for each line, True if it names no step and begins after all earlier such lines of its attempt."""
    alone = np.zeros(len(said), dtype=bool)
    nameless = np.flatnonzero(said == NO_STEP)
    for owner in distinct(attempt[nameless]).tolist():
        own = nameless[attempt[nameless] == owner]
        alone[own[1:]] = begin[own[1:]] > np.maximum.accumulate(end[own[:-1]])
    return alone


def steps_of_saves(timeline: Timeline, rows: Rows) -> I64:
    """Return the step of each save line: the logged one, otherwise the last one that its attempt recorded before it."""
    table, records = timeline.table, timeline.records
    step = table.step[rows]
    nameless = np.flatnonzero((step == NO_STEP) & (timeline.attempts.of_row[rows] >= 0))
    if len(nameless) == 0 or records is None:
        return step
    step = step.copy()
    owner = timeline.attempts.of_row[rows[nameless]]
    for attempt in distinct(owner).tolist():
        low, high = records.bounds[attempt], records.bounds[attempt + 1]
        own = nameless[owner == attempt]
        before = np.searchsorted(records.time[low:high], table.time[rows[own]], "right") - 1
        known = before >= 0
        step[own[known]] = records.number[low:high][before[known]]
    return step


_NEVER = np.iinfo(np.int64).max
_STATES = {one.value: rank for rank, one in enumerate(SaveState, 1)}
_ENDED = 0
"""State for a line that shows that saving ended, but not whether it continued in the background."""
_BEGUN, _BLOCKING_DONE, _COMPLETE = (_STATES[one.value] for one in SaveState)
_OF_ORBAX = {"true": _COMPLETE, "1": _COMPLETE, "false": _BLOCKING_DONE, "0": _BLOCKING_DONE}
"""States for the values of `synchronous` of an Orbax line."""
_WAITED_KEY = "wait_for_prev"
"""Prefix of Orbax keys that show how long a save waited for the save before it."""


class Completion(ColumnCode):
    """Completion of a save, as far as the log shows it."""

    COMPLETE = 0
    UNFINISHED = 1
    UNKNOWN = 2


class JudgedSaves(Struct, frozen=True):
    """Saves in order of attempt and step: columns of n items. The lines of one step in one attempt are one save."""

    owner: Rows
    """The attempt, from 0; -1 before the first."""
    step: I64
    """Step; `NO_STEP` if no line shows it."""
    completion: Rows
    """Values of `Completion`."""
    begin: I64
    """Begin of its first line (ns)."""
    complete: I64
    """Time of completion (ns); if unknown, the end of its last line."""
    is_apart: Mask
    """True if its completion has a separate line, after the line of the part that blocks training."""

    def __len__(self) -> int:
        return len(self.owner)

    def take(self, chosen: Mask) -> JudgedSaves:
        """Return the chosen saves."""
        return JudgedSaves(*(getattr(self, name)[chosen] for name in self.__struct_fields__))

    def are(self, *completions: Completion) -> Mask:
        """Return, for each save, True if it has one of some completions."""
        return np.isin(self.completion, completions)


def judge_saves(timeline: Timeline) -> JudgedSaves:
    """Return all saves of a job with what the log shows about their completion.

    A save is complete if a line states it, if a later attempt restores it, or if a later save of its attempt waited
    for it. Otherwise it is unfinished if the end of its attempt cuts it, or if the log states completion for any save
    of the job; if the log states none, its completion is unknown. Reports, charts and advice ask, so a timeline keeps
    the answer, as it does for its cached properties.
    """
    known = vars(timeline)
    if "_judged_saves" not in known:
        known["_judged_saves"] = _judge(timeline)
    saves: JudgedSaves = known["_judged_saves"]
    return saves


def _judge(timeline: Timeline) -> JudgedSaves:
    lines = _lines_of_saves(timeline)
    first = np.flatnonzero(run_heads(lines.owner) | run_heads(lines.step) | (lines.step == NO_STEP))
    owner, step = lines.owner[first], lines.step[first]
    if len(first) == 0:
        return JudgedSaves(owner, step, owner, step, step, np.zeros(0, dtype=np.bool_))
    save = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(lines.owner))))
    states_it = _states_completion(lines, save) & ~lines.is_cut
    when = np.minimum.reduceat(np.where(states_it, lines.end, _NEVER), first)
    stated, cut = np.logical_or.reduceat(states_it, first), np.logical_or.reduceat(lines.is_cut, first)
    proved = stated | _restored_later(timeline, owner, step) | _waited_for(lines, first)
    any_stated = bool(states_it.any())
    unproved = np.where(cut | any_stated, Completion.UNFINISHED, Completion.UNKNOWN)
    blocks = ~lines.is_saved & (lines.is_interval | (lines.state == _BEGUN) | (lines.state == _BLOCKING_DONE))
    return JudgedSaves(
        owner, step, np.where(proved, Completion.COMPLETE, unproved), np.minimum.reduceat(lines.time, first),
        np.where(stated, when, np.maximum.reduceat(lines.end, first)),
        np.logical_or.reduceat(blocks, first) & np.logical_or.reduceat(lines.is_saved, first),
    )  # fmt: skip


class _SaveLines(Struct, frozen=True):
    """Lines of saves in order of attempt, step and time."""

    owner: Rows
    step: I64
    state: Rows
    """0, or values of `_STATES`."""
    time: I64
    end: I64
    is_saved: Mask
    """True for `Kind.SAVED`."""
    is_interval: Mask
    is_cut: Mask
    """True if no line ended it before its attempt ended, or before the time of the question."""
    has_waited: Mask
    """True if its save waited for the save before it."""


class _Facts(NamedTuple):
    """Facts in the detail of a save line."""

    state: int = _ENDED
    has_waited: bool = False


def _facts_of(detail: object) -> _Facts:
    pairs = [pair for pair in detail if isinstance(pair, tuple) and len(pair) == 2] if isinstance(detail, tuple) else []
    values = dict(pairs)
    if SAVE_STATE in values:
        return _Facts(_STATES[values[SAVE_STATE]])
    state = _OF_ORBAX.get(str(values.get("synchronous")).lower(), _ENDED)
    return _Facts(state, any(str(key).startswith(_WAITED_KEY) for key in values))


def _facts_of_lines(timeline: Timeline, rows: Rows) -> tuple[Rows, Mask]:
    """Return the state that each row's line names, and True if its save waited for the one before it."""
    details, detail = np.unique(timeline.table.detail[rows], return_inverse=True)
    facts = [_Facts() if code < 0 else _facts_of(timeline.table.details[code]) for code in details.tolist()]
    state, has_waited = np.array([one.state for one in facts], dtype=np.intp), [one.has_waited for one in facts]
    return state[detail], np.array(has_waited, dtype=np.bool_)[detail]


def left_open(timeline: Timeline, rows: Rows) -> Mask:
    """Return, for each row, True if it is the begin of a save that was still running when its attempt ended."""
    details = timeline.table.details
    used = distinct(timeline.table.detail[rows])
    some = [code for code in used[used >= 0].tolist() if details[code] == LEFT_OPEN_SAVE]
    return np.isin(timeline.table.detail[rows], some)


def _lines_of_saves(timeline: Timeline) -> _SaveLines:
    table, attempts = timeline.table, timeline.attempts
    rows = rows_of(table.kind, (Kind.SAVE, Kind.SAVED))
    owner, step = attempts.of_row[rows].astype(np.intp), steps_of_saves(timeline, rows)
    is_saved, is_interval = table.kind[rows] == Kind.SAVED, table.edge[rows] == Edge.INTERVAL
    state, has_waited = _facts_of_lines(timeline, rows)
    state = np.where(is_saved, _COMPLETE, state)
    following = np.append(attempts.begin, _NEVER)[owner + 1]
    is_cut = (table.end[rows] > following) | (table.end[rows] != timeline.ordered.table.end[rows])
    is_cut |= left_open(timeline, rows)
    step = _steps_of_completions(owner, step, is_saved & (table.step[rows] == NO_STEP))
    order = np.lexsort((table.time[rows], step, owner))
    ordered = rows[order]
    return _SaveLines(
        owner[order], step[order], state[order], table.time[ordered], table.end[ordered], is_saved[order],
        is_interval[order], is_cut[order], has_waited[order],
    )  # fmt: skip


def _steps_of_completions(owner: Rows, step: I64, is_nameless: Mask) -> I64:
    """Return the steps. A line about an earlier one gets the step of the newest save of its attempt before it."""
    if not is_nameless.any():
        return step
    before = np.maximum.accumulate(np.where(is_nameless, -1, np.arange(len(step))))
    known = is_nameless & (before >= 0) & (owner[before] == owner)
    return np.where(known, step[before], step)


def _states_completion(lines: _SaveLines, save: Rows) -> Mask:
    """Return, for each line, True if it states that its save is complete.

    A line that only shows that saving ended marks the end of the blocking part, if another line of its save or
    completions of other saves show that saves continue in the background.
    """
    in_background = np.zeros(int(save[-1]) + 1, dtype=np.bool_)
    in_background[save[(lines.state == _BEGUN) | (lines.state == _BLOCKING_DONE)]] = True
    ended = (lines.state == _ENDED) & ~in_background[save]
    intervals = ended & lines.is_interval & (lines.step != NO_STEP)
    if is_among(lines.step[intervals], np.sort(lines.step[lines.is_saved])).any():
        ended &= ~lines.is_interval
    return np.asarray(ended | (lines.state == _COMPLETE))


def _restored_later(timeline: Timeline, owner: Rows, step: I64) -> Mask:
    """Return, for each save, True if a later attempt restores it, before an attempt in between saves the same step
    again."""
    table, proved = timeline.table, np.zeros(len(owner), dtype=np.bool_)
    rows = np.flatnonzero(of_kind(table.kind, (Kind.RESTORE, Kind.LOAD)) & (table.step != NO_STEP))
    if len(rows) == 0:
        return proved
    # In one attempt a restore comes first: it restored what an earlier attempt had saved.
    turn = np.append(2 * owner + 1, 2 * timeline.attempts.of_row[rows].astype(np.intp))
    place = np.lexsort((turn, np.append(step, table.step[rows])))
    newest = np.maximum.accumulate(np.where(place < len(owner), place, -1))
    restores = np.flatnonzero(place >= len(owner))
    save, restored = newest[restores], table.step[rows[place[restores] - len(owner)]]
    proved[save[(save >= 0) & (step[save] == restored)]] = True
    return proved


def _waited_for(lines: _SaveLines, first: Rows) -> Mask:
    """Return, for each save, True if a later save of its attempt waited for it, as its line shows."""
    begin = np.minimum.reduceat(lines.time, first)
    waited, owner = np.logical_or.reduceat(lines.has_waited, first), lines.owner[first]
    newest = np.full(int(owner.max(initial=0)) + 2, np.iinfo(np.int64).min)
    np.maximum.at(newest, owner[waited], begin[waited])
    return np.asarray((owner >= 0) & (begin < newest[owner]))

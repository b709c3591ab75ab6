"""Segments (accounting §5): exactly one category at any time of the job window.

Kept time and dead time fill the unclaimed time. Overlaps: one sweep over all claims, and the cut of training that is
kept in part. The ledger contains the running total of every category, so that each window is a difference of two
lookups.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from goodput_cli.accounting.claims import wasted
from goodput_cli.accounting.columns import (
    SparseColumn,
    clipped,
    codes_in,
    is_sorted,
    positions,
    row_type,
    run_heads,
    search,
)
from goodput_cli.accounting.sweep import ClaimedTime, Claims, cells_inside, edges_of, join, sweep
from goodput_cli.accounting.training.kept import KeptTraining, TrainingOutcome, split_points, startup_of
from goodput_cli.accounting.training.spans import UsualStepTimes, usual_step_times_of
from goodput_cli.arrays import I64, Mask, Rows, alike, blocks, sums_by
from goodput_cli.events.schema import NO_STEP, NONE
from goodput_cli.vocabulary.categories import Category


class KeptAndDeadTime(Struct, frozen=True):
    """Intervals in time order, without overlap, of one category each; claims take precedence over them."""

    start: I64
    end: I64
    """ns."""
    category: NDArray[np.int8]
    """`Category`: recovery for dead time; training, start-up or stall for kept time."""
    span: NDArray[np.intp]
    """Row of the kept training; -1 for dead time."""


def kept_and_dead_time(
    kept_training: KeptTraining, first: int, stop: int, claimed_time: ClaimedTime, dead_time: tuple[I64, I64]
) -> KeptAndDeadTime:
    """Return the kept training of the rows first .. stop - 1, each cut into start-up, training and stall by its net
    time.

    dead_time: start and end (ns) of unclaimed time of dead attempts, which is recovery.
    """
    start, end = kept_training.start[first:stop], kept_training.end[first:stop]
    late, startup = kept_training.startup.part(first, stop)
    stalled, stall = kept_training.stall.part(first, stop)
    trained, stalls = start.copy(), end.copy()
    after_startup = claimed_time.net_clock(start[late]) + startup
    trained[late] = clipped(claimed_time.time_at_net(after_startup), start[late], end[late])
    before_stall = claimed_time.net_clock(end[stalled]) - stall
    stalls[stalled] = clipped(claimed_time.time_at_net(before_stall), trained[stalled], end[stalled])
    number = np.arange(first, stop)
    parts = (
        (trained, stalls, Category.PRODUCTIVE, np.where(kept_training.kept_steps[first:stop] > 0, number, -1)),
        (start[late], trained[late], Category.PROGRAM_STARTUP, number[late]),
        (stalls[stalled], end[stalled], Category.STALL, number[stalled]),
        (*dead_time, Category.RECOVERY, np.full(len(dead_time[0]), -1)),
    )
    begins, ends = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    category = np.concatenate([np.full(len(part[0]), part[2], dtype=np.int8) for part in parts])
    span = np.concatenate([part[3] for part in parts])
    some = (begins < ends) & ((span >= 0) | (category == Category.RECOVERY))
    if not some.all():
        begins, ends, category, span = begins[some], ends[some], category[some], span[some]
    if is_sorted(begins):
        return KeptAndDeadTime(begins, ends, category, span)
    order = np.argsort(begins, kind="stable")
    return KeptAndDeadTime(begins[order], ends[order], category[order], span[order])


NOBODY = -1
_FIRST_CLAIM = -2


class Segments(Struct, frozen=True):
    """s adjacent segments that cover the job window without overlap: columns of length s."""

    edges: I64
    """Begin of each, and end of the last one: int64 ns, length s + 1."""
    category: NDArray[np.int8]
    """`Category` of each."""
    holder: Rows
    """Owner of each: p for row p of `kept_training`, -2 - c for the claim at position c of `claims`, -1 for none."""
    slowdown: I64
    """Part (ns) of each that is training_slowdown though its category is productive. An amount, not an interval;
    negative = faster than the reference. The share of a kept span without net time is in the segment that contains
    it."""
    claims: Claims
    kept_training: KeptTraining

    def __len__(self) -> int:
        return len(self.category)

    @property
    def start(self) -> I64:
        """Begin of each (ns)."""
        return self.edges[:-1]

    @property
    def end(self) -> I64:
        """End of each (ns)."""
        return self.edges[1:]

    def label(self, segments: Rows) -> NDArray[np.int32]:
        """Return the label code of some segments; NONE without one."""
        return self._of_holder(segments, self.claims.label, None, NONE).astype(np.int32)

    def attempt(self, segments: Rows) -> NDArray[np.int32]:
        """Return the attempt of some segments; -1 without one."""
        return self._of_holder(segments, self.claims.attempt, self.kept_training.spans.attempt, -1).astype(np.int32)

    def first(self, segments: Rows) -> I64:
        """Return the first step of some segments; `NO_STEP` if they have no steps."""
        return self._of_holder(segments, self.claims.first, self.kept_training.spans.first, NO_STEP)

    def stop(self, segments: Rows) -> I64:
        """Return the end (exclusive) of the steps of some segments; `NO_STEP` if they have no steps."""
        return self._of_holder(segments, self.claims.stop, self.kept_training.spans.stop, NO_STEP)

    def evidence(self, segments: Rows) -> tuple[Rows, Rows]:
        """Return the rows of the events that bound some segments; -1 without one."""
        row = self._of_holder(segments, self.claims.row, self.kept_training.spans.row, -1)
        end_row = self._of_holder(segments, self.claims.end_row, None, -1)
        holder = self.holder[segments]
        training = np.flatnonzero(holder >= 0)
        end_row[training] = self.kept_training.spans.end_rows(holder[training])
        return row, end_row

    def _of_holder(self, segments: Rows, of_claim: NDArray[Any], of_span: NDArray[Any] | None, none: int) -> I64:
        holder = self.holder[segments]
        values = np.full(len(holder), none, dtype=np.int64)
        claimed = np.flatnonzero(holder < NOBODY)
        values[claimed] = of_claim[_FIRST_CLAIM - holder[claimed]]
        if of_span is not None:
            training = np.flatnonzero(holder >= 0)
            values[training] = of_span[holder[training]]
        return values


class _Cells(Struct, frozen=True):
    """Segments of a part of the time, up to the begin of the next part. below: begin (ns) of the kept or dead time of
    each, which separates two adjacent dead times; the lowest number without any."""

    start: I64
    category: NDArray[np.int8]
    holder: Rows
    below: I64

    def without_continued(self, before: _Cells | None) -> _Cells:
        """Return the segments without the first one if it continues the last one of the part before."""
        if before is None or not self._continues(before):
            return self
        return _Cells(self.start[1:], self.category[1:], self.holder[1:], self.below[1:])

    def _continues(self, before: _Cells) -> bool:
        pairs = ((getattr(self, name)[0], getattr(before, name)[-1]) for name in ("category", "holder", "below"))
        return all(one == other for one, other in pairs)


def partition(
    claims: Claims,
    claimed_time: ClaimedTime,
    kept_training: KeptTraining,
    dead_time: tuple[I64, I64],
    start: int,
    end: int,
    at_once: int = 1 << 14,
) -> Segments:
    """Cut [start, end) (ns) into segments. Claims come first, then kept training, then dead time, then `other`.

    dead_time: start and end (ns) of unclaimed time of dead attempts, in time order. at_once: number of training spans
    per part. Spans are in time order and do not overlap, so a log of any length is cut part by part, with the same
    result. Without parts, 5 x 10^6 step lines would take 986 MB instead of 631 MB.
    """
    parts: list[_Cells] = []
    done = start
    before: _Cells | None = None
    for first, stop in blocks(max(len(kept_training), 1), at_once):
        upto = end if stop >= len(kept_training) else min(max(int(kept_training.start[stop]), done), end)
        if done == upto:
            continue
        cells = _cells(
            claims, claimed_time, kept_training, (first, min(stop, len(kept_training))), dead_time, (done, upto)
        )
        parts.append(cells.without_continued(before))
        done, before = upto, cells
    edges = np.concatenate([*(part.start for part in parts), np.array([end])])
    category, holder = (np.concatenate([getattr(part, name) for part in parts]) for name in ("category", "holder"))
    none = np.broadcast_to(np.int64(0), (len(holder),))
    return _with_slowdown(Segments(edges, category, holder, none, claims, kept_training))


def _cells(
    claims: Claims,
    claimed_time: ClaimedTime,
    kept_training: KeptTraining,
    chosen: tuple[int, int],
    dead_time: tuple[I64, I64],
    window: tuple[int, int],
) -> _Cells:
    """Return the segments of a part of the time, in which the rows [first, stop) of the kept training begin."""
    start, end = window
    dead = _within(*dead_time, start, end)
    below = kept_and_dead_time(kept_training, *chosen, claimed_time, (dead_time[0][dead], dead_time[1][dead]))
    above = _within(claimed_time.start, claimed_time.end, start, end)
    begins = np.concatenate(([start], below.start, claimed_time.start[above]))
    ends = np.concatenate(([end], below.end, claimed_time.end[above]))
    edges, opens, closes = edges_of(begins, ends, start, end)
    cells, after_claims = edges[:-1], 1 + len(below.start)
    under = _holder(opens[1:after_claims], closes[1:after_claims], len(cells))
    over = _holder(opens[after_claims:], closes[after_claims:], len(cells))
    under[over >= 0] = -1
    claimed, unclaimed = np.flatnonzero(over >= 0), np.flatnonzero(under >= 0)
    claim, on = claimed_time.claim[above][over[claimed]], under[unclaimed]
    holder = np.full(len(cells), NOBODY, dtype=row_type(len(kept_training) + len(claims) + 2))
    holder[claimed], holder[unclaimed] = _FIRST_CLAIM - claim, below.span[on]
    category = np.full(len(cells), Category.OTHER, dtype=np.int8)
    category[claimed], category[unclaimed] = claims.category[claim], below.category[on]
    begin = np.full(len(cells), np.iinfo(np.int64).min)
    begin[unclaimed] = below.start[on]
    new = np.flatnonzero(run_heads(holder) | run_heads(category) | run_heads(begin))
    return _Cells(cells[new], category[new], holder[new], begin[new])


def _within(start: I64, end: I64, first: int, stop: int) -> slice:
    """Return the slice of sorted intervals without overlap that reach into [first, stop)."""
    return slice(int(np.searchsorted(end, first, "right")), int(np.searchsorted(start, stop, "left")))


def _holder(first: Rows, stop: Rows, size: int) -> NDArray[np.intp]:
    """Return the position of the interval that contains each of `size` cells; -1 without one. Each has first <= cell <
    stop."""
    holder = np.full(size, -1, dtype=np.intp)
    cells, of_interval = cells_inside(first, stop)
    holder[cells] = of_interval
    return holder


def _with_slowdown(segments: Segments) -> Segments:
    """Spread each span's slowdown evenly over its productive segments."""
    amount = segments.kept_training.slowdown
    return structs.replace(segments, slowdown=spread_over_training(segments, amount)) if amount.any() else segments


def spread_over_training(segments: Segments, amount: I64) -> I64:
    """Spread an amount (ns) of each row of the kept training evenly over its productive segments. The rounded shares
    add up to it exactly."""
    kept_training = segments.kept_training
    spread = np.zeros(len(segments), dtype=np.int64)
    trains = np.flatnonzero((segments.category == Category.PRODUCTIVE) & (segments.holder >= 0))
    owner = segments.holder[trains]
    length = segments.end[trains] - segments.start[trains]
    passed = np.cumsum(length)
    total = sums_by(owner, length, len(kept_training))
    fresh = run_heads(owner)
    base = np.repeat((passed - length)[fresh], np.diff(np.append(np.flatnonzero(fresh), len(owner))))
    share = amount[owner] * ((passed - base) / np.maximum(total[owner], 1))
    upto = np.rint(share).astype(np.int64)
    before = np.where(fresh, 0, np.append(0, upto[:-1])[: len(upto)])
    spread[trains] = upto - before
    homeless = np.flatnonzero((total == 0) & (amount != 0))
    if len(homeless):
        home = np.clip(np.searchsorted(segments.start, kept_training.start[homeless], side="right") - 1, 0, None)
        np.add.at(spread, home, amount[homeless])
    return spread


class Overlaps(Struct, frozen=True):
    """All claims resolved, and the resulting net time of training."""

    claims: Claims
    """Wasted training included."""
    claimed_time: ClaimedTime
    """Time intervals with the claim that gets them."""
    usual_step: UsualStepTimes
    """Usual step times by net time."""
    startup: SparseColumn
    """Program start-up (ns) at the beginning of each training span."""
    partial: NDArray[np.intp]
    """Training spans that are kept in part."""
    splits: I64
    """Times (ns) at which their kept parts end."""


def resolve_overlaps(
    others: Sequence[Claims], training: TrainingOutcome, may_start: Mask, window: tuple[int, int]
) -> Overlaps:
    """Assign all time of [start, end) (ns) to at most one claim.

    others: all claims except wasted training. may_start: True for attempts whose start-up may be inferred. The cut of a
    span kept in part depends on its net time: its wasted rest becomes one more claim, in a second sweep.
    """
    none = np.zeros(0, dtype=np.intp)
    claims = join((*others, wasted(training, none, none.astype(np.int64))))
    claimed_time = sweep(claims, *window)
    usual_step = usual_step_times_of(training.spans, claimed_time, training.sample, len(may_start))
    startup = startup_of(training, claimed_time, usual_step, may_start)
    partial, splits = split_points(training, startup, claimed_time)
    if len(partial):
        claims = join((*others, wasted(training, partial, splits)))
        claimed_time = sweep(claims, *window)
    return Overlaps(claims, claimed_time, usual_step, startup, partial, splits)


Key = tuple[Category, int]
"""A category, and the code of its label (-1 for categories without labels)."""
_SLOWED = frozenset({Category.PRODUCTIVE, Category.SLOWDOWN})


class Account(Struct, frozen=True):
    """One category: its segments in time order (positions), and its total (ns) at the end of each. A sentinel comes
    first: position -2, with a total of 0."""

    segments: Rows
    total: I64


class Ledger:
    """Running totals of the categories of one job's segments.

    Segments leave no gap, so the category with the most segments needs no account: it is the rest. In a log that is
    nearly all steps, its account would take an eighth of the file's size.
    """

    def __init__(self, segments: Segments) -> None:
        self._edges = segments.edges
        self.start = int(segments.edges[0])
        self.end = int(segments.edges[-1])
        self._accounts: dict[Key, Account] = {}
        number = {category: np.count_nonzero(segments.category == category) for category in codes_in(segments.category)}
        most = max(number, key=lambda category: (category != Category.CUSTOM, number[category]))
        self._rest = (Category(most), -1) if most != Category.CUSTOM else None
        for category in number:
            if self._rest == (category, -1):
                continue
            chosen = positions(segments.category == category)
            labelled = alike(segments.label(chosen)) if category == Category.CUSTOM else {-1: slice(None)}
            for label, places in labelled.items():
                rows = chosen[places]
                self._accounts[Category(category), label] = _account(rows, self._edges[rows + 1] - self._edges[rows])
        self._slowdown = account_of(segments.slowdown)
        self.has_slowdown = len(self._slowdown.segments) > 1

    def _total_before(self, account: Account, time: I64, segment: NDArray[np.intp]) -> I64:
        """Return the total (ns) of an account up to each time. Inside a segment the amount grows evenly, rounded half
        to even.

        segment: the segment that contains each time; -1 before the job, and the position after the last one from its
        end on.
        """
        place = search(account.segments, segment, side="right") - 1
        total = account.total[place]
        inside = np.flatnonzero(account.segments[place] == segment)
        begin, before = self._edges[segment[inside]], account.total[place[inside] - 1]
        passed = time[inside] - begin
        amount, length = total[inside] - before, self._edges[segment[inside] + 1] - begin
        part = np.rint(amount * (passed / length)).astype(np.int64)
        total[inside] = before + np.where(amount == length, passed, part)
        return total

    def _at(self, time: I64) -> NDArray[np.intp]:
        return search(self._edges, time, side="right") - 1

    @property
    def keys(self) -> tuple[Key, ...]:
        """Categories that occur, in display order."""
        keys = {*self._accounts, *([self._rest] if self._rest else [])}
        if self.has_slowdown:
            keys |= {(category, -1) for category in _SLOWED}
        return tuple(sorted(keys))

    def between(self, start: I64, end: I64, only: Collection[Category] | None = None) -> dict[Key, I64]:
        """Return the amount (ns) of each category in each window [start, end), both cut to the job window. For any
        windows the amounts add up to the length of the window, `excluded` included; windows that tile the job add up to
        it.

        only: the requested categories; None for all. Productive and `training_slowdown` always come together.
        """
        time = clipped(np.concatenate((start, end)), self.start, self.end)
        segment = self._at(time)

        categories = only if only is None or _SLOWED.isdisjoint(only) else _SLOWED.union(only)
        keys = [key for key in self.keys if categories is None or key[0] in categories]
        nothing = np.zeros(len(start), dtype=np.int64)
        needed = self._accounts if self._rest in keys else self._accounts.keys() & keys
        known = {key: self._within(self._accounts[key], time, segment) for key in needed}
        if self._rest in keys:
            known[self._rest] = time[len(start) :] - time[: len(start)] - sum(known.values(), nothing)
        amounts = {key: known.get(key, nothing) for key in keys}
        if self.has_slowdown and (Category.PRODUCTIVE, -1) in amounts:
            slow = self._within(self._slowdown, time, segment)
            amounts[Category.SLOWDOWN, -1] = slow
            amounts[Category.PRODUCTIVE, -1] = amounts[Category.PRODUCTIVE, -1] - slow
        return amounts

    def time_in(self, category: Category, start: I64, end: I64) -> I64:
        """Return the amount (ns) of a category without labels in each window [start, end), as in `between`."""
        return self.between(start, end, (category,)).get((category, -1), np.zeros(len(start), dtype=np.int64))

    def in_window(self, start: int, end: int, only: Collection[Category] | None = None) -> dict[Key, int]:
        """Return the amount (ns) of each category in one window [start, end), as in `between`."""
        return {key: int(ns[0]) for key, ns in self.between(np.array([start]), np.array([end]), only).items()}

    def of_account(self, account: Account, start: I64, end: I64) -> I64:
        """Return the amount (ns) of an account in each window [start, end), both cut to the job window."""
        time = clipped(np.concatenate((start, end)), self.start, self.end)
        return self._within(account, time, self._at(time))

    def _within(self, account: Account, time: I64, segment: NDArray[np.intp]) -> I64:
        """Return the amount (ns) of an account from each time of the first half to that of the second."""
        upto, half = self._total_before(account, time, segment), len(time) // 2
        return upto[half:] - upto[:half]

    def slowdown_before(self, time: I64) -> I64:
        """Return the total `training_slowdown` (ns) up to each time."""
        return self._total_before(self._slowdown, time, self._at(time))


def account_of(amount: I64) -> Account:
    """Return the account of an amount (ns) of each segment."""
    some = positions(amount != 0)
    return _account(some, amount[some])


def _account(segments: Rows, amount: I64) -> Account:
    return Account(np.append(segments.dtype.type(-2), segments), np.cumsum(np.append(0, amount)))

"""Segments: the cover above, kept training and unclaimed time of dead attempts below, and `other` for the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goodput_cli.events.schema import NO_STEP, NONE
from goodput_cli.timeline.categories import Category
from goodput_cli.timeline.columns import is_sorted, places, union
from goodput_cli.timeline.sweep import Claims, Cover
from goodput_cli.timeline.training import Pieces

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Ground:
    """What lies under the cover: intervals in time order that do not overlap, each of one category. piece: position
    of the kept piece it is of, -1 for unclaimed time of a dead attempt."""

    start: I64
    end: I64
    category: NDArray[np.int8]
    piece: NDArray[np.int32]


def ground(pieces: Pieces, cover: Cover, tails: Claims) -> Ground:
    """Kept pieces, each cut into startup, training and stall by its net time, and the tails of dead attempts."""
    late, stalled = np.flatnonzero(pieces.startup > 0), np.flatnonzero(pieces.stall > 0)
    trained, stalls = pieces.start.copy(), pieces.end.copy()
    after_startup = cover.net_clock(pieces.start[late]) + pieces.startup[late]
    trained[late] = np.clip(cover.when(after_startup), pieces.start[late], pieces.end[late])
    before_stall = cover.net_clock(pieces.start[stalled]) + pieces.net[stalled] - pieces.stall[stalled]
    stalls[stalled] = np.clip(cover.when(before_stall), trained[stalled], pieces.end[stalled])
    number = np.arange(len(pieces), dtype=np.int32)
    parts = (
        (trained, stalls, Category.PRODUCTIVE, number),
        (pieces.start[late], trained[late], Category.PROGRAM_STARTUP, number[late]),
        (stalls[stalled], pieces.end[stalled], Category.STALL, number[stalled]),
        (tails.start, tails.end, Category.RECOVERY, np.full(len(tails), -1, dtype=np.int32)),
    )
    start = np.concatenate([part[0] for part in parts])
    end = np.concatenate([part[1] for part in parts])
    category = np.concatenate([np.full(len(part[0]), part[2], dtype=np.int8) for part in parts])
    piece = np.concatenate([part[3] for part in parts])
    some = start < end
    if not some.all():
        start, end, category, piece = start[some], end[some], category[some], piece[some]
    if is_sorted(start):
        return Ground(start, end, category, piece)
    order = np.argsort(start, kind="stable")
    return Ground(start[order], end[order], category[order], piece[order])


@dataclass(frozen=True)
class Segments:
    """s segments that touch, do not overlap and cover the job window. Columns of length s:

    start, end: int64 ns. category: int8, `Category`. claim: position in `claims`, or -1. piece: position in `pieces`,
    or -1. slowdown: ns of the segment that are training_slowdown though its category is productive (an amount, not a
    place in time; negative = faster than the reference). Where a kept piece has no net time of its own, its share
    stands with the segment that covers it.
    """

    start: I64
    end: I64
    category: NDArray[np.int8]
    claim: NDArray[np.int32]
    piece: NDArray[np.int32]
    slowdown: I64
    claims: Claims
    pieces: Pieces

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def label(self) -> NDArray[np.int32]:
        """Code of the label, NONE where there is none."""
        return self._of_claim(self.claims.label, NONE).astype(np.int32)

    @cached_property
    def attempt(self) -> NDArray[np.int32]:
        """Attempt, or -1."""
        own = self._of_piece(self.pieces.stretches.attempt, -1)
        return np.where(self.claim >= 0, self._of_claim(self.claims.attempt, -1), own).astype(np.int32)

    @cached_property
    def first(self) -> I64:
        """First step of the segment, `NO_STEP` where it is not about steps."""
        own = self._of_piece(self.pieces.stretches.first, NO_STEP)
        return np.where(self.claim >= 0, self._of_claim(self.claims.first, NO_STEP), own)

    @cached_property
    def stop(self) -> I64:
        """Behind the last step of the segment, `NO_STEP` where it is not about steps."""
        own = self._of_piece(self.pieces.stretches.stop, NO_STEP)
        return np.where(self.claim >= 0, self._of_claim(self.claims.stop, NO_STEP), own)

    def evidence(self, segment: int) -> tuple[int, ...]:
        """Rows of the events that bound a segment."""
        if self.claim[segment] >= 0:
            rows = (self.claims.row[self.claim[segment]], self.claims.end_row[self.claim[segment]])
        elif self.piece[segment] >= 0:
            stretches = self.pieces.stretches
            rows = (stretches.row[self.piece[segment]], stretches.end_row[self.piece[segment]])
        else:
            rows = (-1, -1)
        return tuple(dict.fromkeys(int(row) for row in rows if row >= 0))

    def _of_claim(self, values: NDArray[np.generic], none: int) -> I64:
        return np.append(values.astype(np.int64), none)[self.claim]

    def _of_piece(self, values: NDArray[np.generic], none: int) -> I64:
        return np.append(values.astype(np.int64), none)[self.piece]


def partition(claims: Claims, cover: Cover, below: Ground, pieces: Pieces, start: int, end: int) -> Segments:
    """Cut [start, end) into segments: the cover first, then the ground, then `other`."""
    inside = [edges[(edges > start) & (edges < end)] for edges in (below.start, below.end, cover.start, cover.end)]
    edges = union(*inside, np.array([start, end]))
    cells = edges[:-1]
    over = _holder(cover.start, cover.end, cells)
    under = _holder(below.start, below.end, cells)
    claim = np.where(over >= 0, np.append(cover.claim, -1)[over], -1).astype(np.int32)
    under = np.where(over >= 0, -1, under)
    piece = np.append(below.piece, -1)[under].astype(np.int32)
    category = np.append(below.category, np.int8(Category.OTHER))[under].astype(np.int8)
    category[claim >= 0] = claims.category[claim[claim >= 0]]
    new = np.ones(len(cells), dtype=bool)
    new[1:] = (claim[1:] != claim[:-1]) | (piece[1:] != piece[:-1]) | (category[1:] != category[:-1])
    new[1:] |= under[1:] != under[:-1]
    first = np.flatnonzero(new)
    starts, ends = cells[first], np.append(cells[first][1:], end)
    none = np.broadcast_to(np.int64(0), (len(first),))
    made = Segments(starts, ends, category[first], claim[first], piece[first], none, claims, pieces)
    return _with_slowdown(made)


def _holder(start: I64, end: I64, time: I64) -> NDArray[np.intp]:
    """Position of the interval that holds each instant, -1 where none does."""
    place = places(start, time, side="right") - 1
    held = (place >= 0) & (np.append(end, 0)[place] > time)
    return np.where(held, place, -1)


def _with_slowdown(segments: Segments) -> Segments:
    """Spread each piece's slowdown evenly over its productive segments; what is rounded adds up to it exactly."""
    pieces = segments.pieces
    if not pieces.slowdown.any():
        return segments
    slowdown = np.zeros(len(segments), dtype=np.int64)
    trains = np.flatnonzero((segments.category == Category.PRODUCTIVE) & (segments.piece >= 0))
    owner = segments.piece[trains]
    length = segments.end[trains] - segments.start[trains]
    passed = np.cumsum(length)
    total = np.zeros(len(pieces), dtype=np.int64)
    np.add.at(total, owner, length)
    fresh = np.append(True, owner[1:] != owner[:-1])[: len(owner)]
    base = np.repeat((passed - length)[fresh], np.diff(np.append(np.flatnonzero(fresh), len(owner))))
    share = pieces.slowdown[owner] * ((passed - base) / np.maximum(total[owner], 1))
    upto = np.rint(share).astype(np.int64)
    before = np.where(fresh, 0, np.append(0, upto[:-1])[: len(upto)])
    slowdown[trains] = upto - before
    homeless = np.flatnonzero((total == 0) & (pieces.slowdown != 0))
    if len(homeless):
        home = np.clip(np.searchsorted(segments.start, pieces.start[homeless], side="right") - 1, 0, None)
        np.add.at(slowdown, home, pieces.slowdown[homeless])
    return replace(segments, slowdown=slowdown)

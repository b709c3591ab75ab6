"""How many accelerators a run has at each instant: from its allocations, else from its labels, else nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from goodput_cli.fleet.inventory.allocations import Allocation


@dataclass(frozen=True)
class Holding:
    """A piece [start, end) (ns) of a run's time with one number of accelerators."""

    start: int
    end: int
    accelerators: int | None
    """None where nobody knows."""
    held: bool | None
    """Whether an allocation covers it; None for a run without allocations, whose log says what is held."""


def holdings(start: int, end: int, allocations: Sequence[Allocation], otherwise: int | None) -> list[Holding]:
    """The pieces of [start, end) (ns), in order. allocations: of the run; those of one time add up. Where there is
    none, the nearest earlier number counts, and before the first one that."""
    inside = [one for one in allocations if one.start < end and one.end > start]
    if not inside:
        return [Holding(start, end, otherwise, None)]
    edges = sorted({start, end, *(edge for one in inside for edge in (one.start, one.end) if start < edge < end)})
    counts = [sum(one.accelerators for one in inside if one.start <= begin and one.end > begin) for begin in edges[:-1]]
    first = next(count for count in counts if count)
    pieces: list[Holding] = []
    for begin, stop, count in zip(edges[:-1], edges[1:], counts, strict=True):
        last = pieces[-1].accelerators if pieces else first
        pieces.append(Holding(begin, stop, count or last, count > 0))
    return pieces


def cut_at(pieces: Sequence[Holding], edges: Sequence[int]) -> list[Holding]:
    """The same pieces, cut at these instants too."""
    cut: list[Holding] = []
    for piece in pieces:
        inner = [edge for edge in edges if piece.start < edge < piece.end]
        bounds = [piece.start, *inner, piece.end]
        cut += [Holding(begin, stop, piece.accelerators, piece.held) for begin, stop in pairwise(bounds)]
    return cut


def accelerators_at(pieces: Sequence[Holding], instant: int) -> int | None:
    """How many the run has at an instant inside it; None where nobody knows."""
    return next((one.accelerators for one in pieces if one.start <= instant < one.end), None)

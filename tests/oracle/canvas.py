"""The window as a plain array of cells, painted rank by rank (accounting §5)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

RANK = {
    "excluded": 1, "elastic_reinit": 2, "elastic_up": 3, "elastic_down": 3, "queued": 4, "downtime": 5,
    "initial_save": 6, "wasted": 7, "restore": 8, "save": 9, "custom": 10, "tpu_init": 11, "prep": 12,
    "inferred_restore": 13, "data": 14, "lost_lines": 15, "kept": 16, "unclaimed": 17,
}  # fmt: skip
"""Ranks of claims. The first match wins, so the highest number is painted first; 18, `other`, is the bare canvas."""

Owner = str | int
"""Owner of a cell: a category, or the number of a training span."""


@dataclass(frozen=True)
class Claim:
    """`owner` claims [start, end), ns, with a rank of §5."""

    rank: int
    start: int
    end: int
    owner: Owner


class Canvas:
    """Cells of `tick` ns from t0 to t1, each with an owner; a claim that ends inside a cell divides it."""

    def __init__(self, t0: int, t1: int, tick: int) -> None:
        self.edges: list[int] = [*range(t0, t1, tick), t1]
        self.owners: list[Owner] = ["other"] * (len(self.edges) - 1)

    def cut(self, time: int) -> int:
        """Return the index of the cell that begins at `time`; split the cell that contains it if necessary."""
        time = min(max(time, self.edges[0]), self.edges[-1])
        place = bisect_left(self.edges, time)
        if self.edges[place] != time:
            self.edges.insert(place, time)
            self.owners.insert(place, self.owners[place - 1])
        return place

    def paint(self, claim: Claim) -> None:
        """Give the claim's cells to its owner, whatever their owner before."""
        if claim.end > claim.start:
            first = self.cut(claim.start)
            for cell in range(first, self.cut(claim.end)):
                self.owners[cell] = claim.owner

    def cells(self) -> Iterator[tuple[int, int, Owner]]:
        """Yield (start, end, owner) of every cell."""
        yield from zip(self.edges, self.edges[1:], self.owners, strict=False)

    def totals(self) -> dict[Owner, int]:
        """Return the ns of every owner."""
        sums: dict[Owner, int] = {}
        for start, end, owner in self.cells():
            sums[owner] = sums.get(owner, 0) + end - start
        return sums

    def time_after(self, owner: Owner, amount: int) -> int:
        """Return the time at which `owner` has had `amount` ns."""
        reached: int = self.edges[0]
        for start, end, holder in self.cells():
            if holder != owner:
                continue
            if amount <= end - start:
                return start + amount
            amount -= end - start
            reached = end
        return reached


def painted(claims: Iterable[Claim], t0: int, t1: int, tick: int) -> Canvas:
    """Paint claims from the lowest rank to the highest; inside a rank, later starts over earlier ones.

    Chosen: of two that started together the shorter is on top, then the one whose name comes first.
    """
    canvas = Canvas(t0, t1, tick)
    by_name = sorted(claims, key=lambda claim: str(claim.owner), reverse=True)
    for claim in sorted(by_name, key=lambda claim: (-claim.rank, claim.start, -claim.end)):
        canvas.paint(claim)
    return canvas

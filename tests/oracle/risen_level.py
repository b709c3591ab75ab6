"""Slow training that may be by design (accounting §6): it rose, stayed, and the reference comes from the log."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .attempts import median


@dataclass(frozen=True)
class KeptSpan:
    """A kept span, in time order: its steps and their net time (ns) without start-up. judged: True if its pace
    counts."""

    steps: Fraction
    time: Fraction
    judged: bool

    @property
    def pace(self) -> Fraction:
        return self.time / self.steps


def open_slowdown(spans: list[KeptSpan], reference: Fraction, alike: Fraction) -> Fraction:
    """Return the slowdown (ns) that is productive if the level that rose and stayed is by design."""
    judged = [place for place, span in enumerate(spans) if span.judged]
    tail = judged[len(judged) - tail_length([spans[place].pace > reference * alike for place in judged]) :]
    found = Fraction(0)
    for place, span in enumerate(spans):
        if not tail or place < tail[0] or not span.steps:
            continue
        at = max(number for number, other in enumerate(tail) if other <= place)
        level = median([spans[other].pace for other in tail[max(at - 2, 0) : at + 3]])
        assert level is not None
        counted = level if span.pace > level * alike else span.pace
        found += (counted - reference) * span.steps
    return found


def tail_length(slow: list[bool]) -> int:
    """Return how many of the last spans form the level. Read backward, it begins where slow spans outnumber fast ones
    most, before the fast ones catch up by log2 of the number of spans."""
    excess = most = length = 0
    for number, is_slow in enumerate(reversed(slow), start=1):
        excess += 1 if is_slow else -1
        if excess > most:
            most, length = excess, number
        if most - excess >= max(len(slow).bit_length() - 1, 1):
            break
    return length if most >= 2 and 3 * most >= length else 0

"""Which lines say that something began, was saved, was evaluated or ended, by their words and by where they stand."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from goodput_cli.events.mappings.draft import words

_MOSTLY = 0.8


@dataclass(frozen=True)
class Thing:
    """Similar lines or records."""

    at: int
    """Its number among all."""
    text: str
    """What is said, in small letters."""
    places: Sequence[int]
    """Where they stand in the log."""
    count: int
    took: bool
    """Whether one of its numbers is a duration."""


@dataclass(frozen=True)
class Chosen:
    """What lines or records say."""

    event: str
    at: int
    edge: str = ""
    uses_took: bool = False
    once: bool = False


@dataclass(frozen=True)
class Attempts:
    """Where in a log steps stand."""

    steps: Sequence[int]
    falls: frozenset[int]
    """The first steps of attempts but the first."""

    def begins(self, place: int) -> bool:
        """Whether the next step behind a place is the first of an attempt."""
        following = self._next(place)
        return following is not None and (following == self.steps[0] or following in self.falls)

    def ends(self, place: int) -> bool:
        """Whether the step before a place is the last of an attempt."""
        following = self._next(place)
        return bool(self.steps) and place > self.steps[0] and (following is None or following in self.falls)

    def inside(self, place: int) -> bool:
        """Whether a step stands before a place."""
        return bool(self.steps) and place > self.steps[0]

    def _next(self, place: int) -> int | None:
        at = bisect_right(self.steps, place)
        return self.steps[at] if at < len(self.steps) else None


def phases(things: Sequence[Thing], attempts: Attempts, timed: bool) -> list[Chosen]:
    """What lines say that are no steps. timed: whether lines have times, so that two of them are a begin and an end."""
    found: list[Chosen] = []
    left = list(things)
    for event, pattern, where in (
        ("terminated", words.TERMINATED, attempts.ends),
        ("finished", words.FINISHED, attempts.ends),
        ("crashed", words.CRASHED, attempts.ends),
        ("resume", words.RESUME, attempts.begins),
        ("save", words.SAVE, attempts.inside),
        ("eval", words.EVAL, attempts.inside),
        ("start", words.START, attempts.begins),
        ("init", words.INIT, attempts.begins),
        ("prep", words.PREP, attempts.begins),
    ):
        those = [one for one in left if re.search(pattern, one.text) and _mostly(one.places, where)]
        chosen = list(_chosen(event, those, timed, 1 + len(attempts.falls)))
        found += chosen
        used = {one.at for one in chosen}
        left = [one for one in left if one.at not in used]
    return found


def _chosen(event: str, those: Sequence[Thing], timed: bool, attempts: int) -> Iterable[Chosen]:
    if not those:
        return
    if event == "start":
        yield Chosen(event, min(those, key=lambda one: (one.count < attempts, one.places[0])).at, once=True)
    elif event in ("save", "eval"):
        yield from _phase(event, those, timed)
    elif event in ("init", "prep"):
        yield from (Chosen(event, one.at, uses_took=True) for one in those[:3] if one.took)
    elif event == "crashed":
        yield Chosen(event, min(those, key=lambda one: one.places[0]).at)
    else:
        yield Chosen(event, max(those, key=lambda one: one.count).at, uses_took=event == "restore")


def _phase(event: str, those: Sequence[Thing], timed: bool) -> Iterable[Chosen]:
    """One line with its duration; else two, that something begins and that it ended; else one."""
    long = [one for one in those if one.took]
    if long:
        yield Chosen(event, max(long, key=lambda one: one.count).at, uses_took=True)
        return
    begins = [one for one in those if words.BEGINS.search(one.text) and not words.ENDS.search(one.text)]
    ends = [one for one in those if words.ENDS.search(one.text)]
    if begins and ends and timed:
        first, last = (max(some, key=lambda one: one.count) for some in (begins, ends))
        if abs(first.count - last.count) <= 0.2 * max(first.count, last.count):
            yield Chosen(event, first.at, "begin")
            yield Chosen(event, last.at, "end")
            return
    yield Chosen(event, max(ends or begins or those, key=lambda one: one.count).at)


def _mostly(places: Sequence[int], where: Callable[[int], bool]) -> bool:
    return sum(map(where, places)) >= _MOSTLY * len(places)

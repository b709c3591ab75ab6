"""Lines that wait for a sink: bounded, in order, and what goes first when there is no more room."""

from __future__ import annotations

from collections import deque

from .drops import Drops
from .lines import LOADING, LOADING_START, SPARE, VITAL

FULL = "queue full"

TYPE_CHECKING = False
if TYPE_CHECKING:
    Item = tuple[int, int, int, bytes]
    """Number in the order of putting, µs, kind, line."""


class Queue:
    """At most `most_lines` and `most_bytes`. When it is full, the newest line of the least important kind goes; a line
    that is no more important than all that waits goes itself. Data loading goes in pairs: half of one would be read as
    a load that never ended.

    Not thread-safe: `Worker` holds a lock around it.
    """

    def __init__(self, most_lines: int, most_bytes: int) -> None:
        self.drops = Drops()
        self.number = 0
        self.lines = 0
        self.bytes = 0
        self._most_lines = most_lines
        self._most_bytes = most_bytes
        self._waiting: tuple[deque[Item], ...] = tuple(deque() for _ in range(VITAL + 1))
        self._ends_owed = 0
        """Loads whose start went: their end goes too."""

    def put(self, line: bytes, kind: int, us: int) -> bool:
        """Take a line; False if it went."""
        ends_load = kind == LOADING and LOADING_START not in line
        if ends_load and self._ends_owed:
            self._ends_owed -= 1
            self.drops.add(kind, us, FULL)
            return False
        while self.lines >= self._most_lines or self.bytes + len(line) > self._most_bytes:
            if not self._make_room(kind):
                if ends_load and not self._take_back_start():
                    break  # its start has been delivered: it must follow
                self.drops.add(kind, us, FULL)
                self._ends_owed += kind == LOADING and not ends_load
                return False
        self.add(line, kind, us)
        return True

    def add(self, line: bytes, kind: int, us: int) -> None:
        """Take a line, whatever room there is."""
        self._waiting[kind].append(self.item(line, kind, us))

    def item(self, line: bytes, kind: int, us: int) -> Item:
        """A line that waits outside of the queue and counts as one of it."""
        self.number += 1
        self.lines += 1
        self.bytes += len(line)
        return (self.number, us, kind, line)

    def oldest(self) -> int | None:
        """The number of the oldest line that was not taken; None: there is none."""
        return min((waiting[0][0] for waiting in self._waiting if waiting), default=None)

    def take(self, most_lines: int, most_bytes: int) -> list[Item]:
        """The oldest lines, at least one if there is any; they count as waiting until `done`."""
        taken: list[Item] = []
        size = 0
        while len(taken) < most_lines:
            waiting = min((one for one in self._waiting if one), key=lambda one: one[0][0], default=None)
            if waiting is None or (taken and size + len(waiting[0][3]) > most_bytes):
                break
            taken.append(waiting.popleft())
            size += len(taken[-1][3])
        return taken

    def take_drops(self) -> Drops | None:
        """What went since the last time; None: nothing."""
        if not self.drops.lines:
            return None
        drops, self.drops = self.drops, Drops()
        return drops

    def done(self, items: list[Item]) -> None:
        """These lines wait no longer."""
        self.lines -= len(items)
        self.bytes -= sum(len(item[3]) for item in items)

    def lose(self, items: list[Item], reason: str) -> None:
        """These lines wait no longer and were not delivered."""
        self.done(items)
        for _, us, kind, _ in items:
            self.drops.add(kind, us, reason)

    def _take_back_start(self) -> bool:
        """Let the newest start of a load go; False if none waits."""
        waiting = self._waiting[LOADING]
        for item in reversed(waiting):
            if LOADING_START in item[3]:
                waiting.remove(item)
                self.lose([item], FULL)
                return True
        return False

    def _make_room(self, kind: int) -> bool:
        return any(self._waiting[less] and self._let_go(less) for less in range(SPARE, kind))

    def _let_go(self, kind: int) -> bool:
        waiting = self._waiting[kind]
        if kind != LOADING:
            self.lose([waiting.pop()], FULL)
            return True
        going = [waiting.pop()]
        if LOADING_START in going[0][3]:
            self._ends_owed += 1
        else:
            missing = 1  # starts that belong to the ends in `going`
            while missing and waiting:
                going.append(waiting.pop())
                missing += -1 if LOADING_START in going[-1][3] else 1
            if missing:  # a start has been delivered already: its end must follow
                waiting.extend(reversed(going))
                return False
        self.lose(going, FULL)
        return True

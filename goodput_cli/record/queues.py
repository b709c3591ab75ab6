"""Lines that wait for a sink that may be slow or dead: one thread and one queue a sink, so that none delays another.

A queue is bounded and in order, and knows what goes first when there is no more room. Lines that a sink did not get
are counted, and said in the log as soon as it takes lines again. The thread is started with the first line.

Whatever the program calls may be called again from a signal handler on top of itself: locks are re-entrant, and the
thread is woken by a bare lock, whose release is one call into C.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from contextlib import suppress

from .lines import LOADING, LOADING_START, SPARE, STEP, VITAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    Item = tuple[int, int, int, bytes]
    """Number in the order of putting, µs, kind, line."""

    SayDropped = Callable[["Drops", str], bytes]
    """Makes the line that says it: of these drops, at the sink of this name."""

    class Delivery(Protocol):
        """A sink that may block and fail; only its own thread calls it.

        name: for people, and for the log. latency: seconds that a line may wait for company. batch_lines: how many
        are company enough. most_lines, most_bytes: of one `send`.
        """

        name: str
        batch_lines: int
        most_lines: int
        most_bytes: int

        def latency(self) -> float: ...

        def send(self, items: Sequence[Item]) -> Sequence[Item]:
            """Deliver; returns those that the sink refuses for good. Raises Unavailable; anything else counts as
            that."""
            ...

        def close(self) -> object: ...


class Drops:
    """How many lines, how many of them steps, and when (µs): the first and the last."""

    __slots__ = ("first", "last", "lines", "reason", "steps")

    def __init__(self) -> None:
        self.lines = self.steps = self.first = self.last = 0
        self.reason = ""

    def add(self, kind: int, us: int, reason: str) -> None:
        """One line more. The last reason counts."""
        self.first = min(self.first, us) if self.lines else us
        self.last = max(self.last, us)
        self.steps += kind == STEP
        self.reason = reason
        self.lines += 1

    def merge(self, other: Drops) -> None:
        """Those of another one too."""
        if other.lines:
            self.first = min(self.first, other.first) if self.lines else other.first
            self.last = max(self.last, other.last)
            self.lines += other.lines
            self.steps += other.steps
            self.reason = other.reason


FULL = "queue full"


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
            if not any(self._waiting[less] and self._let_go(less) for less in range(SPARE, kind)):
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


RETRY_SECONDS = (1.0, 60.0)
"""The first wait after a failure, and the longest."""
HOPELESS_SECONDS = 300.0
"""Between two tries of what cannot succeed until somebody changes something."""
HURRY_SECONDS = 0.25
"""Between two tries while somebody waits."""
SAY_AGAIN_SECONDS = 600.0
EXIT = "exit"
_TICK = 0.005


def pause_after(failures: int, first: float, longest: float) -> float:
    """Seconds to wait after so many failures in a row, of whatever is tried again: twice as long after each, up to the
    longest. At random up to a half is missing, so that a thousand jobs do not come back in the same moment. The
    program's `random` stays untouched."""
    missing = int.from_bytes(os.urandom(2), "big") / (2 * 0xFFFF)
    return min(longest, first * 2.0 ** min(failures - 1, 16)) * (1 - missing)


def pause_of_delivery(failures: int, *, lasting: bool) -> float:
    """The pause before what was not delivered is sent again. lasting: trying again soon is of no use."""
    return pause_after(failures, *((HOPELESS_SECONDS, HOPELESS_SECONDS) if lasting else RETRY_SECONDS))


class Unavailable(Exception):
    """A delivery failed; `lasting` if it will until somebody changes something. done: lines that got through first."""

    def __init__(self, what: str, lasting: bool = False, done: int = 0) -> None:
        super().__init__(what)
        self.lasting = lasting
        self.done = done

    @classmethod
    def of(cls, error: BaseException, done: int = 0) -> Unavailable:
        """What another's code raised. One that ends programs, as SystemExit does, is lasting: nobody waits for it."""
        return cls(type(error).__name__, not isinstance(error, Exception), done)


class Worker:
    """A sink behind a queue. delivery: a file, where it is one that may block. warn: takes sentences for the person who
    runs the program."""

    def __init__(
        self,
        delivery: Delivery,
        *,
        queue_lines: int,
        queue_bytes: int,
        say_dropped: SayDropped,
        warn: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = delivery.name
        self.delivery = delivery
        self._queue = Queue(queue_lines, queue_bytes)
        self._most = (min(delivery.most_lines, max(1, queue_lines // 2)), min(delivery.most_bytes, queue_bytes // 2))
        """Of one batch: what is being sent makes no room for lines that matter more."""
        self._enough = max(1, min(delivery.batch_lines, queue_lines // 2))
        self._say_dropped = say_dropped
        self._warn = warn
        self._now = now
        self._lock = threading.RLock()
        self._wake = threading.Lock()
        self._wake.acquire()
        self._thread: threading.Thread | None = None
        self._batch: list[Item] = []
        """What is being sent; it stays as it is until it is."""
        self._waits_since = 0.0
        self._wanted = 0
        """Lines up to this number are waited for."""
        self._stopping = False
        self._hopeless = False
        """Whether a last try has failed in a way that no further one mends."""
        self._problem = ""
        self._failures = 0
        self._tried_at = 0.0
        self._wait = 0.0
        self._said_full = float("-inf")

    def write(self, line: bytes, kind: int, us: int) -> None:
        """Put a line into the queue: never waits."""
        with self._lock:
            if self._stopping:
                return
            was_empty = not self._queue.lines
            taken = self._queue.put(line, kind, us)
            enough = self._queue.lines == self._enough
        if was_empty:
            self._waits_since = self._now()
        if was_empty or enough:
            self._awake()
        if not taken:
            self._say_full()

    def lost(self, kind: int, us: int, reason: str) -> None:
        """A line that cannot be written at all."""
        with self._lock:
            self._queue.drops.add(kind, us, reason)

    def flush(self, deadline: float) -> bool:
        """Wait until what was written before is delivered (or went); False when the deadline comes first."""
        self._wanted = self._queue.number
        if self._left():
            self._awake()
        while self._left():
            if self._now() >= deadline or not self._alive():
                return False
            time.sleep(_TICK)
        return True

    def close(self, deadline: float) -> Drops:
        """Deliver what can be delivered until then; returns what could not."""
        self.hurry()
        if self._alive():
            if self._thread is not None and self._thread is not threading.current_thread():
                self._thread.join(max(0.0, deadline - self._now()))
        else:  # nothing was written, or the interpreter is ending and starts no threads
            self._drain(deadline)
        with self._lock:
            left, self._batch = self._batch, []
            while left:
                self._queue.lose(left, EXIT)
                left = self._queue.take(self._queue.lines, self._queue.bytes)
            return self._queue.drops

    def hurry(self) -> None:
        """No line comes any more."""
        self._wanted = self._queue.number
        self._stopping = True
        self._wake_up()

    def _alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _left(self) -> bool:
        """Whether a line that is waited for has not been delivered."""
        with self._lock:
            oldest = [*(item[0] for item in self._batch[:1]), self._queue.oldest() or self._wanted + 1]
            return min(oldest) <= self._wanted

    def _awake(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=f"goodput-record {self.name}", daemon=True)
            self._thread = thread
            try:
                thread.start()
            except RuntimeError:  # the interpreter is ending; `close` delivers
                self._thread = None
        self._wake_up()

    def _wake_up(self) -> None:
        with suppress(RuntimeError):  # it is awake
            self._wake.release()

    def _run(self) -> None:
        while not (self._stopping and (self._hopeless or not self._queue.lines)):
            wait = self._patience()
            if wait > 0:
                self._wake.acquire(timeout=wait)
            else:
                self._deliver()
        self.delivery.close()

    def _drain(self, deadline: float) -> None:
        """What the thread does, in the thread that closes."""
        while self._queue.lines and not self._hopeless and self._now() < deadline:
            time.sleep(max(0.0, min(self._patience(), deadline - self._now())))
            self._deliver()
        self.delivery.close()

    def _patience(self) -> float:
        """Seconds until the next delivery."""
        if not self._queue.lines:
            return threading.TIMEOUT_MAX
        hurry = self._stopping or self._left()
        if self._problem:
            wait = min(self._wait, HURRY_SECONDS) if hurry else self._wait
            return self._tried_at + wait - self._now()
        if hurry or self._batch or self._queue.lines >= self._enough:
            return 0.0
        return self._waits_since + self.delivery.latency() - self._now()

    def _deliver(self) -> None:
        with self._lock:
            if not self._batch:
                self._batch = self._queue.take(*self._most)
            batch = self._batch
        if not batch:
            return
        done, refused, failure = self._send(batch)
        if failure is not None:
            self._failed(failure)
        with self._lock:
            if batch is not self._batch:  # it was given up meanwhile
                return
            self._queue.done(batch[:done])
            for _, us, kind, _ in refused:
                self._queue.drops.add(kind, us, "refused")
            self._batch = batch[done:]
            self._waits_since = self._now()
            if failure is None:
                self._recovered()

    def _send(self, batch: list[Item]) -> tuple[int, Sequence[Item], Unavailable | None]:
        """How many are done with, which of them were refused, and what went wrong."""
        try:
            return len(batch), self.delivery.send(batch), None
        except Unavailable as error:
            return error.done, (), error
        except BaseException as error:  # a sink's SystemExit must not end the program
            return 0, (), Unavailable.of(error)

    def _failed(self, failure: Unavailable) -> None:
        self._failures += 1
        self._wait = pause_of_delivery(self._failures, lasting=failure.lasting)
        self._tried_at = self._now()
        self._hopeless = self._stopping and failure.lasting
        if not self._problem:
            self._warn(f"{self.name}: {failure}; lines are kept and sent again later")
        self._problem = str(failure)

    def _recovered(self) -> None:
        """What went meanwhile is said before the next line."""
        self._problem, self._failures = "", 0
        drops = self._queue.drops
        if drops.lines:
            self._queue.drops = Drops()
            line = self._say_dropped(drops, self.name)
            self._batch = [self._queue.item(line, VITAL, drops.last), *self._batch]

    def _say_full(self) -> None:
        now = self._now()
        if now >= self._said_full + SAY_AGAIN_SECONDS:
            self._said_full = now
            self._warn(f"{self.name}: the queue is full; dropped lines are counted in the log")

"""Lines that wait for a sink, which may be slow or dead. Each sink has its own thread and queue, so that none delays
another.

A queue is bounded and in order, and drops the least important lines when it is full. Lines that a sink did not get are
counted, and recorded in the log as soon as it accepts lines again. The thread is started with the first line.

Every function that the program calls may be called again by a signal handler during the call. Locks are therefore
reentrant, and the thread is woken by a bare lock, whose release is one call into C.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from contextlib import suppress

from .lines import LOADING, LOADING_START, SPARE, STEP_LINE, VITAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    Item = tuple[int, int, int, bytes]
    """Sequence number, µs, kind, line."""

    SayDropped = Callable[["Drops", str], bytes]
    """Returns the line that reports these drops at the sink of this name."""

    class Delivery(Protocol):
        """A sink that may block and fail; only its own thread calls it.

        name: for people, and for the log. latency: seconds that a line may wait for a batch. batch_lines: the number of
        lines that is sent without waiting. most_lines, most_bytes: limits of one `send`.
        """

        name: str
        batch_lines: int
        most_lines: int
        most_bytes: int

        def latency(self) -> float: ...

        def send(self, items: Sequence[Item]) -> Sequence[Item]:
            """Deliver lines; return those that the sink rejects permanently. Raises Unavailable; any other exception
            counts as that."""
            ...

        def close(self) -> object: ...


class Drops:
    """Number of dropped lines and steps, and the first and last time (µs)."""

    __slots__ = ("first", "last", "lines", "reason", "steps")

    def __init__(self) -> None:
        self.lines = self.steps = self.first = self.last = 0
        self.reason = ""

    def add(self, kind: int, us: int, reason: str) -> None:
        """Add a line. The last reason is kept."""
        self.first = min(self.first, us) if self.lines else us
        self.last = max(self.last, us)
        self.steps += kind == STEP_LINE
        self.reason = reason
        self.lines += 1

    def merge(self, other: Drops) -> None:
        """Add the drops of another object."""
        if other.lines:
            self.first = min(self.first, other.first) if self.lines else other.first
            self.last = max(self.last, other.last)
            self.lines += other.lines
            self.steps += other.steps
            self.reason = other.reason


FULL = "queue full"


class Queue:
    """A queue of at most `most_lines` and `most_bytes`. When it is full, it drops the newest line of the least
    important kind, or the new line if no waiting line is less important. Lines of data loading are dropped in pairs,
    because a single one would look like a load that never ended.

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
        """Number of loads whose start was dropped: their end is dropped, too."""

    def put(self, line: bytes, kind: int, us: int) -> bool:
        """Add a line; return False if it was dropped."""
        ends_load = kind == LOADING and LOADING_START not in line
        if ends_load and self._ends_owed:
            self._ends_owed -= 1
            self.drops.add(kind, us, FULL)
            return False
        while self.lines >= self._most_lines or self.bytes + len(line) > self._most_bytes:
            if not any(self._waiting[less] and self._let_go(less) for less in range(SPARE, kind)):
                if ends_load and not self._take_back_start():
                    break  # its start has been delivered, so it must follow
                self.drops.add(kind, us, FULL)
                self._ends_owed += kind == LOADING and not ends_load
                return False
        self.add(line, kind, us)
        return True

    def add(self, line: bytes, kind: int, us: int) -> None:
        """Add a line, regardless of the limits."""
        self._waiting[kind].append(self.item(line, kind, us))

    def item(self, line: bytes, kind: int, us: int) -> Item:
        """Return a line that waits outside of the queue and counts as part of it."""
        self.number += 1
        self.lines += 1
        self.bytes += len(line)
        return (self.number, us, kind, line)

    def oldest(self) -> int | None:
        """Return the number of the oldest line that was not taken; None if there is none."""
        return min((waiting[0][0] for waiting in self._waiting if waiting), default=None)

    def take(self, most_lines: int, most_bytes: int) -> list[Item]:
        """Take the oldest lines, at least one if there is any; they count as waiting until `done`."""
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
        """Remove these lines from the waiting ones."""
        self.lines -= len(items)
        self.bytes -= sum(len(item[3]) for item in items)

    def lose(self, items: list[Item], reason: str) -> None:
        """Remove these lines from the waiting ones and count them as dropped."""
        self.done(items)
        for _, us, kind, _ in items:
            self.drops.add(kind, us, reason)

    def _take_back_start(self) -> bool:
        """Drop the newest start of a load; return False if none waits."""
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
            missing = 1  # starts of the ends in `going`
            while missing and waiting:
                going.append(waiting.pop())
                missing += -1 if LOADING_START in going[-1][3] else 1
            if missing:  # a start has been delivered already, so its end must follow
                waiting.extend(reversed(going))
                return False
        self.lose(going, FULL)
        return True


RETRY_SECONDS = (1.0, 60.0)
"""The first and the longest wait after a failure."""
HOPELESS_SECONDS = 300.0
"""Seconds between two attempts at a delivery that cannot succeed until a person changes something."""
HURRY_SECONDS = 0.25
"""Seconds between two attempts while a caller waits."""
SAY_AGAIN_SECONDS = 600.0
EXIT = "exit"
_TICK = 0.005


def pause_after(failures: int, first: float, longest: float) -> float:
    """Return the seconds to wait after consecutive failures: doubled each time, up to the maximum, minus a random part
    of up to a half, so that a thousand jobs do not retry at the same time. The state of the program's `random` is not
    used."""
    missing = int.from_bytes(os.urandom(2), "big") / (2 * 0xFFFF)
    return min(longest, first * 2.0 ** min(failures - 1, 16)) * (1 - missing)


def pause_of_delivery(failures: int, *, lasting: bool) -> float:
    """Return the pause before lines are sent again. lasting: True if an early retry is useless."""
    return pause_after(failures, *((HOPELESS_SECONDS, HOPELESS_SECONDS) if lasting else RETRY_SECONDS))


class UnavailableError(Exception):
    """Raised when a delivery failed; `lasting` if it will fail until a person changes something. done: lines delivered
    before that."""

    def __init__(self, what: str, lasting: bool = False, done: int = 0) -> None:
        super().__init__(what)
        self.lasting = lasting
        self.done = done

    @classmethod
    def of(cls, error: BaseException, done: int = 0) -> UnavailableError:
        """Return the exception for one of other code. An exception that ends programs, like SystemExit, is lasting: no
        caller waits for it."""
        return cls(type(error).__name__, not isinstance(error, Exception), done)


class Worker:
    """A sink with a queue. delivery: such as a file that may block. warn: prints messages for the user of the
    program."""

    def __init__(
        self,
        delivery: Delivery,
        *,
        queue_lines: int,
        queue_bytes: int,
        dropped_line: SayDropped,
        warn: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = delivery.name
        self.delivery = delivery
        self._queue = Queue(queue_lines, queue_bytes)
        self._most = (min(delivery.most_lines, max(1, queue_lines // 2)), min(delivery.most_bytes, queue_bytes // 2))
        """Maximum size of a batch: lines that are being sent cannot make room for more important ones."""
        self._enough = max(1, min(delivery.batch_lines, queue_lines // 2))
        self._dropped_line = dropped_line
        self._warn = warn
        self._now = now
        self._lock = threading.RLock()
        self._wake = threading.Lock()
        self._wake.acquire()
        self._thread: threading.Thread | None = None
        self._batch: list[Item] = []
        """The lines being sent; unchanged until they are sent."""
        self._waits_since = 0.0
        self._wanted = 0
        """A caller waits for lines up to this number."""
        self._stopping = False
        self._hopeless = False
        """True if a last attempt failed permanently."""
        self._problem = ""
        self._failures = 0
        self._tried_at = 0.0
        self._wait = 0.0
        self._said_full = float("-inf")

    def write(self, line: bytes, kind: int, us: int) -> None:
        """Add a line to the queue without waiting."""
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
            self._warn_full()

    def lost(self, kind: int, us: int, reason: str) -> None:
        """Count a line that cannot be written at all."""
        with self._lock:
            self._queue.drops.add(kind, us, reason)

    def flush(self, deadline: float) -> bool:
        """Wait until all earlier lines are delivered or dropped; return False if the deadline comes first."""
        self._wanted = self._queue.number
        if self._left():
            self._awake()
        while self._left():
            if self._now() >= deadline or not self._alive():
                return False
            time.sleep(_TICK)
        return True

    def close(self, deadline: float) -> Drops:
        """Deliver as much as possible until the deadline; return the dropped lines."""
        self.hurry()
        if self._alive():
            if self._thread is not None and self._thread is not threading.current_thread():
                self._thread.join(max(0.0, deadline - self._now()))
        else:  # no line was written, or the interpreter is ending and starts no threads
            self._drain(deadline)
        with self._lock:
            left, self._batch = self._batch, []
            while left:
                self._queue.lose(left, EXIT)
                left = self._queue.take(self._queue.lines, self._queue.bytes)
            return self._queue.drops

    def hurry(self) -> None:
        """Deliver at once: no more lines will come."""
        self._wanted = self._queue.number
        self._stopping = True
        self._wake_up()

    def _alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _left(self) -> bool:
        """Return True if a line that a caller waits for has not been delivered."""
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
        with suppress(RuntimeError):  # it is already awake
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
        """Deliver in the thread that closes, as the worker's thread does."""
        while self._queue.lines and not self._hopeless and self._now() < deadline:
            time.sleep(max(0.0, min(self._patience(), deadline - self._now())))
            self._deliver()
        self.delivery.close()

    def _patience(self) -> float:
        """Return the seconds until the next delivery."""
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
            if batch is not self._batch:  # it was given up in the meantime
                return
            self._queue.done(batch[:done])
            for _, us, kind, _ in refused:
                self._queue.drops.add(kind, us, "refused")
            self._batch = batch[done:]
            self._waits_since = self._now()
            if failure is None:
                self._recovered()

    def _send(self, batch: list[Item]) -> tuple[int, Sequence[Item], UnavailableError | None]:
        """Send a batch; return how many lines are done, which of them were rejected, and the error."""
        try:
            return len(batch), self.delivery.send(batch), None
        except UnavailableError as error:
            return error.done, (), error
        except BaseException as error:  # a sink's SystemExit must not end the program
            return 0, (), UnavailableError.of(error)

    def _failed(self, failure: UnavailableError) -> None:
        self._failures += 1
        self._wait = pause_of_delivery(self._failures, lasting=failure.lasting)
        self._tried_at = self._now()
        self._hopeless = self._stopping and failure.lasting
        if not self._problem:
            self._warn(f"{self.name}: {failure}; lines are kept and sent again later")
        self._problem = str(failure)

    def _recovered(self) -> None:
        """Report the dropped lines before the next line."""
        self._problem, self._failures = "", 0
        drops = self._queue.drops
        if drops.lines:
            self._queue.drops = Drops()
            line = self._dropped_line(drops, self.name)
            self._batch = [self._queue.item(line, VITAL, drops.last), *self._batch]

    def _warn_full(self) -> None:
        now = self._now()
        if now >= self._said_full + SAY_AGAIN_SECONDS:
            self._said_full = now
            self._warn(f"{self.name}: the queue is full; dropped lines are counted in the log")

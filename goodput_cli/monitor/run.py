"""The life of a monitor: look, account, publish, until the job has ended or somebody says so.

When to stop before the job ends: SIGTERM, and a parent that is gone.

A thread for each target: one that hangs or fails delays neither the look at the log nor another target.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType

from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.rolling import last_windows
from goodput_cli.api.watch import Watched
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import GoodputError, NotEnoughData, SourceError, ThresholdNotMet
from goodput_cli.monitor.plan import Plan
from goodput_cli.monitor.snapshot import Snapshot
from goodput_cli.monitor.targets.base import Health, Target, TargetFailed

RETRY_SECONDS = (1.0, 60.0)
"""First and longest wait between two tries."""
LASTING_SECONDS = 300.0
"""Wait where trying again soon is of no use."""
HURRY_SECONDS = 0.5
"""Longest wait for the last update."""
SAY_AGAIN_SECONDS = 600.0


class TargetWorker:
    """A target and the newest update that it has not taken. Older ones are let go: values are of the whole job."""

    def __init__(self, name: str, target: Target, health: Health, say: Callable[[str], None]) -> None:
        self.name = name
        self._target = target
        self._health = health
        self._say = say
        self._change = threading.Condition()
        self._waiting: Snapshot | None = None
        self._final = False
        self._delivered = self._closed = False
        self._failures = 0
        self._retry_at = 0.0
        self._said_at = float("-inf")
        health.expect(name)
        threading.Thread(target=self._run, name=f"publish {name}", daemon=True).start()

    def offer(self, snapshot: Snapshot, *, final: bool = False) -> None:
        """Publish this update as soon as the target can take it; `final`: it is the last one."""
        with self._change:
            self._waiting, self._final = snapshot, final
            if final:
                self._retry_at = 0.0
            self._change.notify_all()

    def finish(self, deadline: float) -> bool:
        """Wait until the last update was taken; False if it was not before `deadline` (monotonic, s)."""
        with self._change:
            self._change.wait_for(lambda: self._delivered, max(0.0, deadline - time.monotonic()))
            return self._delivered

    def _run(self) -> None:
        while not (self._delivered or self._closed):
            self._try()  # in a call of its own: no update is held while the next one is waited for

    def _try(self) -> None:
        """Publish the newest update, once it is time for it."""
        snapshot, final = self._next()
        if snapshot is None:
            return
        failure = self._publish(snapshot, final)
        with self._change:
            if failure is not None:
                self._health.failed(self.name)
                self._failed(failure)
                return
            self._health.published(self.name)
            self._failures = 0
            if self._waiting is snapshot:
                self._waiting = None
                self._delivered = final
                self._change.notify_all()

    def _next(self) -> tuple[Snapshot | None, bool]:
        """The newest update, once it is time for it; None once this is closed."""
        with self._change:
            while not self._closed and (self._waiting is None or time.monotonic() < self._retry_at):
                self._change.wait(None if self._waiting is None else self._retry_at - time.monotonic())
            return None if self._closed else self._waiting, self._final

    def _publish(self, snapshot: Snapshot, final: bool) -> TargetFailed | None:
        try:
            self._target.publish(snapshot, final)
            return None
        except TargetFailed as failure:
            return failure
        except GoodputError as error:
            return TargetFailed(str(error), lasting=True)
        except Exception as error:  # no target may end the others
            return TargetFailed(f"{type(error).__name__}: {error}")

    def _failed(self, failure: TargetFailed) -> None:
        first, longest = RETRY_SECONDS
        wait = LASTING_SECONDS if failure.lasting else min(longest, first * 2 ** min(self._failures, 16))
        wait = max(wait, failure.wait or 0.0)
        self._failures += 1
        self._retry_at = time.monotonic() + (min(wait, HURRY_SECONDS) if self._final else wait)
        if time.monotonic() >= self._said_at + SAY_AGAIN_SECONDS:
            self._said_at = time.monotonic()
            self._say(f"{self.name}: {failure} (trying again)")

    def close(self) -> None:
        """Close the target, unless a delivery is still hanging in it: then it ends with the process."""
        with self._change:
            idle = self._delivered or self._waiting is None
            self._closed = True
            self._change.notify_all()
        if idle:
            self._target.close()


def finish_all(workers: Sequence[TargetWorker], snapshot: Snapshot, grace: float) -> list[str]:
    """Give every target the last update, all at once; the names of those that did not take it within `grace` s."""
    for worker in workers:
        worker.offer(snapshot, final=True)
    deadline = time.monotonic() + grace
    return [worker.name for worker in workers if not worker.finish(deadline)]


PARENT_SECONDS = 2.0
"""How often to see whether the parent lives."""


def _no() -> None:
    """Nobody pressed Ctrl-C."""


class Stop:
    """Waits between updates, and is woken by SIGTERM. parent: the process that the monitor belongs to, where it does.

    The handler only takes note, as it may run inside anything: an update that is under way is finished, but the process
    ends twice `grace` seconds after the signal at the latest. interrupted: called before each wait; what it raises ends
    the monitor, as Ctrl-C does.
    """

    def __init__(self, parent: int | None = None, grace: float = 10.0, interrupted: Callable[[], None] = _no) -> None:
        self.signalled = False
        self._parent = parent
        self._interrupted = interrupted
        self._limit = threading.Timer(2 * grace, _too_late)
        self._limit.daemon = True
        self._reader, self._writer = os.pipe()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle SIGTERM; afterwards it does what it did before."""
        if threading.current_thread() is not threading.main_thread():
            yield  # Python handles signals in the main thread alone
            return
        before = signal.signal(signal.SIGTERM, self._terminate)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # one that came while this was starting waits
        try:
            yield
        finally:
            self._limit.cancel()
            signal.signal(signal.SIGTERM, before)

    @property
    def wanted(self) -> bool:
        """Whether to make the last update now."""
        return self.signalled or self._orphaned()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until there is a reason to stop."""
        self._interrupted()
        end = time.monotonic() + seconds
        while not self.wanted and (left := end - time.monotonic()) > 0:
            select.select([self._reader], [], [], left if self._parent is None else min(left, PARENT_SECONDS))

    def _orphaned(self) -> bool:
        """Asked for, and not told by the system (PR_SET_PDEATHSIG): that fires when a thread ends."""
        return self._parent is not None and os.getppid() != self._parent

    def _terminate(self, _number: int, _frame: FrameType | None) -> None:
        if not self.signalled:
            self.signalled = True
            self._limit.start()
        with suppress(OSError):
            os.write(self._writer, b"x")


def _too_late() -> None:
    """End the process at once: a source that never answers cannot be interrupted in another way."""
    with suppress(OSError):
        os.write(2, b"Error: the last update took too long; it was left.\n")
    os._exit(1)


class Monitor:
    """Follows a log and hands each analysis to all targets.

    watch: opens the log; it raises SourceError as long as there is none. tell: takes each analysis, for what a person
    should know. say: takes sentences.
    """

    def __init__(
        self,
        watch: Callable[[], Watched],
        workers: Sequence[TargetWorker],
        plan: Plan,
        *,
        health: Health,
        stop: Stop,
        tell: Callable[[Sequence[Diagnostic]], None],
        say: Callable[[str], None],
    ) -> None:
        self._watch = watch
        self._watched: Watched | None = None
        self._workers = workers
        self._plan = plan
        self._health = health
        self._stop = stop
        self._tell = tell
        self._say = say
        self._said: set[str] = set()
        self._began = time.monotonic()
        self._quiet_since: float | None = None
        """Since when no line has come; a line that was there before counts by its own time."""
        self._published = 0

    def run(self) -> tuple[int, Analysis | None]:
        """Publish until the end; the exit code, and the last analysis. Raises NotEnoughData where there was none."""
        while True:
            began = time.monotonic()
            wait, last = self._update()
            if last is not None:
                return self._finish(last)
            spent = time.monotonic() - began
            self._stop.wait(max(wait - spent, spent))
            if self._stop.wanted and self._quiet_since is None and self._look_once_more() is None:
                raise NotEnoughData("the monitor was ended before there was an event of the job")

    def _update(self) -> tuple[float, Analysis | None]:
        """Look, account and publish: the seconds until the next update, and the analysis that is the last one."""
        changed = self._look()
        analysis = self._analysis(time.time_ns())
        if analysis is None:
            self._give_up_waiting()
        else:
            self._note(analysis, changed)
            if self._stop.wanted or self._is_last_update():
                return 0.0, analysis
            if self._has_ended(analysis):
                return 0.0, self._analysis(None) or analysis
            self._publish(analysis)
        return self._until_next(analysis), None

    def close(self) -> None:
        """Let go of the log and of the targets."""
        if self._watched is not None:
            self._watched.close()
        for worker in self._workers:
            worker.close()

    def _look(self) -> bool:
        try:
            self._watched = self._watched or self._watch()
            changed = self._watched.look()
        except SourceError as error:
            if self._quiet_since is not None or self._published:
                raise
            self._say_once(f"Waiting: {error}")
            self._health.looked(failing=True)
            return False
        self._health.looked(self._watched.failing)
        return changed

    def _look_once_more(self) -> Analysis | None:
        self._look()
        return self._analysis(time.time_ns())

    def _analysis(self, now_ns: int | None) -> Analysis | None:
        """The job as it is known at a moment, or as of its last event (None)."""
        if self._watched is None:
            return None
        try:
            analysis = self._watched.analysis(now_ns, self._plan.thresholds)
        except NotEnoughData as error:
            self._say_once(f"Waiting: {error}")
            return None
        if not self._plan.windows:
            return analysis
        return replace(analysis, rolling=last_windows(analysis.timeline, analysis.window.end_ns, self._plan.windows))

    def _note(self, analysis: Analysis, changed: bool) -> None:
        """Since when nothing has come, by a clock that nobody sets; and what there is to say."""
        now = time.monotonic()
        if self._quiet_since is None:
            age = (time.time_ns() - int(analysis.table.end.max())) / 1e9
            self._quiet_since = now - max(age, 0.0)
        elif changed:
            self._quiet_since = now
        self._tell(analysis.diagnostics)

    def _quiet(self) -> float:
        return 0.0 if self._quiet_since is None else time.monotonic() - self._quiet_since

    def _has_ended(self, analysis: Analysis) -> bool:
        plan = self._plan
        if plan.idle_end is not None and self._quiet() >= plan.idle_end:
            return True
        return not plan.forever and analysis.job.ending == "clean" and self._quiet() >= plan.settle

    def _is_last_update(self) -> bool:
        return self._plan.updates is not None and self._published + 1 >= self._plan.updates

    def _until_next(self, analysis: Analysis | None) -> float:
        """Seconds until the next look: sooner where the monitor may end before."""
        plan, ends = self._plan, [self._plan.interval]
        if analysis is None:
            ends.append(min(5.0, self._began + plan.wait - time.monotonic()))
        else:
            if plan.idle_end is not None:
                ends.append(plan.idle_end - self._quiet())
            if not plan.forever and analysis.job.ending == "clean":
                ends.append(plan.settle - self._quiet())
        return max(min(ends), 0.05)

    def _give_up_waiting(self) -> None:
        if time.monotonic() - self._began >= self._plan.wait:
            raise NotEnoughData(f"no event of the job came within {self._plan.wait:g} s (--wait)")

    def _publish(self, analysis: Analysis) -> None:
        snapshot = self._snapshot(analysis)
        for worker in self._workers:
            worker.offer(snapshot)
        self._published += 1

    def _finish(self, analysis: Analysis) -> tuple[int, Analysis]:
        """Publish the last update, and judge it."""
        self._published += 1
        left = finish_all(self._workers, self._snapshot(analysis), self._plan.grace)
        for name in left:
            self._say(f"{name}: did not take the last update within {self._plan.grace:g} s")
        if left or (self._watched is not None and self._watched.failing):
            return GoodputError.exit_code, analysis
        binding = [threshold.met for threshold in analysis.thresholds if threshold.fails]
        if True in binding:
            return ThresholdNotMet.exit_code, analysis
        return (NotEnoughData.exit_code if None in binding else 0), analysis

    def _snapshot(self, analysis: Analysis) -> Snapshot:
        whole = not self._plan.whole_job or _begins_with_the_job(analysis)
        if not whole:
            missing = Diagnostic.of(
                "earlier_attempts_missing",
                "the log begins above step 0, so that nothing of the whole job is published; name the place of the "
                "earlier attempts with --history",
            )
            analysis = replace(analysis, diagnostics=(*analysis.diagnostics, missing))
            self._tell([missing])
        return Snapshot(analysis, time.time_ns(), self._plan.ideal_step_time, whole)

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._say(sentence)


def _begins_with_the_job(analysis: Analysis) -> bool:
    """Whether the first step of the log is the first one of the job, or none is there yet."""
    records = analysis.timeline.records
    return records is None or len(records.number) == 0 or int(records.number[0]) <= 1

"""The loop of a monitor: read, analyze and publish, until every job has ended or the user stops it.

It also stops after SIGTERM, and when its parent process is gone.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import FrameType

from goodput_cli.analysis.account import JobEventSummary, jobs_seen, no_job
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.rolling import last_windows
from goodput_cli.api.options import Plan
from goodput_cli.api.watch import WatchedLog
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import GoodputError, NeedsMapping, NotEnoughData, SourceError, ThresholdNotMet, code_of_gates
from goodput_cli.events.schema import EventLog
from goodput_cli.monitor.snapshot import Snapshot, Update, job_labels
from goodput_cli.monitor.targets.base import Health, TargetWorker, finish_all
from goodput_cli.vocabulary.text import shorten

PARENT_SECONDS = 2.0
"""Interval of checks whether the parent is alive."""


class Stop:
    """Wait between updates, which SIGTERM interrupts. parent: the process that the monitor belongs to, if any.

    The handler only sets a flag, because it may run anywhere. A running update is finished, but the process ends at the
    latest twice `grace` seconds after the signal. interrupted: called before each wait; an exception from it ends the
    monitor, like Ctrl-C.
    """

    def __init__(
        self, parent: int | None = None, grace: float = 10.0, interrupted: Callable[[], None] = lambda: None
    ) -> None:
        self.signalled = False
        self._parent = parent
        self._interrupted = interrupted
        self._limit = threading.Timer(2 * grace, _too_late)
        self._limit.daemon = True
        self._reader, self._writer = os.pipe()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle SIGTERM in the `with` block; restore the previous handler afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield  # Python handles signals in the main thread only
            return
        before = signal.signal(signal.SIGTERM, self._terminate)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # a signal during start-up has waited until now
        try:
            yield
        finally:
            self._limit.cancel()
            signal.signal(signal.SIGTERM, before)

    @property
    def wanted(self) -> bool:
        """Return True if the last update should be made now."""
        # polled, because a signal of the system (PR_SET_PDEATHSIG) comes when a thread ends
        orphaned = self._parent is not None and os.getppid() != self._parent
        return self.signalled or orphaned

    def wait(self, seconds: float) -> None:
        """Wait for the given time, or until there is a reason to stop."""
        self._interrupted()
        end = time.monotonic() + seconds
        while not self.wanted and (left := end - time.monotonic()) > 0:
            select.select([self._reader], [], [], left if self._parent is None else min(left, PARENT_SECONDS))

    def _terminate(self, _number: int, _frame: FrameType | None) -> None:
        if not self.signalled:
            self.signalled = True
            self._limit.start()
        with suppress(OSError):
            os.write(self._writer, b"x")


def _too_late() -> None:
    """End the process at once: a source that never answers cannot be interrupted in another way."""
    with suppress(OSError):
        os.write(2, b"error: the last update took too long; it was left\n")
    os._exit(1)


MOST_JOBS = 100
"""Maximum number of jobs followed at a time, so that many names in a log cannot make a monitor slow."""
_MOST_SAID = 1000
_LONGEST_NAME = 60


@dataclass
class _FollowedJob:
    """State of a job between two polls."""

    seen: JobEventSummary
    quiet_since: float
    """Time since which no line of it has come (monotonic, s); earlier lines count by their own time."""
    analysis: Analysis | None = None
    """From the last poll; None if the log is not sufficient yet."""
    ended: bool = False

    @property
    def quiet(self) -> float:
        """Return for how long no line of it has come, s."""
        return time.monotonic() - self.quiet_since


class Monitor:
    """Monitor that follows the jobs of some logs separately, and passes their analyses to all targets.

    watch: opens the logs; it raises SourceError as long as there is none. names: globs; only jobs with matching names,
    all without globs. tell: called with the diagnostics of each poll. say: called with status messages.
    """

    def __init__(
        self,
        watch: Callable[[], WatchedLog],
        workers: Sequence[TargetWorker],
        plan: Plan,
        *,
        names: Sequence[str] = (),
        health: Health,
        stop: Stop,
        tell: Callable[[Sequence[Diagnostic]], None],
        say: Callable[[str], None],
    ) -> None:
        self._watch = watch
        self._watched: WatchedLog | None = None
        self._workers = workers
        self._plan = plan
        self._names = names
        self._health = health
        self._stop = stop
        self._tell = tell
        self._say = say
        self._said: set[str] = set()
        self._began = time.monotonic()
        self._jobs: dict[str, _FollowedJob] = {}
        self._let_go: dict[str, JobEventSummary] = {}
        """Jobs that ended long ago, in their last state: with new lines, they are followed again."""
        self._codes: set[int] = set()
        """Exit codes of jobs that are no longer followed."""
        self._left_out = False
        """True if a job could not be accounted for in the last poll."""
        self._published = 0

    def run(self) -> tuple[int, Sequence[Analysis]]:
        """Publish until the end; return the exit code, and the last analyses. Raises NotEnoughData without any."""
        while True:
            began = time.monotonic()
            wait, last = self._update()
            if last:
                return self._finish(last)
            spent = time.monotonic() - began
            self._stop.wait(max(wait - spent, spent))
            if self._stop.wanted and not self._jobs and not self.account():
                raise NotEnoughData("the monitor was stopped before the job logged an event")

    def _update(self) -> tuple[float, list[Analysis]]:
        """Read, analyze and publish; return the seconds until the next update, and the analyses if they are the last
        ones."""
        analyses = self.account()
        if not analyses:
            if time.monotonic() - self._began >= self._plan.wait:
                raise NotEnoughData(f"the job logged no event within {self._plan.wait:g} s (--wait)")
            return self._seconds_to_next_poll(), []
        if self._stop.wanted or self._published + 1 == self._plan.updates or self._all_ended():
            return 0.0, analyses
        update = self.snapshots(analyses)
        for worker in self._workers:
            worker.offer(update)
        self._published += 1
        return self._seconds_to_next_poll(), []

    def close(self) -> None:
        """Close the log and the targets."""
        if self._watched is not None:
            self._watched.close()
        for worker in self._workers:
            worker.close()

    def _look(self) -> bool:
        """Read new lines; return True if there were any."""
        try:
            self._watched = self._watched or self._watch()
            changed = self._watched.look()
        except SourceError as error:
            self._show_once(f"Waiting: {error}")
            self._health.looked(failing=True)
            return False
        self._health.looked(self._watched.failing or self._left_out)
        return changed

    def account(self) -> list[Analysis]:
        """Read new lines, and return the analyses of all followed jobs. Jobs that ended long ago are dropped if there
        are others. Raises the error if all jobs failed."""
        changed = self._look()
        if self._watched is None:
            return []
        log = self._watched.log()
        seen = jobs_seen(log, self._names)
        self._record_changes(seen, changed)
        while True:
            waiting = self._follow_new_jobs(seen)
            self._account_for_each(log)
            if not (self._drop_old_jobs(waiting) and waiting):
                break
        if not seen:
            waits = no_job(log, self._names)
            if isinstance(waits, NeedsMapping):
                raise waits
            self._show_once(f"Waiting: {waits}")
        if waiting and len(self._jobs) >= MOST_JOBS:
            self._show_once(f"following the maximum of {MOST_JOBS} jobs; choose jobs with --job-name")
        self._report_diagnostics(log.diagnostics)
        return [job.analysis for _, job in sorted(self._jobs.items()) if job.analysis is not None]

    def _account_for_each(self, log: EventLog) -> None:
        """Analyze each job. A job without a result is followed no longer, until it has more lines or another one goes.
        Raises the error if all jobs failed."""
        failed: list[tuple[str, Exception]] = []
        for name, job in [(name, job) for name, job in self._jobs.items() if job.analysis is None]:
            try:
                job.analysis = self._analysis(log, name, job)
            except NotEnoughData as waits:
                del self._jobs[name]
                self._show_once(f"Waiting: {waits}")
            except Exception as error:  # an error of one job must not end the others
                del self._jobs[name]
                failed.append((name, error))
        if failed and not self._jobs:
            raise failed[0][1]
        for name, cause in failed:
            kind = "" if isinstance(cause, GoodputError) else f"{type(cause).__name__}: "
            self._show_once(f"skipping the job {name!r}: {kind}{cause}")
        self._left_out = bool(failed)

    def _record_changes(self, seen: Mapping[str, JobEventSummary], changed: bool) -> None:
        """Record the new lines of each followed job. changed: True if anything was read."""
        alone = len(seen) == 1
        for name, job in list(self._jobs.items()):
            job.analysis = None
            if name not in seen:
                del self._jobs[name]
            elif job.seen != seen[name] or (alone and changed):  # a line without a job name belongs to the only job
                job.seen, job.quiet_since = seen[name], time.monotonic()

    def _follow_new_jobs(self, seen: Mapping[str, JobEventSummary]) -> bool:
        """Follow new jobs within the limit; return True if some have to wait. Jobs with recent lines come first, the
        largest of them first, so that unknown names do not displace others."""
        now_ns = time.time_ns()
        old = now_ns - int(self._plan.keep_ended * 1e9)
        new = [name for name in seen if name not in self._jobs and self._let_go.get(name) != seen[name]]
        new.sort(key=lambda name: (seen[name].last_ns < old, -seen[name].events, seen[name].last_ns))
        room = MOST_JOBS - len(self._jobs)
        for name in new[:room]:
            self._let_go.pop(name, None)
            age = (now_ns - seen[name].last_ns) / 1e9
            self._jobs[name] = _FollowedJob(seen[name], time.monotonic() - max(age, 0.0))
        return len(new) > room

    def _analysis(self, log: EventLog, name: str, job: _FollowedJob) -> Analysis:
        """Return the analysis of a job as of now, or as of its last event once it has ended. Raises NotEnoughData."""
        assert self._watched is not None
        plan = self._plan
        analysis = self._watched.account(log, name, time.time_ns(), plan.thresholds)
        is_idle = plan.idle_end is not None and job.quiet >= plan.idle_end
        job.ended = is_idle or (analysis.job.ends_clean and job.quiet >= plan.settle)
        if job.ended and not self._stop.wanted:
            analysis = self._watched.account(log, name, None, plan.thresholds)
        if not plan.windows:
            return analysis
        return replace(analysis, rolling=last_windows(analysis.timeline, analysis.window.end_ns, plan.windows))

    def _drop_old_jobs(self, waiting: bool) -> bool:
        """Drop jobs that ended long ago, unless there are no others; return True if any were dropped. waiting: True if
        other jobs wait for room."""
        old = [name for name, job in self._jobs.items() if job.ended and job.quiet >= self._plan.keep_ended]
        for name in old if waiting or len(old) < len(self._jobs) else ():
            job = self._jobs.pop(name)
            self._let_go[name] = job.seen
            if self._published and job.analysis is not None:
                self._codes.add(_code(job.analysis))
        return bool(old)

    def _report_diagnostics(self, of_reading: Sequence[Diagnostic]) -> None:
        """Report the diagnostics of each job; of_reading: those of the shared logs."""
        shared = {(one.code, one.message) for one in of_reading}
        for name, job in self._jobs.items():
            found = () if job.analysis is None else job.analysis.diagnostics
            of_job = [one for one in found if (one.code, one.message) not in shared]
            self._tell([*(one for one in found if one not in of_job), *self._with_job_name(name, of_job)])

    def _with_job_name(self, name: str, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
        """Return the diagnostics with the name of their job, if there are several."""
        if len(self._jobs) == 1:
            return list(diagnostics)
        return [replace(one, message=f"{shorten(name, _LONGEST_NAME)}: {one.message}") for one in diagnostics]

    def _all_ended(self) -> bool:
        """Return True if there is nothing to wait for."""
        idle = self._plan.idle_end
        return all(
            job.ended and (not self._plan.forever or (idle is not None and job.quiet >= idle))
            for job in self._jobs.values()
        )

    def _seconds_to_next_poll(self) -> float:
        """Return the seconds until the next poll: fewer if a job may end before."""
        plan, ends = self._plan, [self._plan.interval]
        if not self._jobs:
            ends.append(min(5.0, self._began + plan.wait - time.monotonic()))
        for job in self._jobs.values():
            if plan.idle_end is not None and not job.ended:
                ends.append(plan.idle_end - job.quiet)
            if job.analysis is not None and job.analysis.job.ends_clean and not job.ended:
                ends.append(plan.settle - job.quiet)
        return max(min(ends), 0.05)

    def _finish(self, analyses: Sequence[Analysis]) -> tuple[int, Sequence[Analysis]]:
        """Publish the last update, and return the exit code."""
        self._published += 1
        left = finish_all(self._workers, self.snapshots(analyses), self._plan.grace)
        for name in left:
            self._say(f"{name}: did not accept the last update within {self._plan.grace:g} s")
        if left or self._left_out or (self._watched is not None and self._watched.failing):
            return GoodputError.exit_code, analyses
        codes = self._codes.union(map(_code, analyses))
        return next(code for code in (ThresholdNotMet.exit_code, NotEnoughData.exit_code, 0) if code in codes), analyses

    def snapshots(self, analyses: Sequence[Analysis]) -> Update:
        """Return the update for some jobs."""
        labels = job_labels(analysis.job.name for analysis in analyses)
        return tuple(self._snapshot(analysis, labels[analysis.job.name]) for analysis in analyses)

    def _snapshot(self, analysis: Analysis, label: str) -> Snapshot:
        records = analysis.timeline.records  # the log begins with the job's first step, or has no step yet
        begins_with_job = records is None or len(records.number) == 0 or int(records.number[0]) <= 1
        whole = not self._plan.whole_job or begins_with_job
        if not whole:
            missing = Diagnostic.of(
                "earlier_attempts_missing",
                "the log starts above step 0, so no figures of the whole job are published; pass the logs of earlier "
                "attempts with --history",
            )
            analysis = replace(analysis, diagnostics=(*analysis.diagnostics, missing))
            self._tell(self._with_job_name(analysis.job.name, [missing]))
        return Snapshot(analysis, time.time_ns(), self._plan.ideal_step_time, whole, label)

    def _show_once(self, sentence: str) -> None:
        if sentence not in self._said and len(self._said) < _MOST_SAID:
            self._said.add(sentence)
            self._say(sentence)


def _code(analysis: Analysis) -> int:
    """Return the exit code for a job's thresholds."""
    return code_of_gates([threshold.met for threshold in analysis.thresholds if threshold.fails])

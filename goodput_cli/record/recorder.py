"""The recorder for authors of training loops; the README of the wheel and docs/record.md show how to use it."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from .attempt import RecordedAttempt
from .lines import LOADING, PHASE_LINE
from .names import default_job_name, find_rank, one_of, variable
from .sinks.files import FSYNC
from .sinks.targets import check, split, targets_of_rank
from .spans import Checkpoint, Phase, RecordedRun, Step, restore_fields, save_fields
from .step_times import StepPhase, StepTimeSums, steady_clock
from .writer import Writer, print_to_stderr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Literal, TypeVar

    from .sinks.targets import Targets

    Number = TypeVar("Number")


_STEMS = {
    "accelerator_init": "tpu_init",
    "tpu_init": "tpu_init",
    "training_prep": "training_prep",
    "data_loading": "data_loading",
}
"""Phases with separate keys. All others are custom events."""
_CUSTOM = "custom_badput_event"


class Recorder:
    """Recorder of the events of a job, one per process. Only `flush` and `close` wait, and no method raises.

    job_name: default GOODPUT_RECORDER_JOB_NAME, JOB_IDENTIFIER, SLURM_JOB_NAME, JOBSET_NAME, otherwise the program's
    name.
    to: a path, a folder, `gs://BUCKET/PREFIX`, `cloud-logging://PROJECT/LOG_ID`, `-`, `stderr:`, an object with
    `write(line)`, or several of them; default GOODPUT_RECORDER_TO, otherwise a file in ./goodput-logs.
    rank, world_size: of this process, if they cannot be detected. ranks: "first" (only rank 0 writes) or "all" (the
    others write heartbeats and their end).
    heartbeat: seconds without a line after which one is written, 0 for never. run_id: of this attempt.
    signals: the signals to record. sigterm: the meaning of SIGTERM: "terminated", or "preempted" on machines that may
    be reclaimed. excepthook, at_exit: True to record unhandled exceptions and the exit.
    fsync: "ends" (starts, ends and checkpoints, in the background) or "never". inline: True to write files in the
    caller's thread; default: True for a local file system.
    queue_lines, queue_bytes: limits of the lines waiting for a sink. grace: seconds that all sinks together get at the
    end.
    clock: returns ns since 1970 UTC. warn: called with messages for the user of the program.

    Every event takes its time as `at=`, and every span its end as `until=`: a datetime (local time without a zone) or
    epoch seconds. Raises ValueError for invalid arguments.
    """

    def __init__(
        self,
        job_name: str | None = None,
        to: Targets = None,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        ranks: Literal["first", "all"] = "first",
        heartbeat: float = 60.0,
        run_id: str | None = None,
        signals: Iterable[str] = ("SIGTERM",),
        sigterm: Literal["terminated", "preempted"] = "terminated",
        excepthook: bool = True,
        at_exit: bool = True,
        fsync: Literal["ends", "never"] = "ends",
        inline: bool | None = None,
        queue_lines: int = 10_000,
        queue_bytes: int = 8 << 20,
        grace: float = 5.0,
        clock: Callable[[], int] | None = None,
        warn: Callable[[str], None] = print_to_stderr,
    ) -> None:
        one_of("ranks", ranks, ("first", "all"))
        one_of("sigterm", sigterm, ("terminated", "preempted"))
        one_of("fsync", fsync, FSYNC)
        for target in split(to):
            check(target)
        self.job_name = str(job_name) if job_name else default_job_name()
        self._rank = rank
        self._world_size = world_size
        self._everyone = ranks == "all"
        self._sigterm = sigterm
        self._warn = _never_raising(warn)
        watched = (signals,) if isinstance(signals, str) else tuple(signals)
        self._watched = (watched, excepthook, at_exit, heartbeat)
        self._run_id = run_id
        self._to = split(to)
        self._make_writer: Callable[[int, Targets, str | None], Writer] = lambda found, targets, life: Writer(
            self.job_name,
            targets,
            run_id=life,
            rank=found,
            inline=inline,
            fsync=fsync,
            queue_lines=queue_lines,
            queue_bytes=queue_bytes,
            grace=grace,
            clock=clock,
            warn=self._warn,
        )
        self._lock = threading.RLock()
        self._step = Step(self)
        self._attempt: RecordedAttempt | None = None
        self._side: int | None = None
        """The rank of a process that writes no events, while it is open."""
        self._off = False
        self._running = False
        self._new_times: Callable[[], StepTimeSums] = lambda: StepTimeSums(
            self._phases_writer, clock or steady_clock(), self._warn
        )
        self.times = self._new_times()
        """Step breakdown: spans report their begin and end to it."""

    # The job.

    def run(self, *, at: object = None, until: object = None) -> RecordedRun:
        """Return the run of the job in this process. It starts now and ends when the `with` block is left. An exception
        is recorded as a crash and propagates; after the end, `close` is called."""
        return RecordedRun(self, at, until)

    def step(self, number: Any, *, at: object = None) -> Step:
        """Record the begin of a step."""
        step = self._step
        step.number, step.at = number, at
        return step

    def steps(self, numbers: Iterable[Number]) -> Iterator[Number]:
        """Yield the numbers, and record the start of each step."""
        for number in numbers:
            self.begin_step(number)
            yield number
        self.times.end()

    def step_phase(self, name: str, *, at: object = None, until: object = None) -> StepPhase:
        """Return a span for a phase inside a step, such as `data`, `forward_backward`, `optimizer`. Every rank writes
        its own times, in a line per 100 steps. A phase claims no time; within another phase it is a part of it. The
        time of asynchronous devices appears where the program waits for them."""
        return StepPhase(self.times, name, at, until)

    def work(self, *, tokens: Any = None, samples: Any = None, flops: Any = None) -> None:
        """Record the amount of work of the whole job in this step; only rank 0's values count. Several in one step add
        up."""
        self.times.work({"tokens": tokens, "samples": samples, "flops": flops})

    def phase(self, name: str, *, at: object = None, until: object = None) -> Phase:
        """Return a span for `accelerator_init` (or `tpu_init`), `training_prep` or `data_loading`; any other is a
        custom event."""
        if name in _STEMS:
            return Phase(self, _STEMS[name], None, LOADING if name == "data_loading" else PHASE_LINE, at, until)
        return Phase(self, _CUSTOM, (f"{_CUSTOM}_type", str(name)), PHASE_LINE, at, until)

    def data_loading(self, *, at: object = None, until: object = None) -> Phase:
        """Return a span for waiting for data. Between two steps in the form `with recorder.step(number):` the wait
        delays training, and the line records that (`between_steps`)."""
        return self.phase("data_loading", at=at, until=until)

    def metrics(self, step: Any, *, at: object = None, **numbers: Any) -> None:
        """Record metrics of a step, such as `mfu=41.2`. They claim no time."""
        attempt = self.attempt(at)
        if attempt:
            attempt.metrics(step, at, numbers)

    # Checkpoints.

    def checkpoint_save(
        self, step: Any, directory: object = "", synchronous: bool = True, *, at: object = None, until: object = None
    ) -> Checkpoint:
        """Return a span for a save that blocks the program. An asynchronous one is complete when `checkpoint_saved` is
        called."""
        done = "checkpoint_saved" if synchronous else None
        return Checkpoint(self, save_fields, step, str(directory), synchronous, done, at, until)

    def checkpoint_restore(
        self, step: Any, directory: object = "", *, at: object = None, until: object = None
    ) -> Checkpoint:
        """Return a span for a restore that blocks the program."""
        return Checkpoint(self, restore_fields, step, str(directory), True, "checkpoint_loaded", at, until)

    def checkpoint_saved(self, step: Any, *, at: object = None) -> None:
        """Record that the checkpoint of this step is complete."""
        self._of_step("checkpoint_saved", step, at)

    def checkpoint_loaded(self, step: Any, *, at: object = None) -> None:
        """Record that the state of this step is restored."""
        self._of_step("checkpoint_loaded", step, at)

    # What happens to the job.

    def scheduled(self, *, at: object = None) -> None:
        """Record that the job waits for machines."""
        attempt = self.attempt(at)
        if attempt:
            attempt.event("scheduled", at)

    def stopped(self, reason: str = "", *, at: object = None) -> None:
        """Record a planned stop of the job."""
        attempt = self.attempt(at)
        if attempt:
            attempt.stopped(reason, at)

    def preemption_notice(self, reason: str = "", *, at: object = None) -> None:
        """Record a notice that the machine will be reclaimed."""
        attempt = self.attempt(at)
        if attempt:
            attempt.notice(reason, at)

    def elastic_wait(self, kind: str, *, at: object = None, until: object = None) -> Phase:
        """Return a span for waiting for slices; a kind with `scale_up` is a planned wait."""
        return Phase(self, "elastic_wait", ("elastic_wait_event_type", str(kind)), PHASE_LINE, at, until)

    def elastic_reinit(self, *, at: object = None, until: object = None) -> Phase:
        """Return a span for setting up again with other slices."""
        return Phase(self, "elastic_reinit", None, PHASE_LINE, at, until)

    def slices(self, active: int, total: int, available: int, *, at: object = None) -> None:
        """Record slice counts from now on."""
        attempt = self.attempt(at)
        if attempt:
            attempt.slices(at, {"active_slices": active, "total_slices": total, "available_slices": available})

    # Monitoring.

    def start_monitor(
        self, *targets: str, windows: Sequence[object] = (), interval: float = 60.0, options: Sequence[str] = ()
    ) -> bool:
        """Publish goodput while the program runs: start `goodput monitor` in a separate process, until `close`.

        targets: `http://:9464`, `tensorboard:DIR`, `gcm:PROJECT`, `prom:FILE`, `json:FILE`. windows: lengths of rolling
        windows, seconds or texts such as "1d". options: further ones of `goodput monitor`. Requires goodput-cli and a
        sink that is a file. Return True if the monitor runs; otherwise the reason is printed, without other effects.
        """
        attempt = self.attempt()
        published = [part for target in targets for part in ("--publish", target)]
        arguments = [*published, "--interval", str(interval), "--wait", "1e9"]
        return attempt is not None and attempt.start_monitor(arguments, windows, options)

    # The recorder itself.

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all sinks have everything; return False if they do not within `timeout` seconds (None:
        `grace`)."""
        return self._attempt is None or self._attempt.writer.flush(timeout)

    def close(self) -> None:
        """Deliver all waiting lines, within `grace`. Later events are not recorded; `run` begins another attempt."""
        with self._lock:
            attempt, self._attempt, self._off = self._attempt, None, True
            times, self.times, self._side = self.times, self._new_times(), None
        times.close()
        if attempt is not None:
            attempt.close()
        elif times.writer is not None:
            times.writer.close()

    def disable(self) -> None:
        """Stop recording."""
        self.close()

    def reopen(self) -> None:
        """Make the recorder of a forked process write again: another attempt, with its own connection or file."""
        self.close()
        self._off = self._running = False

    # Interface for spans and callbacks.

    def assume_rank(self, rank: int, world_size: int) -> None:
        """Set rank and world size from a framework, unless they were given."""
        if self._rank is None and not variable("RANK"):
            self._rank, self._world_size = int(rank), int(world_size)

    def attempt(self, at: object = None) -> RecordedAttempt | None:
        """Return the attempt, which begins with its first event; None if nothing is recorded here."""
        return self._attempt or (None if self._off else self._begin(at))

    def begin_run(self, at: object) -> bool:
        """Begin the attempt if this is the outermost run; return True if it is."""
        if self._running:
            return False
        if self._attempt is None:
            self._off = False
            self.times = self._new_times() if self.times.off else self.times
        self.attempt(at)
        self._running = True
        return True

    def end_run(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        """Record how the run ended, and close."""
        self._running = False
        attempt = self._attempt
        if attempt is not None:
            if kind is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
                attempt.end(at)
            else:
                attempt.end_badly(kind, at)
        self.close()

    def begin_step(self, number: Any, at: object = None) -> None:
        """Record the start of a step."""
        attempt = self._attempt or self.attempt(at)
        if attempt is not None:
            attempt.step(number, at)
        self.times.begin(number, at)

    def _of_step(self, event: str, step: Any, at: object) -> None:
        attempt = self.attempt(at)
        if attempt:
            attempt.of_step(event, step, at)

    def _begin(self, at: object) -> RecordedAttempt | None:
        with self._lock:
            if self._attempt is None and not self._off:
                try:
                    self._open(at)
                except Exception as error:
                    self._off = True
                    self._warn(f"nothing is recorded: {type(error).__name__}: {error}")
            return self._attempt

    def _open(self, at: object) -> None:
        rank, size = find_rank(self._rank, self._world_size)
        if rank and not self._everyone:
            self._off, self._side = True, rank
            return
        attempt = RecordedAttempt(
            self._make_writer(rank, self._to or None, self._run_id), rank, size, sigterm=self._sigterm, at=at
        )
        self._attempt = attempt
        attempt.watch(*self._watched)

    def _phases_writer(self) -> Writer | None:
        """Return the writer for lines of phases: that of the events, or, for a rank that writes none, one next to
        it."""
        try:
            attempt = self.attempt()
            if attempt is not None or self._side is None:
                return None if attempt is None else attempt.writer
            life = self._run_id or os.urandom(6).hex()
            return self._make_writer(self._side, targets_of_rank(self._to, life, self._side) or None, life)
        except Exception as error:
            self._warn(f"no phases are recorded: {type(error).__name__}: {error}")
            return None


def _never_raising(warn: Callable[[str], None]) -> Callable[[str], None]:
    """Return a wrapper of the user's callback that never raises."""

    def warn_safely(sentence: str) -> None:
        with suppress(Exception):
            warn(sentence)

    return warn_safely

"""The logs of sample_logs/differences, a small one for every rule of `goodput reconcile`, and the reference library
in this process.
"""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from goodput_cli.compat.library_worker import answer_to
from tests.support.logs import EPOCH, Recorder

OPTIONS: dict[str, list[str]] = {
    "excluded": ["--exclude", "2026-01-01T00:02:00Z/2026-01-01T00:02:30Z"],
    "no_reference": ["--reference-step-time", "8"],
}
"""Options that a log needs to show its rule."""


class Log(Recorder):
    """A log with the events that only a few logs need. The usual job has ten steps of 10 s from second 100 on."""

    def phase(self, name: str, start: float, end: float) -> Log:
        self.add(**{f"{name}_start_time": EPOCH + start})
        self.add(**{f"{name}_end_time": EPOCH + end})
        return self

    def save(self, step: int, start: float, seconds: float, **more: Any) -> Log:
        self.add(
            event_type="save",
            step=step,
            directory="gs://bucket/run",
            checkpoint_manager_blocking_start_time=EPOCH + start,
            checkpoint_manager_blocking_duration_secs=seconds,
            checkpointer_blocking_duration_secs=seconds,
            wait_for_prev_duration_secs=0.0,
            get_old_steps_duration_secs=0.0,
            **more,
        )
        return self

    def restore(self, step: int, start: float, seconds: float) -> Log:
        self.add(
            event_type="restore",
            step=step,
            directory="gs://bucket/run",
            checkpoint_manager_start_time=EPOCH + start,
            checkpoint_manager_duration_secs=seconds,
            checkpointer_duration_secs=seconds,
        )
        return self


def usual() -> Log:
    log = Log()
    log.start(0).steps(0, 9, 100, 10)
    return log


def outage_productive() -> Recorder:
    return usual().start(1000).steps(10, 19, 1010, 10).end(1110)


def stop_productive() -> Recorder:
    return usual().end(200).start(1000).steps(10, 19, 1010, 10).end(1110)


def startup_productive() -> Recorder:
    return usual().start(1000).steps(10, 10, 1010, 10).steps(11, 19, 1070, 10).end(1170)


def stall_productive() -> Recorder:
    return usual().steps(10, 19, 800, 10).end(900)


def lost_productive() -> Recorder:
    log = usual().start(300).steps(6, 8, 310, 10)
    return log.start(500).steps(3, 12, 510, 10).end(610)


def between_steps_productive() -> Recorder:
    log = Log()
    log.start(0).steps(0, 4, 100, 10).add(training_prep_start_time=EPOCH + 145)
    return log.steps(5, 9, 150, 10).end(200)


def end_productive() -> Recorder:
    return usual().end(400)


def startup_by_mean() -> Recorder:
    log = Log()
    return log.start(0).steps(0, 0, 100, 10).steps(1, 9, 140, 10).steps(10, 19, 820, 10).end(920)


def in_flight_recovery() -> Recorder:
    return usual().end(205).start(500).steps(6, 12, 510, 10).end(580)


def kept_wasted() -> Recorder:
    log = Log()
    log.start(0).steps(0, 4, 100, 10).steps(5, 6, 150, 10).steps(5, 6, 161, 10)
    return log.steps(7, 12, 172, 10).end(232)


def redone_with_gaps() -> Recorder:
    log = usual().start(500).steps(10, 14, 510, 10)
    return log.start(700).steps(5, 19, 710, 10).end(860)


def named_in_lost() -> Recorder:
    log = Log()
    log.start(0).steps(0, 4, 100, 10)
    log.save(4, 152, 4)
    return log.steps(5, 9, 160, 10).start(500).steps(0, 12, 510, 10).end(640)


def phase() -> Recorder:
    log = Log()
    log.start(0)
    log.phase("training_prep", 10, 80)
    return log.custom(30, 50, "SDC_CHECK").steps(0, 9, 100, 10).end(200)


def load_counted() -> Recorder:
    log = Log()
    log.start(0).steps(0, 0, 100, 10)
    log.phase("data_loading", 104, 108)
    return log.steps(1, 9, 110, 10).end(200)


def load_not_counted() -> Recorder:
    log = Log()
    log.start(0)
    log.phase("data_loading", 10, 20).phase("data_loading", 30, 45)
    return log.steps(0, 9, 100, 10).end(200)


def checkpoint_mean() -> Recorder:
    log = Log()
    log.start(0).steps(0, 4, 100, 10)
    for seconds in (1.0, 1.0, 1.0, 9.0):
        log.save(4, 150, seconds)
    return log.steps(5, 9, 160, 10).end(210)


def save_subtracted() -> Recorder:
    log = Log()
    log.start(0)
    return log.save(0, 50, 20).steps(0, 9, 100, 10).end(200)


def steps_left_out() -> Recorder:
    log = Log()
    log.start(0)
    for step in range(0, 50, 10):
        log.add(step_count=step, step_start_time=EPOCH + 100 + 10 * step)
    return log.end(600)


def back_to_step_0() -> Recorder:
    return usual().start(500).steps(0, 12, 510, 10).end(640)


def no_job_end() -> Recorder:
    return usual().add(event_type="job_terminated", timestamp="2026-01-01T00:03:18+00:00")


def no_steps() -> Recorder:
    log = Log()
    log.start(0)
    return log.phase("training_prep", 10, 80).start(200).end(300)


def no_start_line() -> Recorder:
    log = usual()
    return log.phase("tpu_init", 300, 310).steps(5, 12, 320, 10).end(400)


def before_first_step() -> Recorder:
    log = Log()
    log.start(0)
    log.phase("tpu_init", 5, 10).start(60)
    return log.phase("tpu_init", 65, 70).steps(0, 9, 100, 10).end(200)


def custom_outside_step() -> Recorder:
    return usual().custom(145, 155, "EVAL").end(200)


def events_overlap() -> Recorder:
    log = Log()
    log.start(0).steps(0, 4, 100, 10).custom(141, 145, "EVAL").custom(142, 146, "SDC_CHECK")
    return log.steps(5, 9, 160, 10).end(210)


def counted_twice() -> Recorder:
    log = Log()
    log.start(0)
    return log.phase("training_prep", 10, 80).restore(0, 20, 40).steps(0, 9, 100, 10).end(200)


def counted_outside() -> Recorder:
    log = usual().end(200)
    assert isinstance(log, Log)
    return log.phase("tpu_init", 220, 240)


def outside_total() -> Recorder:
    return usual().end(200).start(300).steps(10, 12, 310, 10)


def excluded() -> Recorder:
    return usual().end(200)


def no_reference() -> Recorder:
    return usual().end(200)


def job_end_before_last_step() -> Recorder:
    return usual().end(200).start(205).steps(15, 16, 210, 10)


def set_to_zero() -> Recorder:
    log = Log()
    log.start(0)
    log.phase("tpu_init", 5, 10).add(tpu_init_start_time=EPOCH + 20)
    return log.steps(0, 2, 30, 10).end(60).add(tpu_init_end_time=EPOCH + 400)


def other_below_zero() -> Recorder:
    log = Log()
    log.start(0)
    return log.phase("training_prep", 0, 100).restore(0, 10, 80).steps(0, 9, 100, 10).end(200)


def refuses_without_a_start() -> Recorder:
    return Log().steps(0, 9, 100, 10).end(200)


def refuses_negative_time() -> Recorder:
    log = usual().end(200).start(300)
    for step in (20, 30, 40):
        log.add(step_count=step, step_start_time=EPOCH + 110 + 10 * step)
    return log


def refuses_an_orbax_line() -> Recorder:
    log = usual()
    log.add(
        event_type="save",
        step=4,
        checkpoint_manager_blocking_start_time=EPOCH + 151,
        checkpoint_manager_blocking_duration_secs=3.0,
    )
    return log.end(200)


LOGS: dict[str, Callable[[], Recorder]] = {
    name: made
    for name, made in globals().items()
    if callable(made) and getattr(made, "__module__", None) == __name__ and name not in ("Log", "usual")
}
"""Name of the rule, or of the refusal, and what writes its log."""


def text_of(name: str) -> str:
    """The log, in order of time as Cloud Logging would list it."""
    return "\n".join(LOGS[name]().lines) + "\n"


# --- The reference library in this process.


def import_library() -> None:
    """Import the library, which warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ml_goodput_measurement.src.goodput_elastic  # noqa: F401


def run_here(lines: Iterable[str], timeout: float) -> str:
    """Return what the process of the library prints for these lines. Replaces `library._run`."""
    import_library()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return json.dumps(answer_to(lines))

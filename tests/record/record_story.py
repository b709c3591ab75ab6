"""A job that makes every call of the recorder."""

from __future__ import annotations

from typing import Any

from goodput_cli.record import Recorder


def story(recorder: Recorder, start: float) -> None:
    """Make every call of the recorder, at given times."""
    with recorder.run(at=start, until=start + 100):
        recorder.scheduled(at=start)
        with recorder.phase("accelerator_init", at=start + 1, until=start + 2):
            pass
        prep = recorder.phase("training_prep", at=start + 2, until=start + 5)
        with prep, recorder.checkpoint_restore(0, "gs://b/c", at=start + 3, until=start + 4):
            pass
        for step in range(20):
            at = start + 6 + 4 * step
            with recorder.data_loading(at=at - 0.5, until=at - 0.25):
                pass
            with recorder.step(step, at=at):
                pass
            recorder.metrics(step, at=at, mfu=41.5)
        with recorder.checkpoint_save(19, "gs://b/c", at=start + 85, until=start + 87):
            pass
        with recorder.checkpoint_save(19, synchronous=False, at=start + 87, until=start + 88):
            pass
        recorder.checkpoint_saved(19, at=start + 89)
        with recorder.phase("eval", at=start + 89, until=start + 95):
            pass
        with recorder.elastic_wait("scale_up", at=start + 95, until=start + 96):
            pass
        with recorder.elastic_reinit(at=start + 96, until=start + 97):
            pass
        recorder.slices(1, 2, 2, at=start + 97)


def time_of(line: dict[str, Any]) -> float:
    """Return the first value of a line that is a time."""
    return float(next(value for key, value in line.items() if "time" in key))

"""Small logs built from short function calls, and their accounting: the language of the tests of the rules.

>>> told = account(start(0), steps(0, 6, at=10), end(70))
>>> told.seconds == ledger(productive=60, other=10)
True

Times are seconds after `BASE`, whole or not. Every event is a function that gives one line or several; an end of
`None` is a lost end line, a beginning of `None` a lost start line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

BASE = 1_767_225_600
"""2026-01-01T00:00:00Z, in seconds since 1970."""
SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Line = str
Lines = Line | Sequence[Line]


def _line(**keys: Any) -> Line:
    """A recorder's or a checkpoint library's line; times count from BASE."""
    moved = {key: BASE + value if key.endswith("_time") else value for key, value in keys.items()}
    return json.dumps({"job_name": "j", **moved})


def _event(event_type: str, at: float, **more: Any) -> Line:
    """A resiliency line."""
    known = {key: value for key, value in more.items() if value is not None}
    return json.dumps({"timestamp": iso_time(at), "job_name": "j", "event_type": event_type, **known})


def iso_time(at: float) -> str:
    """`at` seconds after BASE as ISO-8601, to the microsecond."""
    return (_EPOCH + timedelta(seconds=BASE) + timedelta(microseconds=round(at * 10**6))).isoformat()


# Lines of a step recorder (format A).


def start(at: float) -> Line:
    """The recorder's job start."""
    return _line(job_start_time=at)


def end(at: float) -> Line:
    """Return the recorder's job end: the accounting decides whether it is clean."""
    return _line(job_end_time=at)


def step(number: int, at: float) -> Line:
    """The start of one step."""
    return _line(step_count=number, step_start_time=at)


def steps(first: int, count: int, *, at: float, every: float = 10, stride: int = 1) -> list[Line]:
    """`count` step starts: numbers from `first`, one `stride` apart; times from `at`, `every` seconds apart."""
    return [step(first + i * stride, at + i * every) for i in range(count)]


def done(number: int, at: float, each: float | None = None) -> Line:
    """Return the end of a step: this number is done. each: the mean time of one since the record before, s. Read by the
    format of `step_end_lines` alone."""
    return _line(steps_done=number, steps_done_time=at, **({} if each is None else {"mean_seconds": each}))


def dones(*records: tuple[int, float]) -> list[Line]:
    """Several step ends: (number, time)."""
    return [done(number, at) for number, at in records]


def heartbeat(at: float) -> Line:
    """Return the recorder's heartbeat."""
    return _line(goodput_event="heartbeat", goodput_time=at)


def clock_step(at: float, seconds: float, rank: int | None = None) -> Line:
    """Return the recorder's message that its clock was set just before."""
    return _line(
        goodput_event="clock_step", goodput_time=at, seconds=seconds, **({} if rank is None else {"rank": rank})
    )


def dropped(at: float, since: float, until: float, lost: int = 1, reason: str = "queue full") -> Line:
    """Return the recorder's message that it lost lines of this many steps."""
    return _line(
        **{
            "goodput_event": "dropped",
            "goodput_time": at,
            "from": BASE + since,
            "to": BASE + until,
            "lines": lost,
            "steps": lost,
        },
        reason=reason,
    )


def notice(at: float) -> Line:
    """The recorder's notice that the machine will be taken away."""
    return _line(goodput_event="preemption_notice", goodput_time=at)


def init(begin: float | None, finish: float | None = None) -> list[Line]:
    """Accelerator initialisation."""
    return _phase("tpu_init", begin, finish)


def prep(begin: float | None, finish: float | None = None) -> list[Line]:
    """Training preparation."""
    return _phase("training_prep", begin, finish)


def loading(begin: float | None, finish: float | None = None, *, between_steps: bool = False) -> list[Line]:
    """Return a data load; between_steps: the recorder reports that training waited for it."""
    said = {"between_steps": True} if between_steps else {}
    return _phase("data_loading", begin, finish, **said)


def custom(label: str | None, begin: float | None, finish: float | None = None) -> list[Line]:
    """The user's own event; a label of None is a missing one."""
    named = {} if label is None else {"custom_badput_event_type": label}
    return _phase("custom_badput_event", begin, finish, **named)


def wait(kind: str, begin: float | None, finish: float | None = None) -> list[Line]:
    """An elastic wait: `slice_down`, `scale_up`."""
    return _phase("elastic_wait", begin, finish, elastic_wait_event_type=kind)


def reinit(begin: float | None, finish: float | None = None) -> list[Line]:
    """Elastic re-initialisation."""
    return _phase("elastic_reinit", begin, finish)


def slices(active: int, available: int, total: int, at: float) -> Line:
    """Slice counts from `at` on."""
    return _line(
        active_slices=active, total_slices=total, available_slices=available,
        elastic_slice_counts_timestamp=BASE + at,
    )  # fmt: skip


def _phase(name: str, begin: float | None, finish: float | None, **label: str | bool) -> list[Line]:
    times = (("start", begin), ("end", finish))
    return [_line(**label, **{f"{name}_{edge}_time": at}) for edge, at in times if at is not None]


# Lines of a checkpoint library between a recorder's lines (format B).


def save(at: float, seconds: float, number: int = 0) -> Line:
    """A blocking save."""
    return _line(
        step=number, event_type="save", directory="gs://b/c",
        checkpoint_manager_blocking_start_time=at, checkpoint_manager_blocking_duration_secs=seconds,
    )  # fmt: skip


def restore(at: float, seconds: float, number: int = 0) -> Line:
    """A restore."""
    return _line(
        step=number, event_type="restore", directory="gs://b/c",
        checkpoint_manager_start_time=at, checkpoint_manager_duration_secs=seconds,
    )  # fmt: skip


# Resiliency events (format C); `rank` is the node's.


def scheduled(at: float) -> Line:
    return _event("user_scheduled", at)


def started(at: float, rank: int | None = None) -> Line:
    return _event("job_started", at, node_rank=rank)


def loaded(number: int, at: float, rank: int | None = None) -> Line:
    return _event("checkpoint_loaded", at, step=number, node_rank=rank)


def finished(number: int, at: float, rank: int | None = None) -> Line:
    return _event("step_finished", at, step=number, node_rank=rank)


def saved(number: int, at: float, rank: int | None = None) -> Line:
    return _event("checkpoint_saved", at, step=number, node_rank=rank)


def saved_asynchronously(number: int, at: float) -> Line:
    """Read by the format of `asynchronous_saves` alone."""
    return _line(saved_asynchronously=number, saved_asynchronously_time=at)


def terminated(at: float, rank: int | None = None) -> Line:
    return _event("job_terminated", at, node_rank=rank)


def crashed(at: float, rank: int | None = None) -> Line:
    return _event("job_crashed", at, node_rank=rank)


def user_terminated(at: float) -> Line:
    return _event("user_terminated", at)


def job_finished(at: float) -> Line:
    return _event("job_finished", at)


# Results of a story.


def story_lines(*events: Lines) -> list[Line]:
    """Return the lines of a story, in its order."""
    return [line for event in events for line in ([event] if isinstance(event, str) else event)]


def ns(at: float) -> int:
    return BASE * SECOND + round(at * 10**6) * 1000

"""Small logs told in words, and what the accounting makes of them: what the tests of the rules are written in.

>>> told = account(start(0), steps(0, 6, at=10), end(70))
>>> told.seconds == ledger(productive=60, other=10)
True

Times are seconds after `BASE`, whole or not. Every event is a function that gives one line or several; an end of
`None` is a lost end line, a beginning of `None` a lost start line.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from goodput_cli import analyze
from goodput_cli.analysis.results import Analysis

BASE = 1_767_225_600
"""2026-01-01T00:00:00Z, in seconds since 1970."""
SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Line = str
Lines = Line | Sequence[Line]

CATEGORY = {
    "startup": "program_startup",
    "init": "tpu_initialization",
    "prep": "training_prep",
    "loading": "data_loading_sync",
    "save": "unproductive_checkpoint_save_time",
    "restore": "unproductive_checkpoint_restore_time",
    "wasted": "wasted_progress_from_disruption",
    "recovery": "infrastructure_recovery_from_disruption",
    "slice_down": "elastic_slice_down",
    "scale_up": "elastic_scale_up",
    "reinit": "elastic_reinitialization",
    "stall": "step_stall",
    "slowdown": "training_slowdown",
    "undetermined": "disruption_undetermined",
}
"""Short names of categories of accounting §2, which `ledger` takes as well as the names."""


def _line(**keys: Any) -> Line:
    """A recorder's or a checkpoint library's line; times count from BASE."""
    moved = {key: BASE + value if key.endswith("_time") else value for key, value in keys.items()}
    return json.dumps({"job_name": "j", **moved})


def _event(event_type: str, at: float, **more: Any) -> Line:
    """A resiliency line."""
    known = {key: value for key, value in more.items() if value is not None}
    return json.dumps({"timestamp": instant(at), "job_name": "j", "event_type": event_type, **known})


def instant(at: float) -> str:
    """`at` seconds after BASE as ISO-8601, to the microsecond."""
    return (_EPOCH + timedelta(seconds=BASE) + timedelta(microseconds=round(at * 10**6))).isoformat()


# What a step recorder writes (format A).


def start(at: float) -> Line:
    """The recorder's job start."""
    return _line(job_start_time=at)


def end(at: float) -> Line:
    """The recorder's job end: clean or not, the accounting says."""
    return _line(job_end_time=at)


def step(number: int, at: float) -> Line:
    """The start of one step."""
    return _line(step_count=number, step_start_time=at)


def steps(first: int, count: int, *, at: float, every: float = 10, stride: int = 1) -> list[Line]:
    """`count` step starts: numbers from `first`, one `stride` apart; times from `at`, `every` seconds apart."""
    return [step(first + i * stride, at + i * every) for i in range(count)]


def done(number: int, at: float, each: float | None = None) -> Line:
    """The end of a step: so many are done. each: the mean time of one since the record before, s. Read by the format
    of `step_end_lines` alone."""
    return _line(steps_done=number, steps_done_time=at, **({} if each is None else {"mean_seconds": each}))


def dones(*records: tuple[int, float]) -> list[Line]:
    """Several step ends: (number, time)."""
    return [done(number, at) for number, at in records]


def heartbeat(at: float) -> Line:
    """The recorder's sign of life."""
    return _line(goodput_event="heartbeat", goodput_time=at)


def notice(at: float) -> Line:
    """The recorder's notice that the machine will be taken away."""
    return _line(goodput_event="preemption_notice", goodput_time=at)


def init(begin: float | None, finish: float | None = None) -> list[Line]:
    """Accelerator initialisation."""
    return _phase("tpu_init", begin, finish)


def prep(begin: float | None, finish: float | None = None) -> list[Line]:
    """Training preparation."""
    return _phase("training_prep", begin, finish)


def loading(begin: float | None, finish: float | None = None) -> list[Line]:
    """A data load."""
    return _phase("data_loading", begin, finish)


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


def _phase(name: str, begin: float | None, finish: float | None, **label: str) -> list[Line]:
    times = (("start", begin), ("end", finish))
    return [_line(**label, **{f"{name}_{edge}_time": at}) for edge, at in times if at is not None]


# What a checkpoint library writes between a recorder's lines (format B).


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


# What comes of it.


@dataclass(frozen=True)
class Account:
    """What the accounting made of a story."""

    analysis: Analysis

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Seconds by category (`custom_badput_events:LABEL` for custom events), without those that are zero."""
        amounts = {row.name: row.ns for row in (self.analysis.goodput, *self.analysis.badput)}
        amounts["excluded"] = self.analysis.window.excluded_ns
        return {name: ns / SECOND for name, ns in amounts.items() if ns}

    @property
    def total(self) -> float:
        """Length of the window, in seconds."""
        return self.analysis.window.ns / SECOND

    @property
    def percent(self) -> float:
        return self.analysis.goodput_percent

    @property
    def attempts(self) -> int:
        return self.analysis.job.attempts

    @property
    def disruptions(self) -> int:
        return self.analysis.job.disruptions

    @property
    def kept_steps(self) -> float:
        return self.analysis.job.kept_steps

    @property
    def overlapped(self) -> float:
        """Seconds of data loading beside the ledger."""
        return sum(row.ns for row in self.analysis.overlapped) / SECOND

    def found(self, code: str) -> int:
        """How many cases the diagnostics of a code count; 0 without any."""
        return sum(one.count for one in self.analysis.diagnostics if one.code == code)

    def message(self, code: str) -> str:
        """What the diagnostics of a code say."""
        return " ".join(one.message for one in self.analysis.diagnostics if one.code == code)

    def lines(self, code: str) -> list[int]:
        """The line numbers that the diagnostics of a code name."""
        return [int(at.rpartition(":")[2]) for one in self.analysis.diagnostics if one.code == code for at in one.where]


def told(*events: Lines) -> list[Line]:
    """The lines of a story, in the order in which it is told."""
    return [line for event in events for line in ([event] if isinstance(event, str) else event)]


def account(
    *events: Lines,
    as_of: float | None = None,
    window: tuple[float, float] | None = None,
    exclude: Iterable[tuple[float, float]] = (),
    reference: str | float | None = None,
    **options: Any,
) -> Account:
    """Account for a story. Times are seconds after BASE; other options are those of `analyze`.

    The promise is checked on every story: the categories add up to the window, to the nanosecond.
    """
    start_ns, end_ns = (None, None) if window is None else (_ns(window[0]), _ns(window[1]))
    analysis = analyze(
        "-",
        stdin=io.BytesIO("".join(f"{line}\n" for line in told(*events)).encode()),
        as_of=None if as_of is None else _ns(as_of),
        start=start_ns,
        end=end_ns,
        exclude=[f"{instant(begin)}/{instant(finish)}" for begin, finish in exclude],
        reference_step_time=reference,
        **options,
    )
    counted = analysis.goodput.ns + sum(row.ns for row in analysis.badput)
    assert counted == analysis.window.ns - analysis.window.excluded_ns
    return Account(analysis)


def _ns(at: float) -> int:
    return BASE * SECOND + round(at * 10**6) * 1000


def ledger(custom: Mapping[str, float] | None = None, /, **seconds: float) -> dict[str, float]:
    """What `Account.seconds` is expected to be: `CATEGORY` has the names; custom events go by their label."""
    labels = {f"custom_badput_events:{label}": amount for label, amount in (custom or {}).items()}
    return {CATEGORY.get(name, name): amount for name, amount in seconds.items()} | labels

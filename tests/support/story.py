"""Small logs built from short function calls, and their accounting: the language of the tests of the rules."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from goodput_cli import analyze
from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.insights.kinds import Insight
from goodput_cli.events.signs import RecoveryEvent

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


# --- The account of a story.

CATEGORY = {
    "startup": "program_startup",
    "init": "tpu_initialization",
    "prep": "training_prep",
    "loading": "data_loading_sync",
    "excluded": "excluded",
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


@dataclass(frozen=True)
class Account:
    """Result of the accounting for a story."""

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
        return self.analysis.goodput.percent

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
        """Return the seconds of data loading that overlap the ledger."""
        return sum(row.ns for row in self.analysis.overlapped) / SECOND

    def found(self, code: str) -> int:
        """Return the number of cases that the diagnostics of a code count; 0 without any."""
        return sum(one.count for one in self.analysis.diagnostics if one.code == code)

    def message(self, code: str) -> str:
        """Return the message of the diagnostics of a code."""
        return " ".join(one.message for one in self.analysis.diagnostics if one.code == code)

    def lines(self, code: str) -> list[int]:
        """The line numbers that the diagnostics of a code name."""
        return [int(at.rpartition(":")[2]) for one in self.analysis.diagnostics if one.code == code for at in one.where]


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
    start_ns, end_ns = (None, None) if window is None else (ns(window[0]), ns(window[1]))
    analysis = analyze(
        "-",
        stdin=io.BytesIO("".join(f"{line}\n" for line in story_lines(*events)).encode()),
        as_of=None if as_of is None else ns(as_of),
        start=start_ns,
        end=end_ns,
        exclude=[f"{iso_time(begin)}/{iso_time(finish)}" for begin, finish in exclude],
        reference_step_time=reference,
        **options,
    )
    counted = analysis.goodput.ns + sum(row.ns for row in analysis.badput)
    assert counted == analysis.window.ns - analysis.window.excluded_ns
    return Account(analysis)


def ledger(custom: Mapping[str, float] | None = None, /, **seconds: float) -> dict[str, float]:
    """Return the expected value of `Account.seconds`: `CATEGORY` has the names; custom events go by their label."""
    labels = {f"custom_badput_events:{label}": amount for label, amount in (custom or {}).items()}
    return {CATEGORY.get(name, name): amount for name, amount in seconds.items()} | labels


def insights(*events: Lines, **options: Any) -> dict[str, Insight]:
    """The insights of a story, by code."""
    return {one.code: one for one in account(*events, **options).analysis.insights}


# --- Signs of a recovery that tests add to the events of a job.


def with_signs(timeline: Timeline, *signs: RecoveryEvent) -> Timeline:
    """Return the timeline of a log with these signs, and no others."""
    observed = replace(timeline.table.observed, signs=signs)
    return replace(timeline, table=replace(timeline.table, observed=observed))


# --- Times of rows whose steps are mostly of one length.


def spread(first: int, last: int, count: int, usual: float) -> list[int]:
    """`count` times from first to last (ms): steps of the usual length, and the rest in a tenth of them."""
    low = int(usual)
    lengths = [low if place % 2 else low + (usual > low) for place in range(count - 1)]
    rest = last - first - sum(lengths)
    lengths[len(lengths) // 2] += rest
    times = [first]
    for length in lengths:
        times.append(times[-1] + length)
    assert times[-1] == last
    return times


# --- Small logs of programs that contain the amount of work per step.

BEGIN = datetime(2026, 3, 1, 13, 25, tzinfo=UTC)


def timestamp(seconds: float, form: str = "%Y-%m-%d %H:%M:%S.%f") -> str:
    return f"{BEGIN + timedelta(seconds=seconds):{form}}"


def megatron(
    steps: int, seconds: float = 1.0, *, start_up: float = 0.0, every: int = 10, batch: int = 256, length: int = 4096,
    world: int | None = 8, tflops: float | None = 400.0, total: int = 10_000, first: int = 0, at: float = 0.0,
) -> list[str]:  # fmt: skip
    """Return the stdout of Megatron-LM, after this many seconds of start-up."""
    lines = ["------------------------ arguments ------------------------", f"  seq_length {'.' * 38} {length}"]
    lines += [] if world is None else [f"  world_size {'.' * 38} {world}"]
    lines.append("-------------------- end of arguments ---------------------")
    if start_up:
        lines.append(f"[before library-setup] datetime: {timestamp(at, '%Y-%m-%d %H:%M:%S')} ")
        lines.append(f"[after megatron is initialized] datetime: {timestamp(at, '%Y-%m-%d %H:%M:%S')} ")
    lines.append(f"[before the start of training step] datetime: {timestamp(at + start_up, '%Y-%m-%d %H:%M:%S')} ")
    rate = "" if tflops is None else f"throughput per GPU (TFLOP/s/GPU): {tflops} | "
    for step in range(first + every, first + steps + 1, every):
        now = at + start_up + (step - first) * seconds
        lines.append(
            f" [{timestamp(now)}] iteration {step:8d}/ {total:7d} | consumed samples: {step * batch} | elapsed time "
            f"per iteration (ms): {1000 * seconds} | {rate}global batch size: {batch:5d} | lm loss: 2.5E+00 |"
        )
    return lines


def torchtitan(*lines: tuple[float, str]) -> str:
    """Return the stdout of torchtitan: seconds, and the text printed then."""
    form = "%Y-%m-%d %H:%M:%S,%f"
    return "".join(f"[titan] {timestamp(at, form)[:-3]} - root - INFO - {text}\n" for at, text in lines)


def titan_step(step: int, tps: float, tflops: float | str = 393.22, mfu: str = "39.76%") -> str:
    return (
        f"step: {step:2d}  loss:  8.00000  grad_norm:  1.0000  memory: 39.00GiB(41.04%)  tps: {tps:,.0f}  "
        f"tflops: {tflops}  mfu: {mfu}"
    )


def recorded(steps: int, seconds: Callable[[int], float], **metrics: Callable[[int], object]) -> Iterator[str]:
    """Lines of the recorder, with metrics of each step."""
    now, of_job = BEGIN.timestamp(), {"job_name": "j"}
    yield json.dumps({**of_job, "job_start_time": now})
    for step in range(steps):
        yield json.dumps({**of_job, "step_count": step, "step_start_time": now})
        if metrics:
            values = {name: value(step) for name, value in metrics.items()}
            yield json.dumps({**of_job, "goodput_event": "metrics", "goodput_time": now, "step": step, **values})
        now += seconds(step)

"""Events from lines (formats A, B, C and the native one), and the order of events (accounting §1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

NS = 1_000_000_000
US = 1_000

TIE_ORDER = (
    "scheduled", "start", "tpu_init", "prep", "restore", "load", "data", "elastic_down", "elastic_up",
    "elastic_reinit", "step", "save", "custom", "finished", "saved", "terminated", "crashed", "user_terminated",
    "job_finished", "job_end", "slices", "heartbeat",
)  # fmt: skip
"""Kinds of events in the order of events with equal times (accounting §1)."""

CLEAN = {"user_terminated", "job_finished", "job_end"}
TERMINATIONS = {"terminated", "crashed"} | CLEAN
BEGINNINGS = set(TIE_ORDER[TIE_ORDER.index("start") : TIE_ORDER.index("step") + 1])
"""Kinds that follow an end of the same time, like a start. Chosen: this includes lines of that time that follow a
start. End lines of phases do not follow, unless a phase begins there too: they close intervals of the old attempt."""
CHECKPOINTS = {"load", "finished", "saved"}
START_UP = {"tpu_init", "prep", "restore", "elastic_down", "elastic_up", "elastic_reinit"}
NO_LIFE = {"scheduled", "slices"}
NO_EVENTS = {"announced", "bad_loss"}
"""Facts that are not events: a process announces itself, a loss is not finite."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """One fact of the log. time, end: ns UTC (they differ for Orbax intervals only).

    edge: "begin" or "end" (also of a step), "interval" (Orbax), otherwise "point". identity: every field of its format.
    label: also "preempted", and "asynchronous" for a save whose line states it. between_steps: for a data load, True if
    its line states it. set_forward: ns by which the clock was set before it. lost_steps: for a heartbeat, interval (ns)
    in which step lines were lost. writer: the process that wrote it, if a Cloud Logging entry names it. A step with the
    edge "end" counts finished steps; mean: ns of one step.
    """

    time: int
    kind: str
    end: int
    edge: str = "point"
    step: int | None = None
    rank: int | None = None
    label: str = ""
    identity: tuple[Any, ...] = ()
    writer: tuple[str, str] | None = None
    mean: int | None = None
    between_steps: bool = False
    set_forward: int = 0
    lost_steps: tuple[int, int] | None = None

    @property
    def number(self) -> int:
        """Return the step of an event that must have one."""
        assert self.step is not None
        return self.step


def whole(value: Any) -> int | None:
    """Return a step or a rank as an integer: from an int, a float or digits in a string."""
    return None if value is None else int(Fraction(str(value)))


def epoch_ns(value: Any) -> int | None:
    """Return epoch seconds (or a duration in seconds) as ns, rounded to the microsecond, half to even."""
    if value is None:
        return None
    exact = Fraction(value) if isinstance(value, int) else Fraction(float(value))
    return round(exact * NS / US) * US


ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?$")


def iso_ns(text: str, zone: str) -> int:
    """Return an ISO-8601 time as ns since 1970 UTC; without an offset it is local time in `zone`."""
    found = ISO.match(text.strip())
    if found is None:
        raise ValueError(f"not a time: {text!r}")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    moment = datetime(year, month, day, hour, minute, second, tzinfo=offset_of(found[8], zone))
    since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * NS + int((found[7] or "").ljust(9, "0"))


def offset_of(offset: str | None, zone: str) -> ZoneInfo | timezone:
    if offset is None:
        return ZoneInfo(zone)
    if offset == "Z":
        return UTC
    minutes = int(offset[1:3]) * 60 + int(offset[-2:])
    return timezone(timedelta(minutes=-minutes if offset[0] == "-" else minutes))


PHASES = {"tpu_init": "tpu_init", "training_prep": "prep", "data_loading": "data", "elastic_reinit": "elastic_reinit"}


def recorder_events(record: Record) -> Iterator[Event]:
    """Yield events of format A."""
    yield from recorder_phases(record)
    for key, kind in {"job_start_time": "start", "job_end_time": "job_end"}.items():
        if (time := epoch_ns(record.get(key))) is not None:
            yield Event(time, kind, time, identity=("A", kind, time))
    if (time := epoch_ns(record.get("elastic_slice_counts_timestamp"))) is not None:
        counts = tuple(whole(record.get(key)) for key in ("active_slices", "total_slices", "available_slices"))
        yield Event(time, "slices", time, identity=("A", "slices", time, counts))
    time, step = epoch_ns(record.get("steps_done_time")), whole(record.get("steps_done"))
    if time is not None and step is not None:
        mean = epoch_ns(record.get("mean_seconds"))
        yield Event(time, "step", time, "end", step, identity=("ends", time, step, mean), mean=mean)
    time, step = epoch_ns(record.get("saved_asynchronously_time")), whole(record.get("saved_asynchronously"))
    if time is not None and step is not None:
        yield Event(time, "saved", time, step=step, label="asynchronous", identity=("async", time, step))
    time, step = epoch_ns(record.get("step_start_time")), whole(record.get("step_count"))
    if time is not None and step is not None:
        yield Event(time, "step", time, step=step, identity=("A", "step", time, step))


def recorder_phases(record: Record) -> Iterator[Event]:
    custom = str(record.get("custom_badput_event_type") or "UNKNOWN")
    wait = str(record.get("elastic_wait_event_type") or "")
    phases = [(prefix, kind, "") for prefix, kind in PHASES.items()]
    phases.append(("custom_badput_event", "custom", custom))
    phases.append(("elastic_wait", "elastic_up" if "scale_up" in wait.lower() else "elastic_down", wait))
    for prefix, kind, text in phases:
        for edge, key in (("begin", f"{prefix}_start_time"), ("end", f"{prefix}_end_time")):
            if (time := epoch_ns(record.get(key))) is not None:
                label = text.upper() if kind == "custom" else ""
                waits = (kind, edge) == ("data", "begin") and record.get("between_steps") is True
                identity = ("A", kind, edge, time, text.upper(), waits)
                yield Event(time, kind, time, edge, label=label, identity=identity, between_steps=waits)


ORBAX_PARTS = {
    "save": ("checkpoint_manager_blocking", "wait_for_prev", "checkpointer_blocking", "get_old_steps"),
    "restore": ("checkpoint_manager", "checkpointer", "broadcast"),
}
"""Keys of the interval of the whole, then of its parts."""
ORBAX_KEYS = (
    *(f"{part}_{what}" for parts in ORBAX_PARTS.values() for part in parts for what in ("start_time", "duration_secs")),
    "step", "directory", "event_type", "reached_preemption", "preemption_received_at", "synchronous",
    "time_between_consecutive_saves_sec", "is_restoring_slice", "in_primary_slice",
)  # fmt: skip


def orbax_events(record: Record) -> Iterator[Event]:
    """Yield events of format B. Chosen: if the checkpoint manager's own interval is missing, its parts claim theirs."""
    kind = "save" if record["event_type"] == "save" else "restore"
    identity = ("B", *(same_spelling(record.get(key)) for key in ORBAX_KEYS))
    whole_part, *parts = ORBAX_PARTS[kind]
    found = orbax_intervals(record, [whole_part]) or orbax_intervals(record, parts)
    for start, end in found:
        label = "preempted" if kind == "save" and record.get("reached_preemption") is True else ""
        step = whole(record.get("step"))
        yield Event(start, kind, end, "interval", step, label=label, identity=(*identity, start, end))


def orbax_intervals(record: Record, parts: Iterable[str]) -> list[tuple[int, int]]:
    found = []
    for part in parts:
        start, length = epoch_ns(record.get(f"{part}_start_time")), epoch_ns(record.get(f"{part}_duration_secs"))
        if start is not None and length is not None and length >= 0:
            found.append((start, start + length))
    return found


def same_spelling(value: Any) -> str:
    """Return one spelling for 3, 3.0 and "3"."""
    try:
        return str(Fraction(str(value)))
    except ValueError:
        return str(value)


RESILIENCY = {
    "user_scheduled": "scheduled", "job_started": "start", "checkpoint_loaded": "load", "checkpoint_saved": "saved",
    "step_finished": "finished", "user_terminated": "user_terminated", "job_terminated": "terminated",
    "job_crashed": "crashed", "job_finished": "job_finished",
}  # fmt: skip


def resiliency_events(record: Record, zone: str) -> Iterator[Event]:
    """Yield events of format C."""
    kind = RESILIENCY.get(str(record["event_type"]))
    if kind is None or record.get("timestamp") is None:
        return
    time, step, rank = iso_ns(str(record["timestamp"]), zone), whole(record.get("step")), whole(record.get("node_rank"))
    if kind in CHECKPOINTS and step is None:
        return
    yield Event(time, kind, time, step=step, rank=rank, identity=("C", kind, time, step, rank))


NATIVE = {
    "scheduled": "scheduled", "started": "start", "checkpoint_loaded": "load", "checkpoint_saved": "saved",
    "step_finished": "finished", "stopped": "user_terminated", "terminated": "terminated", "crashed": "crashed",
    "finished": "job_finished", "heartbeat": "heartbeat", "preemption_notice": "heartbeat",
}  # fmt: skip


def native_events(record: Record) -> Iterator[Event]:
    """Yield events of the native format."""
    kind, time = NATIVE.get(str(record["goodput_event"])), epoch_ns(record.get("goodput_time"))
    step, rank = whole(record.get("step")), whole(record.get("rank"))
    if record["goodput_event"] == "attempt" and time is not None and not rank:
        yield Event(time, "announced", time, identity=("announced", time))
    if record["goodput_event"] == "metrics" and time is not None and record.get("loss") == "nan":
        yield Event(time, "bad_loss", time, identity=("bad loss", time))
    if record["goodput_event"] == "clock_step" and time is not None:
        forward = epoch_ns(record.get("seconds")) or 0
        if forward > 0 and not rank:
            yield Event(time, "heartbeat", time, rank=rank, identity=("clock", time, forward), set_forward=forward)
        return
    if record["goodput_event"] == "dropped" and time is not None:
        begin, end, steps = (epoch_ns(record.get(key)) for key in ("from", "to", "steps"))
        if (
            begin is not None
            and end is not None
            and begin < end
            and (steps or 0) > 0
            and record.get("reason") != "exit"
        ):
            identity = ("lost", time, begin, end)
            yield Event(time, "heartbeat", time, rank=rank, identity=identity, lost_steps=(begin, end))
        return
    if kind is None or time is None or (kind in CHECKPOINTS and step is None):
        return
    label = "preempted" if record["goodput_event"] == "preemption_notice" else ""
    yield Event(time, kind, time, step=step, rank=rank, label=label, identity=("C", kind, time, step, rank, *label))


def read(lines: Iterable[str], zone: str) -> list[Event]:
    """Return the events of bare JSON lines. Other lines are skipped: diagnostics are tested with the real reader."""
    events: list[Event] = []
    for line in lines:
        try:
            record, writer = unwrapped(json.loads(line))
            if isinstance(record, dict) and isinstance(record.get("job_name"), str):
                events += [replace(event, writer=writer or event.writer) for event in events_of(record, zone)]
        except (ValueError, TypeError, OverflowError, RecursionError):
            continue
    return events


def unwrapped(record: Any) -> tuple[Any, tuple[str, str] | None]:
    """Return the payload of a Cloud Logging entry and the process that wrote it; any other record as it is."""
    if not isinstance(record, dict) or not isinstance(record.get("jsonPayload"), dict):
        return record, None
    labels = record.get("labels") or {}
    resource = (record.get("resource") or {}).get("labels") or {}
    node = [resource.get(key) for key in ("instance_id", "pod_name")]
    if labels.get("python_logger") or any(node):
        place = "/".join(str(part or "") for part in node) if any(node) else ""
        return record["jsonPayload"], (place, str(labels.get("python_logger") or ""))
    prefix, dash, _ = str(record.get("insertId") or "").rpartition("-")
    return record["jsonPayload"], ("", prefix) if dash and prefix else None


def events_of(record: Record, zone: str) -> list[Event]:
    if record.get("goodput_event") is not None:
        run_id = record.get("run_id")
        named = ("", run_id) if isinstance(run_id, str) and run_id else None
        return [replace(event, writer=named if event.kind == "heartbeat" else None) for event in native_events(record)]
    event_type = record.get("event_type")
    if event_type in ("save", "restore", "emergency_restore"):
        return list(orbax_events(record))
    return list(resiliency_events(record, zone) if event_type is not None else recorder_events(record))


def in_order(events: Iterable[Event]) -> list[Event]:
    """Return distinct events by time; ties as in §1, then by their own fields, so that file order never matters."""
    by_writer = sorted(events, key=lambda event: (event.writer is not None, str(event.writer)), reverse=True)
    distinct = one_kind_of_steps({event.identity: event for event in by_writer}.values())
    last_breaths = {event.time for event in distinct if event.kind in TERMINATIONS}
    reborn = last_breaths & {event.time for event in distinct if event.kind == "start"}
    begun = {(event.kind, event.label, event.time) for event in distinct if event.edge == "begin"}

    def key(event: Event) -> tuple[Any, ...]:
        tie = TIE_ORDER.index(event.kind)
        stays = event.edge == "end" and (event.kind, event.label, event.time) not in begun
        if event.time in reborn and event.kind in BEGINNINGS and not stays:
            tie += len(TIE_ORDER)
        edge = ("end", "begin", "interval", "point").index(event.edge)
        step, mean, rank = (-1 if number is None else number for number in (event.step, event.mean, event.rank))
        return (event.time, tie, edge, step, mean, rank, event.label, event.end, str(event.identity))

    return sorted(distinct, key=key)


def one_kind_of_steps(events: Iterable[Event]) -> list[Event]:
    """Treat step ends next to steps that begin as signs of life only."""
    found = list(events)
    if not any((event.kind, event.edge) == ("step", "point") for event in found):
        return found
    ends = ("step", "end")
    return [replace(one, kind="heartbeat", edge="point") if (one.kind, one.edge) == ends else one for one in found]


def seen_at(events: Iterable[Event], as_of: int | None) -> list[Event]:
    """Return only events up to `as_of` (ns); an interval that spans it is cut there."""
    if as_of is None:
        return list(events)
    return [replace(event, end=min(event.end, as_of)) for event in events if event.time <= as_of]

"""Running the reference library on the events of a job, in a process of its own: it can be stopped, and its imports,
logging and cache touch nothing here. Needs the extra `reconcile`.

It is given canonical events as the entries that its recorder writes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from goodput_cli.errors import GoodputError, UsageError, to_install
from goodput_cli.events.schema import NO_STEP, Edge, EventTable, Kind
from goodput_cli.vocabulary.categories import Category, CategoryKey
from goodput_cli.vocabulary.units import NS_PER_SECOND

_CUSTOM_TYPE, _ELASTIC_TYPE = "custom_badput_event_type", "elastic_wait_event_type"
_POINTS = {Kind.START: "job_start_time", Kind.JOB_END: "job_end_time", Kind.STEP: "step_start_time"}
_PHASES = {
    Kind.TPU_INIT: "tpu_init",
    Kind.PREP: "training_prep",
    Kind.DATA: "data_loading",
    Kind.CUSTOM: "custom_badput_event",
    Kind.ELASTIC_DOWN: "elastic_wait",
    Kind.ELASTIC_UP: "elastic_wait",
    Kind.ELASTIC_REINIT: "elastic_reinit",
}
_SIDES = {Edge.BEGIN: "start_time", Edge.END: "end_time"}
_ELASTIC_NAMES = {Kind.ELASTIC_DOWN: "slice_down", Kind.ELASTIC_UP: "scale_up"}
_SLICES = ("active_slices", "total_slices", "available_slices")
ELASTIC = (Kind.ELASTIC_DOWN, Kind.ELASTIC_UP, Kind.ELASTIC_REINIT)
"""Kinds that only the library's elastic calculator knows."""


def entries(table: EventTable, job: str) -> Iterator[dict[str, Any]]:
    """One entry an event, in the order of the table; times in epoch seconds.

    Kinds that the recorder has no entry for (`user_scheduled`, terminations of launchers) are left out: the library
    reads past them.
    """
    columns = (table.time, table.kind, table.edge, table.step, table.label, table.detail)
    for time, kind, edge, step, label, detail in zip(*(column.tolist() for column in columns), strict=True):
        fact = _fact(time / NS_PER_SECOND, kind, edge, table.labels[label] if label >= 0 else None)
        details = table.details[detail] if detail >= 0 else ()
        if kind == Kind.STEP and edge == Edge.POINT:
            fact["step_count"] = step
        elif kind == Kind.SLICES:
            fact = {**dict(zip(_SLICES, details, strict=True)), "elastic_slice_counts_timestamp": time / NS_PER_SECOND}
        elif kind in (Kind.SAVE, Kind.RESTORE):
            fact = {**dict(details), **({} if step == NO_STEP else {"step": step})}
        if fact:
            yield {"job_name": job, **fact}


def _fact(seconds: float, kind: int, edge: int, label: str | None) -> dict[str, Any]:
    """An event that is one time, with the name of its type where it has one; empty for other kinds."""
    if kind in _POINTS and edge == Edge.POINT:
        return {_POINTS[Kind(kind)]: seconds}
    if kind not in _PHASES or edge not in _SIDES:
        return {}
    fact: dict[str, Any] = {f"{_PHASES[Kind(kind)]}_{_SIDES[Edge(edge)]}": seconds}
    if kind == Kind.CUSTOM:
        fact[_CUSTOM_TYPE] = label or "UNKNOWN"
    elif kind in _ELASTIC_NAMES:
        fact[_ELASTIC_TYPE] = label or _ELASTIC_NAMES[Kind(kind)]
    return fact


MODULE = "ml_goodput_measurement"
NAME = "ml-goodput-measurement"
_WORKER = "goodput_cli.compat.library_worker"


@dataclass(frozen=True)
class LibraryAnswer:
    """What the reference library answers about a job."""

    version: str
    """Its version."""
    failed: str | None
    """Why it does not answer, as it says it; None where it does."""
    total_ns: int | None
    """The time that its percentages are of; None where it does not answer."""
    goodput_percent: float | None
    """As it says it; None where it does not answer."""
    amounts: dict[CategoryKey, int]
    """ns of each category that it reports, `productive` among them, rounded from its seconds; empty where it does not
    answer."""
    disruptions: int | None
    """How many it counts; None where it does not answer."""
    last_step: int | None
    """The last step that it saw; None where it does not answer."""


def require_library() -> None:
    """Raise UsageError where the library is not installed."""
    if find_spec(MODULE) is None:
        raise UsageError(f"the reference library {NAME} is not installed; install it with {to_install('reconcile')}")


def ask_library(table: EventTable, job: str, asked_at_ns: int, timeout: float) -> LibraryAnswer:
    """The library's cumulative answer about a job whose events are given in order of time.

    asked_at_ns: when it is asked; a job without an end is measured up to then. timeout: seconds; GoodputError when
    they are over, and when the process breaks down. What the library itself raises is an answer.
    """
    elastic = any(bool((table.kind == kind).any()) for kind in ELASTIC)
    question = {"job": job, "elastic": elastic, "asked_at": asked_at_ns / NS_PER_SECOND}
    lines = (json.dumps(line) for line in (question, *entries(table, job)))
    return answer_of(json.loads(_run(lines, timeout)))


def _run(lines: Iterable[str], timeout: float) -> str:
    """Feed the process from a thread, so that the wait for its answer can be timed, and end it whatever happens."""
    command = [sys.executable, "-m", _WORKER]
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    too_late = threading.Event()
    with subprocess.Popen(command, text=True, encoding="utf-8", **streams) as process:
        clock = threading.Timer(timeout, _end, (process, too_late))
        clock.daemon = True  # a Ctrl-C may come at any line: no thread keeps the command alive
        feeder = threading.Thread(target=_feed, args=(process, lines), daemon=True)
        try:
            clock.start()
            feeder.start()
            assert process.stdout is not None
            answer = process.stdout.read()
        finally:
            clock.cancel()
            process.kill()
            if feeder.ident is not None:
                feeder.join()
    if too_late.is_set():
        raise GoodputError(f"the reference library has not answered within {timeout:g} s; give it more with --timeout")
    if not answer:
        raise GoodputError("the process of the reference library broke down; perhaps there was not enough memory")
    return str(answer)


def _end(process: subprocess.Popen[str], too_late: threading.Event) -> None:
    too_late.set()
    process.kill()


def _feed(process: subprocess.Popen[str], lines: Iterable[str]) -> None:
    assert process.stdin is not None
    try:
        with process.stdin as stream:
            stream.writelines(f"{line}\n" for line in lines)
    except (OSError, ValueError):
        return  # it has gone; what it said, or did not say, tells


def answer_of(said: dict[str, Any]) -> LibraryAnswer:
    """What the process wrote."""
    if "failed" in said:
        return LibraryAnswer(said["version"], said["failed"], None, None, {}, None, None)
    amounts = {(category, label): _ns(seconds) for category, label, seconds in said["badput_seconds"]}
    return LibraryAnswer(
        version=said["version"],
        failed=None,
        total_ns=_ns(said["total_seconds"]),
        goodput_percent=said["goodput_percent"],
        amounts={(Category.PRODUCTIVE.id, None): _ns(said["productive_seconds"]), **amounts},
        disruptions=said["disruptions"],
        last_step=said["last_step"],
    )


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_SECOND)

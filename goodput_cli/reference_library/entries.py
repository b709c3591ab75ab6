"""Canonical events as the entries that the reference library's recorder writes: what its calculator is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodput_cli.events.schema import NO_STEP, Edge, EventTable, Kind
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

"""Format A: the recorder of ml-goodput-measurement. One fact per line (several are accepted), times in epoch
seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import JOB_NAME, Output, Records
from goodput_cli.events.schema import BETWEEN_STEPS, NONE, REFERENCE_LIBRARY, Edge, Kind
from goodput_cli.events.values import whole_number
from goodput_cli.record.lines import RUN_ID


class _Fact(Struct, frozen=True):
    """A key whose value is the time of an event; label_key: the key of its name, if it has one."""

    time_key: str
    kind: Kind
    edge: Edge
    label_key: str | None = None


def _phase(prefix: str, kind: Kind, label_key: str | None = None) -> tuple[_Fact, _Fact]:
    return (
        _Fact(f"{prefix}_start_time", kind, Edge.BEGIN, label_key),
        _Fact(f"{prefix}_end_time", kind, Edge.END, label_key),
    )


_CUSTOM_TYPE = "custom_badput_event_type"
_ELASTIC_TYPE = "elastic_wait_event_type"
_FACTS = (
    _Fact("job_start_time", Kind.START, Edge.POINT),
    *_phase("tpu_init", Kind.TPU_INIT),
    *_phase("training_prep", Kind.PREP),
    *_phase("data_loading", Kind.DATA),
    *_phase("elastic_wait", Kind.ELASTIC_DOWN, _ELASTIC_TYPE),
    *_phase("elastic_reinit", Kind.ELASTIC_REINIT),
    *_phase("custom_badput_event", Kind.CUSTOM, _CUSTOM_TYPE),
    _Fact("job_end_time", Kind.JOB_END, Edge.POINT),
)
_STEP, _STEP_TIME = "step_count", "step_start_time"
_SLICES = ("active_slices", "total_slices", "available_slices")
_SLICES_TIME = "elastic_slice_counts_timestamp"
_SCALE_UP = "SCALE_UP"
_BETWEEN = "between_steps"
_TIME_KEYS = frozenset(fact.time_key for fact in _FACTS) | {_STEP_TIME, _SLICES_TIME}


class RecorderFormat:
    """Format of the log of ml-goodput-measurement's recorder."""

    name = "recorder"
    other_system = REFERENCE_LIBRARY
    keys = _TIME_KEYS | {JOB_NAME, _STEP, _CUSTOM_TYPE, _ELASTIC_TYPE, *_SLICES, _BETWEEN, RUN_ID}

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Return True for a record with at least one of the times."""
        return not _TIME_KEYS.isdisjoint(record)

    def translate(self, records: Records, output: Output) -> Mask:
        """Add a row per fact, in the order of the table in docs/formats.md."""
        for fact in _FACTS:
            if fact.time_key in records.keys:
                _add_fact(fact, records, output)
        if _STEP_TIME in records.keys:
            _add_steps(records, output)
        if _SLICES_TIME in records.keys:
            _add_slices(records, output)
        return records.every()


def _add_fact(fact: _Fact, records: Records, output: Output) -> None:
    time, good = output.times(records, fact.time_key)
    if fact.label_key is None:
        detail = None
        if (fact.kind, fact.edge) == (Kind.DATA, Edge.BEGIN) and _BETWEEN in records.keys:
            between = np.array([record.get(_BETWEEN) is True for record in records.records], dtype=bool)
            code = output.details.code(BETWEEN_STEPS) if between.any() else NONE
            detail = np.where(between, code, NONE).astype(np.int32)
        output.rows.add(records.origin, good, fact.kind, fact.edge, time, detail=detail)
        return
    label, named = output.names(records, fact.label_key)
    kind: Kind | np.ndarray = fact.kind
    if fact.kind is Kind.ELASTIC_DOWN:
        kind = _elastic_kinds(records, fact.label_key)
    output.rows.add(records.origin, good & named, kind, fact.edge, time, label=label)


def _elastic_kinds(records: Records, key: str) -> np.ndarray:
    """Return int8[n]: a type that contains scale_up, in any case, is a scale-up, any other a slice-down."""
    same = records.same(key)
    if same is not None:
        kind = Kind.ELASTIC_UP if _SCALE_UP in str(same).upper() else Kind.ELASTIC_DOWN
        return np.full(len(records), kind, dtype=np.int8)
    ups = [_SCALE_UP in str(record.get(key, "")).upper() for record in records.records]
    return np.where(ups, Kind.ELASTIC_UP, Kind.ELASTIC_DOWN).astype(np.int8)


def _add_steps(records: Records, output: Output) -> None:
    time, good = output.times(records, _STEP_TIME)
    if _STEP not in records.keys:
        output.report("bad_value", f"`{_STEP_TIME}` without `{_STEP}`; dropped", records, good)
        return
    step, whole = output.whole(records, _STEP)
    output.rows.add(records.origin, good & whole, Kind.STEP, Edge.POINT, time, step=step)


def _add_slices(records: Records, output: Output) -> None:
    time, good = output.times(records, _SLICES_TIME)
    for key in _SLICES:
        if key in records.keys:
            good &= output.whole(records, key)[1]
    counts = [tuple(whole_number(record.get(key)) for key in _SLICES) for record in records.records]
    output.rows.add(records.origin, good, Kind.SLICES, Edge.POINT, time, detail=output.details.codes(counts))

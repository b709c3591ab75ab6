"""What formats share whose lines name their event by a word: its kind, its step and its rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.schema import CHECKPOINT_KINDS, NO_STEP, NONE, Kind
from goodput_cli.events.values import whole_column

RESILIENCY_KINDS = {
    "user_scheduled": Kind.SCHEDULED,
    "job_started": Kind.START,
    "checkpoint_loaded": Kind.LOAD,
    "step_finished": Kind.FINISHED,
    "checkpoint_saved": Kind.SAVED,
    "job_terminated": Kind.TERMINATED,
    "job_crashed": Kind.CRASHED,
    "user_terminated": Kind.USER_TERMINATED,
    "job_finished": Kind.JOB_FINISHED,
}
"""The resiliency library's events: other formats say what theirs mean by these names."""
UNKNOWN = -1
"""The code of a word that is no known event."""
_STEP = "step"
_MAX_RANK = np.iinfo(np.int32).max


def codes(records: Records, key: str, known: Mapping[str, int]) -> NDArray[np.int8]:
    """int8[n]: what the word under `key` stands for, `UNKNOWN` where it is not known; it may be no text at all."""
    same = records.same(key)
    if same is not None:
        return np.full(len(records), _code(known, same), dtype=np.int8)
    return np.array([_code(known, name) for name in records.column(key)], dtype=np.int8)


def _code(known: Mapping[str, int], name: object) -> int:
    return known.get(name, UNKNOWN) if isinstance(name, str) else UNKNOWN


def report_unknown(records: Records, key: str, unknown: Mask, output: Output) -> None:
    """A finding for each word that is not known."""
    lines_of_name: defaultdict[str, list[int]] = defaultdict(list)
    for at in np.flatnonzero(unknown).tolist():
        lines_of_name[output.notes.bounded("unknown_event", str(records.records[at][key]))].append(at)
    for name, places in lines_of_name.items():
        output.report("unknown_event", f"event type {name} is not known; such lines do not count", records, places)


def steps(records: Records, kind: NDArray[np.int8], good: Mask, output: Output) -> I64:
    """int64[n]; clears `good` where a step is wrong, or missing and needed."""
    if _STEP not in records.keys:
        needed = good & np.isin(kind, CHECKPOINT_KINDS)
        output.report("bad_value", f"a checkpoint or step event without `{_STEP}`; dropped", records, needed)
        good &= ~needed
        return np.full(len(records), NO_STEP, dtype=np.int64)
    step, whole = output.whole(records, _STEP)
    good &= whole
    return step


def ranks(records: Records, key: str, output: Output) -> NDArray[np.int32]:
    """int32[n]; a rank that is no rank counts as none: the event itself still says something."""
    if key not in records.keys:
        return np.full(len(records), NONE, dtype=np.int32)
    numerals = records.numerals(key)
    if numerals is not None and numerals.fraction is None:
        rank, whole = numerals.whole, records.every()
    else:
        rank, whole = whole_column(records.column(key))
    fits = whole & (rank >= 0) & (rank <= _MAX_RANK)
    output.report("bad_value", f"`{key}` is no rank from 0; the event counts without it", records, ~fits)
    return np.where(fits, rank, NONE).astype(np.int32)

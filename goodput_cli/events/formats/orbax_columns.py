"""Orbax' lines a whole column at a time, where every value of the group is an ordinary one: no line is judged here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.formats.base import Records
from goodput_cli.events.schema import NO_STEP
from goodput_cli.events.values import MAX_NS, epoch_column, whole_column


@dataclass(frozen=True)
class Saved:
    """n records. time, end, step: int64[n], ns since 1970 UTC and `NO_STEP` where there is none."""

    time: I64
    end: I64
    step: I64


def placed_together(records: Records, start_key: str, duration_key: str, step_key: str) -> Saved | None:
    """The intervals and steps of records that all have a start, a duration and good values; None of any others."""
    if not {start_key, duration_key} <= records.keys:
        return None
    time, started = epoch_column(records.column(start_key))
    span, lasted = epoch_column(records.column(duration_key))  # seconds from 0 up, like epoch seconds
    step, whole = _steps(records, step_key)
    end = time + span
    if not (started.all() and lasted.all() and whole.all() and (end < MAX_NS).all()):
        return None
    return Saved(time, end, step)


def _steps(records: Records, key: str) -> tuple[I64, Mask]:
    if key not in records.keys:
        return np.full(len(records), NO_STEP, dtype=np.int64), records.every()
    return whole_column(records.column(key))


def details_together(records: Records, keys: Sequence[str], plain: Callable[[Any], Any]) -> list[tuple[Any, ...]]:
    """Per record, the plain value of each of the keys, which all records have."""
    if not keys:
        return [()] * len(records)
    return list(zip(*(_values(records.column(key), plain) for key in keys), strict=True))


def _values(values: list[Any], plain: Callable[[Any], Any]) -> list[Any]:
    kinds = set(map(type, values))
    if kinds == {float}:
        numbers = np.array(values)
        if (np.isfinite(numbers) & (np.rint(numbers) != numbers)).all():
            return values  # plain already
    elif kinds in ({str}, {bool}):
        made = {value: plain(value) for value in set(values)}  # mostly one
        return [made[value] for value in values]
    return [plain(value) for value in values]

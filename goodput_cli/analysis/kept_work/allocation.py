"""Number of accelerators allocated to a job: from an option, otherwise from the log, otherwise from its rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from goodput_cli.accounting.training.kept import merged_exclusions
from goodput_cli.analysis.kept_work.records import Rows, WorkRecords, mean_over
from goodput_cli.arrays import F64, I64
from goodput_cli.events.schema import ACCELERATORS, NO_STEP
from goodput_cli.vocabulary.text import exact

LOGGED, COUNTED, RATED = "logged", "differences of a running count", "rate x time"
PER_ACCELERATOR = "tokens_per_second_accelerator"
_DERIVED = "tokens / (time x rate)"
_OTHERWISE = 0.001
"""Relative difference from which an option contradicts the log."""
_WHOLE = 0.02
"""Relative distance within which a number computed from rounded rates counts as a whole one."""
_MOST = 1e9


class AmountPerStep(NamedTuple):
    """An amount per step of each kept row."""

    each: F64
    how: str


class AllocatedAccelerators(NamedTuple):
    """Accelerators that were allocated to the job."""

    each: F64
    """Number by kept row."""
    mean: float
    """Mean over the window."""
    how: str


def accelerators_of(records: WorkRecords, notes: list[str]) -> AllocatedAccelerators | None:
    """Return the number from the option, otherwise from the log."""
    stated, price = records.stated(ACCELERATORS), records.price
    mean = None if stated is None else mean_over(stated, _counted_pieces(records))
    if price is not None:
        if mean is not None:
            note(notes, "--accelerators", price.accelerators, mean)
        return AllocatedAccelerators(
            np.full(len(records.kept.inside), price.accelerators), price.accelerators, "--accelerators"
        )
    return None if stated is None or mean is None else AllocatedAccelerators(records.at(stated), mean, LOGGED)


def worked_out(
    records: WorkRecords, tokens: AmountPerStep | None, held: AllocatedAccelerators | None, notes: list[str]
) -> AllocatedAccelerators | None:
    """Return the allocated accelerators, otherwise the tokens of a step divided by a rate of one accelerator, by
    attempt. Numbers that are not whole are unknown."""
    logged = records.has_any(*ACCELERATORS) or tokens is None or tokens.how == RATED
    rate = None if logged else records.rate(PER_ACCELERATOR)
    if rate is None or tokens is None:
        return held
    each = _rounded_by_attempt(records.kept.attempt, tokens.each / (rate.seconds * rate.value))
    if each is None:
        return held
    found = AllocatedAccelerators(each, _mean_by_attempt(records, each), _DERIVED)
    if held is not None:
        note(notes, "--accelerators", held.mean, found.mean)
        return held
    return found


def _rounded_by_attempt(attempt: I64, found: F64) -> F64 | None:
    """Return the whole number near the values of each attempt, by row.

    An attempt without one gets that of all values, otherwise that of the previous attempt. None if no attempt has one.
    attempt: sorted.
    """
    _, first, place = np.unique(attempt, return_index=True, return_inverse=True)
    of_all, before, numbers = _whole(found), None, list[float | None]()
    for part in np.split(found, first[1:]):
        before = _whole(part) or of_all or before
        numbers.append(before)
    whole = next((one for one in numbers if one is not None), None)
    return None if whole is None else np.array([one or whole for one in numbers])[place]


def _whole(found: F64) -> float | None:
    """Return the whole number above 0 near the median; None without one."""
    middle = float(np.median(found))
    whole = round(middle) if middle < _MOST else 0
    return float(whole) if whole >= 1 and abs(middle - whole) <= _WHOLE * whole else None


def _mean_by_attempt(records: WorkRecords, each: F64) -> float:
    """Return the mean over the window of the value of each kept row, which applies to its whole attempt."""
    attempt, first = np.unique(records.kept.attempt, return_index=True)
    begin = records.timeline.attempts.begin[attempt]
    stated = Rows(attempt, np.full(len(attempt), NO_STEP), begin, each[first])
    return mean_over(stated, _counted_pieces(records)) or float(each[first[0]])


def _counted_pieces(records: WorkRecords) -> Iterator[tuple[int, int]]:
    """Yield the pieces of the window without excluded time."""
    begin, end = records.start_ns, records.end_ns
    for start, stop in merged_exclusions(records.timeline.rules.exclusions):
        if start > begin:
            yield begin, min(start, end)
        begin = max(begin, stop)
        if begin >= end:
            return
    yield begin, end


def note(notes: list[str], option: str, said: float, logged: float, unit: str = "") -> None:
    """Add a note if an option overrides a different value of the log."""
    if abs(said - logged) > _OTHERWISE * logged:
        words = f"{exact(said)} {unit}".rstrip()
        others = logged if logged == round(logged) else float(f"{logged:.6g}")
        notes.append(f"{option} is used ({words}); the log contains {exact(others)}")

"""How many accelerators a job held, as far as anybody says: an option, else the log, else its rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from goodput_cli.accounting.training.kept import merged_exclusions
from goodput_cli.analysis.work_records import WorkRecords, mean_over
from goodput_cli.arrays import F64
from goodput_cli.events.schema import ACCELERATORS
from goodput_cli.vocabulary.text import exact

LOGGED, COUNTED, RATED = "logged", "differences of a running count", "rate x time"
PER_ACCELERATOR = "tokens_per_second_accelerator"
_DERIVED = "tokens / (time x rate)"
_OTHERWISE = 0.001
"""What a person says differs from the log where it is farther from it than by this share."""
_WHOLE = 0.02
"""A number that was worked out from rounded rates is so near to a whole one."""
_MOST = 1e9


class Found(NamedTuple):
    """An amount of one step of each kept row."""

    each: F64
    how: str


class Held(NamedTuple):
    """Accelerators that the job held."""

    each: F64
    """By kept row."""
    mean: float
    """Over the window."""
    how: str


def accelerators_of(records: WorkRecords, notes: list[str]) -> Held | None:
    """Those that a person says, else the log."""
    stated, price = records.stated(ACCELERATORS), records.price
    mean = None if stated is None else mean_over(stated, _counted_pieces(records))
    if price is not None:
        if mean is not None:
            note(notes, "--accelerators", price.accelerators, mean)
        return Held(np.full(len(records.kept.inside), price.accelerators), price.accelerators, "--accelerators")
    return None if stated is None or mean is None else Held(records.at(stated), mean, LOGGED)


def worked_out(records: WorkRecords, tokens: Found | None, held: Held | None, notes: list[str]) -> Held | None:
    """What is held; else from tokens of a step and a rate of one accelerator: a whole number, or it is not known."""
    logged = records.has(*ACCELERATORS) or tokens is None or tokens.how == RATED
    rate = None if logged else records.rate(PER_ACCELERATOR)
    if rate is None or tokens is None:
        return held
    found = float(np.median(tokens.each / (rate.seconds * rate.value)))
    whole = round(found) if found < _MOST else 0
    if whole < 1 or abs(found - whole) > _WHOLE * whole:
        return held
    if held is not None:
        note(notes, "--accelerators", held.mean, whole)
        return held
    return Held(np.full(len(tokens.each), float(whole)), float(whole), _DERIVED)


def _counted_pieces(records: WorkRecords) -> Iterator[tuple[int, int]]:
    """The window without what is excluded, piece by piece."""
    begin, end = records.start_ns, records.end_ns
    for start, stop in merged_exclusions(records.timeline.rules.exclusions):
        if start > begin:
            yield begin, min(start, end)
        begin = max(begin, stop)
        if begin >= end:
            return
    yield begin, end


def note(notes: list[str], option: str, said: float, logged: float, unit: str = "") -> None:
    """That an option won, where the log says otherwise."""
    if abs(said - logged) > _OTHERWISE * logged:
        words = f"{exact(said)} {unit}".rstrip()
        others = logged if logged == round(logged) else float(f"{logged:.6g}")
        notes.append(f"{option} counts ({words}); the log says {exact(others)}")

"""Lines `phases` of goodput's recorder: the time by phase of a rank, and what the job worked on (docs/record.md).

They make no row: nothing of them moves the ledger. What cannot be is left out, counted and told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.inside import (
    LONGEST_NAME,
    LONGEST_NS,
    MOST_PHASES,
    MOST_RANKS,
    NOT_LOGGED,
    PhaseName,
    is_too_long,
    safe_name,
)
from goodput_cli.events.recorded_steps import LifeOfRank, StepRecords
from goodput_cli.events.text.log_lines import MAX_STEP
from goodput_cli.events.values import number
from goodput_cli.record.native import FIRST_STEP, PHASE_PREFIX, RANK, RUN_ID, STEP, STEP_SECONDS, STEPS, WORK
from goodput_cli.record.step_times import WITHIN
from goodput_cli.vocabulary.when import NS_PER_SECOND

_CODE = "bad_phase"
_HOST = "host"
_MOST_WORK = 1e300


def read_phases(records: Records, rows: Rows, time: I64, output: Output) -> None:
    """Collect the records at these rows. time: ns, of all records."""
    step, steps = _whole(records, STEP, 0), _whole(records, STEPS, 1)
    first = _whole(records, FIRST_STEP, 0)
    rank = np.array([_rank(record.get(RANK)) for record in records.records], dtype=np.int64)
    chosen = np.zeros(len(records), dtype=np.bool_)
    chosen[rows] = True
    whole = (step >= 0) & (steps >= 0) & (first >= 0) & (rank >= 0)
    message = f"phases without a good `{STEP}`, `{STEPS}`, `{FIRST_STEP}` or `{RANK}`; dropped"
    output.report(_CODE, message, records, chosen & ~whole)
    chosen &= whole
    took, wrong = _seconds(records, STEP_SECONDS)
    output.report(_CODE, f"`{STEP_SECONDS}` is no time in seconds; left out", records, chosen & wrong)
    phases = [*_phases(records, took, chosen, output)]
    lives: defaultdict[LifeOfRank, list[int]] = defaultdict(list)
    for at in np.flatnonzero(chosen).tolist():
        lives[_life(records, at, int(rank[at]), int(first[at]))].append(at)
    for life, places in lives.items():
        own = np.array(places)
        known = [(name, ns) for name, ns in phases if (ns[own] != NOT_LOGGED).any()]
        counted = [(name, ns) for name, ns in known if output.recorded_steps.knows(life.job, name)]
        if len(counted) < len(known):
            output.report(_CODE, f"more than {MOST_PHASES} names of phases; others are left out", records, places)
        table = [ns[own] for _, ns in counted]
        columns = np.column_stack(table) if table else np.zeros((len(own), 0), dtype=np.int64)
        names = tuple(name for name, _ in counted)
        source = records.origin.source
        of_life = StepRecords(time[own], step[own], steps[own], took[own], names, columns, source)
        output.recorded_steps.add(life, of_life)
    _measure(records, np.flatnonzero(chosen & (rank == 0)), (time, step, steps), output)


def _life(records: Records, at: int, rank: int, first: int) -> LifeOfRank:
    record, origin = records.records[at], records.origin
    run_id, host = record.get(RUN_ID), record.get(_HOST)
    return LifeOfRank(
        int(origin.job[at]),
        rank,
        run_id if isinstance(run_id, str) else "",
        host[:LONGEST_NAME] if isinstance(host, str) else "",
        first,
    )


def _phases(records: Records, took: I64, chosen: Mask, output: Output) -> Iterator[tuple[PhaseName, I64]]:
    """The phases that records name, with their ns in each of them."""
    keys = frozenset().union(*records.records) if records.loose else records.keys
    for key in sorted(one for one in keys if one.startswith(PHASE_PREFIX)):
        ns, wrong = _seconds(records, key)
        long = is_too_long(ns, took)
        which = output.notes.bounded(_CODE, safe_name(key))
        output.report(_CODE, f"`{which}` is no time in seconds; left out", records, chosen & wrong)
        output.report(_CODE, f"`{which}` is longer than its steps can be; left out", records, chosen & long)
        yield _name(key.removeprefix(PHASE_PREFIX)), np.where(long, NOT_LOGGED, ns)


def _name(key: str) -> PhaseName:
    """`data` is a phase, `forward_backward/data` a part of one."""
    outer, _, inner = key.partition(WITHIN)
    if not outer or not inner:
        return PhaseName(safe_name(key), safe_name(key))
    return PhaseName(safe_name(key), safe_name(inner), safe_name(outer))


def _measure(records: Records, rows: Rows, columns: tuple[I64, I64, I64], output: Output) -> None:
    """What the job worked on, as a mean of one step. columns: time, step and how many steps."""
    for name in WORK if len(rows) else ():
        values = [one.get(name) for one in records.records] if name in records.keys or records.loose else []
        for at in rows.tolist() if values else ():
            if values[at] is None:
                continue
            amount = None if isinstance(values[at], bool | str) else number(values[at])
            if amount is None or not 0 <= amount < _MOST_WORK:
                output.report(_CODE, f"`{name}` is no amount of work; left out", records, [at])
                continue
            time, step, steps = (int(column[at]) for column in columns)
            output.measured.add(int(records.origin.job[at]), f"{name}_per_step", time, step, amount / steps)


def _whole(records: Records, key: str, least: int) -> I64:
    """Whole numbers from `least` on; -1 for what is none."""
    if key not in records.keys:
        return np.full(len(records), -1, dtype=np.int64)
    values = records.column(key)
    return np.array([one if type(one) is int and least <= one <= MAX_STEP else -1 for one in values], dtype=np.int64)


def _rank(value: Any) -> int:
    """A rank; -1 for what is none. A record without one is of the process that writes the events."""
    if value is None:
        return 0
    return value if type(value) is int and 0 <= value < MOST_RANKS else -1


def _seconds(records: Records, key: str) -> tuple[I64, Mask]:
    """ns of a key, `NOT_LOGGED` where it is not there or no amount of time; and where it is none."""
    if key not in records.keys and not records.loose:
        return np.full(len(records), NOT_LOGGED, dtype=np.int64), np.zeros(len(records), dtype=np.bool_)
    values = [one.get(key) for one in records.records] if records.loose else records.column(key)
    ns = np.array([_ns(value) for value in values], dtype=np.int64)
    return ns, (ns == NOT_LOGGED) & np.array([value is not None for value in values], dtype=np.bool_)


def _ns(value: Any) -> int:
    seconds = None if isinstance(value, bool | str) else number(value)
    if seconds is None or not 0 <= seconds * NS_PER_SECOND <= LONGEST_NS:
        return NOT_LOGGED
    return round(seconds * NS_PER_SECOND)

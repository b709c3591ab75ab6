"""Lines `phases` of goodput's recorder: the time by phase of a rank, and the amount of work of the job
(docs/record.md).

They add no row and do not affect the ledger. Invalid values are left out, counted and reported.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
    ProcessOfRank,
    ProcessStepRecords,
    is_too_long,
    safe_name,
)
from goodput_cli.events.text.log_lines import MAX_STEP
from goodput_cli.events.values import number
from goodput_cli.record.lines import FIRST_STEP, PHASE_PREFIX, RANK, RUN_ID, STEP, STEP_SECONDS, STEPS, WORK
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
    message = f"phases without a valid `{STEP}`, `{STEPS}`, `{FIRST_STEP}` or `{RANK}`; dropped"
    output.report(_CODE, message, records, chosen & ~whole)
    chosen &= whole
    took, wrong = _seconds(records, STEP_SECONDS)
    output.report(_CODE, f"`{STEP_SECONDS}` is not a duration in seconds; ignored", records, chosen & wrong)
    lives: defaultdict[ProcessOfRank, list[int]] = defaultdict(list)
    for at in np.flatnonzero(chosen).tolist():
        lives[_process_of_rank(records, at, int(rank[at]), int(first[at]))].append(at)
    counted = _counted_keys(records, lives, output)
    for life, places in lives.items():
        own = np.array(places)
        names, table = [], []
        for name, ns in _phases(records, own, took[own], counted[life.job], output):
            if (ns != NOT_LOGGED).any() and output.recorded_steps.counts_name(life.job, name):
                names.append(name)
                table.append(ns)
        columns = np.column_stack(table) if table else np.zeros((len(own), 0), dtype=np.int64)
        source = records.origin.source
        of_life = ProcessStepRecords(time[own], step[own], steps[own], took[own], tuple(names), columns, source)
        output.recorded_steps.add(life, of_life)
    _measure(records, np.flatnonzero(chosen & (rank == 0)), (time, step, steps), output)


def _process_of_rank(records: Records, at: int, rank: int, first: int) -> ProcessOfRank:
    record, origin = records.records[at], records.origin
    run_id, host = record.get(RUN_ID), record.get(_HOST)
    return ProcessOfRank(
        int(origin.job[at]),
        rank,
        run_id if isinstance(run_id, str) else "",
        host[:LONGEST_NAME] if isinstance(host, str) else "",
        first,
    )


def _counted_keys(
    records: Records, lives: Mapping[ProcessOfRank, Sequence[int]], output: Output
) -> dict[int, frozenset[str]]:
    """Return the keys of phases that count, by job: the earlier ones, then the most frequent, at most `MOST_PHASES`.
    The others are reported, and never become columns: each record may have different names."""
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for life, places in lives.items():
        if records.loose:
            for at in places:
                counts[life.job].update(_keys_of(records, at))
        else:  # all records have the same keys
            counts[life.job].update(dict.fromkeys(_keys_of(records, places[0]), len(places)))
    counted: dict[int, frozenset[str]] = {}
    for job, count in counts.items():
        known = [key for key in count if output.recorded_steps.has_name(job, _name_of(key))]
        new = sorted(count.keys() - known, key=lambda key: (-count[key], key))
        room = MOST_PHASES - output.recorded_steps.names_of(job)
        counted[job] = frozenset((*known, *new[:room]))
    message = f"more than {MOST_PHASES} names of phases; only the most frequent are read"
    for life, places in lives.items():
        if len(counted[life.job]) < len(counts[life.job]):
            left_out = [at for at in places if not counted[life.job].issuperset(_keys_of(records, at))]
            output.report(_CODE, message, records, left_out)
    return counted


def _keys_of(records: Records, at: int) -> list[str]:
    """Return the keys of phases in a record."""
    keys = records.records[at] if records.loose else records.keys
    return [key for key in keys if key.startswith(PHASE_PREFIX)]


def _phases(
    records: Records, places: I64, took: I64, counted: frozenset[str], output: Output
) -> Iterator[tuple[PhaseName, I64]]:
    """Yield the phases of some records, with their ns in each of them. took: of these records."""
    found = frozenset().union(*(_keys_of(records, at) for at in (places.tolist() if records.loose else places[:1])))
    for key in sorted(found & counted):
        ns, wrong = _seconds(records, key, places)
        long = is_too_long(ns, took)
        which = output.notes.bounded(_CODE, safe_name(key))
        output.report(_CODE, f"`{which}` is not a duration in seconds; ignored", records, places[wrong].tolist())
        output.report(_CODE, f"`{which}` is longer than its steps; ignored", records, places[long].tolist())
        yield _name_of(key), np.where(long, NOT_LOGGED, ns)


def _name_of(key: str) -> PhaseName:
    """Return the phase of a key: `data` is a phase, `forward_backward/data` a part of one."""
    key = key.removeprefix(PHASE_PREFIX)
    outer, _, inner = key.partition(WITHIN)
    if not outer or not inner:
        return PhaseName(safe_name(key), safe_name(key))
    return PhaseName(safe_name(key), safe_name(inner), safe_name(outer))


def _measure(records: Records, rows: Rows, columns: tuple[I64, I64, I64], output: Output) -> None:
    """Collect the amount of work of the job, as a mean per step. columns: time, step and number of steps."""
    for name in WORK if len(rows) else ():
        values = [one.get(name) for one in records.records] if name in records.keys or records.loose else []
        for at in rows.tolist() if values else ():
            if values[at] is None:
                continue
            amount = None if isinstance(values[at], bool | str) else number(values[at])
            if amount is None or not 0 <= amount < _MOST_WORK:
                output.report(_CODE, f"`{name}` is not an amount of work; ignored", records, [at])
                continue
            time, step, steps = (int(column[at]) for column in columns)
            output.measured.add(int(records.origin.job[at]), f"{name}_per_step", time, step, amount / steps)


def _whole(records: Records, key: str, least: int) -> I64:
    """Return whole numbers from `least` on; -1 for other values."""
    if key not in records.keys:
        return np.full(len(records), -1, dtype=np.int64)
    values = records.column(key)
    return np.array([one if type(one) is int and least <= one <= MAX_STEP else -1 for one in values], dtype=np.int64)


def _rank(value: Any) -> int:
    """Return a rank; -1 for other values. A record without one belongs to the process that writes the events."""
    if value is None:
        return 0
    return value if type(value) is int and 0 <= value < MOST_RANKS else -1


def _seconds(records: Records, key: str, places: I64 | None = None) -> tuple[I64, Mask]:
    """Return ns of a key, `NOT_LOGGED` if it is missing or invalid, and True for invalid values. places: the records to
    read; None: all."""
    chosen = range(len(records)) if places is None else places.tolist()
    if key not in records.keys and not records.loose:
        return np.full(len(chosen), NOT_LOGGED, dtype=np.int64), np.zeros(len(chosen), dtype=np.bool_)
    if places is None and not records.loose:
        values = records.column(key)
    else:  # a column per process would grow with the square of the number of records
        values = [records.records[at].get(key) for at in chosen]
    ns = np.array([_ns(value) for value in values], dtype=np.int64)
    return ns, (ns == NOT_LOGGED) & np.array([value is not None for value in values], dtype=np.bool_)


def _ns(value: Any) -> int:
    seconds = None if isinstance(value, bool | str) else number(value)
    if seconds is None or not 0 <= seconds * NS_PER_SECOND <= LONGEST_NS:
        return NOT_LOGGED
    return round(seconds * NS_PER_SECOND)

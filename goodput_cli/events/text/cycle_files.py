"""Assign NVRx cycles to jobs after all sources have been read, and find their rendezvous (`formats/nvrx.py`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.signs import Cycle, CycleFile, RecoveryEvent, RecoveryPhase
from goodput_cli.events.text.jobs import reading_folder
from goodput_cli.vocabulary.text import file_line
from goodput_cli.vocabulary.when import NS_PER_MINUTE

_SAME_NS = 5 * NS_PER_MINUTE
"""Maximum time between a cycle's begin and a line about the end of the same rendezvous."""
MOST_NODES = 2_000_000
"""Maximum number of node names in all cycles."""


def cycles_of(
    files: Iterable[CycleFile],
    columns: Mapping[str, NDArray[Any]],
    jobs: Sequence[str],
    names: Sequence[str],
    notes: DiagnosticCollector,
) -> tuple[Cycle, ...]:
    """Return the cycles of all jobs, each as written last, in order of time. columns: of all events, which show the
    jobs of each folder. jobs, names: of jobs and sources, by code."""
    last: dict[tuple[str, str, int, int], CycleFile] = {}
    homes = _homes(columns, jobs, names)
    kept = 0
    for one in sorted(files, key=lambda file: (names[file.source], file.line)):
        job = _job_of(one, homes, names)
        if not job:
            _note_alone(one, bool(homes), notes)
            continue
        key = (job, one.cycle.allocation, one.cycle.attempt, one.cycle.number)
        if key not in last or last[key].generation <= one.generation:
            last[key] = one
    found: list[Cycle] = []
    for (job, *_), one in last.items():
        kept += len(one.cycle.active) + len(one.cycle.standby)
        if kept > MOST_NODES:
            message = f"cycles of NVRx beyond the {MOST_NODES:,} names of nodes that are kept"
            notes.add("signs_left_out", message, one.source, [one.line])
            break
        found.append(one.cycle.of_job(job, file_line(names[one.source], one.line)))
    return tuple(sorted(found, key=lambda cycle: (cycle.begin, cycle.job, cycle.where)))


def _homes(
    columns: Mapping[str, NDArray[Any]], jobs: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, set[str]]]:
    """Return the jobs by folder, each with the names of its logs."""
    homes: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    pairs = np.unique(np.stack((columns["source"], columns["job"])).astype(np.int64), axis=1).T.tolist()
    for source, job in pairs:
        homes[reading_folder(names[source])][jobs[job]].add(names[source])
    return {folder: dict(found) for folder, found in homes.items()}


def _job_of(one: CycleFile, homes: Mapping[str, Mapping[str, Collection[str]]], names: Sequence[str]) -> str:
    """Return the job of a cycle: the only one of its folder or of the log, otherwise the only one with its number;
    empty if unknown."""
    every = {job: some for of_folder in homes.values() for job, some in of_folder.items()}
    for jobs in (homes.get(reading_folder(names[one.source]), {}), every):
        if len(jobs) == 1:
            return next(iter(jobs))
        number = one.cycle.allocation
        named = [job for job, files in jobs.items() if number and any(number in name for name in (job, *files))]
        if len(named) == 1:
            return named[0]
    return ""


def _note_alone(one: CycleFile, others: bool, notes: DiagnosticCollector) -> None:
    log = one.log.replace("\\", "/").rpartition("/")[2]
    shown = f", such as {notes.bounded('cycles_alone', log)}" if log else ""
    why = "no job of the log has its directory or its number" if others else "contains no steps"
    message = f"an NVRx cycle_info file lists the nodes of a cycle, but {why}: pass the log of its job as well"
    notes.add("cycles_alone", f"{message}{shown}", one.source, [one.line])


def signs_of_cycles(cycles: Iterable[Cycle], signs: Iterable[RecoveryEvent]) -> list[RecoveryEvent]:
    """Return the end of each rendezvous that no line contains: the begin of the cycle after it."""
    told: defaultdict[tuple[str, object], list[int]] = defaultdict(list)
    for sign in signs:
        if sign.point is RecoveryPhase.RENDEZVOUS_DONE:
            told[sign.job, sign.facts.get("cycle")].append(sign.time)
    return [
        RecoveryEvent(
            one.job, RecoveryPhase.RENDEZVOUS_DONE, one.begin, one.where,
            facts={"cycle": one.number, **({"by": "launcher"} if one.number else {})},
        )
        for one in cycles
        if not any(abs(time - one.begin) < _SAME_NS for time in told[one.job, one.number])
    ]  # fmt: skip

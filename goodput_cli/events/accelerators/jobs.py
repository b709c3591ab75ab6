"""Assignment of device samples: the job, host and clock of each file next to a log."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.accelerators.clock import activity_of, clock_of_samples
from goodput_cli.events.accelerators.samples import MOST_DEVICES, DeviceCollector, DeviceSamples
from goodput_cli.events.capability import CollectedInputs
from goodput_cli.events.neighbor_jobs import job_of_source, jobs_of_sources
from goodput_cli.events.schema import EventTable
from goodput_cli.vocabulary.text import duration
from goodput_cli.vocabulary.when import NS_PER_HOUR

_TOOL = re.compile(
    r"(?:^|[-_.])(?:nvidia[-_]?smi|smi|dcgmi?|dmon|gpus?|gpu[-_]?(?:stats?|log|util\w*)|accelerators?|devices?|metrics"
    r"|stats?|logs?|monitor|usage|csv|txt|prometheus|query[-_]range)(?=$|[-_.])",
    re.IGNORECASE,
)
"""Words of file names that name a tool, not a host."""
_MOST_COUNTED = 1000
_NO_JOB = "accelerator samples next to logs of several jobs, or of none: their job is unknown; ignored"


def device_tables(inputs: CollectedInputs) -> tuple[DeviceSamples, ...]:
    """Return all samples with their jobs, hosts and UTC times."""
    table, notes, collected = inputs.table, inputs.notes, inputs.parts
    assert isinstance(collected, DeviceCollector)
    sources, by_source = table.sources, jobs_of_sources(table)
    for source in collected.naive:
        if not inputs.has_zone(sources[source]):
            message = f"timestamps without a zone are read as {inputs.zone}; --timezone sets their zone"
            notes.add("naive_timestamps", message, source, [1])
    if collected.left_out:
        words = f"samples of more than {MOST_DEVICES:,} devices; ignored"
        notes.add("bad_sample", words, collected.sources[-1], [1] * min(collected.left_out, _MOST_COUNTED))
    homes = {code: job_of_source(code, sources, by_source) for code in collected.sources}

    said = set[int]()

    def job_of(source: int, run: str) -> str | None:
        found = inputs.jobs_of_runs.get(run) or homes.get(source)
        if found is None and source not in said:
            said.add(source)
            notes.add("devices_of_no_job", _NO_JOB, source, [1])
        return found

    clocks = {code: _column_conversion(inputs.clock_of(sources[code])) for code in collected.naive}
    beside = {code: job for code, job in homes.items() if job is not None and not by_source.get(code)}
    ahead = _offsets(collected, table, beside, clocks, notes, may_move=inputs.may_move)
    for source, reason in collected.refused.items():
        notes.add("unusable_samples", reason, source, [1])
    return collected.tables(job_of, _hosts(sorted(collected.by_name), sources), clocks, ahead)


def _offsets(
    collected: DeviceCollector,
    table: EventTable,
    beside: Mapping[int, str],
    clocks: Mapping[int, Callable[[I64], I64]],
    notes: DiagnosticCollector,
    *,
    may_move: bool,
) -> dict[int, int]:
    """Return by how many ns the samples of each source are ahead of the log of its job. Refuse sources whose offset is
    inconclusive. beside: the job of each source that contains no event."""
    found: dict[int, int] = {}
    of_job = {job: activity_of(table, table.jobs.index(job)) for job in set(beside.values())}
    activities = {source: known for source, job in beside.items() if (known := of_job[job]) is not None}
    for source, series in collected.busy_by_source(activities, clocks).items() if activities else ():
        clock = clock_of_samples(activities[source], series)
        by, is_ahead = duration(abs(clock.ahead_ns)), clock.ahead_ns > 0
        off = f"{by} {'ahead of' if is_ahead else 'behind'} the log's"
        if clock.ahead_ns and may_move:
            found[source] = clock.ahead_ns
            message = (
                f"the clock of accelerator samples is {off}, judging by when devices were busy: they are shifted {by} "
                f"{'back' if is_ahead else 'forward'}"
            )
            notes.add("device_clock", message, source, [1])
        elif clock.ahead_ns or clock.unclear:
            other = f"their clock is {off}" if clock.ahead_ns else "several clock offsets fit"
            collected.refused[source] = f"accelerator samples do not match the log: {other}; ignored"
        elif not clock.overlaps:
            message = "accelerator samples are outside the job's time; ignored"
            notes.add("device_clock", message, source, [1])
    return found


def _hosts(codes: Sequence[int], sources: Sequence[str]) -> dict[int, str]:
    """Return the host of each file: the rest of its name without the tool's, otherwise its folder's if there are
    several."""
    found: dict[int, str] = {}
    for code in codes:
        folder, _, name = sources[code].replace("\\", "/").rpartition("/")
        stem = _TOOL.sub("", name.removesuffix(".gz").rpartition(".")[0] or name).strip("-_. ")
        if stem and not re.fullmatch(r"[\d\-_.T:]+", stem):
            found[code] = stem
        elif len(codes) > 1:
            found[code] = folder.rpartition("/")[2]
    return found


def _column_conversion(from_local: Callable[[int], int]) -> Callable[[I64], I64]:
    """Return the conversion for a whole column: zone changes happen at whole quarters of an hour only."""

    def of(local: I64) -> I64:
        quarter = NS_PER_HOUR // 4
        each, which = np.unique(local // quarter, return_inverse=True)
        ahead = np.array([one * quarter - from_local(one * quarter) for one in each.tolist()], dtype=np.int64)
        return np.asarray(local - ahead[which], dtype=np.int64)

    return of

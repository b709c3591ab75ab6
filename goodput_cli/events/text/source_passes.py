"""Prepare the log lines of all sources until each has a time (days, neighbors, counters, clocks), and find which logs
keep their stretches: those whose records are compared with nothing but the records next to them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from goodput_cli.events.formats.base import RUNS
from goodput_cli.events.tensorboard import folder_of
from goodput_cli.events.text.activity import longest_waits
from goodput_cli.events.text.allocation_clock import clocks_of_tables, move_rows, with_evidence_moved
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.counted_steps import by_elapsed, counted_steps
from goodput_cli.events.text.evidence_times import has_events
from goodput_cli.events.text.folders import stem_of
from goodput_cli.events.text.infer_times import InferredTimes, infer_times
from goodput_cli.events.text.line_timestamps import have_one_fraction, without_invented_fraction
from goodput_cli.events.text.log_lines import EventType, LogLine, Running, formats_of
from goodput_cli.events.text.neighbor_files import (
    completed,
    of_their_programs,
    scalars_with_text,
    times_of_neighbors,
    with_traces,
)
from goodput_cli.events.text.programs import launcher, mllog
from goodput_cli.events.text.programs.bar_records import as_records, first_epoch
from goodput_cli.events.text.programs.launcher import SACCT
from goodput_cli.events.text.programs.megatron import JOINT_FORMATS
from goodput_cli.events.text.programs.megatron import NAME as MEGATRON
from goodput_cli.events.text.programs.progress_bars import (
    bar_of,
    names_trainer,
    thinned,
    with_counting_names,
    with_totals,
    without_unnamed_states,
)
from goodput_cli.events.text.programs.runs import RUN_LINES
from goodput_cli.events.text.programs.stages import with_stages, without_stages_alone
from goodput_cli.events.text.source_clocks import local_clock, on_days, zones_of
from goodput_cli.events.text.stretches import (
    apart_from_lines,
    expanded,
    has_stretches,
    placed_stretches,
    split_at_lines,
)
from goodput_cli.events.text.text_log import TextLog, note_damage
from goodput_cli.vocabulary.when import NS_PER_SECOND

if TYPE_CHECKING:
    from goodput_cli.events.reading_options import ReadingOptions


_OF_OTHERS = (SACCT, mllog.NAME, RUNS, RUN_LINES)
"""Formats whose lines are compared with records of steps of others."""


def with_stretches(sources: Mapping[int, CollectedSource], is_text: bool) -> dict[int, CollectedSource]:
    """Return sources without the stretches whose records are compared with other lines than those next to them.

    is_text: whether nothing but text contains events.
    """
    keep = is_text and not any(_is_compared_with_text(one) for one in sources.values())
    return {code: _with_stretches(one, keep) for code, one in sources.items()}


def _with_stretches(source: CollectedSource, keep: bool) -> CollectedSource:
    if not has_stretches(source.log_lines):
        return source
    source = replace(source, log_lines=[_as_read(one) for one in source.log_lines])
    if keep and _keeps_stretches(source):
        return replace(source, log_lines=apart_from_lines(source.log_lines, [one.line for one in source.seen]))
    return replace(source, log_lines=expanded(source.log_lines))


def _as_read(log_line: LogLine) -> LogLine:
    """Return a log line whose stretch contains nothing that its lines do not: a growing log is settled again."""
    inner = log_line.inner
    if inner is None or not inner.event.usual:
        return log_line
    return replace(log_line, inner=replace(inner, step_time=None))


def _is_compared_with_text(source: CollectedSource) -> bool:
    """Return True if records of other sources are compared with what a source contains."""
    if source.events or source.tracked or source.processes:
        return True
    events = [one.event for one in source.log_lines if one.event is not None]
    # a rank of Megatron without iterations borrows the times of those of the last rank
    return any(one.format == MEGATRON for one in events) and not any(one.type is EventType.STEP for one in events)


def _keeps_stretches(source: CollectedSource) -> bool:
    """Return True if one format, with timestamps, counts steps, and no other line is about these."""
    events = [one.event for one in source.log_lines if one.event is not None]
    if len({one.format for one in events if one.type is EventType.STEP}) != 1:
        return False
    if _has_one_fraction(source.log_lines):
        return False
    if any(_is_counted(one.running) or one.format in _OF_OTHERS or one.type is EventType.STAGE for one in events):
        return False
    # Megatron counts its first iteration twice, at a distance that its arguments name
    interval = next((one.job for one in events if one.name == "log_interval"), "")
    return not any(bar_of(one) is not None or _is_compared(one, interval) for one in source.log_lines)


def _is_counted(running: Running | None) -> bool:
    """Return True if the step or time of a line depends on other lines."""
    return running is not None and running != Running(running.epoch or 0, running.of)


def _is_compared(log_line: LogLine, interval: str) -> bool:
    inner = log_line.inner
    return inner is not None and (inner.event.common or str(inner.stride + 1) == interval)


def _has_one_fraction(log_lines: list[LogLine]) -> bool:
    """Return True if the fractions of seconds may be invented."""
    times = [one.stamp.ns for one in log_lines if one.stamp is not None]
    return have_one_fraction(times) and times[0] % NS_PER_SECOND != 0


_NO_TIME = (
    "a trainer's metrics without timestamps; pass its TensorBoard directory instead (runs/), or its "
    "output with the progress bars"
)


def sort_lines(log: TextLog) -> None:
    """Sort the lines of each source by number: JSON records were grouped by their keys. Split columns where another
    line is among their lines."""
    for one in log.every.values():
        one.log_lines.sort(key=lambda log_line: log_line.line)
        one.log_lines = split_at_lines(one.log_lines)


def drop_states_at_borders(log: TextLog) -> None:
    """Drop states of bars that were kept only because a block of lines ended there."""
    for code, one in log.every.items():
        if one.blocks > 1:
            kept = [log_line for _, log_line in thinned(list(enumerate(one.log_lines)))]
            log.every[code] = replace(one, log_lines=kept)


def drop_ambiguous_lines(log: TextLog) -> None:
    """Drop lines that several programs may print, without a line in the folder that only one of them prints."""
    log.every = of_their_programs(log.every, log.names)


def add_traces(log: TextLog) -> None:
    """Add the events of torchtitan traces, for each launch those of its lowest rank."""
    log.every = with_traces(log.every, log.names)


def add_days(log: TextLog) -> None:
    """Give times of day their day: from dated lines next to them, otherwise from the order of the lines."""
    log.every = {code: on_days(code, one, log.hints, log.output) for code, one in log.every.items()}


def drop_tracker_outputs(log: TextLog) -> None:
    """Drop the output of Weights & Biases runs that are read themselves."""
    if any(one.tracked for one in log.every.values()):
        from goodput_cli.events.trackers.wandb import without_outputs  # imported late: few logs are from trackers

        log.every = without_outputs(log.every, log.names)


def drop_stages_alone(log: TextLog) -> None:
    """Drop lines that announce a stage of training, such as a fold, from sources without another event."""
    log.every = {code: replace(one, log_lines=without_stages_alone(one.log_lines)) for code, one in log.every.items()}


def expand_columns(log: TextLog) -> None:
    """Turn columns of step records into lines where a record is compared with more than its neighbors."""
    log.every = with_stretches(log.every, is_text=not len(log.recorded["time"]))
    log.sources = {code: one for code, one in log.every.items() if has_events(one)}


def read_event_files(log: TextLog) -> None:
    """Read steps from event files of TensorBoard, all files of a job by one tag; set ML Diagnostics runs apart."""
    of_event_files = _lines_of_event_files(log)
    log.texts = {
        code: replace(
            source, log_lines=[one for one in of_event_files.get(code, source.log_lines) if not is_of_run(one)]
        )
        for code, source in log.sources.items()
    }


def is_of_run(log_line: LogLine) -> bool:
    """Return True for a line of an ML Diagnostics run."""
    return log_line.event is not None and log_line.event.format == RUNS


def _lines_of_event_files(log: TextLog) -> dict[int, list[LogLine]]:
    notes = log.output.notes
    folders: defaultdict[str, list[int]] = defaultdict(list)
    for code, source in log.sources.items():
        note_damage(code, source, notes)
        if source.events:
            folders[folder_of(log.names[code])].append(code)
    if not folders:
        return {}
    from goodput_cli.events import tensorboard

    log_lines: dict[int, list[LogLine]] = {}
    for codes in folders.values():
        files = [log.sources[code].events for code in codes]
        tags = tensorboard.step_tags(files, log.hints.tensorboard_tag)
        from_0 = log.hints.tensorboard_tag is None and tensorboard.steps_count_from_0(files, tags)
        for code, events, tag in zip(codes, files, tags, strict=True):
            log_lines[code] = tensorboard.marks_of(events, log.names[code], tag, from_0)
            if tag is not None:
                shown = notes.bounded("step_tag", tag)
                message = f"steps come from the scalar {shown}; --tensorboard-tag selects another"
                notes.add("step_tag", message, code, [1])
    return log_lines


def complete_from_neighbors(log: TextLog) -> None:
    """Take ends and iterations from files of the same run; drop scalars without times next to its text."""
    second = scalars_with_text(log.texts, log.names)
    for code in second:
        message = "scalars without a time of day, next to the log output of their run: not read"
        log.output.notes.add("other_output", message, code, [], (), len(log.texts[code].log_lines))
    log.texts = {code: one for code, one in completed(log.texts, log.names).items() if code not in second}


def count_steps(log: TextLog) -> None:
    """Number the steps: of epochs and bars from the first on, of programs that log none from their lines."""
    every = log.texts.values()
    for source in every:
        source.log_lines = with_counting_names(without_unnamed_states(with_totals(source.log_lines)))
    trainers = {stem_of(log.names[code]) for code, one in log.texts.items() if names_trainer(one.log_lines)}
    first = first_epoch(source.log_lines for source in every)
    for code, source in log.texts.items():
        read = source.log_lines
        source.log_lines = _counted(read, stem_of(log.names[code]) in trainers, first, log.hints)
        if read and not source.log_lines and not source.noise:
            log.output.notes.add("no_time_in_log", _NO_TIME, code, [read[0].line], (), len(read))


def _counted(log_lines: list[LogLine], of_trainer: bool, first: int, hints: ReadingOptions) -> list[LogLine]:
    """Return the log lines of a text in order of time, without those that better ones replace. first: number of the
    first epoch of bars."""
    if any(log_line.entry >= 0 for log_line in log_lines):  # Entries may be in any order.
        log_lines = sorted(
            log_lines, key=lambda log_line: (0 if log_line.stamp is None else log_line.stamp.ns, log_line.line)
        )
    elif any(b.line < a.line for a, b in pairwise(log_lines)):  # Records are grouped by their keys.
        log_lines = sorted(log_lines, key=lambda log_line: log_line.line)
    stamped = [(log_line, log_line.stamp) for log_line in log_lines if log_line.stamp is not None]
    whole = without_invented_fraction([stamp for _, stamp in stamped])
    for (log_line, _), stamp in zip(stamped, whole, strict=True):
        log_line.stamp = stamp
    records = as_records(counted_steps(launcher.next_jobs(mllog.alone(log_lines))), of_trainer, first)
    log_lines = longest_waits(with_stages(records))
    own_clock = hints.mapping and hints.mappings.has_own_clock(formats_of(log_lines))
    return [log_line for log_line in log_lines if log_line.event is not None] if own_clock else log_lines


def set_times(log: TextLog) -> None:
    """Give each line a time: logged, otherwise counted from durations, otherwise between two logged times."""
    log.zones = zones_of(log.sources, log.names) if log.output.zones is not None else {}
    near = times_of_neighbors(log.sources, log.names)
    log.times = {code: _with_times(log, code, source, near.get(code, ())) for code, source in log.texts.items()}


def _with_times(log: TextLog, code: int, source: CollectedSource, near: Sequence[int]) -> InferredTimes:
    hints = log.hints
    local, has_zone = local_clock(source.log_lines, hints, log.output, log.zones.get(folder_of(log.names[code])))
    when = hints.clock_start
    start = None if when is None else when.value if when.kind == "instant" else local(when.value)
    source.log_lines = placed_stretches(source.log_lines, local)
    modified = source.modified_ns or hints.now_ns
    found = infer_times(source.log_lines, modified, hints.year, local, JOINT_FORMATS, near, start)
    found = replace(found, anew=by_elapsed(source.log_lines))
    return replace(found, naive=()) if has_zone else found


def move_scheduler_rows(log: TextLog) -> None:
    """Move scheduler rows into the zone of the text of their allocations, if both show that the zones differ."""
    lines: Mapping[int, list[LogLine]] = {code: one.log_lines for code, one in log.texts.items()}
    log.row_clocks = clocks_of_tables(lines, log.names, log.output.zones is not None)
    for code, clock in log.row_clocks.items():
        log.output.notes.add("allocation_clock", clock.message, code, [clock.line])
        if clock.ahead:
            rows = {id(one): one for one in (*lines[code], *log.events[code])}
            move_rows(rows.values(), clock.ahead)
            log.every[code] = with_evidence_moved(log.every[code], clock.ahead)

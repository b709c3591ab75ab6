"""Complete a text file from other files in its folder: its year, the times of its ends, and the location of its
evaluations and saves. A job may print into many files, one per node or one for errors.

Also find the end of processes that reached the last planned step; a death in any of the files takes precedence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from goodput_cli.events.evidence import UntimedEvidence
from goodput_cli.events.schema import OWN_END
from goodput_cli.events.tensorboard import folder_of
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.folders import launch_of, stem_of
from goodput_cli.events.text.jobs import reading_folder
from goodput_cli.events.text.line_timestamps import Timestamp, Zone, with_year, year_of
from goodput_cli.events.text.log_lines import ENDS, NO_STEP_YET, EventType, LogLine, ParsedEvent, event_of, formats_of
from goodput_cli.events.text.programs import torchtitan
from goodput_cli.events.text.programs.megatron import NAME as MEGATRON
from goodput_cli.events.text.programs.progress_bars import NAME as BARS

if TYPE_CHECKING:
    from goodput_cli.events.text.traces import TracedProcess


@dataclass(frozen=True)
class _Neighbors:
    """Sources by name without ending, and by folder."""

    stem: dict[str, list[int]]
    folder: dict[str, list[int]]

    @classmethod
    def of(cls, codes: Sequence[int], names: Sequence[str]) -> _Neighbors:
        stems: defaultdict[str, list[int]] = defaultdict(list)
        folders: defaultdict[str, list[int]] = defaultdict(list)
        for code in codes:
            stems[stem_of(names[code])].append(code)
            folders[folder_of(names[code])].append(code)
        return cls(stems, folders)


def times_of_neighbors(sources: Mapping[int, CollectedSource], names: Sequence[str]) -> dict[int, list[int]]:
    """Return, for sources without years, the times in the file of the same name with another ending, otherwise in the
    folder: `slurm-812.err` and `slurm-812.out` are of one year."""
    beside = _Neighbors.of(list(sources), names)
    dated: dict[int, list[int]] = {}
    yearless: list[int] = []
    for code, source in sources.items():
        stamps = [log_line.stamp for log_line in source.log_lines if log_line.stamp is not None]
        times = [stamp.ns for stamp in stamps if stamp.zone is not Zone.YEARLESS]
        dated[code] = [min(times), max(times)] if times else []
        if stamps and not times:
            yearless.append(code)
    found: dict[int, list[int]] = {}
    by_stem, by_folder = (
        {key: [ns for other in group for ns in dated[other]] for key, group in groups.items()}
        for groups in (beside.stem, beside.folder)
    )
    for code in yearless:
        found[code] = by_stem[stem_of(names[code])] or by_folder[folder_of(names[code])]
    return found


def completed(sources: Mapping[int, CollectedSource], names: Sequence[str]) -> dict[int, CollectedSource]:
    """Return the sources, completed from files in the same folder."""
    beside = _Neighbors.of(list(sources), names)
    stepping = {
        code for code, source in sources.items() if any(_is(log_line, EventType.STEP) for log_line in source.log_lines)
    }
    found = dict(sources)
    iterations = {
        folder: _iterations(sources[code] for code in group if code in stepping)
        for folder, group in beside.folder.items()
        if not stepping.isdisjoint(group)
    }
    for code, source in sources.items():
        folder = folder_of(names[code])
        if code in stepping or folder not in iterations:
            continue
        same = [sources[one] for one in beside.stem[stem_of(names[code])] if one in stepping]
        log_lines = _with_ends(source.log_lines, same)
        found[code] = replace(source, log_lines=_with_iterations(log_lines, iterations[folder]))
    return found


def _is(log_line: LogLine, what: EventType) -> bool:
    return log_line.event is not None and log_line.event.type is what


def _with_ends(log_lines: Sequence[LogLine], same: Sequence[CollectedSource]) -> list[LogLine]:
    """Set the time of an untimed final end in a file without steps to the end of the file of the same name; drop it if
    there is none, as its time is unknown and another file has an end."""
    last = [source.log_lines[-1].stamp for source in same if source.log_lines[-1].stamp is not None]
    timed = max((log_line.line for log_line in log_lines if _is_end(log_line) and not _is_open(log_line)), default=-1)
    found: list[LogLine] = []
    before: Timestamp | None = None
    for log_line in log_lines:
        before = log_line.stamp or before
        if not _is_open(log_line) or log_line.line < timed:
            found.append(log_line)
        elif last:
            found.append(log_line if _is_after(before, last[0]) else replace(log_line, stamp=last[0]))
    return found


def _is_after(stamp: Timestamp | None, other: Timestamp) -> bool:
    if stamp is not None and stamp.zone is Zone.YEARLESS:
        stamp = with_year(stamp, year_of(other.ns), other.ns)
    return stamp is not None and stamp.ns >= other.ns


def _is_end(log_line: LogLine) -> bool:
    return log_line.event is not None and log_line.event.type in ENDS


def _is_open(log_line: LogLine) -> bool:
    """Return True for an end without a time."""
    return _is_end(log_line) and log_line.stamp is None and log_line.event is not None and log_line.event.at is None


def _iterations(sources: Iterable[CollectedSource]) -> dict[int, list[LogLine]]:
    """Return the timed lines of Megatron by iteration."""
    found: defaultdict[int, list[LogLine]] = defaultdict(list)
    for log_line in (log_line for source in sources for log_line in source.log_lines):
        if (
            _is(log_line, EventType.STEP)
            and log_line.event is not None
            and log_line.event.format == MEGATRON
            and log_line.stamp is not None
        ):
            found[log_line.event.step or 0].append(log_line)
    return dict(found)


def _with_iterations(log_lines: Sequence[LogLine], iterations: Mapping[int, Sequence[LogLine]]) -> list[LogLine]:
    """Return the lines of Megatron's first rank, each iteration preceded by a copy of its line from the last rank's
    file: evaluations and saves have no timestamps."""
    numbers = {
        log_line.event.step for log_line in log_lines if _names_iteration(log_line) and log_line.event is not None
    }
    if not numbers:
        return list(log_lines)
    found: list[LogLine] = []
    last: Timestamp | None = None
    current: int | None = None
    for at, log_line in enumerate(log_lines):
        last = log_line.stamp or last
        step = _step_of(log_lines, at)
        if log_line.stamp is None and step is not None and step != current:
            current = step
            found += _borrowed(log_line, iterations.get(step, ()), last)
            last = found[-1].stamp if found and found[-1].borrowed else last
        found.append(log_line)
    return found


def _borrowed(log_line: LogLine, iterations: Sequence[LogLine], last: Timestamp | None) -> list[LogLine]:
    """Return a copy of the first line of an iteration that is not before a time, at the position of a log line."""
    for one in iterations:
        if one.stamp is not None and (last is None or one.stamp.ns >= last.ns):
            return [replace(one, line=log_line.line, borrowed=True)]
    return []


def _names_iteration(log_line: LogLine) -> bool:
    said = log_line.event
    return said is not None and said.format == MEGATRON and said.step is not None and log_line.stamp is None


def _step_of(log_lines: Sequence[LogLine], at: int) -> int | None:
    """Return the iteration of a Megatron line; for a timer, that of the next line if it is an evaluation, otherwise
    that of the line before."""
    said = log_lines[at].event
    if said is None or said.format != MEGATRON:
        return None
    if said.step is not None or said.name != "timer":
        return said.step
    towards = 1 if said.type is EventType.EVAL else -1
    for other in (at + towards, at - towards):
        one = log_lines[other].event if 0 <= other < len(log_lines) else None
        if one is not None and one.format == MEGATRON and one.step is not None:
            return one.step
    return None


LAST_STEP = "last step"
"""Name of an end that is not logged but inferred from the last planned step."""
_DEATHS = ("root", "exit")


def last_steps(
    code: int, meaning: Sequence[LogLine], sources: Mapping[int, CollectedSource], names: Sequence[str]
) -> list[LogLine]:
    """Return an end for each process of a source whose last step is the last planned one (`100/100`), at its last
    activity.

    No end is added if a line contains one, if evidence of a death follows in this or a neighboring file, or if steps
    restart after such a step, as in progress bars of epochs. meaning: log lines of the source. sources: all, with
    evidence.
    """
    if not any(_is_last(one) for one in meaning):
        return []
    ordered = sorted((one for one in meaning if one.event is not None), key=lambda one: one.line)
    stepped = {one.line for one in ordered if _is(one, EventType.STEP)}
    starts = [at for at, one in enumerate(ordered) if at and _starts_process(one, stepped)]
    found: list[LogLine] = []
    for begin, end in pairwise((0, *starts, len(ordered))):
        last = _last_step(ordered[begin:end])
        if last is None:
            continue
        behind = [one for one in ordered[begin:end] if one.line >= last.line]
        until = ordered[end].line if end < len(ordered) else None
        if not has_died_after(code, last.line, until, sources, names):
            quiet = max(one.end for one in behind)
            finished = ParsedEvent(event_of(last).format, EventType.FINISHED, name=LAST_STEP, detail=OWN_END)
            found.append(LogLine(last.line, last.stream, last.stamp, finished, quiet, quiet, last.entry))
    return found


def _is_last(log_line: LogLine) -> bool:
    one = log_line.event
    return one is not None and one.type is EventType.STEP and one.total is not None and one.step == one.total > 1


def _starts_process(log_line: LogLine, stepped: Collection[int]) -> bool:
    """Return True for an explicit start of a process: a progress bar that restarts may be that of the next epoch."""
    one = event_of(log_line)
    of_steps = one.name == NO_STEP_YET or (one.format == BARS and not one.name) or log_line.line in stepped
    return one.type is EventType.START and not of_steps


def _last_step(process: Sequence[LogLine]) -> LogLine | None:
    """Return the last step of a process if, in each stream with steps, it is the last planned one, no step restarts
    after it, and no line contains an end; otherwise None."""
    streams: defaultdict[str, list[LogLine]] = defaultdict(list)
    for one in process:
        if _is(one, EventType.STEP):
            streams[one.stream].append(one)
    reached: list[LogLine] = []
    for steps in streams.values():
        numbers = [
            event_of(one).step or 0 for one in steps[next((at for at, one in enumerate(steps) if _is_last(one)), 0) :]
        ]
        if not _is_last(steps[-1]) or any(later < step for step, later in pairwise(numbers)):
            return None
        reached += [one for one in steps if event_of(one).step == numbers[-1] and _is_last(one)]
    since = min((one.line for one in reached), default=0)
    if not reached or any(event_of(one).type in ENDS for one in process if one.line >= since):
        return None
    return max(reached, key=lambda one: one.line)


def has_died_after(
    code: int, line: int, until: int | None, sources: Mapping[int, CollectedSource], names: Sequence[str]
) -> bool:
    """Return True if evidence of a death follows a line, up to the next process (at line `until`; None for the last
    one), or exists in a neighboring file, unless it belongs to an earlier launch."""
    own = sources[code].seen
    if any(one.line > line and (until is None or one.line < until) for one in own if _reports_death(one)):
        return True
    launch = launch_of(names[code])
    for other, source in sources.items() if until is None else ():
        if other == code or reading_folder(names[other]) != reading_folder(names[code]):
            continue
        if launch and launch_of(names[other]) not in ("", launch):
            continue
        started = max((one.line for one in source.log_lines if _is(one, EventType.START)), default=0)
        if any(one.line > started for one in source.seen if _reports_death(one)):
            return True
    return False


def _reports_death(one: UntimedEvidence) -> bool:
    return one.raised or one.role in _DEATHS


def of_their_programs(sources: Mapping[int, CollectedSource], names: Sequence[str]) -> dict[int, CollectedSource]:
    """Return the sources without ambiguous lines of programs that have no unambiguous line in the folder. The originals
    stay unchanged: such a line may follow."""
    common = {
        code
        for code, one in sources.items()
        if any(log_line.event and log_line.event.common for log_line in one.log_lines)
    }
    if not common:
        return dict(sources)
    shown = {
        (reading_folder(names[code]), log_line.event.format)
        for code, one in sources.items()
        for log_line in one.log_lines
        if log_line.event is not None and not log_line.event.common
    }

    def counts(code: int, log_line: LogLine) -> bool:
        event = log_line.event
        return event is None or not event.common or (reading_folder(names[code]), event.format) in shown

    found = dict(sources)
    for code in common:
        lines = sources[code].log_lines
        kept = (one if counts(code, one) else replace(one, event=None) for one in lines)
        found[code] = replace(sources[code], log_lines=[one for one in kept if one.event or one.stamp])
    return found


_TEXT_OF = {"detectron2": "detectron2-text", "mmengine": "mmengine-text"}
"""Formats of scalars without a time of day, and the formats of the same program's text."""


def scalars_with_text(sources: Mapping[int, CollectedSource], names: Sequence[str]) -> frozenset[int]:
    """Return the sources of scalars in whose folder text of the same program has steps with times."""
    told = {
        (reading_folder(names[code]), one.event.format)
        for code, source in sources.items()
        for one in source.log_lines
        if one.event is not None and one.event.type is EventType.STEP and one.event.format in _TEXT_OF.values()
    }
    formats = {code: formats_of(source.log_lines) for code, source in sources.items()} if told else {}
    return frozenset(
        code
        for code, some in formats.items()
        if some and all((reading_folder(names[code]), _TEXT_OF.get(one, "")) in told for one in some)
    )


def with_traces(sources: Mapping[int, CollectedSource], names: Sequence[str]) -> dict[int, CollectedSource]:
    """Return the sources with the events in torchtitan traces, for each launch those of its lowest rank."""
    folders: defaultdict[str, list[tuple[int, TracedProcess]]] = defaultdict(list)
    for code, one in sources.items():
        folders[reading_folder(names[code])] += [(code, process) for process in one.processes.values()]
    found = dict(sources)
    for of_folder in folders.values():
        for code, log_lines in torchtitan.log_lines_of(of_folder).items() if of_folder else ():
            every = sorted((*found[code].log_lines, *log_lines), key=lambda log_line: log_line.line)
            found[code] = replace(found[code], log_lines=every)
    return found

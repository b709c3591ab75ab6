"""What other files of a folder tell about a file of text: its year, when its ends were, and where its evaluations and
saves lie. One job prints into many files: one a node, or errors apart from output."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from goodput_cli.events.tensorboard import folder_of
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.folders import stem_of
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine
from goodput_cli.events.text.programs.megatron import NAME as MEGATRON
from goodput_cli.events.text.stamps import Stamp, Zone, with_year, year_of


@dataclass(frozen=True)
class _Beside:
    """Sources by their names without an ending, and by folder."""

    stem: dict[str, list[int]]
    folder: dict[str, list[int]]

    @classmethod
    def of(cls, codes: Sequence[int], names: Sequence[str]) -> _Beside:
        stems: defaultdict[str, list[int]] = defaultdict(list)
        folders: defaultdict[str, list[int]] = defaultdict(list)
        for code in codes:
            stems[stem_of(names[code])].append(code)
            folders[folder_of(names[code])].append(code)
        return cls(stems, folders)


def times_beside(sources: Mapping[int, CollectedSource], names: Sequence[str]) -> dict[int, list[int]]:
    """Of sources whose stamps have no year, times of the file of the same name with another ending, else of their
    folder: `slurm-812.err` and `slurm-812.out` are of one year."""
    beside = _Beside.of(list(sources), names)
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
    """The sources, where files of one folder complete one another."""
    beside = _Beside.of(list(sources), names)
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
    """An end without a time in a file without steps, that no end with one follows, is where the file of the same name
    ends; if there is none, nothing says when it was, and another file will."""
    last = [source.log_lines[-1].stamp for source in same if source.log_lines[-1].stamp is not None]
    timed = max((log_line.line for log_line in log_lines if _is_end(log_line) and not _is_open(log_line)), default=-1)
    found: list[LogLine] = []
    before: Stamp | None = None
    for log_line in log_lines:
        before = log_line.stamp or before
        if not _is_open(log_line) or log_line.line < timed:
            found.append(log_line)
        elif last:
            found.append(log_line if _is_behind(before, last[0]) else replace(log_line, stamp=last[0]))
    return found


def _is_behind(stamp: Stamp | None, other: Stamp) -> bool:
    if stamp is not None and stamp.zone is Zone.YEARLESS:
        stamp = with_year(stamp, year_of(other.ns), other.ns)
    return stamp is not None and stamp.ns >= other.ns


def _is_end(log_line: LogLine) -> bool:
    return log_line.event is not None and log_line.event.type in ENDS


def _is_open(log_line: LogLine) -> bool:
    """Whether it is an end without a time."""
    return _is_end(log_line) and log_line.stamp is None and log_line.event is not None and log_line.event.at is None


def _iterations(sources: Iterable[CollectedSource]) -> dict[int, list[LogLine]]:
    """The lines of Megatron with a time about each iteration."""
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
    """The lines of Megatron's first rank, and before those about an iteration the line of it that the last rank wrote
    into another file: evaluations and saves have no time of their own."""
    numbers = {
        log_line.event.step for log_line in log_lines if _names_iteration(log_line) and log_line.event is not None
    }
    if not numbers:
        return list(log_lines)
    found: list[LogLine] = []
    last: Stamp | None = None
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


def _borrowed(log_line: LogLine, iterations: Sequence[LogLine], last: Stamp | None) -> list[LogLine]:
    """The first of some lines of one iteration that is not before a time, in the place of a log line."""
    for one in iterations:
        if one.stamp is not None and (last is None or one.stamp.ns >= last.ns):
            return [replace(one, line=log_line.line, borrowed=True)]
    return []


def _names_iteration(log_line: LogLine) -> bool:
    said = log_line.event
    return said is not None and said.format == MEGATRON and said.step is not None and log_line.stamp is None


def _step_of(log_lines: Sequence[LogLine], at: int) -> int | None:
    """The iteration that a line of Megatron is about: its own number; that of the line behind a timer of an
    evaluation, and that of the line before any other timer."""
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

"""What the other files of a folder tell about a file of text: its year, when its ends were, and where its evaluations
and saves lie. One job prints into many files: one a node, or errors apart from output."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from goodput_cli.events.tensorboard.meaning import folder_of
from goodput_cli.events.text.marks import ENDS, Mark, What
from goodput_cli.events.text.parts import CollectedSource
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


def stem_of(name: str) -> str:
    """The name of a source without its ending: the same of `slurm-812.out` and `slurm-812.err`."""
    return name.removesuffix(".gz").removesuffix(".zst").rpartition(".")[0]


def times_beside(sources: Mapping[int, CollectedSource], names: Sequence[str]) -> dict[int, list[int]]:
    """Of sources whose stamps have no year, times of the file of the same name with another ending, else of their
    folder: `slurm-812.err` and `slurm-812.out` are of one year."""
    beside = _Beside.of(list(sources), names)
    dated: dict[int, list[int]] = {}
    yearless: list[int] = []
    for code, source in sources.items():
        stamps = [mark.stamp for mark in source.marks if mark.stamp is not None]
        times = [stamp.ns for stamp in stamps if stamp.zone is not Zone.YEARLESS]
        dated[code] = [min(times), max(times)] if times else []
        if stamps and not times:
            yearless.append(code)
    found: dict[int, list[int]] = {}
    for code in yearless:
        groups = beside.stem[stem_of(names[code])], beside.folder[folder_of(names[code])]
        own, others = ([ns for other in group for ns in dated[other]] for group in groups)
        found[code] = own or others
    return found


def completed(sources: Mapping[int, CollectedSource], names: Sequence[str]) -> dict[int, CollectedSource]:
    """The sources, where files of one folder complete one another."""
    beside = _Beside.of(list(sources), names)
    stepping = {code for code, source in sources.items() if any(_is(mark, What.STEP) for mark in source.marks)}
    found = dict(sources)
    for code, source in sources.items():
        others = [one for one in beside.folder[folder_of(names[code])] if one in stepping]
        if code in stepping or not others:
            continue
        same = [sources[one] for one in beside.stem[stem_of(names[code])] if one in stepping]
        marks = _with_ends(source.marks, same)
        found[code] = replace(source, marks=_with_iterations(marks, [sources[one] for one in others]))
    return found


def _is(mark: Mark, what: What) -> bool:
    return mark.said is not None and mark.said.what is what


def _with_ends(marks: Sequence[Mark], same: Sequence[CollectedSource]) -> list[Mark]:
    """An end without a time in a file without steps, that no end with one follows, is where the file of the same name
    ends; if there is none, nothing says when it was, and another file will."""
    last = [source.marks[-1].stamp for source in same if source.marks[-1].stamp is not None]
    timed = max((mark.line for mark in marks if _is_end(mark) and not _is_open(mark)), default=-1)
    found: list[Mark] = []
    before: Stamp | None = None
    for mark in marks:
        before = mark.stamp or before
        if not _is_open(mark) or mark.line < timed:
            found.append(mark)
        elif last:
            found.append(mark if _is_behind(before, last[0]) else replace(mark, stamp=last[0]))
    return found


def _is_behind(stamp: Stamp | None, other: Stamp) -> bool:
    if stamp is not None and stamp.zone is Zone.YEARLESS:
        stamp = with_year(stamp, year_of(other.ns), other.ns)
    return stamp is not None and stamp.ns >= other.ns


def _is_end(mark: Mark) -> bool:
    return mark.said is not None and mark.said.what in ENDS


def _is_open(mark: Mark) -> bool:
    """Whether it is an end without a time."""
    return _is_end(mark) and mark.stamp is None and mark.said is not None and mark.said.at is None


def _with_iterations(marks: Sequence[Mark], others: Sequence[CollectedSource]) -> list[Mark]:
    """The lines of Megatron's first rank, and before those about an iteration the line of it that the last rank wrote
    into another file: evaluations and saves have no time of their own."""
    numbers = {mark.said.step for mark in marks if _names_iteration(mark) and mark.said is not None}
    if not numbers:
        return list(marks)
    iterations: defaultdict[int, list[Mark]] = defaultdict(list)
    for mark in (mark for source in others for mark in source.marks):
        if _is(mark, What.STEP) and mark.said is not None and mark.said.format == MEGATRON and mark.stamp is not None:
            iterations[mark.said.step or 0].append(mark)
    found: list[Mark] = []
    last: Stamp | None = None
    current: int | None = None
    for at, mark in enumerate(marks):
        last = mark.stamp or last
        step = _step_of(marks, at)
        if mark.stamp is None and step is not None and step != current:
            current = step
            found += _borrowed(mark, iterations.get(step, ()), last)
            last = found[-1].stamp if found and found[-1].borrowed else last
        found.append(mark)
    return found


def _borrowed(mark: Mark, iterations: Sequence[Mark], last: Stamp | None) -> list[Mark]:
    """The first of some lines of one iteration that is not before a time, in the place of a mark."""
    for one in iterations:
        if one.stamp is not None and (last is None or one.stamp.ns >= last.ns):
            return [replace(one, line=mark.line, borrowed=True)]
    return []


def _names_iteration(mark: Mark) -> bool:
    said = mark.said
    return said is not None and said.format == MEGATRON and said.step is not None and mark.stamp is None


def _step_of(marks: Sequence[Mark], at: int) -> int | None:
    """The iteration that a line of Megatron is about: its own number; that of the line behind a timer of an
    evaluation, and that of the line before any other timer."""
    said = marks[at].said
    if said is None or said.format != MEGATRON:
        return None
    if said.step is not None or said.name != "timer":
        return said.step
    towards = 1 if said.what is What.EVAL else -1
    for other in (at + towards, at - towards):
        one = marks[other].said if 0 <= other < len(marks) else None
        if one is not None and one.format == MEGATRON and one.step is not None:
            return one.step
    return None

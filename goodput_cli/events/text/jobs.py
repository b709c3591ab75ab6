"""Which files of text are one job, and what it is called: text has no job name (docs/formats.md, Jobs of text).

What the other files of a folder tell about a file of text: its year, when its ends were, and where its evaluations
and saves lie. One job prints into many files: one a node, or errors apart from output.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from goodput_cli.events.tensorboard import folder_of
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine
from goodput_cli.events.text.programs.megatron import NAME as MEGATRON
from goodput_cli.events.text.stamps import Stamp, Zone, with_year, year_of
from goodput_cli.sources.blocks import is_event_file
from goodput_cli.sources.layouts import home_of, shared_levels
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_SECOND

_TAIL = re.compile(r"(?:[-_.]?(?:slurm|rank|node|proc|log|out|err|stdout|stderr|attempt|\d))+$", re.IGNORECASE)
_OF_RANK = re.compile(r"(?<![a-z])(?:rank|node|proc|worker|host|gpu|local)", re.IGNORECASE)
_RUN_OF_MMENGINE = re.compile(r"(?P<above>(?:.*/)?)(?P<stamp>\d{8}_\d{6})/(?P<log>\d{8}_\d{6})\.log", re.DOTALL)
"""Each process has a folder, named as its log is."""
_SAYS_NOTHING = frozenset("train training trainer main job run log logs out output stdout stderr console all".split())
"""Names of files, and of folders of logs, that every program may give its own."""
_COUNTER = re.compile(r"[a-z]{0,10}[-_.]?\d+(?:[-_T.]\d+)*", re.IGNORECASE)
"""Names of folders that only count, or say when: `attempt_2`, `20261124_004014`, `node-3`."""
_OVERLAP = 60 * NS_PER_SECOND
_ENDINGS = (".gz", ".zst")
_FEW = 3
"""Fewer steps are at the same times by chance."""
_APART = 14 * NS_PER_DAY
"""So long no job waits to begin from scratch."""


@dataclass(frozen=True)
class TextFile:
    """What is known of a source of text."""

    name: str
    """Of the source."""
    own_job: str
    """The name of the job where the text says it, else ""."""
    begin: int
    end: int
    """ns UTC of its first and last line with a meaning."""
    steps: Mapping[int, int]
    """When (ns UTC) each step was first recorded."""
    allocation: str = ""
    """The number that a scheduler gave the run in it; then `own_job` is what the scheduler calls it."""
    restores: bool = False
    """Whether a checkpoint is restored in it."""
    losses: Mapping[int, float] = field(default_factory=dict)
    """The loss of its first steps, where lines print it that name no rank or node."""


@dataclass(frozen=True)
class Named:
    """The job of each file, and what was assumed."""

    jobs: tuple[str, ...]
    assumed: tuple[str, ...]
    """Names that were made of the names of files and folders."""
    disagreeing: tuple[str, ...]
    """Folders whose files are of different jobs: they overlap, and their steps disagree."""
    alike: tuple[tuple[int, ...], ...] = ()
    """Files of one job that may be of several: their names are unlike, and they record the same steps at the same
    times, as the processes of one job do, and as copies of one job that were started together."""
    unlike: tuple[tuple[int, ...], ...] = ()
    """Files of one job that may be of several: their names differ in numbers alone, and they record the same steps at
    the same times, with other losses: as ranks that print their own do, and runs of a sweep."""
    earlier: Mapping[str, str] = field(default_factory=dict)
    """Jobs whose files are older than those of another in their folder, which began anew: the job of the newest."""


def name_jobs(files: Sequence[TextFile], job_name: str | None, join: bool = False, shared: int | None = None) -> Named:
    """The jobs of files of text. job_name: the one that was asked for, which all text is, unless a file's is it. join:
    whether files of one job are so however far apart they are. shared: how many levels of folders these
    files have in common with others, in other folders."""
    folders: defaultdict[str, list[int]] = defaultdict(list)
    for at, file in enumerate(files):
        folders[beside(file.name)].append(at)
    jobs = [""] * len(files)
    assumed: list[str] = []
    disagreeing: list[str] = []
    alike: list[tuple[int, ...]] = []
    unlike: list[tuple[int, ...]] = []
    earlier: dict[str, str] = {}
    shared = _shared_levels(files, folders) if shared is None else shared
    for folder, rows in folders.items():
        rows = sorted(rows, key=lambda at: bool(files[at].allocation))  # stable: the scheduler's come last
        some = [files[at] for at in rows]
        groups = _with_allocations(some, _told_apart([one for one in some if not one.allocation]))
        if len(groups) > 1 and not all(some[group[-1]].allocation for group in groups):
            disagreeing.append(folder or ".")
        named = _names_of([[some[at] for at in group] for group in groups], folder, shared)
        for group, (name, own) in zip(groups, named, strict=True):
            *older, last = [group] if join else _anew(group, some)
            for run in older:
                old = f"{name}/{_base(some[run[0]].name)}"
                earlier[old] = name
                for at in run:
                    jobs[rows[at]] = old
            group = last
            for at in group:
                jobs[rows[at]] = name
            same = _alike([some[at] for at in group])
            alike += [tuple(rows[group[at]] for at in same)] if same else []
            others = [] if same else _unlike([some[at] for at in group])
            unlike += [tuple(rows[group[at]] for at in others)] if others else []
            if not own:
                assumed.append(name)
    if job_name is not None and job_name not in jobs and not disagreeing:
        return Named((job_name,) * len(files), (), ())
    asked = tuple(alike), tuple(unlike)
    return Named(tuple(jobs), tuple(dict.fromkeys(assumed)), tuple(disagreeing), *asked, earlier)


def _with_allocations(files: Sequence[TextFile], groups: list[list[int]]) -> list[list[int]]:
    """A scheduler's allocation belongs to the text with its number in the name of a file. One without such a file
    belongs where the others of its name are, if that is one place, or to the only text if they are all of one name;
    else they are a job of their own."""
    numbers = [{number for at in group for number in _numbers(files[at].name)} for group in groups]
    homes: defaultdict[str, set[int]] = defaultdict(set)
    astray: list[int] = []
    for at in (at for at, file in enumerate(files) if file.allocation):
        home = next((place for place, found in enumerate(numbers) if files[at].allocation in found), None)
        if home is None:
            astray.append(at)
        else:
            groups[home].append(at)
            homes[files[at].own_job].add(home)
    if len(groups) == 1 and not homes and len({files[at].own_job for at in astray}) == 1:
        homes[files[astray[0]].own_job] = {0}
    own: defaultdict[str, list[int]] = defaultdict(list)
    for at in astray:
        found = homes[files[at].own_job]
        (groups[min(found)] if len(found) == 1 else own[files[at].own_job]).append(at)
    return [*groups, *own.values()]


def _numbers(name: str) -> set[str]:
    return set(re.findall(r"\d+(?:_\d+)?", name.rpartition("/")[2]))


def beside(name: str) -> str:
    """The folder in which what is text in a file is read together with that of other files. name: of the file."""
    if is_event_file(name):
        return folder_of(name)
    home = home_of(name)
    if home is not None:
        return home
    run = _RUN_OF_MMENGINE.fullmatch(name.replace("\\", "/"))
    own = run is not None and run["stamp"] == run["log"]
    return run["above"].rstrip("/") if run is not None and own else name.rpartition("/")[0]


def _names_of(groups: Sequence[Sequence[TextFile]], folder: str, shared: int | None) -> list[tuple[str, bool]]:
    """The names of the jobs of a folder, and whether their text says so. shared: how many levels of it are those of
    other folders too, so that the rest names a job whose file is called as every program may call its own."""
    names = [_name_of(files, folder, len(groups) > 1) for files in groups]
    if shared is not None and len(groups) == 1 and not names[0][1] and names[0][0].lower() in _SAYS_NOTHING:
        return [(_name_of_folder(folder, shared) or names[0][0], False)]
    often = {name for name, count in Counter(names).items() if count > 1 and not name[1]}
    return [(_base(files[0].name), False) if name in often else name for name, files in zip(names, groups, strict=True)]


def _name_of(files: Sequence[TextFile], folder: str, apart: bool) -> tuple[str, bool]:
    """The name of a job, and whether its text says so."""
    own = {file.own_job for file in files if file.own_job and not file.allocation}
    own = own or {file.own_job for file in files if file.own_job and files[0].allocation}
    if len(own) == 1:
        return own.pop(), True
    if all(is_event_file(file.name) for file in files) or (len(files) > 1 and not apart):
        return os.path.basename(os.path.abspath(folder)) or stem_of_text(files[0].name), False
    return stem_of_text(files[0].name), False


def _name_of_folder(folder: str, shared: int) -> str:
    """What tells a folder from others with files of the same names, behind the levels that they share; "" where nothing
    does."""
    parts = (part for part in reversed(folder.split("/")[shared:]) if part.lower() not in _SAYS_NOTHING)
    return next((part for part in parts if part and not _COUNTER.fullmatch(part)), "")


def _shared_levels(files: Sequence[TextFile], folders: Mapping[str, Sequence[int]]) -> int | None:
    """How many levels folders share; None where files lie in one, or a file of one has the steps of a file of another
    at the same times: then both are of nodes of one job."""
    if len(folders) < 2:
        return None
    longest = [max((files[at] for at in rows), key=lambda file: len(file.steps)) for rows in folders.values()]
    most = max(longest, key=lambda file: len(file.steps))
    nodes = any(len(one.steps) >= _FEW and _together(one, most) for one in longest if one is not most)
    return None if nodes else shared_levels(folder.split("/") for folder in folders)


def stem_of_text(name: str) -> str:
    """`train-812.out.gz` -> `train`: what is the same in the names of a job's files. What Slurm calls every output says
    nothing: then the folder counts."""
    base = _base(name)
    plain = _TAIL.sub("", base)
    return plain or os.path.basename(os.path.abspath(beside(name))) or base


def _base(name: str) -> str:
    """`logs/slurm-812.out.gz` -> `slurm-812`."""
    base = name.rpartition("/")[2]
    for ending in _ENDINGS:
        base = base.removesuffix(ending)
    stem, _, ending = base.rpartition(".")
    return stem if stem and ending else base


def _told_apart(files: Sequence[TextFile]) -> list[list[int]]:
    """Files in groups of one job each: those that overlap and disagree are of different ones, and so are those whose
    text names another job."""
    groups: list[_Group] = []
    for at in sorted(range(len(files)), key=lambda at: (files[at].begin, files[at].name)):
        group = next((group for group in groups if group.agrees(files[at])), None)
        if group is None:
            groups.append(group := _Group())
        group.add(at, files[at])
    return [group.places for group in groups]


class _Group:
    """Files of one job, each of which agrees with all others; they come in the order of their begins.

    One that comes is compared with each that it may overlap only where the times of a step differ among them: 16 000
    files of ranks that say the same are no pairs.
    """

    def __init__(self) -> None:
        self.places: list[int] = []
        self._job = ""
        self._open: list[TextFile] = []
        """Those with steps that a later one may overlap."""
        self._first_end = 0
        self._times: dict[int, tuple[int, int]] = {}
        """The earliest and the latest time of each step in those."""
        self._common: set[int] = set()
        """Steps that all of those have."""

    def add(self, at: int, file: TextFile) -> None:
        """One that agrees."""
        self.places.append(at)
        self._job = self._job or file.own_job
        if file.steps:
            self._keep(file)

    def _keep(self, file: TextFile) -> None:
        self._first_end = min(self._first_end, file.end) if self._open else file.end
        self._common = self._common & file.steps.keys() if self._open else set(file.steps)
        self._open.append(file)
        for step, time in file.steps.items():
            low, high = self._times.get(step, (time, time))
            self._times[step] = min(low, time), max(high, time)

    def agrees(self, file: TextFile) -> bool:
        """Whether a file that begins no earlier agrees with all."""
        if self._job and file.own_job and self._job != file.own_job:
            return False
        if not file.steps or not self._open or self._says_the_same(file):
            return True
        if self._first_end - file.begin <= _OVERLAP:
            still, self._open, self._times = self._open, [], {}
            for one in still:
                if one.end - file.begin > _OVERLAP:
                    self._keep(one)
        return all(_agree(file, other) for other in self._open)

    def _says_the_same(self, file: TextFile) -> bool:
        """Whether it has a step that all have, and all of its steps at their time."""
        times = self._times
        return not self._common.isdisjoint(file.steps) and all(
            times[step][1] - _OVERLAP <= time <= times[step][0] + _OVERLAP
            for step, time in file.steps.items()
            if step in times
        )


def _agree(one: TextFile, other: TextFile) -> bool:
    if one.own_job and other.own_job and one.own_job != other.own_job:
        return False
    begin, end = max(one.begin, other.begin), min(one.end, other.end)
    if end - begin <= _OVERLAP or not one.steps or not other.steps:
        return True
    shared = one.steps.keys() & other.steps.keys()
    if shared:
        far = sum(abs(one.steps[step] - other.steps[step]) > _OVERLAP for step in shared)
        return 2 * far <= len(shared)
    inside = [[step for step, time in file.steps.items() if begin <= time <= end] for file in (one, other)]
    if not all(inside):
        return True
    return max(min(inside[0]), min(inside[1])) <= min(max(inside[0]), max(inside[1]))


def _anew(group: list[int], files: Sequence[TextFile]) -> list[list[int]]:
    """The files of one job, run by run: another run begins where no name joins the files, none is written to for two
    weeks, and the next then begin at the first step and restore nothing. Only all that together is no outage."""
    if any(files[at].own_job or files[at].allocation for at in group):
        return [group]
    runs: list[list[int]] = []
    end = 0
    for at in sorted(group, key=lambda at: (files[at].begin, files[at].name)):
        if runs and files[at].begin - end <= _APART:
            runs[-1].append(at)
            end = max(end, files[at].end)
        else:
            runs.append([at])
            end = files[at].end
    found = runs[:1]
    for run in runs[1:]:
        if _begins_anew([files[at] for at in run], [files[at] for at in found[-1]]):
            found.append(run)
        else:
            found[-1] += run
    names = [_base(files[run[0]].name) for run in found]
    return found if len({*names}) == len(names) else [group]


def _begins_anew(run: Sequence[TextFile], before: Sequence[TextFile]) -> bool:
    first, old = ([step for file in some for step in file.steps] for some in (run, before))
    return bool(first and old) and min(first) <= min(old) and not any(file.restores for file in run)


def _alike(files: Sequence[TextFile]) -> list[int]:
    """Which files of a job record most of their steps at the same times as the one of them that has most, though their
    names differ in more than numbers, and no text says what the job is. `rank-0.log` and `rank-1.log` are no question.
    """
    longest: dict[str, int] = {}
    for at, file in enumerate(files):
        if len(file.steps) < _FEW or file.own_job or file.allocation or is_event_file(file.name):
            continue
        stem = stem_of_text(file.name)
        if stem not in longest or len(file.steps) > len(files[longest[stem]].steps):
            longest[stem] = at
    if len(longest) < 2:
        return []
    most = files[max(longest.values(), key=lambda at: len(files[at].steps))]
    same = [at for at in longest.values() if _together(files[at], most)]
    return sorted(same) if len(same) > 1 else []


def _unlike(files: Sequence[TextFile]) -> list[int]:
    """Which files of a job record the steps of the first of them at the same times, with other losses from the first
    steps on, and are of no rank or node by their name."""
    some = [
        at for at, one in enumerate(files)
        if len(one.losses) > 1 and not (one.own_job or one.allocation or _OF_RANK.search(_base(one.name)))
    ]  # fmt: skip
    if len(some) < 2:
        return []
    first = files[some[0]]
    other = [at for at in some[1:] if _together(files[at], first) and _other_losses(files[at], first)]
    return [some[0], *other] if other else []


def _other_losses(one: TextFile, other: TextFile) -> bool:
    """Whether most losses of the same steps differ: runs of a sweep may begin with the same."""
    shared = one.losses.keys() & other.losses.keys()
    return len(shared) > 1 and 2 * sum(one.losses[step] != other.losses[step] for step in shared) >= len(shared)


def _together(one: TextFile, other: TextFile) -> bool:
    """Whether most steps of one are at the same times in another."""
    near = sum(abs(time - other.steps[step]) <= _OVERLAP for step, time in one.steps.items() if step in other.steps)
    return 2 * near > len(one.steps)


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

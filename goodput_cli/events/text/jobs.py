"""Group text files into jobs and name these: text does not contain a job name (docs/formats.md, Jobs of text)."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, nsmallest
from typing import NamedTuple

from goodput_cli.events.tensorboard import folder_of
from goodput_cli.events.text.folders import (
    APART,
    AT_ONCE,
    GENERIC_NAMES,
    FolderOfLogs,
    is_generic,
    job_of_folders,
    jobs_of_folders,
)
from goodput_cli.sources.blocks import is_event_file
from goodput_cli.sources.layouts import home_of, shared_levels

_TAIL = re.compile(r"(?:[-_.]?(?:slurm|rank|node|proc|log|out|err|stdout|stderr|attempt|\d))+$", re.IGNORECASE)
_OF_RANK = re.compile(r"(?<![a-z])(?:rank|node|proc|worker|host|gpu|local)", re.IGNORECASE)
_RUN_OF_MMENGINE = re.compile(r"(?P<above>(?:.*/)?)(?P<stamp>\d{8}_\d{6})/(?P<log>\d{8}_\d{6})\.log", re.DOTALL)
"""Each process has a folder with the same name as its log."""
_TASK = re.compile(r"slurm-(?P<array>\d+)_(?P<task>\d+)")
"""Default name of the output of a Slurm array task."""
_OF_SLURM = re.compile(r"(?<![a-z])slurm[-_.]?(\d+(?:_\d+)?)(?![\d_])", re.IGNORECASE)
"""Job number in the name of an output file."""
_ENDINGS = (".gz", ".zst")
_FEW = 3
"""Fewer steps may be at the same times by chance."""


@dataclass(frozen=True)
class TextFile:
    """Facts about a text source."""

    name: str
    """Name of the source."""
    own_job: str
    """Job name in the text; empty if none."""
    begin: int
    end: int
    """Times of its first and last event, ns UTC."""
    steps: Mapping[int, int]
    """Time (ns UTC) of the first record of each step."""
    allocation: str = ""
    """Scheduler number of the run; then `own_job` is the scheduler's name for it."""
    restores: bool = False
    """True if it contains a restore."""
    losses: Mapping[int, float] = field(default_factory=dict)
    """Loss of its first steps, from lines that name no rank or node."""
    only_ends: bool = False
    """True if it contains nothing but ends of processes: they are those of another file."""
    has_clock: bool = True
    """False if its times are assumed: they count back from the time of the last change."""

    def number_in(self, allocations: Collection[str]) -> str:
        """Return the scheduler's number in the name of its file; empty if none. allocations: numbers in a scheduler's
        table."""
        known = [number for number in numbers_of_file(self.name) if number in allocations]  # There may be very many.
        named = _OF_SLURM.search(_base(self.name))
        return min(known) if known else "" if named is None else named[1]


@dataclass(frozen=True)
class NamedJobs:
    """Job of each file, and the assumptions made."""

    jobs: tuple[str, ...]
    assumed: tuple[str, ...]
    """Names derived from file and folder names."""
    disagreeing: tuple[str, ...]
    """Folders with files of different jobs: they overlap, and their steps disagree."""
    alike: tuple[tuple[int, ...], ...] = ()
    """Files of one job that may be several: their names differ, and they record the same steps at the same times. Both
    processes of one job and copies of a job started together do that."""
    unlike: tuple[tuple[int, ...], ...] = ()
    """Files of one job that may be several: their names differ only in numbers, and they record the same steps at the
    same times with different losses. Both ranks that print their own loss and runs of a sweep do that."""
    earlier: Mapping[str, str] = field(default_factory=dict)
    """Earlier jobs in the folder of a job that began again: the name of the newest, by job."""
    former: Mapping[str, str] = field(default_factory=dict)
    """Names before 0.2, which did not include the folder, by job."""
    asked: tuple[str, ...] = ()
    """Jobs that are read as the requested one, because they had its name before 0.2."""
    own_name: str = ""
    """Name in the text, if it differs from the requested name under which the job is read."""


def name_jobs(
    files: Sequence[TextFile],
    job_name: str | None,
    join: bool = False,
    shared: int | None = None,
    others: Collection[str] = (),
) -> NamedJobs:
    """Assign text files to jobs.

    job_name: the requested job; the text of a single job gets this name, with join all text if no job has it. join:
    files are one job whatever the time between them. shared: number of folder levels that these files share with
    others. others: jobs of sources other than text.
    """
    folders: defaultdict[str, list[int]] = defaultdict(list)
    for at, file in enumerate(files):
        folders[reading_folder(file.name)].append(at)
    naming = _Naming(files, join, _shared_levels(folders) if shared is None else shared, [""] * len(files))
    for folder, rows in folders.items():
        # The scheduler's files come last.
        naming.name_folder(folder, sorted(rows, key=lambda at: bool(files[at].allocation)))
    naming.name_by_folders(job_name)
    if job_name is not None and _takes_name(naming, job_name, others):
        own = next((file.own_job for file in files if file.own_job not in ("", job_name)), "")
        return NamedJobs((job_name,) * len(files), (), (), own_name=own)
    asked = tuple(naming.alike), tuple(naming.unlike)
    assumed = tuple(dict.fromkeys(naming.assumed))
    names = tuple(naming.jobs), assumed, tuple(naming.disagreeing)
    return NamedJobs(*names, *asked, naming.earlier, naming.former, tuple(naming.asked))


def _takes_name(naming: _Naming, asked: str, others: Collection[str]) -> bool:
    """Return True if all text is the requested job. With several jobs, an unknown name is a typo, and using it would
    answer for the wrong job."""
    if asked in naming.jobs or naming.disagreeing:
        return False
    if any(file.allocation and file.own_job for file in naming.files) and not naming.join:
        return False  # The scheduler's table contains the job names.
    return naming.join or (len({*naming.jobs}) == 1 and (not others or asked in others))


@dataclass
class _Naming:
    """Job names while they are assigned, folder by folder."""

    files: Sequence[TextFile]
    join: bool
    shared: int | None
    """Number of levels that all folders share; None for one folder."""
    jobs: list[str]
    assumed: list[str] = field(default_factory=list)
    disagreeing: list[str] = field(default_factory=list)
    alike: list[tuple[int, ...]] = field(default_factory=list)
    unlike: list[tuple[int, ...]] = field(default_factory=list)
    earlier: dict[str, str] = field(default_factory=dict)
    of_folders: list[tuple[FolderOfLogs, list[int]]] = field(default_factory=list)
    """Folders that name their job, as their file names are generic."""
    called: list[str] = field(default_factory=list)
    """Name of each of these before 0.2."""
    former: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def name_folder(self, folder: str, rows: Sequence[int]) -> None:
        """Name the jobs in one folder."""
        some = [self.files[at] for at in rows]
        called = {one.allocation: one.own_job for one in some if one.allocation}
        groups = _with_allocations(some, _group_files([one for one in some if not one.allocation], called))
        if len(groups) > 1 and not all(some[group[-1]].allocation for group in groups):
            self.disagreeing.append(folder or ".")
        named = _names_of([[some[at] for at in group] for group in groups], folder)
        for group, (name, own) in zip(groups, named, strict=True):
            *older, last = [group] if self.join else _split_runs(group, some)
            for run in older:
                old = f"{name}/{_base(some[run[0]].name)}"
                self.earlier[old] = name
                self._set_name(old, [rows[at] for at in run])
            current = [rows[at] for at in last]
            if self.shared is not None and not own:
                said = "" if len(groups) == 1 and _is_of_folder(name, folder) else name
                of_folder = _of_folder(folder, said, [self.files[at] for at in current])
                self.of_folders.append((of_folder, current))
                self.called.append(name)
            else:
                self._set_name(name, current)
                self.assumed += [] if own else [name]
            self._add_doubtful(current)

    def name_by_folders(self, asked: str | None) -> None:
        """Name the jobs after their folders. asked: the requested job; if it is the common file name in several
        folders, and not a job, these are one job."""
        folders = [one for one, _ in self.of_folders]
        groups = [[at] for at in range(len(folders))] if self.join else jobs_of_folders(folders)
        names = [job_of_folders([folders[at] for at in job], self.shared or 0, self.join) for job in groups]
        joins = asked is not None and asked not in (*self.jobs, *names)
        for name, job in zip(names, groups, strict=True):
            rows = [row for at in job for row in self.of_folders[at][1]]
            if joins and asked is not None and all(folders[at].name == asked for at in job):
                self.asked.append(name)
                self._set_name(asked, rows)
                continue
            self.assumed.append(name)
            self._set_name(name, rows)
            if self.called[job[0]] != name:
                self.former[name] = self.called[job[0]]

    def _set_name(self, name: str, rows: Sequence[int]) -> None:
        for at in rows:
            self.jobs[at] = name

    def _add_doubtful(self, rows: Sequence[int]) -> None:
        """Record files of a job that may be several."""
        files = [self.files[at] for at in rows]
        same = _find_same_steps(files)
        others = [] if same else _find_other_losses(files)
        self.alike += [tuple(rows[at] for at in same)] if same else []
        self.unlike += [tuple(rows[at] for at in others)] if others else []


def _with_allocations(files: Sequence[TextFile], groups: list[list[int]]) -> list[list[int]]:
    """Add allocations of a scheduler to the groups of text files.

    An allocation belongs to the text whose file name contains its number. Otherwise it belongs to the group of other
    allocations with its name, if that is unique, or to the only text if all have one name; if not, it is a separate
    job.
    """
    numbers = [{number for at in group for number in numbers_of_file(files[at].name)} for group in groups]
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


def numbers_of_file(name: str) -> set[str]:
    return set(re.findall(r"\d+(?:_\d+)?", name.rpartition("/")[2]))


def reading_folder(name: str) -> str:
    """Return the folder whose files are read together with this one. name: of the file."""
    if is_event_file(name):
        return folder_of(name)
    home = home_of(name)
    if home is not None:
        return home
    run = _RUN_OF_MMENGINE.fullmatch(name.replace("\\", "/"))
    own = run is not None and run["stamp"] == run["log"]
    return run["above"].rstrip("/") if run is not None and own else name.rpartition("/")[0]


def is_of_node(name: str) -> bool:
    """Return True if a file or folder name is that of a rank or node."""
    return _OF_RANK.search(name) is not None


def _is_of_folder(name: str, folder: str) -> bool:
    """Return True if the name of a job is generic, or that of a folder that only counts."""
    return name.lower() in GENERIC_NAMES or (name == folder.rpartition("/")[2] and is_generic(name))


def _of_folder(folder: str, name: str, files: Sequence[TextFile]) -> FolderOfLogs:
    """Return the folder of some files. name: their specific job name; empty if none."""
    stem = name or (stem_of_text(files[0].name) if len(files) == 1 else "")
    steps = [step for file in files for step in file.steps]
    return FolderOfLogs(
        folder, stem, name, min(file.begin for file in files), max(file.end for file in files),
        min(steps, default=None), max(steps, default=None), any(file.restores for file in files),
    )  # fmt: skip


def _names_of(groups: Sequence[Sequence[TextFile]], folder: str) -> list[tuple[str, bool]]:
    """Return the name of each job in a folder, and True if it is from the text."""
    names = [_name_of(files, folder, len(groups) > 1) for files in groups]
    often = {name for name, count in Counter(names).items() if count > 1 and not name[1]}
    return [(_base(files[0].name), False) if name in often else name for name, files in zip(names, groups, strict=True)]


def _name_of(files: Sequence[TextFile], folder: str, apart: bool) -> tuple[str, bool]:
    """Return the name of a job, and True if it is from the text."""
    own = {file.own_job for file in files if file.own_job and not file.allocation}
    own = own or {file.own_job for file in files if file.own_job}
    if len(own) == 1:
        return own.pop(), True
    if all(is_event_file(file.name) for file in files) or (len(files) > 1 and not apart):
        return os.path.basename(os.path.abspath(folder)) or stem_of_text(files[0].name), False
    return stem_of_text(files[0].name), False


def _shared_levels(folders: Collection[str]) -> int | None:
    """Return the number of levels that folders share; None if all files are in one folder."""
    return shared_levels(folder.split("/") for folder in folders) if len(folders) > 1 else None


def stem_of_text(name: str) -> str:
    """Return the common part of a job's file names, `train-812.out.gz` -> `train`; the folder name for Slurm's default
    names."""
    base = _base(name)
    plain = _TAIL.sub("", base)
    return plain or os.path.basename(os.path.abspath(reading_folder(name))) or base


def _base(name: str) -> str:
    """Remove folder and endings: `logs/slurm-812.out.gz` -> `slurm-812`."""
    base = name.rpartition("/")[2]
    for ending in _ENDINGS:
        base = base.removesuffix(ending)
    stem, _, ending = base.rpartition(".")
    return stem if stem and ending else base


def _group_files(files: Sequence[TextFile], called: Mapping[str, str]) -> list[list[int]]:
    """Group files into jobs.

    Files are of different jobs if they overlap and disagree, if the text or the scheduler names different jobs, if they
    ran at the same time under different numbers, or if they are overlapping tasks of one Slurm array (a sweep). called:
    the scheduler's names by allocation number.
    """
    groups: list[_Group] = []
    tasks: defaultdict[str, _Running] = defaultdict(_Running)
    """By array: groups of tasks that may still run; they exclude other tasks."""
    numbered = _Running()
    """Groups of numbered files that may still run; they exclude other numbers."""
    of_number: defaultdict[str, list[_Group]] = defaultdict(list)
    for at in sorted(range(len(files)), key=lambda at: (files[at].begin, files[at].name)):
        file, task = files[at], _TASK.fullmatch(_base(files[at].name))
        number = file.number_in(called)
        run = _RunOfFiles(number, called.get(number, ""), file.begin, file.end)
        beside = tasks[task["array"]] if task is not None else None
        apart = beside.groups_at(file.begin) if beside is not None else {}
        all_run = len(numbered.groups_at(file.begin)) == len(groups)
        some = of_number[number] if number and all_run else groups if len(apart) < len(groups) else []
        fitting = (one for one in some if id(one) not in apart and one.may_run(run))
        group = next((one for one in fitting if one.agrees(file)), None)
        if group is None:
            groups.append(group := _Group())
        group.add(at, file, run)
        if beside is not None and file.steps:
            beside.add(group, file)
        if number and file.steps:
            numbered.add(group, file)
            if group not in of_number[number]:
                of_number[number].append(group)
    return [group.places for group in groups]


class _Running:
    """Groups with runs that may still be active; times ascend."""

    def __init__(self) -> None:
        self._ends: list[tuple[int, int, _Group]] = []
        """Heap of the times from which runs may have ended."""
        self._runs: dict[int, int] = {}
        """Number of runs in the heap by identity of the group."""

    def add(self, group: _Group, file: TextFile) -> None:
        """Add the run of a file. Clocks differ, but by less than half of a short run."""
        heappush(self._ends, (file.end - min(AT_ONCE, (file.end - file.begin) // 2), id(group), group))
        self._runs[id(group)] = self._runs.get(id(group), 0) + 1

    def groups_at(self, moment: int) -> Mapping[int, int]:
        """Return the groups with a run that ends after a time, by identity."""
        while self._ends and self._ends[0][0] <= moment:
            _, key, _ = heappop(self._ends)
            self._runs[key] -= 1
            if not self._runs[key]:
                del self._runs[key]
        return self._runs


class _RunOfFiles(NamedTuple):
    """Scheduler run that wrote a file."""

    number: str
    """Empty if unknown."""
    name: str
    """Scheduler's name; empty if unknown."""
    begin: int
    end: int


class _Group:
    """Files of one job, which all agree; added in order of their beginnings.

    A new file is compared with each overlapping one only if the times of a step differ among them, so that 16,000 equal
    files of ranks are not compared in pairs.
    """

    def __init__(self) -> None:
        self.places: list[int] = []
        self._job = ""
        self._open: list[TextFile] = []
        """Files with steps that a later one may overlap."""
        self._first_end = 0
        self._times: dict[int, tuple[int, int]] = {}
        """Earliest and latest time of each step in the open files."""
        self._common: set[int] = set()
        """Steps that all open files have."""
        self._stems: set[str] = set()
        self._end = 0
        self._every_stem: set[str] = set()
        self._last_end = 0
        """End of all files, also of those without steps."""
        self._first: int | None = None
        """Lowest step of all files."""
        self._names: dict[str, str] = {}
        """Scheduler names, each with its number; an empty number if several have that name."""
        self._latest: tuple[_RunOfFiles, ...] = ()
        """The two runs with different numbers that end last, the last one first."""

    def may_run(self, run: _RunOfFiles) -> bool:
        """Return True if a run that does not begin earlier may be an attempt of the job. It cannot if a run with
        another number has another name or runs at the same time."""
        if not run.number:
            return True
        if run.name and any(name != run.name and number != run.number for name, number in self._names.items()):
            return False
        other = next((one for one in self._latest if one.number != run.number), None)
        return other is None or min(run.end, other.end) - run.begin <= AT_ONCE

    def add(self, at: int, file: TextFile, run: _RunOfFiles) -> None:
        """Add a file that agrees."""
        self.places.append(at)
        if run.number and file.steps:
            if run.name:
                self._names[run.name] = run.number if self._names.get(run.name, run.number) == run.number else ""
            ends: dict[str, _RunOfFiles] = {}
            for one in sorted((*self._latest, run), key=lambda one: -one.end):
                ends.setdefault(one.number, one)
            self._latest = tuple(ends.values())[:2]
        self._job = self._job or file.own_job
        self._every_stem.add(stem_of_text(file.name))
        self._last_end = max(self._last_end, file.end)
        if file.steps:
            self._keep(file)
            self._stems.add(stem_of_text(file.name))
            self._end = max(self._end, file.end)
            first = min(file.steps)
            self._first = first if self._first is None else min(self._first, first)

    def _keep(self, file: TextFile) -> None:
        self._first_end = min(self._first_end, file.end) if self._open else file.end
        self._common = self._common & file.steps.keys() if self._open else set(file.steps)
        self._open.append(file)
        for step, time in file.steps.items():
            low, high = self._times.get(step, (time, time))
            self._times[step] = min(low, time), max(high, time)

    def agrees(self, file: TextFile) -> bool:
        """Return True if a file that does not begin earlier agrees with all."""
        if self._job and file.own_job and self._job != file.own_job:
            return False
        if not file.steps or self._first is None:
            return self._is_next_to(file)
        if self._is_of_another_program(file) or not self._may_overlap(file):
            return False
        if self._has_same_steps(file):
            return True
        if self._first_end - file.begin <= AT_ONCE:
            still, self._open, self._times = self._open, [], {}
            for one in still:
                if one.end - file.begin > AT_ONCE:
                    self._keep(one)
        return all(_agree(file, other) for other in self._open)

    def _is_next_to(self, file: TextFile) -> bool:
        """Return True if a file may be of the job although one of both has no steps: something names its job, its name
        is like that of another file, it only contains ends, or it begins before all others ended."""
        named = self._job or file.own_job or file.allocation or is_event_file(file.name)
        near = file.begin - self._last_end <= AT_ONCE
        return bool(named) or near or file.restores or file.only_ends or stem_of_text(file.name) in self._every_stem

    def _is_of_another_program(self, file: TextFile) -> bool:
        """Return True if a file begins again at the first step, or within one stride of it, after all others, restores
        nothing, and its name differs in more than numbers."""
        named = self._job or file.own_job or file.allocation or is_event_file(file.name)
        is_like_others = named or file.restores or stem_of_text(file.name) in self._stems
        if file.begin < self._end or self._first is None or is_like_others:
            return False
        first, *second = nsmallest(2, file.steps)
        stride = min(second, default=first + 1) - first
        return first - stride < max(self._first, 1)

    def _may_overlap(self, file: TextFile) -> bool:
        """Return True unless only assumed times let a file overlap others: files that were copied together have one
        time of change. Ranks by name, and outputs of one process, are those of one job nevertheless."""
        if file.has_clock or is_of_node(_base(file.name)):
            return True
        others = [one for one in self._open if not one.has_clock and one.end > file.begin]
        return all(_base(one.name) == _base(file.name) or _has_same_losses(file, one) for one in others)

    def _has_same_steps(self, file: TextFile) -> bool:
        """Return True if a file has a step that all have, and all of its known steps are at the same times."""
        times = self._times
        return not self._common.isdisjoint(file.steps) and all(
            times[step][1] - AT_ONCE <= time <= times[step][0] + AT_ONCE
            for step, time in file.steps.items()
            if step in times
        )


def _agree(one: TextFile, other: TextFile) -> bool:
    if one.own_job and other.own_job and one.own_job != other.own_job:
        return False
    begin, end = max(one.begin, other.begin), min(one.end, other.end)
    if end - begin <= AT_ONCE or not one.steps or not other.steps:
        return True
    shared = one.steps.keys() & other.steps.keys()
    if shared:
        far = sum(abs(one.steps[step] - other.steps[step]) > AT_ONCE for step in shared)
        return 2 * far <= len(shared)
    inside = [[step for step, time in file.steps.items() if begin <= time <= end] for file in (one, other)]
    if not all(inside):
        return True
    return max(min(inside[0]), min(inside[1])) <= min(max(inside[0]), max(inside[1]))


def _split_runs(group: list[int], files: Sequence[TextFile]) -> list[list[int]]:
    """Split the files of one job into runs. A new run begins only if no name joins the files, nothing was written for
    two weeks, and the next files begin at the first step without a restore; otherwise it is an outage."""
    if any(files[at].own_job or files[at].allocation for at in group):
        return [group]
    runs: list[list[int]] = []
    end = 0
    for at in sorted(group, key=lambda at: (files[at].begin, files[at].name)):
        if runs and files[at].begin - end <= APART:
            runs[-1].append(at)
            end = max(end, files[at].end)
        else:
            runs.append([at])
            end = files[at].end
    found = runs[:1]
    for run in runs[1:]:
        if _is_new_run([files[at] for at in run], [files[at] for at in found[-1]]):
            found.append(run)
        else:
            found[-1] += run
    names = [_base(files[run[0]].name) for run in found]
    return found if len({*names}) == len(names) else [group]


def _is_new_run(run: Sequence[TextFile], before: Sequence[TextFile]) -> bool:
    first, old = ([step for file in some for step in file.steps] for some in (run, before))
    return bool(first and old) and min(first) <= min(old) and not any(file.restores for file in run)


def _find_same_steps(files: Sequence[TextFile]) -> list[int]:
    """Return files whose names differ in more than numbers but that record most steps at the same times as the longest
    one; none if the text names the job. Names such as `rank-0.log` and `rank-1.log` are not doubtful."""
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
    same = [at for at in longest.values() if _have_same_times(files[at], most)]
    return sorted(same) if len(same) > 1 else []


def _find_other_losses(files: Sequence[TextFile]) -> list[int]:
    """Return files that record the steps of the first one at the same times but with different losses, and whose names
    are not those of ranks or nodes."""
    some = [
        at for at, one in enumerate(files)
        if len(one.losses) > 1 and not (one.own_job or one.allocation or is_of_node(_base(one.name)))
    ]  # fmt: skip
    if len(some) < 2:
        return []
    first = files[some[0]]
    other = [at for at in some[1:] if _have_same_times(files[at], first) and _has_other_losses(files[at], first)]
    return [some[0], *other] if other else []


def _has_other_losses(one: TextFile, other: TextFile) -> bool:
    """Return True if most losses of the same steps differ; runs of a sweep may begin with equal ones."""
    shared = one.losses.keys() & other.losses.keys()
    return len(shared) > 1 and 2 * sum(one.losses[step] != other.losses[step] for step in shared) >= len(shared)


def _has_same_losses(one: TextFile, other: TextFile) -> bool:
    shared = one.losses.keys() & other.losses.keys()
    return len(shared) > 1 and all(one.losses[step] == other.losses[step] for step in shared)


def _have_same_times(one: TextFile, other: TextFile) -> bool:
    """Return True if most steps of one are at the same times in the other."""
    near = sum(abs(time - other.steps[step]) <= AT_ONCE for step, time in one.steps.items() if step in other.steps)
    return 2 * near > len(one.steps)

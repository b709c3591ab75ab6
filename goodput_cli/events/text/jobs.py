"""Which files of text are one job, and what it is called: text has no job name (docs/formats.md, Jobs of text)."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goodput_cli.events.tensorboard.meaning import folder_of
from goodput_cli.sources.endings import is_event_file
from goodput_cli.vocabulary.units import NS_PER_SECOND

_TAIL = re.compile(r"(?:[-_.]?(?:slurm|rank|node|proc|log|out|err|stdout|stderr|attempt|\d))+$", re.IGNORECASE)
_OVERLAP = 60 * NS_PER_SECOND
_ENDINGS = (".gz", ".zst")


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


@dataclass(frozen=True)
class Named:
    """The job of each file, and what was assumed."""

    jobs: tuple[str, ...]
    assumed: tuple[str, ...]
    """Names that were made of the names of files and folders."""
    disagreeing: tuple[str, ...]
    """Folders whose files are of different jobs: they overlap, and their steps disagree."""


def name_jobs(files: Sequence[TextFile], job_name: str | None) -> Named:
    """The jobs of files of text. job_name: the one that was asked for, which all text is, unless a file's is it."""
    folders: defaultdict[str, list[int]] = defaultdict(list)
    for at, file in enumerate(files):
        folders[beside(file.name)].append(at)
    jobs = [""] * len(files)
    assumed: list[str] = []
    disagreeing: list[str] = []
    for folder, rows in folders.items():
        rows = sorted(rows, key=lambda at: bool(files[at].allocation))  # stable: the scheduler's come last
        some = [files[at] for at in rows]
        groups = _with_allocations(some, _told_apart([one for one in some if not one.allocation]))
        if len(groups) > 1 and not all(some[group[-1]].allocation for group in groups):
            disagreeing.append(folder or ".")
        for group, (name, own) in zip(groups, _names_of([[some[at] for at in group] for group in groups], folder),
                                      strict=True):  # fmt: skip
            for at in group:
                jobs[rows[at]] = name
            if not own:
                assumed.append(name)
    if job_name is not None and job_name not in jobs and not disagreeing:
        return Named((job_name,) * len(files), (), ())
    return Named(tuple(jobs), tuple(dict.fromkeys(assumed)), tuple(disagreeing))


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
    return folder_of(name) if is_event_file(name) else name.rpartition("/")[0]


def _names_of(groups: Sequence[Sequence[TextFile]], folder: str) -> list[tuple[str, bool]]:
    """The names of the jobs of a folder, and whether their text says so."""
    names = [_name_of(files, folder, len(groups) > 1) for files in groups]
    often = {name for name, count in Counter(names).items() if count > 1 and not name[1]}
    return [(_base(files[0].name), False) if name in often else name for name, files in zip(names, groups, strict=True)]


def _name_of(files: Sequence[TextFile], folder: str, apart: bool) -> tuple[str, bool]:
    """The name of a job, and whether its text says so."""
    own = {file.own_job for file in files if file.own_job and not file.allocation}
    own = own or {file.own_job for file in files if file.own_job and files[0].allocation}
    if len(own) == 1:
        return own.pop(), True
    if all(is_event_file(file.name) for file in files) or (len(files) > 1 and not apart):
        return os.path.basename(os.path.abspath(folder)) or _stem(files[0].name), False
    return _stem(files[0].name), False


def _stem(name: str) -> str:
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
    groups: list[list[int]] = []
    for at in sorted(range(len(files)), key=lambda at: (files[at].begin, files[at].name)):
        for group in groups:
            if all(_agree(files[at], files[other]) for other in group):
                group.append(at)
                break
        else:
            groups.append([at])
    return groups


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

"""Which files of text are one job, and what it is called: text has no job name (docs/formats.md, Jobs of text)."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goodput_cli.events.tensorboard.meaning import folder_of
from goodput_cli.sources.endings import is_event_file
from goodput_cli.vocabulary.units import NS_PER_SECOND

_TAIL = re.compile(r"(?:[-_.]?(?:rank|node|proc|log|out|err|stdout|stderr|attempt|\d))+$", re.IGNORECASE)
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
    allocations: frozenset[str] = frozenset()
    """Numbers that a scheduler gave the runs in it; then `own_job` is what the scheduler calls them."""


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
        folders[_folder(file.name)].append(at)
    jobs = [""] * len(files)
    assumed: list[str] = []
    disagreeing: list[str] = []
    for folder, rows in folders.items():
        texts = [at for at in rows if not files[at].allocations]
        ledgers = [at for at in rows if files[at].allocations]
        rows = [*texts, *ledgers]
        groups = _told_apart([files[at] for at in texts])
        _add_ledgers([files[at] for at in rows], groups, len(texts))
        if len(groups) > 1:
            disagreeing += [folder or "."] * (not ledgers or len(groups) > len(ledgers))
        for group in groups:
            name, own = _name_of([files[rows[at]] for at in group], folder, len(groups) > 1)
            for at in group:
                jobs[rows[at]] = name
            if not own:
                assumed.append(name)
    if job_name is not None and job_name not in jobs and not disagreeing:
        return Named((job_name,) * len(files), (), ())
    return Named(tuple(jobs), tuple(dict.fromkeys(assumed)), tuple(disagreeing))


def _add_ledgers(files: Sequence[TextFile], groups: list[list[int]], texts: int) -> None:
    """A scheduler's accounting belongs to the text whose files have its numbers in their names; what has none there is
    a job of its own, unless there is only one of each."""
    alone = len(files) - texts == 1
    for at in range(texts, len(files)):
        numbers = files[at].allocations
        of_name = [group for group in groups if any(_numbers(files[other].name) & numbers for other in group)]
        fitting = of_name or (groups if alone and len(groups) == 1 else [])
        if fitting:
            fitting[0].append(at)
        else:
            groups.append([at])


def _numbers(name: str) -> set[str]:
    return set(re.findall(r"\d+(?:_\d+)?", name.rpartition("/")[2]))


def _folder(name: str) -> str:
    return folder_of(name) if is_event_file(name) else name.rpartition("/")[0]


def _name_of(files: Sequence[TextFile], folder: str, apart: bool) -> tuple[str, bool]:
    """The name of a job, and whether its text says so."""
    own = {file.own_job for file in files if file.own_job and not file.allocations}
    own = own or {file.own_job for file in files if file.own_job and len(files) == 1}
    if len(own) == 1:
        return own.pop(), True
    if all(is_event_file(file.name) for file in files) or (len(files) > 1 and not apart):
        return os.path.basename(os.path.abspath(folder)) or _stem(files[0].name), False
    return _stem(files[0].name), False


def _stem(name: str) -> str:
    """`slurm-812.out.gz` -> `slurm`: what is the same in the names of a job's files."""
    base = name.rpartition("/")[2]
    for ending in _ENDINGS:
        base = base.removesuffix(ending)
    stem, _, ending = base.rpartition(".")
    base = stem if stem and ending else base
    plain = _TAIL.sub("", base)
    return plain or os.path.basename(os.path.abspath(_folder(name))) or base


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

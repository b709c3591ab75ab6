"""Find folders with files of one job if the file names are generic (docs/formats.md, Jobs of text): `a/train.log` and
`b/train.log` are two jobs, `a/attempt_0/train.log` and `a/attempt_1/train.log` are one."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_SECOND

GENERIC_NAMES = frozenset("train training trainer main job run log logs out output stdout stderr console all".split())
"""Generic names of files and log folders."""
_COUNTER = re.compile(
    r"[a-z]{0,10}[-_.]?\d+(?:[-_T.]\d+)*|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
    r"|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?",
    re.IGNORECASE,
)
"""Names of folders that are only a counter or a date: `attempt_2`, `20261124_004014`, `node-3`, `monday`."""
_LAUNCH = re.compile(r"(?:attempt|restart|retry|try|launch|requeue)[-_.]?\d+", re.IGNORECASE)
"""Names of folders in which launchers number the processes of a job."""
_OF_SWEEP = re.compile(
    r"multirun|(?:exp(?:eriment)?|run|job|model|trial|version|seed|fold|config|sweep|variant)[-_.]?\d+", re.IGNORECASE
)
"""Names of folders in which people and tools number jobs, which may run at the same time."""
_SLURM = re.compile(r"slurm-(?P<id>\d+(?:_\d+)?)(?!\d)")
"""File name that Slurm gives to the output of a job or array task."""
AT_ONCE = 60 * NS_PER_SECOND
APART = 14 * NS_PER_DAY
"""Maximum time that a job waits before it continues."""
_SAME_PACE = 0.02
_NEAR = 5 * NS_PER_SECOND
_FEW = 3
_LOOKED_AT = 64
"""Number of most recent folders that a new one is compared with."""


def stem_of(name: str) -> str:
    """Return the name of a source with its folder but without its ending: the same for `slurm-812.out` and
    `slurm-812.err`."""
    folder, _, base = name.rpartition("/")
    return f"{folder}/{base.removesuffix('.gz').removesuffix('.zst').rpartition('.')[0]}"


def launch_of(name: str) -> str:
    """Return the launch that wrote a file according to its path: the Slurm job number, or the folder that a launcher
    numbers; empty if none."""
    *folders, base = name.split("/")
    found = _SLURM.match(base)
    return found["id"] if found is not None else next(filter(_LAUNCH.fullmatch, reversed(folders)), "")


@dataclass(frozen=True)
class FolderOfLogs:
    """Files in a folder that belong to a job without a name."""

    folder: str
    stem: str
    """Common name of the files without counters; empty for several files with generic names."""
    name: str
    """The stem if it is specific to the job; empty if it is generic."""
    begin: int
    end: int
    """Times of the first and last event, ns UTC."""
    first: int | None
    """Lowest step; None without steps."""
    last: int | None
    restores: bool
    """True if it contains a restore."""

    @cached_property
    def home(self) -> str:
        """Return the nearest parent folder whose name is not a counter, a date or generic."""
        parts = self.folder.split("/")
        while parts and is_generic(parts[-1]):
            parts.pop()
        return "/".join(parts)

    @property
    def above(self) -> str:
        return self.folder.rpartition("/")[0]


def is_generic(part: str) -> bool:
    """Return True if the name of a folder is a counter, a date or generic."""
    return part.lower() in GENERIC_NAMES or _COUNTER.fullmatch(part) is not None


def name_of_folder(folder: str, shared: int, *, counters: bool = False) -> str:
    """Return the name that distinguishes a folder from others with the same file names, after the shared levels; empty
    if there is none.

    counters: True if counters count as well, with the name before them if that is not a word.
    """
    parts = folder.split("/")
    telling = [part for part in parts[shared:] if part and not is_generic(part)]
    if telling or not counters:
        return telling[-1] if telling else ""
    counted = [part for part in parts[shared:] if part and part.lower() not in GENERIC_NAMES]
    if not counted or any(any(map(str.isalpha, part)) for part in counted):
        return "/".join(counted)
    words = [part for part in parts[:shared] if part and not is_generic(part)]
    return "/".join([*words[-1:], *counted])


def job_of_folders(folders: Sequence[FolderOfLogs], shared: int, join: bool = False) -> str:
    """Return the name of the job of some folders. shared: number of levels that all folders share. join: True if all
    below a folder are one job."""
    one = folders[0]
    above = one.folder if len(folders) == 1 else os.path.commonpath([each.folder for each in folders])
    folder = name_of_folder(above, shared, counters=len(folders) == 1 and not join)
    if one.name:
        return f"{folder}/{one.name}" if folder and not join and folder.rpartition("/")[2] != one.name else one.name
    return folder or one.stem or os.path.basename(os.path.abspath(one.folder))


def jobs_of_folders(folders: Sequence[FolderOfLogs]) -> list[list[int]]:
    """Return the folders of each job, in order of time.

    Folders that differ in counters or dates are one job if they are nodes, are numbered by a launcher, continue the
    steps of another, or restore a checkpoint; a folder that begins at the first step again is a separate job. Folders
    with specific names are one job only if they are nodes.
    """
    jobs: list[list[int]] = []
    by_home: defaultdict[Hashable, list[int]] = defaultdict(list)
    """The latest jobs by home and by parent folder; the newest last."""
    for at in sorted(range(len(folders)), key=lambda at: (folders[at].begin, folders[at].folder)):
        one = folders[at]
        keys = ((one.home, one.stem), (one.above, one.stem, "beside"))
        found = None
        for key, belongs in zip(keys, (_is_same_job, _are_nodes), strict=True):
            near = by_home[key][-_LOOKED_AT:]
            found = next((job for job in reversed(near) if belongs(folders, jobs[job], one)), None)
            if found is not None:
                break
        if found is None:
            jobs.append([])
            found = len(jobs) - 1
        jobs[found].append(at)
        for key in keys:
            if found in by_home[key]:
                by_home[key].remove(found)
            by_home[key].append(found)
    return jobs


def _is_same_job(folders: Sequence[FolderOfLogs], job: Sequence[int], one: FolderOfLogs) -> bool:
    """Return True if a folder that differs in counters belongs to a job."""
    latest = folders[job[-1]]
    return _are_nodes(folders, job, one) or _is_continuation(latest, one)


def _is_continuation(before: FolderOfLogs, one: FolderOfLogs) -> bool:
    """Return True if a folder continues the job of another one."""
    if before.first is None or one.first is None or before.last is None:
        return True
    if _is_launch(before.folder, one.folder):
        return True
    if one.begin < before.end - AT_ONCE or one.begin - before.end > APART:
        return False
    return one.restores or before.first < one.first <= 2 * before.last - before.first + 1


def _are_nodes(folders: Sequence[FolderOfLogs], job: Sequence[int], one: FolderOfLogs) -> bool:
    """Return True if a folder is a node of a job: it has the same steps at the same times."""
    return any(_is_parallel(folders[other], one) for other in job[-_LOOKED_AT:])


def _is_parallel(one: FolderOfLogs, other: FolderOfLogs) -> bool:
    if one.first is None or other.first is None or one.last is None or other.last is None:
        return False
    if min(one.last - one.first, other.last - other.first) < _FEW - 1 or abs(one.begin - other.begin) > AT_ONCE:
        return False
    if any(_OF_SWEEP.fullmatch(part) for part in _differing(one.folder, other.folder)):
        return False
    if "multirun" in one.folder.split("/"):
        return False
    if not any(any(map(str.isdigit, part)) for part in _differing(one.folder, other.folder)):
        near = max(2 * (one.end - one.begin) // (one.last - one.first), _NEAR)
        if abs(one.begin - other.begin) > near or abs(one.end - other.end) > near:
            return False  # Hosts have numbers, and these names have none.
    paces = [(each.end - each.begin) / (each.last - each.first) for each in (one, other)]  # type: ignore[operator]
    same_end = abs(one.end - other.end) <= AT_ONCE and one.last == other.last
    return one.first == other.first and (same_end or abs(paces[0] - paces[1]) <= _SAME_PACE * max(paces))


def _is_launch(one: str, other: str) -> bool:
    differing = _differing(one, other)
    return bool(differing) and all(_LAUNCH.fullmatch(part) for part in differing)


def _differing(one: str, other: str) -> list[str]:
    """Return the parts in which two paths differ."""
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return [part for pair in pairs if pair[0] != pair[1] for part in pair]

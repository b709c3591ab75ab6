"""Assignment of observations to attempts (docs/causes.md): by line order within a file, by time between files, and by
name for hosts and pods."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.attempts.failure_cause import FailureCause, find_cause
from goodput_cli.accounting.attempts.processes import BEFORE_ALL_LINES, AttemptEvidence
from goodput_cli.accounting.columns import codes_in
from goodput_cli.arrays import I64, Rows, group_by_key
from goodput_cli.events.evidence import (
    ALLOCATED,
    TOLERANCE_NS,
    EvidenceOfLog,
    FailureEvidence,
    is_request,
    names_it_goes_by,
    names_it_is_asked_by,
)
from goodput_cli.events.schema import COLUMNS, Edge, EventTable, Kind
from goodput_cli.events.text.folders import launch_of, stem_of
from goodput_cli.sources.layouts import RUN_FILE_ENDING
from goodput_cli.vocabulary.when import NS_PER_SECOND

_SHORT = 60 * NS_PER_SECOND
_AFTER_DEATH = 120 * NS_PER_SECOND
_LATEST = 1 << 62
_TRAINERS = ("python", "pt_main_thread", "pt_data_worker", "ray::")
"""Names of training processes in kernel logs."""
_LONGEST_COMM = 15
"""Length to which a kernel truncates the name of a program."""
_KINDS_OF_JOBS = r"(?:[a-z0-9]*job|jobset|pod|raycluster|appwrapper|leaderworkerset|statefulset)"
_KERNEL_LOG = r"(?:dmesg|kern(?:el)?|messages|syslog|journal(?:ctl)?)"
_WORDS_OF_FILES = re.compile(rf"^(?:{_KERNEL_LOG}|xid|log|txt|out|gz|zst|json|\d{{8}})$")
_OF_A_KERNEL = re.compile(rf"(?<![a-z0-9]){_KERNEL_LOG}(?![a-z0-9])")


@dataclass(frozen=True)
class Causes:
    """Cause of each attempt, and the observations that were not used."""

    why: tuple[FailureCause, ...]
    """Cause per attempt."""
    other_hosts: tuple[FailureEvidence, ...] = ()
    """Observations of hosts on which the job did not run."""
    unknown_hosts: tuple[FailureEvidence, ...] = ()
    """Observations of hosts, if the hosts of the job are unknown."""
    without_clock: tuple[FailureEvidence, ...] = ()
    """Observations that could not be assigned to an attempt."""
    hosts: tuple[frozenset[str], ...] = ()
    """Hosts per attempt if a line lists all of them, otherwise empty."""


def causes_of(table: EventTable, attempts: Attempts, sign_of_life: I64) -> Causes:
    """Return the cause of each attempt's end. sign_of_life: last sign of life of each attempt (ns)."""
    observed = table.observed
    count = len(attempts)
    if not observed.rows or count == 0:
        return Causes((FailureCause(),) * count)
    rows = evidence_of_job(table, observed)
    evidence = _attempt_evidence(table, attempts, sign_of_life)
    causes = _CauseFinder(rows, evidence, _Files(table, attempts.of_row), table).find_causes()
    if observed.quotes:
        return causes
    return replace(causes, why=tuple(replace(why, quotes=False) for why in causes.why))


def cause_without_attempts(observed: EvidenceOfLog) -> FailureCause:
    """Return the cause for a job whose log shows no attempt: everything seen is evidence of one."""
    attempt = AttemptEvidence(-_LATEST, -_LATEST, -_LATEST, "", 0, _LATEST, _LATEST, stepped=False)
    columns: dict[str, Any] = {name: np.zeros(0, dtype) for name, dtype in COLUMNS.items()}
    table = EventTable(**columns, observed=observed)
    why = _CauseFinder(observed.rows, [attempt], _Files(table, np.zeros(0, dtype=np.intp)), table).find_causes().why[0]
    return why if observed.quotes else replace(why, quotes=False)


def with_preemptions(causes: Causes, table: EventTable, announced: Rows) -> Causes:
    """Return the causes, with a preemption for attempts that have no other cause and announced one by a save or a line.
    A SIGTERM after such a notice belongs to the preemption. announced: row of that line per attempt; -1 without."""
    why = list(causes.why)
    for attempt in np.flatnonzero(announced >= 0).tolist():
        if not why[attempt].is_explained:
            place = table.where(int(announced[attempt]))
            why[attempt] = replace(why[attempt], code="preempted", certainty="confirmed", evidence=None, place=place)
    return replace(causes, why=tuple(why))


def grace_ns(table: EventTable, attempts: Attempts) -> int:
    """Return how long (ns) processes may go on after a request to stop: the median distance of two records plus the
    longest save, at least 60 s."""
    steps, saves = table.time[attempts.steps], np.flatnonzero((table.kind == Kind.SAVE) & (table.edge == Edge.INTERVAL))
    usual = int(np.median(np.diff(steps))) if len(steps) > 1 else 0
    longest = int((table.end[saves] - table.time[saves]).max(initial=0))
    return max(usual + longest, _SHORT)


def _attempt_evidence(table: EventTable, attempts: Attempts, sign_of_life: I64) -> list[AttemptEvidence]:
    count, grace = len(attempts), grace_ns(table, attempts)
    found: list[AttemptEvidence] = []
    for at in range(count):
        row = int(attempts.last_progress[at])
        stepped = row >= 0
        row = row if stepped else int(attempts.begin_row[at])
        progress_line = int(table.line[row]) if _are_ordered(table, row) else 0
        if progress_line and at == 0 and not stepped and row == attempts.first_ending[at]:
            progress_line = BEFORE_ALL_LINES
        following = int(attempts.begin[at + 1]) if at + 1 < count else _LATEST
        ended = attempts.first_ending[at] >= 0
        died = int(sign_of_life[at])
        found.append(
            AttemptEvidence(
                begin=int(attempts.begin[at]),
                up=int(attempts.up[at]),
                progress=int(table.end[row]) if stepped else int(attempts.up[at]),
                progress_source=table.sources[table.source[row]],
                progress_line=progress_line,
                death=died if ended else max(following, died),
                next_start=following,
                stepped=stepped,
                grace=grace,
            )
        )
    return found


def _are_ordered(table: EventTable, row: int) -> bool:
    """Return True if the lines around a row are in time order. Entries of Cloud Logging are not. Records of a tracker
    are not either, because a row is kept until the next one."""
    return bool(table.entry[row] < 0) and not table.sources[table.source[row]].endswith(RUN_FILE_ENDING)


def evidence_of_job(table: EventTable, observed: EvidenceOfLog) -> list[FailureEvidence]:
    """Return the observations that may belong to this job: those of its own files, and of files of no job if no other
    job of the log is as near."""
    own = {table.sources[code] for code in codes_in(table.source)}
    single = len(table.jobs) <= 1
    name = table.jobs[int(table.job[0])] if len(table) and len(table.jobs) > int(table.job[0]) >= 0 else ""
    own_folders = {_folder(source) for source in own}
    lines = _lines_of(table) if any(one.row in ("sacct", ALLOCATED) for one in observed.rows) else set()
    others = {source for source in table.observed.starts if source not in own}
    return [
        one for one in observed.rows
        if (one.row not in ("sacct", ALLOCATED) or (one.source, one.line) in lines)
        and (not one.job or one.job == name or single)
        and (
            single or one.source in own or one.job == name
            or (_folder(one.source) in own_folders and one.source not in others)
        )
    ]  # fmt: skip


def _lines_of(table: EventTable) -> set[tuple[str, int]]:
    return {
        (table.sources[source], line) for source, line in zip(table.source.tolist(), table.line.tolist(), strict=True)
    }


def _folder(source: str) -> str:
    return source.rpartition("/")[0]


def _sibling_keys(source: str) -> tuple[str, ...]:
    """Return keys that files of the same processes share: for `slurm-812.err` and `slurm-812.out`, and for files in the
    directory of one launch."""
    launch, stem = launch_of(source), stem_of(source)
    return (stem, f"{source[: source.rfind(launch)]}{launch}//") if launch else (stem,)


class _Files:
    """Lines of the events of each source, and their attempts. A line between two others is of their time."""

    def __init__(self, table: EventTable, attempt_of_row: Rows) -> None:
        self._lines: dict[str, tuple[list[int], list[int]]] = {}
        rows = np.flatnonzero((attempt_of_row >= 0) & (np.asarray(table.entry) < 0))
        line, source, owner = (np.asarray(column)[rows] for column in (table.line, table.source, attempt_of_row))
        order = np.lexsort((line, source))
        line, source, owner = line[order], source[order], owner[order]
        bounds = np.flatnonzero(np.diff(source)) + 1
        for part in np.split(np.arange(len(rows)), bounds) if len(rows) else []:
            name = table.sources[int(source[part[0]])]
            self._lines[name] = line[part].tolist(), owner[part].tolist()
        self._attempts_by_key: defaultdict[str, set[int]] = defaultdict(set)
        """Attempts of the files whose names differ only in the ending, and of each launch."""
        for name, (_, owners) in self._lines.items():
            for key in _sibling_keys(name):
                self._attempts_by_key[key].update(owners)

    def attempts_of_line(self, source: str, line: int, count: int) -> range:
        """Return the attempts that may contain a line of a source."""
        known = self._lines.get(source)
        if known is None:
            near = next(
                (self._attempts_by_key[key] for key in _sibling_keys(source) if key in self._attempts_by_key), None
            )
            return range(count) if near is None else range(min(near), max(near) + 1)
        lines, owners = known
        low, high = bisect_left(lines, line), bisect_right(lines, line)
        if low < high:
            return range(owners[low], owners[high - 1] + 1)
        before = owners[low - 1] if low else -1
        after = owners[high] if high < len(lines) else count
        return range(max(before, 0), max(after, before + 1, 1))


@dataclass
class _CauseFinder:
    """Observations of one job, and its attempts."""

    rows: Sequence[FailureEvidence]
    attempts: Sequence[AttemptEvidence]
    files: _Files
    table: EventTable

    def find_causes(self) -> Causes:
        """Return the cause of each attempt. Each observation is used in at most one."""
        rows_by_attempt: defaultdict[int, list[FailureEvidence]] = defaultdict(list)
        lost: list[FailureEvidence] = []
        for one in self.rows:
            if one.of_host:
                continue
            candidates = self._candidates_of(one)
            if len(candidates) == 1:
                rows_by_attempt[candidates[0]].append(one)
            elif candidates or one.lo is None:
                lost.append(one)
        kernel = self._assign_kernel_lines()
        self._assign_pod_reports(rows_by_attempt)
        for at, rows in kernel.found.items():
            rows_by_attempt[at] += rows
        why = tuple(find_cause(attempt, rows_by_attempt.get(at, ())) for at, attempt in enumerate(self.attempts))
        rootless = tuple(one for one in lost if one.role == "root")
        return Causes(why, tuple(kernel.other_hosts), tuple(kernel.unknown_hosts), rootless, self._listed_hosts())

    def _listed_hosts(self) -> tuple[frozenset[str], ...]:
        """Return all hosts of each attempt: those of the allocation that it began in."""
        listed = sorted((one for one in self.rows if one.row == ALLOCATED and one.lo is not None), key=_lower_bound)
        begins = [_lower_bound(one) - TOLERANCE_NS for one in listed]
        places = [bisect_right(begins, attempt.begin) - 1 for attempt in self.attempts]
        return tuple(frozenset(listed[at].hosts) if at >= 0 else frozenset() for at in places)

    @cached_property
    def _begins(self) -> list[int]:
        return [attempt.begin for attempt in self.attempts]

    def _candidates_of(self, one: FailureEvidence) -> list[int]:
        """Return the attempts whose end may contain an observation of a process."""
        count = len(self.attempts)
        by_line = self.files.attempts_of_line(one.source, one.line, count)
        if one.lo is None and one.hi is None:
            own = int(one.own_life) if one.own_life.isdecimal() and len(one.own_life) < 10 else count
            named = [own] if own < count else []
            by_line = self._narrow_to_own_file(one.source, by_line)
            known = len(by_line) == 1 and (count == 1 or by_line != range(count))
            return [at for at in by_line if _is_after_progress(one, self.attempts[at])] if known else named
        lo = one.lo if one.lo is not None else -_LATEST
        hi = one.hi if one.hi is not None else _LATEST
        first = max(bisect_right(self._begins, lo - TOLERANCE_NS) - 1, 0)
        last = bisect_right(self._begins, hi)
        near = range(max(first, by_line.start), min(last, by_line.stop))
        return [at for at in near if _is_at_the_end(one, self.attempts[at])]

    def _narrow_to_own_file(self, source: str, candidates: range) -> range:
        """Narrow the candidate attempts of an untimed trailing line to the first one, if only that attempt logs to this
        file."""
        own = self._attempts_by_file.get(source, [])
        first = bisect_left(own, candidates.start)
        inside = [at for at in own[first : first + 2] if at < candidates.stop]
        return candidates[:1] if inside and inside == [candidates.start] else candidates

    @cached_property
    def _attempts_by_file(self) -> dict[str, list[int]]:
        """Attempts by the file that contains their last progress."""
        return group_by_key((attempt.progress_source, at) for at, attempt in enumerate(self.attempts))

    def _attempts_around(self, time: int | None) -> range:
        """Return the attempts that may contain a time, for clocks that differ a little."""
        if time is None:
            return range(0)
        first = max(bisect_left(self._begins, time) - 1, 0)
        return range(first, bisect_right(self._begins, time + TOLERANCE_NS))

    def _assign_kernel_lines(self) -> _KernelLines:
        """Return the kernel lines by attempt, those of other hosts, and those of an unknown host."""
        taken = _KernelLines()
        kernel = [one for one in self.rows if one.speaker == "kernel"]
        if not kernel:
            return taken
        hosts, pids = self._hosts_by_attempt()
        exits = _ExitsByPid(self.rows)
        patterns = self.table.observed.hosts_of_job
        every = _Hosts({host for names in hosts.values() for host in names}, patterns)
        nowhere = _Hosts((), patterns)
        hosts_by_attempt = {at: _Hosts(names, patterns) for at, names in hosts.items()}
        signed = _Hosts(self._recovery_hosts({one.where for one in kernel}), ())
        for one in kernel:
            host = one.host or _host_of_file(one.source, every)
            candidates = [at for at in self._attempts_around(one.lo) if _is_near_death(one, self.attempts[at])]
            if host and (every.names or patterns) and not every.has_host(host):
                taken.other_hosts.append(one)
                continue
            if len(candidates) != 1:
                continue
            at = candidates[0]
            known_hosts = hosts_by_attempt.get(at, nowhere)
            if one.source != self.attempts[at].progress_source and not known_hosts.has_host(host):
                if signed.names and host and not signed.has_host(host):
                    taken.other_hosts.append(one)
                    continue
                by_pid = not host and one.pid is not None and _only_attempt_with(pids, one.pid) == at
                taken.add_of_unknown_host(at, replace(one, host=host), by_pid, exits, known_hosts)
                continue
            known = pids.get(at, set())
            if one.pid is not None and known and one.pid not in known:
                one = replace(one, doubted=True) if _is_possible_worker(one) else replace(one, role="context")
            taken.found[at].append(replace(one, host=host))
        taken.add_matched()
        return taken

    def _recovery_hosts(self, kernel: set[str]) -> set[str]:
        """Return the hosts in lines about recoveries. kernel: locations of kernel lines, which do not count."""
        jobs = {*self.table.jobs, ""}
        return {one.host for one in self.table.observed.signs if one.job in jobs and one.where not in kernel}

    def _hosts_by_attempt(self) -> tuple[dict[int, set[str]], dict[int, set[int]]]:
        """Return the hosts and the pids that appear in the lines of each attempt."""
        hosts: defaultdict[int, set[str]] = defaultdict(set)
        pids: defaultdict[int, set[int]] = defaultdict(set)
        for one in self.rows:
            if one.of_host or not (one.host or one.pid is not None):
                continue
            for at in self._attempts_near(one):
                hosts[at].update(one.hosts or ((one.host,) if one.host else ()))
                if one.pid is not None:
                    pids[at].add(one.pid)
        return hosts, pids

    def _attempts_near(self, one: FailureEvidence) -> range:
        by_line = self.files.attempts_of_line(one.source, one.line, len(self.attempts))
        if one.lo is None:
            return by_line if len(by_line) == 1 else range(0)
        first = max(bisect_right(self._begins, one.lo + TOLERANCE_NS) - 1, 0)
        return range(first, first + 1)

    def _assign_pod_reports(self, rows_by_attempt: defaultdict[int, list[FailureEvidence]]) -> None:
        """Assign reports of a cluster about pods: of pods named after the job, and of pods that others wait for."""
        suspects: dict[int, set[int]] = {}
        for one in self.rows:
            if one.speaker != "pod":
                continue
            near = [at for at in self._attempts_around(one.lo) if _is_between(one, self.attempts[at])]
            if len(near) != 1:
                continue
            own = is_named_after_job(self.table, one)
            index = _index_of(one.identity)
            if near[0] not in suspects:
                echoes = [other for other in rows_by_attempt.get(near[0], ()) if other.role == "echo"]
                suspects[near[0]] = {rank for other in echoes for rank in other.suspects}
            waited = index in suspects[near[0]]
            if own or (index is not None and waited) or (not one.identity and one.source in self._own_sources):
                rank = one.rank if one.rank is not None or not waited else index
                rows_by_attempt[near[0]].append(replace(one, rank=rank, unhandled=own))

    @cached_property
    def _own_sources(self) -> set[str]:
        return {self.table.sources[code] for code in codes_in(self.table.source)}


def is_named_after_job(table: EventTable, one: FailureEvidence) -> bool:
    """Return True if a report of a cluster is about a pod or an object that is named after the job."""
    if len(table) == 0:
        return False
    job = table.jobs[int(table.job[0])].lower()
    name = one.identity.rpartition("/")[2].lower()
    return bool(one.job and one.job.lower() == job) or (len(job) > 2 and bool(_is_named_after(name, job)))


class _KernelLines:
    """Kernel lines as they are assigned to attempts."""

    def __init__(self) -> None:
        self.found: defaultdict[int, list[FailureEvidence]] = defaultdict(list)
        self.other_hosts: list[FailureEvidence] = []
        """Lines of other hosts."""
        self.unknown_hosts: list[FailureEvidence] = []
        """Lines of an unknown host."""
        self._matched: defaultdict[tuple[int, int | None], list[FailureEvidence]] = defaultdict(list)

    def add_of_unknown_host(
        self, attempt: int, one: FailureEvidence, by_pid: bool, exits: _ExitsByPid, known_hosts: _Hosts
    ) -> None:
        """Add a line of a host that does not appear in the lines of the attempt. by_pid: it has no host, and its pid
        appears in this attempt alone."""
        if by_pid:
            if not exits.has_contradiction(one):
                self.found[attempt].append(replace(one, doubted=True))
        elif known_hosts.names:
            self.other_hosts.append(one)
        elif exits.has_match(one):
            self._matched[attempt, one.pid].append(replace(one, doubted=True, by_exit=True))
        else:
            self.unknown_hosts.append(one)

    def add_matched(self) -> None:
        """Add the lines that match an exit if all are of one host, because only one host can have killed the
        process."""
        for (attempt, _), rows in self._matched.items():
            (self.found[attempt] if len({one.host for one in rows}) == 1 else self.unknown_hosts).extend(rows)


class _ExitsByPid:
    """Logged exits of processes with a known time, by pid."""

    def __init__(self, rows: Iterable[FailureEvidence]) -> None:
        self._of_pid: defaultdict[int, list[FailureEvidence]] = defaultdict(list)
        for one in rows:
            if one.exit is None or one.pid is None or one.lo is None or one.of_host:
                continue
            if one.stamped or (one.hi is not None and one.hi - one.lo <= TOLERANCE_NS):
                self._of_pid[one.pid].append(one)

    def has_match(self, kernel: FailureEvidence) -> bool:
        """Return True if the pid, program and time (within 5 s) of a kernel line match an exit."""
        return any(_is_same_program(kernel, one) and _is_near(kernel, one) for one in self._exits_of(kernel))

    def has_contradiction(self, kernel: FailureEvidence) -> bool:
        """Return True if all exits of the pid of a kernel line were at other times."""
        exits = self._exits_of(kernel)
        return bool(exits) and not any(_is_near(kernel, one) for one in exits)

    def _exits_of(self, kernel: FailureEvidence) -> Sequence[FailureEvidence]:
        return () if kernel.pid is None else self._of_pid.get(kernel.pid, ())


def _is_near(kernel: FailureEvidence, one: FailureEvidence) -> bool:
    return abs(_lower_bound(kernel) - _lower_bound(one)) <= TOLERANCE_NS


def _is_same_program(kernel: FailureEvidence, one: FailureEvidence) -> bool:
    """Return True if a kernel and a launcher name the same program. PyTorch renames the main thread of Python
    itself."""
    if one.process and kernel.process == one.process[:_LONGEST_COMM]:
        return True
    return kernel.process.startswith(_TRAINERS) and (not one.process or one.process.startswith("python"))


class _Hosts:
    """Host names, and patterns that match a host's full name or its first label."""

    def __init__(self, names: Iterable[str], patterns: Sequence[str]) -> None:
        self.names = sorted(filter(None, names), key=lambda name: (-len(name), name))
        """Names, the longest first."""
        self._patterns = patterns
        self._known = {key for name in self.names for key in names_it_goes_by(name)}

    @cached_property
    def by_lower(self) -> dict[str, str]:
        """Names by their form in lower case."""
        return {name.lower(): name for name in reversed(self.names)}

    def has_host(self, host: str) -> bool:
        """Return True if a host is one of them."""
        shown = (host.lower(), host.lower().split(".")[0])
        return bool(host) and (
            not self._known.isdisjoint(names_it_is_asked_by(host))
            or any(fnmatchcase(name, pattern) for pattern in self._patterns for name in shown)
        )


def _only_attempt_with(pids: Mapping[int, set[int]], pid: int) -> int | None:
    """Return the only attempt whose lines name a process; None if there are none or several."""
    candidates = [at for at, known in pids.items() if pid in known]
    return candidates[0] if len(candidates) == 1 else None


def _is_named_after(name: str, job: str) -> bool:
    """Return True if a pod or a workload is named after a job: `llm-0`, or `job-llm-9f2c` as Kueue names it.
    `serve-llm-0` is another job."""
    return re.match(rf"(?:{_KINDS_OF_JOBS}-)?{re.escape(job)}(?:[-_.]|$)", name) is not None


def _index_of(pod: str) -> int | None:
    """Return the index of a pod: the number after its last dash."""
    last = pod.rpartition("-")[2]
    return int(last) if last.isascii() and last.isdigit() and len(last) < 7 else None


def _is_possible_worker(one: FailureEvidence) -> bool:
    """Return True if an OOM-killed process can belong to the job although its pid is not logged. A container with its
    own memory limit has other pids inside."""
    of_cgroup = "Memory cgroup out of memory" in one.text or "CONSTRAINT_MEMCG" in one.text
    return of_cgroup and one.process.startswith(_TRAINERS)


def _lower_bound(one: FailureEvidence) -> int:
    return one.lo if one.lo is not None else -_LATEST


def _is_after_progress(one: FailureEvidence, attempt: AttemptEvidence) -> bool:
    """Return True for a line after the last progress of an attempt, or of the same line: text follows its bar."""
    return one.source != attempt.progress_source or one.line >= attempt.progress_line


def _is_at_the_end(one: FailureEvidence, attempt: AttemptEvidence) -> bool:
    """Return True if a line of a process is after the last progress of an attempt, and not after its end."""
    lo = one.lo if one.lo is not None else -_LATEST
    hi = one.hi if one.hi is not None else _LATEST
    if lo > attempt.next_start:
        return False
    if (
        is_request(one)
        and one.lo is not None
        and max(attempt.up, attempt.progress - attempt.grace) < lo <= attempt.progress
    ):
        return True
    # A line of sacct is a whole attempt.
    if attempt.progress_line and one.source == attempt.progress_source and one.row != "sacct":
        return one.line >= attempt.progress_line
    since = max(attempt.up, attempt.progress)
    return lo > since - TOLERANCE_NS or (hi > since and hi - lo < _SHORT)


def _is_near_death(one: FailureEvidence, attempt: AttemptEvidence) -> bool:
    if one.lo is None:
        return False
    since = max(attempt.up, attempt.progress)
    return since - TOLERANCE_NS < one.lo <= min(attempt.death + _AFTER_DEATH, attempt.next_start)


def _is_between(one: FailureEvidence, attempt: AttemptEvidence) -> bool:
    if one.lo is None:
        return False
    grace = attempt.grace if is_request(one) else TOLERANCE_NS
    return max(attempt.up - TOLERANCE_NS, attempt.progress - grace) < one.lo <= attempt.next_start


def _host_of_file(source: str, hosts: _Hosts) -> str:
    """Return the host in the name of a file: one of some hosts, or the rest of a kernel log's name without words such
    as `dmesg`. Empty if there is none."""
    base = source.rpartition("/")[2].lower()
    begins = [at for at in range(len(base)) if at == 0 or not _is_of_word(base[at - 1])]
    ends = [at for at in range(1, len(base) + 1) if at == len(base) or not _is_of_word(base[at])]
    named: dict[str, str] = {}
    for begin, end in ((begin, end) for begin in begins for end in ends if begin < end):
        host = hosts.by_lower.get(base[begin:end])
        if host is not None:
            named.setdefault(host, base[:begin] + base[end:])  # its first occurrence
    for host in sorted(named, key=lambda name: (-len(name), name)):
        if all(_WORDS_OF_FILES.match(word) for word in re.split(r"[^a-z0-9]+", named[host]) if word):
            return host
    if not _OF_A_KERNEL.search(base):
        return ""  # the output of a job is named after the job, not after a host
    words = [_OF_A_KERNEL.sub("", word).strip("-") for word in re.split(r"[._]+", base)]
    return ".".join(word for word in words if word and not _WORDS_OF_FILES.match(word))


def _is_of_word(char: str) -> bool:
    return char.isascii() and char.isalnum()

"""Launchers and schedulers: workers started, died, or were killed. torchrun, ft_launcher (NVRx), Slurm.

Their lines stand in the same stdout as a trainer's and turn a silent death into a crash with a time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any

from goodput_cli.events.schema import Edge
from goodput_cli.events.text.marks import ENDS, Mark, Rule, Said, What, pattern
from goodput_cli.events.text.meaning import said
from goodput_cli.events.text.programs import mllog
from goodput_cli.events.text.stamps import Zone, read_dated, with_year, year_of
from goodput_cli.vocabulary.when import NS_PER_SECOND

NAME = "launcher"
_CANCELLED = "cancelled "
_DYING = 30 * NS_PER_SECOND
"""What Slurm gives processes to end, before it kills them."""
OUTLIVED = "workers alive"
"""The name of signs of life that a launcher did not write: its workers went on."""


def _plain(what: What, name: str) -> Any:
    return lambda _: Said(NAME, what, name=name)


def _cycle(found: Any) -> Said | None:
    at = read_dated(f"{found['time']} UTC")
    event, node = found["event"], found["node"]
    head, _, number = node.rpartition("_")  # `node-07_1234_0`: process and number stand behind it
    host, _, process = head.rpartition("_")
    node = host if host and number.isdigit() and process.isdigit() else node
    if event == "failure_detected":
        return Said(NAME, What.CRASHED, name="died", at=at, rank=node)
    if event in ("rendezvous_started", "rendezvous_completed"):
        edge = Edge.BEGIN if event == "rendezvous_started" else Edge.END
        return Said(NAME, What.REINIT, edge=edge, name="rendezvous", at=at, rank=node)
    if event == "worker_start_started":
        return Said(NAME, What.START, name="worker_start", at=at, rank=node)
    return Said(NAME, What.ALIVE, name="cycle", at=at, rank=node)


def _cancelled(found: Any) -> Said:
    why = (found["why"] or "").strip()
    what = What.CRASHED if "NODE FAIL" in why else What.PREEMPTED if "PREEMPT" in why else What.TERMINATED
    name, at = f"{_CANCELLED}{found['id'].partition('.')[0]}", read_dated(found["time"])
    return Said(NAME, what, name=name, at=at, detail=(("why", why),) if why else ())


def next_jobs(marks: list[Mark]) -> list[Mark]:
    """The marks of one source, in order of lines, with a start where the next of several jobs of Slurm that write into
    one file shows its first time: what stands between that and the end of the job before is of neither. A start that
    the next job writes itself is enough. Processes that die behind the end of their job are no begin: not what comes
    soon, and no line that itself says an end."""
    if not any(_number(mark) for mark in marks):
        return marks
    starts: dict[int, Mark] = {}
    ended: Mark | None = None
    first: int | None = None  # the first time behind that end
    for at, mark in enumerate(marks):
        number, what = _number(mark), None if mark.said is None else mark.said.what
        if ended is None:
            ended = mark if number else None
            continue
        if what is What.START:
            ended = first = None
        elif what is What.STEP or (number and number != _number(ended)):
            if first is not None:
                starts[first] = replace(marks[first], said=Said(NAME, What.START, name="job"))
            ended, first = (mark if number else None), None
        elif _is_first_time(mark) and (first is None or _soon(ended, marks[first])):
            first = at
    return [one for at, mark in enumerate(marks) for one in ((starts[at], mark) if at in starts else (mark,))]


def _number(mark: Mark) -> str:
    """The number of the job of Slurm of which a line says that it ended."""
    one = mark.said
    if one is None or one.format != NAME or not one.name.startswith(_CANCELLED):
        return ""
    return one.name.removeprefix(_CANCELLED)


def _is_first_time(mark: Mark) -> bool:
    """Whether the next job may have written a line: it has a time, and says neither that a process died nor that it was
    told to."""
    closing = mark.said is not None and mark.said.format == NAME and mark.said.name == "closing"
    return mark.stamp is not None and (mark.said is None or not (closing or mark.said.what in ENDS))


def _soon(ended: Mark, behind: Mark) -> bool:
    """Whether the processes that a job of Slurm has may still have been dying."""
    at = None if ended.said is None else ended.said.at
    stamp = behind.stamp
    if at is not None and stamp is not None and stamp.zone is Zone.YEARLESS:
        stamp = with_year(stamp, year_of(at.ns), at.ns)
    if at is None or stamp is None or stamp.zone is not at.zone:
        return False
    return stamp.ns - at.ns <= _DYING


def _because(what: What, name: str) -> Any:
    return lambda found: Said(NAME, what, name=name, detail=(("why", found["why"]),))


def _exited(found: Any) -> Said | None:
    """Of the processes of a launcher that says how each ended."""
    if found["code"] == "0":
        return Said(NAME, What.ALIVE, name="closing")
    return Said(NAME, What.CRASHED, name="died", detail=(("exitcode", found["code"]),))


RULES = (
    Rule(NAME, "starting workers for entrypoint",
         pattern(r"\[(?P<role>[^\s\[\]]+)\] starting workers for entrypoint: "),
         _plain(What.START, "agent"), "starting workers"),
    Rule(NAME, "Starting worker group", pattern(r"\[[^\s\[\]]+\] Starting worker group"), _plain(What.START, "workers"),
         "starting worker group"),
    Rule(NAME, "will restart worker group",
         pattern(r"\[[^\s\[\]]+\] Worker group (?P<state>FAILED|UNHEALTHY)\. \d+/\d+ attempts left;\s*will restart"),
         _plain(What.CRASHED, "failed"), "worker group failed"),
    Rule(NAME, "will restart worker group",
         pattern(r"\[[^\s\[\]]+\] Detected \d+ new nodes from group_rank=.{0,1000}will restart worker group"),
         _plain(What.TERMINATED, "membership"), "new nodes"),
    Rule(NAME, "(exitcode: ", pattern(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: \d+\)"),
         lambda found: Said(NAME, What.CRASHED, name="died", detail=(
             ("exitcode", found["code"]), ("local_rank", found["rank"]))), "worker failed"),
    Rule(NAME, "closing signal SIG", pattern(r"Sending process \d+ closing signal SIG\w+"),
         _plain(What.ALIVE, "closing"), "closing signal"),
    Rule(NAME, "worker group successfully finished", pattern(r"\[[^\s\[\]]+\] worker group successfully finished"),
         _plain(What.FINISHED, "finished"), "worker group finished"),
    Rule(NAME, "death signal, shutting down workers", pattern(r"Received \S+ death signal, shutting down workers"),
         _plain(What.TERMINATED, "signal"), "death signal"),
    Rule(NAME, "Got termination signal", pattern("Got termination signal"), _plain(What.TERMINATED, "signal"),
         "termination signal"),
    Rule(NAME, "endezvous'ing worker group", pattern("[Rr]endezvous'ing worker group"),
         _plain(What.ALIVE, "rendezvous"), "rendezvous"),
    Rule(NAME, "- Cycle: ",
         pattern(r"- Cycle: \d+ Event: (?P<event>\w+) Node: (?P<node>\S+) Rank: \S+ "
                 r"Time: (?P<time>[\d-]+ [\d:.]+) UTC"),
         _cycle, "cycle"),
    Rule(NAME, " CANCELLED AT ",
         pattern(r"\*\*\* (?:JOB|STEP) (?P<id>\S+) (?:ON (?P<node>\S+) )?CANCELLED AT "
                 r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?: (?i:DUE TO) (?P<why>.*?))? ?\*\*\*"),
         _cancelled, "cancelled"),
    Rule(NAME, "srun: error: ",
         pattern(r"srun: error: \S+: tasks? [\d,-]+: "
                 r"(?P<why>Killed|Exited with exit code [1-9]\d*|Segmentation fault|Out Of Memory|Aborted|Bus error)"),
         _because(What.CRASHED, "task"), "srun task"),
    Rule(NAME, "srun: error: ", pattern(r"srun: error: (?P<why>Node failure on \S+)"),
         _because(What.CRASHED, "node"), "srun node"),
    Rule(NAME, "srun: error: ", pattern(r"srun: error: \S+: tasks? [\d,-]+: Terminated"),
         _plain(What.TERMINATED, "task"), "srun terminated"),
    Rule(NAME, "error: Detected ", pattern(r"error: Detected \d+ (?P<why>oom[-_]kill) event"),
         _because(What.CRASHED, "task"), "oom_kill"),
    Rule(NAME, "terminate called after throwing",
         pattern(r"terminate called after throwing an instance of '(?P<why>[^']*)'"),
         _because(What.CRASHED, "died"), "C++ terminate"),
    Rule(NAME, "watchdog thread terminated with exception",
         pattern(r"(?P<why>(?:NCCL|Process group) watchdog thread terminated with exception)"),
         _because(What.CRASHED, "died"), "watchdog"),
    Rule(NAME, "SignalException: Process ", pattern(r"SignalException: Process \d+ got signal: (?P<why>\d+)"),
         _because(What.TERMINATED, "signal"), "signal exception"),
    Rule(NAME, "num_local_procs=", pattern(r"nnodes=\d+, num_local_procs=\d+, node_rank=(?P<rank>\d+)"),
         lambda found: Said(NAME, What.START, name="agent", rank=found["rank"]), "deepspeed launcher"),
    Rule(NAME, "exits with return code = ", pattern(r"exits with return code = (?P<code>-?\d+)"),
         _exited, "deepspeed exit"),
    Rule(NAME, " exits successfully", pattern(r"Process \d+ exits successfully"),
         _plain(What.FINISHED, "finished"), "deepspeed end"),
)  # fmt: skip


def began_before(parts: Sequence[list[Mark]]) -> None:
    """Where a launcher alone writes, and its log begins with the end of workers: they had been started. So that the
    time until they are started again is seen, they begin right before the log does. parts: as of `outlive`."""
    every = _in_order(parts)
    if any(said(mark).format != NAME for mark, _ in every):
        return
    lives = [said(mark).what for mark, _ in every if said(mark).what in (What.START, *ENDS)]
    if What.START in lives and lives[0] is not What.START:
        first, part = every[0]
        start = Said(NAME, What.START, name="before", rank=said(first).rank)
        part.append(Mark(first.line, first.stream, None, start, first.time - 1, first.time - 1))


def _in_order(parts: Sequence[list[Mark]]) -> list[tuple[Mark, list[Mark]]]:
    """The marks that say something, in order of time, each with its part."""
    every = [(mark, part) for part in parts for mark in part if mark.said is not None]
    return sorted(every, key=lambda one: (one[0].time, one[0].line))


def started_by_launcher(parts: Sequence[list[Mark]], late: Container[str]) -> None:
    """Of a start of a launcher and one that a program prints once it is under way, the launcher's counts. late: formats
    of such programs. parts: as of `outlive`."""
    launched = False
    drop: set[int] = set()
    for mark, _ in _in_order(parts):
        one = said(mark)
        if one.what not in (What.START, What.STEP, *ENDS):
            continue
        if one.format == NAME:
            launched = one.what is What.START
        elif one.what is not What.START:
            launched = False
        elif launched and one.format in late:
            drop.add(id(mark))
    for part in parts:
        part[:] = [mark for mark in part if id(mark) not in drop]


def outlive(parts: Sequence[list[Mark]]) -> None:
    """Add signs of life of launchers, whose workers write on: a start of a trainer behind that of its launcher is the
    same start. parts: the marks of one job by source, in any order."""
    launched: tuple[Mark, list[Mark]] | None = None
    joined = False
    for mark, part in _in_order(parts):
        one = said(mark)
        if one.what is What.ALIVE and one.format == NAME:
            continue
        if one.format == NAME:
            launched, joined = ((mark, part), False) if one.what is What.START else (None, False)
        elif launched is not None and one.what is What.START:
            joined = True
        elif launched is not None and joined and mark.time > launched[0].time:
            start, of = launched
            beat = Said(NAME, What.ALIVE, name=OUTLIVED, rank=said(start).rank)
            of.append(Mark(start.line, start.stream, None, beat, mark.end, mark.end))
            launched = None


def translate(marks: Sequence[Mark]) -> list[Mark]:
    """The marks of one source without those that say again what the line before said: the agent's start and its first
    workers are one start."""
    kept: list[Mark] = []
    last: dict[str, str] = {}
    for mark in marks:
        name = said(mark).name
        again = name == "workers" and last.get(mark.stream) == "agent"
        if name not in ("rendezvous", "cycle"):
            last[mark.stream] = name
        if not again:
            kept.append(mark)
    return kept


SACCT = "sacct"
_DOWN = (What.STEP, *ENDS)


def allocations(marks: Sequence[Mark]) -> list[list[Mark]]:
    """The marks of one source; those of each allocation and of each further run of MLPerf, and what is neither
    together."""
    by_number: defaultdict[tuple[str, str], list[Mark]] = defaultdict(list)
    others = []
    for mark in marks:
        if said(mark).format == SACCT:
            by_number[said(mark).job, said(mark).name].append(mark)
        elif said(mark).format == mllog.NAME and said(mark).job:
            by_number[mllog.NAME, said(mark).job].append(mark)
        else:
            others.append(mark)
    return [others, *by_number.values()]


def started_by_scheduler(parts: Sequence[list[Mark]]) -> None:
    """Of a start that the scheduler shows and those that the text of its allocation shows, the scheduler's counts: the
    others become signs of life, so that what lies between is the start-up of the first step."""
    scheduled = [mark for part in parts for mark in part if said(mark).format == SACCT]
    if not scheduled:
        return
    ends = {said(mark).name: mark.time for mark in scheduled if said(mark).what not in (What.START, What.SCHEDULED)}
    downs = sorted(
        mark.end for part in parts for mark in part if said(mark).what in _DOWN and said(mark).format != SACCT
    )
    for start in [mark for mark in scheduled if said(mark).what is What.START]:
        until = min([ends.get(said(start).name, 1 << 62), *[time for time in downs if time > start.time][:1]])
        for part in parts:
            part[:] = [_alive(mark) if _is_start(mark, start.time, until) else mark for mark in part]


def ends_in_their_second(parts: Sequence[list[Mark]]) -> None:
    """An end that was written in whole seconds was in the course of that second: not before what the job did in it, as
    far as it had not begun anew. parts: the marks of one job by source."""
    every = sorted((mark for part in parts for mark in part), key=lambda mark: mark.time)
    times = [mark.time for mark in every]
    for mark in [mark for mark in every if said(mark).what in ENDS and _in_whole_seconds(mark)]:
        for other in every[bisect_right(times, mark.time) : bisect_left(times, mark.time + NS_PER_SECOND)]:
            if said(other).what is What.START:
                break
            if said(other).what not in ENDS:
                mark.time = mark.end = other.time


def _in_whole_seconds(mark: Mark) -> bool:
    stamp = said(mark).at or mark.stamp
    return stamp is not None and stamp.whole


def _is_start(mark: Mark, begin: int, end: int) -> bool:
    return said(mark).format != SACCT and said(mark).what is What.START and begin <= mark.time < end


def _alive(mark: Mark) -> Mark:
    return replace(mark, said=replace(said(mark), what=What.ALIVE))

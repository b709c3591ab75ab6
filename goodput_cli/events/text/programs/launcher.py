"""Lines of launchers and schedulers: workers started, died, or were killed. torchrun, ft_launcher (NVRx), Slurm.

They stand in the same stdout as a trainer's lines and turn a silent death into a crash with a time.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from goodput_cli.events.schema import Edge
from goodput_cli.events.text.marks import ENDS, Mark, Said, What
from goodput_cli.events.text.rules import Rule, pattern
from goodput_cli.events.text.stamps import read_dated

NAME = "launcher"
OUTLIVED = "workers alive"
"""The name of signs of life that a launcher did not write: its workers went on."""


def _plain(what: What, name: str) -> Any:
    return lambda _: Said(NAME, what, name=name)


def _died(found: Any) -> Said:
    return Said(NAME, What.CRASHED, name="died", detail=(("exitcode", found["code"]), ("local_rank", found["rank"])))


def _cycle(found: Any) -> Said | None:
    at = read_dated(f"{found['time']} UTC")
    node = _node(found["node"])
    event = found["event"]
    if event == "failure_detected":
        return Said(NAME, What.CRASHED, name="died", at=at, rank=node)
    if event in ("rendezvous_started", "rendezvous_completed"):
        edge = Edge.BEGIN if event == "rendezvous_started" else Edge.END
        return Said(NAME, What.REINIT, edge=edge, name="rendezvous", at=at, rank=node)
    if event == "worker_start_started":
        return Said(NAME, What.START, name="worker_start", at=at, rank=node)
    return Said(NAME, What.ALIVE, name="cycle", at=at, rank=node)


def _node(name: str) -> str:
    """The node of a name such as `node-07_1234_0` (process and number behind it)."""
    head, _, number = name.rpartition("_")
    host, _, process = head.rpartition("_")
    return host if host and number.isdigit() and process.isdigit() else name


def _cancelled(found: Any) -> Said:
    why = (found["why"] or "").strip()
    what = What.TERMINATED
    if "NODE FAIL" in why:
        what = What.CRASHED
    elif "PREEMPT" in why:
        what = What.PREEMPTED
    return Said(NAME, what, name="cancelled", at=read_dated(found["time"]), detail=(("why", why),) if why else ())


def _because(what: What, name: str) -> Any:
    return lambda found: Said(NAME, what, name=name, detail=(("why", found["why"]),))


def _exited(found: Any) -> Said | None:
    """Of the processes of a launcher that says how each ended."""
    if found["code"] == "0":
        return Said(NAME, What.ALIVE, name="closing")
    return Said(NAME, What.CRASHED, name="died", detail=(("exitcode", found["code"]),))


def _of_node(found: Any) -> Said:
    return Said(NAME, What.START, name="agent", rank=found["rank"])


RULES = (
    Rule(NAME, "starting workers for entrypoint", pattern(r"\[(?P<role>\S+)\] starting workers for entrypoint: "),
         _plain(What.START, "agent"), "starting workers"),
    Rule(NAME, "Starting worker group", pattern(r"\[\S+\] Starting worker group"), _plain(What.START, "workers"),
         "starting worker group"),
    Rule(NAME, "will restart worker group",
         pattern(r"\[\S+\] Worker group (?P<state>FAILED|UNHEALTHY)\. \d+/\d+ attempts left;\s*will restart"),
         _plain(What.CRASHED, "failed"), "worker group failed"),
    Rule(NAME, "will restart worker group",
         pattern(r"\[\S+\] Detected \d+ new nodes from group_rank=.*will restart worker group"),
         _plain(What.TERMINATED, "membership"), "new nodes"),
    Rule(NAME, "(exitcode: ", pattern(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: \d+\)"),
         _died, "worker failed"),
    Rule(NAME, "closing signal SIG", pattern(r"Sending process \d+ closing signal SIG\w+"),
         _plain(What.ALIVE, "closing"), "closing signal"),
    Rule(NAME, "worker group successfully finished", pattern(r"\[\S+\] worker group successfully finished"),
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
         _of_node, "deepspeed launcher"),
    Rule(NAME, "exits with return code = ", pattern(r"exits with return code = (?P<code>-?\d+)"),
         _exited, "deepspeed exit"),
    Rule(NAME, " exits successfully", pattern(r"Process \d+ exits successfully"),
         _plain(What.FINISHED, "finished"), "deepspeed end"),
)  # fmt: skip


def began_before(parts: Sequence[list[Mark]]) -> None:
    """Where a launcher alone writes, and its log begins with the end of workers: they had been started. So that the
    time until they are started again is seen, they begin right before the log does. parts: as of `outlive`."""
    every = [(mark.time, mark.line, mark, part) for part in parts for mark in part if mark.said is not None]
    if not every or any(mark.said.format != NAME for _, _, mark, _ in every if mark.said is not None):
        return
    ordered = sorted(every, key=lambda one: one[:2])
    marks = [mark for _, _, mark, _ in ordered]
    lives = [mark.said.what for mark in marks if mark.said is not None and mark.said.what in (What.START, *ENDS)]
    if What.START in lives and lives[0] is not What.START:
        first, part = ordered[0][2], ordered[0][3]
        rank = first.said.rank if first.said is not None else ""
        begin = first.time - 1
        part.append(
            Mark(first.line, first.stream, None, Said(NAME, What.START, name="before", rank=rank), begin, begin)
        )


def started_by_launcher(parts: Sequence[list[Mark]], late: Container[str]) -> None:
    """Of a start of a launcher and one that a program prints once it is under way, the launcher's counts. late: formats
    of such programs. parts: as of `outlive`."""
    every = sorted(((mark.time, mark.line, mark) for part in parts for mark in part), key=lambda one: one[:2])
    launched = False
    drop: set[int] = set()
    for _, _, mark in every:
        said = mark.said
        if said is None or said.what not in (What.START, What.STEP, *ENDS):
            continue
        if said.format == NAME:
            launched = said.what is What.START
        elif said.what is not What.START:
            launched = False
        elif launched and said.format in late:
            drop.add(id(mark))
    for part in parts:
        part[:] = [mark for mark in part if id(mark) not in drop]


def outlive(parts: Sequence[list[Mark]]) -> None:
    """Add signs of life of launchers, whose workers write on: a start of a trainer behind that of its launcher is the
    same start. parts: the marks of one job by source, in any order."""
    every = [(mark, part) for part in parts for mark in part if mark.said is not None]
    launched: tuple[Mark, list[Mark]] | None = None
    joined = False
    for mark, part in sorted(every, key=lambda one: (one[0].time, one[0].line)):
        said = mark.said
        if said is None or (said.what is What.ALIVE and said.format == NAME):
            continue
        if said.format == NAME:
            launched, joined = ((mark, part), False) if said.what is What.START else (None, False)
        elif launched is not None and said.what is What.START:
            joined = True
        elif launched is not None and joined and mark.time > launched[0].time:
            start, of = launched
            beat = Said(NAME, What.ALIVE, name=OUTLIVED, rank=start.said.rank if start.said else "")
            of.append(Mark(start.line, start.stream, None, beat, mark.end, mark.end))
            launched = None


def translate(marks: Sequence[Mark]) -> list[Mark]:
    """The marks of one source without those that say again what the line before said: the agent's start and its first
    workers are one start."""
    kept: list[Mark] = []
    last: dict[str, str] = {}
    for mark in marks:
        assert mark.said is not None
        again = mark.said.name == "workers" and last.get(mark.stream) == "agent"
        if mark.said.name not in ("rendezvous", "cycle"):
            last[mark.stream] = mark.said.name
        if not again:
            kept.append(mark)
    return kept

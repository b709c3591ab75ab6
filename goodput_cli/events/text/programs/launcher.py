"""Read lines of launchers and schedulers about started, failed and killed workers: torchrun, ft_launcher (NVRx), Slurm.

They are part of the trainer's stdout and turn an end without a message into a crash with a time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from goodput_cli.events.schema import UNLOGGED_GROUP, Edge
from goodput_cli.events.signs import RecoveryEventText, RecoveryPhase
from goodput_cli.events.text.line_timestamps import Zone, read_dated, with_year, year_of
from goodput_cli.events.text.log_lines import (
    BEYOND_ALL,
    ENDS,
    EventType,
    LineRule,
    LogLine,
    ParsedEvent,
    SourceText,
    duration,
    event_of,
    pattern,
)
from goodput_cli.events.text.programs import mllog
from goodput_cli.events.text.sign_lines import rank_of, sign
from goodput_cli.vocabulary.when import NS_PER_SECOND

NAME = "launcher"
_CANCELLED = "cancelled "
WAIT = "wait"
"""Name of a line of a watchdog that states how long a process waited for others."""
_BY = "launcher"
DYING = 30 * NS_PER_SECOND
"""Time that Slurm gives processes to exit before it kills them."""
TOTALS = "totals"
"""Name of a line of totals, which programs print when they exit."""
OUTLIVED = "workers alive"
"""Name of inferred activity of a launcher whose workers continued."""


def _plain(what: EventType, name: str, *signs: RecoveryEventText) -> Any:
    return lambda _: ParsedEvent(NAME, what, name=name, signs=signs)


_CYCLE_POINTS = {
    "failure_detected": RecoveryPhase.DETECTED,
    "attribution_get_completed": RecoveryPhase.DECIDED,
    "worker_terminated": RecoveryPhase.TERMINATED,
    "rendezvous_started": RecoveryPhase.RENDEZVOUS_BEGUN,
    "health_check_completed": RecoveryPhase.HEALTH_CHECKED,
    "rendezvous_completed": RecoveryPhase.RENDEZVOUS_DONE,
    "worker_start_started": RecoveryPhase.WORKERS_STARTED,
    "worker_start_completed": RecoveryPhase.WORKERS_STARTED,
}
"""Recovery phase of each event of NVRx's profiler."""


def _cycle(found: Any) -> ParsedEvent:
    one = _event_of_cycle(found)
    point = _CYCLE_POINTS.get(found["event"])
    if point is not None:
        number = rank_of(found["cycle"])
        by = _BY if number else None  # Cycles count from 0, and each failure raises the number.
        one.signs = (sign(point, host=one.rank, rank=found["rank"], by=by, cycle=number),)
    return one


def _event_of_cycle(found: Any) -> ParsedEvent:
    at = read_dated(f"{found['time']} UTC")
    event, node = found["event"], found["node"]
    head, _, number = node.rpartition("_")  # `node-07_1234_0`: process and number follow the host.
    host, _, process = head.rpartition("_")
    node = host if host and number.isdigit() and process.isdigit() else node
    if event == "failure_detected":
        return ParsedEvent(NAME, EventType.CRASHED, name="died", at=at, rank=node)
    if event in ("rendezvous_started", "rendezvous_completed"):
        edge = Edge.BEGIN if event == "rendezvous_started" else Edge.END
        return ParsedEvent(NAME, EventType.REINIT, edge=edge, name="rendezvous", at=at, rank=node)
    if event == "worker_start_started":
        return ParsedEvent(NAME, EventType.START, name="worker_start", at=at, rank=node)
    return ParsedEvent(NAME, EventType.ALIVE, name="cycle", at=at, rank=node)


def _cancelled(found: Any) -> ParsedEvent:
    why = (found["why"] or "").strip()
    what = (
        EventType.CRASHED if "NODE FAIL" in why else EventType.PREEMPTED if "PREEMPT" in why else EventType.TERMINATED
    )
    number = found["id"].partition(".")[0]
    name, at = f"{_CANCELLED}{number}", read_dated(found["time"])
    points = (RecoveryPhase.DETECTED, RecoveryPhase.TERMINATED) if "NODE FAIL" in why else (RecoveryPhase.TERMINATED,)
    signs = tuple(sign(point, host=found["node"] or "", allocation=number) for point in points)
    return ParsedEvent(NAME, what, name=name, at=at, detail=(("why", why),) if why else (), signs=signs)


def _watchdog_wait(found: Any) -> ParsedEvent:
    took = duration(found["ms"], 1e-3)
    return ParsedEvent(NAME, EventType.ALIVE, name=WAIT, took=took)


def is_wait(event: ParsedEvent) -> bool:
    """Return True for the line of a watchdog whose wait timed out."""
    return (event.format, event.name) == (NAME, WAIT)


def next_jobs(log_lines: list[LogLine]) -> list[LogLine]:
    """Add starts between Slurm jobs that write into one file: at the first time after the end of a job.

    log_lines: of one source, in line order. Lines between the end and that time belong to neither job. No start is
    added if the next job logs its own. Lines of dying processes are not a begin: neither lines soon after the end nor
    lines with an end.
    """
    if not any(_number(log_line) for log_line in log_lines):
        return log_lines
    starts: dict[int, LogLine] = {}
    ended: LogLine | None = None
    first: int | None = None  # The first time after that end.
    for at, log_line in enumerate(log_lines):
        number, what = _number(log_line), None if log_line.event is None else log_line.event.type
        if ended is None:
            ended = log_line if number else None
            continue
        if what is EventType.START:
            ended = first = None
        elif what is EventType.STEP or (number and number != _number(ended)):
            if first is not None:
                starts[first] = replace(log_lines[first], event=ParsedEvent(NAME, EventType.START, name="job"))
            ended, first = (log_line if number else None), None
        elif _is_first_time(log_line) and (first is None or _soon(ended, log_lines[first])):
            first = at
    return [
        one
        for at, log_line in enumerate(log_lines)
        for one in ((starts[at], log_line) if at in starts else (log_line,))
    ]


def _number(log_line: LogLine) -> str:
    """Return the Slurm job number in a line about its end; empty for other lines."""
    one = log_line.event
    if one is None or one.format != NAME or not one.name.startswith(_CANCELLED):
        return ""
    return one.name.removeprefix(_CANCELLED)


def _is_first_time(log_line: LogLine) -> bool:
    """Return True if the next job may have written a line: it has a timestamp, and reports neither a death nor a
    signal."""
    closing = log_line.event is not None and log_line.event.format == NAME and log_line.event.name == "closing"
    return log_line.stamp is not None and (log_line.event is None or not (closing or log_line.event.type in ENDS))


def _soon(ended: LogLine, behind: LogLine) -> bool:
    """Return True if the processes of an ended Slurm job may still have been dying."""
    at = None if ended.event is None else ended.event.at
    stamp = behind.stamp
    if at is not None and stamp is not None and stamp.zone is Zone.YEARLESS:
        stamp = with_year(stamp, year_of(at.ns), at.ns)
    if at is None or stamp is None or stamp.zone is not at.zone:
        return False
    return stamp.ns - at.ns <= DYING


def with_restarts(log_lines: Sequence[LogLine], _: SourceText) -> list[LogLine]:
    """Add starts where a program that died before training began again without a start line. log_lines: of one source,
    with times.

    The sign is a line with the words of a line before all steps, later after a death than processes take to die, if
    another death follows without training in between; or a second worker of another process that the same agent of
    torchrun saw end: it logs one for each group of workers.
    """
    first: set[int] = set()
    starts: dict[int, LogLine] = dict(_starts_of_groups(log_lines))
    begins = True  # No training and no death so far.
    died: int | None = None
    again: int | None = None
    for at, log_line in enumerate(log_lines):
        what = None if log_line.event is None else log_line.event.type
        if what is None:
            if not log_line.words or not _is_first(log_lines, at):
                continue
            if begins:
                first.add(log_line.words)
            elif died is not None and again is None and log_line.time - died > DYING and log_line.words in first:
                again = at
        elif what in _DEATHS and (died is not None or what is EventType.CRASHED):
            if again is not None:
                start = log_lines[again]
                log_line.time = max(log_line.time, start.time + 1)  # Ends precede starts of the same time.
                log_line.end = max(log_line.end, log_line.time)
                starts[again] = replace(start, event=ParsedEvent(NAME, EventType.START, name="again"))
            begins, died, again = False, max(died or 0, log_line.time), None
        elif what in (EventType.START, EventType.STEP, EventType.STEP_START, *ENDS):
            begins, died, again = begins and what is EventType.START, None, None
    return [
        one
        for at, log_line in enumerate(log_lines)
        for one in ((starts[at], log_line) if at in starts else (log_line,))
    ]


def _starts_of_groups(log_lines: Sequence[LogLine]) -> Iterator[tuple[int, LogLine]]:
    """Yield the index and the start of each group of workers that an agent began after one that failed, if no line
    shows it: at the first line with a timestamp after the failure. Agents of containers have no number here: theirs are
    small, and equal in several."""
    failed: dict[str, tuple[int, str]] = {}  # Line and worker of the last failure that each agent saw.
    for at, log_line in enumerate(log_lines):
        event = log_line.event
        if event is not None and event.type is EventType.START:
            failed.clear()
        detail = {} if event is None or event.name != "died" else dict(event.detail)
        agent, worker = detail.get("agent"), detail.get("pid", "")
        if agent is None:
            continue
        before, other = failed.get(agent, (at, worker))
        if other != worker:
            after = log_lines[before].time
            begun = (row for row in range(before + 1, at) if log_lines[row].stamp and log_lines[row].time > after)
            row = next(begun, at)
            start = ParsedEvent(NAME, EventType.START, name="again", detail=UNLOGGED_GROUP)
            yield row, replace(log_lines[row], event=start)
        failed[agent] = at, worker


_DEATHS = (EventType.CRASHED, EventType.TERMINATED, EventType.PREEMPTED)


def _is_first(log_lines: Sequence[LogLine], at: int) -> bool:
    """Return True if a line with only a timestamp is the first after an event; whether later ones are kept depends on
    how the log was read."""
    return at == 0 or log_lines[at - 1].event is not None


def _because(what: EventType, name: str) -> Any:
    return lambda found: ParsedEvent(NAME, what, name=name, detail=(("why", found["why"]),))


_TERMINATED = ("-15", "143")
"""Exit codes that launchers write for SIGTERM, which someone sent."""


def _died(code: str, name: str, detail: tuple[tuple[str, str], ...]) -> ParsedEvent:
    """Return the event for an exit code other than 0."""
    return ParsedEvent(
        NAME, EventType.TERMINATED if code in _TERMINATED else EventType.CRASHED, name=name, detail=detail
    )


def _exited(found: Any) -> ParsedEvent | None:
    """Read the exit of a process from a launcher that reports each."""
    signs = (sign(RecoveryPhase.TERMINATED),)
    if found["code"] == "0":
        return ParsedEvent(NAME, EventType.ALIVE, name="closing", signs=signs)
    return replace(_died(found["code"], "died", (("exitcode", found["code"]),)), signs=signs)


def _failed(found: Any) -> ParsedEvent:
    """Read a process of torchrun that its agent saw end."""
    detail: tuple[tuple[str, str], ...] = (("exitcode", found["code"]), ("local_rank", found["rank"]))
    if found["agent"] is not None:
        detail += (("agent", found["agent"]), ("pid", found["pid"]))
    return replace(_died(found["code"], "died", detail), signs=(sign(RecoveryPhase.DETECTED),))


def _restarts(found: Any) -> ParsedEvent:
    """Read an agent's restart of its workers, with the number of attempts left."""
    left = sign(RecoveryPhase.DECIDED, by=_BY, left=rank_of(found["left"]), of=rank_of(found["of"]))
    return ParsedEvent(NAME, EventType.CRASHED, name="failed", signs=(left,))


def _waited(found: Any) -> ParsedEvent:
    """Read a timeout for the heartbeat of a process."""
    return ParsedEvent(
        NAME, EventType.SIGN, signs=(sign(RecoveryPhase.DETECTED, timeout_ns=duration(found["waited"])),)
    )


RULES = (
    LineRule(NAME, "starting workers for entrypoint",
             pattern(r"\[(?P<role>[^\s\[\]]+)\] starting workers for entrypoint: "),
             _plain(EventType.START, "agent"), "starting workers"),
    LineRule(NAME, "Starting worker group",
             pattern(r"\[[^\s\[\]]+\] Starting worker group"),
             _plain(EventType.START, "workers", sign(RecoveryPhase.WORKERS_STARTED)),
             "starting worker group"),
    LineRule(NAME, "will restart worker group",
             pattern(r"\[[^\s\[\]]+\] Worker group (?:FAILED|UNHEALTHY)\. (?P<left>\d+)/(?P<of>\d+) attempts left;"
                     r"\s*will restart"),
             _restarts, "worker group failed"),
    LineRule(NAME, "will restart worker group",
             pattern(r"\[[^\s\[\]]+\] Detected \d+ new nodes from group_rank=.{0,1000}will restart worker group"),
             _plain(EventType.TERMINATED, "membership", sign(RecoveryPhase.DECIDED, by=_BY)), "new nodes"),
    LineRule(NAME, "(exitcode: ",
             pattern(r"(?:(?P<agent>\d{4,10}) torch/distributed/elastic/\S{1,80} )?"
                     r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: (?P<pid>\d+)\)"),
             _failed, "worker failed"),
    LineRule(NAME, "closing signal SIG", pattern(r"Sending process \d+ closing signal SIG\w+"),
             _plain(EventType.ALIVE, "closing"), "closing signal"),
    LineRule(NAME, "worker group successfully finished", pattern(r"\[[^\s\[\]]+\] worker group successfully finished"),
             _plain(EventType.FINISHED, "finished"), "worker group finished"),
    LineRule(NAME, "death signal, shutting down workers", pattern(r"Received \S+ death signal, shutting down workers"),
             _plain(EventType.TERMINATED, "signal"), "death signal"),
    LineRule(NAME, "Got termination signal", pattern("Got termination signal"), _plain(EventType.TERMINATED, "signal"),
             "termination signal"),
    LineRule(NAME, "SIGTERM",
             pattern(r"\b(?:[Rr]eceived|[Gg]ot|[Cc]aught) (?:a )?(?:signal )?(?:\d+ )?\(?SIGTERM\b(?!.{0,40}closing)"),
             _plain(EventType.TERMINATED, "signal"), "sigterm"),
    LineRule(NAME, "endezvous'ing worker group", pattern("[Rr]endezvous'ing worker group"),
             _plain(EventType.ALIVE, "rendezvous", sign(RecoveryPhase.RENDEZVOUS_BEGUN)), "rendezvous"),
    LineRule(NAME, "- Cycle: ",
             pattern(r"- Cycle: (?P<cycle>\d+) Event: (?P<event>\w+) Node: (?P<node>\S+) Rank: (?P<rank>\S+) "
                 r"Time: (?P<time>[\d-]+ [\d:.]+) UTC"),
             _cycle, "cycle"),
    LineRule(NAME, "Watchdog caught collective operation timeout",
             pattern(r"Watchdog caught collective operation timeout: .{0,400}\bran for (?P<ms>\d{1,12}) milliseconds"),
             _watchdog_wait, "watchdog"),
    LineRule(NAME, " CANCELLED AT ",
             pattern(r"\*\*\* (?:JOB|STEP) (?P<id>\S+) (?:ON (?P<node>\S+) )?CANCELLED AT "
                 r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?: (?i:DUE TO) (?P<why>.*?))? ?\*\*\*"),
             _cancelled, "cancelled"),
    LineRule(NAME, "srun: error: ",
             pattern(r"srun: error: \S+: tasks? [\d,-]+: "
                 r"(?P<why>Killed|Exited with exit code [1-9]\d*|Segmentation fault|Out Of Memory|Aborted|Bus error)"),
             lambda found: _died(found["why"].rpartition(" ")[2], "task", (("why", found["why"]),)), "srun task"),
    LineRule(NAME, "srun: error: ", pattern(r"srun: error: (?P<why>Node failure on \S+)"),
             _because(EventType.CRASHED, "node"), "srun node"),
    LineRule(NAME, "srun: error: ", pattern(r"srun: error: \S+: tasks? [\d,-]+: Terminated"),
             _plain(EventType.TERMINATED, "task"), "srun terminated"),
    LineRule(NAME, "error: Detected ", pattern(r"error: Detected \d+ (?P<why>oom[-_]kill) event"),
             _because(EventType.CRASHED, "task"), "oom_kill"),
    *(LineRule(NAME, f" {how} ", pattern(rf": line \d+: +\d+ (?P<why>{how}) "),
               _because(EventType.CRASHED, "died"), "job of a shell")
      for how in ("Killed", "Segmentation fault", "Aborted", "Bus error")),
    LineRule(NAME, "terminate called after throwing",
             pattern(r"terminate called after throwing an instance of '(?P<why>[^']*)'"),
             _because(EventType.CRASHED, "died"), "C++ terminate"),
    LineRule(NAME, "watchdog thread terminated with exception",
             pattern(r"(?P<why>(?:NCCL|Process group) watchdog thread terminated with exception)"),
             _because(EventType.CRASHED, "died"), "watchdog"),
    LineRule(NAME, "SignalException: Process ", pattern(r"SignalException: Process \d+ got signal: (?P<why>\d+)"),
             _because(EventType.TERMINATED, "signal"), "signal exception"),
    LineRule(NAME, "num_local_procs=", pattern(r"nnodes=\d+, num_local_procs=\d+, node_rank=(?P<rank>\d+)"),
             lambda found: ParsedEvent(NAME, EventType.START, name="agent", rank=found["rank"]), "deepspeed launcher"),
    LineRule(NAME, "exits with return code = ", pattern(r"exits with return code = (?P<code>-?\d+)"),
             _exited, "deepspeed exit"),
    LineRule(NAME, "Set the environment variable HYDRA_FULL_ERROR=1",
             pattern(r"^Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace\.\s*$"),
             _plain(EventType.CRASHED, "died"), "hydra"),  # The process then exits with 1.
    LineRule(NAME, "received SIGINT, exiting", pattern(r"Main process received SIGINT, exiting"),
             _plain(EventType.TERMINATED, "signal"), "deepspeed interrupted"),
    LineRule(NAME, "otal training time: ", pattern(r"\bTotal training time: \d"), _plain(EventType.EXITED, TOTALS),
             "total training time"),
    LineRule(NAME, " exits successfully", pattern(r"Process \d+ exits successfully"),
             _plain(EventType.FINISHED, "finished"), "deepspeed end"),
)  # fmt: skip

SIGN_RULES = (
    LineRule(NAME, "Rendezvous complete for workers", pattern(r"\[[^\s\[\]]+\] Rendezvous complete for workers"),
             _plain(EventType.SIGN, "", sign(RecoveryPhase.RENDEZVOUS_DONE)), "rendezvous complete"),
    LineRule(NAME, "Joining cluster restart", pattern(r"\[[^\s\[\]]+\] Joining cluster restart"),
             _plain(EventType.SIGN, "", sign(RecoveryPhase.DECIDED, by=_BY)), "joining restart"),
    LineRule(NAME, "heartbeat. Waited ",
             pattern(r"Did not get (?:initial|subsequent) heartbeat\. Waited (?P<waited>[\d.]+) seconds"),
             _waited, "no heartbeat"),
)  # fmt: skip
"""Lines that are only moments of a recovery."""


def began_before(parts: Sequence[list[LogLine]]) -> None:
    """Add a start right before a launcher's log that begins with the end of workers, so that the time until the next
    start counts. parts: as for `outlive`."""
    every = _in_order(parts)
    if any(event_of(log_line).format != NAME for log_line, _ in every):
        return
    lives = [event_of(log_line).type for log_line, _ in every if event_of(log_line).type in (EventType.START, *ENDS)]
    if EventType.START in lives and lives[0] is not EventType.START:
        first, part = every[0]
        start = ParsedEvent(NAME, EventType.START, name="before", rank=event_of(first).rank)
        part.append(LogLine(first.line, first.stream, None, start, first.time - 1, first.time - 1))


def _in_order(parts: Sequence[list[LogLine]]) -> list[tuple[LogLine, list[LogLine]]]:
    """Return the log lines with events in order of time, each with its part."""
    every = [(log_line, part) for part in parts for log_line in part if log_line.event is not None]
    return sorted(every, key=lambda one: (one[0].time, one[0].line))


def started_by_launcher(parts: Sequence[list[LogLine]], late: Container[str]) -> None:
    """Drop the late start of a program if its launcher logged one. late: formats of such programs. parts: as for
    `outlive`."""
    launched = False
    drop: set[int] = set()
    for log_line, _ in _in_order(parts):
        one = event_of(log_line)
        if one.type not in (EventType.START, EventType.STEP, *ENDS):
            continue
        if one.format == NAME:
            launched = one.type is EventType.START
        elif one.type is not EventType.START:
            launched = False
        elif launched and one.format in late:
            drop.add(id(log_line))
    for part in parts:
        part[:] = [log_line for log_line in part if id(log_line) not in drop]


def outlive(parts: Sequence[list[LogLine]]) -> None:
    """Add activity of launchers whose workers continue. A trainer's start after its launcher's is the same start.
    parts: log lines of one job by source, in any order."""
    launched: list[tuple[LogLine, list[LogLine]]] = []
    joined: list[tuple[LogLine, list[LogLine]]] = []
    for log_line, part in _in_order(parts):
        one = event_of(log_line)
        if one.type is EventType.ALIVE and one.format == NAME:
            continue
        if one.format == NAME and one.type is EventType.START:
            launched.append((log_line, part))
        elif one.format == NAME:
            launched, joined = [], []
        elif one.type is EventType.START:
            joined, launched = joined + launched, []
        elif joined and log_line.time > joined[-1][0].time:
            for start, of in joined:
                beat = ParsedEvent(NAME, EventType.ALIVE, name=OUTLIVED, rank=event_of(start).rank)
                of.append(LogLine(start.line, start.stream, None, beat, log_line.end, log_line.end))
            launched, joined = [], []
        elif one.type is EventType.STEP and not joined:
            launched = []


def translate(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the log lines of one source without the start of an agent's first workers, which its own start shows.

    Several agents may write into one stream: as many starts of workers are left out as agents started.
    """
    kept: list[LogLine] = []
    agents: Counter[str] = Counter()
    for log_line in log_lines:
        name, stream = event_of(log_line).name, log_line.stream
        if name == "workers" and agents[stream]:
            agents[stream] -= 1
            continue
        if name == "agent":
            agents[stream] += 1
        elif name not in ("rendezvous", "cycle"):
            agents[stream] = 0
        kept.append(log_line)
    return kept


SACCT = "sacct"
_DOWN = (EventType.STEP, *ENDS)


def start_each(parts: Sequence[tuple[str, list[LogLine]]]) -> None:
    """Start each further launch of a job at its first line if no start is logged after the previous launch: it is
    another process even if steps continue.

    parts: the launch of each file (empty if its path contains none), and its lines.
    """
    launches: defaultdict[str, list[list[LogLine]]] = defaultdict(list)
    for launch, log_lines in parts:
        launches[launch].append(log_lines)
    starts = [one.time for _, part in parts for one in part if event_of(one).type in _STARTS]
    begins = {launch: min(one.time for part in of_launch for one in part) for launch, of_launch in launches.items()}
    before: int | None = None
    for launch in sorted(filter(None, begins), key=lambda launch: begins[launch]):
        lines = [one for part in launches[launch] for one in part]
        steps = [one.time for one in lines if event_of(one).type is EventType.STEP]
        if before is not None and steps and not any(before <= time <= min(steps) for time in starts):
            part = min(launches[launch], key=lambda part: part[0].time)
            first = part[0]
            begin = first.time - (event_of(first).step_time or 0)  # A record is written when its step is completed.
            event = ParsedEvent(event_of(first).format, EventType.START)
            part.insert(0, LogLine(first.line, first.stream, None, event, begin, begin))
        before = max(one.end for one in lines)


_STARTS = (EventType.START, EventType.SCHEDULED, EventType.STEP_START)


def allocations(log_lines: Sequence[LogLine]) -> list[list[LogLine]]:
    """Split the log lines of one source by allocation and by further MLPerf run; the other lines come first."""
    by_number: defaultdict[tuple[str, str], list[LogLine]] = defaultdict(list)
    others = []
    for log_line in log_lines:
        if event_of(log_line).format == SACCT:
            by_number[event_of(log_line).job, event_of(log_line).name].append(log_line)
        elif event_of(log_line).format == mllog.NAME and event_of(log_line).job:
            by_number[mllog.NAME, event_of(log_line).job].append(log_line)
        else:
            others.append(log_line)
    return [others, *by_number.values()]


def started_by_scheduler(parts: Sequence[list[LogLine]]) -> None:
    """Keep the scheduler's start of an allocation; turn starts in its text into activity, so that the time between is
    start-up of the first step."""
    scheduled = [log_line for part in parts for log_line in part if event_of(log_line).format == SACCT]
    if not scheduled:
        return
    ends = {
        event_of(log_line).name: log_line.time
        for log_line in scheduled
        if event_of(log_line).type not in (EventType.START, EventType.SCHEDULED)
    }
    downs = sorted(
        log_line.end
        for part in parts
        for log_line in part
        if event_of(log_line).type in _DOWN and event_of(log_line).format != SACCT
    )
    begins, untils = _times_of_allocations(scheduled, ends, downs)
    for part in parts:
        for row, log_line in enumerate(part):
            if event_of(log_line).type is EventType.START and event_of(log_line).format != SACCT:
                before = bisect_right(begins, log_line.time)
                if before and log_line.time < untils[before - 1]:
                    part[row] = _alive(log_line)


def _times_of_allocations(
    scheduled: Iterable[LogLine], ends: Mapping[str, int], downs: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return the begins of allocations in order, and for each the time until which one begun by then runs undisturbed.

    ends: of allocations by number. downs: times at which processes ended, in order.
    """
    starts = sorted((one.time, event_of(one).name) for one in scheduled if event_of(one).type is EventType.START)
    untils: list[int] = []
    for begin, number in starts:
        down = bisect_right(downs, begin)
        until = min([ends.get(number, BEYOND_ALL), *downs[down : down + 1]])
        untils.append(max(until, untils[-1]) if untils else until)
    return [begin for begin, _ in starts], untils


def ends_in_their_second(parts: Sequence[list[LogLine]]) -> None:
    """Move ends with whole seconds after the other events of their second, up to the next start. parts: log lines of
    one job by source."""
    every = sorted((log_line for part in parts for log_line in part), key=lambda log_line: log_line.time)
    times = [log_line.time for log_line in every]
    for log_line in [log_line for log_line in every if event_of(log_line).type in ENDS and _in_whole_seconds(log_line)]:
        for other in every[bisect_right(times, log_line.time) : bisect_left(times, log_line.time + NS_PER_SECOND)]:
            if event_of(other).type is EventType.START:
                break
            if event_of(other).type not in ENDS:
                log_line.time = log_line.end = other.time


def _in_whole_seconds(log_line: LogLine) -> bool:
    stamp = event_of(log_line).at or log_line.stamp
    return stamp is not None and stamp.whole


def _alive(log_line: LogLine) -> LogLine:
    return replace(log_line, event=replace(event_of(log_line), type=EventType.ALIVE))

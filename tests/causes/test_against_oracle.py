"""Compare causes of generated failures with an oracle that shares no code with the product. Observations never
change the accounted seconds."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import goodput_cli
from goodput_cli.cli.main import run
from tests.accounting.test_properties import slowly
from tests.causes.wordings import attempt_lines
from tests.oracle.causes import Ending, LoggedLine, Verdict, judge

PROGRESS = 10 * 3600 + 10 * 60 + 45
NEXT = 10 * 3600 + 30 * 60 + 20
TRAIN = "train.log"
RAISED = {
    "device_oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity",
    "disk_full": "OSError: [Errno 28] No space left on device",
    "python_error": "ValueError: wrong shape",
    "not_finite": "RuntimeError: Loss is nan at step 1203, aborting",
    "device_error": "RuntimeError: CUDA error: an illegal memory access was encountered",
}
LOST = "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 5."
EXITS = {1: ("unknown", "exit"), -9: ("killed", "exit"), -11: ("native_crash", "exit"), -6: ("native_crash", "exit"),
         -15: ("killed", "teardown")}  # fmt: skip
WHY = {"TIME LIMIT": "time_limit", "PREEMPTION": "preempted", "NODE FAILURE": "node_failure"}


class Log:
    """A job's files while they are written, and the kind of each line."""

    def __init__(self) -> None:
        self.files: dict[str, list[str]] = {}
        self.said: list[LoggedLine] = []

    def __repr__(self) -> str:
        return "\n".join(line for lines in self.files.values() for line in lines[18:])

    def write(self, words: str, role: str = "quiet", code: str = "", file: str = TRAIN, **more: object) -> None:
        lines = self.files.setdefault(file, [])
        lines.append(words)
        self.said.append(LoggedLine(file, len(lines), role, code, **more))  # type: ignore[arg-type]


def clock(time: float) -> str:
    return f"{int(time) // 3600:02d}:{int(time) // 60 % 60:02d}:{int(time) % 60:02d}"


def write_traceback(
    log: Log, rank: int, time: int, what: str, stamped: bool, role: str = "root", code: str = ""
) -> None:
    """Write the lines that the interpreter of a rank prints at exit."""
    head = f"[2026-03-01 {clock(time)}.000000] " if stamped else ""
    log.write(f"{head}[rank{rank}]: Traceback (most recent call last):", time=time if stamped else None)
    log.write(f'[rank{rank}]:   File "/opt/train.py", line 8, in step')
    log.write(f"[rank{rank}]: {what}", role, code, rank=rank, unhandled=True, text=what)


def write_agent_lines(log: Log, time: int, ended: list[tuple[int, int]]) -> None:
    """Write the lines of an agent about the failed ranks, in the order in which it saw them, and its block."""
    for at, (rank, code) in enumerate(ended):
        cause, role = EXITS[code]
        if at == 0:
            log.write(
                f"E0301 {clock(time)}.000000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: "
                f"{code}) local_rank: {rank} (pid: {100 + rank}) of binary: /usr/bin/python",
                role, cause, time=time, rank=rank, pid=100 + rank, exit=code, speaker="launcher", host="node-01",
                text="failed",
            )  # fmt: skip
    log.write("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ")
    log.write("=" * 60)
    log.write("train.py FAILED")
    log.write("-" * 60)
    for at, (rank, code) in enumerate([*ended[1:], ended[0]]):
        cause, role = EXITS[code]
        if at == 0:
            log.write("Failures:")
            if len(ended) == 1:
                log.write("  <NO_OTHER_FAILURES>")
        if at == len(ended) - 1:
            log.write("-" * 60)
            log.write("Root Cause (first observed failure):")
        log.write(f"[{at}]:")
        log.write(f"  time      : 2026-03-01_{clock(time)}")
        log.write("  host      : node-01")
        log.write(f"  rank      : {rank} (local_rank: {rank})")
        log.write(
            f"  exitcode  : {code} (pid: {100 + rank})", role, cause, rank=rank, pid=100 + rank, exit=code,
            speaker="launcher", host="node-01", first=at == len(ended) - 1, text="block", time=time,
            whole=True,
        )  # fmt: skip
        log.write("  error_file: <N/A>")
        log.write(f"  traceback : Signal {-code} received by PID {100 + rank}")
    log.write("=" * 60)


def write_message(draw: st.DrawFn, log: Log, kind: str, who: int, time: int, said: Counter[tuple[int, str]]) -> None:
    """Write one message of a process after the last step."""
    if kind in ("raise", "caught"):
        code = draw(st.sampled_from(sorted(RAISED)))
        said[who, code] += 1
        if said[who, code] > 2:  # If one of three equal messages was caught, the last one counts.
            return
        write_traceback(log, who, time, RAISED[code], draw(st.booleans()), code=code)
        if kind == "caught":
            log.write(f"[rank{who}]: going on", "ordinary", rank=who)
    elif kind == "waiting":
        log.write(f"[2026-03-01 {clock(time)}.000000] INFO still waiting", "ordinary", time=time)
    elif kind == "lost":
        write_traceback(log, who, time, LOST, draw(st.booleans()), "echo", "peer_lost")
    else:
        log.write(
            f"[rank{who}]:[E301 {clock(time)}.000000123 ProcessGroupNCCL.cpp:616] [Rank {who}] Watchdog caught "
            "collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, Timeout(ms)=600000) ran for "
            "600060 milliseconds",
            "echo", "collective_timeout", time=time + 1e-6, rank=who,
        )  # fmt: skip


def write_cancellation(draw: st.DrawFn, log: Log, time: int) -> None:
    """Write the lines that Slurm prints when it ends a step."""
    why = draw(st.sampled_from([*WHY, ""]))
    due = f" DUE TO {why}" if why else ""
    log.write(
        f"slurmstepd: error: *** STEP 8.0 ON node-01 CANCELLED AT 2026-03-01T{clock(time)}{due} ***",
        "root" if why else "teardown", WHY.get(why, ""), time=time, whole=True, speaker="scheduler", text="cancelled",
    )  # fmt: skip


@st.composite
def endings(draw: st.DrawFn) -> Log:
    """Write the lines after the last step of the first attempt."""
    log = Log()
    for text in attempt_lines(0, 10):
        log.write(text)
    rank = st.integers(0, draw(st.integers(2, 6)) - 1)
    time, cancelled, said = PROGRESS + 1, False, Counter[tuple[int, str]]()
    for _ in range(draw(st.integers(0, 6))):
        time += draw(st.sampled_from([0, 1, 3, 7, 20, 80, 120]))
        kind = draw(st.sampled_from(["raise", "raise", "raise", "caught", "waiting", "watchdog", "lost", "cancel"]))
        if kind == "cancel" and not cancelled:
            cancelled = True
            write_cancellation(draw, log, time)
        elif kind != "cancel" and not (cancelled and kind == "watchdog"):  # the rank still runs
            write_message(draw, log, kind, draw(rank), time, said)
    time += draw(st.sampled_from([0, 2, 8, 90]))
    if draw(st.booleans()):
        log.write(
            f"W0301 {clock(time)}.000000 7 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 811 "
            "closing signal SIGTERM", "teardown", time=time, speaker="launcher", text="closing signal",
        )  # fmt: skip
        time += draw(st.sampled_from([0, 2, 8]))
    if not cancelled and draw(st.booleans()):
        failed = draw(st.lists(rank, min_size=1, max_size=3, unique=True))
        write_agent_lines(log, time, [(one, draw(st.sampled_from(sorted(EXITS)))) for one in failed])
    return log


def ending_of(log: Log) -> Ending:
    """Return the facts of the attempt. The timestamps of the last step and of the next start are the bounds of the
    time between them."""
    progress = len(list(attempt_lines(0, 10)))
    step = LoggedLine(TRAIN, progress, "quiet", time=PROGRESS)
    behind = LoggedLine(TRAIN, len(log.files[TRAIN]) + 2, "quiet", time=NEXT)
    said = [step, *(one for one in log.said if one.file != TRAIN or one.line > progress), behind]
    last = max((one.time for one in log.said if one.time is not None), default=PROGRESS)
    return Ending(
        tuple(said),
        TRAIN,
        progress,
        PROGRESS,
        max(last, PROGRESS),
        len(log.files[TRAIN]) + 1,
        NEXT,
        frozenset({"node-01", "node-03"}),
    )


def engine(log: Log) -> Verdict:
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in log.files.items():
            after = list(attempt_lines(30, 160)) if name == TRAIN else []
            (Path(folder) / name).write_text("\n".join([*lines, *after]) + "\n")
        found = goodput_cli.analyze(folder, job_name="job").disruptions[0]
    return Verdict(found.cause or "unknown", found.cause_certainty, found.first_rank)


@slowly
@given(endings())
def test_engine_and_oracle_name_the_same(log: Log) -> None:
    named, expected = engine(log), judge(ending_of(log))
    assert named == expected


def account(log: Log, folder: Path, *, words: bool, hosts: bool) -> str:
    """Return the JSON output of `analyze` without causes. words: include the lines that only explain the failure;
    otherwise their locations stay. hosts: add logs of hosts and of a cluster."""
    told = {one.line for one in log.said if one.time is None and one.role != "exit" and one.speaker == "process"}
    for name, lines in log.files.items():
        kept = [line if words or at not in told or at <= FIRST else "" for at, line in enumerate(lines, 1)]
        (folder / name).write_text("\n".join([*kept, *attempt_lines(30, 160)]) + "\n")
    for name, text in HOSTS.items():
        (folder / name).write_text(text) if hosts else (folder / name).unlink(missing_ok=True)
    out = folder.with_name(f"{folder.name}.json")
    assert run(["analyze", str(folder), "--job-name", "job", "-q", "--force", "-o", str(out)]) == 0
    answer = json.loads(out.read_text())
    for row in answer["disruptions"]:
        for name in [*OF_CAUSES, *OF_ENDINGS, *OF_CHAINS, "evidence"]:
            row.pop(name, None)
    for name in ("insights", "diagnostics", "last_end", "by_cause"):
        answer.pop(name, None)
    answer["reliability"].pop("recoveries", None)
    return json.dumps(answer)


FIRST = len(list(attempt_lines(0, 10)))
OF_CAUSES = (
    "cause", "cause_group", "cause_certainty", "cause_text", "first_rank", "first_host", "first_device",
    "first_peer", "also", "also_seen", "silent_ranks", "echoes",
)  # fmt: skip
OF_ENDINGS = ("ended", "steps_lost_is")
"""An uncaught exception also marks the end of an attempt."""
OF_CHAINS = ("links", "time_to_detect_seconds", "time_to_detect_is", "time_to_recover_seconds", "time_to_recover_is")
"""The line of a cause contains the time of the failure. It splits recovery phases but keeps their total."""
EVENT = {
    "kind": "Event", "reason": "Evicted", "message": "The node was low on resource: memory.",
    "lastTimestamp": "2026-03-01T10:10:50Z", "involvedObject": {"kind": "Pod", "name": "job-0-3"},
}  # fmt: skip
XID = "node-03 kernel: NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.\n"
HOSTS = {
    "dmesg-node-01.log": "2026-03-01T10:10:48,500000+00:00 Out of memory: Killed process 101 (python3) total-vm:5kB\n",
    "kern.log": f"2026-03-01T10:10:47+00:00 {XID}",
    "before.log": f"2026-03-01T08:10:47+00:00 {XID}",
    "events.json": json.dumps({"kind": "List", "items": [EVENT]}) + "\n",
}
"""Logs of hosts, one of them much older, and of a cluster."""


@slowly
@given(endings())
def test_what_says_why_changes_no_second(log: Log) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = account(log, folder, words=True, hosts=True)
        assert account(log, folder, words=True, hosts=False) == whole
        assert account(log, folder, words=False, hosts=False) == whole

"""Reports that name ranks: in the forms of several versions of PyTorch, NCCL, XLA and FlagScale."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.hangs.groups import Waiting
from goodput_cli.analysis.hangs.hang import Hang, sentence
from goodput_cli.analysis.hangs.report import hangs_of, stragglers_of
from goodput_cli.analysis.hangs.verdict import judge
from goodput_cli.events.hangs.reports import RankReport
from tests.analysis.test_hangs import log, signal, waits

Read = Callable[[str], Analysis]


@pytest.fixture
def analysed(tmp_path: Path) -> Read:
    def analyse(text: str) -> Analysis:
        (tmp_path / "run.log").write_text(text, encoding="utf-8")
        return goodput_cli.analyze(str(tmp_path / "run.log"))

    return analyse


def hang(analysis: Analysis) -> Hang | None:
    return hangs_of(analysis).get(len(analysis.timeline.attempts) - 1)


def verdict(analysis: Analysis) -> tuple[str, str, tuple[int, ...], str] | None:
    found = hang(analysis)
    return None if found is None else (found.verdict, found.certainty, tuple(found.ranks), found.unmapped)


# mismatches


def mismatch(rank: int, shape: str, other: int, of_other: str, *, is_short: bool = False) -> str:
    more = (
        "TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided "
        "(default), requires_grad=false (default), memory_format=(nullopt))"
    )
    last = f"SequenceNumber=31OpType={of_other})" if is_short else f"SequenceNumber=31, {of_other}, {more})"
    return (
        f"[rank{rank}]: RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} is running "
        f"collective: CollectiveFingerPrint(SequenceNumber=31, {shape}, {more}), but Rank {other} is running "
        f"collective: CollectiveFingerPrint({last}.Collectives differ in the following aspects: \t Tensor shapes\n"
    )


def test_shape_of_the_minority_is_found_in_full_fingerprints(analysed: Read) -> None:
    usual, odd = "OpType=ALLREDUCE, TensorShape=[512]", "OpType=ALLREDUCE, TensorShape=[1024]"
    lines = [mismatch(rank, usual, 3, odd) for rank in (0, 1, 2)]
    assert verdict(analysed(log(*lines, mismatch(3, odd, 0, usual)))) == ("diverged", "confirmed", (3,), "")


def test_reports_of_several_groups_show_no_global_ranks(analysed: Read) -> None:
    """Rank 0 of one group is global rank 0, and that of the other one is global rank 4."""
    odd = [mismatch(rank, "OpType=ALLREDUCE, TensorShape=[8]", 2, "BROADCAST", is_short=True) for rank in (0, 1, 3)]
    other = [line.replace(f"[rank{rank}]", f"[rank{rank + 4}]") for rank, line in zip((0, 1, 3), odd, strict=True)]
    assert verdict(analysed(log(*odd, *other, size=8))) == ("diverged", "confirmed", (), "2")


def test_short_fingerprints_have_no_shape(analysed: Read) -> None:
    usual, odd = "OpType=BROADCAST, TensorShape=[1]", "OpType=ALLREDUCE, TensorShape=[1]"
    lines = [mismatch(rank, usual, 2, "ALLREDUCE", is_short=True) for rank in (0, 1, 3)]
    lines.append(mismatch(2, odd, 0, "BROADCAST", is_short=True))
    assert verdict(analysed(log(*lines))) == ("diverged", "confirmed", (2,), "")


def test_old_fingerprints_show_one_rank_each(analysed: Read) -> None:
    lines = [
        f"RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} is running inconsistent "
        f"collective: CollectiveFingerPrint(OpType={operation}, TensorShape=[34112], TensorDtypes=Float)\n"
        for rank, operation in enumerate(("ALLREDUCE", "ALLREDUCE", "BROADCAST", "ALLREDUCE"))
    ]
    assert verdict(analysed(log(*lines))) == ("diverged", "confirmed", (2,), "")
    found = hang(analysed(log(*lines[1:3])))
    assert found is not None
    assert (found.verdict, found.ranks) == ("diverged", ())
    assert sentence(found).startswith("ranks run different operations; which rank held them up is unknown")


# barriers


def reached(rank: int, *, prefix: str = "") -> str:
    return (
        f"{prefix}RuntimeError: Rank {rank} successfully reached monitoredBarrier, but received errors while waiting "
        "for send/recv from rank 0. Please check rank 0 logs for faulty rank.\n"
    )


def test_ranks_of_a_barrier_are_all_ranks_without_groups(analysed: Read) -> None:
    line = "RuntimeError: [Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 2000000 ms\n"
    assert verdict(analysed(log(line, size=8))) == ("absent", "confirmed", (4, 5), "")


def test_rank_that_reached_the_barrier_is_not_named(analysed: Read) -> None:
    line = "[E ProcessGroupGloo.cpp:138] [Rank 0]: Rank 1 failed to pass monitoredBarrier in 30000 ms\n"
    assert verdict(analysed(log(reached(1), line))) is None


def test_ranks_of_a_barrier_are_ranks_in_its_group(analysed: Read) -> None:
    """Global ranks 4 and 5 are ranks 0 and 1 of the group: rank 2 of it is global rank 6."""
    line = "[rank4]: RuntimeError: [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 180000 ms\n"
    assert verdict(analysed(log(line, reached(1, prefix="[rank5]: "), size=8))) == ("absent", "confirmed", (6,), "")
    assert verdict(analysed(log(line, size=8))) == ("absent", "confirmed", (), "2")


def test_barrier_does_not_hide_the_ranks_of_a_snapshot(analysed: Read) -> None:
    one = snapshot(SEVEN, f"{ONE.format(60)}process 1650386 on node node1")
    assert verdict(analysed(log(reached(7), one, one, size=8))) == ("absent", "confirmed", (7,), "")


def test_number_of_named_ranks_decides_the_verb(analysed: Read) -> None:
    usual = [mismatch(rank, "OpType=ALLREDUCE, TensorShape=[8]", 6, "BROADCAST", is_short=True) for rank in range(6)]
    odd = [mismatch(rank, "OpType=BROADCAST, TensorShape=[8]", 0, "ALLREDUCE", is_short=True) for rank in (6, 7)]
    one, two = hang(analysed(log(*usual))), hang(analysed(log(*usual, *odd)))
    assert one is not None
    assert two is not None
    assert sentence(one).endswith("rank 6 runs another operation")
    assert sentence(two).endswith("ranks 6-7 run another operation")


def test_failure_of_a_named_rank_counts_no_waiting_ranks(analysed: Read) -> None:
    """Only a report shows the hang: no line shows a rank that waits."""
    death = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    trace = ("Traceback (most recent call last):", '  File "t.py", line 1, in <module>', "    f()")
    line = (
        "[rank0]:[E301 12:15:01.138000000 ProcessGroupGloo.cpp:138] [Rank 0]: Rank 3 failed to pass monitoredBarrier "
        "in 30000 ms\n"
    )
    analysis = analysed(log(*(f"[rank3]: {each}\n" for each in trace), death, line))
    assert analysis.timeline.causes.why[-1].code == "device_oom"
    assert verdict(analysis) == ("absent", "confirmed", (3,), "")
    (text,) = (one.text for one in analysis.insights if one.code == "hang")
    assert "waited" not in text


def _lines_run(count: int) -> int:
    """Return the number of Python lines that judge reports of `count` ranks."""
    reports = [
        RankReport("job", "run.log:1", None, "barrier", (2 * count,), reporter=rank, process=rank, reached=(rank,))
        for rank in range(count)
    ]
    lines = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        found = judge(Waiting({}, reports, {}, set(), None, False))
    finally:
        sys.settrace(before)
    assert found.ranks == (2 * count,)
    return lines


def test_work_for_reports_is_linear() -> None:
    one, two, four = (_lines_run(count) for count in (50, 100, 200))
    assert four - two <= 2**1.2 * (two - one)


def test_tasks_of_the_coordination_service_are_named(analysed: Read) -> None:
    text = (
        "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: write_complete.0.1. This usually happens because "
        "a task triggered the barrier too early or too slowly. Please look at the task logs to debug further.\n"
        "# of tasks that reached the barrier: 12/16.\n"
        "The first task at the barrier: /job:jax_worker/replica:0/task:13. Some timed out task names:\n"
        + "".join(f"/job:jax_worker/replica:0/task:{task}\n" for task in (6, 0, 4, 5))
    )
    assert verdict(analysed(log(text))) == ("absent", "confirmed", (0, 4, 5, 6), "")


# NCCL RAS


def snapshot(*lines: str) -> str:
    head = "#0-0 (78db921d1c117b4a) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
    return head + "".join(f"  {line}\n" for line in lines) + "\n"


SEVEN, ONE = "7 ranks have launched up to operation 64", "Rank 7 has launched up to operation {0} -- GPU 3 managed by "


def test_rank_in_snapshot_is_confirmed_if_it_does_not_advance(analysed: Read) -> None:
    one = snapshot(SEVEN, f"{ONE.format(60)}process 1650386 on node node1")
    found = hang(analysed(log(one, size=8)))
    assert found is not None
    assert (found.certainty, found.ranks, found.hosts) == ("likely", (7,), ("node1",))
    assert verdict(analysed(log(one, one, size=8))) == ("absent", "confirmed", (7,), "")
    later = snapshot(SEVEN.replace("64", "90"), f"{ONE.format(88)}process 1650386 on node node1")
    assert verdict(analysed(log(one, later, size=8))) == ("absent", "likely", (7,), "")


def test_several_ranks_behind_in_a_snapshot_are_not_named(analysed: Read) -> None:
    """One of them may hold up the others."""
    rows = ["6 ranks have launched up to operation 64", "2 ranks have launched up to operation 60"]
    rows += [f"Rank {rank} -- GPU {rank} managed by process 9 on node a" for rank in (2, 3)]
    assert verdict(analysed(log(snapshot(*rows), snapshot(*rows), size=8))) is None


def test_running_job_is_one_operation_apart(analysed: Read) -> None:
    one = snapshot(SEVEN, f"{ONE.format(63)}process 1650386 on node node1")
    assert verdict(analysed(log(one, size=8))) is None
    assert verdict(analysed(log(one, one, size=8))) == ("absent", "confirmed", (7,), "")


def test_ranks_of_a_smaller_communicator_are_not_global(analysed: Read) -> None:
    one = snapshot(SEVEN, f"{ONE.format(60)}process 1650386 on node node1")
    assert verdict(analysed(log(one, size=32))) == ("absent", "likely", (), "7")
    assert verdict(analysed("\n".join(log(one, size=8).splitlines()[1:]))) == ("absent", "likely", (), "7")


def test_ranks_at_different_operations_name_no_rank(analysed: Read) -> None:
    rows = [f"Rank {rank} has launched up to operation {60 + 9 * rank} -- GPU 0 managed by process 9 on node a"
            for rank in range(4)]  # fmt: skip
    assert verdict(analysed(log(snapshot(*rows), size=4))) is None


@pytest.mark.parametrize("row", ["The missing rank: 5", "Rank 5 -- GPU 3 managed by process 3748990 on node node1"])
def test_rank_that_does_not_answer_is_named(row: str, analysed: Read) -> None:
    text = (
        "INCOMPLETE\n  Missing communicator data from 1 job process\n  Process 3748990 on node node1 managing GPU 3\n\n"
        f"#0-0 (1bdb83b038775869) INCOMPLETE\n  Missing communicator data from 1 rank\n  {row}\n"
    )
    assert verdict(analysed(log(text, size=8))) == ("absent", "likely", (5,), "")


# desync reports and lines of the watchdog


def test_reports_of_other_processes_in_a_block_are_apart(analysed: Read) -> None:
    """Only the rank that all reports name is named."""

    def report(rank: int, *named: int) -> str:
        return (
            f"\t - [{rank}] Timeout at collective: ALLREDUCE, #9\n"
            f"\t     {list(named)} finished collective #8, but didn't join collective #9 (count from 1)\n"
        )

    text = log(*(waits(rank, 9) for rank in (0, 1)), report(0, 2, 3), report(1, 3))
    assert verdict(analysed(text)) == ("absent", "confirmed", (3,), "")


def test_numbers_of_a_report_may_differ_from_the_watchdogs(analysed: Read) -> None:
    """The group is the one in which its process waits."""
    group = "37(TENSOR_MODEL_PARALLEL_GROUP)"
    report = (
        "[rank4]:[E301 12:15:01.900000000 ProcessGroupNCCL.cpp:1936] [0] Timeout at collective: _ALLGATHER_BASE, #39\n"
        "\t     [1] finished collective #38, but didn't join collective #39 (count from 1)\n"
    )
    lines = [waits(4 + inside, 18, group=group, inside=inside) for inside in (0, 2, 3)]
    others = [waits(rank, 11) for rank in range(4)]
    assert verdict(analysed(log(*lines, report, *others, size=8))) == ("absent", "confirmed", (5,), "")


def test_number_of_a_group_in_its_process_names_no_group(analysed: Read) -> None:
    """Ranks 0 to 3 and 4 to 7 are two groups, which both are number 2 in their processes."""
    lines = [waits(rank, 90, inside=inside).replace("PG ID 7 PG GUID 0(default_pg)", "PG 2")
             for rank, inside in ((0, 0), (1, 1), (2, 2), (7, 3))]  # fmt: skip
    found = hang(analysed(log(*(line.replace("NumelOut=64", "NumelOut=256") for line in lines), size=8)))
    assert found is not None
    assert (found.verdict, found.ranks) == ("unknown", ())
    whole = [waits(rank, 90).replace("PG ID 7 PG GUID 0(default_pg)", "PG 1") for rank in range(4)]
    gathers = [line.replace("ALLREDUCE", "ALLGATHER").replace("NumelOut=64", "NumelOut=256") for line in whole]
    assert verdict(analysed(log(*gathers))) == ("all_joined", "confirmed", (), "")


def test_error_of_a_process_shows_its_group_and_is_one_wait(analysed: Read) -> None:
    error = (
        "[PG ID 2 PG GUID 3(TP_GROUP) Rank {1}] Process group watchdog thread terminated with exception: [Rank {1}] "
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=78, OpType=_ALLGATHER_BASE, NumelIn=80, "
        "NumelOut=320, Timeout(ms)=600000) ran for 600087 milliseconds before timing out.\n"
    )
    line = "[rank{0}]:[E301 12:15:01.149121725 ProcessGroupNCCL.cpp:2057] " + error
    lines = [(line + "  what():  " + error).format(rank, rank - 4) for rank in range(4, 8)]
    found = hang(analysed(log(*lines, size=8)))
    assert found is not None
    assert (found.verdict, found.waiting, found.groups[0].size) == ("all_joined", 4, 4)


def test_lines_without_ranks_are_not_missing(analysed: Read) -> None:
    lines = [
        f"[E ProcessGroupNCCL.cpp:475] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, "
        "OpType=ALLREDUCE, NumelIn=48, NumelOut=48, Timeout(ms)=600000) ran for 600061 milliseconds before timing "
        "out.\n"
        for rank in range(3)
    ]
    found = hang(analysed(log(*lines)))
    assert found is not None
    assert (found.verdict, found.ranks_without_report) == ("unknown", "")
    assert not any("were read" in text for text in found.missing)


def test_signal_of_a_pending_operation_is_a_wait(analysed: Read) -> None:
    """It came before the line of its own watchdog."""
    pending = signal(2, 7).replace("completed NCCL work: 7", "completed NCCL work: 6")
    assert verdict(analysed(log(waits(0, 7), waits(1, 7), pending, signal(3, 6)))) == ("absent", "confirmed", (3,), "")
    found = hang(analysed(log(waits(0, 7), waits(1, 7), pending, waits(3, 7))))
    assert found is not None
    assert (found.verdict, found.waiting) == ("unknown", 4)  # Its operation may differ.


def test_several_ranks_that_did_not_join_are_likely(analysed: Read) -> None:
    lines = [*(waits(rank, 78) for rank in (1, 2, 3, 5, 6, 7)), signal(0, 77), signal(4, 77)]
    assert verdict(analysed(log(*lines, size=8))) == ("absent", "likely", (0, 4), "")


def test_rank_is_read_after_the_prefix_of_ray(analysed: Read) -> None:
    lines = [f"(MegatronPolicyWorker[rank={rank}] pid=30{rank}) {line}\n"
             for rank in range(3) for line in waits(rank, 7).splitlines()]  # fmt: skip
    assert verdict(analysed(log(*lines, signal(3, 6)))) == ("absent", "confirmed", (3,), "")


# FlagScale


@pytest.mark.parametrize(
    "report",
    [
        "=== Straggler Report at Step {0} ===\n\nDetected stragglers: [3]\n  Rank 3 (node-7)\n\nSection Timings (ms):\n"
        "\n  forward:\n    Min: 10.00ms, Max: 20.00ms, Avg: 15.00ms, Slowdown: 2.00x\n    Rank 0: 10.00ms\n"
        "    Rank 3: 20.00ms\n\nGPU Performance Scores (higher=faster):\n  Rank 0 (node-1): 2.9138\n",
        "=== Straggler Report at step {0} ===\nDetected stragglers:\n  rank 3 (node-7)\n\nSection timings (ms):\n"
        "  forward: min=10.00, max=20.00, avg=15.00\n    rank 0 (node-1): 10.00\n    rank 3 (node-7): 20.00\n\n"
        "GPU scores (higher is faster):\n  rank 0 (node-1): 2.913800\n",
    ],
)
def test_reports_of_flagscale_have_times_and_hosts(report: str, analysed: Read) -> None:
    found = stragglers_of(analysed(log(*(report.format(step) for step in (10, 20, 30)))))
    assert found is not None
    assert [(one.rank, one.host, one.named_in, one.score) for one in found.ranks] == [(3, "node-7", 3, 0.5)]


def test_ranks_are_not_called_silent_if_only_a_report_shows_the_wait(analysed: Read) -> None:
    found = hang(analysed(log(mismatch(0, "OpType=ALLREDUCE, TensorShape=[8]", 1, "BROADCAST", is_short=True))))
    assert found is not None
    assert (found.ranks, found.ranks_without_report) == ((), "")
    assert not any("about the wait" in text for text in found.missing)

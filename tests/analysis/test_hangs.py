"""Who held the job up: watchdog lines, reports and dumps of simulated and small made-up jobs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.hangs.hang import Hang, HangGroup, HangPosition, sentence
from goodput_cli.analysis.hangs.report import hangs_of, sheets
from tests.simulation.hangs import hang as simulated
from tests.simulation.hangs import healthy_job

STEPS = "".join(
    f" [2026-03-01 12:{step // 6:02d}:{step % 6 * 10:02d}.000000] iteration {step:8d}/    1000 | consumed samples: 8 "
    "| elapsed time per iteration (ms): 10000.0 | global batch size:     8 | lm loss: 1.8E+00 |\n"
    for step in range(1, 31)
)
SIZE = (
    "using world size: {0}, data-parallel size: {0}, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)


def waits(
    rank: int, sequence: int, operation: str = "ALLREDUCE", *, group: str = "0(default_pg)", inside: int | None = None,
    elements: int = 64, out: int | None = None, enqueued: int | None = None, completed: int | None = None,
) -> str:  # fmt: skip
    """Return what the watchdog of a rank prints."""
    inside = rank if inside is None else inside
    head, clock = (
        f"[rank{rank}]:[E301 12:15:01.{rank:09d} ProcessGroupNCCL.cpp",
        f"PG ID 7 PG GUID {group} Rank {inside}",
    )
    done = sequence - 1 if completed is None else completed
    return (
        f"{head}:632] [Rank {inside}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={sequence}, "
        f"OpType={operation}, NumelIn={elements}, NumelOut={out or elements}, Timeout(ms)=600000) ran for "
        f"600{rank:03d} milliseconds before timing out.\n"
        f"{head}:2271] [{clock}]  failure detected by watchdog at work sequence id: {sequence} PG status: last "
        f"enqueued work: {sequence if enqueued is None else enqueued}, last completed work: {done}\n"
    )


def signal(rank: int, enqueued: int) -> str:
    """Return what a living rank prints when another one times out."""
    return (
        f"[rank{rank}]:[E301 12:15:01.{rank:09d} ProcessGroupNCCL.cpp:1794] [PG ID 0 PG GUID 0(default_pg) Rank "
        f"{rank}] Received a dump signal due to a collective timeout from rank 0 and we will try our best to dump the "
        "debug info. "
        f"Last enqueued NCCL work: {enqueued}, last completed NCCL work: {enqueued}.\n"
    )


def desync(rank: int, inside: int, sequence: int, named: int) -> str:
    return (
        f"[rank{rank}]:[E301 12:15:01.900000000 ProcessGroupNCCL.cpp:1936] Rank {inside}\n"
        f"\t - [{inside}] Timeout at collective: ALLREDUCE, #{sequence}\n"
        "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
        f"\t     [{named}] finished collective #{sequence - 1}, but didn't join collective #{sequence} (count from 1)\n"
    )


@pytest.fixture
def analysed(tmp_path: Path) -> Callable[[str], Analysis]:
    def analyse(text: str) -> Analysis:
        (tmp_path / "run.log").write_text(text, encoding="utf-8")
        return goodput_cli.analyze(str(tmp_path / "run.log"))

    return analyse


def last(analysis: Analysis) -> Hang:
    return hangs_of(analysis)[len(analysis.timeline.attempts) - 1]


def log(*lines: str, size: int = 4) -> str:
    return SIZE.format(size) + STEPS + "".join(lines)


Read = Callable[[str], Analysis]


def test_few_ranks_ahead_are_likely(analysed: Read) -> None:
    analysis = analysed(log(*(waits(rank, 40, "BROADCAST") for rank in (1, 2, 3)), waits(0, 42, "_ALLGATHER_BASE")))
    found = last(analysis)
    assert (found.verdict, found.certainty, found.ranks) == ("diverged", "likely", (0,))
    assert sentence(found) == (
        "ranks 1-3 wait in broadcast #40; rank 0 is in all-gather #42, 2 operations ahead (likely)"
    )


def test_ranks_of_a_desync_report_are_ranks_in_the_group(analysed: Read) -> None:
    """The others wait for global rank 5, which the report calls 1."""
    group = "37(TENSOR_MODEL_PARALLEL_GROUP)"
    waiting = [waits(4 + inside, 90, group=group, inside=inside) for inside in (0, 2, 3)]
    analysis = analysed(log(*waiting, desync(4, 0, 90, 1), *(waits(rank, 11) for rank in range(4)), size=8))
    found = last(analysis)
    assert (found.verdict, found.certainty, found.ranks) == ("absent", "confirmed", (5,))
    assert not any(one.suspects for one in analysis.timeline.causes.why)


def test_rank_in_an_unmapped_group_is_not_called_by_its_number_there(analysed: Read) -> None:
    group = "37(TENSOR_MODEL_PARALLEL_GROUP)"
    found = last(analysed(log(waits(4, 90, group=group, inside=0), desync(4, 0, 90, 1), size=8)))
    assert (found.verdict, found.ranks, found.unmapped) == ("unknown", (), "")
    assert found.missing[0] == (
        "a report names rank 1 of TENSOR_MODEL_PARALLEL_GROUP 37, which may itself wait for another rank"
    )


def test_rank_of_a_report_is_not_named_if_it_may_wait_elsewhere(analysed: Read) -> None:
    """Without the lines of rank 5 and of the ranks 0 to 3, it may wait for one of them."""
    waiting = [waits(4 + inside, 90, group=TENSOR, inside=inside) for inside in (0, 2, 3)]
    found = last(analysed(log(*waiting, desync(4, 0, 90, 1), size=8)))
    assert (found.verdict, found.ranks) == ("unknown", ())
    assert found.missing[0] == "a report names rank 5, which may itself wait for another rank"
    others = [waits(rank, 11) for rank in range(4)]
    mine = waits(5, 3, group="41(DATA_PARALLEL_GROUP)", inside=1)
    assert last(analysed(log(*waiting, desync(4, 0, 90, 1), *others, mine, size=8))).ranks == ()


def test_numbers_of_point_to_point_operations_are_not_compared(analysed: Read) -> None:
    """Each stage of a pipeline counts its own."""
    group = "9(PIPELINE_MODEL_PARALLEL_GROUP)"
    kinds = ((0, 40, "SEND"), (1, 41, "RECV"), (2, 41, "RECV"), (3, 41, "RECV"))
    lines = [waits(rank, number, kind, group=group, enqueued=number + 2) for rank, number, kind in kinds]
    assert last(analysed(log(*lines))).ranks == ()
    left = [line for text in lines for line in text.splitlines(keepends=True) if "OpType" not in line]
    assert last(analysed(log(*left))).ranks == ()


def test_first_of_two_operations_of_a_group_is_the_one_it_waits_in(analysed: Read) -> None:
    """The queued one times out later."""
    queued = waits(2, 8, completed=6).replace("12:15:01", "12:15:09")
    assert last(analysed(log(*(waits(rank, 7, enqueued=8) for rank in range(4)), queued))).verdict == "all_joined"


def test_rank_whose_watchdog_may_time_out_later_is_not_named(analysed: Read) -> None:
    """Ranks 0 to 3 all wait for each other: the living rank 4 does not hold them up."""
    inner = [waits(rank, 90, "_ALLGATHER_BASE", group=TENSOR, inside=rank, out=256) for rank in range(4)]
    others = [waits(rank, 7) for rank in (5, 6, 7)]
    assert last(analysed(log(*inner, *others, signal(4, 6), size=8))).ranks == ()
    outer = [waits(rank, 7) for rank in range(8) if rank != 4]
    found = last(analysed(log(*outer, waits(0, 9, group="50(PAIR)", inside=1), signal(4, 6), size=8)))
    assert (found.verdict, found.certainty, found.ranks) == ("absent", "likely", (4,))


def test_all_joined_names_no_rank(analysed: Read) -> None:
    found = last(analysed(log(*(waits(rank, 7, enqueued=9) for rank in range(4)))))
    assert (found.verdict, found.certainty, found.ranks) == ("all_joined", "confirmed", ())


TENSOR = "37(TENSOR_MODEL_PARALLEL_GROUP)"


def _three_of_a_group(**more: Any) -> list[str]:
    """Return the waits of ranks 0 to 2 in a group, and of ranks 3 to 7 in another one."""
    inner = [waits(rank, 90, "_ALLGATHER_BASE", group=TENSOR, inside=rank, **more) for rank in range(3)]
    return [*inner, *(waits(rank, 7, group=f"{rank}(DATA_PARALLEL_GROUP)", inside=1) for rank in range(3, 8))]


def test_group_of_unknown_size_is_not_all_joined(analysed: Read) -> None:
    """Rank 3 may be its fourth member, which waits elsewhere."""
    assert last(analysed(log(*_three_of_a_group(), size=8))).verdict == "unknown"


@pytest.mark.parametrize(("size", "verdict"), [(3, "all_joined"), (4, "unknown")])
def test_size_of_a_group_comes_from_inputs_and_outputs(size: int, verdict: str, analysed: Read) -> None:
    """An all-gather puts the inputs of all members together."""
    found = last(analysed(log(*_three_of_a_group(elements=64, out=64 * size), size=8)))
    assert (found.verdict, found.groups[0].size_known) == (verdict, True)


def test_size_of_a_group_is_printed_by_the_program(analysed: Read) -> None:
    def verdict(size: int) -> str:
        printed = f"using world size: 12, data-parallel size: 4, tensor-model-parallel size: {size}\n"
        return last(analysed(printed + log(*_three_of_a_group(), size=8))).verdict

    assert (verdict(3), verdict(4)) == ("unknown", "unknown")  # The log prints two sizes of tensor parallel groups.
    printed = log(*_three_of_a_group(), size=8).replace(
        "tensor-model-parallel size: 1", "tensor-model-parallel size: 3"
    )
    assert last(analysed(printed)).verdict == "all_joined"


def test_rank_with_unfinished_operation_of_its_peer_is_behind(analysed: Read) -> None:
    lines = [waits(4, 90, "_REDUCE_SCATTER_BASE", group=TENSOR, inside=0), waits(5, 92, group=TENSOR, inside=1)]
    found = last(analysed(log(*lines, *(waits(rank, 11) for rank in range(4)), size=6)))
    assert (found.verdict, found.certainty, found.ranks) == ("behind", "likely", (4,))


def test_ranks_that_wait_in_several_groups_are_not_compared(analysed: Read) -> None:
    """Each group has a watchdog: it also prints operations that are queued behind the one that does not finish."""
    tensor = [waits(rank, 90, "_ALLGATHER_BASE", group=TENSOR, inside=rank, out=256) for rank in range(4)]
    assert last(analysed(log(*tensor, size=8))).verdict == "all_joined"
    queued = [waits(rank, 7) for rank in range(4)]
    assert last(analysed(log(*tensor, *queued, size=8))).verdict == "unknown"
    assert last(analysed(log(*queued, *tensor, size=8))).verdict == "unknown"


def test_operations_of_one_number_without_a_group_are_unknown(analysed: Read) -> None:
    """The lines of two groups of rank 3 have the same number, and the status of one of them is lost."""
    lines = "".join([*(waits(rank, 9) for rank in range(3)), waits(3, 9), waits(3, 9, "_ALLGATHER_BASE", group=TENSOR)])
    left = [line for line in lines.splitlines(keepends=True) if "TENSOR" not in line]
    assert last(analysed(log(*left))).ranks == ()


def test_rank_0_of_a_group_may_finish_an_operation_alone(analysed: Read) -> None:
    """Others are behind only if another rank finished what they wait for: rank 0 may have sent a broadcast instead."""
    behind = [waits(4 + inside, 90, "_REDUCE_SCATTER_BASE", group=TENSOR, inside=inside) for inside in (1, 2)]
    ahead = waits(4, 91, "_ALLGATHER_BASE", group=TENSOR, inside=0)
    assert last(analysed(log(*behind, ahead, size=8))).ranks in ((), (4,))
    alone = [waits(5, 90, "_REDUCE_SCATTER_BASE", group=TENSOR, inside=1), ahead]
    assert last(analysed(log(*alone, size=8))).ranks == ()


def test_root_of_an_operation_may_finish_first(analysed: Read) -> None:
    """Without the line about the operation it is unknown whether all finish it together."""
    lines = "".join([*(waits(rank, 40, "BROADCAST") for rank in (1, 2)), waits(0, 42, "ALLGATHER")]).splitlines(True)
    left = [line for line in lines if "OpType=BROADCAST" not in line]
    assert last(analysed(log(*lines, size=3))).ranks in ((), (0,))
    assert last(analysed(log(*left, size=3))).ranks in ((), (0,))


@pytest.mark.parametrize(("inside", "named"), [(2, (5,)), (1, ())])
def test_rank_alone_in_a_group_of_three_is_likely(inside: int, named: tuple[int, ...], analysed: Read) -> None:
    """In a group of two, the other one may have left it out."""
    lines = [waits(5, 90, group=TENSOR, inside=inside), *(waits(rank, 11) for rank in range(8) if rank != 5)]
    assert last(analysed(log(*lines, size=8))).ranks == named


def test_silence_names_no_rank(analysed: Read) -> None:
    found = last(analysed(log(*(waits(rank, 7) for rank in range(3)))))
    assert (found.verdict, found.ranks, found.ranks_without_report) == ("unknown", (), "3")


def test_own_numbers_of_a_living_rank_name_it(analysed: Read) -> None:
    found = last(analysed(log(*(waits(rank, 7) for rank in range(3)), signal(3, 6))))
    assert (found.verdict, found.certainty, found.ranks) == ("absent", "confirmed", (3,))


def test_rank_is_not_absent_where_the_others_differ(analysed: Read) -> None:
    """They would wait without it, too: its own watchdog may not have timed out yet."""

    def named(elements: int) -> tuple[int, ...]:
        others = [waits(4 + inside, 90, group=TENSOR, inside=inside) for inside in (0, 1)]
        other = waits(7, 90, group=TENSOR, inside=3, elements=elements)
        lines = [*others, other, *(waits(rank, 11) for rank in range(4)), signal(6, 10)]
        return tuple(last(analysed(log(*lines, size=8))).ranks)

    assert (named(64), named(192)) == ((6,), ())


def test_queued_operations_of_a_dump_signal_are_no_wait(analysed: Read) -> None:
    """The watchdogs of ranks 4 and 6 had not timed out: they may wait in the group of the others."""
    others = [waits(rank, 90, "_REDUCE_SCATTER_BASE", group="5(DATA)", inside=rank) for rank in (0, 1, 2, 3, 5, 7)]
    queued = [signal(rank, 11).replace("completed NCCL work: 11", "completed NCCL work: 10") for rank in (4, 6)]
    assert last(analysed(log(*others, *queued, size=8))).ranks == ()


@pytest.mark.parametrize(("number", "named"), [(90, (1,)), (91, ())])
def test_odd_one_of_two_is_shown_by_other_groups_at_its_number(
    number: int, named: tuple[int, ...], analysed: Read
) -> None:
    lines = [waits(rank, 90, group="20(TP)", inside=rank, elements=64 + 128 * rank) for rank in range(2)]
    others = [waits(rank, number, group="21(TP)", inside=rank - 2) for rank in (2, 3)]
    assert last(analysed(log(*lines, *others))).ranks == named


def test_tie_shows_both_and_names_none(analysed: Read) -> None:
    found = last(analysed(log(*(waits(rank, 7, elements=64 << (rank % 2)) for rank in range(4)))))
    assert (found.certainty, found.ranks) == ("unknown", ())
    assert [one.ranks for one in found.groups[0].positions] == ["0, 2", "1, 3"]
    shown = "(ranks 0, 2 in all-reduce #7 of 64 elements; ranks 1, 3 in all-reduce #7 of 128 elements)"
    assert shown in sentence(found)
    assert [row[1] for row in next(iter(sheets(found, 1))).rows] == [
        "all-reduce #7 of 64 elements", "all-reduce #7 of 128 elements"
    ]  # fmt: skip


def test_mismatch_names_the_minority_and_not_the_reporter(analysed: Read) -> None:
    def report(rank: int, other: int, operation: str = "ALLREDUCE") -> str:
        return (
            "RuntimeError: Detected mismatch between collectives on ranks. Rank "
            f"{rank} is running collective: CollectiveFingerPrint(SequenceNumber=77, OpType={operation}, "
            f"TensorShape=[8]), but Rank {other} is running collective: "
            "CollectiveFingerPrint(SequenceNumber=77, OpType=BROADCAST, TensorShape=[1]).\n"
        )

    found = last(analysed(log(report(0, 2), report(1, 2), report(3, 2))))
    assert (found.verdict, found.certainty, found.ranks) == ("diverged", "confirmed", (2,))
    assert hangs_of(analysed(log(report(0, 2))))[0].ranks == ()


def test_root_cause_stays_the_headline(analysed: Read) -> None:
    death = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    trace = 'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n    f()\n'
    text = log("".join(f"[rank3]: {line}\n" for line in trace.splitlines()) + death, *(waits(r, 7) for r in range(3)))
    analysis = analysed(text)
    assert analysis.timeline.causes.why[-1].code == "device_oom"
    assert not any("which rank held them up" in one.text for one in analysis.insights)


def test_group_whose_numbers_contradict_is_not_compared(analysed: Read) -> None:
    """Coalesced and P2P operations complete more than they enqueue."""
    lines = [waits(rank, 40, enqueued=40, completed=44) for rank in (1, 2, 3)]
    assert last(analysed(log(*lines, waits(0, 42)))).ranks == ()


@pytest.mark.parametrize("seed", range(14))
def test_simulated_hang_accuses_no_innocent_rank(seed: int, analysed: Read) -> None:
    truth = simulated(seed)
    hangs = hangs_of(analysed(truth.text))
    named: set[int] = set(hangs[max(hangs)].ranks) if hangs else set()
    assert named <= truth.blamed
    if truth.all_printed and truth.fault in ("absent", "busy"):
        assert named == truth.blamed


def _changed(text: str, how: str) -> str:
    lines = text.splitlines()
    if how == "colors":
        return "\n".join(f"\x1b[31m{line}\x1b[0m" for line in lines)
    if how == "quote":
        return "\n".join(f"> {line}" for line in lines)
    if how == "launcher":
        return "\n".join(f"[default0]:{line}" for line in lines)
    if how == "crlf":
        return "\r\n".join(lines) + "\r\n"
    begin = next(at for at, line in enumerate(lines) if line.startswith("[rank"))
    blocks: list[list[str]] = []
    for line in lines[begin:]:
        if line.startswith("[rank"):
            blocks.append([line])
        else:
            blocks[-1].append(line)
    random.Random(1).shuffle(blocks)
    return "\n".join([*lines[:begin], *(line for block in blocks for line in block)])


CASES = {
    "diverged": log(*(waits(rank, 40, "BROADCAST") for rank in (1, 2, 3)), waits(0, 42, "_ALLGATHER_BASE")),
    "group": log(
        *(waits(4 + inside, 90, group=TENSOR, inside=inside) for inside in (0, 2, 3)), desync(4, 0, 90, 1), size=8
    ),
    "joined": log(*(waits(rank, 7, enqueued=9) for rank in range(4))),
    "absent": log(*(waits(rank, 7) for rank in range(3)), signal(3, 6)),
}


def _verdict(found: Hang) -> tuple[Any, ...]:
    return found.verdict, found.certainty, found.ranks


@pytest.mark.parametrize("how", ["colors", "launcher", "crlf", "order", "quote"])
@pytest.mark.parametrize("case", CASES)
def test_form_of_lines_does_not_change_the_verdict(case: str, how: str, analysed: Read) -> None:
    assert _verdict(last(analysed(_changed(CASES[case], how)))) == _verdict(last(analysed(CASES[case])))


@pytest.mark.parametrize("case", CASES)
def test_names_of_groups_do_not_change_the_verdict(case: str, analysed: Read) -> None:
    renamed = CASES[case].replace("37(TENSOR_MODEL_PARALLEL_GROUP)", "9124(mesh_tp)")
    assert _verdict(last(analysed(renamed))) == _verdict(last(analysed(CASES[case])))


@pytest.mark.parametrize("case", CASES)
def test_later_attempt_does_not_change_the_verdict(case: str, analysed: Read) -> None:
    healthy = STEPS.replace("2026-03-01 12:", "2026-03-01 14:")
    analysis = analysed(CASES[case] + healthy)
    assert len(analysis.timeline.attempts) == 2
    found = hangs_of(analysis)
    assert found.keys() == {0}
    assert _verdict(found[0]) == _verdict(last(analysed(CASES[case])))


@pytest.mark.parametrize("case", CASES)
def test_files_of_ranks_have_no_order(case: str, analysed: Read, tmp_path: Path) -> None:
    """Each rank writes a file: the names decide in which order they are read."""
    lines = CASES[case].splitlines(keepends=True)
    begin = next(at for at, line in enumerate(lines) if line.startswith("[rank"))
    files: dict[str, list[str]] = {}
    name = ""
    for line in lines[begin:]:
        name = line.partition("]")[0].removeprefix("[") if line.startswith("[rank") else name
        files.setdefault(name, []).append(line)
    for order in (1, -1):
        folder = tmp_path / f"order{order}"
        folder.mkdir()
        (folder / "main.log").write_text("".join(lines[:begin]), encoding="utf-8")
        for letter, some in zip("abcdefgh"[::order], files.values(), strict=False):
            (folder / f"{letter}.log").write_text("".join(some), encoding="utf-8")
        paths = [str(folder / "main.log"), *sorted(str(path) for path in folder.glob("?.log"))]
        analysis = goodput_cli.analyze(paths)
        assert _verdict(last(analysis)) == _verdict(last(analysed(CASES[case])))


@pytest.mark.parametrize("seed", range(7))
def test_lost_lines_do_not_name_another_rank(seed: int, analysed: Read) -> None:
    """A verdict without a rank may turn into one about a rank that is to blame, and into no other one."""
    truth = simulated(seed + 21)
    lines = truth.text.splitlines(keepends=True)
    for share in (0.2, 0.5):
        chance = random.Random(seed)
        left = [line for line in lines if "ProcessGroupNCCL" not in line or chance.random() >= share]
        for hang in hangs_of(analysed("".join(left))).values():
            assert set(hang.ranks) <= truth.blamed
            assert hang.verdict != "all_joined" or truth.fault == "network"


@pytest.mark.parametrize("seed", range(6))
def test_healthy_job_names_no_rank(seed: int, tmp_path: Path) -> None:
    healthy = healthy_job(seed)
    (tmp_path / "run.log").write_text(healthy.text, encoding="utf-8")
    for rank, one in healthy.dumps.items():
        (tmp_path / f"nccl_trace_rank_{rank}").write_text(json.dumps(one), encoding="utf-8")
    analysis = goodput_cli.analyze(str(tmp_path / "run.log"))
    assert hangs_of(analysis) == {}
    assert analysis.to_dict()["hung_now"] is None


def test_answer_has_the_hang_of_the_last_end(analysed: Read) -> None:
    answer = analysed(log(*(waits(rank, 7) for rank in range(3)), signal(3, 6))).to_dict()
    hang = answer["last_end"]["hang"]
    assert (hang["verdict"], hang["ranks"], hang["timeout_seconds"]) == ("absent", [3], 600.0)
    assert hang["groups"][0]["positions"][0]["evidence"]


def test_tables_show_absent_rank_and_count_joined_groups(analysed: Read) -> None:
    tensor = [waits(4 + inside, 90, group=TENSOR, inside=inside) for inside in (0, 2, 3)]
    whole = [waits(rank, 5, "ALLGATHER", group=f"{40 + rank // 2}(PAIRS)", inside=rank % 2, out=128)
             for rank in range(4)]  # fmt: skip
    queued = [waits(rank, 11) for rank in range(4)]
    analysis = analysed(log(*tensor, desync(4, 0, 90, 1), *queued, *whole, size=8))
    sheet, *_ = sheets(last(analysis), 1)
    assert [row[:3] for row in sheet.rows][-1] == ("5", "all-reduce #90", "no")
    assert sheet.notes[0].endswith("(confirmed); all members joined in 2 more groups")


def test_note_counts_groups_that_wait_for_another_group() -> None:
    def group(name: str, where: str | None) -> HangGroup:
        one = HangPosition("0-1", "0-1", 7, "ALLREDUCE", 8, 7, 6, ())
        return HangGroup(name, "", 4, True, where, (one,))

    def note(count: int) -> str:
        groups = (group("a", None), *(group(f"b{at}", "a") for at in range(count)))
        (sheet,) = sheets(Hang("absent", "likely", (3,), (), "", None, None, None, None, None, (), groups), 1)
        return sheet.notes[0]

    assert note(1).endswith("; 1 more group waits for another group")
    assert note(2).endswith("; 2 more groups wait for another group")


def test_jobs_and_disruptions_show_who_held_them_up(tmp_path: Path) -> None:
    text = log(*(waits(rank, 7) for rank in range(3)), signal(3, 6))
    later = text.replace("12:", "13:").replace("iteration        1/", "iteration        2/")
    (tmp_path / "run.log").write_text(text + later, encoding="utf-8")
    job = goodput_cli.jobs(str(tmp_path / "run.log")).to_dict()["jobs"][0]
    assert (job["blocked_by"], job["at_risk_seconds"]) == ("rank 3", None)
    analysis = goodput_cli.analyze(str(tmp_path / "run.log"))
    frame = analysis.disruptions.to_frame()
    assert len(frame) == 1
    assert frame["hang_verdict"].tolist() == ["absent"] * len(frame)
    assert frame["blocked_by_ranks"].tolist() == ["3"] * len(frame)
    rows = analysis.to_dict()["disruptions"]
    assert [one["hang"]["ranks"] for one in rows] == [[3]] * len(frame)
    assert hangs_of(analysis).keys() == {*range(len(analysis.timeline.attempts))}


RAS = """\
Communicators... 1
  4 ranks in total, INCOMPLETE
  3 ranks have launched up to operation {0}
  1 rank has launched up to operation {1}
    Rank 2 -- GPU 2 managed by process 4711 on node node-1
"""


def test_ras_names_the_smaller_part_only_if_it_is_behind(analysed: Read) -> None:
    """The job still runs: no watchdog timed out."""
    analysis = analysed(log(RAS.format(640, 636)))
    hang = analysis.to_dict()["hung_now"]["hang"]
    assert (hang["verdict"], hang["ranks"], hang["hosts"]) == ("absent", [2], ["node-1"])
    assert analysed(log(RAS.format(640, 641))).to_dict()["hung_now"] is None
    later = STEPS.splitlines(keepends=True)[-1].replace("12:05:00", "12:05:10").replace("      30/", "      31/")
    assert analysed(log(RAS.format(640, 639), later)).to_dict()["hung_now"] is None


def test_hostile_text_of_lines_is_safe(analysed: Read) -> None:
    group = "3(\x1b[31mred\x07)"
    analysis = analysed(log(*(waits(rank, 7, group=group, inside=rank) for rank in range(3))))
    shown = analysis.to_html() + "".join(one.text for one in analysis.insights)
    assert "\x1b" not in shown
    assert "\x07" not in shown

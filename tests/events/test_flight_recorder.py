"""Dumps of flight recorders: pickles are walked, and never unpickled; hostile files end in a warning."""

from __future__ import annotations

import io
import json
import os
import pickle
import pickletools
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.analysis.hangs.hang import Hang, sentence
from goodput_cli.analysis.hangs.report import hangs_of, sheets
from goodput_cli.api.watch import WatchedLog
from goodput_cli.events.hangs import dump_files
from goodput_cli.events.hangs.dump_files import DumpFile, DumpReader, innermost
from goodput_cli.events.hangs.opcodes import MOST_ITEMS, LongPickle, RefusedPickleError, first_items, plain_data
from goodput_cli.sources import layouts
from goodput_cli.sources.base import RawBatch
from goodput_cli.sources.layouts import is_dump, is_dump_file
from tests.analysis.test_hangs import log, waits
from tests.simulation.hangs import hang as simulated

VALUE: dict[str, Any] = {
    "version": "2.9", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
    "entries": [{"state": "completed", "sizes": ((1, 2), (3,)), "time": 1 << 60, "share": 0.5, "more": None}] * 2,
    "flags": [True, False], "empty": [(), {}, []], "long": "x" * 300,
}  # fmt: skip


class Malicious:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder / "created"),)


def dump(rank: int, *, enqueued: int, completed: int, others: int = 3) -> dict[str, Any]:
    """Return the dump of a rank in a default group."""
    entries = [
        {
            "record_id": at, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": at, "is_p2p": False,
            "profiling_name": "nccl:all_reduce", "input_sizes": [[64]], "output_sizes": [[64]],
            "state": "completed" if at <= completed else "scheduled", "retired": at <= completed, "time_created_ns": 0,
            "timeout_ms": 600_000,
        }
        for at in range(1, enqueued + 1)
    ]  # fmt: skip
    return {
        "version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str([*range(others + 1)])}},
        "pg_status": {"0": {"last_enqueued_collective": str(enqueued), "last_completed_collective": str(completed)}},
        "entries": entries,
    }  # fmt: skip


def analysed(folder: Path, dumps: dict[int, bytes], text: str = "") -> tuple[Hang | None, list[str]]:
    (folder / "run.log").write_text(text or log(), encoding="utf-8")
    for rank, data in dumps.items():
        (folder / f"nccl_trace_rank_{rank}").write_bytes(data)
    analysis = goodput_cli.analyze(str(folder / "run.log"))
    return hangs_of(analysis).get(0), [one.message for one in analysis.diagnostics if one.code == "unusable_dump"]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_is_what_was_pickled(protocol: int) -> None:
    assert plain_data(pickle.dumps(VALUE, protocol=protocol)) == VALUE


def test_no_opcode_is_executed(tmp_path: Path) -> None:
    for value in (Malicious(tmp_path), {"pg_config": [Malicious(tmp_path)]}, {1: b"bytes"}, {1: {2, 3}}):
        with pytest.raises(RefusedPickleError, match=r"opcode [A-Z_0-9]+, which is not plain data"):
            plain_data(pickle.dumps(value, protocol=2))
    assert not (tmp_path / "created").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x80\x02", b"\x80\x02}", b"\x80\x02}.garbage"[:3] + b"\xff\xff", b"\x80\x02}q\x00u.", b"\x80\x02(.",
        b"\x80\x02}K\x01s.", b"\x80\x02h\x05.", b"\x80\x02K\x01K\x02a.", b"\x80\x02e.", b"\x80\x02}(K\x01u.",
        b"\x80\x02}(]K\x01u.", b"\x80\x02X\xff\xff\xff\xffabc.", b"\x80\x02\x8a\xff\x01.",
    ],
)  # fmt: skip
def test_damaged_pickles_are_refused(data: bytes) -> None:
    with pytest.raises(RefusedPickleError):
        plain_data(data)


def test_sizes_are_limited() -> None:
    nested: Any = []
    for _ in range(9):
        nested = [nested]
    for value in (nested, "x" * (1 << 17), list(range(MOST_ITEMS + 1))):
        with pytest.raises(RefusedPickleError, match="more than"):
            plain_data(pickle.dumps(value, protocol=2))


@pytest.mark.parametrize("opcode", [b"(", b"\x94"], ids=["mark", "memoize"])
def test_one_opcode_repeated_is_refused_early(opcode: bytes) -> None:
    """Each would make an object that is much larger than itself."""
    with pytest.raises(RefusedPickleError, match="more than"):
        plain_data(b"\x80\x04}" + opcode * (2 * MOST_ITEMS))


@pytest.mark.parametrize("form", ["pickle", "json"])
def test_groups_of_a_large_dump_are_read(form: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its groups and last numbers come before its operations, and after them in JSON."""
    monkeypatch.setattr(dump_files, "_MOST_BYTES", 20_000)
    monkeypatch.setattr(dump_files, "_HEAD_BYTES", 2_000)
    dumps = {rank: dump(rank, enqueued=20, completed=16) for rank in (0, 1, 3)} | {
        2: dump(2, enqueued=16, completed=16)
    }
    dumps[2]["entries"] = [one | {"frames": "x" * 1000} for one in dumps[2]["entries"] * 2]
    data = {
        rank: pickle.dumps(one, protocol=2) if form == "pickle" else json.dumps(one, sort_keys=True).encode()
        for rank, one in dumps.items()
    }
    data[2] = data[2].ljust(20_001)
    found, warnings = analysed(tmp_path, data)
    assert found is not None
    assert (found.verdict, found.certainty, found.ranks) == ("absent", "confirmed", (2,))
    assert [one.split(":")[0] for one in warnings] == ["a dump of 0 MiB is above the limit of 16 MiB"]


def test_begin_of_a_damaged_pickle_is_refused() -> None:
    with pytest.raises(RefusedPickleError, match="opcode"):
        first_items(pickle.dumps({"pg_config": {}, "more": b"x", "last": "y" * 300}, protocol=3)[:-100])
    assert first_items(pickle.dumps({"a": {"b": 1}, "c": [1] * 50}, protocol=2)[:40]) == {"a": {"b": 1}, "c": []}


def test_index_of_the_memo_allocates_nothing() -> None:
    assert plain_data(b"\x80\x02}r\xff\xff\xff\x7fj\xff\xff\xff\x7f.") == {}


def test_list_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    out = io.BytesIO()
    pickle.Pickler(out, protocol=2).dump(loop)
    assert list(pickletools.genops(out.getvalue()))
    assert isinstance(plain_data(out.getvalue()), list)  # Nothing walks it to its end.


@pytest.mark.parametrize("form", ["pickle", "json"])
def test_device_that_stopped_finishing_is_behind(form: str, tmp_path: Path) -> None:
    dumps = {rank: dump(rank, enqueued=20, completed=16) for rank in (0, 1, 3)} | {2: dump(2, enqueued=20, completed=9)}
    data = {
        rank: pickle.dumps(one, protocol=2) if form == "pickle" else json.dumps(one).encode()
        for rank, one in dumps.items()
    }
    found, warnings = analysed(tmp_path, data)
    assert found is not None
    assert (found.verdict, found.certainty, found.ranks, warnings) == ("behind", "confirmed", (2,), [])


def _encoded(dumps: dict[int, dict[str, Any]]) -> dict[int, bytes]:
    return {rank: json.dumps(one).encode() for rank, one in dumps.items()}


def test_all_ranks_that_did_not_finish_are_named(tmp_path: Path) -> None:
    """Each holds up its own group."""
    dumps = {rank: dump(rank, enqueued=20, completed=9 if rank in (1, 2) else 16) for rank in range(4)}
    for rank, one in dumps.items():
        group = {"name": f"{rank // 2 + 7}", "desc": "TP", "ranks": str([rank // 2 * 2, rank // 2 * 2 + 1])}
        one["pg_config"] = {group["name"]: group}
        one["pg_status"] = {}
        one["entries"] = [each | {"process_group": [group["name"], "TP"]} for each in one["entries"]]
    found, _ = analysed(tmp_path, _encoded(dumps))
    assert found is not None
    assert (found.verdict, found.certainty, found.ranks) == ("behind", "confirmed", (1, 2))
    assert sentence(found).startswith("rank 0 waits in all-reduce #17; ranks 1-2 did not finish an operation")
    (first, *_) = sheets(found, 1)
    assert [row[-1] for row in first.rows] == ["nccl_trace_rank_1", "nccl_trace_rank_0"]


@pytest.mark.parametrize(("count", "named"), [(4, (1,)), (3, ())])
def test_odd_one_of_two_is_shown_by_what_other_groups_ran(count: int, named: tuple[int, ...], tmp_path: Path) -> None:
    """Their operation of that number has finished. One other dump is too few."""
    dumps = {rank: dump(rank, enqueued=20, completed=16 if rank < 2 else 20) for rank in range(count)}
    for rank, one in dumps.items():
        name = f"{rank // 2 + 7}"
        one["pg_config"] = {name: {"name": name, "desc": "TP", "ranks": str([rank // 2 * 2, rank // 2 * 2 + 1])}}
        one["pg_status"] = {}
        one["entries"] = [each | {"process_group": [name, "TP"]} for each in one["entries"]]
    dumps[1]["entries"][16] |= {"input_sizes": [[192]]}
    found, _ = analysed(tmp_path, _encoded(dumps))
    assert found is not None
    assert (found.verdict, found.ranks) == ("diverged", named)


def test_all_to_all_may_end_early_for_some_ranks(tmp_path: Path) -> None:
    """A rank waits for data of a rank from which the others expect none."""
    dumps = {rank: dump(rank, enqueued=20, completed=16 if rank else 9) for rank in range(4)}
    for one in dumps.values():
        one["entries"] = [each | {"profiling_name": "nccl:all_to_all"} for each in one["entries"]]
    found, _ = analysed(tmp_path, _encoded(dumps))
    assert found is not None
    assert found.ranks == ()


def test_rank_that_waits_for_a_stage_is_not_named(tmp_path: Path) -> None:
    """It did not enqueue what its group waits for, as it waits for a rank of the stage before it."""
    dumps = {rank: dump(rank, enqueued=20 if rank != 2 else 16, completed=16) for rank in range(4)}
    receive = {"is_p2p": True, "p2p_seq_id": 3, "process_group": ["9", "PP"], "profiling_name": "nccl:recv 2<-1",
               "state": "scheduled", "retired": False}  # fmt: skip
    dumps[2]["entries"].append(dumps[2]["entries"][-1] | receive)
    found, _ = analysed(tmp_path, _encoded(dumps))
    assert found is not None
    assert (found.verdict, found.ranks, found.waiting) == ("unknown", (), 4)


def test_operations_that_all_finished_are_not_compared(tmp_path: Path) -> None:
    """The root of a scatter has an input, and others do not."""
    dumps = {rank: dump(rank, enqueued=20, completed=16) for rank in range(4)}
    dumps[3]["entries"][2] |= {"profiling_name": "nccl:broadcast"}
    found, _ = analysed(tmp_path, _encoded(dumps))
    assert found is not None
    assert (found.verdict, found.ranks) == ("all_joined", ())
    for rank, one in dumps.items():
        one["entries"][16] |= {"profiling_name": "nccl:scatter", "input_sizes": [[64]] if rank == 0 else []}
    found, _ = analysed(tmp_path, _encoded(dumps))
    assert found is not None
    assert (found.verdict, found.ranks) == ("all_joined", ())


def test_dumps_of_a_job_that_ran_on_are_ignored(tmp_path: Path) -> None:
    """Rank 2 was dumped before it enqueued what the others have already finished."""
    dumps = {rank: dump(rank, enqueued=20 if rank != 2 else 12, completed=16 if rank != 2 else 9) for rank in range(4)}
    found, warnings = analysed(tmp_path, _encoded(dumps))
    assert found is None
    assert warnings[0].startswith("dumps of different moments")


@pytest.mark.parametrize(("seconds", "named"), [(-1, ()), (20, ()), (700, (2,))])
def test_dumps_that_were_written_while_the_job_ran_are_ignored(
    seconds: int, named: tuple[int, ...], tmp_path: Path
) -> None:
    """In a running job, too, most ranks wait for the last one."""
    first = 1_772_366_700 * 10**9
    dumps = {rank: dump(rank, enqueued=20 if rank != 2 else 16, completed=16) for rank in range(4)}
    analysed(tmp_path, _dated(dumps, first))
    for path in tmp_path.glob("nccl_trace_rank_*"):
        os.utime(path, ns=(first + seconds * 10**9, first + seconds * 10**9))
    found = hangs_of(goodput_cli.analyze(str(tmp_path / "run.log")))
    assert (tuple(found[0].ranks) if found else ()) == named


def _dated(dumps: dict[int, dict[str, Any]], ns: int) -> dict[int, bytes]:
    for one in dumps.values():
        one["entries"] = [each | {"time_created_ns": ns + at} for at, each in enumerate(one["entries"])]
    return _encoded(dumps)


@pytest.mark.parametrize("zone", ["", "Z"])
def test_dumps_of_an_earlier_attempt_are_not_those_of_the_last_one(zone: str, tmp_path: Path) -> None:
    """The last attempt has fewer ranks: the files of the others are left over."""
    hour, first = 3600 * 10**9, 1_772_366_700 * 10**9  # 2026-03-01 12:05 UTC
    old = {rank: dump(rank, enqueued=20 if rank != 6 else 16, completed=16, others=7) for rank in range(4, 8)}
    new = {rank: dump(rank, enqueued=8 if rank != 1 else 6, completed=6) for rank in range(4)}
    text = "".join(log().replace("01 12:", f"01T{clock}:").replace("0.000000]", f"0.0{zone}]") for clock in (12, 13))
    analysed(tmp_path, _dated(old, first) | _dated(new, first + hour), text)
    analysis = goodput_cli.analyze(str(tmp_path / "run.log"))
    hangs = hangs_of(analysis)
    assert len(analysis.timeline.attempts) == 2
    assert hangs[1].ranks == (1,)
    assert (0 in hangs) == bool(zone)  # The zone of the log decides to which attempt the old ones belong.
    assert not zone or hangs[0].ranks == (6,)


def test_dumps_next_to_a_job_that_ended_well_name_no_rank(tmp_path: Path) -> None:
    """They are of the first attempt, or of a debugging session."""
    dumps = {rank: dump(rank, enqueued=20 if rank != 2 else 16, completed=16) for rank in range(4)}
    text = log() + log().replace(" 12:", " 14:") + "[after training is done] datetime: 2026-03-01 14:06:00 \n"
    analysed(tmp_path, _encoded(dumps), text)
    analysis = goodput_cli.analyze(str(tmp_path / "run.log"))
    assert (len(analysis.timeline.attempts), analysis.job.ending) == (2, "clean")
    assert hangs_of(analysis) == {}


def test_phase_is_the_innermost_function_of_the_program(tmp_path: Path) -> None:
    dumps = {rank: dump(rank, enqueued=20, completed=16) for rank in range(4)}
    for one in dumps.values():
        one["entries"][16]["frames"] = [
            {"name": "all_reduce", "filename": "/opt/lib/torch/distributed/c10d.py", "line": 3},
            {"name": "clip\x1b[31m", "filename": "/work/optimizer.py", "line": 7},
        ]
    found, _ = analysed(tmp_path, {rank: json.dumps(one).encode() for rank, one in dumps.items()})
    assert found is not None
    assert found.phase == "clip (optimizer.py:7)"


def test_rank_that_did_not_enqueue_is_absent(tmp_path: Path) -> None:
    dumps = {rank: dump(rank, enqueued=20, completed=16) for rank in (0, 1, 3)}
    dumps[2] = dump(2, enqueued=16, completed=16)
    found, _ = analysed(tmp_path, {rank: json.dumps(one).encode() for rank, one in dumps.items()})
    assert found is not None
    assert (found.verdict, found.certainty, found.ranks) == ("absent", "confirmed", (2,))


def test_hostile_files_end_in_a_warning(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    head = b'{"pg_config": '
    data = {
        0: pickle.dumps({"pg_config": {}, "more": Malicious(tmp_path)}, protocol=2), 1: head + b"[" * 100_000,
        2: head + b"{}, " + b"1" * 5000, 3: head + b'{"0": {"ranks": "[0, 1]", "desc": "\\u001b[31mred"}}}',
    }  # fmt: skip
    found, warnings = analysed(tmp_path, data)
    assert found is None
    assert len(warnings) == 3
    assert any("opcode" in one for one in warnings)
    assert not (tmp_path / "created").exists()


@pytest.mark.parametrize("value", [1, [], "x", {"0": 1}, {"0": {"ranks": 5}}, None])
def test_values_of_other_types_are_left_out(value: Any, tmp_path: Path) -> None:
    one = dump(0, enqueued=3, completed=2) | {"pg_config": value, "pg_status": value, "entries": value}
    analysed(tmp_path, {0: json.dumps(one).encode()})


def test_growing_p2p_counts_are_not_compared(tmp_path: Path) -> None:
    dumps = {rank: dump(rank, enqueued=20, completed=16) for rank in range(4)}
    dumps[2]["entries"].insert(0, dumps[2]["entries"][0] | {"is_p2p": True})
    dumps[2]["pg_status"]["0"]["last_enqueued_collective"] = "15"
    found, _ = analysed(tmp_path, {rank: json.dumps(one).encode() for rank, one in dumps.items()})
    assert found is not None
    assert (found.verdict, found.ranks) == ("all_joined", ())


@pytest.mark.parametrize("seed", range(7))
def test_dumps_of_simulated_hangs_accuse_no_innocent_rank(seed: int, tmp_path: Path) -> None:
    truth = simulated(seed)
    text = "\n".join(line for line in truth.text.splitlines() if "ProcessGroupNCCL" not in line)
    found, _ = analysed(tmp_path, {rank: json.dumps(one).encode() for rank, one in truth.dumps.items()}, text)
    named = set() if found is None else set(found.ranks)
    assert named <= truth.blamed
    if truth.loss == "none" and truth.fault != "dead_host":
        assert named == truth.blamed


def test_objects_that_a_pickle_repeats_are_read_once() -> None:
    nested: object = [1] * 1000
    for _ in range(3):
        nested = [nested] * 100
    one = {"process_group": ["0", "d"], "collective_seq_id": 1, "input_sizes": [[2] * 16] * 1000, "state": "scheduled"}
    groups = {str(at): {"name": str(at), "desc": "d", "ranks": nested if at else "1," * 30_000} for at in range(2000)}
    reader = DumpReader("nccl_trace_rank_0")
    value = {"version": "2.10", "pg_config": groups, "entries": [one] * 100_000}
    reader.feed(RawBatch("nccl_trace_rank_0", 1, pickle.dumps(value, protocol=2)))
    ((_, file),) = reader.finish().inputs
    assert isinstance(file, DumpFile)
    dump = file.read(2)
    assert len(dump.entries) == 1
    assert sum(len(ranks) for _, ranks in dump.groups.values()) == 30_000


FRAMES = [{"name": f"f{at}", "filename": f"/lib/{'torch' if at % 2 else 'app'}/part.py", "line": at} for at in range(9)]


def long_dump(*, count: int = 600, unfinished: int = 20, group: str = "0") -> dict[str, Any]:
    """Return a dump with stacks, in which another group is used only at its begin."""
    value = dump(0, enqueued=count, completed=count - unfinished)
    for at, one in enumerate(value["entries"]):
        one["frames"] = [FRAMES[(at + place) % 9] for place in range(5)]
    for one in value["entries"][5:9]:
        one |= {"pg_id": 1, "process_group": ["7", "TP"], "profiling_name": "nccl:" + "_all_gather_base"}
    value["pg_config"] |= {"7": {"name": "7", "desc": "TP", "ranks": "[0, 1]"}}
    return value | {"nccl_comm_state": {"last": group}}


def encoded(value: dict[str, Any], form: str) -> bytes:
    """Return a dump as a pickle, or as JSON in which the operations come first, as the recorder sorts its keys."""
    return pickle.dumps(value, protocol=2) if form == "pickle" else json.dumps(value, sort_keys=True).encode()


@pytest.mark.parametrize("form", ["pickle", "json"])
@pytest.mark.parametrize("unfinished", [0, 20, 200])
def test_end_of_a_long_dump_is_what_the_whole_dump_shows(
    form: str, unfinished: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = encoded(long_dump(unfinished=unfinished), form)
    part = DumpFile(0, data, len(data), None).read(8)
    assert len(part.entries) <= max(unfinished, 8) + 4
    monkeypatch.setattr(dump_files, "_chosen", lambda *given: range(len(given[-1])))
    whole = DumpFile(0, data, len(data), None).read(8)
    assert len(whole.entries) == 600
    last = {one.group: one for one in part.entries}
    assert last == {one.group: one for one in whole.entries}
    assert [one for one in part.entries if not one.done] == [one for one in whole.entries if not one.done]
    assert (part.groups, part.status, part.frame) == (whole.groups, whole.status, whole.frame)
    assert (part.frame is None) == (not unfinished)


def test_few_entries_of_many_dumps_are_walked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of the first 32 dumps, more entries are read."""
    walked: list[int] = []
    entry = LongPickle.entry

    def counted(self: LongPickle, at: int, *, is_whole: bool = False) -> Any:
        walked.append(at)
        return entry(self, at, is_whole=is_whole)

    monkeypatch.setattr(LongPickle, "entry", counted)
    data = encoded(long_dump(), "pickle")
    found, _ = analysed(tmp_path, dict.fromkeys(range(4), data))
    assert found is not None
    assert len(walked) >= 4 * 250
    monkeypatch.setattr(dump_files, "_MOST_WHOLE", 0)
    walked.clear()
    again, _ = analysed(tmp_path, dict.fromkeys(range(4), data))
    assert len(walked) < 4 * 50
    assert again == found


def test_opcode_in_an_entry_that_is_read_refuses_the_dump(tmp_path: Path) -> None:
    """One in an entry that is not read is never executed either."""
    value = long_dump()
    value["entries"][-3]["state"] = Malicious(tmp_path)
    data = encoded(value, "pickle")
    assert "opcode" in DumpFile(0, data, len(data), None).read(8).note
    value["entries"][-3]["state"], value["entries"][300]["state"] = "scheduled", Malicious(tmp_path)
    data = encoded(value, "pickle")
    assert DumpFile(0, data, len(data), None).read(8).note == ""
    assert not (tmp_path / "created").exists()


@pytest.mark.parametrize("form", ["pickle", "json"])
def test_dumps_that_appear_while_a_log_is_watched_are_read(form: str, tmp_path: Path) -> None:
    """A dump that is still being written is read again."""
    (tmp_path / "run.log").write_text(log(), encoding="utf-8")
    watched = WatchedLog(str(tmp_path / "run.log"))
    watched.look()
    assert hangs_of(watched.analysis(None)) == {}
    for rank in range(4):
        one = dump(rank, enqueued=20 if rank != 2 else 16, completed=16)
        data = pickle.dumps(one, protocol=2) if form == "pickle" else json.dumps(one, indent=1).encode()
        path = tmp_path / f"nccl_trace_rank_{rank}"
        path.write_bytes(data[:300])
        watched.look()
        assert hangs_of(watched.analysis(None)).keys() <= {0}
        path.write_bytes(data)
    watched.look()
    analysis = watched.analysis(None)
    found = hangs_of(analysis)[0]
    assert (found.verdict, found.ranks) == ("absent", (2,))
    assert not any(one.code == "unusable_dump" for one in analysis.diagnostics)
    watched.close()


def test_unchanged_file_is_opened_once_to_find_dumps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path, opened = tmp_path / "part_3", []

    def begin(name: str, head: bytes) -> bool:
        opened.append(head)
        return is_dump(name, head)

    monkeypatch.setattr(layouts, "is_dump", begin)
    path.write_bytes(b"no dump")
    assert [is_dump_file(str(path)) for _ in range(3)] == [False] * 3
    path.write_bytes(json.dumps(dump(3, enqueued=2, completed=1)).encode())
    assert [is_dump_file(str(path)) for _ in range(3)] == [True] * 3
    assert len(opened) == 2


STACK = """\
Process 4711: /usr/bin/python -u train.py --config \x1b[31mred
Python v3.11.5 (/usr/bin/python3.11)

Thread 4711 (idle): "MainThread"
    wait (threading.py:324)
    all_gather (torch/distributed/distributed_c10d.py:2050)
    next_batch (data/loader.py:88)
    train (train.py:210)
Thread 4777 (idle): "Thread-1"
    other (train.py:3)
"""


def test_function_of_a_named_rank_is_shown(tmp_path: Path) -> None:
    (tmp_path / "stack_rank_2.txt").write_text(STACK, encoding="utf-8")
    (tmp_path / "stack_rank_1.txt").write_text(STACK.replace("next_batch", "backward"), encoding="utf-8")
    dumps = {rank: dump(rank, enqueued=20 if rank != 2 else 16, completed=16) for rank in range(4)}
    found, warnings = analysed(tmp_path, {rank: json.dumps(one).encode() for rank, one in dumps.items()})
    assert found is not None
    assert (found.ranks, found.function, warnings) == ((2,), "next_batch (loader.py:88)", [])
    assert sentence(found).endswith("rank 2 did not join it; rank 2 is in next_batch (loader.py:88)")
    assert goodput_cli.analyze(str(tmp_path)).to_dict()["hung_now"]["hang"]["function"] == found.function


def test_stack_is_no_reason_to_name_a_rank(tmp_path: Path) -> None:
    for rank in (2, 3):
        (tmp_path / f"stack_rank_{rank}.txt").write_text(STACK, encoding="utf-8")
    assert analysed(tmp_path, {}) == (None, [])
    text = log(*(waits(rank, 7) for rank in range(3)))
    found, _ = analysed(tmp_path, {}, text)
    assert found is not None
    assert (found.verdict, found.ranks, found.function, found.ranks_without_report) == ("unknown", (), None, "3")


@pytest.mark.parametrize("text", ["", 'Thread 1: "MainThread"\n', STACK.replace("data/loader", "torch/loader")[:230]])
def test_stack_without_functions_of_the_program_is_empty(text: str) -> None:
    assert innermost(text) == ""


def test_json_dump_with_operations_before_its_groups_is_recognized() -> None:
    """The recorder sorts the keys of JSON."""
    head = encoded(long_dump(), "json")[: layouts.DUMP_HEAD]
    assert b"pg_config" not in head
    assert is_dump("nccl_trace_rank_0", head)

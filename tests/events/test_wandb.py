"""Weights & Biases (docs/formats.md): run folders, single run files, losses of a kill, and values that are never
guessed."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

import goodput_cli
from goodput_cli import Analysis
from goodput_cli.events.event_files import framed, scalar_event
from tests.support.logs import exit_record, printed, row, run_file, run_folder, run_record, stats

EPOCH = 1795385400
DAY = EPOCH - EPOCH % 86400


def at(seconds: float) -> float:
    return EPOCH + seconds


def internal(*times: float) -> str:
    return "".join(f'{{"time":"{_utc(time)}Z","level":"INFO","msg":"x"}}\n' for time in times)


def local(*times: float, hours: float = 0) -> str:
    return "".join(
        f"{_utc(time + hours * 3600).replace('T', ' ').replace('.', ',')[:23]} INFO    MainThread:1 [x.py:f():1] x\n"
        for time in times
    )


def _utc(time: float) -> str:
    micros = round((EPOCH + time) * 10**6)
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).strftime("%Y-%m-%dT%H:%M:%S.%f")


def rows_from(first: float, last: float, steps: range, base: float) -> list[bytes]:
    """Return rows at equal distances, the first and the last at these seconds."""
    count = len(steps) - 1
    times = [first + (last - first) * place / count for place in range(len(steps))]
    times[-1] = last
    return [row(at(time), time - base, _step=step) for time, step in zip(times, steps, strict=True)]


def worked_example(root: Path, logs: bool = True) -> Path:
    """Return a run of three processes: an exception after step 24, a kill that left 7 bytes, and a clean end."""
    first = run_file(
        run_record("abc12345", at(57.922057)),
        *rows_from(63.817846, 67.173956, range(25), 57.922057),
        printed(at(67.187757), "Traceback\n"),
        exit_record(1, 9),
    )
    third = run_file(
        run_record("abc12345", at(99.018303)),
        *rows_from(104.806803, 105.800875, range(30, 40), 99.018303),
        exit_record(0, 7),
    )
    both = [
        ((57.9, 67.190), (57.392, 67.225)),
        ((79.816055, 79.829906), (79.494, 85.479)),
        ((99.0, 106.294002), (98.510, 106.290)),
    ]
    stamps = ("20261122_221057", "20261122_221119", "20261122_221138")
    for data, stamp, (utc, here) in zip((first, run_file(), third), stamps, both, strict=True):
        sides = (internal(*utc), local(*here, hours=-5)) if logs else ("", "")
        run_folder(root, stamp, "abc12345", data, *sides)
    return root / "wandb"


def seconds(ns: int) -> float:
    return (ns - EPOCH * 10**9) / 1e9


def codes(analysis: Analysis) -> set[str]:
    return {one.code for one in analysis.diagnostics}


def write(path: Path, *records: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(run_file(*records))
    return str(path)


class TestTheWorkedExample:
    def test_run_has_three_attempts_and_two_disruptions(self, tmp_path: Path) -> None:
        analysis = goodput_cli.analyze(str(worked_example(tmp_path)))
        assert analysis.job.name == "abc12345"
        assert (analysis.job.attempts, len(analysis.disruptions)) == (3, 2)

    def test_window_and_downtimes_are_exact_to_the_microsecond(self, tmp_path: Path) -> None:
        analysis = goodput_cli.analyze(str(worked_example(tmp_path)))
        assert (analysis.window.end_ns - analysis.window.start_ns) == 48_902_002_000
        first, second = analysis.disruptions
        assert (first.ended, second.ended) == ("crashed", "silent")
        assert (seconds(first.last_sign_of_life_ns), seconds(first.next_start_ns)) == (67.225, 79.494)
        assert (seconds(second.last_sign_of_life_ns), seconds(second.next_start_ns)) == (85.479, 98.510)
        assert second.next_start_ns - second.last_sign_of_life_ns == 13_031_000_000
        begins = (57.392, 98.510)
        firsts = (63.817846, 104.806803)
        assert [round(first - begin, 6) for begin, first in zip(begins, firsts, strict=True)] == [6.425846, 6.296803]
        assert second.time_to_first_step_ns == 6_296_803_000

    def test_killed_steps_are_reported_but_not_claimed(self, tmp_path: Path) -> None:
        analysis = goodput_cli.analyze(str(worked_example(tmp_path)))
        assert {"rows_lost_at_kill", "unrecorded_steps"} <= codes(analysis)
        first, second = analysis.disruptions
        assert (first.steps_lost, first.steps_lost_is) == (0, "exact")
        assert (second.steps_lost, second.steps_lost_is) == (0, "at_least")

    def test_folder_without_logs_begins_at_run_record_or_name(self, tmp_path: Path) -> None:
        analysis = goodput_cli.analyze(str(worked_example(tmp_path, logs=False)))
        assert analysis.job.attempts == 3
        assert seconds(analysis.window.start_ns) == 57.922057
        assert seconds(analysis.window.end_ns) == 106.018303  # 99.018303 and 7 whole seconds

    def test_result_is_equal_for_folder_link_and_jobs(self, tmp_path: Path) -> None:
        folder = worked_example(tmp_path)
        (folder / "latest-run").symlink_to("run-20261122_221138-abc12345")
        (folder / "debug.log").symlink_to("run-20261122_221138-abc12345/logs/debug.log")
        whole = goodput_cli.analyze(str(tmp_path))
        assert whole.job.attempts == 3
        assert goodput_cli.analyze(str(folder / "latest-run")).job.attempts == 1
        (only,) = goodput_cli.jobs(str(folder)).jobs
        assert only.end_ns - only.start_ns == 48_902_002_000


class TestWhereFilesEnd:
    def test_truncated_file_keeps_earlier_records(self, tmp_path: Path) -> None:
        whole = (worked_example(tmp_path) / "run-20261122_221057-abc12345" / "run-abc12345.wandb").read_bytes()
        chosen = random.Random(7)
        last = 0
        for place, size in enumerate(sorted(chosen.sample(range(200, len(whole)), 12))):
            file = tmp_path / str(place) / "run-abc12345.wandb"
            file.parent.mkdir()
            file.write_bytes(whole[:size])
            analysis = goodput_cli.analyze(str(file))
            assert analysis.job.attempts == 1
            kept = analysis.job.last_step or 0
            assert last <= kept <= 25
            last = kept

    def test_zeros_and_wrong_checksum_end_the_file(self, tmp_path: Path) -> None:
        records = [run_record("a", at(0)), *(row(at(n + 1), n + 1.0, _step=n) for n in range(8)), exit_record(0, 9)]
        data = bytearray(run_file(*records))
        torn = tmp_path / "torn" / "run-a.wandb"
        torn.parent.mkdir()
        torn.write_bytes(bytes(data[:300]) + bytes(400))
        data[300] ^= 1
        wrong = tmp_path / "wrong" / "run-a.wandb"
        wrong.parent.mkdir()
        wrong.write_bytes(bytes(data))
        for file in (torn, wrong):
            analysis = goodput_cli.analyze(str(file))
            assert "rows_lost_at_kill" in codes(analysis)
            assert 0 < (analysis.job.last_step or 0) < 8

    def test_random_bytes_raise_no_traceback(self, tmp_path: Path) -> None:
        chosen = random.Random(3)
        whole = run_file(run_record("a", at(0)), *(row(at(n + 1), n + 1.0, _step=n) for n in range(8)))
        for place in range(40):
            data = bytearray(whole)
            for _ in range(3):
                data[chosen.randrange(7, len(data))] = chosen.randrange(256)
            file = tmp_path / f"run-{place}.wandb"
            file.write_bytes(bytes(data))
            try:
                attempts = goodput_cli.analyze(str(file)).job.attempts
            except goodput_cli.NotEnoughData:  # the file is empty
                continue
            assert attempts == 1

    def test_record_longer_than_a_block_is_read(self, tmp_path: Path) -> None:
        rows = [row(at(n + 1), n + 1.0, _step=n, table="x" * 70_000) for n in range(5)]
        file = write(tmp_path / "run-a.wandb", run_record("a", at(0)), *rows, exit_record(0, 6))
        assert goodput_cli.analyze(file).job.last_step == 5


class TestSteps:
    def test_program_counter_has_priority_over_row_number(self, tmp_path: Path) -> None:
        rows = [row(at(n + 1), n + 1.0, _step=n, iter=10 * n) for n in range(6)]
        analysis = goodput_cli.analyze(
            write(tmp_path / "run-a.wandb", run_record("a", at(0)), *rows, exit_record(0, 7))
        )
        assert analysis.job.last_step == 51  # 0 is the first, so that 50 is the 51st
        assert "rows_not_steps" not in codes(analysis)

    def test_rows_count_as_steps_without_a_counter(self, tmp_path: Path) -> None:
        rows = [row(at(n + 1), n + 1.0, _step=n, loss=1.0) for n in range(6)]
        analysis = goodput_cli.analyze(write(tmp_path / "run-a.wandb", run_record("a", at(0)), *rows))
        assert "rows_not_steps" in codes(analysis)

    def test_rows_in_bursts_are_not_steps(self, tmp_path: Path) -> None:
        """Four calls per epoch of 30 s: read as steps, all but the usual one of 1 ms would be stalls."""
        times = [30 * (n // 4) + n % 4 / 1000 for n in range(1, 40)]
        rows = [row(at(time), time, _step=n, loss=1.0) for n, time in enumerate(times)]
        analysis = goodput_cli.analyze(
            write(tmp_path / "run-a.wandb", run_record("a", at(0)), *rows, exit_record(0, 280))
        )
        assert "rows_not_steps" in codes(analysis)
        assert analysis.job.kept_steps == 0
        assert all(one.category != "step_stall" for one in analysis.badput if one.ns)

    def test_repeated_step_and_last_evaluation_begin_no_attempt(self, tmp_path: Path) -> None:
        rows = [row(at(n + 1), n + 1.0, train__global_step=n + 1, train__loss=2.0) for n in range(9)]
        late = row(at(60), 60.0, train__global_step=9, eval__loss=2.0, train__epoch=1.0)
        analysis = goodput_cli.analyze(write(tmp_path / "run-a.wandb", run_record("a", at(0)), *rows, late))
        assert (analysis.job.attempts, analysis.job.last_step) == (1, 9)

    def test_rows_of_step_0_or_system_are_activity_only(self, tmp_path: Path) -> None:
        zeros = [row(at(n), float(n), step=0) for n in range(4)]
        file = write(tmp_path / "a" / "run-a.wandb", run_record("a", at(0)), *zeros, exit_record(0, 5))
        analysis = goodput_cli.analyze(file)
        assert "tracker_without_steps" in codes(analysis)
        assert analysis.job.last_step is None
        file = write(tmp_path / "b" / "run-b.wandb", run_record("b", at(0)), stats(at(3)), stats(at(9)))
        analysis = goodput_cli.analyze(file)
        assert (analysis.job.last_step, seconds(analysis.window.end_ns)) == (None, 9.0)

    def test_row_without_a_time_is_ignored(self, tmp_path: Path) -> None:
        nameless = [row(at(n + 1), n + 1.0, step=n) for n in range(3)]
        bad = row(float(-1), None, step=99)
        analysis = goodput_cli.analyze(write(tmp_path / "run-a.wandb", run_record("a", at(0)), *nameless, bad))
        assert analysis.job.kept_range == (1, 3)

    def test_stdout_is_used_if_it_has_more_steps(self, tmp_path: Path) -> None:
        lines = [
            printed(at(10 + n), f" iteration {n + 1:8d}/ 20 | consumed samples: 8 | elapsed time per iteration (ms): "
                    "1000.0 | learning rate: 1.0E-04 | lm loss: 2.0E+00 |\n") for n in range(20)
        ]  # fmt: skip
        rows = [row(at(10.5), 10.5, iter=0), row(at(29.5), 29.5, iter=19)]
        analysis = goodput_cli.analyze(
            write(tmp_path / "run-a.wandb", run_record("a", at(0)), *lines, *rows, exit_record(0, 30))
        )
        assert (analysis.job.attempts, analysis.job.last_step) == (1, 20)
        assert analysis.steps is not None
        assert analysis.steps.count == 19  # between 20 ends


class TestRuns:
    def folders(self, root: Path, *lives: tuple[str, str, float, range, str]) -> Path:
        for stamp, run_id, start, steps, host in lives:
            rows = [row(at(start + 1 + n), n + 1.0, step=step) for n, step in enumerate(steps)]
            data = run_file(run_record(run_id, at(start), f"name of {run_id}", host), *rows)
            run_folder(root, stamp, run_id, data)
        return root / "wandb"

    def test_one_id_on_two_hosts_at_once_is_one_attempt(self, tmp_path: Path) -> None:
        folder = self.folders(
            tmp_path, ("20260301_100000", "a", 0, range(8), "n0"), ("20260301_100002", "a", 2, range(8), "n1")
        )
        assert goodput_cli.analyze(str(folder)).job.attempts == 1

    def test_one_id_on_two_hosts_in_sequence_is_two_attempts(self, tmp_path: Path) -> None:
        folder = self.folders(
            tmp_path, ("20260301_100000", "a", 0, range(8), "n0"), ("20260301_100102", "a", 62, range(4, 12), "n1")
        )
        analysis = goodput_cli.analyze(str(folder))
        assert (analysis.job.attempts, analysis.disruptions[0].steps_lost) == (2, 4)

    def test_ids_are_jobs_and_shared_names_are_resolved(self, tmp_path: Path) -> None:
        folder = self.folders(
            tmp_path, ("20260301_100000", "a", 0, range(8), "n0"), ("20260301_100102", "b", 62, range(12), "n0")
        )
        assert [one.name for one in goodput_cli.jobs(str(folder)).jobs] == ["a", "b"]
        with pytest.raises(goodput_cli.GoodputError, match="2 jobs"):
            goodput_cli.analyze(str(folder))
        assert goodput_cli.analyze(str(folder), job_name="name of b").job.kept_range == (1, 12)


class TestWalks:
    def test_walk_reads_log_with_steps_and_reports_tracker(self, tmp_path: Path) -> None:
        worked_example(tmp_path)
        line = '{"job_name": "x", "step_count": %d, "step_start_time": %.1f}\n'
        (tmp_path / "run.jsonl").write_text("".join(line % (n, at(n)) for n in range(9)))
        analysis = goodput_cli.analyze(str(tmp_path))
        assert (analysis.job.name, analysis.job.attempts) == ("x", 1)
        assert "tracker_beside" in codes(analysis)
        assert [one.name for one in goodput_cli.jobs(str(tmp_path)).jobs] == ["x"]

    def test_walk_reads_tracker_if_no_log_has_steps(self, tmp_path: Path) -> None:
        worked_example(tmp_path)
        (tmp_path / "notes.txt").write_text("nothing\n")
        (tmp_path / "start.jsonl").write_text('{"job_name": "x", "job_start_time": 1795385400.0}\n')
        assert goodput_cli.analyze(str(tmp_path)).job.name == "abc12345"

    def test_files_in_run_folder_are_not_separate_logs(self, tmp_path: Path) -> None:
        folder = worked_example(tmp_path)
        output = " iteration        1/ 20 | elapsed time per iteration (ms): 1000.0 |\n"
        (folder / "run-20261122_221057-abc12345" / "files" / "output.log").write_text(output)
        assert [one.name for one in goodput_cli.jobs(str(tmp_path)).jobs] == ["abc12345"]


TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/work/train.py", line 88, in <module>\n'
    "    main()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
)


class TestWhyItDied:
    """The output of a run contains the cause of its end, but is not a log and changes no second of the account."""

    def run_folder(
        self, root: Path, start: float, steps: range, *said: bytes, run_id: str = "abc", output: str = "", code: int = 1
    ) -> Path:
        rows = [row(at(start + 1 + n), n + 1.0, _step=step, iter=step) for n, step in enumerate(steps)]
        records = [run_record(run_id, at(start)), *rows, *said]
        records += [exit_record(code, len(rows) + 2)] if code >= 0 else []
        stamp = f"20261122_22{10 + int(start) // 60:02d}{int(start) % 60:02d}"
        return run_folder(root, stamp, run_id, run_file(*records), output=output)

    def test_traceback_in_run_file_is_the_cause(self, tmp_path: Path) -> None:
        pieces = [printed(at(9.2), TRACEBACK[:40]), printed(at(9.25), TRACEBACK[40:])]
        self.run_folder(tmp_path, 0, range(8), *pieces)
        self.run_folder(tmp_path, 60, range(6, 12), code=0)
        (one,) = goodput_cli.analyze(str(tmp_path)).disruptions
        assert (one.ended, one.cause, one.cause_certainty) == ("crashed", "device_oom", "confirmed")
        assert (one.first_host, one.evidence.cause) == (
            "node0",
            f"{tmp_path}/wandb/run-20261122_221000-abc/run-abc.wandb:11",
        )
        assert one.cause_text == "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"

    def test_output_line_is_the_location_of_the_cause(self, tmp_path: Path) -> None:
        bare, told = tmp_path / "bare", tmp_path / "told"
        for root, output in ((bare, ""), (told, "step 1\n" + TRACEBACK)):
            self.run_folder(root, 0, range(8), printed(at(9.2), TRACEBACK), output=output)
            self.run_folder(root, 60, range(6, 12), code=0)
        without, beside = goodput_cli.analyze(str(bare)), goodput_cli.analyze(str(told))
        assert beside.disruptions[0].evidence.cause == f"{told}/wandb/run-20261122_221000-abc/files/output.log:5"
        assert (beside.window, beside.badput, beside.goodput) == (without.window, without.badput, without.goodput)
        assert (beside.job, codes(beside)) == (without.job, codes(without))

    @pytest.mark.parametrize("cut", [7, 40, 300])
    def test_cause_comes_from_output_if_run_file_is_truncated(self, tmp_path: Path, cut: int) -> None:
        folder = self.run_folder(tmp_path, 0, range(8), printed(at(9.2), TRACEBACK), output=TRACEBACK)
        file = folder / "run-abc.wandb"
        file.write_bytes(file.read_bytes()[:cut])
        self.run_folder(tmp_path, 60, range(6, 12), code=0)
        (one,) = goodput_cli.analyze(str(tmp_path / "wandb")).disruptions
        assert (one.ended, one.cause) == ("crashed", "device_oom")
        assert (one.evidence.cause or "").endswith("files/output.log:4")

    def test_survived_error_is_not_a_cause(self, tmp_path: Path) -> None:
        went_on = TRACEBACK + "caught it, going on\n"
        for root, said in ((tmp_path / "a", [printed(at(9.2), went_on)]), (tmp_path / "b", [])):
            self.run_folder(root, 0, range(8), *said, output="" if said else went_on)
            self.run_folder(root, 60, range(6, 12), code=0)
            (one,) = goodput_cli.analyze(str(root)).disruptions
            assert (one.cause, one.evidence.cause) == ("unknown", None)

    def test_attempt_without_steps_has_its_own_cause(self, tmp_path: Path) -> None:
        for start in (0, 12, 24):
            self.run_folder(tmp_path, start, range(0), stats(at(start + 9)), output=f"{TRACEBACK}", code=1)
        self.run_folder(tmp_path, 36, range(12), code=0)
        found = goodput_cli.analyze(str(tmp_path)).disruptions
        assert [one.cause for one in found] == ["device_oom"] * 3
        assert len({one.evidence.cause for one in found}) == 3

    def test_each_run_of_a_sweep_has_its_own_cause(self, tmp_path: Path) -> None:
        for run_id, error in (("aaa", "ValueError: shapes"), ("bbb", "OSError: [Errno 28] No space left on device")):
            output = f"Traceback (most recent call last):\n{error}\n"
            self.run_folder(tmp_path, 0, range(8), run_id=run_id, output=output)
            self.run_folder(tmp_path, 60, range(6, 12), run_id=run_id, code=0)
        for run_id, cause in (("aaa", "python_error"), ("bbb", "disk_full")):
            (one,) = goodput_cli.analyze(str(tmp_path), job_name=run_id).disruptions
            assert one.cause == cause

    def test_output_passed_alone_is_ordinary_text(self, tmp_path: Path) -> None:
        lines = "".join(TestTheSameRunTwice.LINE.format(n + 1) for n in range(20))
        folder = self.run_folder(tmp_path, 0, range(8), output=lines)
        (log,) = goodput_cli.analyze(str(folder / "files" / "output.log")).job.log_formats
        assert log.name == "megatron"
        assert goodput_cli.analyze(str(folder)).job.kept_range == (1, 8)


class TestExports:
    """History rows without folders: the time of a row minus its runtime is the start of its process."""

    def rows(self) -> list[dict[str, float]]:
        first = [(63.817846 + n * (67.173956 - 63.817846) / 24, 57.92 - (n == 3) * 0.45, n) for n in range(25)]
        last = [
            (104.806803 + n * (105.800875 - 104.806803) / 9, 98.96 - (n == 2) * 0.276887, 30 + n) for n in range(10)
        ]
        return [
            {"_timestamp": at(time), "_runtime": round(time - base, 6), "_step": step, "train/global_step": step}
            for time, base, step in (*first, *last)
        ]

    def check(self, file: Path) -> None:
        analysis = goodput_cli.analyze(str(file))
        assert (analysis.job.attempts, len(analysis.disruptions)) == (2, 1)
        only = analysis.disruptions[0]
        assert seconds(only.next_start_ns) == pytest.approx(98.683113, abs=2e-6)
        credited = 5 * (67.173956 - 63.817846) / 24  # steps 25 to 29: no row shows them, and it resumed after them
        assert seconds(only.last_sign_of_life_ns) == pytest.approx(67.173956 + credited, abs=2e-6)
        assert only.downtime_ns / 1e9 == pytest.approx(31.509157 - credited, abs=2e-6)
        assert (only.time_to_first_step_ns or 0) / 1e9 == pytest.approx(6.123690, abs=2e-6)
        assert seconds(analysis.window.start_ns) == pytest.approx(57.47, abs=2e-6)
        assert "rewritten_history" in codes(analysis)

    def test_exports_have_two_attempts_and_no_stall(self, tmp_path: Path) -> None:
        lines = tmp_path / "lines.jsonl"
        lines.write_text("".join(json.dumps(one) + "\n" for one in self.rows()))
        frame = pd.DataFrame(self.rows())
        frame.to_csv(tmp_path / "table.csv", index=False)
        frame.to_parquet(tmp_path / "table.parquet")
        for name in ("lines.jsonl", "table.csv", "table.parquet"):
            self.check(tmp_path / name)

    def test_repeated_start_is_rank_earlier_start_is_clock_change(self, tmp_path: Path) -> None:
        ranks = [{"_timestamp": at(100 + n), "_runtime": 90.0 - 20 * (n % 2) + n, "_step": n} for n in range(20)]
        back = [{"_timestamp": at(100 + n), "_runtime": 50.0 + n + 30 * (n > 9), "_step": n} for n in range(20)]
        for rows in (ranks, back):
            file = tmp_path / "rows.jsonl"
            file.write_text("".join(json.dumps(one) + "\n" for one in rows))
            assert goodput_cli.analyze(str(file)).job.attempts == 1


class TestExportsOfResumedRuns:
    """Steps of 6 s, 2 min of start-up, an hour of training, an outage: `_runtime` restarts, or continues (0.19.10)."""

    def history(self, file: Path, down: int, redone: int, runtime: str, ran: int = 3600, start_up: int = 120) -> Path:
        """Return a history of two processes, with a row every tenth step."""
        rows = [(120 + 60 * n, 120 + 60 * n, 10 * n) for n in range(1, ran // 60 + 1)]
        last, _, step = rows[-1]
        began, counted = last + down, {"continues": last, "restarts": 0}.get(runtime, 0)
        spans = [start_up + 60 * n for n in range(1, 31)]
        resumed = step - redone
        rows += [(began + span, counted + span, resumed + 10 * n) for n, span in enumerate(spans, 1)]
        names = ("_timestamp", "_runtime", "train/global_step")
        lines = [dict(zip(names, (at(row[0]), *row[1:]), strict=True), _step=n) for n, row in enumerate(rows)]
        if runtime == "missing":
            lines = [{name: value for name, value in one.items() if name != "_runtime"} for one in lines]
        file.write_text("".join(json.dumps(one) + "\n" for one in lines))
        return file

    @pytest.mark.parametrize("runtime", ["continues", "restarts"])
    @pytest.mark.parametrize("redone", [0, 200])
    @pytest.mark.parametrize("down", [10, 600, 20 * 3600])
    def test_downtime_is_gap_minus_start_up(self, tmp_path: Path, down: int, redone: int, runtime: str) -> None:
        analysis = goodput_cli.analyze(str(self.history(tmp_path / "h.jsonl", down, redone, runtime)))
        (only,) = analysis.disruptions
        assert (analysis.job.attempts, only.downtime_ns / 1e9, only.steps_lost) == (2, down, redone)
        assert (only.time_to_first_step_ns or 0) / 1e9 == 120 + 60
        assert not [one for one in analysis.insights if "hung" in one.text]

    @pytest.mark.parametrize(
        ("runtime", "ran", "start_up"),
        [("continues", 300, 120), ("continues", 300, 400), ("restarts", 300, 120), ("restarts", 60, 200)],
    )
    def test_short_first_process_is_read_by_its_start_up(
        self, tmp_path: Path, runtime: str, ran: int, start_up: int
    ) -> None:
        analysis = goodput_cli.analyze(str(self.history(tmp_path / "h.jsonl", 3600, 0, runtime, ran, start_up)))
        (only,) = analysis.disruptions
        assert (only.downtime_ns / 1e9, (only.time_to_first_step_ns or 0) / 1e9) == (3600, start_up + 60)

    @pytest.mark.parametrize(("redone", "attempts"), [(0, 1), (200, 2)])
    def test_no_hang_is_claimed_without_runtimes(self, tmp_path: Path, redone: int, attempts: int) -> None:
        analysis = goodput_cli.analyze(str(self.history(tmp_path / "h.jsonl", 3600, redone, "missing")))
        assert (analysis.job.attempts, [one.steps_lost for one in analysis.disruptions]) == (
            attempts, [redone] * (attempts - 1)
        )  # fmt: skip
        assert not [one for one in analysis.insights if "hung" in one.text]

    def test_row_without_runtime_joins_nearest_process(self, tmp_path: Path) -> None:
        file = self.history(tmp_path / "h.jsonl", 600, 0, "continues")
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        del rows[60]["_runtime"], rows[20]["_runtime"]  # the first of the second process, one of the first
        file.write_text("".join(json.dumps(one) + "\n" for one in rows))
        (only,) = goodput_cli.analyze(str(file)).disruptions
        assert (only.downtime_ns / 1e9, (only.time_to_first_step_ns or 0) / 1e9) == (600, 180)

    def test_runtime_of_next_call_begins_no_process(self, tmp_path: Path) -> None:
        """`wandb.log(..., step=n)` writes a row with the runtime of the call for the next step; the first one compiles,
        and an evaluation follows step 25."""
        times = [60.0]
        for step in range(1, 61):
            times.append(times[-1] + 10 + 40 * (step == 1) + 300 * (step == 26))
        rows = [{"_timestamp": at(time), "_runtime": after, "_step": n}
                for n, (time, after) in enumerate(pairwise(times))]  # fmt: skip
        file = tmp_path / "h.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in rows))
        assert goodput_cli.analyze(str(file)).job.attempts == 1

    def test_concurrent_continued_processes_are_one_attempt(self, tmp_path: Path) -> None:
        rows = [(60 + 10 * n + 2 * rank, 60 + 10 * n - 20 * rank, n) for n in range(50) for rank in (0, 1)]
        rows += [(time + 1150, runtime + 550, step + 50) for time, runtime, step in rows]
        lines = ({"_timestamp": at(time), "_runtime": run, "_step": step} for time, run, step in rows)
        file = tmp_path / "h.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in lines))
        analysis = goodput_cli.analyze(str(file))
        assert (analysis.job.attempts, [one.downtime_ns / 1e9 for one in analysis.disruptions]) == (2, [598.0])


class TestRay:
    def results(self, restore: int | None = None) -> str:
        rows = []
        total = 0.0
        for n in range(12):
            since = n + 1 if restore is None or n < restore else n - restore + 1
            gap = 0 if restore is None or n < restore else 100
            total += 10
            rows.append({
                "training_iteration": n + 1, "timestamp": round(at(10 * (n + 1) + gap)), "time_this_iter_s": 10.0,
                "time_total_s": total, "iterations_since_restore": since, "trial_id": "t_01", "hostname": "n0",
                "done": n == 11,
            })  # fmt: skip
        return "".join(json.dumps(row) + "\n" for row in rows)

    def test_trial_is_a_job_including_its_first_iteration(self, tmp_path: Path) -> None:
        (tmp_path / "result.json").write_text(self.results())
        analysis = goodput_cli.analyze(str(tmp_path / "result.json"))
        assert (analysis.job.name, analysis.job.attempts, analysis.job.ending) == ("t_01", 1, "clean")
        assert (seconds(analysis.window.start_ns), seconds(analysis.window.end_ns)) == (0.0, 120.0)
        assert analysis.goodput_percent == pytest.approx(100.0)

    def test_restore_begins_attempt_with_its_first_iteration(self, tmp_path: Path) -> None:
        (tmp_path / "result.json").write_text(self.results(restore=6))
        analysis = goodput_cli.analyze(str(tmp_path / "result.json"))
        assert analysis.job.attempts == 2
        assert seconds(analysis.disruptions[0].next_start_ns) == 160.0
        assert analysis.disruptions[0].downtime_ns == 100 * 10**9


class TestTheSameRunTwice:
    LINE = " iteration {:8d}/ 20 | elapsed time per iteration (ms): 1000.0 | learning rate: 1.0E-04 |\n"

    def run(self, root: Path, begin: float = 0) -> Path:
        rows = [row(at(begin + 11.02 + n), n + 11.0, _step=n, iter=n) for n in range(20)]
        return run_folder(
            root, "20261122_221000", "abc", run_file(run_record("abc", at(begin)), *rows, exit_record(1, 31))
        )

    def text(self, path: Path) -> str:
        stamp = "[2026-11-22 22:10:{:02d}.000000+00:00]"
        path.write_text("".join(stamp.format(11 + n) + self.LINE.format(n + 1) for n in range(20)))
        return str(path)

    def test_job_with_text_and_tracker_uses_steps_of_text(self, tmp_path: Path) -> None:
        folder, text = self.run(tmp_path), self.text(tmp_path / "train.log")
        analysis = goodput_cli.analyze([text, str(folder)])
        assert (analysis.job.name, analysis.job.attempts, analysis.job.kept_range) == ("abc", 1, (1, 20))
        assert analysis.job.ending == "crashed"
        assert "same_run_twice" in codes(analysis)
        assert {one.name for one in goodput_cli.jobs([text, str(folder)]).jobs} == {"abc"}

    def recorded(self, path: Path, job: str, begin: float = 10.0) -> str:
        """Write the recorder's log of the same steps, which contains their starts."""
        lines = [{"job_name": job, "job_start_time": at(begin - 9)}]
        lines += [{"job_name": job, "step_count": n, "step_start_time": at(begin + n)} for n in range(20)]
        lines.append({"job_name": job, "job_end_time": at(begin + 20.5)})
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return str(path)

    @pytest.mark.parametrize("job", ["abc", "llm"])
    def test_tracker_is_ignored_next_to_its_recorder_log(self, tmp_path: Path, job: str) -> None:
        folder, log = self.run(tmp_path), self.recorded(tmp_path / "rec.jsonl", job)
        alone, both = goodput_cli.analyze(log), goodput_cli.analyze([log, str(folder)])
        assert (both.job, both.badput, both.window) == (alone.job, alone.badput, alone.window)
        (note,) = [one for one in both.diagnostics if one.code == "same_run_twice"]
        assert note.message == f"abc of wandb is the same run as the log {job}: one job, read from that log only"
        (listed,) = goodput_cli.jobs([log, str(folder)]).jobs
        assert (listed.name, listed.attempts, listed.goodput_ns) == (job, 1, alone.goodput.ns)

    def test_other_run_next_to_recorder_log_is_separate(self, tmp_path: Path) -> None:
        folder = self.run(tmp_path)
        for begin in (300.0, 20.0):  # at other times, and the same numbers ten steps late
            log = self.recorded(tmp_path / "rec.jsonl", "llm", begin)
            assert {one.name for one in goodput_cli.jobs([log, str(folder)]).jobs} == {"abc", "llm"}

    def test_event_files_join_their_run(self, tmp_path: Path) -> None:
        folder = self.run(tmp_path)
        events = tmp_path / "events.out.tfevents.1795385411.node0"
        scalars = (scalar_event(at(11.01 + n), n, "loss", 1.0, "") for n in range(20))
        events.write_bytes(b"".join(framed(one) for one in scalars))
        analysis = goodput_cli.analyze([str(events), str(folder)])
        assert (analysis.job.attempts, analysis.job.disruptions) == (1, 0)
        assert analysis.job.kept_steps == 20
        assert "same_run_twice" in codes(analysis)

    def test_runs_at_other_times_are_two_jobs(self, tmp_path: Path) -> None:
        folder, text = self.run(tmp_path, begin=300), self.text(tmp_path / "train.log")
        assert {one.name for one in goodput_cli.jobs([text, str(folder)]).jobs} == {"abc", "train"}


def test_watched_run_is_refused_at_once(tmp_path: Path) -> None:
    folder = worked_example(tmp_path)
    with pytest.raises(goodput_cli.UsageError, match="trackers cannot be followed"):
        next(iter(goodput_cli.watch(str(folder))))


def test_file_of_seven_bytes_suggests_the_folder(tmp_path: Path) -> None:
    file = write(tmp_path / "run-a.wandb")
    with pytest.raises(goodput_cli.NotEnoughData, match=r"rows_lost_at_kill.*pass the directory of its run"):
        goodput_cli.analyze(file)


def test_impossible_times_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "history.csv"
    rows = ["_step,_timestamp,_runtime", "0,NaN,1", "1,1e3,2", f"2,{at(1)},1", f"3,{at(2)},2", f"4,{at(3)},1e999"]
    file.write_text("\n".join(rows) + "\n")
    analysis = goodput_cli.analyze(str(file))
    assert (seconds(analysis.window.start_ns), seconds(analysis.window.end_ns)) == (0.0, 3.0)
    assert "bad_value" in codes(analysis)

"""MLflow (docs/formats.md): stores in files and in databases, the run of the job, and traces of resumes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli import Analysis, SourceError
from goodput_cli.cli.main import run
from tests.support.story import spread

REAL = Path(__file__).parents[1] / "real" / "mlflow-3.17"
BASE_MS = 1795385590000
RUN = "0123456789abcdef0123456789abcdef"
Rows = list[tuple[int, int]]
"""(ms since BASE_MS, step)."""


def worked_example() -> Rows:
    """Return 49 rows of three processes; nine of ten steps take 139 or 140 ms."""
    first = list(zip(spread(7743, 12374, 25, 139.5), range(25), strict=True))
    second = list(zip(spread(40722, 43098, 14, 139.5), range(20, 34), strict=True))
    third = list(zip(spread(60126, 61278, 10, 139.5), range(30, 40), strict=True))
    return [*first, *second, *third]


def store(root: Path, rows: Rows, run_id: str = RUN, status: int = 3, end: int | None = 61650, **metrics: Rows) -> Path:
    """Return a run in files; `__` in the name of a metric means a folder."""
    folder = root / "mlruns" / "0" / run_id
    (folder / "metrics").mkdir(parents=True)
    ended = "null" if end is None else str(BASE_MS + end)
    (folder / "meta.yaml").write_text(
        f"end_time: {ended}\nlifecycle_stage: active\nrun_id: {run_id}\nrun_name: 'small one'\n"
        f"start_time: {BASE_MS + 7491}\nstatus: {status}\n"
    )
    (root / "mlruns" / "0" / "meta.yaml").write_text("experiment_id: '0'\nname: Default\n")
    for name, of_metric in {"loss": rows, **metrics}.items():
        file = folder / "metrics" / name.replace("__", "/")
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"{BASE_MS + time} 1.5 {step}\n" for time, step in of_metric))
    return root / "mlruns"


def codes(analysis: Analysis) -> set[str]:
    return {one.code for one in analysis.diagnostics}


def test_run_metadata_is_read_once_for_any_content(tmp_path: Path) -> None:
    """A quote and a million blanks once took three quarters of an hour."""
    root = store(tmp_path, worked_example())
    for meta in root.rglob(f"{RUN}/meta.yaml"):
        meta.write_text(meta.read_text() + "note: '" + " " * 1_000_000 + "\0\n")
    assert goodput_cli.analyze(str(root), job_name="small one").job.name == "small one"


class TestTheWorkedExample:
    def test_attempts_window_and_lost_steps(self, tmp_path: Path) -> None:
        analysis = goodput_cli.analyze(str(store(tmp_path, worked_example())))
        assert (analysis.job.name, analysis.job.attempts, analysis.job.ending) == (RUN, 3, "clean")
        assert analysis.job.end_ns - analysis.job.start_ns == 54_159_000_000
        assert analysis.job.kept_steps == 40
        assert [one.steps_lost for one in analysis.disruptions] == [5, 4]
        assert [one.ended for one in analysis.disruptions] == ["silent", "silent"]

    def test_gaps_are_downtime_or_start_minus_one_step(self, tmp_path: Path) -> None:
        analysis = goodput_cli.analyze(str(store(tmp_path, worked_example())))
        spent = [(one.downtime_ns + one.restart_ns) / 1e9 for one in analysis.disruptions]
        assert spent == pytest.approx([28.2085, 16.8885], abs=1e-9)


def database(path: Path, *, wal: bool = False) -> Path:
    """Return a database with the real schema, in SQL."""
    connection = sqlite3.connect(path)
    if wal:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.executescript((REAL / "mlflow.sql").read_text())
    connection.commit()
    connection.close()
    return path


class TestDatabases:
    def test_database_is_read_by_name_uri_and_folder(self, tmp_path: Path) -> None:
        path = database(tmp_path / "mlflow.db")
        for uri in (str(path), f"sqlite:///{path}", str(tmp_path)):
            analysis = goodput_cli.analyze(uri)
            assert (analysis.job.attempts, analysis.job.kept_steps) == (3, 40)

    def test_database_and_folder_stay_unchanged(self, tmp_path: Path) -> None:
        path = database(tmp_path / "mlflow.db")
        before = path.read_bytes()
        goodput_cli.analyze(str(path))
        assert path.read_bytes() == before
        assert [one.name for one in tmp_path.iterdir()] == ["mlflow.db"]

    def test_write_ahead_log_is_read(self, tmp_path: Path) -> None:
        path = database(tmp_path / "mlflow.db", wal=True)
        writer = sqlite3.connect(path)
        writer.execute("DELETE FROM metrics WHERE step >= 39")
        writer.commit()
        try:
            assert (tmp_path / "mlflow.db-wal").stat().st_size
            assert goodput_cli.analyze(str(path)).job.kept_steps == 39
        finally:
            writer.close()

    def test_database_without_tables_or_damaged_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "other.db"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE x (a)")
        connection.commit()
        connection.close()
        with pytest.raises(SourceError, match="the database has no MLflow tables"):
            goodput_cli.analyze(str(path))
        whole = database(tmp_path / "mlflow.db").read_bytes()
        (tmp_path / "mlflow.db").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(SourceError, match=r"mlflow\.db"):
            goodput_cli.analyze(str(tmp_path / "mlflow.db"))

    def test_endless_view_is_refused(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["analyze", str(endless(tmp_path / "mlflow.db"))]) == 1
        assert (
            "returns more rows than its size allows\ntip: if `runs` or `metrics` is an endless view"
            in capsys.readouterr().err
        )

    def test_ctrl_c_works_during_sqlite_queries(self, tmp_path: Path) -> None:
        """The signal is sent from within the query, which never returns a row."""
        program = """
import os, signal, sys
from goodput_cli.cli.main import run
from goodput_cli.sources import databases
heard = databases._OperationLimit.is_too_much
def interrupted(work):
    os.kill(os.getpid(), signal.SIGINT)
    return heard(work)
databases._OperationLimit.is_too_much = interrupted
sys.exit(run(["analyze", sys.argv[1]]))
"""
        command = [sys.executable, "-c", program, str(endless(tmp_path / "mlflow.db"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert (done.returncode, done.stderr.strip()) == (130, "Interrupted.")


def endless(path: Path) -> Path:
    """Return a database whose metrics never end."""
    connection = sqlite3.connect(path)
    connection.executescript("""
        CREATE TABLE runs (run_uuid, name, status, start_time, end_time, lifecycle_stage);
        CREATE VIEW metrics AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
            SELECT 'a' AS run_uuid, 'loss' AS key, 1772359200000 + i AS timestamp, i AS step, 1 AS value FROM n;
    """)
    connection.close()
    return path


class TestRuns:
    def test_runs_without_two_steps_are_only_counted(self, tmp_path: Path) -> None:
        other, small = "f" * 32, "e" * 32
        store(tmp_path, worked_example())
        store(tmp_path / "x", [(8000, 0), (9000, 1), (9500, 2)], other)
        store(tmp_path / "y", [(8000, 0)], small)
        for name, run_id in (("x", other), ("y", small)):
            (tmp_path / name / "mlruns" / "0" / run_id).rename(tmp_path / "mlruns" / "0" / run_id)
        jobs = goodput_cli.jobs(str(tmp_path / "mlruns"))
        assert sorted(one.name for one in jobs.jobs) == [RUN, other]
        assert "tracker_runs_left_out" in {one.code for one in jobs.diagnostics}

    def test_missing_steps_are_not_one_step(self, tmp_path: Path) -> None:
        analysis = goodput_cli.analyze(str(store(tmp_path, [(8000 + n, 0) for n in range(9)])))
        assert analysis.job.last_step is None
        assert "tracker_without_steps" in codes(analysis)

    def test_metric_with_most_steps_is_used_except_system(self, tmp_path: Path) -> None:
        machine = [(7500 + 10 * n, n) for n in range(5000)]
        evaluations = [(12000, 9), (60000, 39)]
        rows = worked_example()
        path = store(tmp_path, rows, system__cpu=machine, eval__loss=evaluations)
        assert goodput_cli.analyze(str(path)).job.kept_steps == 40

    def test_running_or_killed_run_ends_at_its_last_row(self, tmp_path: Path) -> None:
        analysis = goodput_cli.analyze(str(store(tmp_path, worked_example(), status=1, end=None)))
        assert analysis.job.ending == "not_logged"
        assert analysis.job.end_ns == (BASE_MS + 61278) * 10**6

    def test_failed_run_is_a_crash(self, tmp_path: Path) -> None:
        assert goodput_cli.analyze(str(store(tmp_path, worked_example(), status=4))).job.ending == "crashed"

    def test_truncated_files_give_no_traceback_or_extra_steps(self, tmp_path: Path) -> None:
        folder = store(tmp_path, worked_example()) / "0" / RUN
        text = (folder / "metrics" / "loss").read_bytes()
        for size in range(60, len(text), 97):
            (folder / "metrics" / "loss").write_bytes(text[:size])
            assert goodput_cli.analyze(str(tmp_path)).job.kept_steps <= 40


class TestRestartsAsNewRuns:
    """Runs of one name whose steps continue are likely one job."""

    def two(
        self, root: Path, second_begins: int, first_step: int, names: tuple[str, str] = ("llm-7b", "llm-7b")
    ) -> Path:
        """Return a store with a run of steps 0 to 39, one per second, and a run of 20 steps that begins at a given
        second."""
        runs = [("a" * 32, 0, 0, 40, names[0]), ("b" * 32, second_begins, first_step, 20, names[1])]
        for run_id, begun, first, count, name in runs:
            rows = [((begun + 1 + n) * 1000, first + n) for n in range(count)]
            mlruns = store(root, rows, run_id, end=None)
            meta = mlruns / "0" / run_id / "meta.yaml"
            text = meta.read_text().replace("small one", name)
            meta.write_text(text.replace(str(BASE_MS + 7491), str(BASE_MS + begun * 1000)))
        return mlruns

    @pytest.mark.parametrize("first_step", [30, 40])
    def test_continuing_restart_is_an_attempt(self, tmp_path: Path, first_step: int) -> None:
        folder = str(self.two(tmp_path, 100, first_step))
        analysis = goodput_cli.analyze(folder)
        assert (analysis.job.name, analysis.job.attempts, analysis.job.kept_steps) == ("a" * 32, 2, first_step + 20)
        assert "runs_grouped" in codes(analysis)
        for name in ("llm-7b", "b" * 32):
            assert goodput_cli.analyze(folder, job_name=name).job.attempts == 2
        assert goodput_cli.analyze(folder, job_name="b" * 32, exact_run_name=True).job.attempts == 1

    @pytest.mark.parametrize(
        ("second_begins", "first_step", "names"),
        [
            (100, 0, ("llm-7b", "llm-7b")),  # both begin at the first step
            (100, 60, ("llm-7b", "llm-7b")),  # steps are missing between them
            (20, 30, ("llm-7b", "llm-7b")),  # at once
            (100, 30, ("llm-7b", "vision")),
            (100, 30, ("", "")),
        ],
    )
    def test_unrelated_runs_stay_separate_and_named(
        self, tmp_path: Path, second_begins: int, first_step: int, names: tuple[str, str]
    ) -> None:
        folder = str(self.two(tmp_path, second_begins, first_step, names))
        assert [one.name for one in goodput_cli.jobs(folder).jobs] == ["a" * 32, "b" * 32]
        with pytest.raises(goodput_cli.GoodputError, match=r"2 jobs: 'a{32}'") as refused:
            goodput_cli.analyze(folder)
        assert all(f"({name!r})" in str(refused.value) for name in names if name)


class TestWithoutAStart:
    @pytest.mark.parametrize("start", ["", "start_time: 1000000000000000000000000000000\n", "start_time: soon\n"])
    def test_run_without_start_does_not_end_fleet(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], start: str
    ) -> None:
        """The file of the run alone is refused with a message, and the others in its folder count."""
        folder = store(tmp_path, worked_example())
        odd = "b" * 32
        meta = folder / "0" / odd / "meta.yaml"
        (meta.parent / "metrics").mkdir(parents=True)
        meta.write_text(f"run_id: {odd}\nstatus: 3\nlifecycle_stage: active\n{start}end_time: 1772359200000\n")
        assert run(["fleet", str(folder), "--workers", "1"]) == 0
        said = capsys.readouterr()
        assert "1 of 1 run analyzed" in said.out
        assert "tracker_runs_left_out" in said.err
        for place in (meta, meta.parent.parent):
            run(["analyze", str(place)])
            assert "bug" not in capsys.readouterr().err
        assert run(["analyze", str(meta)]) == 4

"""Rolling windows (accounting §7): they cover the job, keep their exact length, and can ignore later events."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import goodput_cli
from goodput_cli.accounting import segments
from goodput_cli.accounting.build import build_timeline
from goodput_cli.analysis.results import Rolling
from goodput_cli.analysis.rolling import default_window
from goodput_cli.cli.main import run
from goodput_cli.errors import NotEnoughData, UsageError
from tests.strategies import JOB, any_logs
from tests.support.answers import check_answer
from tests.support.logs import EPOCH, NS, Recorder, outage

RECOVERY = "infrastructure_recovery_from_disruption"
Output = pytest.CaptureFixture[str]


@pytest.fixture
def log(folder: Path) -> Path:
    return outage().write(folder / "run.jsonl")


def rolled(source: Path, **question: Any) -> Rolling:
    answer = goodput_cli.analyze(source, **question).rolling
    assert answer is not None
    return answer


def answer_of(capsys: Output, *arguments: str) -> Any:
    assert run([*arguments, "-q", "--format", "json"]) == 0
    value = json.loads(capsys.readouterr().out)
    check_answer(value, "analysis" if arguments[0] == "analyze" else "rolling")
    return value


def test_window_inside_an_outage_is_all_recovery(log: Path, capsys: Output) -> None:
    value = answer_of(capsys, "rolling", str(log), "--window", "60s")
    inside = [row for row in value["rolling"] if row["start"][10:16] >= "T00:05" and row["end"][10:16] <= "T00:15"]
    assert len(inside) >= 8
    for row in inside:
        assert row["goodput_percent"] == 0
        assert [(amount["category"], amount["percent"]) for amount in row["badput"]] == [(RECOVERY, 100.0)]


def test_windows_do_not_snap_to_events(log: Path) -> None:
    rows = rolled(log, window="7s", start="+15s", end="+37s")
    assert ((rows.start_ns - EPOCH * NS) // NS).tolist() == [105, 112, 119, 126]
    assert ((rows.end_ns - EPOCH * NS) // NS).tolist() == [112, 119, 126, 127]
    assert rows.productive_ns.tolist() == [7 * NS, 7 * NS, 7 * NS, 1 * NS]


def test_window_starts_before_the_question_but_not_the_job(log: Path) -> None:
    rows = rolled(log, window="1000s", every="30s", start="+30s", end="+60s")
    assert (rows.start_ns.tolist(), rows.end_ns.tolist()) == ([(EPOCH + 90) * NS], [(EPOCH + 150) * NS])


def test_several_windows_are_listed_one_after_the_other(log: Path) -> None:
    rows = rolled(log, window=["1m", "5m"], every="2m")
    assert rows.window_ns.tolist() == [60 * NS] * 9 + [300 * NS] * 9
    assert (rows.end_ns[:9] == rows.end_ns[9:]).all()


def test_shortest_window_sets_the_interval(log: Path) -> None:
    assert rolled(log, window=["5m", "1m"]).every_ns == 60 * NS


def test_windows_after_the_end_are_left_out(log: Path) -> None:
    rows = rolled(log, window="1s", every="1000s")
    assert rows.end_ns.tolist() == [(EPOCH + 1090) * NS]


@pytest.mark.parametrize(("length", "window"), [(10, 1), (11, 5), (3600, 600), (40_000, 7200), (10**9, 7 * 86400)])
def test_default_window_is_a_round_number(length: int, window: int) -> None:
    assert default_window(length * NS) == window * NS


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(any_logs(), st.integers(1, 50 * NS), st.sampled_from([None, "auto", "2.5"]), st.booleans())
def test_windows_that_tile_the_job_add_up_to_it(lines: list[str], size: int, reference: str | None, cut: bool) -> None:
    exclude = ("+5s/+61s",) if cut else ()
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.jsonl")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            analysis = goodput_cli.analyze(
                path, job_name=JOB, reference_step_time=reference, exclude=exclude, window=["auto", size + NS]
            )
        except NotEnoughData:
            return
    rows = analysis.rolling
    assert rows is not None
    tiles = rows.window_ns == rows.every_ns
    assert int(rows.productive_ns[tiles].sum()) == analysis.goodput.ns
    assert int(rows.excluded_ns[tiles].sum()) == analysis.window.excluded_ns
    sums = {pair: int(ns) for pair, ns in zip(rows.categories, rows.badput_ns[:, tiles].sum(axis=1), strict=True) if ns}
    assert sums == {(row.category, row.label): row.ns for row in analysis.badput}
    assert (rows.productive_ns + rows.badput_ns.sum(axis=0) == rows.counted_ns).all()


def test_ten_thousand_windows_need_one_accounting(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    between = segments.Ledger.between

    def counted(self: segments.Ledger, start: Any, end: Any, only: Any = None) -> Any:
        asked.append(len(start))
        return between(self, start, end, only)

    monkeypatch.setattr(segments.Ledger, "between", counted)
    assert len(rolled(log, window="30s", every="100ms")) == 10_600
    assert [count for count in asked if count > 100] == [10_600]
    assert len(asked) < 10


def test_too_many_windows_are_refused_early(log: Path) -> None:
    with pytest.raises(UsageError, match="--every"):
        rolled(log, window="1h", every="1ms")


@pytest.mark.parametrize("arguments", [["--window", "0s"], ["--window", "1x"], ["--every", "0s"], ["--window", "-1h"]])
def test_invalid_lengths_are_wrong_usage(log: Path, arguments: list[str], capsys: Output) -> None:
    assert run(["rolling", str(log), *arguments]) == 2
    assert f"invalid value for '{arguments[0]}'" in capsys.readouterr().err


def test_every_requires_a_window(log: Path, capsys: Output) -> None:
    assert run(["analyze", str(log), "--every", "1m"]) == 2
    assert "--window" in capsys.readouterr().err


def test_hindsight_wastes_steps_that_were_redone_later(log: Path) -> None:
    first_life = {"window": "90s", "end": "+90s"}
    assert rolled(log, **first_life).productive_ns.tolist() == [60 * NS]
    assert rolled(log, **first_life, no_hindsight=True).productive_ns.tolist() == [80 * NS]


def test_row_without_hindsight_equals_analysis_as_of_its_end(log: Path) -> None:
    rows = rolled(log, window="10m", every="3m", no_hindsight=True)
    for row in rows.rows():
        then = goodput_cli.analyze(log, as_of=row.end_ns, start=row.start_ns, end=row.end_ns)
        assert (row.productive_ns, row.badput) == (then.goodput.ns, then.badput)


def test_analyze_without_hindsight_is_as_of_the_window_end(log: Path) -> None:
    question: dict[str, Any] = {"start": "+20s", "end": "+90s"}
    then = goodput_cli.analyze(log, no_hindsight=True, **question)
    assert then.goodput == goodput_cli.analyze(log, as_of="+90s", **question).goodput
    assert then.goodput.ns > goodput_cli.analyze(log, **question).goodput.ns


def test_windows_with_the_same_end_share_one_accounting(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(*given: Any) -> Any:
        calls.append(given[2])
        return build_timeline(*given)

    monkeypatch.setattr("goodput_cli.analysis.rolling.build_timeline", counted)
    rows = rolled(log, window=["1m", "5m", "10m"], every="5m", no_hindsight=True)
    assert len(calls) == len(set(rows.end_ns.tolist())) == 4


def test_end_of_the_job_ends_its_windows(tmp_path: Path) -> None:
    log = Recorder().start(0).steps(0, 4, 10, 10).end(60).start(300).steps(5, 9, 310, 10).end(360)
    rows = rolled(log.write(tmp_path / "run.jsonl"), window="100s", no_hindsight=True)
    assert ((rows.end_ns - EPOCH * NS) // NS).tolist() == [60, 100, 300, 360]
    assert ((rows.end_ns - rows.start_ns) // NS).tolist() == [60, 0, 100, 60]
    assert [row.percent is None for row in rows.rows()] == [False, True, False, False]


def test_json_of_rolling_and_analyze_agree(log: Path, capsys: Output) -> None:
    options = ["--window", "5m", "--every", "2m"]
    alone = answer_of(capsys, "rolling", str(log), *options)
    assert answer_of(capsys, "analyze", str(log), *options)["rolling"] == alone["rolling"]
    assert answer_of(capsys, "analyze", str(log))["rolling"] == []
    assert (alone["every_seconds"], alone["hindsight"]) == (120.0, True)
    for row in alone["rolling"]:
        total = row["goodput_ns"] + sum(amount["ns"] for amount in row["badput"])
        assert total + row["excluded_ns"] == round(row["seconds"] * NS)


def test_csv_has_a_column_per_category_and_adds_up(log: Path, capsys: Output) -> None:
    assert run(["rolling", str(log), "--window", "2m", "-q", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    analysis = goodput_cli.analyze(log)
    for amount in (analysis.goodput, *analysis.badput):
        assert sum(float(row[f"{amount.category}_seconds"]) for row in rows) == pytest.approx(amount.seconds)
    assert rows[0]["start"] == "2026-01-01T00:01:30Z"


def test_table_has_a_bar_per_row_and_fits(log: Path, capsys: Output) -> None:
    assert run(["rolling", str(log), "--window", "2m", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert sum("█" in line for line in lines) >= 2
    assert any("0.00 %" in line and " recovery" in line and "100.00 %" in line for line in lines)


def test_markdown_is_a_table(log: Path, capsys: Output) -> None:
    assert run(["rolling", str(log), "--window", "2m", "-q", "--format", "markdown"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1
    assert len(rows) == 2 + 9


def test_analyze_shows_a_sparkline(log: Path, capsys: Output) -> None:
    assert run(["analyze", str(log), "--window", "2m", "-q"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"goodput of windows 2m every 2m, 9 windows\n [▁▂▃▄▅▆▇█]{9}\n lowest 0.00 %", out)


def test_output_file_has_the_format_of_its_extension(log: Path, capsys: Output) -> None:
    assert run(["rolling", str(log), "-q", "-o", "a.csv", "-o", "a.json", "-o", "a.md", "-o", "a.txt"]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(Path("a.json").read_text(encoding="utf-8"))["schema_version"] == 2
    assert Path("a.md").read_text(encoding="utf-8").startswith("# Rolling goodput of job")
    assert run(["rolling", str(log), "-q", "-o", "a.csv"]) == 2


@pytest.mark.parametrize("command", ["analyze", "rolling"])
def test_auto_is_a_window_of_the_command(log: Path, command: str, capsys: Output) -> None:
    ends = [row["end"] for row in answer_of(capsys, command, str(log), "--window", "auto")["rolling"]]
    assert ends == [row["end"] for row in answer_of(capsys, "rolling", str(log))["rolling"]]


def test_log_without_slice_counts_has_no_column_for_them(log: Path) -> None:
    assert np.isnan(rolled(log, window="auto").stepping).all()


def test_window_over_100_percent_is_explained(tmp_path: Path) -> None:
    # 20 steps of 12 s, three of 1 s: the job is slower than the reference, one of its windows is faster.
    log = Recorder().start(0).steps(0, 20, 10, 12).steps(20, 24, 250, 1).end(260).write(tmp_path / "run.jsonl")
    analysis = goodput_cli.analyze(log, reference_step_time=10, window=["2s"])
    assert analysis.rolling is not None
    assert analysis.goodput.percent < 100 < max(row.percent or 0 for row in analysis.rolling.rows())
    assert "reference_too_slow" in {found.code for found in analysis.diagnostics}
    assert "reference_too_slow" not in {
        found.code for found in goodput_cli.analyze(log, reference_step_time=10).diagnostics
    }

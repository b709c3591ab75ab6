"""`goodput timeline`: segments that cover the window, the lines at their bounds, filters, folding, surroundings."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from rich.cells import cell_len

import goodput_cli
from goodput_cli.analysis.disruptions.find import neighbourhood
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.sheet import Sheet
from goodput_cli.analysis.timeline.rows import choose_segments, event_rows, folded, segment_rows
from goodput_cli.analysis.timeline.sheet import timeline_sheet
from goodput_cli.cli.main import run
from goodput_cli.errors import NotEnoughData
from goodput_cli.report.base import Page, load_sheet_renderer
from tests.strategies import JOB, any_logs
from tests.support.answers import check_answer
from tests.support.logs import EPOCH, NS, Recorder, outage

ROOT = Path(__file__).parent.parent.parent
SAMPLES = sorted((ROOT / "sample_logs").glob("*.jsonl"))
RECOVERY = "infrastructure_recovery_from_disruption"
Output = pytest.CaptureFixture[str]


@pytest.fixture
def log(folder: Path) -> Path:
    return outage().write(folder / "run.jsonl")


def answer_of(capsys: Output, *arguments: str) -> Any:
    assert run(["timeline", *arguments, "-q", "--format", "json"]) == 0
    value = json.loads(capsys.readouterr().out)
    check_answer(value, "timeline")
    return value


def sheet_of(analysis: Analysis, *, events: bool = True) -> Sheet:
    window = analysis.window.start_ns, analysis.window.end_ns
    rows = segment_rows(analysis.timeline, *window)
    shown = event_rows(analysis.timeline, *window) if events else None
    return timeline_sheet(analysis, rows, window, shown, filtered=False)


def amounts_of(analysis: Analysis) -> dict[tuple[str, str | None], int]:
    amounts = {(row.category, row.label): row.ns for row in (analysis.goodput, *analysis.badput) if row.ns}
    return amounts | ({("excluded", None): analysis.window.excluded_ns} if analysis.window.excluded_ns else {})


def summed(segments: list[dict[str, Any]]) -> dict[tuple[str, str | None], int]:
    sums: dict[tuple[str, str | None], int] = defaultdict(int)
    for one in segments:
        sums[one["category"], one["label"]] += one["end_ns"] - one["start_ns"]
        if one["slowdown_ns"]:
            sums["training_slowdown", None] += one["slowdown_ns"]
            sums["productive", None] -= one["slowdown_ns"]
    return {key: ns for key, ns in sums.items() if ns}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(any_logs())
def test_segments_touch_cover_the_window_and_add_up_to_analyze(lines: list[str]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.jsonl")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            question: dict[str, Any] = {"job_name": JOB, "exclude": ("+5s/+61s",), "reference_step_time": "auto"}
            analysis = goodput_cli.analyze(path, **question)
        except NotEnoughData:
            return
        count = len(lines)
    sheet = sheet_of(analysis)
    answer = json.loads(load_sheet_renderer("json")(sheet, Page()))
    segments = answer["segments"]
    assert segments[0]["start_ns"] == analysis.window.start_ns
    assert segments[-1]["end_ns"] == analysis.window.end_ns
    assert all(left["end_ns"] == right["start_ns"] for left, right in pairwise(segments))
    assert summed(segments) == amounts_of(analysis)
    places = [place for one in segments for place in one["evidence"]] + [one["where"] for one in answer["events"]]
    assert all(place.startswith(f"{path}:") and 1 <= int(place.rpartition(":")[2]) <= count for place in places)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("window", [[], ["--from", "+20s", "--to", "-10s"]], ids=["whole", "part"])
def test_every_format_adds_up_to_analyze(sample: Path, window: list[str], capsys: Output) -> None:
    given = [str(sample), *window]
    times = {"start": window[1], "end": window[3]} if window else {}
    wanted = amounts_of(goodput_cli.analyze(sample, **times))  # type: ignore[arg-type]
    segments = answer_of(capsys, *given)["segments"]
    assert summed(segments) == wanted
    assert run(["timeline", *given, "-q", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["start"] for row in rows] == [one["start"] for one in segments]
    assert [row["end"] for row in rows] == [one["end"] for one in segments]
    assert [row["category"] for row in rows] == [one["category"] for one in segments]
    assert [row["evidence"].split(" ") for row in rows] == [one["evidence"] for one in segments]
    slow = sum(Decimal(row["slowdown_seconds"]) for row in rows)
    assert slow * NS == wanted.get(("training_slowdown", None), 0)
    for name in ("table", "markdown"):
        assert run(["timeline", *given, "-q", "--format", name]) == 0
        assert len(capsys.readouterr().out.splitlines()) < len(rows) + 12


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_folding_loses_no_time(sample: Path) -> None:
    analysis = goodput_cli.analyze(sample)
    rows = segment_rows(analysis.timeline, analysis.window.start_ns, analysis.window.end_ns)
    runs = folded(rows)
    assert (runs.start[1:] == runs.end[:-1]).all()
    assert (runs.start[0], runs.end[-1]) == (rows.start[0], rows.end[-1])
    assert runs.slowdown.sum() == rows.slowdown.sum()
    alike = [runs.category[1:] == runs.category[:-1], runs.attempt[1:] == runs.attempt[:-1]]
    same_label = runs.label[1:] == runs.label[:-1]
    assert not (alike[0] & alike[1] & same_label).any()


def test_each_segment_has_its_description(log: Path, capsys: Output) -> None:
    segments = answer_of(capsys, str(log))["segments"]
    first = [(one["category"], one["attempt"], one["first_step"], one["last_step"]) for one in segments[:8]]
    assert first == [
        ("other", 1, None, None),
        *(("productive", 1, step, step) for step in range(6)),
        ("wasted_progress_from_disruption", 1, 6, 9),
    ]
    assert segments[1]["evidence"] == [f"{log}:2", f"{log}:3"]
    assert (segments[1]["start"], segments[1]["end"]) == ("2026-01-01T00:01:40Z", "2026-01-01T00:01:50Z")
    down = next(one for one in segments if one["category"] == RECOVERY)
    assert (down["attempt"], down["evidence"]) == (1, [f"{log}:11", f"{log}:12"])


def test_unclaimed_time_is_bounded_by_events_around_it(log: Path, capsys: Output) -> None:
    first = answer_of(capsys, str(log))["segments"][0]
    assert (first["category"], first["evidence"]) == ("other", [f"{log}:1", f"{log}:2"])


def test_excluded_time_has_no_evidence(log: Path, capsys: Output) -> None:
    segments = answer_of(capsys, str(log), "--exclude", "+10s/+30s")["segments"]
    assert [one["evidence"] for one in segments if one["category"] == "excluded"] == [[]]


def test_table_folds_similar_steps(log: Path, capsys: Output) -> None:
    assert run(["timeline", str(log), "-q"]) == 0
    out = capsys.readouterr().out
    assert [line.split() for line in out.splitlines() if " productive" in line] == [
        ["00:01:40", "1", "min", "00", "s", "productive", "1", "0-5", "2-8"],
        ["00:16:50", "2", "min", "20", "s", "productive", "2", "6-19", "13-27"],
    ]
    assert max(map(cell_len, out.splitlines())) <= 80


def test_folded_steps_count_as_one_for_min_duration(log: Path, capsys: Output) -> None:
    segments = answer_of(capsys, str(log), "--min-duration", "30s")["segments"]
    assert {one["category"] for one in segments} == {"productive", "wasted_progress_from_disruption", RECOVERY}
    assert sum(one["category"] == "productive" for one in segments) == 20
    longer = answer_of(capsys, str(log), "--min-duration", "61s")["segments"]
    assert sum(one["category"] == "productive" for one in longer) == 14


def test_categories_can_be_selected(log: Path, capsys: Output) -> None:
    segments = answer_of(capsys, str(log), "--category", RECOVERY.upper(), "--category", "other")["segments"]
    assert {one["category"] for one in segments} == {RECOVERY, "other"}
    assert answer_of(capsys, str(log), "--category", "custom:EVAL")["segments"] == []


@pytest.mark.parametrize(("typed", "meant"), [("recovry", "recovery"), ("wasted", "wasted_progress_from_disruption")])
def test_mistyped_category_is_suggested(log: Path, typed: str, meant: str, capsys: Output) -> None:
    assert run(["timeline", str(log), "--category", typed]) == 2
    assert f"did you mean {meant}" in capsys.readouterr().err


def test_single_label_can_be_selected(tmp_path: Path, capsys: Output) -> None:
    log = Recorder().start(0).steps(0, 9, 10, 10).custom(22, 25, "eval").custom(42, 43, "other").end(110)
    path = str(log.write(tmp_path / "run.jsonl"))
    segments = answer_of(capsys, path, "--category", "custom:Eval")["segments"]
    assert [(one["label"], one["end_ns"] - one["start_ns"]) for one in segments] == [("EVAL", 3 * NS)]
    assert len(answer_of(capsys, path, "--category", "custom_badput_events")["segments"]) == 2
    assert run(["timeline", path, "-q", "--category", "custom:eval"]) == 0
    out = capsys.readouterr().out
    assert "custom:EVAL" in out
    assert "hides some segments" in out


@pytest.mark.parametrize("name", ["nonsense", "training_slowdown", "custom:"])
def test_category_that_no_segment_can_have_is_wrong_usage(log: Path, name: str, capsys: Output) -> None:
    assert run(["timeline", str(log), "--category", name]) == 2
    assert name in capsys.readouterr().err


def test_events_are_interleaved(log: Path, capsys: Output) -> None:
    value = answer_of(capsys, str(log), "--events")
    assert [event["where"] for event in value["events"]] == [f"{log}:{line}" for line in range(1, 28)]
    first, second = value["events"][:2]
    assert (first["kind"], first["edge"], first["step"]) == ("start", "point", None)
    assert (second["kind"], second["time"], second["step"]) == ("step", "2026-01-01T00:01:40Z", 0)
    assert "events" not in answer_of(capsys, str(log))
    assert run(["timeline", str(log), "-q", "--events"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["00:01:40", "step", "(10", "lines)", "0-9", "2-11"] in lines
    assert ["00:01:30", "start", "1"] in lines


def test_csv_has_events_as_separate_rows(log: Path, capsys: Output) -> None:
    assert run(["timeline", str(log), "-q", "--events", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert sum(bool(row["event"]) for row in rows) == 27
    assert all(bool(row["event"]) != bool(row["category"]) for row in rows)
    assert [row["start"] for row in rows] == sorted(row["start"] for row in rows)


def seconds(window: tuple[int, int]) -> tuple[int, int]:
    return window[0] // NS - EPOCH, window[1] // NS - EPOCH


def test_around_a_disruption_ends_with_regained_progress(log: Path) -> None:
    timeline = goodput_cli.analyze(log).timeline
    assert seconds(neighbourhood(timeline, 1, 0, "UTC", 0)) == (190, 1050)
    assert seconds(neighbourhood(timeline, 1, 60 * NS, "UTC", 0)) == (130, 1110)
    assert seconds(neighbourhood(timeline, 1, 10**6 * NS, "UTC", 0)) == (90, 1150)


def test_progress_never_regained_lasts_to_the_end(tmp_path: Path) -> None:
    log = Recorder().start(0).steps(0, 9, 10, 10).start(200).steps(3, 5, 210, 10).end(250)
    timeline = goodput_cli.analyze(log.write(tmp_path / "run.jsonl")).timeline
    assert neighbourhood(timeline, 1, 0, "UTC", 0) == (timeline.sign_of_life[0], timeline.end)


def test_around_a_time_shows_that_time(log: Path, capsys: Output) -> None:
    value = answer_of(capsys, str(log), "--around", "2026-01-01T00:05:00", "--margin", "90s")
    assert (value["window"]["start"], value["window"]["end"]) == ("2026-01-01T00:03:30Z", "2026-01-01T00:06:30Z")
    assert [one["category"] for one in value["segments"]] == [RECOVERY]
    local = answer_of(capsys, str(log), "--around", "2026-01-01T01:05", "--timezone", "+01:00", "--margin", "90s")
    assert local["window"] == value["window"]
    assert answer_of(capsys, str(log), "--around", "attempt:2", "--margin", "10s")["window"]["start"].endswith("16:30Z")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--around", "step:99"], 2, "step 99 does not exist: the log contains steps 0 to "),
        (["--around", "step:x"], 2, "is not a step"),
        (["--around", "disruption:2"], 2, "disruption 2 does not exist: the job has 1 disruption"),
        (["--around", "disruption:0"], 2, "numbered from 1"),
        (["--around", "disruption:x"], 2, "numbered from 1"),
        (["--around", "someday"], 2, "attempt:3, disruption:3 or step:1503"),
        (["--around", "2027-01-01"], 4, "outside the job"),
        (["--around", "attempt:1", "--from", "-2m"], 2, "remove --from"),
        (["--margin", "5m"], 2, "--around"),
    ],
)
def test_impossible_selection_is_reported(
    log: Path, arguments: list[str], code: int, words: str, capsys: Output
) -> None:
    assert run(["timeline", str(log), *arguments]) == code
    assert words in " ".join(capsys.readouterr().err.split())


def test_evidence_names_files_if_there_are_several(
    log: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "66")
    lines = log.read_text(encoding="utf-8").splitlines()
    for name, part in (("a.jsonl", lines[:14]), ("b.jsonl", lines[14:])):
        (tmp_path / name).write_text("\n".join(part) + "\n", encoding="utf-8")
    assert run(["timeline", "a.jsonl", "b.jsonl", "-q"]) == 0
    out = capsys.readouterr().out
    assert "a.jsonl:2-8" in out
    assert "a.jsonl:13 +1" in out  # Two locations do not fit in 66 columns; CSV and JSON have both.
    assert run(["timeline", "a.jsonl", "b.jsonl", "-q", "--format", "csv"]) == 0
    assert "b.jsonl:13" in capsys.readouterr().out


def test_log_text_is_only_text(tmp_path: Path) -> None:
    label = "\x1b[31m=cmd|<img>[x]\u202e"
    log = Recorder().start(0).steps(0, 9, 10, 10).custom(22, 25, label).end(110)
    sheet = sheet_of(goodput_cli.analyze(log.write(tmp_path / "run.jsonl")))
    for name in ("table", "json", "csv", "markdown"):
        text = load_sheet_renderer(name)(sheet, Page())
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<img>" not in load_sheet_renderer("markdown")(sheet, Page()).lower()


def test_segments_can_be_selected_by_category_and_window(log: Path) -> None:
    timeline = goodput_cli.analyze(log).timeline
    rows = choose_segments(timeline, ((EPOCH + 105) * NS, (EPOCH + 125) * NS), 0, ["productive"])
    assert (rows.start // NS - EPOCH).tolist() == [105, 110, 120]
    assert rows.end[-1] == (EPOCH + 125) * NS

"""`--format parquet`: typed tables whose sums agree with JSON, for any log text."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import goodput_cli
from goodput_cli.accounting.options import RULES
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.cli.main import run
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.report import parquet
from goodput_cli.report.base import Page, format_of, load_renderer
from goodput_cli.report.parquet import lists_of_two, locations_of
from tests.support.answers import HOSTILE, json_of
from tests.support.logs import EPOCH, Recorder, outage

ROOT = Path(__file__).parent.parent.parent
NIGHT = ROOT / "sample_logs" / "llm-pretrain.jsonl"
PRIMER = ROOT / "sample_logs" / "primer-50-percent.jsonl"
HOSTILE_LABELS = (
    HOSTILE,
    "=cmd|' /C calc'!A0",
    "<script>alert(1)</script>",
    "\ud800 alone",
    "ab\u202egnp",
    "X" * 10_000,
)


def table_of(analysis: Analysis, name: str = "parquet") -> pa.Table:
    content = load_renderer(name)(analysis, Page())
    assert isinstance(content, bytes)
    return pyarrow.parquet.read_table(io.BytesIO(content))


def sums(table: pa.Table) -> dict[tuple[str, str | None], int]:
    """Return nanoseconds by category and label, with slowdown subtracted from productive time."""
    found: Counter[tuple[str, str | None]] = Counter()
    for row in table.select(["category", "label", "ns", "slowdown_ns"]).to_pylist():
        found[row["category"], row["label"]] += row["ns"]
        found["productive", None] -= row["slowdown_ns"]
        found["training_slowdown", None] += row["slowdown_ns"]
    return {key: ns for key, ns in found.items() if ns}


def json_sums(analysis: Analysis) -> dict[tuple[str, str | None], int]:
    answer = json_of(analysis)
    badput = {(row["category"], row["label"]): row["ns"] for row in answer["badput"]}
    return {("productive", None): answer["goodput"]["ns"], **badput}


@pytest.mark.parametrize(
    ("log", "question"),
    [(NIGHT, {}), (NIGHT, {"start": "-3h", "end": "-1h"}), (PRIMER, {"reference_step_time": 120})],
    ids=["a night", "two hours of it", "with a reference"],
)
def test_segments_add_up_to_json(log: Path, question: dict[str, Any]) -> None:
    analysis = goodput_cli.analyze(log, **question)
    table = table_of(analysis)
    assert sums(table) == json_sums(analysis)
    assert sum(table["ns"].to_pylist()) == analysis.window.ns


@pytest.mark.parametrize(("name", "frame"), [("parquet", "segments"), ("parquet-events", "events")])
def test_columns_and_values_agree_with_the_dataframe(name: str, frame: str) -> None:
    analysis = goodput_cli.analyze(NIGHT)
    table, expected = table_of(analysis, name), getattr(analysis, frame)
    assert table.column_names == ["job", *expected.columns]
    for column in expected.columns:
        known = expected[column].notna()
        values = [value if has else None for value, has in zip(expected[column].astype(object), known, strict=True)]
        assert table[column].to_pylist() == values, column


def test_evidence_agrees_with_the_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(outage().write(tmp_path / "job.jsonl"))
    assert run(["timeline", log, "--format", "json", "-q"]) == 0
    expected = [segment["evidence"] for segment in json.loads(capsys.readouterr().out)["segments"]]
    assert table_of(goodput_cli.analyze(log))["evidence"].to_pylist() == expected


def test_cloud_logging_entries_are_named_by_insert_id() -> None:
    table = replace(
        goodput_cli.analyze(NIGHT).table.take(np.arange(3)),
        line=np.array([0, 7, 0]),
        entry=np.array([0, -1, 1], dtype=np.int32),
        entries=(("log", "t", "first"), ("log", "t", "\ud800")),
    )
    places = locations_of(table)
    assert places(np.array([0, 1, 2, -1])).to_pylist() == ["first", f"{NIGHT}:7", "\ufffd", None]
    pairs = lists_of_two(places(np.array([0, 1, -1, -1])), places(np.array([1, 1, 0, -1])))
    assert pairs.to_pylist() == [["first", f"{NIGHT}:7"], [f"{NIGHT}:7"], ["first"], []]


def test_file_describes_itself() -> None:
    analysis = goodput_cli.analyze(PRIMER, reference_step_time=120, stall_factor=4.0)
    metadata = {key.decode(): value.decode() for key, value in table_of(analysis).schema.metadata.items()}
    assert metadata["goodput.schema_version"] == "2"
    assert metadata["goodput.rules"] == str(RULES)
    assert metadata["goodput.table"] == "segments"
    assert metadata["goodput.job"] == "goodput-primer"
    assert metadata["goodput.window_ns"] == str(analysis.window.ns)
    assert metadata["goodput.goodput_ns"] == str(analysis.goodput.ns)
    assert metadata["goodput.version"].startswith("goodput-cli ")
    method = json.loads(metadata["goodput.method"])
    assert (method["reference_step_time_seconds"], method["stall_factor"]) == (120.0, 4.0)


def test_text_is_a_dictionary_and_timestamps_are_utc() -> None:
    schema = table_of(goodput_cli.analyze(NIGHT)).schema
    assert pa.types.is_dictionary(schema.field("category").type)
    assert schema.field("start").type == pa.timestamp("ns", tz="UTC")
    assert schema.field("ns").type == pa.int64()


def test_row_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = goodput_cli.analyze(NIGHT)
    whole = table_of(analysis)
    monkeypatch.setattr(parquet, "ROWS", 1000)
    content = load_renderer("parquet")(analysis, Page())
    assert isinstance(content, bytes)
    metadata = pyarrow.parquet.ParquetFile(io.BytesIO(content)).metadata
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert max(sizes) <= 1000
    assert sum(sizes) == len(whole)
    assert table_of(analysis).to_pylist() == whole.to_pylist()


def test_hostile_text_is_only_text(tmp_path: Path) -> None:
    log = Recorder().start(0)
    for position, label in enumerate(HOSTILE_LABELS):
        log.custom(10 + position, 10.5 + position, label)
    log.steps(0, 3, 100, 10).end(140)
    path = log.write(tmp_path / "=a<b>\x1b[1m.jsonl")
    table = table_of(goodput_cli.analyze(path))
    labels = {label for label in table["label"].to_pylist() if label}
    assert labels == {label.upper().replace("\ud800", "\ufffd") for label in HOSTILE_LABELS}
    assert {place.rpartition(":")[0] for places in table["evidence"].to_pylist() for place in places} == {str(path)}
    assert table_of(goodput_cli.analyze(path), "parquet-events").num_rows == len(log.lines)


def test_unrecorded_values_are_null(tmp_path: Path) -> None:
    path = Recorder().start(0).steps(5, 8, 10, 10).end(60).write(tmp_path / "job.jsonl")
    events = table_of(goodput_cli.analyze(path), "parquet-events").to_pylist()
    assert (events[0]["kind"], events[0]["step"], events[0]["rank"], events[0]["label"]) == ("start", None, None, None)
    assert events[1]["step"] == 5
    segments = table_of(goodput_cli.analyze(path)).to_pylist()
    assert (segments[0]["category"], segments[0]["first_step"]) == ("other", None)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("run.parquet", "parquet"),
        ("run.segments.parquet", "parquet"),
        ("run.events.parquet", "parquet-events"),
        ("events.parquet", "parquet"),
    ],
)
def test_suffix_selects_the_table(file: str, name: str) -> None:
    assert format_of(file) == name


@pytest.mark.parametrize("command", ["rolling", "timeline", "disruptions", "steps", "jobs", "check"])
def test_other_commands_write_the_columns_of_their_csv(command: str, tmp_path: Path) -> None:
    parquet, csv = tmp_path / "out.parquet", tmp_path / "out.csv"
    run([command, str(NIGHT), "-q", "-o", str(parquet), "-o", str(csv)])
    head, *lines = csv.read_text(encoding="utf-8").splitlines()
    table = pyarrow.parquet.read_table(parquet)
    names = [name.removesuffix("_seconds") for name in head.split(",")]
    assert [name.removesuffix("_ns").removesuffix("_seconds") for name in table.column_names] == names
    assert table.num_rows == len(lines)


def test_sheet_cells_keep_exact_values(tmp_path: Path) -> None:
    log, out = outage().write(tmp_path / "job.jsonl"), tmp_path / "out.parquet"
    assert run(["disruptions", str(log), "-q", "-o", str(out)]) == 0
    (row,) = pyarrow.parquet.read_table(out).to_pylist()
    assert row["wasted_ns"] == 30 * 10**9
    assert row["last_sign_of_life"].timestamp() == EPOCH + 190
    assert row["cost"] is None


def test_event_table_is_only_for_analyze(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["timeline", str(NIGHT), "-o", str(tmp_path / "x.events.parquet")]) == UsageError.exit_code
    assert "parquet-events" in capsys.readouterr().err


def test_table_of_segments_is_not_a_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run.parquet"
    assert run(["analyze", str(PRIMER), "-q", "-o", str(out)]) == 0
    assert run(["analyze", str(out), "-q"]) == NotEnoughData.exit_code
    assert "lines that match no log format" in capsys.readouterr().err

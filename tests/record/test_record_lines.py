"""Written lines: byte for byte, of the drop-in and the recorder, and their readers."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.record import Recorder
from goodput_cli.record.lines import EVENTS, LineSerializer, quote
from tests.record.record_programs import ROOT, events, lines, word
from tests.record.record_story import story, time_of


def test_first_time_of_a_native_line_is_a_number(tmp_path: Path) -> None:
    story(Recorder("j", tmp_path / "log.jsonl", heartbeat=0), 1_768_249_800.0)
    assert all(isinstance(time_of(line), float) for line in lines(tmp_path / "log.jsonl"))


def test_run_writes_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    recorder = Recorder("j", path, heartbeat=0, world_size=4)
    with recorder.run(at=100.0, until=107.0), recorder.step(3, at=101.0), recorder.phase("eval", at=102, until=103.5):
        pass
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    who = json.loads(first)
    assert [*who] == [
        *("job_name", "goodput_event", "goodput_time", "run_id", "rank", "world_size", "host", "pid", "writer")
    ]
    assert (who["goodput_event"], who["rank"], who["world_size"]) == ("attempt", 0, 4)
    assert rest == [
        '{"job_name": "j", "job_start_time": 100.000000}',
        '{"job_name": "j", "step_count": 3, "step_start_time": 101.000000}',
        '{"job_name": "j", "custom_badput_event_type": "eval", "custom_badput_event_start_time": 102.000000}',
        '{"job_name": "j", "custom_badput_event_type": "eval", "custom_badput_event_end_time": 103.500000}',
        '{"job_name": "j", "job_end_time": 107.000000}',
    ]


def test_save_is_one_full_line_and_its_completion(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    recorder = Recorder("j", path, heartbeat=0)
    with recorder.checkpoint_save(9, "d", at=1_768_250_400, until=1_768_250_403.25):
        pass
    save, saved = lines(path)[-2:]
    assert save == {
        "job_name": "j",
        "event_type": "save",
        "step": 9,
        "directory": "d",
        "synchronous": True,
        "wait_for_prev_start_time": 1768250400.0,
        "wait_for_prev_duration_secs": 0.0,
        "checkpointer_blocking_start_time": 1768250400.0,
        "checkpointer_blocking_duration_secs": 3.25,
        "get_old_steps_start_time": 1768250403.25,
        "get_old_steps_duration_secs": 0.0,
        "checkpoint_manager_blocking_start_time": 1768250400.0,
        "checkpoint_manager_blocking_duration_secs": 3.25,
    }
    assert saved == {
        "job_name": "j",
        "goodput_event": "checkpoint_saved",
        "goodput_time": 1768250403.25,
        "step": 9,
    }


def test_failed_save_is_not_complete(tmp_path: Path) -> None:
    recorder = Recorder("j", tmp_path / "log.jsonl", heartbeat=0)
    with pytest.raises(OSError, match="full"), recorder.checkpoint_save(9):
        raise OSError("full")
    assert events(tmp_path / "log.jsonl")[-1] == "save"


def test_only_declared_events_are_written(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    story(Recorder("j", path, heartbeat=0), 1_768_249_800.0)
    for line in lines(path):
        if "goodput_event" in line and line["goodput_event"] != "metrics":
            known = {"job_name", "goodput_event", "goodput_time", *EVENTS[line["goodput_event"]].keys}
            assert set(line) <= known


def test_invalid_step_and_time_are_reported_once(tmp_path: Path) -> None:
    said: list[str] = []
    recorder = Recorder("j", tmp_path / "log.jsonl", heartbeat=0, warn=said.append)
    for _ in range(3):
        recorder.begin_step("seven of nine")
        recorder.begin_step(float("nan"))
    recorder.begin_step("7", at="yesterday")
    recorder.metrics(7, mfu=float("nan"), tokens=5)
    assert [word(line) for line in lines(tmp_path / "log.jsonl")[2:]] == ["step 7", "metrics"]
    assert said == [
        "str is not a whole number; such events are not recorded",
        "float is not a whole number; such events are not recorded",
        "str is not a time; the time of the call is recorded",
        "metric 'mfu' is not a finite number and is not recorded",
    ]


def test_any_text_is_ascii_json() -> None:
    for text in ('"\\\n\x1b[31m', "ü€😀", "\ud800 half", "\0"):
        quoted = quote(text)
        assert quoted.isascii()
        assert json.loads(quoted) == text.replace("\ud800", "\ufffd")
    assert (
        LineSerializer("ü").fact("job_start_time", 1_500_000)
        == b'{"job_name": "\\u00fc", "job_start_time": 1.500000}\n'
    )


def test_too_long_line_is_dropped_and_reported(tmp_path: Path) -> None:
    said: list[str] = []
    recorder = Recorder("j", tmp_path / "log.jsonl", heartbeat=0, warn=said.append)
    recorder.begin_step(0)
    with recorder.phase("x" * 70_000):
        recorder.begin_step(1)
    recorder.begin_step(2)
    assert events(tmp_path / "log.jsonl")[2:] == ["step 0", "dropped", "step 1", "dropped", "step 2"]
    dropped = lines(tmp_path / "log.jsonl")[3]
    assert (dropped["lines"], dropped["steps"], dropped["reason"]) == (1, 0, "line too long")
    assert said == ["a line of more than 65536 bytes is not written"]


def test_replayed_story_is_analyzed_to_the_nanosecond(tmp_path: Path) -> None:
    told = ROOT / "sample_logs" / "llm-pretrain.jsonl"
    kept = [line for line in lines(told) if "event_type" not in line]
    original, replayed = tmp_path / "original.jsonl", tmp_path / "replayed.jsonl"
    original.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
    replay(kept, replayed)
    one, other = goodput_cli.analyze(original), goodput_cli.analyze(replayed)
    assert one.job.attempts == other.job.attempts > 3
    assert replace(one.job, log_formats=()) == replace(other.job, log_formats=())
    assert (one.window, one.goodput, one.badput) == (other.window, other.goodput, other.badput)
    columns = ["start", "end", "category", "attempt", "first_step", "last_step"]
    assert one.segments[columns].equals(other.segments[columns])


def replay(told: list[dict[str, Any]], path: Path) -> None:
    """Record a log again, with a recorder for each attempt."""
    recorder = None
    spans: dict[str, Any] = {}
    for line in told:
        key, time = (
            [*line.items()][-1] if "step_start_time" not in line else ("step_start_time", line["step_start_time"])
        )
        if key == "job_start_time":
            recorder = Recorder(line["job_name"], path, heartbeat=0, at_exit=False, signals=(), excepthook=False)
            recorder.begin_run(time)
            continue
        assert recorder is not None
        if key == "job_end_time":
            recorder.end_run(None, None, time)
        elif key == "step_start_time":
            recorder.begin_step(line["step_count"], time)
        elif "active_slices" in line:
            counts = [line[f"{name}_slices"] for name in ("active", "total", "available")]
            recorder.slices(*counts, at=line["elastic_slice_counts_timestamp"])
        else:
            edge(recorder, spans, line)


def edge(recorder: Recorder, spans: dict[str, Any], line: dict[str, Any]) -> None:
    """Record the begin or the end of a phase."""
    attempt = recorder.attempt()
    assert attempt is not None
    key, time = next((key, value) for key, value in line.items() if key.endswith("_time"))
    label = next(((name, text) for name, text in line.items() if name.endswith("_type")), None)
    attempt.edge(key, label, 3, time)


def test_importing_the_recorder_imports_little() -> None:
    heavy = "numpy pandas click google requests asyncio ssl hashlib urllib.request inspect dataclasses grpc orjson"
    code = f"""
import sys
before = set(sys.modules)
from goodput_cli.record import Recorder
from goodput_cli.compat.drop_in.ml_goodput_measurement import goodput, goodput_elastic
print(sorted(set({heavy.split()!r}) & (set(sys.modules) - before)))
ours = [name for name in sys.modules if name.startswith('goodput_cli') and 'record' not in name]
print(sorted(name for name in ours if '.drop_in.' not in name))
"""
    out = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert out.splitlines() == ["[]", "['goodput_cli', 'goodput_cli.compat', 'goodput_cli.compat.drop_in']"]

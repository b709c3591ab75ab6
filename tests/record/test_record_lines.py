"""What is written: byte for byte, by the drop-in and by the recorder, and who can read it."""

from __future__ import annotations

import datetime
import inspect
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_goodput_measurement
import pytest

import goodput_cli
from goodput_cli.record import Recorder
from goodput_cli.record.drop_in import ml_goodput_measurement as ours
from goodput_cli.record.lines import Lines, quote
from goodput_cli.record.native import EVENTS
from tests.record.record_programs import ROOT, events, lines, word

UTC = datetime.UTC
ROWS = [
    ("record_job_start_time", (), '"job_start_time": {}'),
    ("record_job_end_time", (), '"job_end_time": {}'),
    ("record_step_start_time", (7,), '"step_count": 7, "step_start_time": {}'),
    ("record_tpu_init_start_time", (), '"tpu_init_start_time": {}'),
    ("record_tpu_init_end_time", (), '"tpu_init_end_time": {}'),
    ("record_training_preparation_start_time", (), '"training_prep_start_time": {}'),
    ("record_training_preparation_end_time", (), '"training_prep_end_time": {}'),
    ("record_data_loading_start_time", (), '"data_loading_start_time": {}'),
    ("record_data_loading_end_time", (), '"data_loading_end_time": {}'),
    (
        "record_elastic_slice_counts",
        (4, 8, 8),
        '"active_slices": 4, "total_slices": 8, "available_slices": 8, "elastic_slice_counts_timestamp": {}',
    ),
    (
        "record_elastic_wait_start_time",
        ("scale_up",),
        '"elastic_wait_event_type": "scale_up", "elastic_wait_start_time": {}',
    ),
    (
        "record_elastic_wait_end_time",
        ("scale_up",),
        '"elastic_wait_event_type": "scale_up", "elastic_wait_end_time": {}',
    ),
    ("record_elastic_reinit_start_time", (), '"elastic_reinit_start_time": {}'),
    ("record_elastic_reinit_end_time", (), '"elastic_reinit_end_time": {}'),
]
CUSTOM = ["start", "end"]
AT = datetime.datetime(2026, 1, 12, 20, 30, 0, 120_000, tzinfo=UTC)
STAMP = "1768249800.120000"


class Collected:
    """What the libraries take in the place of Cloud Logging."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.job_start_time = AT

    def write_cloud_logging_entry(self, entry: dict[str, Any]) -> None:
        self.entries.append(entry)

    def flush(self) -> None:
        """Nothing waits."""

    def read_cloud_logging_entries(self, *_: Any, **__: Any) -> tuple[list[dict[str, Any]], tuple[None, None]]:
        return self.entries, (None, None)


def calls(recorder: Any, time: datetime.datetime | None) -> None:
    """Every method, with a time or without."""
    for name, arguments, _ in ROWS:
        getattr(recorder, name)(*arguments, *([] if time is None else [time]))
    for edge in CUSTOM:
        call = getattr(recorder, f"record_custom_badput_event_{edge}_time")
        call(**({} if time is None else {f"{edge}_time": time}), custom_badput_event_type="eval_step")


def test_every_method_writes_exactly_its_line() -> None:
    calls(ours.goodput_elastic.ElasticGoodputRecorder("llm-7b", "log", True), AT)
    expected = [f'{{"job_name": "llm-7b", {row.format(STAMP)}}}' for _, _, row in ROWS]
    expected += [
        f'{{"job_name": "llm-7b", "custom_badput_event_type": "eval_step", "custom_badput_event_{edge}_time": {STAMP}}}'
        for edge in CUSTOM
    ]
    assert Path("goodput-logs/llm-7b.jsonl").read_text(encoding="utf-8").splitlines() == expected


def test_the_reader_knows_every_key() -> None:
    calls(ours.goodput_elastic.ElasticGoodputRecorder("llm-7b", "log", True), None)
    analysis = goodput_cli.analyze("goodput-logs/llm-7b.jsonl")
    assert {"unknown_keys", "unrecognised_lines", "malformed_lines"}.isdisjoint(
        {diagnostic.code for diagnostic in analysis.diagnostics}
    )


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("goodput", "GoodputRecorder"),
        ("goodput", "GoodputCalculator"),
        ("goodput_elastic", "ElasticGoodputRecorder"),
        ("goodput_elastic", "ElasticGoodputCalculator"),
    ],
)
def test_signatures_are_those_of_the_original(module: str, name: str) -> None:
    mine, theirs = getattr(getattr(ours, module), name), getattr(getattr(ml_goodput_measurement, module), name)
    assert shape(mine.__init__) == shape(theirs.__init__)
    public = {key for key in dir(theirs) if not key.startswith("_")}
    assert {key for key in dir(mine) if not key.startswith("_")} == public
    for key in public:
        assert shape(getattr(mine, key)) == shape(getattr(theirs, key)), key
    assert not hasattr(mine, "__getattr__")


def shape(function: Any) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults."""
    parameters = inspect.signature(function).parameters.values()
    return [(parameter.name, parameter.kind, parameter.default) for parameter in parameters]


@pytest.mark.parametrize("name", ["BadputType", "GoodputType", "MetricType", "IntervalMetricType"])
def test_enums_are_those_of_the_original(name: str) -> None:
    mine, theirs = getattr(ours.goodput, name), getattr(ml_goodput_measurement.goodput, name)
    assert [(one.name, one.value) for one in mine] == [(one.name, one.value) for one in theirs]
    assert shape(ours.goodput_utils.GCPOptions) == shape(ml_goodput_measurement.goodput_utils.GCPOptions)


def test_the_same_calls_leave_the_same_records() -> None:
    mine, theirs = Collected(), Collected()
    time = datetime.datetime.now()  # naive, as the original's README passes it
    calls(ours.goodput_elastic.ElasticGoodputRecorder("j", "log", True, mine), time)
    original = ml_goodput_measurement.goodput_elastic.ElasticGoodputRecorder
    calls(original("j", "log", True, theirs), time)
    assert [list(entry.items()) for entry in mine.entries] == [list(entry.items()) for entry in theirs.entries]
    calls(ours.goodput_elastic.ElasticGoodputRecorder("j", "log", True), time)
    assert lines(Path("goodput-logs/j.jsonl")) == theirs.entries


def test_without_a_time_both_say_now() -> None:
    mine, theirs = Collected(), Collected()
    original = ml_goodput_measurement.goodput_elastic.ElasticGoodputRecorder
    both = (
        ours.goodput_elastic.ElasticGoodputRecorder("j", "log", True, mine),
        original("j", "log", True, theirs),
    )
    for name, arguments, _ in ROWS:
        for recorder in both:
            getattr(recorder, name)(*arguments)
    for one, other in zip(mine.entries, theirs.entries, strict=True):
        assert [*one] == [*other]
        assert abs([*one.values()][-1] - [*other.values()][-1]) < 0.2


def story(recorder: Recorder, start: float) -> None:
    """Every call of the recorder, at given times."""
    with recorder.run(at=start, until=start + 100):
        recorder.scheduled(at=start)
        with recorder.phase("accelerator_init", at=start + 1, until=start + 2):
            pass
        prep = recorder.phase("training_prep", at=start + 2, until=start + 5)
        with prep, recorder.checkpoint_restore(0, "gs://b/c", at=start + 3, until=start + 4):
            pass
        for step in range(20):
            at = start + 6 + 4 * step
            with recorder.data_loading(at=at - 0.5, until=at - 0.25):
                pass
            with recorder.step(step, at=at):
                pass
            recorder.metrics(step, at=at, mfu=41.5)
        with recorder.checkpoint_save(19, "gs://b/c", at=start + 85, until=start + 87):
            pass
        with recorder.checkpoint_save(19, synchronous=False, at=start + 87, until=start + 88):
            pass
        recorder.checkpoint_saved(19, at=start + 89)
        with recorder.phase("eval", at=start + 89, until=start + 95):
            pass
        with recorder.elastic_wait("scale_up", at=start + 95, until=start + 96):
            pass
        with recorder.elastic_reinit(at=start + 96, until=start + 97):
            pass
        recorder.slices(1, 2, 2, at=start + 97)


def test_the_originals_calculator_reads_every_line_of_the_recorder(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    story(Recorder("j", path, heartbeat=0), 1_768_249_800.0)
    logger = Collected()
    logger.entries = lines(path)
    calculator = ml_goodput_measurement.goodput.GoodputCalculator(
        "j",
        "log",
        cloud_logger=logger,
        cache_dir=str(tmp_path),
    )
    goodput, badput, last_step = calculator.get_job_goodput(include_badput_breakdown=True)
    assert last_step == 19
    assert goodput == pytest.approx(100 - 6 - 3)  # from the first step to the end, without the saves
    save = ml_goodput_measurement.goodput.BadputType.UNPRODUCTIVE_CHECKPOINT_SAVE_TIME
    assert badput[save] == pytest.approx(3, abs=0.1)  # 3 of 100 s
    begin, end = (datetime.datetime.fromtimestamp(1_768_249_800 + at, UTC) for at in (20, 80))
    in_window = [entry for entry in logger.entries if 20 <= time_of(entry) - 1_768_249_800 <= 80]
    logger.entries = in_window
    percent, _, _, seconds, _ = calculator.get_job_goodput_interval(begin, end)
    assert (0 < percent <= 100, 50 <= seconds <= 60) == (True, True)


def test_the_originals_calculator_answers_whatever_the_recorder_writes(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    recorder = Recorder("j", path, heartbeat=0)
    with recorder.run(at=1_768_249_800, until=1_768_249_807):
        recorder.preemption_notice("maintenance", at=1_768_249_801)
        for step in range(3):
            recorder.begin_step(step, at=1_768_249_802 + step)
        attempt = recorder.attempt()
        assert attempt is not None
        for event, about in EVENTS.items():
            attempt.native(event, 1_768_249_806_000_000, **dict.fromkeys(about.keys, 1))
    logger = Collected()
    logger.entries = lines(path)
    calculator = ml_goodput_measurement.goodput.GoodputCalculator(
        "j",
        "log",
        cloud_logger=logger,
        cache_dir=str(tmp_path),
    )
    assert calculator.get_job_goodput()[2] == 1
    begin, end = (datetime.datetime.fromtimestamp(1_768_249_800 + at, UTC) for at in (0, 10))
    assert calculator.get_job_goodput_interval(begin, end)[2] == 1


def time_of(line: dict[str, Any]) -> float:
    return float(next(value for key, value in line.items() if "time" in key))


def test_the_first_time_of_a_native_line_is_a_number(tmp_path: Path) -> None:
    story(Recorder("j", tmp_path / "log.jsonl", heartbeat=0), 1_768_249_800.0)
    assert all(isinstance(time_of(line), float) for line in lines(tmp_path / "log.jsonl"))


def test_the_lines_of_a_run(tmp_path: Path) -> None:
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


def test_a_save_is_one_full_line_and_its_completion(tmp_path: Path) -> None:
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


def test_a_save_that_fails_is_not_complete(tmp_path: Path) -> None:
    recorder = Recorder("j", tmp_path / "log.jsonl", heartbeat=0)
    with pytest.raises(OSError, match="full"), recorder.checkpoint_save(9):
        raise OSError("full")
    assert events(tmp_path / "log.jsonl")[-1] == "save"


def test_only_events_of_the_table_are_written(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    story(Recorder("j", path, heartbeat=0), 1_768_249_800.0)
    for line in lines(path):
        if "goodput_event" in line and line["goodput_event"] != "metrics":
            known = {"job_name", "goodput_event", "goodput_time", *EVENTS[line["goodput_event"]].keys}
            assert set(line) <= known


def test_what_is_no_step_and_no_time_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    recorder = Recorder("j", tmp_path / "log.jsonl", heartbeat=0, warn=said.append)
    for _ in range(3):
        recorder.begin_step("seven of nine")
        recorder.begin_step(float("nan"))
    recorder.begin_step("7", at="yesterday")
    recorder.metrics(7, mfu=float("nan"), tokens=5)
    assert [word(line) for line in lines(tmp_path / "log.jsonl")[2:]] == ["step 7", "metrics"]
    assert said == [
        "str is no whole number; such events are not recorded",
        "float is no whole number; such events are not recorded",
        "str is no time; the time of the call is recorded",
        "metric 'mfu' is no finite number; it is left out",
    ]


def test_text_is_ascii_json_whatever_it_holds() -> None:
    for text in ('"\\\n\x1b[31m', "ü€😀", "\ud800 half", "\0"):
        quoted = quote(text)
        assert quoted.isascii()
        assert json.loads(quoted) == text.replace("\ud800", "\ufffd")
    assert Lines("ü").fact("job_start_time", 1_500_000) == b'{"job_name": "\\u00fc", "job_start_time": 1.500000}\n'


def test_a_line_that_is_too_long_is_dropped_and_said(tmp_path: Path) -> None:
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


def test_a_story_that_is_replayed_is_analysed_to_the_nanosecond(tmp_path: Path) -> None:
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
    """Record a log anew, with a recorder for each attempt."""
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
    """One end of a phase."""
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
from goodput_cli.record.drop_in.ml_goodput_measurement import goodput, goodput_elastic
print(sorted(set({heavy.split()!r}) & (set(sys.modules) - before)))
print(sorted(name for name in sys.modules if name.startswith('goodput_cli') and 'record' not in name))
"""
    out = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert out.splitlines() == ["[]", "['goodput_cli']"]

"""The recorder compared with the original: the same names and records, and lines that its calculator reads."""

from __future__ import annotations

import dataclasses
import datetime
import inspect
from pathlib import Path
from typing import Any

import ml_goodput_measurement
import pytest

import goodput_cli
from goodput_cli.compat.drop_in import ml_goodput_measurement as ours
from goodput_cli.record import Recorder
from goodput_cli.record.lines import EVENTS
from tests.record.record_programs import lines
from tests.record.record_story import story, time_of

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
    """Replacement of Cloud Logging for the libraries."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.job_start_time = AT

    def write_cloud_logging_entry(self, entry: dict[str, Any]) -> None:
        self.entries.append(entry)

    def flush(self) -> None:
        """Do nothing: no entry waits."""

    def read_cloud_logging_entries(self, *_: Any, **__: Any) -> tuple[list[dict[str, Any]], tuple[None, None]]:
        return self.entries, (None, None)


def calls(recorder: Any, time: datetime.datetime | None) -> None:
    """Call every method, with a time or without."""
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


def test_reader_knows_every_key() -> None:
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
        ("monitoring", "GoodputMonitor"),
        ("monitoring_elastic", "ElasticGoodputMonitor"),
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
    """Return names, kinds and defaults."""
    parameters = inspect.signature(function).parameters.values()
    return [(parameter.name, parameter.kind, _plain(parameter.default)) for parameter in parameters]


def _plain(default: Any) -> Any:
    """Return a default that two libraries can share: `GCPOptions` as its contents."""
    return dataclasses.asdict(default) if dataclasses.is_dataclass(default) else default  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["BadputType", "GoodputType", "MetricType", "IntervalMetricType"])
def test_enums_are_those_of_the_original(name: str) -> None:
    mine, theirs = getattr(ours.goodput, name), getattr(ml_goodput_measurement.goodput, name)
    assert [(one.name, one.value) for one in mine] == [(one.name, one.value) for one in theirs]
    assert shape(ours.goodput_utils.GCPOptions) == shape(ml_goodput_measurement.goodput_utils.GCPOptions)


def test_same_calls_write_the_same_records() -> None:
    mine, theirs = Collected(), Collected()
    time = datetime.datetime.now()  # naive, as the original's README passes it
    calls(ours.goodput_elastic.ElasticGoodputRecorder("j", "log", True, mine), time)
    original = ml_goodput_measurement.goodput_elastic.ElasticGoodputRecorder
    calls(original("j", "log", True, theirs), time)
    assert [list(entry.items()) for entry in mine.entries] == [list(entry.items()) for entry in theirs.entries]
    calls(ours.goodput_elastic.ElasticGoodputRecorder("j", "log", True), time)
    assert lines(Path("goodput-logs/j.jsonl")) == theirs.entries


def test_default_time_is_now_in_both() -> None:
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


def test_original_calculator_reads_every_line(tmp_path: Path) -> None:
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


def test_original_calculator_accepts_any_log(tmp_path: Path) -> None:
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

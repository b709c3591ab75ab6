"""Programs with the calls of MaxText, axlearn and users of the resiliency library, migrated with one `sed`."""

from __future__ import annotations

import datetime
import inspect
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_goodput_measurement
import pytest

import goodput_cli
from goodput_cli.compat.drop_in.ml_goodput_measurement import goodput
from goodput_cli.compat.drop_in.resiliency.goodput_measure import constant
from tests.record.record_programs import ROOT, events, lines, run

MAXTEXT = """
import contextlib
from ml_goodput_measurement import goodput, goodput_elastic

class jax:
    process_index = staticmethod(lambda: 0)

@contextlib.contextmanager
def maybe_record_goodput(recorder, event, *args):
    start = getattr(recorder, f"record_{event}_start_time", None)
    if start:
        start(*args)
    yield
    end = getattr(recorder, f"record_{event}_end_time", None)
    if end:
        end(*args)

run_name = "llm"
recorder = goodput_elastic.ElasticGoodputRecorder(run_name, f"goodput_{run_name}", jax.process_index() == 0)
first, last = int(sys.argv[1]), int(sys.argv[2])
with maybe_record_goodput(recorder, "job"):
    with maybe_record_goodput(recorder, "tpu_init"):
        time.sleep(0.02)
    with maybe_record_goodput(recorder, "training_preparation"):
        time.sleep(0.02)
    for step in range(first, last):
        with maybe_record_goodput(recorder, "data_loading"):
            pass
        with maybe_record_goodput(recorder, "step", step):
            time.sleep(0.01)
            if step == 7 and first == 0:
                raise RuntimeError("a chip is gone")
    recorder.record_elastic_slice_counts(1, 2, 2)
"""
AXLEARN = """
from ml_goodput_measurement import goodput
recorder = goodput.GoodputRecorder(job_name="ax", logger_name="goodput_logger_ax", logging_enabled=True)

def record(event, *args, **kwargs):
    try:
        getattr(recorder, f"record_{event}_start_time")(*args, **kwargs)
    except RuntimeError:
        pass
    try:
        yield
    finally:
        getattr(recorder, f"record_{event}_end_time", lambda *_, **__: None)(*args, **kwargs)

def during(event, *args, **kwargs):
    import contextlib
    return contextlib.contextmanager(record)(event, *args, **kwargs)

with during("job"):
    for step in range(4):
        with during("step", step):
            time.sleep(0.01)
        with during("custom_badput_event", custom_badput_event_type="EVAL"):
            pass
"""


def moved(text: str) -> str:
    """Return the text after the `sed` command."""
    return re.sub(r"\bml_goodput_measurement\b", "goodput_cli.compat.drop_in.ml_goodput_measurement", text)


def test_maxtext_program_with_crash_and_restart(tmp_path: Path) -> None:
    _, said = run(tmp_path, moved(MAXTEXT), "0", "10", code=1)
    assert said.splitlines()[0] == "goodput-record: no Google Cloud project found: the log is written to a file only"
    run(tmp_path, moved(MAXTEXT), "5", "10")
    path = tmp_path / "goodput-logs" / "llm.jsonl"
    assert not [name for name in events(path) if "step_end" in name]
    assert all("goodput_event" not in line for line in lines(path))  # a drop-in writes the same lines as the original
    analysis = goodput_cli.analyze(str(path))
    assert (analysis.job.attempts, analysis.job.disruptions, analysis.job.ending) == (2, 1, "clean")
    assert (analysis.job.first_step, analysis.job.last_step) == (0, 9)
    assert "wasted_progress_from_disruption" in {time.category for time in analysis.badput}


def test_axlearn_program_is_recorded(tmp_path: Path) -> None:
    run(tmp_path, moved(AXLEARN))
    found = lines(tmp_path / "goodput-logs" / "ax.jsonl")
    assert [line["custom_badput_event_type"] for line in found if "custom_badput_event_type" in line] == ["EVAL"] * 8
    analysis = goodput_cli.analyze(str(tmp_path / "goodput-logs" / "ax.jsonl"))
    assert (analysis.job.last_step, analysis.job.ending) == (3, "clean")


def test_no_method_raises_for_any_argument(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Bad:
        def write_cloud_logging_entry(self, _entry: Any) -> None:
            raise RuntimeError("no")

    for recorder in (goodput.GoodputRecorder("j", "l", True), goodput.GoodputRecorder("j", "l", True, Bad())):
        for name in dir(recorder):
            if name.startswith("record_"):
                call: Any = getattr(recorder, name)
                for arguments in ((), (object(),), (object(), object()), ("x", "y")):
                    if fits(call, arguments):
                        call(*arguments)
        recorder.flush()
    assert "Traceback" not in capsys.readouterr().err


def fits(call: Any, arguments: tuple[object, ...]) -> bool:
    """Return True if a call has all arguments and none too many."""
    try:
        inspect.signature(call).bind(*arguments)
    except TypeError:
        return False
    return True


def test_disabled_recorder_opens_nothing(tmp_path: Path) -> None:
    recorder = goodput.GoodputRecorder("j", "l")
    recorder.record_job_start_time()
    recorder.flush()
    assert not (tmp_path / "goodput-logs").exists()


def test_destination_can_be_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOODPUT_RECORDER_DIR", "elsewhere")
    goodput.GoodputRecorder("j", "l", True).record_job_start_time()
    monkeypatch.setenv("GOODPUT_RECORDER_TO", "a.jsonl, b.jsonl")
    goodput.GoodputRecorder("j", "l", True).record_job_start_time()
    assert [events(Path(name)) for name in ("elsewhere/j.jsonl", "a.jsonl", "b.jsonl")] == [["job_start_time"]] * 3
    monkeypatch.setenv("GOODPUT_RECORDER_TO", "s3://b")
    monkeypatch.setenv("GOODPUT_RECORDER_EXTRA", "1")
    goodput.GoodputRecorder("k", "l", True).record_job_start_time()
    assert events(Path("elsewhere/k.jsonl")) == ["attempt", "job_start_time"]


def calm(job: str = "j") -> float:
    """Write a job of a hundred seconds: 20 of preparation, seven steps of 10 s, 10 of an eval."""
    start = 1_768_249_800.0
    recorder = goodput.GoodputRecorder(job, "l", True)
    times: Any = lambda seconds: start + seconds  # noqa: E731
    recorder.record_job_start_time(times(0))
    recorder.record_training_preparation_start_time(times(0))
    recorder.record_training_preparation_end_time(times(20))
    for step in range(7):
        recorder.record_step_start_time(step, times(20 + 10 * step))
    recorder.record_custom_badput_event_start_time(times(90), "eval_step")
    recorder.record_custom_badput_event_end_time(times(100), "eval_step")
    recorder.record_job_end_time(times(100))
    return start


def test_calculator_results_have_the_original_form() -> None:
    start = calm()
    calculator: Any = goodput.GoodputCalculator("j", "l")
    percent, badput, last_step = calculator.get_job_goodput(include_badput_breakdown=True)
    assert (percent, last_step) == (pytest.approx(70), 6)
    assert badput[goodput.BadputType.TRAINING_PREP] == pytest.approx(20)
    assert badput[goodput.BadputType.CUSTOM_BADPUT_EVENTS] == {"EVAL_STEP": pytest.approx(10)}
    assert calculator.get_job_goodput() == (percent, {}, 6)
    details = calculator.get_job_goodput_details()
    assert details["goodput_time"] == {goodput.GoodputType.TOTAL: pytest.approx(70)}
    assert (details["total_elapsed_time"], details["ideal_step_time"]) == (100, pytest.approx(10))
    assert calculator.get_step_deviation(8.0) == dict.fromkeys(range(6), pytest.approx(2))
    begin, end = (datetime.datetime.fromtimestamp(start + at, datetime.UTC) for at in (20, 60))
    percent, badput, last_step, seconds, disruptions = calculator.get_job_goodput_interval(begin, end)
    assert (percent, seconds, disruptions) == (pytest.approx(100), 40, 0)
    interval = calculator.get_interval_metric_details(begin, end)
    assert interval["interval_size"] == 40
    left = calculator.get_job_goodput_with_exclusions([(begin, end)])
    assert (left[0], left[3]) == (pytest.approx(50), 40)


def test_calculator_agrees_where_the_rules_are_equal(tmp_path: Path) -> None:
    start = 1_768_249_800.0
    times: Any = lambda seconds: datetime.datetime.fromtimestamp(start + seconds, datetime.UTC)  # noqa: E731
    recorder = goodput.GoodputRecorder("j", "l", True)
    recorder.record_job_start_time(times(0))
    recorder.record_training_preparation_start_time(times(0))
    recorder.record_training_preparation_end_time(times(20))
    for step in range(7):
        recorder.record_step_start_time(step, times(20 + 10 * step))
    recorder.record_job_end_time(times(90))
    mine: Any = goodput.GoodputCalculator("j", "l")

    class Log:
        job_start_time = datetime.datetime.fromtimestamp(start, datetime.UTC)

        def read_cloud_logging_entries(self, *_: Any, **__: Any) -> tuple[list[dict[str, Any]], tuple[None, None]]:
            return lines(Path("goodput-logs/j.jsonl")), (None, None)

    theirs = ml_goodput_measurement.goodput.GoodputCalculator("j", "l", Log(), cache_dir=str(tmp_path))
    percent, badput, last_step = theirs.get_job_goodput(include_badput_breakdown=True)
    found = mine.get_job_goodput(include_badput_breakdown=True)
    assert (found[0], found[2]) == (pytest.approx(percent), last_step)
    named = {kind.name: amount for kind, amount in found[1].items()}
    assert {kind.name for kind in badput} <= set(named)
    for kind, amount in badput.items():
        assert named[kind.name] == (pytest.approx(amount) if not isinstance(amount, dict) else amount), kind
    details, known = mine.get_job_goodput_details(), theirs.get_job_goodput_details()
    assert set(details) == set(known)
    for key in ("total_elapsed_time", "max_productive_step", "disruption_count"):
        assert details[key] == pytest.approx(known[key]), key


class MemoryLog:
    """A logger that stores entries, as in tests of programs."""

    def __init__(self, entries: Sequence[dict[str, Any]]) -> None:
        self.entries = entries

    def read_cloud_logging_entries(self, *_: Any, **__: Any) -> tuple[Sequence[dict[str, Any]], None]:
        return self.entries, None


def running_job(seconds_ago: float) -> list[dict[str, Any]]:
    """Return a job that began the given time ago, with 60 steps of 10 s and no line since."""
    start = time.time() - seconds_ago
    steps = [{"job_name": "j", "step_count": n, "step_start_time": start + 10 * n} for n in range(60)]
    return [{"job_name": "j", "job_start_time": start}, *steps]


@pytest.mark.parametrize(("seconds_ago", "percent"), [(4200, 100 * 590 / 4200), (595, 100 * 590 / 595)])
def test_calculator_analyzes_as_of_now(seconds_ago: float, percent: float) -> None:
    calculator: Any = goodput.GoodputCalculator("j", "l", MemoryLog(running_job(seconds_ago)))
    assert calculator.get_job_goodput()[0] == pytest.approx(percent, abs=1.5)
    assert calculator.get_job_goodput_details()["total_elapsed_time"] == pytest.approx(seconds_ago, abs=5)
    begin, end = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=ago) for ago in (200, 0))
    assert calculator.get_job_goodput_interval(begin, end)[0] == pytest.approx(percent, abs=1.5)


def test_calculator_ends_an_ended_job_at_its_end() -> None:
    entries = running_job(4200)
    entries.append({"job_name": "j", "job_end_time": entries[-1]["step_start_time"] + 10})
    calculator: Any = goodput.GoodputCalculator("j", "l", MemoryLog(entries))
    assert calculator.get_job_goodput()[0] == pytest.approx(100)
    assert calculator.get_job_goodput_details()["total_elapsed_time"] == pytest.approx(600)


def test_calculator_counts_events_ahead_of_its_clock() -> None:
    calculator: Any = goodput.GoodputCalculator("j", "l", MemoryLog(running_job(300)))
    assert calculator.get_job_goodput()[2] == 58


def test_calculator_and_monitor_give_one_number(tmp_path: Path) -> None:
    log = tmp_path / "hung.jsonl"
    log.write_text("".join(json.dumps(entry) + "\n" for entry in running_job(4200)))
    command = ["monitor", str(log), "--publish", f"json:{tmp_path / 'out.jsonl'}", "--updates", "1", "-q"]
    subprocess.run([sys.executable, "-m", "goodput_cli", *command], check=True, cwd=ROOT)
    published = json.loads((tmp_path / "out.jsonl").read_text())
    calculator: Any = goodput.GoodputCalculator("j", "l", MemoryLog(running_job(4200)))
    assert calculator.get_job_goodput()[0] == pytest.approx(published["goodput"]["percent"], abs=0.1)


def test_calculator_of_an_empty_log_raises_value_error() -> None:
    with pytest.raises(ValueError, match="no events"):
        goodput.GoodputCalculator("j", "l", MemoryLog([])).get_job_goodput()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("ml_goodput_measurement", "checkpoint_badput_calculator"),
        ("ml_goodput_measurement", "gcp_metrics"),
        ("ml_goodput_measurement.src", "goodput_cache"),
        ("resiliency.goodput_measure.constant", "EVENT_TYPE_ORDER"),
    ],
)
def test_absent_names_raise_a_clear_error(module: str, name: str) -> None:
    with pytest.raises(ImportError, match=f"the drop-in has no {name}: "):
        exec(f"from goodput_cli.compat.drop_in.{module} import {name}")


def test_log_without_a_result_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="nobody"):
        goodput.GoodputCalculator("nobody", "l").get_job_goodput()


RESILIENCY = """
from goodput_cli.compat.drop_in.resiliency.goodput_measure import logging as goodput_logging
from goodput_cli.compat.drop_in.resiliency.goodput_measure import constant as goodput_event
goodput_logging.log_event(event_type=goodput_event.JOB_STARTED, node_rank=0)
goodput_logging.log_event(goodput_event.CHECKPOINT_SAVED, step=500)
print([name for name in sys.modules if name.startswith("google")])
"""


def test_resiliency_logger_writes_its_line(tmp_path: Path) -> None:
    out, _ = run(tmp_path, RESILIENCY, JOB_IDENTIFIER="fsdp", GOODPUT_USE_FILE_TRACKING="true")
    path = tmp_path / "fsdp-goodput.log"
    started, saved = lines(path)
    assert [*started] == ["timestamp", "job_name", "event_type", "node_rank"]
    assert (saved["event_type"], saved["step"], saved["job_name"]) == ("checkpoint_saved", 500, "fsdp")
    assert datetime.datetime.fromisoformat(saved["timestamp"]).utcoffset() == datetime.timedelta(0)
    assert out == "[]\n"


def test_original_file_is_continued_in_its_time_format(tmp_path: Path) -> None:
    path = tmp_path / "training-job-goodput.log"
    line = {"timestamp": "2025-09-27T04:51:35.775347", "job_name": "training-job", "event_type": "job_started"}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    run(tmp_path, RESILIENCY, GOODPUT_USE_FILE_TRACKING="1", TZ="Etc/GMT+8")
    times = [datetime.datetime.fromisoformat(line["timestamp"]) for line in lines(path)]
    assert [time.tzinfo for time in times] == [None] * 3
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    assert abs(now - times[-1] - datetime.timedelta(hours=8)) < datetime.timedelta(minutes=5)


def test_every_known_event_has_a_constant() -> None:
    from goodput_cli.record.lines import BY_RESILIENCY_NAME

    values = {value for name, value in vars(constant).items() if name.isupper()}
    assert values == set(BY_RESILIENCY_NAME)

"""Monitors that a training program starts: separate processes without an effect on the program."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import goodput_cli
from goodput_cli.compat.drop_in.ml_goodput_measurement import monitoring, monitoring_elastic
from goodput_cli.record import Recorder, monitors
from tests.record.record_programs import ROOT, events, run
from tests.support.commands import until

COMMAND = f"{sys.executable} -m goodput_cli"


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use this checkout's command, in any folder."""
    monkeypatch.setenv("GOODPUT_RECORDER_MONITOR", COMMAND)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def child(recorder: Recorder) -> Any:
    """Return the process of its monitor."""
    attempt = recorder.attempt()
    assert attempt is not None
    (monitor,) = attempt._monitors
    assert monitor._process is not None
    return monitor._process


def test_monitor_of_recorder_ends_with_the_job(command: None) -> None:
    recorder = Recorder("j", heartbeat=0)
    with recorder.run():
        assert recorder.start_monitor("json:m.json", windows=(3600, "1d"), interval=3600, options=["--settle", "1h"])
        process = child(recorder)
        for _ in recorder.steps(range(20)):
            pass
        until(lambda: Path("m.json").exists())
    assert process.returncode == 0
    last = json.loads(Path("m.json").read_bytes().splitlines()[-1])
    analysis = goodput_cli.analyze("goodput-logs/j.jsonl")
    assert (last["job"]["ending"], last["goodput"]["ns"]) == ("clean", analysis.goodput.ns)
    assert last["window"]["ns"] == analysis.window.ns
    assert Path("goodput-logs/j.jsonl.monitor.txt").exists()


def test_stopped_monitor_blocks_nothing(command: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitors.MonitorProcess.stop, "__defaults__", (0.3,))
    said: list[str] = []
    recorder = Recorder("j", heartbeat=0, warn=said.append)
    recorder.start_monitor("json:m.json")
    process = child(recorder)
    process.send_signal(signal.SIGSTOP)
    for _ in recorder.steps(range(2000)):
        pass
    recorder.close()
    assert process.returncode == -signal.SIGKILL
    assert said == ["the monitor did not stop in time; its last update may be missing"]
    assert events(Path("goodput-logs/j.jsonl")).count("step 1999") == 1


def test_monitor_start_failure_is_only_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said: list[str] = []
    monkeypatch.setenv("GOODPUT_RECORDER_MONITOR", "/nowhere/goodput")
    recorder = Recorder("j", heartbeat=0, warn=said.append)
    assert not recorder.start_monitor("json:m.json")
    monkeypatch.delenv("GOODPUT_RECORDER_MONITOR")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not recorder.start_monitor("json:m.json")
    recorder.close()
    assert not Recorder("k", "-", heartbeat=0, warn=said.append, rank=0, at_exit=False).start_monitor("json:m.json")
    assert not Recorder("k", rank=1, warn=said.append).start_monitor("json:m.json")
    assert [sentence.partition(":")[0] for sentence in said] == ["no monitor is started"] * 3
    assert "No such file" in said[0]
    assert "pip install 'goodput-cli @ URL'" in said[1]
    assert "it needs a local file" in said[2]


def test_command_next_to_this_python_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "goodput").write_text("")
    (tmp_path / "goodput").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert monitors.find_command() == [str(tmp_path / "goodput")]
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert monitors.find_command() == [str(tmp_path / "goodput")]
    monkeypatch.setenv("GOODPUT_RECORDER_MONITOR", "nice -n 5 'my goodput'")
    assert monitors.find_command() == ["nice", "-n", "5", "my goodput"]


MAXTEXT = """
import threading
from goodput_cli.compat.drop_in.ml_goodput_measurement import goodput, monitoring
recorder = goodput.GoodputRecorder("llm", "goodput_llm", True)
monitor = monitoring.GoodputMonitor(
    job_name="llm", logger_name="goodput_llm", tensorboard_dir="tb", upload_interval=1, monitoring_enabled=True,
    pathway_enabled=False, include_badput_breakdown=True, include_step_deviation=True,
    configured_ideal_step_time=0.01,
    gcp_options=monitoring.GCPOptions(enable_gcp_goodput_metrics=False, enable_gcp_step_deviation_metrics=False),
)
recorder.record_job_start_time()
threads = threading.active_count()
monitor.start_goodput_uploader()
monitor.start_step_deviation_uploader()
assert threading.active_count() <= threads  # the one that syncs the start may have ended
for step in range(20):
    recorder.record_step_start_time(step)
    time.sleep(0.01)
recorder.record_job_end_time()
recorder.flush()
monitor.stop_goodput_uploader()
monitor.stop_step_deviation_uploader()
"""


def test_maxtext_program_appears_in_tensorboard(tmp_path: Path) -> None:
    _, said = run(tmp_path, MAXTEXT, GOODPUT_RECORDER_MONITOR=COMMAND, PYTHONPATH=str(ROOT))
    assert said == "goodput-record: no Google Cloud project found: the log is written to a file only\n"
    accumulator = EventAccumulator(str(tmp_path / "tb" / "goodput"), size_guidance={"scalars": 0})
    accumulator.Reload()
    analysis = goodput_cli.analyze(str(tmp_path / "goodput-logs" / "llm.jsonl"))
    last = accumulator.Scalars("goodput/goodput")[-1]
    assert (last.step, last.value) == (19, pytest.approx(analysis.goodput_percent))
    assert [event.step for event in accumulator.Scalars("step_deviation")] == [*range(19)]
    assert "badput/program_startup" in accumulator.Tags()["scalars"]


class Started:
    """Replacement of the process that stores its arguments."""

    all: ClassVar[list[Started]] = []

    def __init__(self, source: str, arguments: list[str], _say: Any, _beside: str) -> None:
        self.source = source
        self.arguments = " ".join(arguments)
        self.runs = True
        self.ended: list[Any] = []
        Started.all.append(self)

    def stop(self, seconds: float | None = None, *, kill: bool = False) -> None:
        self.runs = False
        self.ended.append(("killed" if kill else "ended", seconds))

    def wait(self, seconds: float | None) -> None:
        self.ended.append(("waited", seconds))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Started]:
    """Return every process that is started."""
    Started.all = []
    monkeypatch.setattr(monitoring, "MonitorProcess", Started)
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    return Started.all


def test_flags_of_the_original_become_arguments(started: list[Started]) -> None:
    options = monitoring.GCPOptions(location="z", acc_type="TPU-v5p", cluster_name="c")
    monitor = monitoring_elastic.ElasticGoodputMonitor(
        "flags", "goodput_f", "tb", 30, True, True, True, True, 2.5, 10, options, final_flush_timeout_seconds=7
    )
    monitor.start_goodput_uploader()
    (first,) = started
    assert first.source == "cloud-logging://p/goodput_f"  # this process records nothing
    assert "tensorboard:tb?totals=yes&step_deviation=no&badput=yes" in first.arguments
    assert "gcm:p?totals=yes&windows=no&step_deviation=no&slices=yes" in first.arguments
    for part in ("--interval 30.0", "--ideal-step-time 2.5", "--gcm-location z", "--gcm-cluster c", "--whole-job"):
        assert part in first.arguments
    monitor.start_step_deviation_uploader()
    monitor.start_rolling_window_goodput_uploader([60, 300])
    last = started[-1]
    assert "--window 60 --window 300" in last.arguments
    assert "windows=yes&step_deviation=yes" in last.arguments
    monitor.stop_goodput_uploader()
    monitor.stop_step_deviation_uploader()
    assert last.ended == []
    monitor.stop_rolling_window_goodput_uploader()
    assert last.ended == [("ended", 7)]
    assert options == monitoring.GCPOptions(location="z", acc_type="TPU-v5p", cluster_name="c")


def test_two_axlearn_monitors_send_no_series_twice(started: list[Started]) -> None:
    whole = monitoring.GoodputMonitor("ax", "goodput_logger_ax", "tb", 30, True)
    rolling = monitoring.GoodputMonitor("ax", "goodput_logger_ax", "tb/rolling_window_1", 30, True)
    whole.start_goodput_uploader()
    rolling.start_rolling_window_goodput_uploader([3600])
    assert "gcm:p?totals=yes&windows=no&" in started[0].arguments
    assert "gcm:p?totals=no&windows=yes&" in started[1].arguments
    rolling.stop_rolling_window_goodput_uploader(skip_final_flush=True)
    assert started[1].ended == [("killed", 10)]
    whole.stop_goodput_uploader()


def test_disabled_monitor_starts_nothing(started: list[Started], capsys: pytest.CaptureFixture[str]) -> None:
    off = monitoring.GoodputMonitor("j", "l", "tb", 30)
    off.start_goodput_uploader()
    off.stop_goodput_uploader()
    assert started == []
    monitor = monitoring.GoodputMonitor("j", "l", "gs://b/tb", 30, True)
    monitor.stop_goodput_uploader()
    assert "--updates 1" in started[0].arguments
    assert started[0].ended == [("waited", 10)]
    assert "a monitor cannot write event files to gs://" in capsys.readouterr().err
    monitor.start_goodput_uploader()
    monitor.start_goodput_uploader()
    assert "already sends goodput" in capsys.readouterr().err
    assert len(started) == 2


def test_import_and_start_create_no_thread_or_fork(tmp_path: Path) -> None:
    program = """
    import threading
    from goodput_cli.record import Recorder
    os.register_at_fork(before=lambda: print("a fork"))
    recorder = Recorder("j", heartbeat=0, fsync="never")
    recorder.start_monitor("json:m.json")
    print(threading.active_count(), "subprocess" in sys.modules, "numpy" in sys.modules)
    """
    out, _ = run(tmp_path, program, GOODPUT_RECORDER_MONITOR="sleep 0")
    assert out == "1 True False\n"
    assert events(tmp_path / "goodput-logs" / "j.jsonl") == ["attempt", "job_start_time", "terminated"]

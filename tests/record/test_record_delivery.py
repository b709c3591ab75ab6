"""Sinks over the network: delivery while the server fails and when the program ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from goodput_cli.record import Recorder
from goodput_cli.record.lines import STEP_LINE, VITAL
from goodput_cli.record.queues import HOPELESS_SECONDS, HURRY_SECONDS, RETRY_SECONDS
from goodput_cli.record.writer import Writer
from tests.record.record_programs import events, lines, pythons, run, word
from tests.record.record_server import Server

CLOUD = "cloud-logging://my-project/my/log"


@pytest.fixture
def logging(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("GOODPUT_LOGGING_WRITE_ENDPOINT", server.url)
    return server


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits between two attempts: a failure of minutes passes in seconds."""
    first, longest = RETRY_SECONDS
    monkeypatch.setattr("goodput_cli.record.queues.RETRY_SECONDS", (first / 100, longest / 100))
    monkeypatch.setattr("goodput_cli.record.queues.HOPELESS_SECONDS", HOPELESS_SECONDS / 100)
    monkeypatch.setattr("goodput_cli.record.queues.HURRY_SECONDS", HURRY_SECONDS / 100)


def test_entries_equal_the_original_plus_insert_id(logging: Server) -> None:
    recorder = Recorder("j", CLOUD, heartbeat=0, run_id="abc")
    with recorder.run():
        recorder.begin_step(7)
    received = logging.received()
    (body,) = received["bodies"]
    assert body["logName"] == "projects/my-project/logs/my%2Flog"
    assert body["resource"] == {"type": "global", "labels": {"project_id": "my-project"}}
    assert body["partialSuccess"] is True
    assert [word(entry["jsonPayload"]) for entry in received["entries"]] == [
        "attempt",
        "job_start_time",
        "step 7",
        "job_end_time",
    ]
    step = received["entries"][2]
    assert [entry["insertId"] for entry in received["entries"]] == [f"abc-0-{number:09d}" for number in range(1, 5)]
    assert (step["severity"], set(step)) == ("INFO", {"severity", "timestamp", "insertId", "jsonPayload"})
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(step["jsonPayload"]["step_start_time"]))
    assert step["timestamp"].startswith(seconds)
    assert step["timestamp"].endswith("000Z")


def test_rejected_time_is_replaced_only_in_the_entry(logging: Server) -> None:
    with Recorder("j", CLOUD, heartbeat=0).run(at=1_000_000_000.5):
        pass
    entry = logging.received()["entries"][1]
    assert entry["jsonPayload"]["job_start_time"] == 1_000_000_000.5
    assert entry["timestamp"][:4] >= "2025"


def test_lost_responses_duplicate_no_entry(logging: Server, no_patience: None) -> None:
    logging.fault("lose", times=3)
    writer = Writer("j", CLOUD, warn=lambda _: None, latency=0.05, grace=100)
    for step in range(500):
        writer.write(writer.lines.step(step, 1), STEP_LINE, time.time_ns() // 1000)
    writer.close()
    assert [line["step_count"] for line in logging.payloads()] == [*range(500)]


def test_server_outage_of_ten_minutes_loses_nothing(logging: Server, no_patience: None) -> None:
    """6000 steps at 10 per second with a fast clock; the queue is smaller than that."""
    logging.fault("status", 503)
    writer = Writer("j", CLOUD, warn=lambda _: None, queue_lines=1000, grace=100)
    for step in range(6000):
        writer.write(writer.lines.step(step, step), STEP_LINE, step)
    writer.write(writer.lines.fact("job_end_time", 6000), VITAL, 6000)
    time.sleep(0.5)
    logging.fault()
    assert writer.flush()
    writer.close()
    found = logging.payloads()
    steps = [line["step_count"] for line in found if "step_count" in line]
    dropped = [line for line in found if line.get("goodput_event") == "dropped"]
    assert len(steps) == len(set(steps))
    assert len(steps) + sum(line["steps"] for line in dropped) == 6000
    assert len(steps) >= 999
    assert "job_end_time" in [word(line) for line in found]


@pytest.mark.parametrize("status", [400, 403, 404, 401, 429, 500])
def test_every_refusal_is_retried_and_reported_once(logging: Server, no_patience: None, status: int) -> None:
    said: list[str] = []
    logging.fault("status", status, times=2)
    writer = Writer("j", CLOUD, warn=said.append, latency=0.01, grace=100)
    writer.write(writer.lines.step(1, 1), STEP_LINE, time.time_ns() // 1000)
    assert writer.flush()
    writer.close()
    assert [line["step_count"] for line in logging.payloads()] == [1]
    assert len(said) == 1
    assert str(status) in said[0]


def test_individually_refused_entries_are_counted(logging: Server) -> None:
    logging.fault("refuse", refuse='"step_count": 3,')
    writer = Writer("j", CLOUD, warn=lambda _: None, grace=100)
    for step in range(5):
        writer.write(writer.lines.step(step, 1), STEP_LINE, 7)
    writer.close()
    *found, dropped = logging.payloads()
    assert [line["step_count"] for line in found] == [0, 1, 2, 4]
    assert (dropped["lines"], dropped["reason"]) == (1, "refused")


HANGS = """
import time
from goodput_cli.record import Recorder
begin = time.monotonic()
recorder = Recorder("j", ["log.jsonl", "cloud-logging://p/l"], heartbeat=0, grace=0.3)
with recorder.run():
    for step in recorder.steps(range(1000)):
        pass
print(time.monotonic() - begin)
sys.exit(3)
"""


def test_hanging_server_does_not_block_the_program(tmp_path: Path, server: Server) -> None:
    server.fault("hang")
    out, said = run(tmp_path, HANGS, code=3, GOODPUT_LOGGING_WRITE_ENDPOINT=server.url)
    assert float(out) < 60  # ten times the limit on a busy machine; the server would take 600 s
    found = lines(tmp_path / "log.jsonl")
    assert [word(line) for line in found[-2:]] == ["job_end_time", "dropped"]
    assert [found[-1][key] for key in ("lines", "steps", "sink", "reason")] == [1003, 1000, "cloud-logging", "exit"]
    assert "Traceback" not in said


ENDS = """
from goodput_cli.compat.drop_in.ml_goodput_measurement import goodput
recorder = goodput.GoodputRecorder("j", "goodput_j", True, background_grace_period_s=100)
recorder.record_job_start_time()
for step in range(50):
    recorder.record_step_start_time(step)
recorder.record_job_end_time()
"""
EXPECTED = ["job_start_time", *(f"step {step}" for step in range(50)), "job_end_time"]


@pytest.mark.parametrize("python", pythons())
def test_lines_before_a_normal_exit_are_delivered(tmp_path: Path, server: Server, python: str) -> None:
    out, said = run(tmp_path, ENDS, python=python, GOODPUT_LOGGING_WRITE_ENDPOINT=server.url, GOOGLE_CLOUD_PROJECT="p")
    assert (out, said) == ("", "")
    assert [word(line) for line in server.payloads()] == EXPECTED
    assert events(tmp_path / "goodput-logs" / "j.jsonl") == EXPECTED


@pytest.mark.parametrize("python", pythons())
def test_lines_are_delivered_over_tls(
    tmp_path: Path, tls_server: Server, certificate: tuple[Path, Path], python: str
) -> None:
    out, said = run(
        tmp_path,
        ENDS,
        python=python,
        GOODPUT_LOGGING_WRITE_ENDPOINT=tls_server.url,
        GOOGLE_CLOUD_PROJECT="p",
        SSL_CERT_FILE=str(certificate[0]),
    )
    assert (out, said) == ("", "")
    assert [word(line) for line in tls_server.payloads()] == EXPECTED


AT_THE_VERY_END = """
import atexit
atexit.register(lambda: recorder.begin_step(9))
from goodput_cli.record import Recorder
recorder = Recorder("j", "cloud-logging://p/l", heartbeat=0, grace=100)
atexit.register(lambda: recorder.begin_step(1))
"""


@pytest.mark.parametrize("python", pythons())
def test_first_line_at_exit_is_delivered_without_a_thread(tmp_path: Path, server: Server, python: str) -> None:
    """While the interpreter is ending, no thread can be started any more."""
    run(tmp_path, AT_THE_VERY_END, python=python, GOODPUT_LOGGING_WRITE_ENDPOINT=server.url)
    assert [word(line) for line in server.payloads()] == ["attempt", "job_start_time", "step 1", "terminated"]


def test_missing_login_only_prints_a_warning(tmp_path: Path) -> None:
    program = """
    from goodput_cli.record import Recorder
    with Recorder("j", ["log.jsonl", "cloud-logging://p/l"], heartbeat=0, grace=100).run():
        pass
    """
    _, said = run(tmp_path, program, GCE_METADATA_HOST="127.0.0.1:9", NO_GCE_CHECK="true")
    assert "no Google Cloud credentials" in said
    assert "Traceback" not in said
    assert events(tmp_path / "log.jsonl") == ["attempt", "job_start_time", "job_end_time", "dropped"]


def test_objects_are_written_once_each(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    server.fault("lose", times=1)
    recorder = Recorder("a/b", "gs://bucket/logs/x", heartbeat=0, run_id="r1", warn=lambda _: None, grace=100)
    with recorder.run():
        recorder.begin_step(0)
        assert recorder.flush()
        recorder.begin_step(1)
    objects = server.received()["objects"]
    assert [*objects] == [f"bucket/logs/x/a%2Fb/r1.r0.{number:06d}.jsonl" for number in (1, 2)]
    assert [text.count("\n") for text in objects.values()] == [3, 2]


def test_attempt_with_a_used_run_id_overwrites_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    for _ in range(2):
        with Recorder("j", "gs://bucket", heartbeat=0, run_id="r1").run():
            pass
    assert [*server.received()["objects"]] == ["bucket/j/r1.r0.000001.jsonl", "bucket/j/r1.r0.000002.jsonl"]


def test_other_emulator_accepts_the_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import sys\nfrom gcp_storage_emulator.server import create_server\n"
    text += "s = create_server('127.0.0.1', 0, in_memory=True, default_bucket='bucket')\ns.start()\n"
    text += "print(s._api._httpd.socket.getsockname()[1], flush=True)\nsys.stdin.read()\ns.stop()\n"
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        with Recorder("j", ["log.jsonl", "gs://bucket/x"], heartbeat=0, run_id="r1").run():
            pass
        import urllib.request

        url = f"http://127.0.0.1:{port}/storage/v1/b/bucket/o/x%2Fj%2Fr1.r0.000001.jsonl?alt=media"
        with urllib.request.urlopen(url, timeout=120) as answer:
            assert answer.read() == Path("log.jsonl").read_bytes()
    finally:
        process.stdin.close()
        process.wait(120)
        process.stdout.close()


def test_memory_is_bounded_while_a_server_is_down(tmp_path: Path, server: Server) -> None:
    program = """
    from goodput_cli.record import Recorder
    recorder = Recorder("j", "cloud-logging://p/l", heartbeat=0, grace=0.1)
    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    recorder.begin_step(0)
    recorder.flush(0.2)
    before = resident()
    for step in range(60_000):
        recorder.begin_step(step)
    print(resident() - before)
    """
    server.fault("status", 503)
    out, _ = run(tmp_path, program, GOODPUT_LOGGING_WRITE_ENDPOINT=server.url)
    assert int(out) < 12 << 20
    assert os.listdir(tmp_path) == ["program.py"]

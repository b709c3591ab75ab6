"""Twelve small jobs, solved by hand: why each attempt died, and where (docs/causes.md)."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from goodput_cli.errors import NotEnoughData

EXAMPLES = Path(__file__).parent / "examples"
EXPECTED: dict[str, Any] = json.loads((EXAMPLES / "expected.json").read_text())
JOBS = [name for name in EXPECTED if EXPECTED[name]["disruptions"]]


def causes(folder: Path, join: bool = False) -> list[dict[str, Any]]:
    """Return cause and location of each disruption in the format of expected.json."""
    found = []
    for one in goodput_cli.analyze(str(folder), job_name="job", join=join).disruptions:
        row: dict[str, Any] = {
            "cause": one.cause,
            "certainty": one.cause_certainty,
            "rank": one.first_rank,
            "host": one.first_host,
            "device": one.first_device,
            "also": list(one.also),
        }
        if one.silent_ranks:
            row["silent_ranks"] = list(one.silent_ranks)
        found.append(row)
    return found


def change_example(name: str, to: Path, change: Callable[[bytes], bytes]) -> Path:
    """Copy an example and change its files."""
    for file in sorted((EXAMPLES / name).iterdir()):
        to.mkdir(exist_ok=True)
        (to / file.name).write_bytes(change(file.read_bytes()))
    return to


@pytest.mark.parametrize("name", JOBS)
def test_each_disruption_has_its_cause_and_location(name: str) -> None:
    assert causes(EXAMPLES / name) == EXPECTED[name]["disruptions"]


@pytest.mark.parametrize("name", JOBS)
def test_windows_line_endings_change_nothing(name: str, tmp_path: Path) -> None:
    folder = change_example(name, tmp_path / "crlf", lambda data: data.replace(b"\n", b"\r\n"))
    assert causes(folder) == EXPECTED[name]["disruptions"]


@pytest.mark.parametrize("name", JOBS)
def test_packed_files_change_nothing(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "packed"
    folder.mkdir()
    for file in (EXAMPLES / name).iterdir():
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert causes(folder) == EXPECTED[name]["disruptions"]


@pytest.mark.parametrize("name", JOBS)
def test_duplicate_files_count_once(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "twice"
    for copy in ("a", "b"):
        shutil.copytree(EXAMPLES / name, folder / copy)
    assert causes(folder, join=True) == EXPECTED[name]["disruptions"]


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("prefix", [b"0: ", b"[pod/llm-0/main] "])
def test_launcher_prefixes_change_nothing(name: str, prefix: bytes, tmp_path: Path) -> None:
    def prefixed(data: bytes) -> bytes:
        if data.startswith(b"{"):
            return data
        return b"".join(prefix + line for line in data.splitlines(keepends=True))

    assert causes(change_example(name, tmp_path / "prefixed", prefixed)) == EXPECTED[name]["disruptions"]


def test_kernel_log_alone_is_not_a_job() -> None:
    with pytest.raises(NotEnoughData):
        goodput_cli.analyze(str(EXAMPLES / "09-kernel-log-alone"))


def test_secrets_and_escapes_are_hidden() -> None:
    (row,) = goodput_cli.analyze(str(EXAMPLES / "12-hostile-words"), job_name="job").disruptions
    assert row.cause_text == "ValueError: <script>alert(1)</script> token=*** https://***@host/x =cmd|' /C calc'!A0"


def test_agent_names_one_of_eight_ranks_with_the_same_error() -> None:
    (row,) = goodput_cli.analyze("sample_logs/trainers/nemo-ft_launcher.log").disruptions
    assert (row.cause, row.cause_certainty, row.first_rank, row.first_host) == (
        "python_error",
        "confirmed",
        2,
        "4809917ea058",
    )
    assert row.evidence.cause == "sample_logs/trainers/nemo-ft_launcher.log:215"


def test_check_lists_observations_of_a_file_without_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    log = str(EXAMPLES / "09-kernel-log-alone" / "kern.log")
    assert run(["check", log, "--format", "json"]) == NotEnoughData.exit_code
    out, err = capsys.readouterr()
    (one,) = json.loads(out)["observations"]
    assert (one["code"], one["role"], one["host"], one["device"]) == ("gpu_fault", "root", "node-07", "0000:05:00")
    assert one["where"] == f"{log}:1"
    assert one["text"].startswith("NVRM: Xid (PCI:0000:05:00): 79")
    assert "is a host log" in err
    assert "tip: pass the job's log as well" in err


def test_disruptions_add_up_by_cause(capsys: pytest.CaptureFixture[str]) -> None:
    log = str(EXAMPLES / "07-next-start-fails")
    assert run(["disruptions", log, "--format", "json", "-q"]) == 0
    answer = json.loads(capsys.readouterr().out)
    by_cause = {row["code"]: row for row in answer["by_cause"]}
    assert list(by_cause) == ["environment", "unknown"]
    assert sum(row["count"] for row in by_cause.values()) == 2
    assert sum(row["ns"] for row in by_cause.values()) == round(
        1e9 * sum(r["lost_seconds"] for r in answer["disruptions"])
    )


@pytest.mark.parametrize("by", ["cause", "group", "host"])
def test_single_table_replaces_a_list(by: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["disruptions", str(EXAMPLES / "07-next-start-fails"), "--by", by, "-q"]) == 0
    out = capsys.readouterr().out
    assert f"by {by}: 2, 1 with a known cause" in out
    assert "unknown" in out
    assert "total" in out or by == "host"


@pytest.mark.parametrize(
    ("name", "gate", "code"),
    [
        ("02-killed-by-the-kernel", "cause:host_oom>0", 3),
        ("02-killed-by-the-kernel", "cause:oom>0", 3),
        ("02-killed-by-the-kernel", "cause:memory>1m", 3),
        ("02-killed-by-the-kernel", "cause:memory>1h", 0),
        ("02-killed-by-the-kernel", "cause:hardware>0", 0),
        ("06-caught", "cause:device_oom>0", 0),
    ],
)
def test_gates_accept_causes(name: str, gate: str, code: int) -> None:
    assert run(["analyze", str(EXAMPLES / name), "-q", "--fail-if", gate]) == code


def test_gate_on_causes_without_failure_lines_is_unjudged() -> None:
    assert run(["analyze", "sample_logs/primer-50-percent.jsonl", "-q", "--fail-if", "cause:oom>0"]) == 4


def test_last_attempt_has_its_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (EXAMPLES / "12-hostile-words" / "train.log").read_text()
    log = tmp_path / "train.log"
    log.write_text(text[: text.index("time to initialize", 10)])
    assert run(["analyze", str(log), "--format", "json", "-q"]) == 0
    last_end = json.loads(capsys.readouterr().out)["last_end"]
    assert (last_end["cause"], last_end["rank"], last_end["where"]) == ("python_error", 0, f"{log}:23")


def entries(name: str, to: Path) -> Path:
    """Write an example as Cloud Logging keeps it: one entry per line, with the timestamp of the last line that has
    one."""
    dated = re.compile(r"(\d{4}-\d\d-\d\d)[ T_](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
    glog = re.compile(r"[EWIF](\d\d)(\d\d) (\d\d:\d\d:\d\d)\.(\d{6})")
    to.mkdir()
    for file in sorted((EXAMPLES / name).iterdir()):
        text, taken, lines = file.read_text(), "2026-03-01T10:00:00.000000Z", []
        if text.startswith("{"):
            (to / file.name).write_text(text)
            continue
        for number, line in enumerate(text.splitlines()):
            if short := glog.search(line):
                taken = f"2026-{short[1]}-{short[2]}T{short[3]}.{short[4]}Z"
            elif found := dated.search(line):
                taken = f"{found[1]}T{found[2]}.{(found[3] or '').ljust(6, '0')}Z"
            resource = {"type": "k8s_container", "labels": {"pod_name": f"pod-{file.stem}"}}
            entry = {"insertId": f"{file.stem}-{number}", "logName": "projects/p/logs/stdout", "resource": resource}
            lines.append(json.dumps({**entry, "timestamp": taken, "textPayload": line}))
        (to / f"{file.name}.jsonl").write_text("\n".join(lines) + "\n")
    return to


@pytest.mark.parametrize("name", [name for name in JOBS if name != "05-time-limit"])
def test_collector_entries_give_the_same_causes(name: str, tmp_path: Path) -> None:
    """The collector's timestamp dates the exception of example 01, whose own line has none. The cause is then
    confirmed."""
    expected = [dict(one) for one in EXPECTED[name]["disruptions"]]
    if name.startswith("01"):
        expected[0]["certainty"] = "confirmed"
    assert causes(entries(name, tmp_path / "entries")) == expected

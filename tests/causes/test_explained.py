"""`goodput check --explain FILE:LINE` names the row of evidence that reads a line (docs/causes.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.api.check import explain_line
from goodput_cli.cli.main import run

EXAMPLES = Path(__file__).parent / "examples"
TEXTS = sorted(file for file in EXAMPLES.glob("*/*.log"))
OOM = EXAMPLES / "01-oom-then-timeouts" / "train.log"


def line_of(log: Path, words: str) -> int:
    return next(number for number, line in enumerate(log.read_text("utf-8").splitlines(), 1) if words in line)


def explained(log: Path, number: int) -> list[str]:
    return explain_line(f"{log}:{number}").splitlines()


@pytest.mark.parametrize("log", TEXTS, ids=lambda log: f"{log.parent.name[:2]}-{log.stem}")
def test_explain_agrees_with_check_for_each_line(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["check", str(log), "--format", "json", "-q"])
    listed: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["observations"]
    for one in listed:
        said = explained(log, int(one["where"].rpartition(":")[2]))
        (row,) = (sentence for sentence in said if sentence.startswith("evidence: "))
        assert f"code {one['code']}, role {one['role']}, " in row
        if one["rank"] is not None:
            assert f"rank: {one['rank']}" in said
        if one["device"]:
            assert f"device: {one['device']}" in said


def test_explain_shows_row_code_role_and_fields() -> None:
    said = explained(OOM, line_of(OOM, "CUDA out of memory"))
    assert "evidence: row 'device out of memory', code device_oom, role root, printed by: process" in said
    assert said[-2:] == ["rank: 3", "device: 3"]


def test_repeated_line_has_its_own_rank_and_wait() -> None:
    said = explained(OOM, line_of(OOM, "[Rank 2] Watchdog"))
    assert "evidence: row 'watchdog', code collective_timeout, role echo, printed by: process" in said
    assert said[-2:] == ["rank: 2", "waited: 600.06 s"]


def test_traceback_line_is_explained_with_its_traceback() -> None:
    (said,) = (one for one in explained(OOM, line_of(OOM, "loss.backward()")) if one.startswith("evidence"))
    assert said == "evidence: no separate row; it is part of a block, such as a traceback, that is read as a whole"


def test_line_of_a_collector_is_explained(tmp_path: Path) -> None:
    log = tmp_path / "docker.log"
    entry = {"log": "[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered\n"}
    log.write_text(json.dumps(entry | {"stream": "stderr", "time": "2026-03-01T10:00:00Z"}) + "\n", encoding="utf-8")
    said = explained(log, 1)
    assert "evidence: row 'device error', code device_error, role root, printed by: process" in said
    assert "rank: 1" in said


def test_unrelated_line_has_no_row_and_step_has_no_sentence(tmp_path: Path) -> None:
    log = tmp_path / "words.log"
    log.write_text("hello\nif you see CUDA out of memory, use a smaller batch\n", encoding="utf-8")
    assert explained(log, 1)[-1] == explained(log, 2)[-1] == "evidence: no row"
    assert not any("evidence" in one for one in explained(OOM, line_of(OOM, "iteration      110")))


@pytest.mark.parametrize(
    ("log", "words", "used"),
    [
        (OOM, "CUDA out of memory", "disruption 1, as its cause, device_oom (likely)"),
        (OOM, "[Rank 2] Watchdog", "disruption 1, as a report that another process is gone; its cause is device_oom"),
        (
            EXAMPLES / "06-caught" / "train.log",
            "CUDA out of memory",
            "nothing: it is not after the last progress",
        ),
        (EXAMPLES / "05-time-limit" / "slurm-812.out", "DUE TO TIME LIMIT", "as its cause, time_limit (confirmed)"),
    ],
    ids=["cause", "echo", "caught", "scheduler"],
)
def test_explain_shows_the_use_of_a_line(log: Path, words: str, used: str) -> None:
    (said,) = (one for one in explained(log, line_of(log, words)) if one.startswith("used for: "))
    assert used in said

"""`goodput timeline --around step:N`: the command that an insight about a hang suggests shows the hang."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from tests.support.logs import Recorder

Output = pytest.CaptureFixture[str]


def test_around_a_hung_step_shows_its_hang(tmp_path: Path, capsys: Output) -> None:
    """Step 4 is trained twice and takes 600 s the second time. It is shown alone with its time, although it was
    lost."""
    log = Recorder().start(0).steps(0, 6, 10, 10).start(100).steps(3, 4, 110, 10).steps(5, 9, 720, 10)
    log.start(900).steps(3, 40, 910, 10).end(1290)
    path = str(log.write(tmp_path / "run.jsonl"))
    assert run(["timeline", path, "--around", "step:4", "--margin", "15s", "-q", "--format", "json"]) == 0
    window = json.loads(capsys.readouterr().out)["window"]
    assert (window["start"], window["end"]) == ("2026-01-01T00:01:45Z", "2026-01-01T00:12:15Z")
    assert run(["timeline", path, "--around", "step:4", "--margin", "15s", "--events", "-q"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if " step" in line and "00:" in line]
    assert [row[1:] for row in rows] == [
        ["step", "3", "10"],
        ["10", "min", "00", "s", "step", "(hung)", "4", "11"],
        ["step", "(2", "lines)", "5-6", "12-13"],
    ]


def test_step_with_only_an_end_line_hung_before_it(tmp_path: Path, capsys: Output) -> None:
    """The tenth iteration takes 900 s. Insight, steps and timeline use its own number and line."""
    log, clock = tmp_path / "train.out", datetime(2026, 3, 3, 22, tzinfo=UTC)
    lines = []
    for step in range(1, 31):
        took = 900 if step == 10 else 9
        clock += timedelta(seconds=took)
        lines.append(
            f" [{clock:%Y-%m-%d %H:%M:%S}] iteration {step:8d}/  500 | consumed samples: {step * 8:12d} | elapsed time "
            f"per iteration (ms): {took * 1000:.1f} | learning rate: 1.0E-04 | global batch size:    8 | lm loss: 2.3 |"
        )
    log.write_text("\n".join(lines))
    analysis = goodput_cli.analyze(log)
    hang = next(one for one in analysis.insights if one.code == "hang")
    assert hang.text == "step 10 hung for 15 min 00 s (usually 9.00 s)"
    assert hang.evidence == (f"{log}:10",)
    assert run(["timeline", str(log), *hang.command[1:], "-q"]) == 0
    assert "15 min 00 s    step ends (hung)" in capsys.readouterr().out

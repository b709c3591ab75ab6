"""Labels, allocations and thresholds of `goodput fleet`, and what is wrong usage of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from tests.support.fleets import HOUR, fleet, put, text_of, training

Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("folder")


def test_thresholds_of_groups(logs: Path, capsys: Output) -> None:
    Path("labels.csv").write_text(text_of("job,team,accelerators", "job-000?,search,8", "job-*,vision,16"))
    judge = ["fleet", str(logs), "--labels", "labels.csv", "--workers", "1", "-q"]
    assert run([*judge, "--fail-if", "any(team):goodput<99"]) == 3
    said = capsys.readouterr().err
    assert "[search]: FAILED" in said
    assert "[(none)]: inconclusive" in said
    assert run([*judge, "--fail-if", "goodput<1", "--fail-if", "analysed<50"]) == 0
    assert run([*judge, "--fail-if", "lost_hours>0.001"]) == 3
    assert run([*judge, "--strict"]) == 5


def test_progress_at_risk_of_any_run_fails_a_gate(tmp_path: Path, capsys: Output) -> None:
    """One job saved after step 58 of 60, and the other one 500 s before its end."""
    for day, (job, save) in enumerate((("one", 58), ("two", 10)), 1):
        lines = [
            f" [2026-03-0{day} 12:{step // 6:02d}:{step % 6 * 10:02d}.000000] iteration {step:8d}/    1000 | consumed "
            "samples: 8 | elapsed time per iteration (ms): 10000.0 | global batch size:     8 | lm loss: 1.8E+00 |"
            for step in range(1, 61)
        ]
        lines.insert(save, f"  successfully saved checkpoint from iteration {save:7d} to /ckpt [ t 1/1, p 1/1 ]")
        (tmp_path / job).mkdir()
        (tmp_path / job / f"{job}.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    arguments = ["fleet", str(tmp_path / "one"), str(tmp_path / "two"), "--workers", "1", "-q"]
    assert run([*arguments, "--fail-if", "at_risk>20m"]) == 0
    assert run([*arguments, "--fail-if", "at_risk>5m"]) == 3
    assert "FAILED (8 min 20 s, limit 5 min)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "-2h"], "is different for each job"),
        (["--to", "attempt:3"], "is different for each job"),
        (["--from", "2026-01-01", "--last", "7d"], "cannot be combined"),
        (["--by", "moon"], "unknown dimension"),
        (["--sizes", "8,4"], "use increasing numbers"),
        (["--failures", "tired"], "unknown end"),
        (["--labels", "bad.csv"], "bad.csv:3: accelerators: '0' is not a number of at least 1"),
        (["--capacity", "overlap.csv"], "overlap.csv:3: overlaps"),
        (["--labels", "nothing.csv"], "no such file"),
        (["--labels", "deep.json"], "deep.json: cannot be read as a table: maximum recursion depth exceeded"),
        (["--labels", "/dev/zero"], "/dev/zero: cannot be read as a table: larger than 1 MiB"),
        (["--fail-if", "moon<3"], "unknown name 'moon'"),
        (["--scheduler", "tcp://127.0.0.1:1", "--store", "s"], "--insecure-scheduler"),
    ],
)
def test_wrong_usage_is_reported_before_reading(
    arguments: list[str], words: str, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(Path("a.jsonl"), training("a", 1, 0.5))
    Path("bad.csv").write_text(text_of("job,accelerators", "a,8", "b,0"))
    Path("deep.json").write_text("[" * 200_000)
    monkeypatch.setattr("goodput_cli.fleet.labels._MOST_BYTES", 1 << 20)
    Path("overlap.csv").write_text(text_of("from,to,count", "2026-01-01,2026-01-03,8", "2026-01-02,2026-01-04,8"))
    assert run(["fleet", "a.jsonl", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_sacct_rows_are_allocations() -> None:
    """A requeued job: two rows with the same name; the first waited an hour. A job without a log is counted."""
    put(Path("a.jsonl"), training("a", 10, 6))
    rows = (
        "JobIDRaw|JobName|Account|User|Partition|Cluster|State|Submit|Eligible|Start|End|AllocTRES|NNodes",
        "7|a|search|ann|gpu|west|NODE_FAIL|2025-12-31T23:00:00|2025-12-31T23:00:00|2026-01-01T00:00:00|"
        "2026-01-01T04:00:00|billing=8,cpu=8,gres/gpu:h100=8,gres/gpu=8,node=1|1",
        "7|a|search|ann|gpu|west|COMPLETED|2025-12-31T23:00:00|Unknown|2026-01-01T04:00:00|2026-01-01T10:00:00|"
        "gres/gpu:h100=16|2",
        "8|b|vision|bob|gpu|west|COMPLETED|2026-01-01T00:00:00|None|2026-01-01T01:00:00|2026-01-01T02:00:00|"
        "gres/gpu=4|1",
        "9|c|vision|bob|gpu|west|PENDING|2026-01-01T00:00:00|Unknown|Unknown|Unknown||1",
    )
    Path("sacct.txt").write_text(text_of(*rows))
    answer = fleet("a.jsonl", "--sacct", "sacct.txt", "--by", "team", "--by", "accelerator")
    (run_,) = answer["runs"]
    assert (run_["accelerators"], run_["team"], run_["accelerator"]) == (16, "search", "h100")
    assert answer["mpg"]["allocated_chip_ns"] == str((4 * 8 + 6 * 16) * HOUR * 10**9)
    assert answer["coverage"]["allocations_without_logs"] == 1
    assert answer["coverage"]["allocations_without_logs_hours"] == 4

"""Every command reads a log the same way: with inferred rules if no format gives steps, and with the same warnings."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.check import counts_in_words, noticed_in
from goodput_cli.cli.main import run
from goodput_cli.errors import NotEnoughData

OWN_LOOP = "sample_logs/trainers/own-loop.log"
SMALLEST = sorted(
    [one for one in Path("sample_logs").rglob("*") if one.suffix in (".jsonl", ".log", ".out")],
    key=lambda one: one.stat().st_size,
)[:24]


@pytest.mark.parametrize("log", [*map(str, SMALLEST), OWN_LOOP, "sample_logs/trainers/megatron-slurm"])
def test_check_agrees_with_the_counts_of_analyze(log: str) -> None:
    try:
        analysis = goodput_cli.analyze(log)
    except NotEnoughData:
        assert goodput_cli.check(log).count("info") < len(goodput_cli.check(log).findings)
        return
    report = goodput_cli.check(log)
    assert report.events > 0
    assert counts_in_words(report.findings) == counts_in_words(noticed_in(analysis, time.time_ns()))


def test_commands_agree_on_a_log_that_no_format_reads(tmp_path: Path) -> None:
    log = shutil.copy(OWN_LOOP, tmp_path)
    percent = goodput_cli.analyze(log).goodput_percent
    (job,) = goodput_cli.jobs(log).jobs
    watched = next(goodput_cli.watch(log, as_of=None)).analysis
    fleet = goodput_cli.fleet_report(log, workers=1)
    assert watched is not None
    assert percent == job.goodput_percent == watched.goodput_percent == fleet.total.time_goodput_percent
    assert "drafted_mapping" in {one.code for one in goodput_cli.check(log).findings}
    assert "drafted_mapping" in {one.code for one in watched.diagnostics}


def test_rules_are_inferred_next_to_no_log_with_steps(tmp_path: Path) -> None:
    """Text next to a log that a format reads is not a separate job."""
    shutil.copy(OWN_LOOP, tmp_path)
    shutil.copy("sample_logs/primer-50-percent.jsonl", tmp_path)
    assert [one.name for one in goodput_cli.jobs(str(tmp_path)).jobs] == ["goodput-primer"]


def test_watch_infers_rules_again_as_the_log_grows(tmp_path: Path) -> None:
    lines = Path(OWN_LOOP).read_text().splitlines(keepends=True)
    log = tmp_path / "own-loop.log"
    log.write_text("".join(lines[:10]))
    updates = goodput_cli.watch(str(log), as_of=None, interval=0.1)
    first = next(updates).analysis
    log.write_text("".join(lines))
    last = next(updates).analysis
    updates.close()
    assert first is not None
    assert last is not None
    assert last.goodput_percent == goodput_cli.analyze(str(log)).goodput_percent


def test_refused_rules_are_a_warning_of_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    log.write_text("2026-03-01 10:00:00 nothing here\n" * 3)
    with pytest.raises(NotEnoughData):
        goodput_cli.analyze(str(log))
    assert run(["check", str(log)]) == 4
    assert "not_drafted" in capsys.readouterr().out

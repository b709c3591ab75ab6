"""Warnings about answers long after the last line of a log."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from goodput_cli.report.base import Page
from goodput_cli.report.first_screen import first_screen
from tests.support.answers import as_markdown
from tests.support.story import account, end, start, steps, terminated

DAY = 86_400


def test_silence_of_days_is_reported_with_goodput_without_it() -> None:
    story = account(start(0), steps(0, 7, at=10), as_of=3 * DAY)
    assert story.found("long_silence") == 1
    assert "no log lines for 71 h 59 min" in story.message("long_silence")
    assert f"{account(start(0), steps(0, 7, at=10)).percent:.2f} %" in story.message("long_silence")


def test_finished_job_has_no_silence() -> None:
    assert account(start(0), steps(0, 7, at=10), end(80), as_of=3 * DAY).found("long_silence") == 0


def test_pause_within_a_day_has_no_warning() -> None:
    assert account(start(0), steps(0, 7, at=10), as_of=DAY).found("long_silence") == 0


def test_as_of_time_inside_the_log_has_no_warning() -> None:
    assert account(start(0), steps(0, 3, at=10), steps(3, 2, at=3 * DAY), as_of=2 * DAY).found("long_silence") == 0


@pytest.mark.parametrize(
    ("ago", "written", "ended", "said"),
    [(1800, 1800, False, True), (1800, 1800, True, False), (2 * DAY, 60, False, False), (1800, 2 * DAY, False, False)],
)
def test_log_that_still_grows_gets_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ago: int, written: int, ended: bool, said: bool
) -> None:
    """No end, and a recent line: the answer covers the events, and a warning explains how to count the time after
    them."""
    last, log = time.time() - ago, tmp_path / "run.jsonl"
    events: list[dict[str, float]] = [{"job_start_time": last - 100}]
    events += [{"step_count": n, "step_start_time": last - 60 + 10 * n} for n in range(7)]
    events += [{"job_end_time": last}] if ended else []
    log.write_text("".join(json.dumps({"job_name": "j", **one}) + "\n" for one in events))
    os.utime(log, (time.time() - written,) * 2)
    remark = "--as-of now counts this time"
    assert run(["analyze", str(log)]) == 0
    assert (remark in capsys.readouterr().err) == said
    for quiet in (["-q"], ["--as-of", "now"]):
        assert run(["analyze", str(log), *quiet]) == 0
        assert remark not in capsys.readouterr().err


def test_gap_of_a_day_is_next_to_goodput_in_every_format() -> None:
    """Two jobs may have been read as one. The share alone would not show it."""
    again = 2 * DAY
    lines = [start(0), *steps(0, 20, at=10), start(again), *steps(0, 20, at=again + 10), end(again + 300)]
    analysis = goodput_cli.analyze([json.loads(line) for line in lines])
    doubt = "of the job: 47 h 57 min, 2026-01-01 00:03:20"
    for shown in (repr(analysis), analysis.to_html(), as_markdown(analysis, Page()), first_screen(analysis, Page())):
        assert doubt in " ".join(shown.split())
    assert any(doubt in one for one in analysis.to_dict()["doubts"])


def test_gap_of_hours_in_one_file_is_an_outage() -> None:
    story = account(start(0), steps(0, 20, at=10), start(18_000), steps(20, 20, at=18_010), end(18_300))
    assert story.found("long_gap") == 0


def test_outage_of_days_in_one_job_has_no_warning() -> None:
    """The step numbers continue those of the attempt before: the loss is reported once, as a disruption."""
    again = 2 * DAY
    story = account(start(0), steps(0, 20, at=10), start(again), steps(15, 20, at=again + 10), end(again + 300))
    assert story.found("long_gap") == 0
    assert [insight.code for insight in story.analysis.insights][:1] == ["disruptions"]


def test_logged_stop_of_days_has_no_warning() -> None:
    again = 2 * DAY
    story = account(
        start(0), steps(0, 20, at=10), terminated(220), start(again), steps(0, 20, at=again + 10), end(again + 300)
    )
    assert story.found("long_gap") == 0


def test_step_numbers_far_above_the_last_may_be_another_job() -> None:
    again = 2 * DAY
    assert account(start(0), steps(0, 20, at=10), start(again), steps(900, 20, at=again + 10)).found("long_gap") == 1


def test_month_without_lines_always_has_a_warning() -> None:
    """A single timestamp of another year turns a run without failures into a very long hang."""
    far = 126 * 365 * DAY
    story = account(start(0), steps(0, 20, at=10), steps(20, 2, at=far), end(far + 30))
    assert story.found("long_gap") == 1
    assert "a timestamp is wrong" in story.message("long_gap")
    left_out = account(start(0), steps(0, 20, at=10), terminated(220), start(50 * DAY), steps(20, 2, at=50 * DAY + 9))
    assert left_out.found("long_gap") == 1
    assert account(start(0), steps(0, 20, at=10), steps(20, 2, at=29 * DAY), end(29 * DAY + 30)).found("long_gap") == 0
    assert account(start(0), steps(0, 60, at=10, every=DAY), end(61 * DAY)).found("long_gap") == 0

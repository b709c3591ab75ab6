"""An answer as of long after a log fell silent says so."""

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
from tests.support.accounts import account
from tests.support.rendered import as_markdown
from tests.support.story import end, start, steps, terminated

DAY = 86_400


def test_days_of_silence_are_said_with_the_answer_without_them() -> None:
    story = account(start(0), steps(0, 7, at=10), as_of=3 * DAY)
    assert story.found("long_silence") == 1
    assert "no log lines for 71 h 59 min" in story.message("long_silence")
    assert f"{account(start(0), steps(0, 7, at=10)).percent:.2f} %" in story.message("long_silence")


def test_a_job_that_ended_is_not_silent() -> None:
    assert account(start(0), steps(0, 7, at=10), end(80), as_of=3 * DAY).found("long_silence") == 0


def test_a_pause_within_a_day_is_ordinary() -> None:
    assert account(start(0), steps(0, 7, at=10), as_of=DAY).found("long_silence") == 0


def test_an_instant_inside_the_log_is_not_behind_it() -> None:
    assert account(start(0), steps(0, 3, at=10), steps(3, 2, at=3 * DAY), as_of=2 * DAY).found("long_silence") == 0


@pytest.mark.parametrize(
    ("ago", "written", "ended", "said"),
    [(1800, 1800, False, True), (1800, 1800, True, False), (2 * DAY, 60, False, False), (1800, 2 * DAY, False, False)],
)
def test_a_log_that_is_written_has_more_to_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ago: int, written: int, ended: bool, said: bool
) -> None:
    """No end, and lately a line: the answer is that of its events, and a remark says how to count what came after."""
    last, log = time.time() - ago, tmp_path / "run.jsonl"
    events: list[dict[str, float]] = [{"job_start_time": last - 100}]
    events += [{"step_count": n, "step_start_time": last - 60 + 10 * n} for n in range(7)]
    events += [{"job_end_time": last}] if ended else []
    log.write_text("".join(json.dumps({"job_name": "j", **one}) + "\n" for one in events))
    os.utime(log, (time.time() - written,) * 2)
    remark = "--as-of now counts what came after"
    assert run(["analyze", str(log)]) == 0
    assert (remark in capsys.readouterr().err) == said
    for quiet in (["-q"], ["--as-of", "now"]):
        assert run(["analyze", str(log), *quiet]) == 0
        assert remark not in capsys.readouterr().err


def test_a_gap_of_a_day_stands_beside_goodput_in_every_format() -> None:
    """Two jobs may have been read as one: a person who sees the share alone would not know."""
    again = 2 * DAY
    lines = [start(0), *steps(0, 20, at=10), start(again), *steps(0, 20, at=again + 10), end(again + 300)]
    analysis = goodput_cli.analyze([json.loads(line) for line in lines])
    doubt = "of the job: 47 h 57 min, 2026-01-01 00:03:20"
    for shown in (repr(analysis), analysis.to_html(), as_markdown(analysis, Page()), first_screen(analysis, Page())):
        assert doubt in " ".join(shown.split())
    assert any(doubt in one for one in analysis.to_dict()["doubts"])


def test_a_gap_of_hours_in_one_file_is_an_outage() -> None:
    story = account(start(0), steps(0, 20, at=10), start(18_000), steps(20, 20, at=18_010), end(18_300))
    assert story.found("long_gap") == 0


def test_an_outage_of_days_of_one_job_is_no_doubt() -> None:
    """The numbers go on where the attempt before had come to: what it cost is said as a disruption, once."""
    again = 2 * DAY
    story = account(start(0), steps(0, 20, at=10), start(again), steps(15, 20, at=again + 10), end(again + 300))
    assert story.found("long_gap") == 0
    assert [insight.code for insight in story.analysis.insights][:1] == ["disruptions"]


def test_a_stop_of_days_that_a_line_says_is_no_doubt() -> None:
    again = 2 * DAY
    story = account(
        start(0), steps(0, 20, at=10), terminated(220), start(again), steps(0, 20, at=again + 10), end(again + 300)
    )
    assert story.found("long_gap") == 0


def test_numbers_that_begin_far_above_the_last_ones_may_be_another_jobs() -> None:
    again = 2 * DAY
    assert account(start(0), steps(0, 20, at=10), start(again), steps(900, 20, at=again + 10)).found("long_gap") == 1


def test_a_month_without_a_line_is_a_doubt_whatever_the_lines_say() -> None:
    """One stamp of another year makes a hang of ages of a run without a fault."""
    far = 126 * 365 * DAY
    story = account(start(0), steps(0, 20, at=10), steps(20, 2, at=far), end(far + 30))
    assert story.found("long_gap") == 1
    assert "a timestamp is wrong" in story.message("long_gap")
    left_out = account(start(0), steps(0, 20, at=10), terminated(220), start(50 * DAY), steps(20, 2, at=50 * DAY + 9))
    assert left_out.found("long_gap") == 1
    assert account(start(0), steps(0, 20, at=10), steps(20, 2, at=29 * DAY), end(29 * DAY + 30)).found("long_gap") == 0
    assert account(start(0), steps(0, 60, at=10, every=DAY), end(61 * DAY)).found("long_gap") == 0

"""The first screen of `analyze`: at most 24 lines with the prompt, and the whole answer in the first eight."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.cli.main import run
from goodput_cli.report.base import Page, load_renderer
from goodput_cli.report.first_screen import LINES, first_screen
from tests.support.commands import on_a_terminal
from tests.support.documents import ROOT
from tests.support.story import (
    Line,
    account,
    crashed,
    end,
    finished,
    job_finished,
    loaded,
    saved,
    scheduled,
    start,
    started,
    step,
    steps,
    story_lines,
    terminated,
)  # fmt: skip

NIGHT = str(ROOT / "sample_logs" / "llm-pretrain.jsonl")
LOGS = sorted(path for path in (ROOT / "sample_logs").glob("*.jsonl"))


@cache
def analyzed(path: Path) -> Analysis:
    return goodput_cli.analyze(path, run="last")


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_first_screen_leaves_a_line_for_the_prompt(path: Path, width: int) -> None:
    shown = first_screen(analyzed(path), Page(width=width)).splitlines()
    assert len(shown) < LINES
    assert max(len(line) for line in shown if "goodput " not in line) <= width  # A command is never cut.


def test_tall_terminal_shows_all_insights_and_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is relative, because commands with a long path take lines of their own."""
    monkeypatch.chdir(ROOT)
    name = "sample_logs/llm-pretrain.jsonl"
    shown = first_screen(goodput_cli.analyze(name), Page(width=120, height=50)).splitlines()
    assert 30 < len(shown) < 50
    assert sum("goodput " in line and name in line for line in shown) >= 5
    assert any(line.startswith(" checkpoint restore ") for line in shown)


@pytest.mark.parametrize("height", [24, 30, 50])
def test_every_symbol_of_the_strip_has_its_legend(height: int) -> None:
    """Commands contain the name of the log, even if it is longer than the line."""
    text = first_screen(goodput_cli.analyze(NIGHT), Page(width=80, height=height))
    lines = text.splitlines()
    strip = next(line.strip() for line in lines if "\N{BOX DRAWINGS HEAVY HORIZONTAL}" * 8 in line)
    for sign in set(strip):
        assert re.search(rf"(^ |  ){re.escape(sign)} [a-z]", text, re.MULTILINE), sign
    assert " LOG" not in text


def test_first_eight_lines_are_the_answer() -> None:
    shown = "\n".join(first_screen(goodput_cli.analyze(NIGHT), Page(width=100)).splitlines()[:8])
    for answer in (
        "ended clean", "70.43 %", "7 h 53 min of 11 h 11 min",
        "5 disruptions (3 silent, 1 terminated, 1 slice down), cause unknown", "43 min 48 s  evaluation",
        "29 min 41 s", "does not show that checkpoint 1800", "goodput timeline",
        "--around disruption:4",
    ):  # fmt: skip
        assert answer in shown, answer


def test_crash_at_the_end_is_reported() -> None:
    shown = first_screen(account(start(0), steps(0, 50, at=0), crashed(500)).analysis, Page())
    assert "1 attempt, 0 disruptions, crashed at the end" in shown


def test_job_of_two_steps_is_too_short_to_judge() -> None:
    analysis = account(start(0), step(0, 600), step(1, 1200), end(1210)).analysis
    assert analysis.is_too_short
    assert "too few steps to judge" in first_screen(analysis, Page(width=100))
    assert not any(one.code == "slow_steps" for one in analysis.insights)


@pytest.mark.parametrize(
    "story",
    [
        (start(0), end(100)),
        (started(0), terminated(100)),
        (started(0), loaded(0, 10), job_finished(100)),
        (started(0), crashed(100), started(120), terminated(200)),
    ],
    ids=["recorder", "terminated", "load", "crashed-first"],
)
def test_job_without_steps_has_no_goodput(story: tuple[Line, ...]) -> None:
    """Its program may log no steps, so 0 % would be a claim about unobserved training."""
    analysis = account(*story).analysis
    assert analysis.is_too_short
    said = analysis.to_dict()
    assert set(said["goodput"].values()) == {None}
    assert said["too_short"]
    markdown = str(load_renderer("markdown")(analysis, Page()))
    texts = (first_screen(analysis, Page()), repr(analysis), analysis._repr_html_(), markdown, analysis.to_html())
    for text in texts:
        assert "unknown" in text
        assert "no step was logged in" in text
    for text in texts[:4]:
        assert not re.search(r"(goodput|productive)[^\n]*[^\d]0\.00 %", text, re.IGNORECASE)


def test_single_step_of_a_checkpoint_shows_no_training() -> None:
    analysis = account(saved(5, 0), job_finished(100)).analysis
    assert "only checkpoint steps were logged in" in first_screen(analysis, Page())


def test_crash_before_the_first_step_lost_all_time() -> None:
    """The same applies to a job that was never up, to time that the log accounts for, and to a window of a job that
    trained."""
    shown = first_screen(account(started(0), crashed(100)).analysis, Page())
    assert "0.00 %  0 s of 1 min 40 s; no step was logged before the crash" in shown
    queued = account(scheduled(0), started(100)).analysis
    assert not queued.is_too_short
    assert "0.00 %  0 s of 1 min 40 s" in first_screen(queued, Page())
    log = story_lines(started(0), loaded(0, 10), finished(20, 30), job_finished(100))
    assert "0.00 %" in first_screen(account(log, window=(50, 90)).analysis, Page())


def test_steps_are_counted_by_their_numbers() -> None:
    """Records of every hundredth step are many steps; a checkpoint log has no steps to count."""
    assert not account(start(0), steps(0, 4, at=10, every=600, stride=100), end(2500)).analysis.is_too_short
    assert not account(started(0), crashed(100)).analysis.is_too_short


def test_terminal_gets_one_screen_and_everything_with_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", NIGHT, "-q"]) == 0
    piped = capsys.readouterr().out
    line = ("analyze", NIGHT, "-q")
    brief, full = (on_a_terminal(*line, *more, NO_COLOR="1", TERM="xterm") for more in ((), ("--full",)))
    assert len(brief.splitlines()) < LINES
    assert "--full" in brief
    assert full == piped


@pytest.mark.parametrize("width", [40, 80])
def test_problems_are_bold_and_suggestions_are_not(width: int) -> None:
    """This includes entries of several lines."""
    text = str(load_renderer("table")(goodput_cli.analyze(NIGHT), Page(width=width, colour=True)))
    bold = [words.strip() for words in re.findall("\x1b\\[1m(.*?)\x1b\\[0m", text)]
    assert {line for line in bold if "→" in line or "watchdog" in line or "compare hosts" in line} == set()
    assert "as goodput" in bold or "usual 8.01 s, counted as goodput" in bold

"""Stories of failures that are older than the rows of evidence: the answer agrees with an engineer's, or is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from tests.causes import stories
from tests.causes.stories import Story

ALL = stories.stories()


@pytest.mark.parametrize("story", ALL, ids=lambda story: story.name)
def test_story_names_the_first_cause_and_its_location(story: Story, tmp_path: Path) -> None:
    found = stories.disruption_of(story, tmp_path)
    assert stories.verdict(story, found) == "right", (found.cause, found.first_rank, found.first_host, found.cause_text)


@pytest.mark.parametrize("story", [one for one in ALL if not one.start], ids=lambda story: story.name)
def test_story_loses_the_unsaved_work(story: Story, tmp_path: Path) -> None:
    found = stories.disruption_of(story, tmp_path)
    assert (found.last_step, found.resumed_step, found.steps_lost) == (150, 100, 50)


def run_on_story(name: str, folder: Path, capsys: pytest.CaptureFixture[str], command: str = "disruptions") -> str:
    """Return the output of a command on a story, as one line."""
    (story,) = (one for one in ALL if one.name == name)
    assert run([command, str(stories.written(story, folder)), "-j", "llm", "-q"]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("name", "doubt"),
    [
        (
            "no room in shared memory for a cache",
            "not confirmed: the line has no timestamp; log timestamps to confirm it",
        ),
        ("a GPU of AMD with an uncorrectable error", "; also: rank not logged, host node-03"),
        ("Ctrl-C in the terminal of the launcher", "not confirmed: the log does not show who sent it"),
        (
            "a task of JAX that its kernel killed, and the others first in the log",
            "not confirmed: the job's own log does not confirm it",
        ),
        (
            "the loader's workers fall when the agent ends the ranks",
            "not confirmed: the log does not show why a rank was missing",
        ),
    ],
)
def test_likely_cause_names_the_missing_evidence(
    name: str, doubt: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doubt in run_on_story(name, tmp_path, capsys)


def test_unknown_cause_suggests_a_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = run_on_story("a throttled processor and a socket of Ceph, then silence", tmp_path, capsys)
    assert "cause not logged; add the output of all ranks, and the scheduler or kernel log" in text


def test_memory_kill_is_quoted_with_its_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = run_on_story("a task of JAX that its kernel killed, and the others first in the log", tmp_path, capsys)
    assert "host_oom: `Memory cgroup out of memory: Killed process 913 (python3)" in text


def test_long_outage_names_its_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = run_on_story("a Gaudi card that cannot be acquired", tmp_path, capsys, "analyze")
    assert "nothing ran for 15 min 40 s after disruption 2 (likely environment), 10:14 to 10:30 UTC" in text

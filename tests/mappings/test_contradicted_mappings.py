"""`goodput check --mapping` warns if a log contradicts a user's rule."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.question import Question
from goodput_cli.api.check import draft_mapping
from goodput_cli.api.contradicted import contradicted
from goodput_cli.api.options import Reading
from goodput_cli.events.mappings.registry import load_mappings, read_files
from tests.mappings.test_draft_checks import WEEKEND, attempts
from tests.mappings.test_draft_checks import log as log_of

SHIPPED = Path("goodput_cli/events/mappings/shipped")
SAMPLES = sorted(one for one in Path("tests/text/samples").iterdir() if one.suffix != ".md" and one.is_file())


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Path(shutil.copy("sample_logs/trainers/own-loop.log", tmp_path))


def warned(log: Path, mapping: str) -> list[tuple[str, str]]:
    """Return the warning and its line."""
    own = log.with_name("my.toml")
    own.write_text(mapping, encoding="utf-8")
    found = goodput_cli.check(str(log), mapping=(str(own),)).findings
    return [(one.message, one.where[0].rpartition(":")[2]) for one in found if one.code == "mapping_contradicted"]


def test_drafted_mapping_is_not_contradicted(log: Path) -> None:
    assert warned(log, draft_mapping(str(log)).text) == []


STEP = """name = "mine"
[[rule]]
event = "step"
line = 'Epoch {epoch:int}/{_}| Step {step:int}/{of:int} | loss={_}| lr={_}| {each:float} ms/step'
epoch = { first = 1 }
each = { unit = "ms" }
[[rule]]
"""
WRONG = {
    "step rule of mine in line 2: `step time` matches the timestamps of only 0 of 9 records": (
        STEP.replace('"ms"', '"s"').removesuffix("[[rule]]\n"), "3"),
    "go back 2 times": ('name = "mine"\n[[rule]]\nevent = "step"\nline = "Step {step:int}"', "9"),
    "start rule of mine in line 7: a start line is between two steps of one process": (
        f'{STEP}event = "start"\nline = "Saved checkpoint"', "8"),
    "finished rule of mine in line 7: steps of the same process follow it": (
        f'{STEP}event = "finished"\nline = "Saved checkpoint"', "8"),
    "save rule of mine in line 7: saves: 1 of 1 durations do not fit between the neighboring steps": (
        f"{STEP}event = 'save'\nregex = 'Saved checkpoint .*step_(?P<took>[0-9]+)'\ntook = {{ unit = 's' }}", "8"),
    "resume rule of mine in line 7: none of its numbers leads to the next step": (
        f"{STEP}event = 'resume'\nregex = 'Resuming from checkpoint .*run-(?P<step>[0-9]+)'", "15"),
}  # fmt: skip


@pytest.mark.parametrize("said", WRONG)
def test_contradicted_rule_gives_a_warning(log: Path, said: str) -> None:
    mapping, line = WRONG[said]
    (only,) = warned(log, mapping)
    assert said in only[0]
    assert only[1] == line


STEPS_ALONE = 'name = "mine"\n[[rule]]\nevent = "step"\nline = "step {step:int} loss"\n'
ANSWERS = {
    "with this rule, goodput is 0.": log_of(attempts(2, WEEKEND)),
}  # fmt: skip
"""Warnings about an implausible result as a whole, each with a log."""


@pytest.mark.parametrize("said", ANSWERS)
def test_implausible_result_gives_a_warning(tmp_path: Path, said: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(ANSWERS[said], encoding="utf-8")
    assert any(said in message for message, _ in warned(log, STEPS_ALONE))


def test_shipped_mappings_are_not_contradicted_by_their_logs() -> None:
    shipped = load_mappings(read_files(sorted(map(str, SHIPPED.glob("*.toml")))), samples=False).named
    assert SAMPLES
    for path in SAMPLES:
        log = Reading().read([str(path)], "UTC")
        found = contradicted([str(path)], shipped, log, Question(timezone="UTC"))
        assert [one.message for one in found] == [], path

"""The passes over text: one ordered list, and what each did to a line (docs/text-engine.md)."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from goodput_cli.api.check import explain_line
from goodput_cli.events.text.event_passes import EVENT_PASSES
from goodput_cli.events.text.passes import JOB_PASSES, LOG_PASSES, READ, TIME_PASSES, LineTrace

ALL = [(one.name, one.run) for passes in (TIME_PASSES, EVENT_PASSES, LOG_PASSES, JOB_PASSES) for one in passes]
LOG = """\
2026-03-01 10:00:00 | epoch 1 started
2026-03-01 10:00:10 | step 10/100 loss 3.1
2026-03-01 10:00:20 | step 20/100 loss 3.0
2026-03-01 10:00:30 | step 30/100 loss 2.9
2026-03-01 10:00:40 | step 40/100 loss 2.8
2026-03-01 10:00:40 | checkpoint saved
2026-03-01 10:01:10 | step 50/100 loss 2.7
2026-03-01 10:01:20 | step 60/100 loss 2.6
2026-03-01 10:01:30 | note: the learning rate falls
"""
MAPPING = """\
name = "mine"

[[rule]]
line = "step {step:int}/{of:int} loss"
event = "step"

[[rule]]
line = "checkpoint saved"
event = "save"
"""


def test_names_are_unique_and_each_pass_states_its_purpose() -> None:
    assert len({name for name, _ in ALL}) == len(ALL)
    assert READ not in {name for name, _ in ALL}
    assert [name for name, run in ALL if not inspect.getdoc(run)] == []


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(MAPPING, encoding="utf-8")
    path = tmp_path / "train.log"
    path.write_text(LOG, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("line", "passes"),
    [
        (3, ["after read: step 20", "after times: step 20 at 2026-03-01T10:00:20Z"]),
        (6, ["after read: save", "after times: save at 2026-03-01T10:00:40Z",
             "after gaps: save at 2026-03-01T10:00:40Z to 2026-03-01T10:01:00Z"]),
        (9, ["after read: only a time", "after times: only a time at 2026-03-01T10:01:30Z",
             "after program_lines: dropped", "after activity: activity at 2026-03-01T10:01:30Z"]),
    ],
)  # fmt: skip
def test_explain_lists_the_passes_that_changed_a_line(log: Path, line: int, passes: list[str]) -> None:
    said = explain_line(f"{log}:{line}", mapping=[str(log.parent / "mine.toml")]).splitlines()
    assert [one for one in said if one.startswith("after ")] == passes


def test_explain_uses_inferred_rules(log: Path) -> None:
    said = explain_line(f"{log}:3").splitlines()
    assert any(one.startswith("read by: train") for one in said)
    assert "after times: step 20 at 2026-03-01T10:00:20Z" in said


def test_trace_begins_anew_when_a_log_is_read_again() -> None:
    trace = LineTrace(1)
    trace.changes.append(("times", "step 1"))
    trace(READ, lambda _: ())
    assert trace.changes == []

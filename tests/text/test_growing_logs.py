"""A log that grows is read as `analyze` reads it at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.api.watch import WatchedLog

STEPS = "".join(f"2026-03-01 10:{at // 6:02}:{at % 6}0 | step {at}/200 loss 2.{at:03}\n" for at in range(1, 60))
DEATH = """\
Traceback (most recent call last):
  File "train.py", line 12, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""
MAPPING = """\
name = "mine"

[[rule]]
event = "step"
line = "step {step:int}/{of:int} loss"
"""


@pytest.mark.parametrize("head", ["", '{"config": {"lr": 0.1}}\n'], ids=["text", "first line is an object"])
def test_watch_reports_a_death_on_the_last_lines(tmp_path: Path, head: str) -> None:
    (tmp_path / "mine.toml").write_text(MAPPING, encoding="utf-8")
    log, rules = tmp_path / "train.log", (str(tmp_path / "mine.toml"),)
    text = head + STEPS + DEATH
    watched = WatchedLog(str(log), mapping=rules)
    for end in (200, len(text) - 40, len(text)):
        log.write_text(text[:end], encoding="utf-8")
        watched.look()
        watched.log()
    watched.look()  # it did not grow: it ends here
    growing, whole = watched.analysis(None), goodput_cli.analyze(str(log), mapping=rules)
    watched.close()
    assert whole.timeline.causes.why[-1].code == "device_oom"
    assert growing.timeline.causes.why[-1].code == "device_oom"
    assert growing.goodput.ns == whole.goodput.ns
    assert growing.job.ending == whole.job.ending

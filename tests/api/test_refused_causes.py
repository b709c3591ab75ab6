"""The cause in an error message is the one that the answer of the same log would have (docs/causes.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.errors import NotEnoughData

AGENT = "torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: {}) local_rank: 0 (pid: 811) "
AGENT += "of binary: /usr/bin/python"
BLOCK = """torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
finetune.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-06-17_17:57:00
  host      : node-a
  rank      : 0 (local_rank: 0)
  exitcode  : {} (pid: 811)
============================================================
"""
STAMPED = f"[2026-06-17 17:57:00,220] {AGENT}\n"
TRACEBACK = """Traceback (most recent call last):
  File "/opt/train.py", line 8, in <module>
    raise ValueError("max_steps has to be specified")
ValueError: max_steps has to be specified
"""
WATCHDOG = (
    "[E ProcessGroupNCCL.cpp:828] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1801503 milliseconds before timing out.\n"
)
REFUSALS = {
    "traceback, agent, block": (TRACEBACK + STAMPED.format(1) + BLOCK.format(1), "python_error", 4),
    "watchdog, agent, block": (WATCHDOG + STAMPED.format(-6) + BLOCK.format(-6), "collective_timeout", 1),
    "traceback without a time": (TRACEBACK + BLOCK.format(1), "python_error", 4),
    "disk before the crash": (
        TRACEBACK.replace("ValueError: max_steps has to be specified", "OSError: [Errno 28] No space left on device")
        + STAMPED.format(1),
        "disk_full",
        4,
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_error_quotes_the_cause_of_the_answer(name: str, tmp_path: Path) -> None:
    text, cause, line = REFUSALS[name]
    log = tmp_path / "job.log"
    log.write_text(text)
    with pytest.raises(NotEnoughData) as refused:
        goodput_cli.analyze(str(tmp_path))
    assert f"job.log:{line}: {cause}" in str(refused.value)
    if "[2026" in text:
        log.write_text(text + "[2026-06-17 17:58:00,000] " + AGENT.format(1).replace("811", "812") + "\n")
        assert goodput_cli.analyze(str(tmp_path), draft=False).timeline.causes.why[-1].code == cause

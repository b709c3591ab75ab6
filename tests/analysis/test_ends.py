"""The end of the last attempt is treated like any other (accounting §10): a restart after it only adds downtime."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.insights.hangs import Hangs, find_hangs
from goodput_cli.analysis.insights.kinds import Insight
from tests.support.documents import ROOT
from tests.support.story import BASE, Lines, account, crashed, end, heartbeat, job_finished, start, steps, terminated

CAUSES = "tests/causes/examples"
RESTARTS = [
    (f"{CAUSES}/01-oom-then-timeouts", "train.log:59"),
    (f"{CAUSES}/02-killed-by-the-kernel", "train.log:40"),
    (f"{CAUSES}/03-killed-but-not-by-it", "train.log:40"),
    (f"{CAUSES}/04-same-second-two-hosts", "train.log:42"),
    (f"{CAUSES}/06-caught", "train.log:28"),
    (f"{CAUSES}/07-next-start-fails", "a-3.log:2"),
    (f"{CAUSES}/08-sixty-four-ranks", "train.log:86"),
    (f"{CAUSES}/11-same-step", "train.log:38"),
    (f"{CAUSES}/12-hostile-words", "train.log:26"),
    ("tests/examples/17-rolled-back-checkpoint.jsonl", "17-rolled-back-checkpoint.jsonl:8"),
    ("tests/examples/18-queued.jsonl", "18-queued.jsonl:8"),
    ("sample_logs/primer-50-percent.jsonl", "primer-50-percent.jsonl:7"),
    ("sample_logs/trainers/nemo-ft_launcher.log", "nemo-ft_launcher.log:630"),
    ("sample_logs/trainers/own-loop.log", "own-loop.log:14"),
]
"""Samples with a restart, and the line that starts the next attempt."""


def cut(sample: str, place: str, to: Path) -> Path:
    """Return a copy of a sample that ends right before a line."""
    source, (name, line) = ROOT / sample, place.split(":")
    copy = to / source.name
    if source.is_dir():
        shutil.copytree(source, copy)
        target = copy / name
    else:
        shutil.copy(source, copy)
        target = copy
    target.write_text("".join(target.read_text(encoding="utf-8").splitlines(True)[: int(line) - 1]), encoding="utf-8")
    return copy


def end_of(timeline: Timeline, attempt: int, hangs: Hangs) -> dict[str, object]:
    """Return the statements about the end of an attempt."""
    why, ends = timeline.causes.why[attempt], timeline.ends
    mine = hangs.take(hangs.attempt == attempt)
    return {
        "time": int(ends.time[attempt]), "how": int(ends.how[attempt]),
        "cause": why.code, "certainty": why.certainty, "rank": why.rank, "host": why.host, "advice": why.advice,
        "hangs": list(zip(mine.step.tolist(), mine.start.tolist(), mine.end.tolist(), mine.ns.tolist(), strict=True)),
    }  # fmt: skip


def ends_of(analysis: Analysis, attempt: int) -> dict[str, object]:
    timeline = analysis.timeline
    return end_of(timeline, attempt, find_hangs(timeline, (timeline.start, timeline.end)))


@pytest.mark.parametrize(("sample", "place"), RESTARTS, ids=[Path(one).stem for one, _ in RESTARTS])
def test_end_is_the_same_without_the_restart_after_it(sample: str, place: str, tmp_path: Path) -> None:
    whole = goodput_cli.analyze(ROOT / sample)
    [ended] = [one.attempt for one in whole.disruptions if (one.evidence.next_start or "").endswith(place)]
    alone = goodput_cli.analyze(cut(sample, place, tmp_path))
    assert len(alone.timeline.attempts) == ended
    assert ends_of(alone, ended - 1) == ends_of(whole, ended - 1)


WAITED = (
    "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(Timeout(ms)=600000) ran for 600000 milliseconds"
)


def watchdog(at: float) -> str:
    """Return a crash logged by the recorder after a watchdog had waited for 10 min."""
    return json.dumps({"job_name": "j", "goodput_event": "crashed", "goodput_time": BASE + at, "reason": WAITED})


def insights(*lines: Lines) -> dict[str, Insight]:
    return {one.code: one for one in account(*lines).analysis.insights}


TRAINED = (start(0), steps(0, 100, at=60))
"""Steps of 10 s; the last one begins at 1050 s."""
AGAIN = (start(2000), steps(99, 200, at=2060), end(4060))
AT_THE_END = [
    pytest.param((*TRAINED, watchdog(1650)), "step 99 hung for 10 min 00 s, until a timeout{}", 590, id="step starts"),
    pytest.param((start(0), watchdog(700)), "attempt 1 hung for 10 min 00 s before its first step, until a timeout{}",
                 600, id="first step"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "text", "seconds"), AT_THE_END)
def test_hang_at_the_end_needs_no_next_attempt(lines: tuple[Lines, ...], text: str, seconds: int) -> None:
    for more, ended in (((), " at the end of the log"), (AGAIN, " (disruption 1)")):
        hang = insights(*lines, *more)["hang"]
        assert hang.text.startswith(text.format(ended))
        assert hang.seconds == pytest.approx(seconds, abs=1)


def test_hang_before_the_first_step_has_its_seconds_alone() -> None:
    """Start at 0, watchdog at 700 s after 600 s, restart at 2000 s: the hang has 600 of 2000 s of downtime."""
    found = insights(start(0), watchdog(700), *AGAIN)
    assert found["hang"].seconds == 600
    assert found["disruptions"].seconds == 1400


NOT_HUNG = {
    "clean end": (*TRAINED, end(1650)),
    "no line of an end": TRAINED,
    "crash without a wait": (*TRAINED, crashed(1650)),
    "start without a wait": (start(0), crashed(700)),
    "next record is not due": (start(0), steps(0, 20, at=60, every=100, stride=10), heartbeat(2050), crashed(2051)),
}


@pytest.mark.parametrize("lines", NOT_HUNG.values(), ids=NOT_HUNG)
def test_no_hang_is_stated_without_evidence_of_its_end(lines: tuple[Lines, ...]) -> None:
    assert "hang" not in insights(*lines)


def test_last_end_has_cause_seconds_and_advice() -> None:
    """The last step begins at 1050 s and the crash comes at 1250 s: 190 s beyond a usual step are lost."""
    last = insights(*TRAINED, crashed(1250))["last_end"]
    assert last.text == (
        "attempt 1 crashed, and no attempt follows: cause unknown; detected 3 min 20 s after its last step: "
        "a watchdog of 2 min 00 s would have saved 1 min 20 s"
    )
    assert last.seconds == 190
    assert last.advice == "set a watchdog to detect failures sooner"


NO_LAST_END = {
    "clean": (*TRAINED, end(1250)),
    "finished": (*TRAINED, job_finished(1250)),
    "not logged": TRAINED,
    "less than a minute": (*TRAINED, crashed(1080)),
}


@pytest.mark.parametrize("lines", NO_LAST_END.values(), ids=NO_LAST_END)
def test_last_end_is_left_out_without_a_costly_failure(lines: tuple[Lines, ...]) -> None:
    assert "last_end" not in insights(*lines)


@pytest.mark.parametrize("ended", [terminated(1250), crashed(1250)], ids=["terminated", "crashed"])
def test_no_second_of_the_last_end_is_in_two_insights(ended: str) -> None:
    """60 s until the first step are unexplained, 190 s after the last one are the end's, and nothing was given up."""
    found = insights(*TRAINED, ended)
    assert {code: one.seconds for code, one in found.items()} == {"last_end": 190, "unexplained": 60}


def test_hang_with_heartbeats_leaves_the_rest_to_the_last_end() -> None:
    """Heartbeats until 2800 s in the step that began at 1050 s, and a crash at 2900 s: 1740 s hung, and 100 s more."""
    beats = [heartbeat(at) for at in range(1060, 2801, 60)]
    found = insights(*TRAINED, *beats, crashed(2900))
    assert {code: one.seconds for code, one in found.items()} == {"hang": 1740, "last_end": 100, "unexplained": 60}

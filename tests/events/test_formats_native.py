"""The native format, as described in docs/formats.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.events.schema import NO_STEP, NONE, PREEMPTED
from goodput_cli.record import Recorder
from goodput_cli.record.lines import EVENTS
from tests.support.logs import T0, codes, envelope, found, read_lines, rows, where
from tests.support.logs import recorded_steps_of as steps

KINDS = {
    "scheduled": "SCHEDULED",
    "started": "START",
    "step_finished": "FINISHED",
    "checkpoint_saved": "SAVED",
    "checkpoint_loaded": "LOAD",
    "terminated": "TERMINATED",
    "crashed": "CRASHED",
    "stopped": "USER_TERMINATED",
    "finished": "JOB_FINISHED",
    "heartbeat": "HEARTBEAT",
    "preemption_notice": "HEARTBEAT",
}


def event(name: Any, after: float = 1, **more: Any) -> dict[str, Any]:
    """Return a line of the native format."""
    return {"job_name": "j", "goodput_event": name, "goodput_time": T0 + after, **more}


@pytest.mark.parametrize("name", KINDS)
def test_event_is_equal_bare_and_in_an_entry(tmp_path: Path, name: str) -> None:
    line = event(name, 1.25, step=7, rank=3)
    log, wrapped = read_lines(tmp_path, line), read_lines(tmp_path, envelope(line))
    assert rows(log) == rows(wrapped) == [(KINDS[name], "POINT", 1.25, 1.25)]
    assert steps(log.table) == steps(wrapped.table) == [7]
    assert log.table.rank.tolist() == wrapped.table.rank.tolist() == [3]
    assert (log.format_names, log.diagnostics) == ((("goodput",),), ())


def test_notice_is_more_than_a_heartbeat(tmp_path: Path) -> None:
    log = read_lines(tmp_path, event("heartbeat"), event("preemption_notice", signal="SIGTERM"))
    assert [log.table.details[at] if at >= 0 else None for at in log.table.detail.tolist()] == [None, PREEMPTED]


@pytest.mark.parametrize("name", sorted(EVENTS.keys() - KINDS.keys()))
def test_events_without_claim_make_no_row(tmp_path: Path, name: str) -> None:
    log = read_lines(tmp_path, event("started"), event(name, 9))
    assert rows(log) == [("START", "POINT", 1.0, 1.0)]
    noticed = {"dropped": "recorder_dropped", "clock_step": "clock_step", "phases": "bad_phase"}
    assert codes(log) == ({noticed[name]} if name in noticed else set())


def test_unknown_keys_of_events_are_counted(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "rank": 0,
        "step": 3,
        "lines": 1,
        "steps": 1,
        "seconds": 1.5,
        "from": T0,
        "to": T0 + 1,
        "pid": 1,
    }
    lines = [event(name, **{key: values.get(key, "x") for key in one.keys}) for name, one in EVENTS.items()]
    assert "unknown_keys" not in codes(read_lines(tmp_path, *lines))
    assert where(read_lines(tmp_path, event("attempt", mood="fine")), "unknown_keys") == ["1"]


def test_metrics_may_have_any_name(tmp_path: Path) -> None:
    assert read_lines(tmp_path, event("metrics", step=4, mfu=41.2, tokens_per_s=7)).diagnostics == ()


def test_metrics_are_kept_by_name_and_claim_nothing(tmp_path: Path) -> None:
    lines = [
        event("metrics", 5, step=4, run_id="r", mfu=41.5, tokens_per_s="7", note="warm"),
        event("metrics", 3, mfu=40),
        envelope(event("metrics", 3, mfu=40)),
        event("metrics", mfu=1) | {"goodput_time": "soon"},
    ]
    log = read_lines(tmp_path, event("started"), *lines)
    assert len(log.table) == 1
    found = {one.name: (one.time.tolist(), one.step.tolist(), one.value.tolist()) for one in log.table.metrics}
    at = [(T0 + after) * 10**9 for after in (3, 5)]
    assert found == {"mfu": (at, [NO_STEP, 4], [40.0, 41.5]), "tokens_per_s": (at[1:], [4], [7.0])}


@pytest.mark.parametrize("name", ["coffee", 7, ["crashed"], True])
def test_unknown_event_does_not_count(tmp_path: Path, name: Any) -> None:
    log = read_lines(tmp_path, event(name), event("started"))
    assert [row[0] for row in rows(log)] == ["START"]
    assert where(log, "unknown_event") == ["1"]


def test_bad_value_affects_only_its_line(tmp_path: Path) -> None:
    bad = [event("crashed") | {"goodput_time": "noon"}, event("checkpoint_saved"), event("checkpoint_saved", step=1.5)]
    bad.append({"job_name": "j", "goodput_event": "started"})
    log = read_lines(tmp_path, *bad, event("terminated", rank=-1))
    assert [row[0] for row in rows(log)] == ["TERMINATED"]
    assert log.table.rank.tolist() == [NONE]
    assert sorted(where(log, "bad_value")) == ["1", "2", "3", "4", "5"]


def test_dropped_lines_are_reported_with_count_and_reason(tmp_path: Path) -> None:
    line = event("dropped", lines=5210, steps=5200, reason="queue\x1b[31m full", sink="cloud-logging")
    (said,) = found(read_lines(tmp_path, line, event("started")), "recorder_dropped")
    assert "5210 lines, including 5200 steps" in said.message
    assert "\x1b" not in said.message


def test_set_clocks_are_reported(tmp_path: Path) -> None:
    log = read_lines(tmp_path, event("clock_step", seconds=-3600.0), event("clock_step", seconds=3600.0))
    assert sorted(one.message.split("was ")[1] for one in found(log, "clock_step")) == [
        "set back during recording",
        "set forward during recording",
    ]


def test_recorder_log_adds_up(tmp_path: Path) -> None:
    """The first attempt crashes in its sixth step, 4 s after a save; the second continues from that save."""
    log = tmp_path / "run.jsonl"
    recorder = Recorder("j", log, heartbeat=0, signals=(), excepthook=False, at_exit=False)
    with pytest.raises(ValueError, match="lost"):
        crash_in_step_5(recorder)
    recorder = Recorder("j", log, heartbeat=0, signals=(), excepthook=False, at_exit=False)
    with recorder.run(at=T0 + 100, until=T0 + 140):
        with recorder.checkpoint_restore(3, at=T0 + 100, until=T0 + 106):
            pass
        with recorder.phase("training_prep", at=T0 + 106, until=T0 + 110):
            pass
        for step, after in ((4, 110), (5, 120), (6, 130)):
            recorder.begin_step(step, at=T0 + after)
    analysis = goodput_cli.analyze(log)
    assert analysis.job.formats == ("goodput", "orbax", "recorder")
    assert [one.code for one in analysis.diagnostics if one.severity != "info"] == []
    assert analysis.goodput.seconds == 40 + 30
    assert {row.category: row.seconds for row in analysis.badput if row.seconds} == {
        "training_prep": 10 + 4,
        "unproductive_checkpoint_save_time": 4,
        "unproductive_checkpoint_restore_time": 6,
        "wasted_progress_from_disruption": 15,
        "infrastructure_recovery_from_disruption": 31,
    }
    assert [row.ended for row in analysis.disruptions] == ["crashed"]


def crash_in_step_5(recorder: Recorder) -> None:
    """10 s of preparation, steps 0 to 3 in 40 s, a save of 4 s, and 15 s that are lost."""
    with recorder.run(at=T0, until=T0 + 69):
        with recorder.phase("training_prep", at=T0, until=T0 + 10):
            pass
        for step, after in enumerate((10, 20, 30, 40, 54, 64)):
            recorder.begin_step(step, at=T0 + after)
            if step == 3:
                with recorder.checkpoint_save(3, at=T0 + 50, until=T0 + 54):
                    pass
        raise ValueError("lost")

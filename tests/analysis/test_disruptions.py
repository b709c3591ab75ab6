"""Disruptions (accounting §10): what each lost, how long it lasted, and that the lines it cites exist and say so."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.analysis.disruptions.find import find_disruptions
from goodput_cli.analysis.disruptions.losses import find_losses
from goodput_cli.analysis.disruptions.rows import Disruption
from goodput_cli.analysis.results import Analysis
from goodput_cli.cli.main import run
from tests.accounting.test_properties import analyse, slowly
from tests.strategies import any_logs, messy_logs
from tests.support.json_answers import check_answer
from tests.support.story import (
    BASE,
    Line,
    Lines,
    account,
    crashed,
    end,
    finished,
    init,
    job_finished,
    loaded,
    prep,
    save,
    saved,
    scheduled,
    start,
    started,
    step,
    steps,
    terminated,
    told,
)

SECOND = 10**9
ROOT = Path(__file__).parent.parent.parent
Output = pytest.CaptureFixture[str]


def disruptions(*events: Lines, **options: Any) -> tuple[Disruption, ...]:
    return tuple(account(*events, **options).analysis.disruptions)


def only(*events: Lines, **options: Any) -> Disruption:
    (row,) = disruptions(*events, **options)
    return row


def after(ns: int) -> float:
    """Seconds after the story's beginning."""
    return (ns - BASE * SECOND) / SECOND


# What one disruption says.

CRASH = (start(0), steps(0, 6, at=10), start(100), init(102, 110), steps(3, 6, at=120), end(190))
"""Attempt 1 does steps 0 to 5 from 10 s to 60 s; attempt 2 is up at 100 s and goes on from step 3 at 120 s."""


def test_a_crash_between_two_checkpoints() -> None:
    row = only(*CRASH)
    assert (row.number, row.attempt, row.ended) == (1, 1, "silent")
    assert (row.last_step, row.resumed_step, row.steps_lost) == (5, 3, 3)
    assert after(row.last_sign_of_life_ns) == 60
    assert (after(row.next_start_ns), after(row.next_up_ns), after(row.death_latest_ns)) == (100, 100, 100)
    assert row.wasted_ns == 20 * SECOND  # steps 3 and 4; step 5 had just begun
    assert row.downtime_ns == 40 * SECOND
    assert row.restart_ns == 8 * SECOND
    assert row.lost_ns == 68 * SECOND
    assert row.time_to_first_step_ns == 20 * SECOND
    assert row.regained_after_ns == 90 * SECOND  # step 6 begins at 150 s
    assert (row.queued_ns, row.undetermined_ns) == (0, 0)
    assert (row.ranks_before, row.ranks_after) == (None, None)


def test_the_lines_behind_it() -> None:
    evidence = only(*CRASH).evidence
    assert (evidence.last_step, evidence.last_sign_of_life, evidence.ended) == ("stdin:7", "stdin:7", None)
    assert (evidence.next_start, evidence.next_up) == ("stdin:8", "stdin:8")
    assert (evidence.resumed_step, evidence.first_step, evidence.regained) == ("stdin:11", "stdin:11", "stdin:14")


def test_a_crash_right_after_a_checkpoint_loses_no_step_and_yet_costs_time() -> None:
    row = only(start(0), steps(0, 6, at=10), start(100), steps(6, 4, at=120), end(160))
    assert (row.steps_lost, row.wasted_ns) == (0, 0)
    assert after(row.last_sign_of_life_ns) == 70  # the last step is credited with the usual step time
    assert row.evidence.last_sign_of_life == "stdin:7"
    assert row.downtime_ns == 30 * SECOND
    assert row.regained_after_ns == 50 * SECOND


def test_a_clean_end_is_no_disruption() -> None:
    assert disruptions(start(0), steps(0, 4, at=10), end(50), start(100), steps(4, 4, at=110), end(150)) == ()


def test_progress_that_is_never_regained() -> None:
    row = only(start(0), steps(0, 9, at=10), start(200), steps(2, 3, at=210), end(240))
    assert row.regained_after_ns is None
    assert row.evidence.regained is None


def test_a_start_that_led_nowhere() -> None:
    first, second = disruptions(
        start(0), steps(0, 5, at=10), start(100), init(105, 110), start(150), steps(3, 5, at=170), end(220)
    )
    assert (first.last_step, first.steps_lost, first.resumed_step) == (4, 2, 3)
    assert (second.last_step, second.steps_lost, second.resumed_step) == (None, 0, 3)
    assert first.time_to_first_step_ns == 70 * SECOND
    assert second.time_to_first_step_ns == 20 * SECOND
    assert second.evidence.last_step is None
    assert second.regained_after_ns == 80 * SECOND  # from 110 s, the init's end, to step 5 at 190 s
    assert (first.downtime_ns, second.downtime_ns) == (50 * SECOND, 45 * SECOND)  # the init is not downtime


def test_a_rollback_is_charged_to_the_disruption_that_took_the_steps_back() -> None:
    """Attempt 1 does 0..10; attempt 2 goes on from 5 and dies in 7; attempt 3 goes back to 2."""
    first, second = disruptions(
        start(0), steps(0, 11, at=10), start(200), steps(5, 3, at=210), start(300), steps(2, 12, at=310), end(430)
    )
    assert (first.steps_lost, second.steps_lost) == (6, 6)  # 5..10; then 5..7 of attempt 2 and 2..4 of attempt 1
    assert (first.wasted_ns, second.wasted_ns) == (50 * SECOND, 50 * SECOND)


def test_a_branch_that_was_given_up_is_charged_to_its_own_end() -> None:
    """Attempt 3 goes on from 8, which only attempt 1 had reached: what attempt 2 did is lost."""
    first, second = disruptions(
        start(0), steps(0, 11, at=10), start(200), steps(5, 2, at=210), start(300), steps(8, 5, at=310), end(360)
    )
    assert (first.steps_lost, second.steps_lost) == (3, 2)  # 8..10 of attempt 1, 5 and 6 of attempt 2


def test_how_an_attempt_ended() -> None:
    def ending(*lines: Line) -> Disruption:
        return only(start(0), steps(0, 5, at=10), *lines, start(100), steps(3, 5, at=110), end(170))

    assert ending(terminated(55)).ended == "terminated"
    assert ending(crashed(55)).ended == "crashed"
    assert ending(terminated(55)).evidence.ended == "stdin:7"
    assert after(ending(terminated(55)).death_latest_ns) == 55
    assert ending().ended == "silent"


@pytest.mark.parametrize("flag", [True, 1, "true"])
def test_a_save_that_had_reached_a_preemption_says_why(flag: object) -> None:
    told_why = json.dumps(
        json.loads(save(52, 4, 4)) | {"reached_preemption": flag, "preemption_received_at": BASE + 50}
    )
    row = only(start(0), steps(0, 5, at=10), told_why, terminated(58), start(100), steps(4, 5, at=110), end(170))
    assert (row.ended, row.evidence.ended) == ("preempted", "stdin:7")


def test_a_save_that_had_not_reached_a_preemption_says_nothing() -> None:
    said = json.dumps(json.loads(save(52, 4, 4)) | {"reached_preemption": False})
    assert only(start(0), steps(0, 5, at=10), said, start(100), steps(4, 5, at=110), end(170)).ended == "silent"


def test_ranks_and_a_start_burst() -> None:
    row = only(
        [started(0, rank) for rank in (0, 1, 2)], loaded(0, 5), saved(20, 50), crashed(60, 1),
        started(100, 0), started(104, 1), loaded(20, 110), saved(40, 150), job_finished(151),
    )  # fmt: skip
    assert (row.ranks_before, row.ranks_after) == (3, 2)
    assert (after(row.next_start_ns), after(row.next_up_ns)) == (100, 104)
    assert (row.evidence.next_start, row.evidence.next_up) == ("stdin:7", "stdin:8")
    assert row.downtime_ns == 44 * SECOND


# Checkpoint logs.


def test_a_silent_death_in_a_checkpoint_log_is_given_by_its_bounds() -> None:
    row = only(
        started(0), loaded(0, 10), saved(20, 60), saved(40, 100),
        started(200), loaded(40, 220), saved(60, 260), job_finished(261),
    )  # fmt: skip
    assert (after(row.last_sign_of_life_ns), after(row.death_latest_ns)) == (100, 200)
    assert row.undetermined_ns == row.downtime_ns == 100 * SECOND
    assert (row.wasted_ns, row.steps_lost) == (0, None)  # steps after the last save are not recorded: unknown, not 0
    assert (row.last_step, row.resumed_step) == (40, 40)
    assert (row.evidence.last_step, row.evidence.resumed_step) == ("stdin:4", "stdin:6")
    assert row.restart_ns == 20 * SECOND  # the restore; the next stretch is not slower than the usual


def test_the_worked_example() -> None:
    """Accounting §6: a crash at step 70 after a save at 50 costs 40 min of training and 15 min of restart."""
    row = only(
        started(0), loaded(25, 300), finished(50, 3300), saved(50, 3600), finished(70, 6000), crashed(6000),
        started(6900), loaded(50, 7200), finished(75, 11700), saved(75, 12000), job_finished(12000),
    )  # fmt: skip
    assert (row.last_step, row.resumed_step, row.steps_lost) == (70, 50, 20)
    assert (row.wasted_ns, row.downtime_ns, row.restart_ns) == (2400 * SECOND, 900 * SECOND, 300 * SECOND)
    assert row.time_to_first_step_ns == 4800 * SECOND  # the first record of progress: step 75
    assert row.evidence.regained == "stdin:9"
    assert row.ended == "crashed"


def test_the_queue_is_no_downtime_and_costs_nothing() -> None:
    row = only(
        started(0), loaded(0, 10), saved(20, 60), crashed(70), scheduled(80), started(140), loaded(20, 150),
        saved(40, 190), job_finished(191),
    )  # fmt: skip
    assert (row.queued_ns, row.downtime_ns) == (60 * SECOND, 10 * SECOND)
    assert row.lost_ns == row.wasted_ns + row.downtime_ns + row.restart_ns


def test_a_window_selects_the_disruptions_that_began_in_it() -> None:
    story = (
        start(0), steps(0, 5, at=10), start(100), steps(4, 5, at=110), start(200), prep(202, 205), steps(8, 5, at=210),
        end(260),
    )  # fmt: skip
    assert [row.number for row in disruptions(*story)] == [1, 2]
    (second,) = disruptions(*story, window=(140, 180))
    assert second == disruptions(*story)[1]  # whole, whatever the window


def test_an_attempt_that_died_at_the_end_of_the_job_is_a_disruption_of_the_job() -> None:
    """A start in the same second as the last termination, as whole-second clocks write it."""
    assert len(disruptions(started(0), loaded(0, 1), saved(5, 10), terminated(20), started(20))) == 1


# What holds for every log.


@slowly
@given(st.one_of(any_logs(), messy_logs()), st.sampled_from(({}, {"exclude": ("+20s/+50s",)}, {"async_saves": True})))
def test_disruptions_never_count_a_second_twice(lines: Sequence[str], question: dict[str, object]) -> None:
    analysis = analyse(lines, **question)
    if analysis is None:
        return
    rows = analysis.disruptions
    assert [row.attempt for row in rows] == (analysis.timeline.disruptions + 1).tolist()
    amounts = {row.category: row.ns for row in analysis.badput}
    down = ("infrastructure_recovery_from_disruption", "disruption_undetermined", "stopped")
    assert sum(row.wasted_ns for row in rows) <= amounts.get("wasted_progress_from_disruption", 0)
    assert sum(row.downtime_ns for row in rows) <= sum(amounts.get(name, 0) for name in down)
    assert sum(row.queued_ns for row in rows) <= amounts.get("queued", 0)
    assert sum(row.lost_ns for row in rows) <= analysis.window.counted_ns
    assert int(find_losses(analysis.timeline).ns.sum()) <= amounts.get("wasted_progress_from_disruption", 0)
    assert all(amount is None or amount >= 0 for row in rows for amount in (row.steps_lost, row.regained_after_ns))


@slowly
@given(st.one_of(any_logs(), messy_logs()))
def test_every_line_cited_exists_and_says_so(lines: Sequence[str]) -> None:
    analysis = analyse(lines)
    for row in analysis.disruptions if analysis is not None else ():
        check_evidence(row, lines)


@pytest.mark.parametrize("log", sorted((ROOT / "sample_logs").glob("*.jsonl")), ids=lambda path: str(path.name))
def test_every_line_cited_of_the_sample_logs_says_so(log: Path) -> None:
    from goodput_cli import analyze

    lines = log.read_text(encoding="utf-8").splitlines()
    rows = analyze(log).disruptions
    assert rows
    for row in rows:
        check_evidence(row, lines)


def check_evidence(row: Disruption, lines: Sequence[str]) -> None:
    """Look up each line that a row cites, and read there what the row says."""
    cited = {name: line_at(place, lines) for name, place in vars(row.evidence).items() if place is not None}
    died = row.last_sign_of_life_ns
    assert row.next_start_ns in instants(cited["next_start"])
    assert row.next_up_ns in instants(cited["next_up"])
    assert died in instants(cited["last_sign_of_life"]) or number(cited["last_sign_of_life"]) == row.last_step
    assert (row.last_step is None) == ("last_step" not in cited)
    if row.last_step is not None:
        assert number(cited["last_step"]) == row.last_step
    if "resumed_step" in cited:
        assert number(cited["resumed_step"]) == row.resumed_step
    if row.time_to_first_step_ns:
        assert row.next_up_ns + row.time_to_first_step_ns in instants(cited["first_step"])
    if row.regained_after_ns:
        assert died + row.regained_after_ns in instants(cited["regained"])
        assert row.last_step is None or number(cited["regained"]) >= row.last_step
    if row.ended in ("crashed", "terminated"):
        assert max(instants(cited["ended"])) <= row.death_latest_ns or row.ended == "crashed"
        assert any(word in json.dumps(cited["ended"]) for word in ("terminated", "crashed", "end_time", "finished"))


def line_at(place: str, lines: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lines[int(place.rpartition(":")[2]) - 1])
    return found


def number(line: dict[str, Any]) -> int:
    return int(line.get("step_count", line.get("step", -1)))


def instants(line: dict[str, Any]) -> set[int]:
    """Every instant (ns) that a line names, ends of intervals with a duration among them."""
    if "timestamp" in line:
        moment = datetime.fromisoformat(line["timestamp"])
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return {round(moment.timestamp() * 10**6) * 1000}
    found = {key: value for key, value in line.items() if key.endswith(("_time", "_timestamp")) and value is not None}
    for key in [key for key in found if key.endswith("_start_time")]:
        duration = line.get(key.replace("_start_time", "_duration_secs"))
        if duration is not None:
            found[key + "+"] = found[key] + duration
    return {round(float(value) * 10**6) * 1000 for value in found.values()}


# The command.


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(told(*CRASH)) + "\n", encoding="utf-8")
    return path


def answer_of(capsys: Output, *arguments: str) -> Any:
    assert run([*arguments, "-q", "--format", "json"]) == 0
    value = json.loads(capsys.readouterr().out)
    check_answer(value, "analysis" if arguments[0] == "analyze" else arguments[0])
    return value


def test_json_of_the_command_and_of_analyze_agree(log: Path, capsys: Output) -> None:
    command, analysis = answer_of(capsys, "disruptions", "run.jsonl"), answer_of(capsys, "analyze", "run.jsonl")
    for row in command["disruptions"]:
        assert (row.pop("accelerator_hours"), row.pop("cost")) == (None, None)
    assert command["disruptions"] == analysis["disruptions"]
    assert command["reliability"] == analysis["reliability"]
    assert command["disruptions"][0]["evidence"]["next_start"] == "run.jsonl:8"
    assert command["cost"] is None


def test_what_it_cost(log: Path, capsys: Output) -> None:
    value = answer_of(capsys, "disruptions", "run.jsonl", "--accelerators", "90", "--price-per-hour", "2")
    assert value["disruptions"][0]["accelerator_hours"] == pytest.approx(1.7)  # 68 s x 90
    assert value["cost"] == {
        "accelerators": 90.0,
        "price_per_hour": 2.0,
        "lost_seconds": 68.0,
        "accelerator_hours": pytest.approx(1.7),
        "cost": pytest.approx(3.4),
    }
    hours_only = answer_of(capsys, "disruptions", "run.jsonl", "--accelerators", "90")
    assert hours_only["cost"]["cost"] is None


def test_a_price_needs_accelerators(log: Path, capsys: Output) -> None:
    assert run(["disruptions", "run.jsonl", "--price-per-hour", "2"]) == 2
    assert "--accelerators" in capsys.readouterr().err
    assert run(["disruptions", "run.jsonl", "--accelerators", "0"]) == 2


def test_the_table_fits_and_names_the_lines(log: Path, capsys: Output) -> None:
    assert run(["disruptions", "run.jsonl", "-q"]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "1 disruption in 2 min 30 s of being up" in out
    assert "last step 7, last sign of life 7, next start 8" in " ".join(out.split())
    assert "not shown for want of room" not in out


def test_csv_has_exact_values_and_every_line(log: Path, capsys: Output) -> None:
    assert run(["disruptions", "run.jsonl", "-q", "--format", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["steps_lost"], row["wasted_seconds"], row["downtime_seconds"]) == ("3", "20", "40")
    assert (row["evidence_last_step"], row["evidence_ended"]) == ("run.jsonl:7", "")
    assert len(row) == len(set(row))


def test_a_job_without_disruptions(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "calm.jsonl"
    path.write_text("\n".join(told(start(0), steps(0, 5, at=10), end(60))) + "\n", encoding="utf-8")
    value = answer_of(capsys, "disruptions", str(path))
    assert value["disruptions"] == []
    assert value["reliability"]["mtbf_seconds"] is None
    assert run(["disruptions", str(path), "-q"]) == 0
    assert "0 disruptions in 1 min 00 s of being up: MTBF at least" in capsys.readouterr().out


def test_the_library_answers_the_same(log: Path) -> None:
    from goodput_cli import analyze

    analysis: Analysis = analyze(log)
    again = find_disruptions(analysis.timeline, analysis.window.start_ns, analysis.window.end_ns)
    assert analysis.disruptions == again
    assert step(5, 60) in log.read_text(encoding="utf-8")

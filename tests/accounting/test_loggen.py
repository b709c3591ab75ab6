"""The log generator: the same bytes for the same seed, the facts it promises, and the sample logs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from loggen import Ending, Entry, Model, PlannedAttempt, Scenario, log_bytes
from loggen.__main__ import main
from loggen.samples import SAMPLES

SAMPLE_LOGS = Path(__file__).parent.parent.parent / "sample_logs"
SMALL = Scenario(seed=5, lines=600, disruption_every=60, save_every=20, eval_every=15)
ELASTIC = replace(SMALL, slices=4, elastic_restarts=2, rollback_restarts=3, failed_restarts=3)
RESILIENCY = replace(SMALL, model=Model.RESILIENCY, ranks=3, lines=300)


def records(scenario: Scenario) -> list[dict[str, Any]]:
    text, _ = log_bytes(scenario)
    return [json.loads(line) for line in text.splitlines()]


def steps_of(scenario: Scenario) -> list[int]:
    return [record["step_count"] for record in records(scenario) if "step_count" in record]


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_sample_logs_equal_generator_output(name: str) -> None:
    text, _ = log_bytes(SAMPLES[name])
    assert (SAMPLE_LOGS / f"{name}.jsonl").read_bytes() == text


def test_sample_command_writes_a_sample_log(tmp_path: Path) -> None:
    output = tmp_path / "night.jsonl"
    result = CliRunner().invoke(main, ["sample", "llm-pretrain", "-o", str(output)])
    assert result.exit_code == 0
    assert output.read_bytes() == (SAMPLE_LOGS / "llm-pretrain.jsonl").read_bytes()


def test_sample_log_has_the_planned_night() -> None:
    night = SAMPLES["llm-pretrain"]
    text, truth = log_bytes(night)
    assert 4000 < truth.lines < 6000
    assert (truth.attempts, truth.failed_starts, truth.last_step, truth.kept_steps) == (6, 1, 3400, 3401)
    for fact in ("restore", "save", "eval_step", "data_loading", "scale_up", "slice_down", "elastic_reinit"):
        assert fact.encode() in text


@pytest.mark.parametrize("scenario", [SMALL, ELASTIC, RESILIENCY, replace(SMALL, shuffle=True, bad_share=0.05)])
def test_log_bytes_depend_on_scenario_and_seed_only(scenario: Scenario) -> None:
    assert log_bytes(scenario) == log_bytes(scenario)
    assert log_bytes(scenario)[0] != log_bytes(replace(scenario, seed=6))[0]


@pytest.mark.parametrize("scenario", [SMALL, replace(SMALL, data_loading_every=1), ELASTIC, RESILIENCY])
@pytest.mark.parametrize("lines", [50, 3000])
def test_log_has_about_the_requested_lines(scenario: Scenario, lines: int) -> None:
    truth = log_bytes(replace(scenario, lines=lines))[1]
    assert 0.5 * lines < truth.lines < 1.5 * lines + 10


def test_truth_counts_match_the_log() -> None:
    _, truth = log_bytes(SMALL)
    log = records(SMALL)
    starts = sum("job_start_time" in record for record in log)
    assert truth.lines == len(log)
    assert truth.attempts == starts == truth.disruptions + 1
    assert truth.steps_worked == len(steps_of(SMALL))
    assert truth.last_step == steps_of(SMALL)[-1]
    assert truth.kept_steps == truth.last_step + 1


def test_restart_resumes_after_the_newest_complete_save() -> None:
    saved = 0
    before = -1
    for record in records(SMALL):
        if record.get("event_type") == "save":
            saved = max(saved, record["step"])
        step = record.get("step_count")
        if step is not None and step <= before:
            assert step == (saved + 1 if saved else 0)
        before = before if step is None else step


def test_lines_are_in_order_of_writing() -> None:
    entries = records(replace(ELASTIC, envelopes=True, ranks=3, data_loading_every=1))
    times = [entry["timestamp"] for entry in entries]
    assert times == sorted(times)
    assert len({entry["insertId"] for entry in entries}) == len(entries)


def test_steps_of_a_log_do_not_overlap() -> None:
    busy_until = 0.0
    for record in records(SMALL):
        if record.get("event_type") == "save":
            start, span = (record[f"checkpoint_manager_blocking_{key}"] for key in ("start_time", "duration_secs"))
            busy_until = start + span
        busy_until = record.get("custom_badput_event_end_time", busy_until)
        assert record.get("step_start_time", busy_until) >= busy_until - 1e-6


def test_envelopes_contain_the_same_payloads() -> None:
    entries = records(replace(SMALL, envelopes=True))
    assert [entry["jsonPayload"] for entry in entries] == records(SMALL)


def test_shuffling_keeps_all_lines() -> None:
    plain, mixed = (log_bytes(replace(SMALL, shuffle=shuffle))[0].splitlines() for shuffle in (False, True))
    assert plain != mixed
    assert Counter(plain) == Counter(mixed)


def test_bad_lines_are_where_truth_reports_them() -> None:
    text, truth = log_bytes(replace(SMALL, bad_share=0.1))
    lines = text.splitlines()
    bad = {line.line for line in truth.bad}
    assert len(bad) == len(truth.bad)
    assert 30 < len(bad) < 90
    assert b"\n".join(line for place, line in enumerate(lines, 1) if place not in bad) + b"\n" == log_bytes(SMALL)[0]
    unreadable = {place for place, line in enumerate(lines, 1) if not _is_json_object(line)}
    assert unreadable == {line.line for line in truth.bad if line.why not in ("wrong_type", "unrecognised")}


def _is_json_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def test_all_ranks_start_in_a_resiliency_log() -> None:
    log = records(RESILIENCY)
    _, truth = log_bytes(RESILIENCY)
    starts = Counter(record["node_rank"] for record in log if record["event_type"] == "job_started")
    assert starts == dict.fromkeys(range(3), truth.attempts)
    assert max(record.get("step", 0) for record in log) == truth.kept_steps


def test_job_without_disruptions_is_one_attempt() -> None:
    _, truth = log_bytes(replace(SMALL, disruption_every=0, clean_end=False))
    assert (truth.attempts, truth.disruptions, truth.kept_steps) == (1, 0, None)


def test_scenario_with_given_attempts_writes_them() -> None:
    told = replace(
        SMALL,
        slices=2,
        attempts=(
            PlannedAttempt(loaded=0, last_step=30, slices=2, cut=0.5),
            PlannedAttempt(loaded=20, last_step=25, entry=Entry.SLICE_DOWN, slices=1),
            PlannedAttempt(loaded=25, last_step=27, entry=Entry.SCALE_UP, slices=2, ending=Ending.CLEAN),
        ),
    )
    assert steps_of(told) == [*range(31), *range(21, 28)]
    assert log_bytes(told)[1].attempts == 2  # nothing is redone after the slice came back


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Scenario(lines=0),
        lambda: Scenario(bad_share=1.0),
        lambda: Scenario(save_seconds=-1.0),
        lambda: Scenario(step_seconds=0.0),
        lambda: Scenario(elastic_restarts=1),
        lambda: Scenario(scheduled=True),
        lambda: Scenario(model=Model.RESILIENCY, save_every=0),
    ],
)
def test_invalid_scenario_raises_an_error(wrong: Callable[[], Scenario]) -> None:
    with pytest.raises(ValueError, match=r"must|needs|only"):
        wrong()


def test_write_command_writes_the_truth_file(tmp_path: Path) -> None:
    log, truth = tmp_path / "log.jsonl", tmp_path / "truth.json"
    options = ["--seed", "5", "--lines", "300", "--shuffle", "--bad-share", "0.02", "--start", "2026-03-01"]
    result = CliRunner().invoke(main, ["write", *options, "-o", str(log), "--truth", str(truth)])
    assert result.exit_code == 0
    assert json.loads(truth.read_text())["lines"] == len(log.read_bytes().splitlines())


@pytest.mark.parametrize("options", [["--start", "soon"], ["--lines", "0"], ["--elastic-restarts", "2"]])
def test_wrong_options_exit_with_usage_error(options: list[str]) -> None:
    result = CliRunner().invoke(main, ["write", *options])
    assert result.exit_code == 2
    assert "Traceback" not in result.output

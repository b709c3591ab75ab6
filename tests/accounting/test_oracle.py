"""The oracle gives the worked answers, keeps its own promises, and applies the rules to small logs."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracle import Answer, account, account_path
from tests.strategies import any_logs, doubled, messy_logs, shifted, shuffled, with_junk
from tests.support.story import (
    BASE,
    crashed,
    custom,
    end,
    finished,
    init,
    job_finished,
    loaded,
    loading,
    save,
    saved,
    scheduled,
    start,
    started,
    step,
    steps,
    terminated,
    wait,
)

HERE = Path(__file__).parent.parent
EXAMPLES = sorted(path.stem for path in (HERE / "examples").glob("*.jsonl"))
SAMPLES = HERE.parent / "sample_logs"

RECOVERY = "infrastructure_recovery_from_disruption"
WASTED = "wasted_progress_from_disruption"
SAVE = "unproductive_checkpoint_save_time"
RESTORE = "unproductive_checkpoint_restore_time"


def seconds(answer: Answer) -> dict[str, float]:
    return {category: float(amount) for category, amount in answer.seconds.items()}


# The worked answers


@pytest.mark.parametrize("name", EXAMPLES)
def test_oracle_gives_answers_of_examples(name: str) -> None:
    expected = json.loads((HERE / "examples" / f"{name}.expected.json").read_text(encoding="utf-8"))
    answer = account_path(HERE / "examples" / f"{name}.jsonl", **expected["arguments"])
    assert seconds(answer) == expected["seconds"]
    assert answer.attempts == expected["attempts"]
    assert answer.t1_ns - answer.t0_ns == expected["total_seconds"] * 10**9


def test_oracle_examples_are_complete() -> None:
    assert len(EXAMPLES) == 18


def test_oracle_gives_answer_of_the_primer() -> None:
    answer = account_path(SAMPLES / "primer-50-percent.jsonl", reference_step_time=120)
    minutes = {category: amount / 60 for category, amount in seconds(answer).items()}
    assert minutes == {"productive": 100, RESTORE: 10, WASTED: 40, RECOVERY: 15, SAVE: 10, "training_slowdown": 25}


def test_oracle_gives_answer_of_the_real_run() -> None:
    answer = account_path(SAMPLES / "fsdp-2-attempts.jsonl", reference_step_time="0.002569")
    found = seconds(answer)
    total = sum(found.values())
    assert round(100 * found["productive"] / total, 2) == 21.72
    assert round(total, 2) == 118.25
    assert [round(found[key], 3) for key in ("program_startup", "training_slowdown")] == [5.299, 0.947]
    assert [round(found[key], 2) for key in (RESTORE, RECOVERY, WASTED, "other")] == [62.5, 19.48, 2.33, 2.0]


# Its own promises

promise = settings(deadline=None, suppress_health_check=list(HealthCheck))


@promise
@given(st.data(), any_logs() | messy_logs())
def test_oracle_same_facts_give_the_same_answer(data: st.DataObject, lines: list[str]) -> None:
    told_again = data.draw(shuffled(data.draw(doubled(data.draw(with_junk(lines))))))
    assert account(told_again) == account(lines)


@promise
@given(any_logs(), st.sampled_from([10**8, 7 * 10**9 + 3, 10**12]))
def test_oracle_tick_does_not_change_the_answer(lines: list[str], tick: int) -> None:
    assert account(lines, tick=tick) == account(lines)


@promise
@given(any_logs(), st.integers(-(10**6), 10**6))
def test_oracle_shift_of_times_moves_only_the_window(lines: list[str], shift: int) -> None:
    here, there = account(lines), account(shifted(lines, shift))
    assert (there.ns, there.kept_steps) == (here.ns, here.kept_steps)
    assert there.t0_ns - here.t0_ns == shift * 10**9


@promise
@given(any_logs(), st.integers(0, 5000), st.integers(1, 2000))
def test_oracle_options_keep_the_sum(lines: list[str], begin: int, length: int) -> None:
    instant = (BASE + begin) * 10**9
    answer = account(lines, exclude=[(instant, instant + length * 10**9)], reference_step_time=1.7)
    assert sum(answer.ns.values()) == answer.t1_ns - answer.t0_ns


# §1 The promise


def test_start_at_the_time_of_an_end_follows_it() -> None:
    answer = account([start(0), *steps(0, 3, at=10), end(40), start(40), *steps(3, 2, at=50), end(70)])
    assert (answer.attempts, answer.disruptions) == (2, 0)
    assert seconds(answer) == {"other": 20, "productive": 50}


def test_events_after_a_start_move_with_it_past_an_end() -> None:
    lines = [start(0), *steps(0, 3, at=10), end(40), start(40), *init(40, 48), *steps(3, 2, at=50), end(70)]
    assert seconds(account(lines)) == {"other": 12, "productive": 50, "tpu_initialization": 8}


def test_as_of_window_ends_with_an_ended_job() -> None:
    run = [started(0), loaded(0, 5), saved(20, 25)]
    assert account([*run, terminated(30)], as_of=(BASE + 90) * 10**9).t1_ns == (BASE + 30) * 10**9
    assert account(run, as_of=(BASE + 90) * 10**9).t1_ns == (BASE + 90) * 10**9
    answer = account([*run, crashed(30), terminated(31)], as_of=(BASE + 90) * 10**9)
    assert answer.t1_ns == (BASE + 90) * 10**9
    assert seconds(answer)[RECOVERY] == 60


# §3 Attempts


def test_dropped_report_of_a_second_host_sets_the_delay() -> None:
    late = [step(n, 10 + 10 * n + 35) for n in range(6)]
    answer = account([start(0), *steps(0, 6, at=10), *late, end(100)])
    assert answer.attempts == 1


def test_step_back_that_repeats_all_steps_is_a_restart() -> None:
    answer = account([start(0), *steps(0, 6, at=10), *steps(3, 5, at=200), end(250)])
    assert (answer.attempts, answer.disruptions) == (2, 1)
    assert seconds(answer) == {"other": 10, "productive": 80, WASTED: 20, RECOVERY: 140}


def test_step_that_continues_after_a_termination_is_not_start() -> None:
    left = terminated(42, rank=3)
    assert account([start(0), *steps(0, 8, at=10), left, end(90)]).attempts == 1


def test_step_after_a_termination_is_a_lost_start() -> None:
    lines = [start(0), *steps(0, 4, at=10), terminated(45), *init(200, 210), *steps(4, 4, at=210)]
    answer = account([*lines, end(250)])
    assert (answer.attempts, answer.disruptions) == (2, 1)
    assert seconds(answer) == {"other": 10, "productive": 75, "tpu_initialization": 10, RECOVERY: 155}


def test_late_termination_in_a_burst_ends_the_attempt_before() -> None:
    first = [started(0, rank=0), started(1, rank=1), loaded(0, 10)]
    burst = [started(60, rank=0), terminated(61, rank=1), started(62, rank=1)]
    rest = [loaded(20, 70), saved(40, 90), job_finished(91)]
    answer = account([*first, saved(20, 30), *burst, *rest], reference_step_time=1)
    assert answer.attempts == 2
    assert seconds(answer)[WASTED] == 30  # to the next start: the termination came after it


def test_late_terminations_in_a_burst_end_the_attempt_before() -> None:
    first = [started(0, rank=n) for n in range(3)]
    burst = [started(50, rank=0), terminated(51, rank=1), terminated(52, rank=2)]
    rest = [started(53, rank=1), started(53, rank=2), loaded(0, 60)]
    assert account([*first, *burst, *rest]).attempts == 2


# §3 Open intervals, signs of life


def test_open_interval_ends_at_the_next_start_of_its_kind() -> None:
    lines = [start(0), *custom("a", 2), *custom("a", 5, 9), *steps(0, 3, at=20), end(50)]
    assert seconds(account(lines)) == {"custom_badput_events:A": 7, "other": 13, "productive": 30}


def test_prefetched_loads_are_paired_first_in_first_out() -> None:
    loads = [*loading(1), *loading(2, 4), *loading(None, 7)]
    assert seconds(account([start(0), *loads, *steps(0, 3, at=20), end(50)]))["data_loading_sync"] == 6


def test_elastic_wait_ends_in_next_attempt_of_its_process() -> None:
    answer = account(
        [start(0), *steps(0, 5, at=10), *wait("slice_down", 45, 80), *steps(5, 1, at=50), *steps(2, 5, at=90), end(140)]
    )
    assert answer.attempts == 2
    assert seconds(answer)["elastic_slice_down"] == 35


# §4 Progress


def test_credited_step_is_cut_at_its_termination() -> None:
    lines = [start(0), *steps(0, 4, at=10), terminated(44), start(100), *steps(4, 3, at=110), end(140)]
    answer = account(lines, reference_step_time=10)
    assert answer.kept_steps == Fraction(34, 10) + 3
    assert seconds(answer) == {"other": 20, "productive": 64, RECOVERY: 56}


def test_credited_step_below_the_resumed_gets_one_step_time() -> None:
    answer = account([start(0), *steps(0, 4, at=10), start(100), *steps(34, 3, at=110), end(140)])
    assert seconds(answer) == {"other": 20, "productive": 70, RECOVERY: 50}


def test_span_kept_in_part_is_wasted_after_its_kept_part() -> None:
    lines = [
        start(0),
        *steps(0, 4, at=0, every=100, stride=10),
        save(270, 10, 25),
        start(400),
        *steps(25, 4, at=400, every=100, stride=10),
        end(800),
    ]
    found = seconds(account(lines))
    assert found == {"productive": 245 + 400, WASTED: 55, RECOVERY: 100}


def test_last_step_is_productive_for_one_usual_stride() -> None:
    answer = account([start(0), *steps(0, 4, at=0, every=10, stride=10), end(90)])
    assert seconds(answer) == {"productive": 40, "other": 50}


def test_step_finished_inside_a_save_makes_it_asynchronous() -> None:
    lines = [started(0), loaded(0, 10), finished(20, 30)]
    lines += [finished(40, 50), saved(20, 52), finished(60, 70)]
    answer = account([*lines, saved(60, 75), job_finished(80)], reference_step_time=1)
    assert seconds(answer) == {RESTORE: 10, "productive": 60, "other": 10}


def test_first_attempt_without_load_begins_at_0_when_up() -> None:
    lines = [started(0, rank=0), started(4, rank=1), saved(20, 44)]
    answer = account([*lines, saved(40, 64), job_finished(65)], reference_step_time=1)
    assert seconds(answer) == {"other": 5, "productive": 40, "program_startup": 20}


def test_crashed_last_attempt_keeps_its_saved_steps() -> None:
    lines = [started(0), loaded(0, 0), saved(20, 20)]
    answer = account([*lines, finished(40, 40), crashed(45)], reference_step_time=1)
    assert seconds(answer) == {"productive": 20, WASTED: 25}
    assert answer.kept_steps == 20


# §5, §6


def test_queued_is_empty_if_an_event_is_in_between() -> None:
    lines = [started(0), loaded(0, 0), saved(20, 20)]
    again = [started(60), loaded(20, 61), saved(40, 81)]
    crash = crashed(30)
    assert seconds(account([*lines, crash, scheduled(40), *again]))["queued"] == 20
    assert "queued" not in seconds(account([*lines, scheduled(25), crash, *again]))


def test_excluded_part_does_not_count_with_a_reference() -> None:
    excluded = [((BASE + 15) * 10**9, (BASE + 20) * 10**9)]
    answer = account([start(0), *steps(0, 5, at=10), end(60)], reference_step_time=8, exclude=excluded)
    assert answer.kept_steps == Fraction(9, 2)
    assert seconds(answer) == {"excluded": 5, "productive": 36, "training_slowdown": 9, "other": 10}


def test_auto_is_the_usual_pace() -> None:
    """Without the first step, neighbors differ by 8 % and more: 12 s. An outlier of 30 s does not count."""
    for lengths, reference in (([50, 10, 11, 12, 13, 14], 12), ([50, 10, 10, 10, 11, 11, 30, 10], Fraction(31, 3))):
        lines = [step(n, sum(lengths[:n])) for n in range(len(lengths) + 1)]
        told = account([start(0), *lines, end(300)], reference_step_time="auto")
        assert told.reference_step_time == reference * 10**9


def test_empty_log_raises_an_error() -> None:
    with pytest.raises(ValueError, match="no event"):
        account(["", "{}", "nonsense"])

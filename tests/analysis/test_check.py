"""`goodput check`: a small log for every finding, and a similar log without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from goodput_cli.analysis.jobs import check_log
from goodput_cli.analysis.question import make_question
from goodput_cli.diagnostics.diagnostic import CODES, Diagnostic, code_texts
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.events.formats.collected import TRACKED
from goodput_cli.events.mappings.registry import RESERVED, SHIPPED, SHIPPED_OF_RECORDS
from goodput_cli.events.read import read_events
from tests.strategies import any_logs
from tests.support.logs import FINE, checked, found_codes, hosts, lines_of, renamed, the, written
from tests.support.story import (
    crashed,
    custom,
    end,
    finished,
    loaded,
    save,
    saved,
    start,
    started,
    step,
    steps,
    terminated,
)

ROOT = Path(__file__).parent.parent.parent
Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("folder")


def test_good_log_has_no_findings() -> None:
    report = checked(FINE)
    assert report.findings == ()
    assert (report.jobs, report.runs, report.events) == (1, 1, 17)


# Information that a log lacks.


def test_end_that_is_not_logged_is_found() -> None:
    assert lines_of(the(checked(FINE[:-1]), "end_not_logged")) == [16]
    assert "end_not_logged" not in found_codes(checked(FINE))


def test_failure_without_a_message_is_found() -> None:
    again = (start(200.5), steps(12, 3, at=210.25), end(240.5))
    assert lines_of(the(checked(FINE[:-1], again), "silent_death")) == [16]
    assert "silent_death" not in found_codes(checked(FINE[:-1], crashed(150.5), again))


def test_time_without_category_in_a_checkpoint_log_is_found() -> None:
    before = (started(0.5), loaded(0, 5.5), finished(10, 65), saved(10, 66))
    after = (started(300.5), loaded(10, 305.5), finished(20, 365), terminated(366))
    found = the(checked(before, after), "undetermined_time")
    assert found.severity == "warning"
    assert lines_of(found) == [4]
    assert "undetermined_time" not in found_codes(checked(before, terminated(70), after))


def test_log_without_checkpoints_is_found() -> None:
    lines = FINE
    found = the(checked([line for line in lines if "checkpoint_manager" not in line]), "no_checkpoint_events")
    assert "unknown, not 0" in found.effect
    assert found.count == 1
    assert found.advice.startswith("Turn on Orbax")  # as for other logs of the recorder


def test_advice_fits_the_log_format() -> None:
    code = CODES["no_checkpoint_events"]
    assert code.advice_for(("launcher", "megatron")).startswith("Megatron prints them")
    assert code.advice_for(("a-plug-in",)) == code.advice
    known = {*RESERVED, *SHIPPED, *SHIPPED_OF_RECORDS, *(one.name for one in TRACKED)}
    assert {name for one in CODES.values() for names in one.of_formats for name in names.split()} <= known


def test_saves_without_duration_are_found() -> None:
    lines = (started(0.5), loaded(0, 5.5), saved(10, 65), saved(20, 125), terminated(130))
    report = checked(lines)
    assert the(report, "save_time_unknown").count == 2
    assert "no_checkpoint_events" not in found_codes(report)
    assert "save_time_unknown" not in found_codes(
        checked(started(0.5), loaded(0, 5.5), finished(10, 60), saved(10, 65))
    )


def test_silence_inside_an_attempt_is_found() -> None:
    late = (start(0.1), *steps(0, 6, at=10.25), *steps(6, 6, at=1000.25), save(1052, 1), end(1060.5))
    assert lines_of(the(checked(late), "log_gap")) == [7]


def test_silence_with_an_explanation_is_not_a_gap() -> None:
    phase = (start(0.1), *steps(0, 6, at=10.25), *custom("EVAL", 61, 990), *steps(6, 6, at=1000.25), save(1052, 1))
    outage = (start(0.1), *steps(0, 6, at=10.25), crashed(61), start(990.5), *steps(6, 6, at=1000.25), save(1052, 1))
    assert "log_gap" not in found_codes(checked(phase)) | found_codes(checked(outage))


def test_jump_of_step_numbers_is_found() -> None:
    lines = (start(0.1), *steps(0, 6, at=10.25), *steps(9, 6, at=100.25), save(151, 1), end(160.5))
    found = the(checked(lines), "missing_steps")
    assert lines_of(found) == [8]
    assert "by up to 4" in found.message


def test_every_tenth_step_is_not_a_jump() -> None:
    lines = (start(0.1), steps(0, 9, at=10.25, every=100, stride=10), save(851, 1), end(920.5))
    assert "missing_steps" not in found_codes(checked(lines))


def test_large_unexplained_time_is_found() -> None:
    found = the(checked(start(0.1), steps(0, 6, at=100.25), save(151, 1), end(160.5)), "unexplained_time")
    assert found.severity == "info"
    assert lines_of(found)[0] == 1


def test_job_without_duration_is_found() -> None:
    report = checked(FINE, renamed([start(7)], "other"))
    found = the(report, "job_without_duration")
    assert (found.job, lines_of(found)) == ("other", [18])
    assert report.jobs == 2


# Hosts and names.


def test_missing_rank_is_found() -> None:
    lines = [*hosts(0.0), started(400, 0), finished(500, 460, 0), terminated(470, 0)]
    report = checked(lines)
    assert the(report, "several_hosts").count == 2
    assert lines_of(the(report, "rank_missing")) == [13]
    assert {"several_hosts", "rank_missing"}.isdisjoint(found_codes(checked(FINE)))
    assert "rank_missing" not in found_codes(checked(hosts(0.0)))


def test_indistinguishable_starts_of_hosts_are_found() -> None:
    together = [start(0.1), start(0.4), start(1.2), *FINE[1:]]
    found = the(checked(together), "starts_without_rank")
    assert (found.count, lines_of(found)) == (2, [1, 2, 3])
    apart = (start(0.1), start(60), start(200), steps(0, 6, at=210.25))
    assert "starts_without_rank" not in found_codes(checked(apart))
    assert "starts_without_rank" not in found_codes(checked(hosts(0.4)))


def test_similar_names_are_found() -> None:
    lines = FINE
    found = the(checked(lines, renamed(lines, "J "), renamed(lines, "other")), "similar_job_names")
    assert found.job is None
    assert "'J ', 'j'" in found.message
    assert "similar_job_names" not in found_codes(checked(lines, renamed(lines, "j2")))


# Findings of the reader and the accounting.


def test_reused_name_counts_two_runs() -> None:
    again = (start(1000.1), steps(0, 12, at=1010.25), end(1140.5))
    report = checked(FINE, again)
    assert report.runs == 2
    assert "--run" in the(report, "restarted_from_scratch").advice
    last = checked(FINE, again, run="last")
    assert last.runs == 2
    assert "restarted_from_scratch" not in found_codes(last)


def test_reference_slower_than_the_steps_is_found() -> None:
    assert "reference_too_slow" in found_codes(checked(FINE, reference_step_time=20))
    assert "reference_too_slow" not in found_codes(checked(FINE, reference_step_time=9.5))


def test_findings_of_the_reader_are_included() -> None:
    extra = json.dumps(json.loads(step(50, 200)) | {"mood": "fine"})
    report = checked(FINE, FINE[0], extra, "{broken", '{"no": "event"}')
    assert {"malformed_lines", "duplicate_events", "unknown_keys", "unrecognised_lines"} <= found_codes(report)
    assert the(report, "malformed_lines").job is None
    assert lines_of(the(report, "malformed_lines")) == [20]
    severities = [found.severity for found in report.findings]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)


def test_all_jobs_are_checked_unless_one_is_named() -> None:
    bad = renamed(FINE[:-1], "unfinished")
    assert the(checked(FINE, bad), "end_not_logged").job == "unfinished"
    assert found_codes(checked(FINE, bad, job_name="j")) == set()
    with pytest.raises(NotEnoughData, match="nobody"):
        checked(FINE, bad, job_name="nobody")
    with pytest.raises(NotEnoughData):
        checked()


def test_run_number_must_exist_in_at_least_one_job() -> None:
    with pytest.raises(UsageError, match="run 2 does not exist"):
        checked(FINE, run=2)
    again = (start(1000.1), steps(0, 12, at=1010.25), end(1130.5))
    report = checked(FINE, again, renamed(FINE, "once"), run=2)
    assert {found.job for found in report.findings} == {"j"}
    assert report.runs == 3


# Any log.


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_logs())
def test_every_log_can_be_checked_and_every_place_is_a_line_of_it(lines: list[str]) -> None:
    written(lines)
    try:
        report = check_log(read_events(["run.jsonl"]), make_question())
    except NotEnoughData:
        return
    for found in report.findings:
        assert found.count > 0
        assert found.effect
        assert found.advice
        for place in found.where:
            assert 1 <= int(place.removeprefix("run.jsonl:")) <= len(lines)


# The registry.


def test_code_without_a_row_is_refused() -> None:
    with pytest.raises(ValueError, match="'of_nobody': a new one needs a table"):
        Diagnostic.of("of_nobody", "what nobody described")


def test_every_text_is_a_sentence() -> None:
    for code, texts in CODES.items():
        for text in (texts.meaning, texts.effect, texts.advice):
            assert text[0].isupper(), code
            assert text.endswith("."), code


def test_code_of_a_plug_in_has_neutral_texts() -> None:
    assert code_texts("of_a_plug_in").advice

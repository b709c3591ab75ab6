"""`goodput check`: every finding on a small log that shows it, and its absence on one that must not."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from goodput_cli.analysis.check.check import CheckReport, Finding
from goodput_cli.analysis.each_job import check_log
from goodput_cli.analysis.question import make_question
from goodput_cli.cli.main import run
from goodput_cli.diagnostics.codes import CODES, code_texts
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.events.read import read_events
from tests.strategies import any_logs
from tests.support.analyses import HOSTILE
from tests.support.json_answers import check_answer
from tests.support.story import (
    BASE,
    crashed,
    custom,
    end,
    finished,
    loaded,
    prep,
    save,
    saved,
    start,
    started,
    step,
    steps,
    terminated,
    told,
)

ROOT = Path(__file__).parent.parent.parent
Output = pytest.CaptureFixture[str]
FINE = told(start(0.1), prep(0.5, 5.5), steps(0, 6, at=10.25), save(62.5, 2), steps(6, 6, at=70.25), end(130.5))


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("GOODPUT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def written(*events: Any, name: str = "run.jsonl") -> str:
    """A file with the lines of a story, in the current folder."""
    Path(name).write_text("".join(f"{line}\n" for line in flat(events)), encoding="utf-8")
    return name


def flat(events: Any) -> list[str]:
    """The lines of stories within stories."""
    return [events] if isinstance(events, str) else [line for part in events for line in flat(part)]


def checked(*events: Any, more: tuple[str, ...] = (), job_name: str | None = None, **question: Any) -> CheckReport:
    """What a check of the story finds; `more` are further files."""
    log = read_events([written(*events), *more])
    return check_log(log, make_question(**question), job_name=job_name)


def codes(report: CheckReport) -> set[str]:
    return {found.code for found in report.findings}


def the(report: CheckReport, code: str) -> Finding:
    """The only finding of a code."""
    (found,) = [found for found in report.findings if found.code == code]
    return found


def lines_of(found: Finding) -> list[int]:
    return sorted(int(place.rpartition(":")[2]) for place in found.where)


def renamed(lines: list[str], job: str) -> list[str]:
    return [json.dumps(json.loads(line) | {"job_name": job}) for line in lines]


def hosts(shift: float, *, count: int = 4) -> list[str]:
    """Ranks 0 and 1 start, save and end together; the clock of rank 1 is `shift` seconds off."""
    lines = [started(0.5, 0), started(0.5 + shift, 1)]
    for number in range(1, count + 1):
        lines += [saved(100 * number, 60 * number, 0), saved(100 * number, 60 * number + shift, 1)]
    return [*lines, terminated(60 * count + 20, 0), terminated(60 * count + 20 + shift, 1)]


def test_nothing_is_wrong_with_a_good_log() -> None:
    report = checked(FINE)
    assert report.findings == ()
    assert (report.jobs, report.runs, report.events) == (1, 1, 17)


# Clocks.


@pytest.mark.parametrize("shift", [30.0, -30.0])
def test_a_rank_whose_clock_is_off_by_the_same_amount_everywhere(shift: float) -> None:
    found = the(checked(hosts(shift)), "clock_skew")
    assert "rank 1" in found.message
    assert "30 s " + ("behind" if shift > 0 else "ahead") in found.message
    assert found.count == 6
    assert found.severity == "warning"


def test_the_odd_one_of_three_is_named() -> None:
    lines = [started(0.5, 0), started(0.5, 1), started(12.5, 2)]
    for number in (1, 2, 3, 4):
        lines += [finished(number, 60 * number + 12 * (rank == 2), rank) for rank in (0, 1, 2)]
    assert "rank 2 reports 12 s behind" in the(checked(lines), "clock_skew").message


def test_a_host_that_is_slow_to_start_is_not_skewed() -> None:
    lines = [started(0.5, 0), started(30.5, 1), terminated(100, 0), terminated(100.2, 1)]
    lines += [started(200, 0), started(230, 1), terminated(300, 0), terminated(300.2, 1)]
    lines += [started(400, 0), started(430, 1), terminated(500, 0), terminated(500.2, 1)]
    assert "clock_skew" not in codes(checked(lines))


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_a_skew_of_a_second_is_noise(shift: float) -> None:
    assert "clock_skew" not in codes(checked(hosts(shift)))


def test_differences_that_come_and_go_are_no_skew() -> None:
    lines = [started(0.5, 0), started(0.5, 1)]
    for number, late in enumerate([20, -15, 3, 40, -30, 0], start=1):
        lines += [saved(number, 100 * number, 0), saved(number, 100 * number + late, 1)]
    assert "clock_skew" not in codes(checked(lines))


def test_files_of_two_hosts_that_report_the_same_steps() -> None:
    other = written(steps(0, 12, at=14.25), name="host1.jsonl")
    found = the(checked(FINE, more=(other,)), "clock_skew")
    assert "host1.jsonl reports 4 s behind" in found.message


def test_lines_behind_later_ones() -> None:
    lines = FINE
    shuffled = [*lines[:3], *reversed(lines[3:])]
    report = checked(shuffled)
    assert the(report, "out_of_order").severity == "info"
    assert "of 17 lines" in the(report, "out_of_order").message
    assert "clock_set_back" not in codes(report)


def test_a_long_save_is_written_at_its_end_and_in_order() -> None:
    assert "out_of_order" not in codes(
        checked(start(0.1), steps(0, 3, at=10.25), save(35, 40, 2), step(3, 80), end(90))
    )


def test_lines_of_one_source_are_not_compared_with_those_of_another() -> None:
    later = written(start(0.1), step(0, 10.25), name="a.jsonl")
    assert "out_of_order" not in codes(checked(step(1, 20.25), step(2, 30.25), save(30.5, 1), end(40.5), more=(later,)))


def test_a_clock_that_is_set_back() -> None:
    found = the(
        checked(start(0.1), steps(0, 6, at=10.25), steps(6, 6, at=40.25), save(91, 1), end(100.5)), "clock_set_back"
    )
    assert lines_of(found) == [8]
    assert "20 s" in found.message


def test_steps_redone_after_a_restart_are_no_clock_set_back() -> None:
    report = checked(start(0.1), steps(0, 6, at=10.25), start(80.5), steps(3, 6, at=90.25), save(141, 1), end(150.5))
    assert "clock_set_back" not in codes(report)


def test_whole_seconds_with_short_steps() -> None:
    found = the(checked(start(0), steps(0, 12, at=10, every=2), save(40, 1), end(50)), "coarse_clock")
    assert "2 s" in found.message


@pytest.mark.parametrize(("at", "every"), [(10, 10), (10.25, 2)])
def test_whole_seconds_do_for_long_steps_and_fractions_for_short_ones(at: float, every: float) -> None:
    lines = (start(0), steps(0, 12, at=at, every=every), save(140, 1), end(150))
    assert "coarse_clock" not in codes(checked(lines))


@pytest.mark.parametrize("at", [-BASE + 5, 20 * 365 * 86_400])
def test_one_line_decades_away(at: float) -> None:
    found = the(checked(FINE, custom("EVAL", at)[0]), "lonely_time")
    assert lines_of(found) == [18]
    assert "years" in found.message


def test_a_job_that_is_continued_after_months_is_not_lonely() -> None:
    month = 90 * 86_400
    assert "lonely_time" not in codes(checked(FINE, start(month), steps(12, 12, at=month + 10.5), end(month + 140)))


def test_events_of_the_future() -> None:
    assert "events up to" in the(checked(start(0.1), steps(0, 3, at=4e9), end(4e9 + 60)), "future_times").message
    assert "future_times" not in codes(checked(FINE))


# What a log does not tell.


def test_an_end_that_was_not_logged() -> None:
    assert lines_of(the(checked(FINE[:-1]), "end_not_logged")) == [16]
    assert "end_not_logged" not in codes(checked(FINE))


def test_a_death_without_a_word() -> None:
    again = (start(200.5), steps(12, 3, at=210.25), end(240.5))
    assert lines_of(the(checked(FINE[:-1], again), "silent_death")) == [16]
    assert "silent_death" not in codes(checked(FINE[:-1], crashed(150.5), again))


def test_time_that_a_checkpoint_log_cannot_place() -> None:
    before = (started(0.5), loaded(0, 5.5), finished(10, 65), saved(10, 66))
    after = (started(300.5), loaded(10, 305.5), finished(20, 365), terminated(366))
    found = the(checked(before, after), "undetermined_time")
    assert found.severity == "warning"
    assert lines_of(found) == [4]
    assert "undetermined_time" not in codes(checked(before, terminated(70), after))


def test_a_log_without_checkpoints_says_so() -> None:
    lines = FINE
    found = the(checked([line for line in lines if "checkpoint_manager" not in line]), "no_checkpoint_events")
    assert "unknown, not 0" in found.effect
    assert found.count == 1


def test_saves_without_their_duration() -> None:
    lines = (started(0.5), loaded(0, 5.5), saved(10, 65), saved(20, 125), terminated(130))
    report = checked(lines)
    assert the(report, "save_time_unknown").count == 2
    assert "no_checkpoint_events" not in codes(report)
    assert "save_time_unknown" not in codes(checked(started(0.5), loaded(0, 5.5), finished(10, 60), saved(10, 65)))


def test_silence_inside_an_attempt() -> None:
    late = (start(0.1), *steps(0, 6, at=10.25), *steps(6, 6, at=1000.25), save(1052, 1), end(1060.5))
    assert lines_of(the(checked(late), "log_gap")) == [7]


def test_silence_that_a_phase_or_an_outage_explains_is_no_gap() -> None:
    phase = (start(0.1), *steps(0, 6, at=10.25), *custom("EVAL", 61, 990), *steps(6, 6, at=1000.25), save(1052, 1))
    outage = (start(0.1), *steps(0, 6, at=10.25), crashed(61), start(990.5), *steps(6, 6, at=1000.25), save(1052, 1))
    assert "log_gap" not in codes(checked(phase)) | codes(checked(outage))


def test_step_numbers_that_jump() -> None:
    lines = (start(0.1), *steps(0, 6, at=10.25), *steps(9, 6, at=100.25), save(151, 1), end(160.5))
    found = the(checked(lines), "missing_steps")
    assert lines_of(found) == [8]
    assert "by 4 at the most" in found.message


def test_every_tenth_step_is_no_jump() -> None:
    lines = (start(0.1), steps(0, 9, at=10.25, every=100, stride=10), save(851, 1), end(920.5))
    assert "missing_steps" not in codes(checked(lines))


def test_much_time_that_nothing_explains() -> None:
    found = the(checked(start(0.1), steps(0, 6, at=100.25), save(151, 1), end(160.5)), "unexplained_time")
    assert found.severity == "info"
    assert lines_of(found)[0] == 1


def test_a_job_of_one_instant() -> None:
    report = checked(FINE, renamed([start(7)], "other"))
    found = the(report, "job_without_duration")
    assert (found.job, lines_of(found)) == ("other", [18])
    assert report.jobs == 2


# Hosts and names.


def test_ranks_that_write_and_one_that_is_missing() -> None:
    lines = [*hosts(0.0), started(400, 0), finished(500, 460, 0), terminated(470, 0)]
    report = checked(lines)
    assert the(report, "several_hosts").count == 2
    assert lines_of(the(report, "rank_missing")) == [13]
    assert {"several_hosts", "rank_missing"}.isdisjoint(codes(checked(FINE)))
    assert "rank_missing" not in codes(checked(hosts(0.0)))


def test_starts_of_hosts_that_nobody_can_tell_apart() -> None:
    together = [start(0.1), start(0.4), start(1.2), *FINE[1:]]
    found = the(checked(together), "starts_without_rank")
    assert (found.count, lines_of(found)) == (2, [1, 2, 3])
    apart = (start(0.1), start(60), start(200), steps(0, 6, at=210.25))
    assert "starts_without_rank" not in codes(checked(apart))
    assert "starts_without_rank" not in codes(checked(hosts(0.4)))


def test_names_that_are_almost_the_same() -> None:
    lines = FINE
    found = the(checked(lines, renamed(lines, "J "), renamed(lines, "other")), "similar_job_names")
    assert found.job is None
    assert "'J ', 'j'" in found.message
    assert "similar_job_names" not in codes(checked(lines, renamed(lines, "j2")))


# What the reader and the accounting notice.


def test_a_name_that_is_used_twice_counts_two_runs() -> None:
    again = (start(1000.1), steps(0, 12, at=1010.25), end(1140.5))
    report = checked(FINE, again)
    assert report.runs == 2
    assert "--run" in the(report, "restarted_from_scratch").advice
    last = checked(FINE, again, run="last")
    assert last.runs == 2
    assert "restarted_from_scratch" not in codes(last)


def test_a_reference_that_the_steps_beat() -> None:
    assert "reference_too_slow" in codes(checked(FINE, reference_step_time=20))
    assert "reference_too_slow" not in codes(checked(FINE, reference_step_time=9.5))


def test_bad_lines_duplicates_and_unknown_keys_come_from_the_reader() -> None:
    extra = json.dumps(json.loads(step(50, 200)) | {"mood": "fine"})
    report = checked(FINE, FINE[0], extra, "{broken", '{"no": "event"}')
    assert {"malformed_lines", "duplicate_events", "unknown_keys", "unrecognised_lines"} <= codes(report)
    assert the(report, "malformed_lines").job is None
    assert lines_of(the(report, "malformed_lines")) == [20]
    severities = [found.severity for found in report.findings]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)


def test_all_jobs_are_checked_unless_one_is_named() -> None:
    bad = renamed(FINE[:-1], "unfinished")
    assert the(checked(FINE, bad), "end_not_logged").job == "unfinished"
    assert codes(checked(FINE, bad, job_name="j")) == set()
    with pytest.raises(NotEnoughData, match="nobody"):
        checked(FINE, bad, job_name="nobody")
    with pytest.raises(NotEnoughData):
        checked()


def test_a_run_that_no_job_has_is_wrong_usage_and_one_that_some_have_is_not() -> None:
    with pytest.raises(UsageError, match="no run 2"):
        checked(FINE, run=2)
    again = (start(1000.1), steps(0, 12, at=1010.25), end(1130.5))
    report = checked(FINE, again, renamed(FINE, "once"), run=2)
    assert {found.job for found in report.findings} == {"j"}
    assert report.runs == 3


# Any log.


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_a_code_without_a_row_is_refused() -> None:
    with pytest.raises(ValueError, match="'of_nobody': a new one needs a row"):
        Diagnostic.of("of_nobody", "what nobody described")


def test_every_text_is_a_sentence() -> None:
    for code, texts in CODES.items():
        for text in (texts.meaning, texts.effect, texts.advice):
            assert text[0].isupper(), code
            assert text.endswith("."), code


def test_a_code_of_a_plug_in_has_neutral_texts() -> None:
    assert code_texts("of_a_plug_in").advice


# The command.


def test_findings_exit_5_and_none_0(capsys: Output) -> None:
    assert run(["check", written(FINE)]) == 0
    assert "Nothing is wrong" in capsys.readouterr().out
    assert run(["check", written(FINE, "{broken")]) == 5
    out, err = capsys.readouterr()
    assert "malformed_lines" in out
    assert "effect: " in out
    assert "advice: " in out
    assert err == ""


def test_what_only_informs_fails_with_strict_alone(capsys: Output) -> None:
    path = written(FINE[:-1])
    assert run(["check", path]) == 0
    assert "end_not_logged" in capsys.readouterr().out
    assert run(["check", path, "--strict"]) == 5


def test_a_log_without_a_single_event_is_told_too(capsys: Output) -> None:
    ms = [line.replace("17", "17000", 1) for line in flat((start(0), steps(0, 5, at=10)))]
    assert run(["check", written(ms)]) == 4
    out, err = capsys.readouterr()
    assert "it looks like milliseconds" in " ".join(out.split())
    assert err == (
        "Error: no events found (6 x bad_value); run.jsonl:2: `step_start_time` is no time between 1970 and 2255 in "
        "epoch seconds: it looks like milliseconds; dropped. Is this an event log of goodput's formats? "
        "`goodput check` shows all that was found\n"
    )
    assert run(["analyze", "run.jsonl"]) == 4
    assert capsys.readouterr().err == err
    assert run(["check", written([])]) == 4
    assert capsys.readouterr().err == "Error: no events found: the sources are empty\n"


def test_json_is_as_the_schema_says(capsys: Output) -> None:
    assert run(["check", written(FINE, "{broken", renamed([start(3)], "one")), "--format", "json"]) == 5
    answer = json.loads(capsys.readouterr().out)
    check_answer(answer, "check")
    assert answer["findings"][0]["code"] == "malformed_lines"
    assert (answer["jobs"], answer["runs"]) == (2, 2)


def test_csv_has_every_finding_and_markdown_the_table(capsys: Output) -> None:
    path = written(FINE[:-1], renamed(FINE[:-1], "k"))
    run(["check", path, "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["code"], row["job"]) for row in rows] == [("end_not_logged", "j"), ("end_not_logged", "k")]
    assert rows[0]["where"] == "run.jsonl:16"
    run(["check", path, "--format", "markdown"])
    assert "| info | end\\_not\\_logged | 2 | 2 |" in capsys.readouterr().out


def test_verbose_names_every_place(capsys: Output) -> None:
    path = written(FINE, *["{broken"] * 5)
    run(["check", path])
    assert "run.jsonl:22" not in capsys.readouterr().out
    run(["check", path, "-v"])
    assert "run.jsonl:22" in " ".join(capsys.readouterr().out.split())


def test_hostile_names_are_harmless(capsys: Output) -> None:
    lines = renamed(FINE[:-1], HOSTILE)
    path = written(lines, renamed(lines, HOSTILE.upper()), renamed(FINE, "=SUM(1)"))
    for name in ("table", "markdown", "csv", "json"):
        run(["check", path, "--format", name])
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "<img" not in out or name in ("csv", "json", "table")

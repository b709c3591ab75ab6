"""`goodput analyze` for people and programs; the library behind it is a stand-in."""

from __future__ import annotations

import json
import os
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from goodput_cli.cli.console import print_safely
from goodput_cli.cli.main import run
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import NotEnoughData, SourceError
from goodput_cli.vocabulary.when import NS_PER_SECOND, parse_span, parse_when
from tests.cli.conftest import Library
from tests.support.answers import HOSTILE, hostile, primer

Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("library")


def test_table_goes_to_stdout_and_the_rest_to_stderr(library: Library, capsys: Output) -> None:
    library.analysis = hostile()
    assert run(["analyze", "run.jsonl"]) == 0
    out, err = capsys.readouterr()
    assert "GOODPUT" in out
    assert "malformed_lines" not in out
    assert "malformed_lines (5)" in err


def test_every_option_reaches_the_library(library: Library) -> None:
    arguments = (
        "analyze a b --log-file c -j job --run last --timezone Europe/Berlin --reference-step-time 2.50 "
        "--data-loading blocking --async-saves --stall-factor 0 --exclude 2026-01-01/2026-01-02 --exclude -2h/-1h "
        "--exclude-stopped --planned no --from -2h --to attempt:3 --as-of now --window 1h --window auto --every 10m "
        "--no-hindsight --log-name l --lookback 7.5 --no-cache --mapping my.toml --year 2026 --start 2026-01-31T14:05 "
        "--tensorboard-tag loss --exact-run-name --join --hosts-of-job Node-0* --no-quotes --no-heartbeats "
        "--longest-line 1 --tokens-per-step 4096 --accelerator-type h100 --total-steps 100"
    )
    assert run(arguments.split()) == 0
    assert library.asked == [
        {
            "sources": ["a", "b", "c"],
            "job_name": "job",
            "run": "last",
            "timezone": "Europe/Berlin",
            "reference_step_time": Fraction(5, 2),
            "data_loading": "blocking",
            "async_saves": True,
            "stall_factor": 0.0,
            "exclude": (parse_span("2026-01-01/2026-01-02"), parse_span("-2h/-1h")),
            "exclude_stopped": True,
            "planned": "no",
            "start": parse_when("-2h"),
            "end": parse_when("attempt:3"),
            "as_of": parse_when("now"),
            "window": (3600 * NS_PER_SECOND, 0),
            "every": 600 * NS_PER_SECOND,
            "no_hindsight": True,
            "tokens_per_step": 4096.0,
            "peak_tflops": None,
            "accelerator_type": "h100",
            "total_steps": 100,
            "log_name": "l",
            "lookback_days": 7.5,
            "use_cache": False,
            "mapping": ("my.toml",),
            "year": 2026,
            "clock_start": parse_when("2026-01-31T14:05"),
            "tensorboard_tag": "loss",
            "exact_run_name": True,
            "join": True,
            "hosts_of_job": ("node-0*",),
            "quotes": False,
            "heartbeats": False,
            "longest_line": 1,
            "draft": False,
            "notice": print_safely,
            "stdin": None,
            "progress": None,
        }
    ]


def test_options_are_read_from_the_environment(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "JOB_NAME": "job", "REFERENCE_STEP_TIME": "auto", "FROM": "-2h", "TIMEZONE": "Asia/Tokyo", "ASYNC_SAVES": "1",
        "EXCLUDE": "2026-01-01 00:00/2026-01-02;-2h/-1h", "LOG_FILE": "a b.jsonl;c", "STALL_FACTOR": "3",
        "FAIL_IF": "goodput < 10;disruptions > 9", "STRICT": "0",
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(f"GOODPUT_ANALYZE_{name}", value)
    assert run(["analyze", "--timezone", "UTC"]) == 0
    asked = library.asked[0]
    assert (asked["sources"], asked["job_name"], asked["start"]) == (["a b.jsonl", "c"], "job", parse_when("-2h"))
    assert (asked["reference_step_time"], asked["async_saves"], asked["stall_factor"]) == ("auto", True, 3.0)
    assert asked["exclude"] == (parse_span("2026-01-01 00:00/2026-01-02"), parse_span("-2h/-1h"))
    assert asked["timezone"] == "UTC"
    monkeypatch.setenv("GOODPUT_ANALYZE_FROM", "yesterday")
    assert run(["analyze", "x"]) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "yesterday"], "'yesterday' is not a time"),
        (["--to", "attempt:0"], "numbered from 1"),
        (["--as-of", "03/04/2026"], "is ambiguous"),
        (["--exclude", "2026-01-01"], "START/END"),
        (["--timezone", "Mars/Olympus"], "unknown time zone"),
        (["--reference-step-time", "0"], "not a step time"),
        (["--reference-step-time", "nan"], "not a step time"),
        (["--stall-factor", "-1"], "not a factor"),
        (["--run", "0"], "use a number from 1"),
        (["--data-loading", "sometimes"], "blocking"),
        (["--format", "yaml"], "unknown format 'yaml'"),
        (["--fail-under", "high"], "not a percentage"),
        (["--fail-if", "godput<9"], "did you mean goodput"),
        (["--warn-if", "goodput"], "not a threshold"),
        (["-o", "report.xlsx"], "unknown file extension"),
        (["-o", "missing/report.json"], "does not exist"),
        (["-o", "folder.json"], "is a folder"),
        (["-o", "r.json", "-o", "./r.json"], "the same file"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_wrong_usage_is_rejected_before_any_work(
    arguments: list[str], words: str, library: Library, capsys: Output
) -> None:
    Path("folder.json").mkdir()
    assert run(["analyze", "run.jsonl", *arguments]) == 2
    out, err = capsys.readouterr()
    assert words in " ".join(err.split())
    assert out == ""
    assert library.asked == []


def test_missing_source_is_wrong_usage(library: Library, capsys: Output) -> None:
    assert run(["analyze"]) == 2
    assert "no SOURCE" in capsys.readouterr().err
    assert run(["analyze", "-j", "job"]) == 0
    assert "Cloud Logging" in capsys.readouterr().err
    assert library.asked[0]["sources"] == ["cloud-logging://"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("--fail-under 50", 0, "threshold goodput<50: passed (50.00 %, limit 50 %)"),
        ("--fail-under 50.01", 3, "threshold goodput<50.01: FAILED (50.00 %, limit 50.01 %)"),
        ("--fail-if wasted_progress_from_disruption>=20", 3, "FAILED"),
        ("--fail-if wasted_progress_from_disruption>30m", 3, "FAILED"),
        ("--warn-if goodput<90", 0, "threshold goodput<90: warning (50.00 %, limit 90 %)"),
        ("--fail-if custom:EVAL>3", 4, "threshold custom:EVAL>3: inconclusive"),
        ("--warn-if custom:EVAL>3", 0, "inconclusive"),
        ("--fail-under 90 --fail-if custom:EVAL>3", 3, "FAILED"),
        ("--fail-under 90 --fail-if disruptions>5", 3, "passed"),
    ],
)
def test_thresholds_are_checked_after_the_report(arguments: str, code: int, words: str, capsys: Output) -> None:
    assert run(f"analyze run.jsonl {arguments} -o r.json --format table".split()) == code
    out, err = capsys.readouterr()
    assert words in err
    assert "GOODPUT" in out
    assert json.loads(Path("r.json").read_text())["thresholds"]


def test_threshold_on_a_logged_reference_is_a_warning(library: Library, capsys: Output) -> None:
    library.analysis = hostile()
    run("analyze run.jsonl --fail-under 10".split())
    assert "fix it with --reference-step-time 2.5" in capsys.readouterr().err
    library.analysis = primer()
    run("analyze run.jsonl --fail-under 10".split())
    assert "pin it" not in capsys.readouterr().err


def test_strict_reports_its_reason_with_quiet_diagnostics(library: Library, capsys: Output) -> None:
    library.analysis = hostile()
    assert run("analyze run.jsonl --strict -q".split()) == 5
    found = sorted({one.code for one in hostile().diagnostics if one.severity != "info"})
    assert found
    assert capsys.readouterr().err == (
        f"--strict: problems found: {', '.join(found)} (run without --quiet for details)\n"
    )
    assert run("analyze run.jsonl -q".split()) == 0
    assert capsys.readouterr().err == ""
    assert run("analyze run.jsonl --strict".split()) == 5
    assert f"--strict: problems found: {', '.join(found)}\n" in capsys.readouterr().err


def test_strict_comes_after_thresholds(library: Library) -> None:
    assert run("analyze run.jsonl --strict".split()) == 0
    library.analysis = primer(diagnostics=(Diagnostic("naive_timestamps", "info", "taken as UTC"),))
    assert run("analyze run.jsonl --strict".split()) == 0
    library.analysis = hostile()
    assert run("analyze run.jsonl".split()) == 0
    assert run("analyze run.jsonl --strict".split()) == 5
    assert run("analyze run.jsonl --strict --fail-under 99".split()) == 3


def test_quiet_and_verbose_select_diagnostics(library: Library, capsys: Output) -> None:
    library.analysis = hostile()
    run("analyze run.jsonl -q --fail-under 10".split())
    assert capsys.readouterr().err == ""
    assert run("analyze run.jsonl -q --fail-under 99".split()) == 3
    assert capsys.readouterr().err == "threshold goodput<99: FAILED (91.67 %, limit 99 %)\n"
    run(["analyze", "run.jsonl"])
    assert "+2 more" in capsys.readouterr().err
    run("analyze run.jsonl -v".split())
    verbose = capsys.readouterr().err
    assert "+2 more" not in verbose
    assert ".jsonl:5" in verbose


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (SourceError(f"{HOSTILE}: no such file; check the name"), 1, "no such file"),
        (NotEnoughData("no events of job x"), 4, "no events of job x"),
        (KeyboardInterrupt(), 130, "Interrupted"),
        (MemoryError(), 1, "not enough memory"),
        (ZeroDivisionError(HOSTILE), 1, "cause: This is a bug\ntip: Please report it"),
        (RecursionError("deep"), 1, "Please report it"),
    ],
)
def test_errors_are_sentences(error: BaseException, code: int, words: str, library: Library, capsys: Output) -> None:
    library.error = error
    assert run(["analyze", "run.jsonl", "-o", "r.json"]) == code
    out, err = capsys.readouterr()
    assert words in err
    assert out == ""
    assert "Traceback" not in err
    assert "\x1b" not in err
    assert "\u202e" not in err
    assert os.listdir() == []


def test_traceback_is_shown_on_request(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOODPUT_DEBUG", "1")
    library.error = ZeroDivisionError("bug")
    with pytest.raises(ZeroDivisionError):
        run(["analyze", "run.jsonl"])


def test_standard_input_is_passed_as_bytes(library: Library) -> None:
    assert run(["analyze", "-"]) == 0
    assert library.asked[0]["stdin"] is sys.stdin.buffer

"""First use of the command: a log without a command, help on any word, and gates that can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.api.options import command_line_of, split
from goodput_cli.cli.main import COMMANDS, run
from goodput_cli.errors import SourceError
from goodput_cli.vocabulary.text import likeliest
from tests.support.documents import ROOT

NIGHT = str(ROOT / "sample_logs" / "llm-pretrain.jsonl")
PRIMER = str(ROOT / "sample_logs" / "primer-50-percent.jsonl")
Said = pytest.CaptureFixture[str]


def test_log_without_a_command_is_analyzed(capsys: Said) -> None:
    assert run([PRIMER, "-q"]) == 0
    alone = capsys.readouterr().out
    assert run(["analyze", PRIMER, "-q"]) == 0
    assert capsys.readouterr().out == alone


@pytest.mark.parametrize("name", ["runs/*.jsonl", "missing.jsonl.gz", "gs://bucket-that-is-not/x"])
def test_argument_like_a_log_is_read_as_a_log(name: str, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[list[str]] = []

    def analyze(sources: list[str], **_: object) -> None:
        read.append(sources)
        raise SourceError("read")

    monkeypatch.setattr("goodput_cli.api.analyze.analyze", analyze)
    assert run([name]) == 1
    assert read == [[name]]
    assert capsys.readouterr().err == "error: read\n"


def test_mistyped_command_is_not_a_log(capsys: Said) -> None:
    assert run(["analyse"]) == 2
    assert "no such command, file or folder: 'analyse'\ntip: did you mean analyze?" in capsys.readouterr().err


def test_misspelled_file_is_suggested_before_commands(
    capsys: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "analyse2").mkdir()
    assert run(["analyse"]) == 2
    assert "no such command, file or folder: 'analyse'\ntip: did you mean analyse2?" in capsys.readouterr().err


def test_help_is_a_command_too(capsys: Said) -> None:
    assert run(["help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: goodput [OPTIONS] COMMAND")
    assert run(["help", "steps"]) == 0
    assert capsys.readouterr().out.startswith("Usage: goodput steps")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("open_interval", "What to do: Log the end of failed phases"),
        ("HANG", "--fail-if 'insight:hang>10m'"),
        ("step_stall", "category step_stall"),
    ],
)
def test_help_explains_codes_insights_and_categories(name: str, words: str, capsys: Said) -> None:
    assert run(["help", name]) == 0
    shown = capsys.readouterr().out
    assert words in shown
    assert max(map(len, shown.splitlines())) <= 79


def test_help_on_unknown_word_fails(capsys: Said) -> None:
    assert run(["help", "opn_interval"]) == 2
    assert "did you mean open_interval" in capsys.readouterr().err
    assert run(["help", "xyzzy"]) == 2
    assert "no help on 'xyzzy'\ntip: `goodput help words` lists all words that have help" in capsys.readouterr().err
    assert run(["help", "analize"]) == 2
    assert "did you mean analyze?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "ours"),
    [("--since", "--from"), ("--until", "--to"), ("--json", "--format"), ("--min-goodput", "--fail-under")],
)
def test_option_name_of_other_tools_is_suggested(typed: str, ours: str, capsys: Said) -> None:
    assert run([NIGHT, typed, "1"]) == 2
    assert f"no such option: {typed}\ntip: did you mean {ours}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("timeline x --fail-under 3", "no such option: --fail-under\ntip: `goodput analyze`"),
        ("steps x --plan", "no such option: --plan\ntip: `goodput fleet` has it"),
        ("advise x --fail-under 3", "no such option: --fail-under\ntip: `goodput analyze`"),
        ("steps x --nothing-has-this", "no such option: --nothing-has-this\ntip: goodput steps --help"),
    ],
)
def test_option_of_another_command_is_explained(typed: str, said: str, capsys: Said) -> None:
    assert run(typed.split()) == 2
    assert said in capsys.readouterr().err


def test_options_can_precede_a_log(capsys: Said) -> None:
    assert run(["-q", "--fail-under=60", PRIMER]) == 3
    assert run(["--fail-under", "40", "-q", PRIMER]) == 0
    assert run(["--version"]) == 0
    capsys.readouterr()
    assert run(["--fail-under", "40"]) == 2
    assert "no such option: --fail-under" in capsys.readouterr().err
    assert run(["-q", "steps", NIGHT]) == 2  # another command is named, and its options apply


@pytest.mark.parametrize(("typed", "meant"), [("md", "markdown"), ("PROM", "openmetrics"), ("xml", "junit")])
def test_format_follows_the_suffix_of_files(typed: str, meant: str, capsys: Said) -> None:
    assert run([NIGHT, "--format", typed]) == 2
    assert f"unknown format '{typed}'\ntip: did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize("expression", ["goodput<0.8", "goodput<=0.85", "goodput<8000"])
def test_expression_that_never_fails_is_rejected(expression: str, capsys: Said) -> None:
    for command in ("analyze", "fleet"):
        assert run([command, NIGHT, "--fail-if", expression]) == 2
        assert "did you mean 8" in capsys.readouterr().err
    assert run(["analyze", PRIMER, "-q", "--fail-if", "goodput<0.8%"]) == 0
    assert run(["fleet", NIGHT, "--fail-under", "0.8"]) == 2


def test_suggested_commands_keep_options_of_the_job() -> None:
    """Without the mapping the command would find no events, and with another reference the answer would differ."""
    options = {
        "job_name": "j", "mapping": ["own.toml"], "year": 2025, "run": "last", "async_saves": True, "stall_factor": 3,
        "exclude": "-2h/-1h", "reference_step_time": 2.5, "data_loading": "overlapped", "start": "-1h",
    }  # fmt: skip
    words = command_line_of("run.log", *split(options))
    assert " ".join(words) == (
        "run.log -j j --mapping own.toml --year 2025 --run last --reference-step-time 2.5 --async-saves "
        "--stall-factor 3 --exclude -2h/-1h"
    )


def test_diagnostics_name_the_command_that_explains_them(capsys: Said) -> None:
    run(["analyze", NIGHT])
    said = capsys.readouterr().err.splitlines()
    assert said[-2] == "Run `goodput help open_interval` for its effect on the numbers and how to fix it."
    assert said[-1] == f"not listed: 1 warning, 1 info (log_gap, silent_death). To list all: goodput check {NIGHT}"


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("0.8", "did you mean 80? Otherwise write 0.8%"),
        ("0.95", "did you mean 95?"),
        ("850", "did you mean 85? Otherwise write 850%"),
        ("9500", "did you mean 95?"),
    ],
)
def test_gate_that_would_never_fail_is_rejected(typed: str, sentence: str, capsys: Said) -> None:
    assert run(["analyze", PRIMER, "--fail-under", typed]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(("typed", "code"), [("0.8%", 0), ("0", 0), ("1", 0), ("100", 3), ("150%", 3)])
def test_unambiguous_gate_is_accepted(typed: str, code: int) -> None:
    assert run(["analyze", PRIMER, "-q", "--fail-under", typed]) == code


def test_empty_gate_variable_is_warned_about(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    """Click treats an empty variable as not set, so a CI gate with a missing input would pass."""
    monkeypatch.setenv("GOODPUT_ANALYZE_FAIL_UNDER", "")
    monkeypatch.setenv("GOODPUT_ANALYZE_OUTPUT", "")
    assert run(["analyze", PRIMER, "-q"]) == 0
    err = capsys.readouterr().err
    assert err == "warning: the environment variable GOODPUT_ANALYZE_FAIL_UNDER is empty, so this gate is off\n"


def test_label_close_to_a_logged_one_is_suggested(capsys: Said) -> None:
    assert run(["analyze", NIGHT, "-q", "--fail-if", "custom:EVAL>5%"]) == 4
    said = "threshold custom:EVAL>5%: inconclusive (no data in the log; did you mean custom:EVAL_STEP?)"
    assert said in capsys.readouterr().err


def test_job_close_to_a_logged_one_is_suggested(capsys: Said) -> None:
    assert run(["analyze", NIGHT, "-j", "llm-pretrain-7B"]) == 4
    assert "did you mean llm-pretrain-7b?" in capsys.readouterr().err


def test_times_of_a_day_are_read(capsys: Said) -> None:
    assert run([NIGHT, "-q", "--from", "23:00", "--to", "01:30"]) == 0
    assert "2026-01-12 23:00:00 - 2026-01-13 01:30:00 UTC (2 h 30 min)" in capsys.readouterr().out
    assert run([NIGHT, "-q", "--from", "12:00"]) == 2
    assert "'12:00' is not in the job\ntip: add a date, such as 2026-01-13T12:00" in capsys.readouterr().err


def test_ambiguous_time_of_a_day_is_rejected(tmp_path: Path, capsys: Said) -> None:
    log = tmp_path / "days.jsonl"
    line = '{"job_name": "j", "step_count": %d, "step_start_time": %d}\n'
    log.write_text("".join(line % (number, 1_767_225_600 + 3600 * number) for number in range(50)))
    assert run([str(log), "-q", "--from", "12:00"]) == 2
    assert "'12:00' is in the job on 2026-01-01, 2026-01-02" in capsys.readouterr().err


def test_likeliest_name_is_suggested() -> None:
    names = ["wasted_progress_from_disruption", "infrastructure_recovery_from_disruption", "queued", "goodput"]
    assert likeliest("wasted", names)[0] == names[0]
    assert likeliest("recovery", names)[0] == names[1]
    assert likeliest("godput", names) == ["goodput"]
    assert likeliest("zzz", names) == []


def test_every_command_is_listed_with_its_help() -> None:
    for name, elsewhere in COMMANDS.items():
        help_text = elsewhere.load(name).help or ""
        assert " ".join(help_text.split("\n\n")[0].split()) == elsewhere.summary, name


def test_insight_without_its_prefix_is_suggested(capsys: Said) -> None:
    assert run(["analyze", NIGHT, "--fail-if", "older_checkpoint>0"]) == 2
    assert "did you mean insight:older_checkpoint?" in capsys.readouterr().err


def test_disruptions_in_a_session_show_their_count() -> None:
    assert repr(goodput_cli.analyze(PRIMER).disruptions) == "<1 disruption; .to_frame() has one row per disruption>"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["analyze", "x.log", "--pric", "3"], "tip: did you mean --price-per-hour?"),
        (["analyze", "llm-pretrain.json"], "llm-pretrain.json: no such file tip: did you mean llm-pretrain.jsonl?"),
        (["run/job.lgo"], "run/job.lgo: no such file tip: did you mean run/job.log?"),
        (["rnu/"], "rnu/: no such file tip: did you mean run?"),
        (["job.lgo"], "job.lgo: no such file tip: check the path"),
        (["run/quite-another.txt"], "no such file tip: check the path"),
    ],
)
def test_nearly_typed_word_is_suggested(
    typed: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    for name in ("llm-pretrain.jsonl", "run/job.log"):
        (tmp_path / name).write_text("")
    assert run(typed) == 2 if "--pric" in typed else run(typed) != 0
    assert words in " ".join(capsys.readouterr().err.split())

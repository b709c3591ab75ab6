"""`goodput.toml` and `[tool.goodput]`: found, checked, and overridden by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from tests.support.documents import blocks

ROOT = Path(__file__).parent.parent.parent
LOG = str(ROOT / "sample_logs" / "llm-pretrain.jsonl")
JOB = "llm-pretrain-7b"
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(folder: Path) -> Path:
    """Create an empty repository and work in it."""
    (folder / ".git").mkdir()
    return folder


def write_settings(folder: Path, text: str, name: str = "goodput.toml") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def analyze(capsys: Output, *arguments: str) -> tuple[int, list[str]]:
    """Return the exit code, and the messages about thresholds and settings."""
    code = run(["analyze", LOG, *arguments])
    said = capsys.readouterr().err.splitlines()
    return code, [line for line in said if line.startswith(("threshold", "Settings", "error", "cause", "tip"))]


def test_thresholds_and_options_of_a_project_apply(project: Path, capsys: Output) -> None:
    write_settings(
        project, 'fail-under = 85\nfail-if = ["disruptions>4"]\nwarn-if = "goodput<99"\nreference-step-time = 8.10\n'
    )
    assert analyze(capsys) == (
        3,
        [
            "Settings from goodput.toml: reference-step-time, fail-under, fail-if, warn-if",
            "threshold goodput<85: FAILED (68.42 %, limit 85 %)",
            "threshold disruptions>4: FAILED (5, limit 4)",
            "threshold goodput<99: warning (68.42 %, limit 99 %)",
        ],
    )


def test_documented_example_works(project: Path, capsys: Output) -> None:
    (block,) = [block for block in blocks(ROOT / "docs" / "cli.md", "toml") if "fail-under" in block.text]
    write_settings(project, block.text)
    assert analyze(capsys, "-j", JOB)[1] == [
        "Settings from goodput.toml: reference-step-time, fail-under, fail-if",
        "threshold goodput<85: FAILED (67.57 %, limit 85 %)",
        "threshold disruptions>4: FAILED (5, limit 4)",
        "threshold evaluation>5%: FAILED (6.53 %, limit 5 %)",
    ]


def test_negative_switch_can_be_set_by_its_positive_key(project: Path, capsys: Output) -> None:
    (project / "own.log").write_text("".join(f"2026-03-01 10:00:{at:02d} step {at} loss 1.0\n" for at in range(60)))
    for text, code in (("draft = false\n", 4), ("no-draft = true\n", 4), ("draft = true\n", 0)):
        write_settings(project, text)
        assert run(["analyze", str(project / "own.log")]) == code
        assert "no-draft" in capsys.readouterr().err


def test_pyproject_is_read(project: Path, capsys: Output) -> None:
    write_settings(project, "[project]\nname = 'x'\n[tool.goodput]\nfail-under = 60.5\n", "pyproject.toml")
    code, said = analyze(capsys)
    assert (code, said[0]) == (0, "Settings from pyproject.toml: fail-under")
    assert said[1] == "threshold goodput<60.5: passed (70.43 %, limit 60.5 %)"


def test_command_line_precedes_environment_and_file(
    project: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, "[tool.goodput]\nfail-under = 1\n", "pyproject.toml")
    assert "goodput<1:" in analyze(capsys)[1][1]
    write_settings(project, "fail-under = 2\n")
    assert "goodput<2:" in analyze(capsys)[1][1]
    monkeypatch.setenv("GOODPUT_ANALYZE_FAIL_UNDER", "3")
    # The file sets nothing now, so no message mentions it.
    assert [line.split(":")[0] for line in analyze(capsys)[1]] == ["threshold goodput<3"]
    assert [line.split(":")[0] for line in analyze(capsys, "--fail-under", "4")[1]] == ["threshold goodput<4"]


def test_nearest_file_up_to_the_repository_is_used(
    project: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, "fail-under = 1\n")
    below = project / "a" / "b"
    write_settings(below, "[project]\nname = 'nothing for goodput'\n", "pyproject.toml")
    monkeypatch.chdir(below)
    assert analyze(capsys)[1][0] == f"Settings from {project / 'goodput.toml'}: fail-under"
    write_settings(project / "a", "fail-under = 2\n")
    assert analyze(capsys)[1][0] == "Settings from ../goodput.toml: fail-under"
    (below / ".git").write_text("gitdir: elsewhere")
    assert analyze(capsys) == (0, [])


def test_file_can_be_named_or_disabled(project: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings(project, "fail-under = 99\n")
    write_settings(project, "fail-under = 1\n", "loose.toml")
    assert analyze(capsys, "--config", "loose.toml")[0] == 0
    assert analyze(capsys, "--no-config") == (0, [])
    monkeypatch.setenv("GOODPUT_ANALYZE_NO_CONFIG", "1")
    assert analyze(capsys) == (0, [])
    assert analyze(capsys, "--config", "loose.toml")[0] == 2
    monkeypatch.delenv("GOODPUT_ANALYZE_NO_CONFIG")
    monkeypatch.setenv("GOODPUT_ANALYZE_CONFIG", "loose.toml")
    assert analyze(capsys)[0] == 0
    write_settings(project, "[project]\n", "pyproject.toml")
    assert analyze(capsys, "--config", "pyproject.toml")[1] == ["error: pyproject.toml: no table [tool.goodput]"]
    assert analyze(capsys, "--config", "nowhere.toml") == (
        2,
        ["error: nowhere.toml: no such settings file"],
    )


def test_quiet_hides_the_file(project: Path, capsys: Output) -> None:
    write_settings(project, "fail-under = 1\n")
    assert analyze(capsys, "-q") == (0, [])


def test_list_on_the_command_line_replaces_the_file_s(project: Path, capsys: Output) -> None:
    write_settings(project, 'fail-if = ["goodput<1", "disruptions>99"]\n')
    assert len(analyze(capsys)[1]) == 3
    assert analyze(capsys, "--fail-if", "goodput<2")[1] == ["threshold goodput<2: passed (70.43 %, limit 2 %)"]


def test_flags_are_read(project: Path, capsys: Output) -> None:
    write_settings(project, "strict = true\nasync-saves = false\nno-cache = true\n[job.x]\nstrict = false\n")
    assert run(["analyze", LOG, "-j", JOB]) == 5
    assert "Settings from goodput.toml: no-cache, strict, async-saves\n" in capsys.readouterr().err
    write_settings(project, f'strict = true\n[job."{JOB}"]\nstrict = false\n')
    assert run(["analyze", LOG, "-j", JOB]) == 0


def test_job_table_applies_to_that_job(project: Path, capsys: Output) -> None:
    write_settings(
        project, f"fail-under = 99\nwarn-if = 'goodput<2'\n[job.{JOB}]\nfail-under = 60\n[job.other]\nfail-under = 1\n"
    )
    said = [line.partition(":")[0] for line in analyze(capsys, "--job-name", JOB)[1][1:]]
    assert said == ["threshold goodput<60", "threshold goodput<2"]


def test_planned_stops_are_set_once_per_job(project: Path, capsys: Output) -> None:
    write_settings(project, f"[job.{JOB}]\nplanned = true\n")
    assert run(["analyze", LOG, "-j", JOB, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["method"]["planned"] == "yes"
    assert "Settings from goodput.toml: planned\n" in err
    write_settings(project, f"[job.{JOB}]\nplanned = 'maybe'\n")
    assert run(["analyze", LOG, "-j", JOB]) == 2
    assert run(["analyze", LOG, "--no-config", "--format", "json"]) == 0
    assert "planned" not in json.loads(capsys.readouterr().out)["method"]


def test_gate_does_not_guess_its_job(project: Path, capsys: Output) -> None:
    write_settings(project, f"[job.{JOB}]\nfail-under = 60\n")
    code, lines = analyze(capsys)
    assert code == 2
    assert f"settings for single jobs ({JOB}) tip: select one with --job-name" in " ".join(lines)
    assert run(["steps", LOG, "-q"]) == 0


def test_other_commands_share_options_and_have_own_tables(project: Path, capsys: Output) -> None:
    write_settings(
        project, "fail-under = 99\nformat = 'csv'\nreference-step-time = 8\n[rolling]\nwindow = '4h'\nformat='json'"
    )
    assert run(["rolling", LOG]) == 0
    out, err = capsys.readouterr()
    assert '"window_seconds":14400.0' in out
    assert "Settings from goodput.toml: reference-step-time, format, window\n" in err
    assert run(["disruptions", LOG]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(" Disruptions of")
    assert "Settings from goodput.toml: reference-step-time\n" in err


def test_whole_job_command_reports_an_ignored_period(project: Path, capsys: Output) -> None:
    write_settings(project, 'from = "2026-01-12T22:00Z"\n[job.llm-pretrain-7b]\nto = "2026-01-13T02:00Z"\n')
    said = "Settings from goodput.toml: from and to ignored: advise covers whole jobs"
    assert run(["advise", LOG, "-j", JOB, "--no-progress"]) == 0
    assert said in capsys.readouterr().err
    assert run(["advise", LOG, "-j", JOB, "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_single_value_is_a_list_if_a_command_takes_several(project: Path, capsys: Output) -> None:
    write_settings(project, "run = 'last'\nfail-if = 'goodput<99'\n[compare]\nfail-if = 'goodput:-2pp'\n")
    assert run(["compare", LOG, LOG]) == 0
    err = capsys.readouterr().err
    assert "Settings from goodput.toml: run, fail-if\n" in err
    assert "threshold goodput:-2pp: passed" in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fail_under = 85", "fail_under: no such option tip: did you mean fail-under?"),
        ("fail-under = 'high'", "fail-under: 'high' is not a percentage"),
        ("fail-under = [1, 2]", "fail-under: must be one value"),
        ("fail-under = true", "fail-under: must be a text or a number"),
        ("fail-under = {a = 1}", "[fail-under]: no such command"),
        ("fail-if = 'godput<90'", "fail-if: 'godput<90': unknown measure 'godput' tip: did you mean goodput"),
        ("strict = 1", "strict: must be true or false"),
        ("data-loading = 'never'", "data-loading: 'never' is not one of"),
        ("[anlyze]\nstrict = true", "[anlyze]: no such command tip: did you mean analyze?"),
        ("[tool.goodput]\nstrict = true", "in this file, settings are at the top level, not in [tool.goodput]"),
        ("[analyze]\nstrikt = true", "analyze.strikt: no such option tip: did you mean strict or start?"),
        ("job = 3", "job: no such option"),
        ("job.x = 3", "job: must contain a table per job, such as [job.llm-7b]"),
        ("[job.x]\nfail-undr = 3", "job.x.fail-undr: no such option tip: did you mean fail-under"),
        ("strict = ", "is not TOML"),
        ("\x1b[31m = 1", "is not TOML"),
        ('"\\u001b[31m\\n" = 1', "\\x1b[31m\\n: no such option"),
    ],
)  # fmt: skip
def test_error_in_a_file_has_its_name_and_key(project: Path, capsys: Output, text: str, said: str) -> None:
    write_settings(project, text)
    code, lines = analyze(capsys, "-j", "x")
    error = " ".join(lines)
    assert code == 2
    assert error.startswith("error: goodput.toml: ")
    assert said in error
    assert "\x1b" not in error


@pytest.mark.parametrize(
    "text",
    [
        "output = ['x.json']", "force = true", "log-file = '/etc/passwd'", "job-name = 'x'", "log-name = 'x'",
        "quiet = true", "config = 'x'", "no-config = true", "[job.x]\noutput = 'x.json'", "[analyze]\nforce = true",
    ],
)  # fmt: skip
def test_sources_and_outputs_are_not_set_by_a_file(project: Path, capsys: Output, text: str) -> None:
    write_settings(project, text)
    code, lines = analyze(capsys, "-j", "x")
    error = " ".join(lines)
    assert code == 2
    assert "inputs and outputs can only be set on the command line" in error


@pytest.mark.parametrize("text", ["source = 'x'", "SOURCE = 'x'"])
def test_sources_are_not_settings(project: Path, capsys: Output, text: str) -> None:
    write_settings(project, text)
    assert "no such option" in analyze(capsys)[1][0]


def test_file_that_is_not_text_is_one_sentence(project: Path, capsys: Output) -> None:
    (project / "pyproject.toml").write_bytes(b"\xff\xfe\x00")
    code, (error, *_) = analyze(capsys)
    assert (code, error.startswith("error: pyproject.toml: is not TOML")) == (2, True)
    (project / "pyproject.toml").write_text("a = " + "[" * 100_000)
    assert analyze(capsys)[0] == 2
    assert analyze(capsys, "--no-config") == (0, [])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file_is_not_a_missing_one(project: Path, capsys: Output) -> None:
    write_settings(project, "fail-under = 99\n")
    (project / "goodput.toml").chmod(0)
    assert analyze(capsys) == (1, ["error: goodput.toml: cannot be read: Permission denied (or use --no-config)"])


def test_help_and_completion_read_no_files(project: Path, capsys: Output) -> None:
    write_settings(project, "nonsense = [\n")
    assert run(["analyze", "--help"]) == 0
    assert run(["--help"]) == 0
    capsys.readouterr()
    environment = {
        **os.environ,
        "_GOODPUT_COMPLETE": "bash_complete",
        "COMP_WORDS": "goodput analyze --fai",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [str(Path(sys.executable).parent / "goodput")], env=environment, capture_output=True, text=True, check=False
    )
    assert "--fail-under" in done.stdout


def test_deleted_directory_has_no_settings(project: Path, capsys: Output) -> None:
    gone = project / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    assert analyze(capsys) == (0, [])


@pytest.mark.parametrize("named", [True, False])
def test_report_does_not_replace_the_settings(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / ("settings.json" if named else "goodput.toml")
    settings.write_text("reference-step-time = 1.0\n")
    log = Path(__file__).parent.parent.parent / "sample_logs" / "primer-50-percent.jsonl"
    link = tmp_path / "answer.json"
    link.symlink_to(settings)
    monkeypatch.chdir(tmp_path)
    for output in (settings, link) if named else (link,):
        chosen = ["--config", str(settings)] if named else []
        assert run(["analyze", str(log), *chosen, "-o", str(output), "--force", "-q"]) == 2
        assert f"{output}: is an input (--config)" in capsys.readouterr().err
        assert settings.read_text() == "reference-step-time = 1.0\n"

"""`action.yml`: its scripts run in a real shell, as GitHub's runner runs them, and no input becomes part of a
script."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.support.servers import github_server

ROOT = Path(__file__).parent.parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
INSTALL, ANALYZE, COMPARE, COMMENT = STEPS
LOG = str(ROOT / "sample_logs" / "llm-pretrain.jsonl")
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@dataclass(frozen=True)
class StepResult:
    """The result of a step. said: its log output."""

    code: int
    said: str
    summary: str
    outputs: dict[str, str]


def run_step(step: dict[str, Any], folder: Path, known: dict[str, str], **inputs: str) -> StepResult:
    """Run a step with these inputs (defaults for the others) in an empty workspace."""
    given = {name: inputs.get(name.replace("-", "_"), spec["default"]) for name, spec in ACTION["inputs"].items()}
    values = {"github.action_path": str(ROOT), "github.token": "t0ken", **known}
    values |= {f"inputs.{name}": EXPRESSION.sub(lambda match: values[match[1]], text) for name, text in given.items()}
    files = {name: folder / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    for file in files.values():
        file.touch()
    work, temp = folder / "work", folder / "temp"
    for each in (work, temp):
        each.mkdir(exist_ok=True)
    env = {name: EXPRESSION.sub(lambda match: values[match[1]], text) for name, text in step["env"].items()}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],  # as the runner calls it
        env={**os.environ, **{name: str(file) for name, file in files.items()}, "RUNNER_TEMP": str(temp), **env},
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert list(work.iterdir()) == [], "the workspace was written to"
    lines = files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines()
    outputs = dict(line.split("=", 1) for line in lines)
    summary = files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
    return StepResult(done.returncode, done.stdout + done.stderr, summary, outputs)


INSTALLED = Path(sys.executable).parent


def analyze(folder: Path, programs: Path = INSTALLED, **inputs: str) -> StepResult:
    """Run the analyze step. programs: the directory of `goodput` and `python`."""
    return run_step(ANALYZE, folder, {"steps.install.outputs.bin": str(programs)}, **inputs)


def test_action_is_a_composite_action() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in ACTION["runs"]["steps"])
    assert all(set(spec) == {"description", "default"} for spec in ACTION["inputs"].values())
    set_there = {
        f"steps.{step['id']}.outputs.{name}"
        for step in (ANALYZE, COMPARE)
        for name in re.findall(r'(?:echo |print\()"([\w-]+)=', step["run"])
    }
    of_the_action = {match for spec in ACTION["outputs"].values() for match in EXPRESSION.findall(spec["value"])}
    assert of_the_action | {"steps.analyze.outputs.markdown"} == set_there
    assert all(spec["value"].endswith(f".{name} }}}}") for name, spec in ACTION["outputs"].items())


def test_no_input_is_part_of_a_script() -> None:
    for step in STEPS:
        assert "${{" not in step["run"]
        assert "eval" not in step["run"]
    used = set(EXPRESSION.findall(str([step["env"] for step in STEPS])))
    assert {name for name in used if name.startswith("inputs.")} == {f"inputs.{name}" for name in ACTION["inputs"]}
    assert {name for name in used if not name.startswith(("inputs.", "steps."))} == {"github.action_path"}


def test_gate_that_passes_exits_with_0(tmp_path: Path) -> None:
    ran = analyze(tmp_path, source=LOG, fail_under="70")
    assert ran.code == 0
    assert ran.summary.startswith("# Goodput of llm-pretrain-7b: 70.43 % (1 threshold passed)\n")
    assert ran.summary.endswith("\n\n")
    assert ran.outputs["exit-code"] == "0"
    assert float(ran.outputs["goodput"]) == pytest.approx(70.42810282556565)
    report = json.loads(Path(ran.outputs["report"]).read_text())
    assert report["thresholds"][0]["verdict"] == "passed"
    assert ElementTree.parse(ran.outputs["junit"]).getroot().tag == "testsuites"


def test_gate_that_fails_leaves_its_reports(tmp_path: Path, programs: Path) -> None:
    several = "disruptions>9\n\n  custom:EVAL_STEP > 5 %  \r\n"
    ran = analyze(tmp_path, programs, source=f"\n{LOG}\n", fail_under="90", fail_if=several, warn_if="steps.p99>1m")
    assert (ran.code, ran.outputs["exit-code"]) == (3, "3")
    assert "| goodput&lt;90 | **FAILED** | 70.43 % | 90 % |" in ran.summary
    assert "threshold custom:EVAL_STEP > 5 %: FAILED (6.53 %, limit 5 %)" in ran.said
    thresholds = json.loads(Path(ran.outputs["report"]).read_text())["thresholds"]
    assert [one["verdict"] for one in thresholds] == ["failed", "passed", "failed", "warning"]


def test_failed_gate_is_an_annotation_with_its_reason(tmp_path: Path, programs: Path) -> None:
    """Each failed gate is one annotation in one line, with the largest loss, the advice and the command."""
    ran = analyze(
        tmp_path, programs, source=LOG, fail_under="90", fail_if="disruptions>9\nqueued>5%", warn_if="steps.p99>1m"
    )
    first, second = (line for line in ran.said.splitlines() if line.startswith("::error"))
    assert first.startswith("::error title=goodput<90%3A 70.43 %25%2C limit 90 %25::goodput<90: FAILED (70.43 %25")
    assert "%0ALost 29.57 %25, 3 h 18 min" in first
    assert "%0A- 6.53 %25, 43 min 48 s: evaluation" in first
    assert "%0A- 4.39 %25, 29 min 28 s: restored step 1400" in first
    assert f"goodput timeline {LOG} --around disruption:4" in first
    assert second.startswith("::error title=queued>5%25%3A no data in the log::")


def test_unrecorded_measure_does_not_pass(tmp_path: Path, programs: Path) -> None:
    ran = analyze(tmp_path, programs, source=LOG, fail_if="queued>5%")
    assert (ran.code, ran.outputs["exit-code"]) == (4, "4")
    assert "not recorded" in ran.summary


def test_summary_without_an_answer_has_the_reason(tmp_path: Path, programs: Path) -> None:
    ran = analyze(tmp_path, programs, source="nowhere.jsonl")
    assert (ran.code, ran.outputs) == (1, {"exit-code": "1"})
    assert "::error title=goodput has no answer::exit code 1; the summary of the step says why\n" in ran.said
    assert ran.summary.startswith("# goodput has no answer (exit code 1)\n\n    error: nowhere.jsonl")


def test_options_reach_the_command(tmp_path: Path, programs: Path) -> None:
    log = str(ROOT / "sample_logs" / "primer-50-percent.jsonl")
    args = "--run\nlast\n--from=-100m"
    ran = analyze(tmp_path, programs, source=log, reference_step_time="120", job_name="goodput-primer", args=args)
    assert ran.code == 0
    report = json.loads(Path(ran.outputs["report"]).read_text())
    assert report["reference"]["step_time_seconds"] == 120
    assert report["window"]["seconds"] == 6000


HOSTILE = [
    "$(touch pwned)", "`touch pwned`", "; touch pwned", "' ; touch pwned #", '" ; touch pwned #', "&& touch pwned",
    "--output=pwned.json", "-o pwned.json", "--force", "${BIN}", "*", "~", "\\", "a\n--output=pwned.json\nb", "%s%n",
    "END\ntouch pwned", "::set-output name=goodput::99", "EOF\ngoodput=99", "-", "\x1b[31m",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_inputs_do_nothing(text: str, tmp_path: Path, programs: Path) -> None:
    """`run_step` checks that nothing is written to the workspace."""
    names = ("source", "job_name", "reference_step_time", "fail_under", "fail_if", "warn_if")
    ran = analyze(tmp_path, programs, **dict.fromkeys(names, text))
    assert (ran.code, ran.outputs) == (2, {"exit-code": "2"})
    assert "\x1b" not in ran.said


@pytest.mark.parametrize("text", ["$(touch pwned)", "--output=pwned.json", "-o pwned.json", "*", "-", "\x1b[31m"])
def test_hostile_sources_do_nothing(text: str, tmp_path: Path, programs: Path) -> None:
    ran = analyze(tmp_path, programs, source=text)
    assert (ran.code in (1, 4), ran.outputs) == (True, {"exit-code": str(ran.code)})
    assert "\x1b" not in ran.said


def test_log_names_are_not_runner_commands(tmp_path: Path, programs: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = folder / "::set-output name=goodput::99.jsonl"
    starts = (f'nonsense\n{{"job_name": "::error::x", "job_start_time": {1768249800 + n}}}\n' for n in range(3))
    log.write_text("".join(starts))
    ran = analyze(tmp_path, programs, source=str(folder))
    before, begun, rest = ran.said.partition("::stop-commands::")
    token, _, said = rest.partition("\n")
    inside, ended, after = said.partition(f"::{token}::\n")
    assert begun
    assert ended
    assert re.fullmatch("[0-9a-f]{32}", token)
    assert "::set-output" in inside
    assert "::set-output" not in before + after


BETTER = str(ROOT / "sample_logs" / "llm-pretrain-r2.jsonl")


def compare(folder: Path, report: str, programs: Path = INSTALLED, **inputs: str) -> StepResult:
    known = {"steps.install.outputs.bin": str(programs), "steps.analyze.outputs.report": report}
    return run_step(COMPARE, folder, known, **inputs)


@pytest.fixture(scope="module")
def log_analysis(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> StepResult:
    """Return what the analyze step leaves of the log."""
    return analyze(tmp_path_factory.mktemp("log"), programs, source=LOG)


@pytest.fixture(scope="module")
def better_analysis(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> StepResult:
    """Return what the analyze step leaves of the log that the baseline is compared with."""
    return analyze(tmp_path_factory.mktemp("better"), programs, source=BETTER)


def test_log_is_compared_with_a_baseline(
    tmp_path: Path, programs: Path, log_analysis: StepResult, better_analysis: StepResult
) -> None:
    """The baseline is the report that the target branch saved, or its log."""
    for baseline in (log_analysis.outputs["report"], LOG):
        ran = compare(tmp_path, better_analysis.outputs["report"], programs, baseline=baseline)
        assert ran.code == 0, ran.said
        assert Path(ran.outputs["comparison"]).read_text().startswith("# Goodput against llm-pretrain-7b\n")
        assert "# Goodput against llm-pretrain-7b" in ran.summary


def test_worse_than_the_baseline_fails(tmp_path: Path, programs: Path, better_analysis: StepResult) -> None:
    ran = compare(
        tmp_path,
        better_analysis.outputs["report"],
        programs,
        baseline=LOG,
        fail_if_worse="\n goodput:-0.5pp \nwork_time:+50%\n",
    )
    assert ran.code == 3
    (error,) = (line for line in ran.said.splitlines() if line.startswith("::error"))
    assert error.startswith(
        "::error title=goodput%3A-0.5pp against the baseline%3A -1.08 pp%2C limit -0.5 pp; "
        "inconclusive%3A step times drift::"
    )
    assert "goodput 69.35 %25, was 70.43 %25" in error
    assert "%0Aworse for the same work: recovery 3.9 %25 (5 min 22 s)" in error
    assert "comparison" in ran.outputs


def test_missing_baseline_is_reported(tmp_path: Path, programs: Path, log_analysis: StepResult) -> None:
    ran = compare(tmp_path, log_analysis.outputs["report"], programs, baseline="nowhere%.json")
    assert (ran.code, "comparison" in ran.outputs) == (0, False)
    assert "::warning title=goodput::the file that baseline names is not there: nothing was compared\n" in ran.said


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_baselines_and_changes_do_nothing(
    text: str, tmp_path: Path, log_analysis: StepResult, programs: Path
) -> None:
    report = log_analysis.outputs["report"]
    assert "comparison" not in compare(tmp_path, report, programs, baseline=LOG, fail_if_worse=text).outputs
    assert "comparison" not in compare(tmp_path, report, programs, baseline=text, job_name=text).outputs


@pytest.fixture
def comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the file of existing comments by others, one with a mark that looks like ours."""
    kept, event = tmp_path / "comments.json", tmp_path / "event.json"
    person = {"type": "User", "login": "someone"}
    others = [{"id": n, "user": person, "body": "<!-- goodput: nightly -->\nmine"} for n in range(1, 121)]
    kept.write_text(json.dumps(others))
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    with github_server(kept) as url:
        known = {
            "GITHUB_API_URL": url, "GITHUB_REPOSITORY": "o/r", "GITHUB_EVENT_PATH": str(event),
            "GITHUB_SERVER_URL": "https://github.com", "GITHUB_RUN_ID": "42",
        }  # fmt: skip
        for name, value in known.items():
            monkeypatch.setenv(name, value)
        yield kept


def run_comment_step(folder: Path, analysed: StepResult, comparison: str = "", token: str = "t0ken") -> StepResult:
    known = {
        "steps.install.outputs.bin": str(INSTALLED), "github.token": token,
        "steps.analyze.outputs.markdown": analysed.outputs["markdown"], "steps.compare.outputs.comparison": comparison,
    }  # fmt: skip
    return run_step(COMMENT, folder, known, comment="nightly")


def test_single_comment_is_written_and_updated(
    tmp_path: Path, programs: Path, comments: Path, better_analysis: StepResult
) -> None:
    first = analyze(tmp_path, programs, source=LOG, fail_under="90")
    ran = run_comment_step(tmp_path, first)
    assert ran.code == 0
    assert "commented: https://github.com/o/r/pull/7#issuecomment-121\n" in ran.said
    written = json.loads(comments.read_text())[-1]["body"]
    mark, verdict, _, first_fold, *_ = written.splitlines()
    assert (mark, verdict) == (
        "<!-- goodput: nightly -->",
        "### FAILED: Goodput of llm-pretrain-7b: 70.43 % (goodput&lt;90: limit 90 %)",
    )
    assert first_fold.startswith("<details><summary>")
    assert "| goodput&lt;90 | **FAILED** |" in written
    assert "| wasted progress |" in written
    assert written.count("<details") == written.count("</details>") > 1
    assert written.endswith(
        "\n\n[The whole report is in the summary of the run.](https://github.com/o/r/actions/runs/42)\n"
    )

    comparison = compare(tmp_path, better_analysis.outputs["report"], programs, baseline=LOG).outputs["comparison"]
    assert "comment brought up to date" in run_comment_step(tmp_path, better_analysis, comparison).said
    *others, ours = json.loads(comments.read_text())
    assert ours["id"] == 121
    verdict, change, details = (
        ours["body"].index(words)
        for words in ("### Goodput of llm-pretrain-7b-r2: 69.35 %", "### Goodput against llm-pretrain-7b\n", "<details")
    )
    assert verdict < change < details
    assert "## Time for the same work by category" in ours["body"][details:]
    assert {one["body"] for one in others} == {"<!-- goodput: nightly -->\nmine"}, "others' comments stay as they are"


def test_forbidden_comment_is_reported(tmp_path: Path, comments: Path, log_analysis: StepResult) -> None:
    before = comments.read_text()
    ran = run_comment_step(tmp_path, log_analysis, token="other")
    assert (ran.code, comments.read_text()) == (0, before)
    assert "::warning::goodput: no comment on the pull request: GitHub answered 403" in ran.said
    assert "pull-requests: write" in ran.said


def test_run_without_a_pull_request_writes_no_comment(
    tmp_path: Path, comments: Path, log_analysis: StepResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = tmp_path / "push.json"
    event.write_text('{"ref": "refs/heads/main"}')
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(event))
    ran = run_comment_step(tmp_path, log_analysis)
    assert "::notice::goodput: this run belongs to no pull request" in ran.said
    assert len(json.loads(comments.read_text())) == 120


def test_report_too_long_for_a_comment_is_cut(tmp_path: Path, comments: Path) -> None:
    report = tmp_path / "long.md"
    report.write_text(
        "# Long\n\n"
        + "a line of it\n\n" * 9000
        + "<details><summary>x</summary>\n\n"
        + "y" * 60_000
        + "\n\n</details>\n"
    )
    run_comment_step(tmp_path, StepResult(0, "", "", {"markdown": str(report)}))
    body = json.loads(comments.read_text())[-1]["body"]
    assert len(body) < 65_536
    assert "a line of it\n\n*shortened*\n\n</details>\n\n[The whole report" in body


def fake_python(folder: Path) -> str:
    """Write an interpreter that records its arguments instead of installing packages."""
    fake = folder / "python"
    fake.write_text(
        "#!/bin/bash\n"
        f"printf '%s\\n' \"$*\" >> '{folder}/calls'\n"
        'if [[ $* == "-m venv "* ]]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi\n'
    )
    fake.chmod(0o755)
    return str(fake)


@pytest.mark.parametrize(
    ("inputs", "installs"),
    [
        ({}, "--constraint /action/constraints.txt /action"),
        ({"extras": "s3,zst"}, "--constraint /action/constraints.txt /action[s3,zst]"),
        ({"version": "0.1.0"}, "goodput-cli==0.1.0"),
        ({"version": "0.1.0", "extras": "s3"}, "goodput-cli[s3]==0.1.0"),
    ],
)
def test_requested_version_is_installed(inputs: dict[str, str], installs: str, tmp_path: Path) -> None:
    python = fake_python(tmp_path)
    ran = run_step(INSTALL, tmp_path, {"github.action_path": "/action"}, python=python, **inputs)
    assert ran.code == 0, ran.said
    assert (tmp_path / "calls").read_text().splitlines()[-1].endswith(f"--disable-pip-version-check {installs}")
    assert Path(ran.outputs["bin"]).is_dir()


@pytest.mark.parametrize("text", [*HOSTILE, "1 --index-url=http://e.vil", "1 @ http://e.vil"])
@pytest.mark.parametrize("name", ["version", "extras"])
def test_hostile_versions_are_rejected(name: str, text: str, tmp_path: Path) -> None:
    ran = run_step(INSTALL, tmp_path, {"github.action_path": "/action"}, python=fake_python(tmp_path), **{name: text})
    assert (ran.code, ran.outputs) == (2, {})
    assert not (tmp_path / "calls").exists()


def test_old_python_is_one_sentence(tmp_path: Path) -> None:
    ran = run_step(INSTALL, tmp_path, {"github.action_path": "/action"}, python="/bin/false")
    assert (ran.code, "needs Python 3.11 or newer" in ran.said) == (2, True)

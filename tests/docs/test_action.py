"""`action.yml`: its scripts run in a real shell, as GitHub's runner would run them, and no input is ever a script."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
INSTALL, ANALYZE = ACTION["runs"]["steps"]
LOG = str(ROOT / "sample_logs" / "llm-pretrain.jsonl")
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@dataclass(frozen=True)
class Ran:
    """What a step left behind. said: what the log of the run shows."""

    code: int
    said: str
    summary: str
    outputs: dict[str, str]


def run_step(step: dict[str, Any], folder: Path, known: dict[str, str], **inputs: str) -> Ran:
    """A step with these inputs (the others are their defaults), in a workspace that is empty."""
    given = {name: inputs.get(name.replace("-", "_"), spec["default"]) for name, spec in ACTION["inputs"].items()}
    values = known | {f"inputs.{name}": value for name, value in given.items()}
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
    return Ran(done.returncode, done.stdout + done.stderr, summary, outputs)


def analyze(folder: Path, **inputs: str) -> Ran:
    return run_step(ANALYZE, folder, {"steps.install.outputs.bin": str(Path(sys.executable).parent)}, **inputs)


def test_the_file_is_a_composite_action() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in ACTION["runs"]["steps"])
    assert all(set(spec) == {"description", "default"} for spec in ACTION["inputs"].values())
    set_there = set(re.findall(r'echo "([\w-]+)=', ANALYZE["run"])) | set(
        re.findall(r'print\("([\w-]+)=', ANALYZE["run"])
    )
    assert set(ACTION["outputs"]) == set_there
    assert all(f"steps.analyze.outputs.{name} " in spec["value"] for name, spec in ACTION["outputs"].items())


def test_no_input_is_part_of_a_script() -> None:
    for step in (INSTALL, ANALYZE):
        assert "${{" not in step["run"]
        assert "eval" not in step["run"]
    used = set(EXPRESSION.findall(str([step["env"] for step in (INSTALL, ANALYZE)])))
    assert used == {f"inputs.{name}" for name in ACTION["inputs"]} | {"github.action_path", "steps.install.outputs.bin"}


def test_a_gate_that_passes(tmp_path: Path) -> None:
    ran = analyze(tmp_path, source=LOG, fail_under="70")
    assert ran.code == 0
    assert ran.summary.startswith("# Goodput of llm-pretrain-7b: 70.43 %\n")
    assert ran.summary.endswith("\n\n")
    assert ran.outputs["exit-code"] == "0"
    assert float(ran.outputs["goodput"]) == pytest.approx(70.42810282556565)
    report = json.loads(Path(ran.outputs["report"]).read_text())
    assert report["thresholds"][0]["verdict"] == "passed"
    assert ElementTree.parse(ran.outputs["junit"]).getroot().tag == "testsuites"


def test_a_gate_that_fails_leaves_its_reports(tmp_path: Path) -> None:
    several = "disruptions>9\n\n  custom:EVAL_STEP > 5 %  \r\n"
    ran = analyze(tmp_path, source=f"\n{LOG}\n", fail_under="90", fail_if=several, warn_if="steps.p99>1m")
    assert (ran.code, ran.outputs["exit-code"]) == (3, "3")
    assert "| goodput&lt;90 | **FAILED** | 70.43 % | 90 % |" in ran.summary
    assert "threshold custom:EVAL_STEP > 5 %: FAILED (6.53 %, limit 5 %)" in ran.said
    thresholds = json.loads(Path(ran.outputs["report"]).read_text())["thresholds"]
    assert [one["verdict"] for one in thresholds] == ["failed", "passed", "failed", "warning"]


def test_a_gate_that_fails_is_an_annotation_that_says_why(tmp_path: Path) -> None:
    """One a gate that failed, in one line of the runner: what cost most, what to do and the command are in it."""
    ran = analyze(tmp_path, source=LOG, fail_under="90", fail_if="disruptions>9\nqueued>5%", warn_if="steps.p99>1m")
    first, second = (line for line in ran.said.splitlines() if line.startswith("::error"))
    assert first.startswith("::error title=goodput<90%3A 70.43 %25%2C limit 90 %25::goodput<90: FAILED (70.43 %25")
    assert "%0ALost 29.57 %25, 3 h 18 min" in first
    assert "%0A- 8.81 %25, 59 min 09 s: restored step 1400" in first
    assert f"goodput timeline {LOG} --around disruption:4" in first
    assert second.startswith("::error title=queued>5%25%3A the log holds nothing to judge it by::")


def test_what_was_not_recorded_is_no_pass(tmp_path: Path) -> None:
    ran = analyze(tmp_path, source=LOG, fail_if="queued>5%")
    assert (ran.code, ran.outputs["exit-code"]) == (4, "4")
    assert "not recorded" in ran.summary


def test_without_an_answer_the_summary_says_why(tmp_path: Path) -> None:
    ran = analyze(tmp_path, source="nowhere.jsonl")
    assert (ran.code, ran.outputs) == (1, {"exit-code": "1"})
    assert "::error title=goodput has no answer::exit code 1; the summary of the step says why\n" in ran.said
    assert ran.summary.startswith("# goodput has no answer (exit code 1)\n\n    Error: nowhere.jsonl")


def test_options_reach_the_command(tmp_path: Path) -> None:
    log = str(ROOT / "sample_logs" / "primer-50-percent.jsonl")
    args = "--run\nlast\n--from=-100m"
    ran = analyze(tmp_path, source=log, reference_step_time="120", job_name="goodput-primer", args=args)
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
def test_hostile_inputs_do_nothing(text: str, tmp_path: Path) -> None:
    """Nothing is written to the workspace: `run_step` looks."""
    names = ("source", "job_name", "reference_step_time", "fail_under", "fail_if", "warn_if")
    ran = analyze(tmp_path, **dict.fromkeys(names, text))
    assert (ran.code, ran.outputs) == (2, {"exit-code": "2"})
    assert "\x1b" not in ran.said


@pytest.mark.parametrize("text", ["$(touch pwned)", "--output=pwned.json", "-o pwned.json", "*", "-", "\x1b[31m"])
def test_hostile_sources_do_nothing(text: str, tmp_path: Path) -> None:
    ran = analyze(tmp_path, source=text)
    assert (ran.code in (1, 4), ran.outputs) == (True, {"exit-code": str(ran.code)})
    assert "\x1b" not in ran.said


def test_names_of_a_log_are_no_commands_of_the_runner(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = folder / "::set-output name=goodput::99.jsonl"
    starts = (f'nonsense\n{{"job_name": "::error::x", "job_start_time": {1768249800 + n}}}\n' for n in range(3))
    log.write_text("".join(starts))
    ran = analyze(tmp_path, source=str(folder))
    before, begun, rest = ran.said.partition("::stop-commands::")
    token, _, said = rest.partition("\n")
    inside, ended, after = said.partition(f"::{token}::\n")
    assert begun
    assert ended
    assert re.fullmatch("[0-9a-f]{32}", token)
    assert "::set-output" in inside
    assert "::set-output" not in before + after


def fake_python(folder: Path) -> str:
    """An interpreter that writes its arguments down instead of installing something."""
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
def test_what_is_installed(inputs: dict[str, str], installs: str, tmp_path: Path) -> None:
    python = fake_python(tmp_path)
    ran = run_step(INSTALL, tmp_path, {"github.action_path": "/action"}, python=python, **inputs)
    assert ran.code == 0, ran.said
    assert (tmp_path / "calls").read_text().splitlines()[-1].endswith(f"--disable-pip-version-check {installs}")
    assert Path(ran.outputs["bin"]).is_dir()


@pytest.mark.parametrize("text", [*HOSTILE, "1 --index-url=http://e.vil", "1 @ http://e.vil"])
@pytest.mark.parametrize("name", ["version", "extras"])
def test_hostile_versions_are_refused(name: str, text: str, tmp_path: Path) -> None:
    ran = run_step(INSTALL, tmp_path, {"github.action_path": "/action"}, python=fake_python(tmp_path), **{name: text})
    assert (ran.code, ran.outputs) == (2, {})
    assert not (tmp_path / "calls").exists()


def test_an_old_python_is_a_sentence(tmp_path: Path) -> None:
    ran = run_step(INSTALL, tmp_path, {"github.action_path": "/action"}, python="/bin/false")
    assert (ran.code, "needs Python 3.11 or newer" in ran.said) == (2, True)

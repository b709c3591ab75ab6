"""docs/ci.md: its YAML is valid, and its commands, suffixes, exit codes and metrics exist."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import goodput_cli
from goodput_cli.analysis.goodput.document import AnalysisDocument
from goodput_cli.cli.main import run
from goodput_cli.errors import GoodputError
from goodput_cli.report.base import format_of
from goodput_cli.report.openmetrics import families
from tests.support.documents import ROOT, blocks, names_in_first_column, section

CI = ROOT / "docs" / "ci.md"
LOG = ROOT / "sample_logs" / "llm-pretrain.jsonl"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
WORKFLOW, STEPS, GITLAB, JOB, RULES = (yaml.safe_load(block.text) for block in blocks(CI, "yaml"))


def run_on_sample(command: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the exit code of a documented command on a sample log instead of the documented one."""
    assert command[:2] == ["goodput", "analyze"]
    monkeypatch.chdir(folder)
    own = ("logs/", "gs://my-logs/llm-7b/")
    replaced = [str(LOG) if word in own else word.replace("llm-7b", "llm-pretrain-7b") for word in command[1:]]
    assert str(LOG) in replaced
    return run(replaced)


def test_workflow_uses_the_action() -> None:
    steps = WORKFLOW["jobs"]["train"]["steps"]
    (step,) = [step for step in steps if "goodput-cli" in step.get("uses", "")]
    assert set(step["with"]) <= set(ACTION["inputs"])
    assert all(isinstance(value, str) for value in step["with"].values()), "YAML would make numbers of these"
    used = set(re.findall(r"steps\.goodput\.outputs\.([\w-]+)", str(steps)))
    assert used == set(ACTION["outputs"])
    assert not any("${{" in step.get("run", "") for step in steps)


def test_inputs_of_the_action_are_described() -> None:
    described = names_in_first_column(section(CI, "GitHub Actions"))
    assert described == [*ACTION["inputs"]]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_step_without_the_action_works(tmp_path: Path) -> None:
    (step,) = STEPS
    (tmp_path / "logs").symlink_to(ROOT / "sample_logs")
    script = step["run"].replace("logs/", "logs/llm-pretrain.jsonl")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": "summary.md"},
        check=False,
    )
    assert done.returncode == 3
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("# FAILED: Goodput of llm-pretrain-7b")


def test_gitlab_job_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = GITLAB["goodput"]
    assert run_on_sample(shlex.split(job["script"][-1]), tmp_path, monkeypatch) == 3
    written = {file.name for file in tmp_path.iterdir()}
    assert written == {*job["artifacts"]["paths"], *job["artifacts"]["reports"].values()}
    assert {name: format_of(file) for name, file in job["artifacts"]["reports"].items()} == {
        "junit": "junit",
        "metrics": "openmetrics",
    }


def test_kubernetes_job_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (container,) = JOB["spec"]["template"]["spec"]["containers"]
    assert run_on_sample(container["command"] + container["args"], tmp_path, monkeypatch) == 3
    final, _ = JOB["spec"]["podFailurePolicy"]["rules"]
    assert final["onExitCodes"]["containerName"] == container["name"]
    again = {1}
    assert {*final["onExitCodes"]["values"]} == {kind.exit_code for kind in GoodputError.__subclasses__()} - again


def test_described_metrics_are_the_existing_ones() -> None:
    analysis = goodput_cli.analyze(LOG, reference_step_time=8, thresholds=["goodput<80"])
    drafted = goodput_cli.analyze(str(ROOT / "sample_logs" / "trainers" / "own-loop.log"))
    sampled = goodput_cli.analyze(str(ROOT / "tests" / "text" / "samples" / "mldiagnostics-two-attempts.jsonl"))
    exposed = {family.name for one in (analysis, drafted, sampled) for family in families(AnalysisDocument(one))}
    assert set(names_in_first_column(section(CI, "Prometheus"))) == exposed
    for rule in RULES["groups"][0]["rules"]:
        assert set(re.findall(r"goodput_\w+", rule["expr"])) <= exposed


def test_formats_of_the_table_exist() -> None:
    table = section(CI, "Reports of a gate")
    for name, *endings in re.findall(r"^\| `(\w+)` \| `(\.\w+)`(?:, `(\.\w+)`)?", table, re.MULTILINE):
        assert {format_of(f"report{ending}") for ending in endings if ending} == {name}

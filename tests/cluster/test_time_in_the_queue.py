"""The lines of docs/trainers.md that make events of Kubernetes' objects: time in the queue and ends beside a log."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.text.support import analysed, seconds

PAGE = Path(__file__).parents[2] / "docs" / "trainers.md"
DAY = "2025-03-04T"
WORKLOADS = {
    "kind": "List",
    "items": [{
        "kind": "Workload",
        "metadata": {"name": "jobset-llm-7b-1a2b3", "creationTimestamp": f"{DAY}09:00:00Z"},
        "status": {"conditions": [
            {"type": "QuotaReserved", "status": "True", "lastTransitionTime": f"{DAY}09:07:00Z"},
            {"type": "Admitted", "status": "True", "lastTransitionTime": f"{DAY}09:08:00Z"},
        ]},
    }],
}  # fmt: skip


def pod(number: int, code: int, finished: str) -> dict[str, Any]:
    ended = {"exitCode": code, "reason": "Error", "startedAt": f"{DAY}09:09:00Z", "finishedAt": f"{DAY}{finished}Z"}
    status = {"containerStatuses": [{"name": "main", "restartCount": 0, "state": {"terminated": ended}}]}
    return {"kind": "Pod", "metadata": {"name": f"llm-7b-{number}"}, "status": status}


def filters() -> list[str]:
    """The two programs of jq, as the page has them."""
    section = PAGE.read_text(encoding="utf-8").partition("## Time in the queue of Kubernetes")[2].partition("\n## ")[0]
    return re.findall(r"jq -c --arg job llm-7b '([^']+)'", section)


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize(("codes", "ending"), [((1, 137), "crashed"), ((0, 0), "clean")])
def test_queue_start_and_end(tmp_path: Path, codes: tuple[int, int], ending: str) -> None:
    """Eight minutes in the queue, two until training, 400 s of it; the first container that fails ends the job."""
    pods = {"kind": "List", "items": [pod(at, code, f"09:17:{at}5") for at, code in enumerate(codes)]}
    log = "".join(
        f" [2025-03-04 09:{10 + n // 3:02d}:{20 * (n % 3):02d}] iteration {10 * n:8d}/    5000 | consumed samples: "
        f"{80 * n:12d} | elapsed time per iteration (ms): 2000.0 | learning rate: 1E-4 | global batch size:     8 | "
        "lm loss: 1.9E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for n in range(1, 21)
    )
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    sources = [tmp_path / "train.log"]
    for name, program, objects in zip(("queue", "ends"), filters(), (WORKLOADS, pods), strict=True):
        command = ["jq", "-c", "--arg", "job", "llm-7b", program]
        made = subprocess.run(command, input=json.dumps(objects), capture_output=True, text=True, check=True)
        sources.append(tmp_path / f"{name}.jsonl")
        sources[-1].write_text(made.stdout, encoding="utf-8")
    analysis = analysed(*sources, job_name="llm-7b", timezone="UTC")
    found = seconds(analysis)
    assert (found["queued"], found["productive"], found["program_startup"]) == (480, 400, 120)
    assert analysis.job.ending == ending
    assert analysis.job.end_ns / 1e9 % 3600 == 17 * 60 + (5 if ending == "crashed" else 15)

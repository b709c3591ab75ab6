"""Inputs of benchmarks: logs of the generator, and a separate venv for the peers."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from loggen.scenario import Model, Scenario
from loggen.write import write_log

FOLDER = Path(".benchmarks")
PEERS = Path(__file__).parent / "peers"
_REQUIREMENTS = ("ml-goodput-measurement==0.2.3", "orjson", "polars", "pyarrow", "python-dateutil")
_RECORDER = Scenario(seed=7, disruption_every=200, eval_every=50, data_loading_every=1)
_DENSE = replace(_RECORDER, data_loading_every=0)
_CALM = Scenario(seed=7, disruption_every=20_000, eval_every=1000)
_SHORT = replace(_CALM, job_name="j", disruption_every=0, save_every=0)
_CHECKPOINTS = Scenario(seed=7, model=Model.RESILIENCY, disruption_every=2000, save_every=100)


def recorder_log(lines: int, bad_share: float = 0.0) -> Path:
    """Return a step log as MaxText writes it: each step loads data, which is two lines; a save every 100 steps, an
    evaluation every 50, and a disruption every 200, which is hard for readers that look back."""
    return _log(f"recorder-loads-{lines}-{bad_share}", replace(_RECORDER, lines=lines, bad_share=bad_share))


def dense_log(lines: int) -> Path:
    """Return the same log without loads: nearly each line is a step."""
    return _log(f"recorder-{lines}", replace(_DENSE, lines=lines))


def calm_log(lines: int) -> Path:
    """Return a step log with a hundredth of those disruptions, which the reference library can read."""
    return _log(f"calm-{lines}", replace(_CALM, lines=lines))


def short_log(lines: int) -> Path:
    """Return a log of about 78 bytes per line: steps, few evaluations, and nothing else."""
    return _log(f"short-{lines}", replace(_SHORT, lines=lines))


def checkpoint_log(lines: int) -> Path:
    """Return a log of the resiliency format."""
    return _log(f"checkpoints-{lines}", replace(_CHECKPOINTS, lines=lines))


def odd_log(lines: int) -> Path:
    """Return a log of steps in lines that all differ, so each one is parsed separately."""
    path, drawn = FOLDER / f"odd-{lines}.jsonl", random.Random(1)
    if not path.exists():
        FOLDER.mkdir(exist_ok=True)
        with path.open("w") as stream:
            for step in range(lines):
                keys: list[tuple[str, Any]] = [
                    ("job_name", "odd"),
                    ("step_count", step),
                    ("step_start_time", 1.8e9 + step),
                ]
                drawn.shuffle(keys)
                keys.append((f"more{drawn.randrange(50)}", {"a": [1, 2, {"b": drawn.random()}]}))
                stream.write(json.dumps(dict(keys)) + "\n")
    return path


def fleet(jobs: int, median: int = 1100) -> Path:
    """Return a folder of logs, one job each. median: lines per log; the largest has 36 times as many, the mean 1.5
    times."""
    name = f"fleet-{jobs}" if median == 1100 else f"fleet-{jobs}-{median}"
    folder = FOLDER / name
    sizes = random.Random(1)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(jobs):
        lines = int(min(max(median * sizes.lognormvariate(0, 0.9), 60), 36.4 * median))
        start = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(hours=number * 1080 / jobs)
        _log(
            f"{name}/job-{number:05d}",
            replace(_RECORDER, seed=number, lines=lines, job_name=f"job-{number:05d}", start=start),
        )
    return folder


def _log(name: str, scenario: Scenario) -> Path:
    path = FOLDER / f"{name}.jsonl"
    if not path.exists():
        FOLDER.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("wb") as stream:
            write_log(scenario, stream)
        part.rename(path)
    return path


def peers_python() -> str | None:
    """Return the interpreter of the peers' venv, which is created if necessary; None if it cannot be created (no
    network)."""
    venv = FOLDER / "peers"
    python = venv / "bin" / "python"
    if (venv / ".installed").exists() and (venv / ".installed").read_text() == " ".join(_REQUIREMENTS):
        return str(python)
    FOLDER.mkdir(exist_ok=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *_REQUIREMENTS]
        subprocess.run(pip, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"the peers could not be installed, so nothing is compared with them: {error}", file=sys.stderr)
        return None
    (venv / ".installed").write_text(" ".join(_REQUIREMENTS))
    return str(python)

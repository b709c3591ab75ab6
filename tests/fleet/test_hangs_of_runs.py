"""Ranks that held runs up, in lists of jobs and in fleets: dumps are read with the log next to them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from tests.analysis.test_hangs import log, signal, waits
from tests.events.test_flight_recorder import STACK, dump
from tests.support.fleets import fleet


@pytest.fixture(params=["pickle", "json"])
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Write a job with dumps of its ranks and a stack, one with lines of the watchdog, and one without waits."""
    folders = [tmp_path / "logs" / name for name in ("dumped", "printed", "calm")]
    for day, folder in enumerate(folders, 1):
        (folder / "dumps").mkdir(parents=True)
        (folder / f"{folder.name}.log").write_text(log().replace("03-01", f"03-{day:02d}"), encoding="utf-8")
    for rank in range(4):
        one = dump(rank, enqueued=20 if rank != 2 else 16, completed=16)
        data = pickle.dumps(one, protocol=2) if request.param == "pickle" else json.dumps(one).encode()
        (folders[0] / "dumps" / f"nccl_trace_rank_{rank}").write_bytes(data)
    (folders[0] / "dumps" / "stack_rank_2.txt").write_text(STACK, encoding="utf-8")
    text = log(*(waits(rank, 7) for rank in range(3)), signal(3, 6))
    (folders[1] / "printed.log").write_text(text, encoding="utf-8")
    return tmp_path / "logs"


NAMED = {"dumped": "rank 2", "printed": "rank 3", "calm": None}


def test_dumps_are_read_with_the_log_of_their_job(logs: Path) -> None:
    jobs = goodput_cli.jobs(str(logs)).to_dict()
    assert {row["name"]: row["blocked_by"] for row in jobs["jobs"]} == NAMED
    assert not any(one["code"] == "unusable_dump" for one in jobs["diagnostics"])
    answer = fleet(str(logs), out=logs.parent / "out.json")
    assert {row["job"]: row["blocked_by"] for row in answer["runs"]} == NAMED
    assert not answer["not_analysed"]


def test_people_see_ranks_only_if_some_are_named(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["jobs", str(logs), "--quiet"])
    assert "rank 2" in capsys.readouterr().out
    run(["jobs", str(logs / "calm"), "--quiet"])
    assert "blocked" not in capsys.readouterr().out

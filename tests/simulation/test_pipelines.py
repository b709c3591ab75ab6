"""Hangs of jobs with pipelines: no innocent rank is named, from lines or from dumps."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.hangs.report import hangs_of
from tests.simulation.pipelines import FAULTS, PipelineJob


@pytest.mark.parametrize("seed", range(len(FAULTS)), ids=FAULTS)
@pytest.mark.parametrize("source", ["lines", "dumps"])
def test_hang_of_a_pipeline_accuses_no_innocent_rank(source: str, seed: int, tmp_path: Path) -> None:
    job = PipelineJob(seed)
    (tmp_path / "run.log").write_text(job.text() if source == "lines" else job.log(), encoding="utf-8")
    for rank, one in job.dumps().items() if source == "dumps" else ():
        data = pickle.dumps(one, protocol=2) if seed % 2 else json.dumps(one, sort_keys=True).encode()
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(data)
    for hang in hangs_of(goodput_cli.analyze(str(tmp_path / "run.log"))).values():
        assert set(hang.ranks) <= job.blamed

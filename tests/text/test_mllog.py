"""MLPerf's result files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.text.support import analysed, seconds, written

T0 = 1_759_966_200


def line(second: float, key: str, kind: str = "POINT_IN_TIME", value: Any = None, **metadata: Any) -> str:
    entry = {
        "namespace": "", "time_ms": round((T0 + second) * 1000), "event_type": kind, "key": key, "value": value,
        "metadata": {"file": "train.py", "lineno": 1, **metadata},
    }  # fmt: skip
    return f"0: :::MLLOG {json.dumps(entry)}\n"


BEGIN, END = "INTERVAL_START", "INTERVAL_END"
HEAD = [
    line(1.037, "cache_clear", value=True),
    line(1.037, "global_batch_size", value=32),
    line(1.075, "init_start", BEGIN),
    line(2.0, "init_start", BEGIN),
    line(6.5, "init_stop", END),
    line(6.549, "init_stop", END),
    line(6.549, "run_start", BEGIN),
    line(6.549, "block_start", BEGIN, samples_count=0),
    line(414.209, "block_stop", END, samples_count=12_288),
    line(414.209, "eval_start", BEGIN, samples_count=12_288),
    line(424.658, "eval_stop", END, samples_count=12_288),
    line(424.658, "block_start", BEGIN, samples_count=12_288),
]
REST = [
    line(826.079, "block_stop", END, samples_count=24_576),
    line(826.079, "eval_start", BEGIN, samples_count=24_576),
    line(835.956, "eval_stop", END, samples_count=24_576),
]


def test_a_run_of_two_blocks(tmp_path: Path) -> None:
    analysis = analysed(written(tmp_path / "r", result__0_txt="noise\n".join(HEAD + REST)))
    assert seconds(analysis) == {
        "productive": 802.842,
        "EVAL_STEP": 20.326,
        "program_startup": 6.277,
        "training_prep": 5.474,
    }
    assert (analysis.job.name, analysis.job.last_step) == ("result#0", 768)


def test_ranks_write_out_of_order(tmp_path: Path) -> None:
    lines = HEAD + REST
    analysis = analysed(written(tmp_path / "r", result__0_txt="noise\n" + "".join(lines[::-1])))
    assert seconds(analysis)["productive"] == 802.842


def test_a_run_that_was_cut(tmp_path: Path) -> None:
    analysis = analysed(written(tmp_path / "r", result__0_txt="".join(HEAD)))
    assert seconds(analysis) == {"productive": 407.698, "EVAL_STEP": 10.449, "training_prep": 5.474}


def test_files_are_runs_of_their_own(tmp_path: Path) -> None:
    end = line(840, "run_stop", END, status="success")
    folder = written(tmp_path / "r", result__0_txt="".join([*HEAD, *REST, end]), result__1_txt="".join(HEAD))
    analysis = analysed(folder, job_name="result#0")
    assert analysis.job.ending == "clean"
    assert analysis.job.attempts == 1

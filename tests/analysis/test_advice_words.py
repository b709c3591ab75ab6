"""Advice and counts agree with the numbers next to them: advice requires seconds that it would save."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.cli.main import COMMANDS, run
from goodput_cli.vocabulary.categories import CAUSES

T0 = 1_772_438_400.0
LOGS = [
    "sample_logs/llm-pretrain.jsonl", "sample_logs/primer-50-percent.jsonl", "sample_logs/trainers/own-loop.log",
    "sample_logs/trainers/nemo-ft_launcher.log", "sample_logs/trainers/torchtitan",
]  # fmt: skip
ROOT = Path(__file__).parent.parent.parent


Line = dict[str, Any]


def analyze_lines(folder: Path, *lines: Line) -> goodput_cli.Analysis:
    """Return the answer to a log of native events."""
    path = folder / "run.jsonl"
    path.write_text("".join(json.dumps({"job_name": "j", **line}) + "\n" for line in lines))
    return goodput_cli.analyze(str(path))


@pytest.mark.parametrize("log", LOGS)
def test_insight_amount_is_positive_and_command_parses(log: str) -> None:
    analysis = goodput_cli.analyze(str(ROOT / log))
    for insight in analysis.insights:
        assert insight.ns > 0
        program, name, *words = shlex.split(insight.command_line(str(ROOT / log)))
        assert program == "goodput"
        COMMANDS[name].load(name).make_context(name, words)


@pytest.mark.parametrize("code", ["preempted", "time_limit", "maintenance"])
def test_advice_without_loss_gains_nothing_from_saves(code: str) -> None:
    assert "save" in CAUSES[code].advice_for(training_lost=True)
    assert "save" not in CAUSES[code].advice_for(training_lost=False)


@pytest.mark.parametrize("lost", [0, 3])
def test_preemption_advises_saves_only_if_steps_were_lost(tmp_path: Path, lost: int) -> None:
    first: list[Line] = [{"step_count": at, "step_start_time": T0 + 10 + 10 * at} for at in range(60)]
    begin = T0 + 10 + 10 * 60 + 900
    more = [{"step_count": 60 - lost + at, "step_start_time": begin + 30 + 10 * at} for at in range(60)]
    analysis = analyze_lines(
        tmp_path, {"job_start_time": T0}, *first,
        {"goodput_event": "preemption_notice", "goodput_time": T0 + 610, "reason": "preempted"},
        {"goodput_event": "terminated", "goodput_time": T0 + 610.5, "reason": "preempted"},
        {"job_start_time": begin}, *more, {"job_end_time": begin + 640},
    )  # fmt: skip
    (insight,) = (one for one in analysis.insights if one.code in ("disruptions", "long_outage"))
    assert analysis.disruptions[0].steps_lost == lost
    assert lost > 0 or "save" not in insight.advice


def test_elastic_counts_name_one_kind_each(tmp_path: Path) -> None:
    steps = [{"step_count": at, "step_start_time": T0 + 10 * at} for at in range(1, 60)]
    elastic: list[Line] = [
        {"elastic_wait_event_type": "slice_down", "elastic_wait_start_time": T0 + 700},
        {"elastic_wait_event_type": "slice_down", "elastic_wait_end_time": T0 + 800},
        {"elastic_reinit_start_time": T0 + 800},
        {"elastic_reinit_end_time": T0 + 860},
    ]
    later = [{"step_count": at, "step_start_time": T0 + 280 + 10 * at} for at in range(60, 90)]
    analysis = analyze_lines(tmp_path, {"job_start_time": T0}, *steps, *elastic, *later)
    texts = [one.text for one in analysis.insights if one.code == "elastic"]
    assert texts == ["1 wait for slices and 1 reinitialization"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            "JobID    JobName  State\n-------- -------- --------\n4711     train    FAILED\n",
            "human-readable table of sacct",
        ),
        ("4711|train|2026-03-02T08:00:00|2026-03-02T09:00:00|FAILED|1:0\n", "without a header"),
        ("  JOBID PARTITION  NAME  USER ST  TIME NODES NODELIST(REASON)\n  4711 gpu train u R 1:02 8 n1\n", "squeue"),
    ],
    ids=["for people", "no header", "squeue"],
)
def test_unreadable_scheduler_table_names_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, words: str
) -> None:
    (tmp_path / "jobs.txt").write_text(table)
    assert run(["analyze", str(tmp_path / "jobs.txt")]) == 4
    said = " ".join(capsys.readouterr().err.split())
    assert words in said
    assert "`sacct -P -o JobID," in said


def test_sacct_epoch_times_are_read(tmp_path: Path) -> None:
    """SLURM_TIME_FORMAT=%s prints epoch seconds."""
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|Submit|Start|End|State|ExitCode\n4711|train|1772438400|1772438460|1772442060|FAILED|1:0\n"
    )
    analysis = goodput_cli.analyze(str(tmp_path / "sacct.txt"))
    assert analysis.window.start_ns == int(T0) * 10**9
    assert not [one for one in analysis.diagnostics if one.code in ("bad_value", "naive_timestamps")]


def test_recorded_class_takes_cause_of_its_traceback(tmp_path: Path) -> None:
    lines: list[Line] = [{"job_start_time": T0}]
    lines += [{"step_count": at, "step_start_time": T0 + 10 * at} for at in range(1, 30)]
    lines += [{"goodput_event": "crashed", "goodput_time": T0 + 300, "reason": "RuntimeError", "step": 29}]
    (tmp_path / "train.log").write_text(
        'Traceback (most recent call last):\n  File "train.py", line 8, in <module>\n    main()\n'
        "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    )
    (tmp_path / "run.jsonl").write_text("".join(json.dumps({"job_name": "j", **line}) + "\n" for line in lines))
    why = goodput_cli.analyze(str(tmp_path)).timeline.causes.why[-1]
    assert (why.code, why.certainty) == ("device_error", "confirmed")


def test_hugging_face_token_count_in_wandb_is_read(tmp_path: Path) -> None:
    rows = [
        {"_timestamp": T0 + 10 * at, "_runtime": 10.0 * at, "_step": at, "train/global_step": at, "train/loss": 2.0,
         "train/num_input_tokens_seen": 1000 * at}
        for at in range(1, 41)
    ]  # fmt: skip
    (tmp_path / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    work = goodput_cli.analyze(str(tmp_path / "history.jsonl")).work
    assert work is not None
    assert work.tokens == pytest.approx(1000 * work.steps)


def test_impossible_mfu_is_noted(tmp_path: Path) -> None:
    lines: list[Line] = [{"job_start_time": T0}]
    for at in range(1, 40):
        lines.append({"step_count": at, "step_start_time": T0 + 10 * at})
        lines.append({"goodput_event": "metrics", "goodput_time": T0 + 10 * at + 1, "step": at, "tflops": 1200.0})
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps({"job_name": "j", **line}) + "\n" for line in lines))
    work = goodput_cli.analyze(str(path), peak_tflops=989.0).work
    assert work is not None
    assert work.mfu_percent is not None
    assert work.mfu_percent > 100
    assert any("is impossible" in note for note in work.notes)

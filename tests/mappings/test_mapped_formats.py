"""Formats defined by mappings: NeMo, torchtitan, MaxText, DeepSpeed, DLRover, nv-one-logger, W&B, and a custom one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.errors import NotEnoughData
from tests.text.support import NANOGPT, SAMPLES, analysed, codes, seconds, written


def test_nemo_with_a_crash_and_an_ft_launcher_restart() -> None:
    analysis = analysed(SAMPLES / "nemo2-crash-and-restart.log")
    assert seconds(analysis) == {
        "productive": 151.864,
        "program_startup": 49.105,
        "unproductive_checkpoint_save_time": 2.411,
        "wasted_progress_from_disruption": 59.765,
        "infrastructure_recovery_from_disruption": 0.039,
        "other": 9.513,
    }
    (crash,) = analysis.disruptions
    assert (crash.ended, crash.last_step, crash.resumed_step) == ("crashed", 16, 10)
    assert analysis.job.ending == "clean"


def absl(second: float, text: str) -> str:
    minutes, rest = divmod(second, 60)
    return f"I0301 10:{int(minutes):02d}:{rest:09.6f} 138304841739136 train.py:819] {text}\n"


def step(second: float, number: int) -> str:
    return absl(second, f"completed step: {number}, seconds: 0.310, TFLOP/s/device: 41.2, Tokens/s/device: 800.1")


MAXTEXT = "".join((
    absl(0, "Creating checkpoint manager with ocdbt=True and zarr3=True"),
    absl(5, "No existing checkpoints found, not restoring checkpoint."),
    *(step(60 + 2 * number, number) for number in range(5)),
    absl(68.1, "Started an asynchronous checkpoint save for step 4"),
    step(70, 5),
    step(72, 6),
    absl(180, "Creating checkpoint manager with ocdbt=True and zarr3=True"),
    absl(180.5, "checkpoint manager exists so trying to load this run's existing checkpoint"),
    absl(185, "restoring from this run's directory step 4"),
    step(240, 5),
    step(242, 6),
    step(244, 7),
))  # fmt: skip
MAXTEXT_SECONDS = {
    "productive": 16,
    "program_startup": 116,
    "wasted_progress_from_disruption": 4,
    "infrastructure_recovery_from_disruption": 108,
}


def test_maxtext_restarted_from_its_checkpoint(tmp_path: Path) -> None:
    assert seconds(analysed(written(tmp_path / "llm", a_log=MAXTEXT), year=2026)) == MAXTEXT_SECONDS


def test_timestamped_lines_may_be_in_any_order(tmp_path: Path) -> None:
    lines = MAXTEXT.splitlines(keepends=True)
    shuffled = "".join(lines[at * 7 % len(lines)] for at in range(len(lines)))
    assert len(set(shuffled.splitlines())) == len(lines)
    assert seconds(analysed(written(tmp_path / "llm", a_log=shuffled + MAXTEXT), year=2026)) == MAXTEXT_SECONDS


def titan(second: float, text: str) -> str:
    return f"[rank0]:[titan] 2026-03-01 10:00:{second:06.3f} - root - INFO - {text}\n".replace(".", ",", 1)


def test_torchtitan(tmp_path: Path) -> None:
    """Up at 1; the first step takes 9 s, the others 2 s each; the save of 3 s is before the fourth."""
    log = "".join((
        titan(1, "Starting job: Llama 3 8B training"),
        titan(4, "Training starts at step 1."),
        *(titan(10 + 2 * n, f"\x1b[31mstep: {n + 1:2}  \x1b[32mloss:  8.1322  \x1b[34mtps: 5,815") for n in range(3)),
        titan(17, "Finished saving the checkpoint (or staging if async is enabled)in 3.00 seconds."),
        titan(19, "\x1b[31mstep:  4  \x1b[32mloss:  8.1  \x1b[34mtps: 5,815"),
        titan(20, "Training completed"),
    ))  # fmt: skip
    found = seconds(analysed(written(tmp_path / "titan", a_log=log)))
    assert found == {"productive": 8, "program_startup": 7, "unproductive_checkpoint_save_time": 3, "other": 1}


def test_dlrover_events() -> None:
    analysis = analysed(SAMPLES / "dlrover-events_0.log")
    assert seconds(analysis)["unproductive_checkpoint_save_time"] == pytest.approx(91.609160 + 91.014546)
    assert analysis.job.formats == ("dlrover",)


def test_one_logger() -> None:
    analysis = analysed(SAMPLES / "one-logger.jsonl")
    assert analysis.job.formats == ("one-logger",)
    assert seconds(analysis)["unproductive_checkpoint_restore_time"] == 8


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_weights_and_biases_history_is_read(tmp_path: Path, ending: str) -> None:
    rows = [
        {"_step": at, "_timestamp": 1772359200 + 30 * at, "_runtime": 30 * at, "train/global_step": 10 * at}
        for at in range(1, 5)
    ]
    if ending == "csv":
        text = "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)])
    else:
        text = "\n".join(map(json.dumps, rows))
    analysis = analysed(written(tmp_path / "run", **{f"history_{ending}": text}) / f"history.{ending}")
    assert seconds(analysis) == {"productive": 120}  # Its process began 30 s before the first row.
    assert analysis.job.kept_steps == 40


STARTS = """
[[rule]]
event = "start"
line = "Initializing a new model from scratch"
"""
TRAINED = """\
iter 0: loss 10.9, time 30000.00ms, mfu -100.00%
iter 1: loss 10.5, time 250.00ms, mfu -100.00%
iter 2: loss 10.1, time 250.00ms, mfu -100.00%
saving checkpoint to out
"""


def test_custom_mapping_reads_lines_without_a_clock(tmp_path: Path) -> None:
    folder = written(tmp_path / "out", train_log=TRAINED, nanogpt_toml=NANOGPT)
    os.utime(folder / "train.log", (1_772_359_200, 1_772_359_200))
    analysis = analysed(folder / "train.log", mapping=folder / "nanogpt.toml")
    assert seconds(analysis) == {"other": 30, "productive": 0.5}
    assert analysis.job.end_ns == 1_772_359_200 * 10**9
    assert "no_clock" in codes(analysis)
    folder = written(tmp_path / "out", train_log="Initializing a new model from scratch\n" + TRAINED,
                     nanogpt_toml=NANOGPT + STARTS)  # fmt: skip
    analysis = analysed(folder / "train.log", mapping=folder / "nanogpt.toml")
    assert seconds(analysis) == {"program_startup": 29.75, "productive": 0.75}


@pytest.mark.parametrize("wrapped", [False, True])
def test_pod_output_is_read_from_cloud_logging(tmp_path: Path, wrapped: bool) -> None:
    """MaxText on GKE: the entries' own times count, whatever the zone of the lines."""
    entries = []
    for number, line in enumerate(MAXTEXT.splitlines()):
        minutes, rest = line[9:11], line[12:21]
        body = {"jsonPayload": {"message": line}} if wrapped else {"textPayload": line}
        entries.append(body | {
            "insertId": f"i{number}",
            "timestamp": f"2026-03-01T18:{minutes}:{rest}Z",
            "labels": {"k8s-pod/jobset_sigs_k8s_io/jobset-name": "llm-7b"},
            "resource": {"type": "k8s_container", "labels": {"pod_name": "llm-7b-0"}},
        })  # fmt: skip
    text = "".join(f"{json.dumps(entry)}\n" for entry in entries[::-1])
    analysis = analysed(written(tmp_path / "pods", entries_jsonl=text))
    assert seconds(analysis) == MAXTEXT_SECONDS
    assert analysis.job.name == "llm-7b"
    assert codes(analysis).isdisjoint({"stamps_go_back", "naive_timestamps", "assumed_year"})


@pytest.mark.parametrize(
    ("name", "text", "instead"),
    [
        ("trainer__state_json", json.dumps({"global_step": 20, "log_history": [{"step": 10}]}, indent=2), "runs/"),
        ("metrics_csv", "epoch,step,train_loss\n0,49,2.5\n0,99,2.4\n", "lightning_logs/"),
    ],
)
def test_log_without_times_is_refused_with_a_tip(tmp_path: Path, name: str, text: str, instead: str) -> None:
    (path,) = written(tmp_path / "a", **{name: text}).iterdir()
    with pytest.raises(NotEnoughData, match=f"contains no time; pass its TensorBoard directory instead \\({instead}"):
        analysed(path)


def one_logger(second: float, kind: str, name: str, **more: Any) -> str:
    at = {"attributes": {"timestamp_msec": 1_772_359_200_000 + round(1000 * second)}}
    if kind == "event":
        at["attributes"] |= more
        return json.dumps({"type": kind, "span_id": "a", "event": {"name": name} | at})
    attributes = {"attributes": more} if more else {}
    return json.dumps({"type": kind, "id": name, "name": name, f"{kind}_event": at} | attributes)


def test_one_logger_spans_have_two_lines(tmp_path: Path) -> None:
    """A span with events inside has two lines; the mean of an update covers the whole process. Resumed at 100; 30 s of
    loading, then a first step of 12 s among ten of 2 s."""
    lines = [
        one_logger(0, "start", "application"),
        one_logger(10, "start", "checkpoint_load"),
        one_logger(40, "stop", "checkpoint_load"),
        one_logger(50, "start", "training_loop", train_iterations_start=100),
        *(one_logger(80 + 20 * at, "event", "training_metrics_update", current_iteration=109 + 10 * at,
                     avg_iteration_time_sec=2.5) for at in range(2)),
        one_logger(100, "start", "checkpoint_save_sync", current_iteration=120),
        one_logger(101, "event", "save_checkpoint_success", current_iteration=120),
        one_logger(105, "stop", "checkpoint_save_sync", current_iteration=120),
        one_logger(125, "event", "training_metrics_update", current_iteration=129, avg_iteration_time_sec=2.3),
        json.dumps({"type": "application_error", "span_id": "a", "event": {"name": "error", "attributes": {
            "timestamp_msec": 1_772_359_330_000}}}),
    ]  # fmt: skip
    analysis = analysed(written(tmp_path / "run", log_jsonl="\n".join(lines)))
    assert (analysis.job.ending, analysis.job.kept_steps) == ("crashed", 30)
    assert seconds(analysis) == {
        "unproductive_checkpoint_restore_time": 30,
        "program_startup": 30,
        "productive": 60,
        "unproductive_checkpoint_save_time": 5,
        "wasted_progress_from_disruption": 5,
    }


def test_dlrover_load_time_is_read(tmp_path: Path) -> None:
    line = "[2026-03-01T10:00:{:02d}.000000] [426] [ab] [Trainer] [{}] [{}] {}\n"
    log = "".join((
        line.format(0, "#start", "INSTANT", "{}"),
        line.format(5, "#load_ckpt", "BEGIN", "{}"),
        line.format(15, "#load_ckpt", "END", "{}"),
        *(line.format(20 + 5 * at, "#step", "END", json.dumps({"global_step": 1 + at})) for at in range(4)),
    ))  # fmt: skip
    found = seconds(analysed(written(tmp_path / "run", events_log=log)))
    assert found == {"unproductive_checkpoint_restore_time": 10, "program_startup": 5, "productive": 20}


def test_maxtext_without_a_start_begins_at_its_first_record(tmp_path: Path) -> None:
    step = "I0811 {} 1 metric_logger.py:196] completed step: {}, seconds: 10.228, TFLOP/s/device: 41.2\n"
    times = ("21:54:55.531340", "21:55:06.119312", "21:55:16.704861")
    log = "I0811 21:54:44.943716 1 max_utils.py:1] no step\n"
    log += "".join(step.format(time, at) for at, time in enumerate(times, 1))
    log += "I0811 21:55:27.378361 1 max_utils.py:1] no step\n"
    found = seconds(analysed(written(tmp_path / "run", a_log=log), year=2026))
    assert found == pytest.approx({"productive": 21.173521, "other": 21.261124})


def test_first_two_steps_of_torchtitan(tmp_path: Path) -> None:
    log = titan(0, "Starting job: debug training") + titan(2.603, "step:  1  loss:  8.1  memory: 1  tps: 430")
    log += titan(2.658, "step:  2  loss:  8.0  memory: 1  tps: 5,430")
    found = seconds(analysed(written(tmp_path / "run", a_log=log)))
    assert found == pytest.approx({"productive": 0.110, "program_startup": 2.548})


def test_nemo_without_a_launcher_begins_at_its_first_line(tmp_path: Path) -> None:
    """Four steps of 5 s each, after the first line of the program."""
    step = "Training epoch 0, iteration {0}/9 | lr: 1e-05 | global_step: {0} | train_step_timing in s: 5.0\n"
    log = "[NeMo I 2026-03-01 10:00:00 nemo_logger:145] Experiments will be logged at /results/llama\n"
    log += "".join(step.format(at) for at in range(4))
    log += "[NeMo I 2026-03-01 10:00:20 model_checkpoint:497] Scheduled async checkpoint save for /r/step=3-last.ckpt\n"
    log += "[NeMo I 2026-03-01 10:00:20 megatron_init:1] Preemption detected, saving checkpoint and exiting\n"
    analysis = analysed(written(tmp_path / "run", a_log=log))
    assert seconds(analysis) == {"productive": 20}
    assert analysis.job.attempts == 1
    assert "starts_mid_run" not in codes(analysis)


def test_mmengine_timestamps_have_no_year(tmp_path: Path) -> None:
    """A start, 2 epochs of 100 iterations of half a second, a validation of 20 s after each."""
    lines, second = [mm(0, "Distributed training: True")], 30
    for epoch in (1, 2):
        for done in (50, 100):
            second += 25
            lines.append(
                mm(second, f"Epoch(train)  [{epoch}][{done:4d}/100]  lr: 1.0e-03  time: 0.5000  data_time: 0.0085")
            )
        second += 20
        lines.append(mm(second, f"Epoch(val)  [{epoch}][100/100]    time: 0.4000  data_time: 0.0085"))
    found = seconds(analysed(written(tmp_path / "run", a_log="".join(lines)), year=2026))
    assert found == {"productive": 100, "program_startup": 30, "EVAL_STEP": 20, "other": 20}


def mm(second: int, text: str) -> str:
    return f"03/01 10:{second // 60:02d}:{second % 60:02d} - mmengine - INFO - {text}\n"


def test_detectron2_counts_from_0_and_evaluates(tmp_path: Path) -> None:
    """20 s to the first step's start, 400 iterations of half a second, an evaluation of a minute after 200."""
    lines, second = [d2(20, "d2.engine.train_loop", "Starting training from iteration 0")], 20
    for index in range(19, 400, 20):
        second += 10
        lines.append(
            d2(second, "d2.utils.events", f" eta: 0:16:24  iter: {index}  total_loss: 1.5  time: 0.6  lr: 1e-05")
        )
        if index == 199:
            lines.append(d2(second, "d2.evaluation.evaluator", "Start inference on 5000 batches"))
            second += 60
            lines.append(d2(second, "d2.evaluation.evaluator", "Total inference time: 0:00:59.0 (0.1 s / iter)"))
    analysis = analysed(written(tmp_path / "run", a_log="".join(lines)), year=2026)
    assert seconds(analysis) == {"productive": 200, "EVAL_STEP": 60}
    assert analysis.job.kept_steps == 400


def d2(second: int, logger: str, text: str) -> str:
    return f"[03/01 10:{second // 60:02d}:{second % 60:02d} {logger}]: {text}\n"

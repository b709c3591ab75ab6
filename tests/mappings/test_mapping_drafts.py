"""`goodput check --suggest` on unknown logs: the draft is used unchanged, and the result is correct.

Each log has seconds that can be counted by hand.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from goodput_cli.api.check import draft_mapping
from tests.mappings.drafting import at, drafted, pytorch
from tests.text.support import seconds


def test_pytorch_loop_with_epochs_a_crash_and_a_restart(tmp_path: Path) -> None:
    """Prints every 10th of 50 steps per epoch, 10 s each time. Saved at 50 (step 50 of epoch 1); it crashes 3 s after
    step 70 and continues from 50."""

    def epochs(first: int, last: int, second: float) -> str:
        lines = []
        for step in range(first, last + 1, 10):
            epoch, within = (step - 1) // 50 + 1, (step - 1) % 50 + 1
            text = f"Epoch {epoch}/4 | Step {within}/50 | loss={3 - step / 100:.4f} | lr=1.0e-04 | 1000.0 ms/step"
            lines.append(pytorch(second, text))
            second += 10
            if step % 50 == 0:
                lines.append(pytorch(second - 6, f"Saved checkpoint /ckpt/run-7/step_{step}.pt (4.0 s)"))
                second += 4
        return "".join(lines)

    log = (
        pytorch(0, "Starting training: model=gpt2-small, world_size=8")
        + pytorch(10, "Loaded dataset with 120 shards in 4.0s")
        + epochs(10, 70, 30)
        + pytorch(97, "CUDA error: device-side assert triggered", "ERROR")
        + 'Traceback (most recent call last):\n  File "train.py", line 88, in main\n'
        + pytorch(200, "Starting training: model=gpt2-small, world_size=8")
        + pytorch(205, "Resuming from checkpoint /ckpt/run-7/step_50.pt at step 50")
        + epochs(60, 100, 220)
        + pytorch(270, "Training finished in 0:04:30")
    )
    analysis = drafted(tmp_path, log)
    assert (analysis.job.attempts, analysis.job.kept_steps, analysis.job.ending) == (2, 100, "clean")
    (crash,) = analysis.disruptions
    assert (crash.cause, crash.resumed_step) == ("device_error", 50)
    assert seconds(analysis) == {
        "productive": 100,
        "program_startup": 16 + 10,  # To the first print: 30 less 10 of training and 4 of data, 20 less 10.
        "training_prep": 4,
        "unproductive_checkpoint_save_time": 8,
        "wasted_progress_from_disruption": 20 + 3,  # Steps 60 and 70, and time in flight.
        "infrastructure_recovery_from_disruption": 103,
        "other": 6,  # After the last save.
    }


@pytest.mark.parametrize("bar", [True, False])
def test_keras_has_no_clock_and_restarts_steps_per_epoch(tmp_path: Path, bar: bool) -> None:
    """3 epochs of 100 steps: 400 ms each in the first, 100 ms in the others. `verbose=1` draws a bar, 2 a line."""

    def epoch(number: int, each: int) -> str:
        states = [f"{n:3d}/100 [{'=' * (n // 20)}>....] - ETA: {100 - n}s - loss: 2.3{n}" for n in range(5, 100, 10)]
        drawn = (
            "\b" * 30 + "\r".join(states) + f"\r100/100 [==========] - {each // 10}s {each}ms/step - loss: 0.{number}"
        )
        line = (
            f"100/100 - {each // 10}s - {each}ms/step - accuracy: 0.9{number} - loss: 0.{number} - val_loss: 0.{number}"
        )
        return f"Epoch {number}/3\n{drawn if bar else line}\n"

    analysis = drafted(tmp_path, epoch(1, 400) + epoch(2, 100) + epoch(3, 100))
    assert (analysis.job.attempts, analysis.job.kept_steps) == (1, 300)
    assert seconds(analysis) == {"productive": 30, "program_startup": 30}


def test_loguru(tmp_path: Path) -> None:
    """An index from 0, every 5th, 1 s per step; a save of 6 s and an evaluation of 9 s after step 50."""

    def line(second: float, where: str, text: str, level: str = "INFO") -> str:
        return f"{at(second, '%Y-%m-%d %H:%M:%S')}.000 | {level:8s} | {where} - {text}\n"

    def step(second: float, number: int) -> str:
        text = f"iter={number:06d} loss=4.{number} grad_norm=0.812 tok/s=182,345 dt=1.000s eta=0:06:{number % 60:02d}"
        return line(second, "trainer.loop:train_step:131", text)

    log = (
        line(0, "trainer.main:main:21", "Launching run brave-otter on 16 GPUs")
        + line(1, "trainer.data:build:90", "Building dataloader (workers=8)", "DEBUG")
        + "".join(step(40 + n, n) for n in range(0, 51, 5))
        + line(96, "trainer.ckpt:save:77", "checkpoint written: s3://bucket/run/iter_000050.pt took 6.00s")
        + line(105, "trainer.eval:run:12", "eval ppl=12.50 took 9.0s")
        + "".join(step(55 + n, n) for n in range(55, 101, 5))
        + line(157, "trainer.main:main:66", "Done.", "SUCCESS")
    )
    analysis = drafted(tmp_path, log)
    assert (analysis.job.kept_steps, analysis.job.ending) == (101, "clean")
    assert seconds(analysis) == {
        "productive": 101,
        "program_startup": 39,
        "unproductive_checkpoint_save_time": 6,
        "EVAL_STEP": 9,
        "other": 2,
    }


STRUCTLOG: list[tuple[float, dict[str, object]]] = [
    (0.5, {"event": "run_started", "run_id": "b1946ac9", "gpus": 64}),
    (20, {"event": "dataset_ready", "shards": 512}),
    *(
        (60 + 20 * n + 25 * (n > 5), {"event": "train_step", "global_step": 10 * n, "epoch": 0, "step_time_ms": 2000.0})
        for n in range(1, 11)
    ),
    (170, {"event": "checkpoint_saved", "global_step": 50, "path": "/ckpt/50", "duration_s": 10.0}),
    (185, {"event": "eval_done", "global_step": 50, "ppl": 11.1, "duration_s": 15.0}),
    (286, {"event": "gpu_stats", "power_watts": 512}),
    (290, {"event": "run_finished", "run_id": "b1946ac9"}),
]
STRUCTLOG_SECONDS = {
    "productive": 200,
    "program_startup": 59.5,
    "unproductive_checkpoint_save_time": 10,
    "EVAL_STEP": 15,
    "other": 5,
}


def test_json_of_structlog_with_epoch_seconds(tmp_path: Path) -> None:
    begin = 1_772_359_200.0
    rows = sorted(STRUCTLOG, key=lambda row: row[0])
    lines = (json.dumps({**row, "level": "info", "logger": "train", "timestamp": begin + t}) for t, row in rows)
    analysis = drafted(tmp_path, "".join(f"{line}\n" for line in lines), "train.jsonl")
    assert seconds(analysis) == STRUCTLOG_SECONDS


def test_same_log_as_a_table_with_milliseconds(tmp_path: Path) -> None:
    """Only steps: the first print is the first known time."""
    rows = [f"{n},{1_772_359_200_000 + 20_000 * n},0.{n}" for n in range(10, 60, 10)]
    analysis = drafted(tmp_path, "\n".join(["step,time_ms,loss", *rows]) + "\n", "metrics.csv")
    assert seconds(analysis) == {"productive": 800}


def test_messages_in_json(tmp_path: Path) -> None:
    """python-json-logger: the step is in the text of a record."""
    said = [(0, "Training started"), *((30 + 5 * n, f"step {n} loss {4 - n / 10:.2f}") for n in range(1, 7))]
    lines = (
        json.dumps({"asctime": at(t, "%Y-%m-%d %H:%M:%S,000"), "levelname": "INFO", "message": m}) for t, m in said
    )
    analysis = drafted(tmp_path, "".join(f"{line}\n" for line in lines), "train.jsonl")
    assert seconds(analysis) == {"productive": 30, "program_startup": 30}


def test_progress_bar_with_american_dates(tmp_path: Path) -> None:
    """A tqdm bar in one line between timestamps: 80 steps of 1.25 s, a save of 14 s between 40 and 41."""

    def line(second: float, where: str, text: str) -> str:
        return f"{at(second, '%m/%d/%Y %H:%M:%S')} - INFO - {where} - {text}\n"

    def bar(*steps: int) -> str:
        def state(n: int) -> str:
            elapsed = round(1.25 * n) + (14 if n > 40 else 0)
            left = f"{elapsed // 60:02d}:{elapsed % 60:02d}<01:00"
            return (
                f"Fit: {n * 100 // 80:3d}%|{'█' * (n // 8):10s}| {n}/80 [{left},  1.25s/it, lr=1e-5, step_loss=0.{n}]"
            )

        return "\r".join(map(state, steps)) + "\n"

    log = (
        line(0, "__main__", "Distributed environment: MULTI_GPU  Backend: nccl")
        + line(25, "__main__", "Training begins")
        + bar(*range(0, 41, 4))
        + line(75, "accelerate.accelerator", "Saving current state to out/checkpoint-40")
        + line(89, "accelerate.checkpointing", "Model weights saved in out/checkpoint-40/model.safetensors")
        + bar(*range(44, 81, 4))
        + line(140, "__main__", "Training completed")
    )
    analysis = drafted(tmp_path, log)
    assert (analysis.job.kept_steps, analysis.job.ending) == (80, "clean")
    assert seconds(analysis) == {
        "productive": 100,
        "program_startup": 25,
        "unproductive_checkpoint_save_time": 14,
        "other": 1,
    }


def test_timestamps_in_an_undetected_format(tmp_path: Path) -> None:
    """The day comes before the month, as the thirteenth shows."""
    log = "".join(f"[{13}.03.2026 10:00:{5 * n:02d}] it {n} | loss 3.{n}\n" for n in range(1, 9))
    analysis = drafted(tmp_path, log)
    assert seconds(analysis) == {"productive": 35}
    assert analysis.job.start_ns == 1_773_396_005 * 10**9


def test_epochs_are_steps_if_there_are_no_others(tmp_path: Path) -> None:
    log = pytorch(0, "Begin training") + "".join(
        pytorch(40 + 30 * n, f"Epoch {n}: train_loss={2 / n:.3f} val_loss={2.1 / n:.3f} lr=0.001") for n in range(1, 5)
    )
    assert seconds(drafted(tmp_path, log)) == {"productive": 120, "program_startup": 40}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "one\ntwo words\n" * 20,
        "\u00ff\u2588" * 100,
        "{}\n" * 10,
        '{"a": [1, 2], "b": {"c": {"d": {"e": 1}}}}\n' * 5,
        "a,b\n1,2\n3\n",
        "step {step:int} [? {_} ?] '''\n" * 5 + 'it\'s "quoted" \\ 5\n' * 5,
        "[2026-13-45 99:99:99] step 1\n" * 5,
        "step 1 2 3 4 5 " * 200 + "\n",
        "\r".join(f"{n}%" for n in range(100)) + "\n",
        "Step 9999999999999999999999 done\n" * 4,
    ],
)
def test_draft_of_any_log_is_a_mapping_or_a_tip(tmp_path: Path, text: str) -> None:
    from goodput_cli.errors import UsageError
    from goodput_cli.events.reading_options import ReadingOptions

    log, own = tmp_path / "x.log", tmp_path / "my.toml"
    log.write_text(text, encoding="utf-8")
    own.write_text(draft_mapping(str(log)).text, encoding="utf-8")
    if "\n[[rule]]" in own.read_text("utf-8"):
        ReadingOptions(mapping=(str(own),)).checked()
    else:
        assert "pass --mapping my.toml" in own.read_text("utf-8")
        with pytest.raises(UsageError, match=r"needs `\[\[rule\]\]` tables"):
            ReadingOptions(mapping=(str(own),)).checked()


def test_log_of_a_known_format_needs_no_mapping(tmp_path: Path) -> None:
    from tests.text.support import SAMPLES

    assert (
        "# no mapping needed: steps are read as launcher and nemo2"
        in draft_mapping(str(SAMPLES / "nemo2-crash-and-restart.log")).text
    )


@pytest.mark.parametrize(
    "part", ["1:1:1:", "a/b.py:1:1:1", "1,111", "a_", "save ", "INFO - ", "[", '"', "-", "█", "a.a:"]
)
def test_lines_of_many_numbers_are_read_once(tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of 600 characters of numbers: each column is extracted once, not once per pair of columns."""
    made: list[str] = []
    real = re.fullmatch

    def counted(pattern: str, text: str, *flags: int) -> re.Match[str] | None:
        made.append(text)
        return real(pattern, text, *flags)

    monkeypatch.setattr(re, "fullmatch", counted)
    log = tmp_path / "x.log"
    log.write_text("".join(f"{part * (600 // len(part))} {n}\n" for n in range(20)), encoding="utf-8")
    assert draft_mapping(str(log)).text.startswith('name = "x"')
    assert len(made) < 20_000

"""The callbacks in tiny real runs of Lightning and Transformers, each in a separate process: steps, evaluations and
saves are counted, and after a kill inside a save the log does not claim it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.record.record_programs import events, lines, run, start

LIGHTNING = """
import warnings; warnings.simplefilter("ignore")
import torch
import lightning.pytorch as L
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset
from goodput_cli.record import Recorder
from goodput_cli.record.callbacks.lightning import GoodputCallback

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        return self.layer(batch[0]).mean()
    def validation_step(self, batch, index):
        self.layer(batch[0])
    def on_save_checkpoint(self, checkpoint):
        if "hang" in sys.argv:
            print("saving", flush=True)
            time.sleep(600)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

data = DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=4)
trainer = L.Trainer(
    max_epochs=4 if "resume" in sys.argv else 2, accelerator="cpu", logger=False, enable_progress_bar=False,
    accumulate_grad_batches=2,
    callbacks=[GoodputCallback(Recorder("j", "log.jsonl", heartbeat=0)), ModelCheckpoint("saved")],
    default_root_dir=".",
)
trainer.fit(Model(), data, data, ckpt_path=sys.argv[2] if "resume" in sys.argv else None)
"""
TRANSFORMERS = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from goodput_cli.record import Recorder
from goodput_cli.record.callbacks.transformers import GoodputCallback

model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=16, n_positions=8))
tokens = torch.arange(8) % 16
data = [{"input_ids": tokens, "labels": tokens} for _ in range(16)]
arguments = TrainingArguments(
    output_dir="out", max_steps=9 if "resume" in sys.argv else 6,
    per_device_train_batch_size=2, eval_strategy="steps", eval_steps=3, save_steps=3,
    report_to=[], use_cpu=True, disable_tqdm=True, logging_strategy="no",
)

class Hanging(Trainer):
    def save_model(self, *args, **named):
        if "hang" in sys.argv:
            print("saving", flush=True)
            time.sleep(600)
        super().save_model(*args, **named)

callback = GoodputCallback(Recorder("j", "log.jsonl", heartbeat=0))
Hanging(model=model, args=arguments, train_dataset=data, eval_dataset=data, callbacks=[callback]).train(
    resume_from_checkpoint="resume" in sys.argv
)
"""
EVAL = ["custom_badput_event_start_time", "custom_badput_event_end_time"]
SAVE = ["save", "checkpoint_saved"]


def test_lightning(tmp_path: Path) -> None:
    run(tmp_path, LIGHTNING, packages=True)
    assert events(tmp_path / "log.jsonl") == [
        *("attempt", "job_start_time", "training_prep_start_time", *EVAL, "training_prep_end_time"),
        *(*(f"step {step}" for step in range(4)), *EVAL, *SAVE),
        *(*(f"step {step}" for step in range(4, 8)), *EVAL, *SAVE),
        "job_end_time",
    ]


def test_transformers(tmp_path: Path) -> None:
    run(tmp_path, TRANSFORMERS, packages=True)
    assert events(tmp_path / "log.jsonl") == [
        *("attempt", "job_start_time", "training_prep_start_time", "training_prep_end_time"),
        *(*(f"step {step}" for step in range(3)), *EVAL, *SAVE),
        *(*(f"step {step}" for step in range(3, 6)), *EVAL, *SAVE),
        "job_end_time",
    ]
    assert [line["step"] for line in lines(tmp_path / "log.jsonl") if line.get("event_type") == "save"] == [3, 6]


@pytest.mark.parametrize("program", [LIGHTNING, TRANSFORMERS], ids=["lightning", "transformers"])
def test_kill_during_a_save_is_recorded(tmp_path: Path, program: str) -> None:
    process = start(tmp_path, program, "hang", packages=True)
    assert process.stdout is not None
    while process.stdout.readline() not in ("saving\n", ""):
        pass
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not {*SAVE, "job_end_time", "terminated"} & set(events(tmp_path / "log.jsonl"))


def test_lightning_restore_is_recorded(tmp_path: Path) -> None:
    run(tmp_path, LIGHTNING, packages=True)
    (saved,) = (path.relative_to(tmp_path) for path in (tmp_path / "saved").iterdir())
    first = len(events(tmp_path / "log.jsonl"))
    run(tmp_path, LIGHTNING, "resume", str(saved), packages=True)
    found = events(tmp_path / "log.jsonl")[first:]
    assert found[:5] == ["attempt", "job_start_time", "training_prep_start_time", "restore", "checkpoint_loaded"]
    restores = [line for line in lines(tmp_path / "log.jsonl") if line.get("event_type") == "restore"]
    assert [(line["step"], line["directory"]) for line in restores] == [(8, str(saved))]
    assert [one for one in found if one.startswith("step ")] == [f"step {step}" for step in range(8, 16)]


def test_transformers_restore_is_recorded(tmp_path: Path) -> None:
    run(tmp_path, TRANSFORMERS, packages=True)
    first = len(events(tmp_path / "log.jsonl"))
    run(tmp_path, TRANSFORMERS, "resume", packages=True)
    found = events(tmp_path / "log.jsonl")[first:]
    prepared = found[2 : found.index("training_prep_end_time")]
    assert prepared[0] == "training_prep_start_time"
    assert {*prepared[1:]} == {"restore", "checkpoint_loaded"}
    restores = [line for line in lines(tmp_path / "log.jsonl") if line.get("event_type") == "restore"]
    assert {line["step"] for line in restores} == {6}
    assert [one for one in found if one.startswith("step ")] == [f"step {step}" for step in range(6, 9)]

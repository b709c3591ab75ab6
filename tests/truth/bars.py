"""Output of programs that draw a progress bar: Hugging Face's Trainer, Lightning, and a loop with tqdm.

A bar shows whole seconds since it began, and no time of day: logger lines around it have one. Its time includes
everything that its program does between two steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.truth.lines import elastic, failed, time
from tests.truth.world import EPOCH, Happening, World

_TOTAL = 20_000
_LOGGED = 10
"""Steps between two lines with a loss."""


class _Bar:
    """A bar of tqdm: its label, its beginning, and its total."""

    def __init__(self, name: str, total: int, begin: float, more: str = "") -> None:
        self.name, self.total, self.begin, self.more = name, total, begin, more

    def drawn(self, done: int, now: float) -> str:
        """Return a state of it, after the state that it overwrites."""
        minutes, seconds = divmod(int(now - self.begin), 60)
        hours, minutes = divmod(minutes, 60)
        clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"
        share = done / self.total
        rate = f"{(now - self.begin) / done:5.2f}s/it" if done else "?it/s"
        bar = ("█" * int(10 * share)).ljust(10)
        return f"\r{self.name}{100 * share:3.0f}%|{bar}| {done}/{self.total} [{clock}<44:10:00, {rate}{self.more}]"


def trainer(world: World) -> Iterator[str]:
    """Yield the output of Hugging Face's Trainer in a script of its examples: a bar of all steps, whose first state
    after a resume jumps; losses every ten steps, evaluations with their time, saves when they begin."""
    program = _Trainer()
    for one in world.happenings:
        yield from program.lines_of(one)


class _Trainer:
    """State between two lines: its bar, and the step from which it resumed."""

    def __init__(self) -> None:
        self.bar: _Bar | None = None
        self.resumed = 0

    def lines_of(self, one: Happening) -> Iterator[str]:
        """Its lines of a happening, and states of bars."""
        if one.kind in ("step", "begun") and self.bar is None:
            yield from self._begins(one.begin)
        match one.kind:
            case "start":
                self.bar, self.resumed = None, 0
                yield f"{time(one.begin):%m/%d/%Y %H:%M:%S} - WARNING - __main__ - Process rank: 0, device: cuda:0\n"
            case "init":
                yield _info(one.end, "configuration_utils.py:733", "loading configuration file config.json")
            case "restore":
                self.resumed = one.step
                yield _info(one.end, "trainer.py:2891", f"Loading model from /ckpt/checkpoint-{one.step}.")
            case "save":
                yield _info(one.begin, "trainer.py:3478", f"Saving model checkpoint to /ckpt/checkpoint-{one.step}")
                yield _info(one.end, "modeling_utils.py:2763", "Model weights saved in /ckpt/model.safetensors")
            case "crash":
                yield "\n".join(["", *failed(one, "[rank3]: ", elastic(one)), ""])
            case _ if self.bar is not None:
                yield from self._trains(one, self.bar)

    def _begins(self, at: float) -> Iterator[str]:
        self.bar = _Bar("", _TOTAL, at)
        yield _info(at, "trainer.py:2134", "***** Running training *****")
        yield _info(at, "trainer.py:2135", "  Num examples = 5,120,000")
        if self.resumed:
            yield _info(at, "trainer.py:2161", f"  Continuing training from global step {self.resumed}")
        yield self.bar.drawn(0, at)

    def _trains(self, one: Happening, bar: _Bar) -> Iterator[str]:
        said, epoch = "", f"'epoch': {one.step / EPOCH}"
        match one.kind:
            case "step":
                yield bar.drawn(one.step, one.end)
                if one.step % _LOGGED == 0:
                    said = f"{{'loss': 2.1, 'grad_norm': 0.41, 'learning_rate': 4.9e-05, {epoch}}}"
            case "eval":
                yield _info(one.begin, "trainer.py:3819", "***** Running Evaluation *****")
                yield from _inner("", one)
                said = f"{{'eval_loss': 2.2, 'eval_runtime': {one.end - one.begin:.4f}, {epoch}}}"
            case "finish":
                yield _info(
                    one.end, "trainer.py:2394", "Training completed. Do not forget to share your model on hf.co"
                )
                yield f"{{'train_runtime': {one.end - bar.begin:.4f}, 'train_loss': 2.0, 'epoch': 5.0}}\n"
        if said:
            yield f"\r{' ' * 60}\r{said}\n{bar.drawn(one.step, one.end)}"


def _info(at: float, where: str, words: str) -> str:
    stamp = f"{time(at):%Y-%m-%d %H:%M:%S},{time(at).microsecond // 1000:03}"
    return f"\n[INFO|{where}] {stamp} >> {words}\n"


def lightning(world: World) -> Iterator[str]:
    """Lightning in the template that logs with Hydra: a bar an epoch, one a validation, and none for a save."""
    epochs = _Epochs()
    for one in world.happenings:
        yield from epochs.lines_of(one)


class _Epochs:
    """State of Lightning between two lines: the bar of its epoch."""

    def __init__(self) -> None:
        self.bar: _Bar | None = None

    def lines_of(self, one: Happening) -> Iterator[str]:
        """Its lines of a happening, and states of bars."""
        match one.kind:
            case "start":
                self.bar = None
                yield _hydra(one.begin, "Instantiating datamodule <src.data.Text>")
            case "prep":
                yield _hydra(one.end, "Starting training!")
            case "restore":
                yield f"Restoring states from the checkpoint path at /ckpt/epoch=0-step={one.step}.ckpt\n"
                yield f"Restored all states from the checkpoint at /ckpt/epoch=0-step={one.step}.ckpt\n"
            case "begun":
                yield from self._of_epoch(one.step, one.begin)
            case "step":
                yield from self._of_epoch(one.step - 1, one.begin)
                yield self.bar.drawn((one.step - 1) % EPOCH + 1, one.end) if self.bar else ""
            case "eval":
                yield from _inner("Validation DataLoader 0: ", one)
            case "crash":
                yield _hydra(one.end, "", "ERROR")
                yield from (f"{line}\n" for line in failed(one, ""))
                yield _hydra(one.end, "Output dir: /logs/train/runs/2026-03-01_10-00-00")
                yield "Error executing job with overrides: ['experiment=llm']\n"
                yield from (f"{line}\n" for line in failed(one, ""))
                yield "\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
            case "finish":
                yield f"\n`Trainer.fit` stopped: `max_steps={one.step}` reached.\n"
                yield _hydra(one.end, "Best ckpt path: /ckpt/last.ckpt")

    def _of_epoch(self, done: int, at: float) -> Iterator[str]:
        """Yield a new bar, if this number of finished steps belongs to another epoch."""
        name = f"Epoch {done // EPOCH}: "
        if self.bar is None or self.bar.name != name:
            self.bar = _Bar(name, EPOCH, at, ", v_num=0, train_loss=2.130")
            yield "\n" + self.bar.drawn(0, at)


def _inner(name: str, one: Happening) -> Iterator[str]:
    """The bar of an evaluation, which is wiped away."""
    bar = _Bar(name, 40, one.begin)
    yield from (bar.drawn(part, one.begin + part * (one.end - one.begin) / 40) for part in range(41))
    yield f"\r{' ' * 60}\r"


def _hydra(at: float, words: str, level: str = "INFO") -> str:
    stamp = f"{time(at):%Y-%m-%d %H:%M:%S},{time(at).microsecond // 1000:03}"
    return f"\n[{stamp}][src.train][{level}] - {words}\n"


def loop(world: World) -> Iterator[str]:
    """A loop with tqdm, as examples of Diffusers with Accelerate have it: a bar that begins where it resumed, saves
    when they begin and end, and evaluations that only the bar's clock knows of."""
    bar: _Bar | None = None
    for one in world.happenings:
        if one.kind in ("step", "begun") and bar is None:
            yield _logger(one.begin, "***** Running training *****")
            yield _logger(one.begin, "  Total optimization steps = 20000")
            bar = _Bar("Steps: ", _TOTAL, one.begin, ", lr=0.0001, step_loss=0.0213")
            yield bar.drawn(one.step - (one.kind == "step"), one.begin)
        match one.kind:
            case "start":
                bar = None
                yield _logger(one.begin, "Distributed environment: MULTI_GPU  Backend: nccl")
            case "restore":
                yield f"Resuming from checkpoint checkpoint-{one.step}\n"
            case "step" if bar:
                yield bar.drawn(one.step, one.end)
            case "save":
                yield _logger(one.begin, f"Saving current state to /ckpt/checkpoint-{one.step}")
                yield _logger(one.end, f"Saved state to /ckpt/checkpoint-{one.step}")
            case "crash":
                yield "\n".join(["", *failed(one, "[rank3]: ", elastic(one)), ""])
            case "finish":
                yield _logger(one.end, "Model weights saved in /ckpt/pytorch_lora_weights.safetensors")


def _logger(at: float, words: str) -> str:
    return f"\n{time(at):%m/%d/%Y %H:%M:%S} - INFO - __main__ - {words}\n"

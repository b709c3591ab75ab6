"""Which saves are complete checkpoints (accounting §2): the same story in the words of each program.

11 steps of 100 s, saves of steps 5 and 10 that block for 2 s, a death after step 11, a restore of step 5, and 15 steps
more. The stories differ only in which completions the log states.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from goodput_cli.analysis.goodput.analysis import Analysis
from tests.text.support import analysed
from tests.text.test_folders import at

Line = Callable[[int, int], str]
STEP_S = 100


def megatron(text: str) -> Line:
    return lambda time, step: text.format(at=at(time), step=step)


def nemo(text: str) -> Line:
    return lambda time, step: f"[NeMo I {at(time)} x:1] " + text.format(step=step, index=step - 1)


def titan(text: str) -> Line:
    return lambda time, step: f"[titan] {at(time)},000 - root - INFO - " + text.format(step=step, following=step + 1)


def maxtext(text: str) -> Line:
    return lambda time, step: (
        f"I{at(time)[5:7]}{at(time)[8:10]} {at(time)[11:]}.000000 1 x.py:1] " + text.format(step=step, index=step - 1)
    )


def dlrover(name: str, edge: str) -> Line:
    def line(time: int, step: int) -> str:
        content = json.dumps({"global_step": step}) if step else "{}"
        return f"[{at(time).replace(' ', 'T')}.000000] [4] [a] [AtorchTrainerV2] [#{name}] [{edge}] {content}"

    return line


def own(text: str) -> Line:
    return lambda time, step: f"{at(time)} {text.format(step=step)}"


EPOCH = 1_772_359_200


def record(**fields: object) -> Line:
    def line(time: int, step: int) -> str:
        values = {key: value(time, step) if callable(value) else value for key, value in fields.items()}
        return json.dumps({"job_name": "job", **values})

    return line


def iso(time: int, _: int) -> str:
    return at(time).replace(" ", "T")


def orbax(*, synchronous: bool) -> Line:
    return record(
        event_type="save", step=lambda _, step: step - 1, directory="gs://b/c", synchronous=synchronous,
        checkpoint_manager_blocking_start_time=lambda time, _: EPOCH + time - 2,
        checkpoint_manager_blocking_duration_secs=2,
    )  # fmt: skip


@dataclass(frozen=True)
class Format:
    """Lines of a program: each at a time (s), with the number of completed steps."""

    step: Line
    resume: Line
    complete: Line
    start: Line | None = None
    begin: Line | None = None
    blocked: Line | None = None
    sync_only: bool = False
    """True if its completion is the end of the blocking part."""


ITERATION = (
    "[{at}] iteration {step:8d}/ 1000 | consumed samples: 64 | elapsed time per iteration (ms): 100000.0 | "
    "learning rate: 1.0E-04 | global batch size: 64 |"
)
EVENT = {"timestamp": iso}
FORMATS = {
    "megatron": Format(
        megatron(ITERATION),
        megatron("  successfully loaded checkpoint from /c [ t 1/8 ] at iteration {step}"),
        megatron("[{at}]   successfully saved checkpoint from iteration {step:8d} to /c"),
        megatron("[before the start of training step] datetime: {at} "),
        megatron("[{at}] saving checkpoint at iteration {step:8d} to /c in torch_dist format"),
        megatron("[{at}]   scheduled an async checkpoint save at iteration {step:8d} to /c"),
    ),
    "nemo2": Format(
        nemo("Training epoch 0, iteration {index}/99 | lr: 1 | global_batch_size: 4 | global_step: {index} | "
             "reduced_train_loss: 1.2 | train_step_timing in s: 100.0 | consumed_samples: 4"),
        nemo("Restoring states from the checkpoint path at /c/epoch=0-step={index}-last/weights"),
        nemo("Async checkpoint save for step {step} (/c/epoch=0-step={index}.ckpt) finalized successfully."),
        nemo("Experiments will be logged at /c"),
        None,
        nemo("Scheduled async checkpoint save for /c/epoch=0-step={index}-consumed_samples=4.ckpt"),
    ),
    "torchtitan": Format(
        titan("step: {step}  loss:  8.1  memory: 39.00GiB(41.04%)  tps: 5,815  mfu: 2.85%"),
        titan("Training starts at step {following}"),
        titan("Finished saving the checkpoint in 2.00 seconds."),
        titan("Starting job: Llama"),
        None,
        titan("Finished saving the checkpoint (or staging if async is enabled) in 2.00 seconds."),
        sync_only=True,
    ),
    "dlrover": Format(
        dlrover("step", "END"), dlrover("load_ckpt", "END"), dlrover("save", "END"), dlrover("start", "INSTANT"),
        dlrover("save", "BEGIN"), None, sync_only=True,
    ),
    "recorder": Format(
        record(step_start_time=lambda time, _: EPOCH + time, step_count=lambda _, step: step),
        record(event_type="checkpoint_loaded", step=lambda _, step: step - 1, **EVENT),
        record(event_type="checkpoint_saved", step=lambda _, step: step - 1, **EVENT),
        record(job_start_time=lambda time, _: EPOCH + time), None, orbax(synchronous=False),
    ),
    "maxtext": Format(
        maxtext("completed step: {index}, seconds: 100.000, TFLOP/s/device: 31.2, Tokens/s/device: 800.1, loss: 9.1"),
        maxtext("restoring from this run's directory step {index}"),
        maxtext("[process=0] [async] Finished save (blocking + background) in 12.00 seconds @ gs://b/c/{index}"),
        maxtext("System Information: Jax Version: 0.8.1"),
        None,
        maxtext("Started an asynchronous checkpoint save for step {index}"),
    ),
    "own": Format(
        own("step {step}"), own("resumed {step}"), own("checkpoint {step} complete"), own("started"),
        own("checkpoint {step} begins"), own("checkpoint {step} staged"),
    ),
}  # fmt: skip
OWN = r"""
name = "mine"
[[rule]]
event = "start"
line = "started"
[[rule]]
event = "step"
line = "step {step:int}"
[[rule]]
event = "resume"
line = "resumed {step:int}"
[[rule]]
event = "save"
edge = "begin"
line = "checkpoint {step:int} begins"
[[rule]]
event = "save"
edge = "end"
state = "blocking_done"
line = "checkpoint {step:int} staged"
[[rule]]
event = "saved"
line = "checkpoint {step:int} complete"
"""
STORIES = {
    "completed": (True, True),
    "died before": (True, False),
    "no completion lines": (False, False),
    "died in the save": (True, None),
}
"""True for each save with a logged completion; None: the death comes during the save."""
KINDS = {
    "completed": {"older_checkpoint"}, "died before": {"failed_saves"}, "no completion lines": {"unknown_saves"},
    "died in the save": {"failed_saves"},
}  # fmt: skip
ALL = [(name, story) for name in FORMATS for story in STORIES]


def save_lines(one: Format, time: int, step: int, completed: bool | None) -> Iterator[str]:
    yield from [one.begin(time, step)] if one.begin is not None else []
    if completed is None:
        return
    if one.blocked is not None and not (one.sync_only and completed):
        yield one.blocked(time + 2, step)
    if completed:
        yield one.complete(time + (2 if one.sync_only else 20), step)


def story_lines(one: Format, completions: tuple[bool, bool | None], *, restarts: bool) -> Iterator[str]:
    time = 0
    yield from [one.start(time, 0)] if one.start is not None else []
    for step in range(1, 12):
        time += STEP_S
        yield one.step(time, step)
        if step in (5, 10):
            yield from save_lines(one, time + 1, step, completions[step // 10])
            if completions[step // 10] is None:
                break
            time += 3
    if not restarts:
        return
    time += 300
    yield from [one.start(time, 0)] if one.start is not None else []
    yield one.resume(time + 1, 5)
    for step in range(6, 21):
        time += STEP_S
        yield one.step(time, step)


def analysis_of(folder: Path, name: str, lines: Iterable[str]) -> Analysis:
    path = folder / {"dlrover": "events_0.log", "recorder": "job.jsonl"}.get(name, "train.log")
    path.write_text("\n".join(lines) + "\n")
    if name != "own":
        return analysed(path)
    (folder / "mine.toml").write_text(OWN)
    return analysed(path, mapping=folder / "mine.toml")


def about_saves(analysis: Analysis) -> dict[str, str]:
    codes = {"older_checkpoint", "failed_saves", "unknown_saves"}
    return {one.code: one.text for one in analysis.insights if one.code in codes}


def advice_of(folder: Path, name: str, lines: Iterable[str]) -> set[str]:
    return {one.advice for one in analysis_of(folder, name, lines).insights}


@pytest.mark.parametrize(("name", "story"), ALL)
def test_completion_decides_what_is_lost_to_saves(tmp_path: Path, name: str, story: str) -> None:
    """If a program logs no begin, a death during the save leaves no line."""
    one = FORMATS[name]
    seen = about_saves(analysis_of(tmp_path, name, story_lines(one, STORIES[story], restarts=True)))
    hidden = story == "died in the save" and one.begin is None
    assert set(seen) == (set() if hidden else KINDS[story])
    step = 9 if name == "recorder" else 10
    expected = {
        "older_checkpoint": f"although checkpoint {step} was complete",
        "failed_saves": f"checkpoint {step} was incomplete when the job failed",
        "unknown_saves": f"the log does not show that checkpoint {step} was complete",
    }
    assert all(expected[code] in text for code, text in seen.items())


@pytest.mark.parametrize("name", FORMATS)
def test_unknown_completion_gives_no_advice(tmp_path: Path, name: str) -> None:
    lines = story_lines(FORMATS[name], STORIES["no completion lines"], restarts=True)
    (found,) = (one for one in analysis_of(tmp_path, name, lines).insights if one.code == "unknown_saves")
    assert found.advice == ""


AT_RISK = {"completed": (1, False), "died before": (6, False), "no completion lines": (11, True)}
"""Steps after the last complete save, and True if that is a bound, in a log that ends with the death."""


@pytest.mark.parametrize(("name", "story"), [(name, story) for name in FORMATS for story in AT_RISK])
def test_at_risk_is_training_after_the_last_complete_save(tmp_path: Path, name: str, story: str) -> None:
    """The recorder logs begins of steps: its step in flight is not kept."""
    risk = analysis_of(tmp_path, name, story_lines(FORMATS[name], STORIES[story], restarts=False)).at_risk
    steps, is_bound = AT_RISK[story]
    assert risk is not None
    assert (risk.steps, risk.is_bound) == (steps - (name == "recorder"), is_bound)


BEGINS = [
    (name, story)
    for name, story in ALL
    if FORMATS[name].begin and (story == "completed" or (FORMATS[name].blocked and story != "died in the save"))
]
"""Programs whose other lines show the same saves."""


@pytest.mark.parametrize(("name", "story"), BEGINS)
def test_a_deleted_begin_line_changes_no_advice(tmp_path: Path, name: str, story: str) -> None:
    one = FORMATS[name]
    whole = advice_of(tmp_path, name, story_lines(one, STORIES[story], restarts=True))
    assert advice_of(tmp_path, name, story_lines(replace(one, begin=None), STORIES[story], restarts=True)) == whole


def test_staging_line_without_a_step_is_of_the_save_before_it(tmp_path: Path) -> None:
    """Two saves of 2 s, 40 s apart: each has a begin with its step, and a staging line without one."""
    mapping = tmp_path / "mine.toml"
    mapping.write_text(OWN.replace("checkpoint {step:int} staged", "staged in {took:float} s"), encoding="utf-8")
    log = tmp_path / "train.log"
    lines = [own("started")(0, 0)]
    for step in range(1, 11):
        lines.append(own("step {step}")(20 * step, step))
        if step in (5, 7):
            lines += [own("checkpoint {step} begins")(20 * step + 1, step), own("staged in 2.0 s")(20 * step + 3, step)]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    saves = analysed(log, mapping=mapping).saves
    assert saves is not None
    assert (saves.count, saves.interval_seconds) == (2, 40)

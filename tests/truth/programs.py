"""Output of ten kinds of programs for a world, modeled on their real output, and the facts that such a log can show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.truth.bars import lightning, loop, trainer
from tests.truth.lines import BEGIN, elastic, failed, time
from tests.truth.world import BATCH, BEAT, Happening, World

JOB = "truth"
_EVERY = 10
"""Steps between two records of programs that do not log each."""
_TOKENS = 136.0
"""Tokens per sample, over the number of devices."""


@dataclass(frozen=True)
class Program:
    """A kind of program: its output for a world, and the facts in it."""

    name: str
    print: Callable[[World], Iterator[str]]
    shows: frozenset[str]
    """Facts: `steps` (their times), `each` step, `saves`, `restores`, `evals`, `loads`, `starts` (of processes that
    never step), `inits`, `epochs`, `deaths` (that the last attempt failed), `times` and `causes` of failures, `process`
    (that it continues), `beats`, `plans` (that an end was planned), `batch`, `finish`."""
    draws: bool = False
    """True if it draws a bar: its output has its own line ends."""
    hides: frozenset[str] = frozenset()
    """Kinds of happenings that are part of its step times, because a bar does not show them."""
    blocking_save: float = 1.0
    has_reference: bool = False
    """True if slow steps are not goodput, because the log is of checkpoints."""

    def log(self, world: World) -> str:
        """The log of a world."""
        end = "" if self.draws else "\n"
        return "".join(f"{line}{end}" for line in self.print(world))


def _epoch(at: float) -> float:
    return round(BEGIN.timestamp() + at, 6)


def _facts(one: Happening) -> Iterator[dict[str, object]]:
    """Lines of ml-goodput-measurement and of Orbax."""
    begin, end = _epoch(one.begin), _epoch(one.end)
    match one.kind:
        case "start":
            yield {"job_start_time": begin}
        case "init":
            yield {"tpu_init_start_time": begin}
            yield {"tpu_init_end_time": end}
        case "prep":
            yield {"training_prep_start_time": begin}
            yield {"training_prep_end_time": end}
        case "step":
            yield {"step_count": one.step - 1, "step_start_time": begin}
        case "begun":
            yield {"step_count": one.step, "step_start_time": begin}
        case "load":
            yield {"data_loading_start_time": begin, "between_steps": True}
            yield {"data_loading_end_time": end}
        case "eval":
            yield {"custom_badput_event_type": "EVAL_STEP", "custom_badput_event_start_time": begin}
            yield {"custom_badput_event_type": "EVAL_STEP", "custom_badput_event_end_time": end}
        case "save":
            yield {"step": one.step - 1, "event_type": "save", "directory": "gs://bucket/ckpt",
                   "checkpoint_manager_blocking_start_time": begin,
                   "checkpoint_manager_blocking_duration_secs": round(one.end - one.begin, 6)}  # fmt: skip
        case "restore":
            yield {"step": one.step - 1, "event_type": "restore", "directory": "gs://bucket/ckpt",
                   "checkpoint_manager_start_time": begin,
                   "checkpoint_manager_duration_secs": round(one.end - one.begin, 6)}  # fmt: skip


def recorder(world: World) -> Iterator[str]:
    """Yield the output of goodput's own recorder: failures, planned ends, heartbeats, metrics; next to Orbax."""
    batch, beat = BATCH, 0.0
    for one in world.happenings:
        at, run = _epoch(one.end), f"run{one.process}"
        lines = list(_facts(one))
        match one.kind:
            case "start":
                lines.append({"goodput_event": "attempt", "goodput_time": at, "run_id": run, "rank": 0, "pid": 7})
                beat = one.end
            case "crash":
                lines = [{"goodput_event": "crashed", "goodput_time": at, "reason": one.text, "step": one.step}]
            case "terminated":
                lines = [{"goodput_event": "terminated", "goodput_time": at, "reason": one.text}]
            case "stop":
                lines = [{"goodput_event": "stopped", "goodput_time": at, "reason": one.text or "requeued"}]
            case "finish":
                lines = [{"goodput_event": "finished", "goodput_time": at}]
            case "batch":
                batch = one.step
            case "step" if one.step % _EVERY == 1:
                lines.append({"goodput_event": "metrics", "goodput_time": _epoch(one.begin), "step": one.step - 1,
                              "run_id": run, "global_batch_size": batch})  # fmt: skip
        while one.kind != "killed" and beat + BEAT <= one.end:
            beat += BEAT
            lines.append({"goodput_event": "heartbeat", "goodput_time": _epoch(beat), "run_id": run})
        yield from (json.dumps({"job_name": JOB, **line}) for line in lines)


def cloud_logging(world: World) -> Iterator[str]:
    """Ml-goodput-measurement in Cloud Logging: its entries name the process, and no death is logged."""
    for number, one in enumerate(world.happenings):
        lines = list(_facts(one))
        if one.kind == "finish":
            lines = [{"job_end_time": _epoch(one.end)}]
        for line in lines:
            entry = {
                "insertId": f"e{number}-{len(line)}-{next(iter(line))}", "timestamp": time(one.end).isoformat(),
                "labels": {"python_logger": f"writer-{one.process}"}, "jsonPayload": {"job_name": JOB, **line},
                "logName": f"projects/p/logs/goodput_{JOB}",
            }  # fmt: skip
            yield json.dumps(entry)


def resiliency(world: World) -> Iterator[str]:
    """The resiliency library: starts of two nodes, checkpoints, ends."""
    words = {"restore": "checkpoint_loaded", "crash": "job_crashed", "terminated": "job_terminated",
             "stop": "user_terminated", "finish": "job_finished"}  # fmt: skip
    for one in world.happenings:

        def line(event: str, at: float, **more: object) -> str:
            return json.dumps({"timestamp": time(at).isoformat(), "job_name": JOB, "event_type": event, **more})

        if one.kind == "start":
            yield from (line("job_started", one.begin + 2 * rank, node_rank=rank) for rank in range(2))
        elif one.kind == "save":
            yield line("step_finished", one.begin, step=one.step)
            yield line("checkpoint_saved", one.end, step=one.step)
        elif one.kind == "restore":
            yield line("checkpoint_loaded", one.end, step=one.step)
        elif one.kind in words:
            yield line(words[one.kind], one.end)


def megatron(world: World) -> Iterator[str]:
    """Megatron-LM: the mean of every tenth step, timers of saves, loads and evaluations."""
    program = _Megatron()
    for one in world.happenings:
        yield from program.lines_of(one)


class _Megatron:
    """State between two lines: time and steps since its last record, samples, and whether its loop runs."""

    def __init__(self) -> None:
        self.batch, self.since, self.count, self.samples, self.looping = BATCH, 0.0, 0, 0, True

    def lines_of(self, one: Happening) -> Iterator[str]:
        """Its lines of a happening."""
        if one.kind in ("step", "begun") and not self.looping:
            self.looping = True
            for what in ("after model, optimizer, and learning rate scheduler are built", "after dataloaders are built",
                         "before the start of training step"):  # fmt: skip
                yield f"[{what}] datetime: {_timestamp(one.begin)} "
        match one.kind:
            case "start":
                self.since, self.count, self.looping = 0.0, 0, False
                yield "using world size: 64, data-parallel size: 8, tensor-model-parallel size: 8 "
            case "init":
                yield f"time to initialize megatron (seconds): {one.end - one.begin:.3f}"
                yield f"[after megatron is initialized] datetime: {_timestamp(one.end)} "
            case "batch":
                self.batch = one.step
            case "step":
                yield from self._trained(one)
            case "crash":
                yield from failed(one, "[rank3]: ", elastic(one))
            case _:
                yield from _megatron_lines(one)

    def _trained(self, one: Happening) -> Iterator[str]:
        self.since, self.count, self.samples = (
            self.since + one.end - one.begin,
            self.count + 1,
            self.samples + self.batch,
        )
        if one.step % _EVERY:
            return
        yield (f" [{_timestamp(one.end)}] iteration {one.step:8}/   20000 | consumed samples: {self.samples:12} | "
               f"elapsed time per iteration (ms): {1000 * self.since / self.count:.1f} | "
               f"throughput per GPU (TFLOP/s/GPU): 312.4 | learning rate: 1.500000E-04 | "
               f"global batch size: {self.batch:5} | lm loss: 2.100000E+00 | loss scale: 1.0 | "
               "grad norm: 0.412 | number of skipped iterations:   0 | number of nan iterations:"
               "   0 |")  # fmt: skip
        self.since, self.count = 0.0, 0


def _megatron_lines(one: Happening) -> Iterator[str]:
    """Lines that need nothing of what was before."""
    match one.kind:
        case "restore":
            yield f" loading distributed checkpoint from /ckpt/llm at iteration {one.step}"
            yield f"  successfully loaded checkpoint from /ckpt/llm [ t 1/8, p 1/4 ] at iteration {one.step}"
            yield from _timer("load-checkpoint", one)
            yield f"[after model, optimizer, and learning rate scheduler are built] datetime: {_timestamp(one.end)} "
        case "eval":
            yield "Evaluating on 320 samples"
            yield from _timer("evaluate", one)
            yield f" validation loss at iteration {one.step} | lm loss value: 2.2E+00 | lm loss PPL: 9.1E+00 | "
        case "save":
            yield f"saving checkpoint at iteration {one.step:7} to /ckpt/llm in torch_dist format"
            yield f"  successfully saved checkpoint from iteration {one.step:7} to /ckpt/llm [ t 1/8, p 1/4 ]"
            yield from _timer("save-checkpoint", one)
        case "terminated":
            yield f"[exiting program after receiving SIGTERM.] datetime: {_timestamp(one.end)} "
        case "stop":
            yield f"[exiting program after {one.end / 60} minutes] datetime: {_timestamp(one.end)} "
        case "finish":
            yield f"[after training is done] datetime: {_timestamp(one.end)} "


def _timestamp(at: float) -> str:
    return f"{time(at):%Y-%m-%d %H:%M:%S.%f}"


def _timer(name: str, one: Happening) -> Iterator[str]:
    took = 1000 * (one.end - one.begin)
    yield "(min, max) time across ranks (ms):"
    yield f"    {name} {'.' * (47 - len(name))}: ({0.99 * took:.2f}, {took:.2f})"


def torchtitan(world: World) -> Iterator[str]:
    """Torchtitan: the first and every tenth step, lines of saves, loads and evaluations when they are over."""
    looping, batch, samples, since = True, BATCH, 0, 0.0
    for one in world.happenings:
        if one.kind in ("step", "begun") and not looping:
            looping, samples, since = True, 0, one.begin
            first = one.step + (one.kind == "begun")
            yield _titan(one.begin, f"Training starts at step {first}, with local batch size 2, global batch size 256.")
        looping = looping and one.kind != "start"
        batch = one.step if one.kind == "batch" else batch
        samples += batch * (one.kind == "step")
        if one.kind == "crash":
            yield from failed(one, "[rank3]: ", elastic(one))
        elif one.kind == "step" and (one.step == 1 or one.step % _EVERY == 0):
            rate = _TOKENS * samples / (one.end - since)
            yield _titan(one.end, f"\x1b[31mstep: {one.step:2}  \x1b[32mloss:  2.1322  \x1b[33mmemory: "
                                  f"39.00GiB(41.04%)  \x1b[34mtps: {rate:,.0f}  \x1b[35mmfu: "
                                  f"{rate / 200:.1f}%\x1b[39m")  # fmt: skip
            samples, since = 0, one.end
        else:
            yield from _titan_lines(one)


def _titan(at: float, words: str) -> str:
    stamp = f"{time(at):%Y-%m-%d %H:%M:%S},{time(at).microsecond // 1000:03}"
    return f"[rank0]:[titan] {stamp} - root - INFO - {words}"


def _titan_lines(one: Happening) -> Iterator[str]:
    took = f"{one.end - one.begin:.2f} seconds."
    match one.kind:
        case "start":
            yield _titan(one.begin, "Starting job: Llama 3 8B training")
        case "restore":
            yield _titan(one.begin, f"Loading the checkpoint from ./outputs/checkpoint/step-{one.step}.")
            yield _titan(one.end, f"Finished loading the checkpoint in {took}")
        case "eval":
            yield _titan(one.end, f"validate step: {one.step}  loss:  2.2120  memory: 39.00GiB(41.04%)  tps: 9,100")
        case "save":
            yield _titan(one.begin, "Saving the checkpoint (or staging if async is enabled).")
            yield _titan(one.end, f"Finished saving the checkpoint (or staging if async is enabled)in {took}")
        case "finish":
            yield _titan(one.end, "Training completed")


def nemo(world: World) -> Iterator[str]:
    """NeMo 2 under its launcher: each step with its time and none of day, saves and loads with their times."""
    batch = BATCH
    for one in world.happenings:
        at, last, took = time(one.end), one.step - 1, one.end - one.begin
        batch = one.step if one.kind == "batch" else batch
        match one.kind:
            case "start":
                yield (f"[default0]:[NeMo I {at:%Y-%m-%d %H:%M:%S} nemo_logger:145] Experiments will be logged at "
                       "/ckpt/llm")  # fmt: skip
            case "restore":
                yield f"[default0]:Restoring states from the checkpoint path at /ckpt/llm/gpt-step={last}-last/weights"
                yield (f"[default0]:[NeMo I {at:%Y-%m-%d %H:%M:%S} nemo_logging:393] Global Checkpoint Load : Rank "
                       f": 0 : Iteration : {last} : Time spent in load_checkpoint: {took:.2f}s")  # fmt: skip
            case "step":
                yield (f"[default0]:Training epoch 0, iteration {last}/19999 | lr: 7.496e-07 | "
                       f"global_batch_size: {batch} | global_step: {last} | reduced_train_loss: 2.103 | "
                       f"train_step_timing in s: {took:.4g} | consumed_samples: {256 * one.step}")  # fmt: skip
            case "save":
                yield (f"[default0]:[NeMo I {at:%Y-%m-%d %H:%M:%S} nemo_logging:393] Global Checkpoint Save : Rank: 0 "
                       f": Iteration: {last} : Start time: {_epoch(one.begin):.3f}s : Save duration: "
                       f"{one.end - one.begin:.3f}s")  # fmt: skip
            case "crash":
                launcher = (f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}] [ERROR] [ft_launcher@node-0] failed "
                            "(exitcode: 1) local_rank: 3 (pid: 178688) of binary: /usr/bin/python")  # fmt: skip
                yield from failed(one, "[default3]:[rank3]: ", launcher)
            case "finish":
                yield "[default0]:`Trainer.fit` stopped: `max_steps=20000` reached."
                yield f"[default0]:[NeMo I {at:%Y-%m-%d %H:%M:%S} nemo_logger:180] Finished."


def maxtext(world: World) -> Iterator[str]:
    """MaxText: each step when it is over, evaluations; saves in the background."""
    batch = BATCH
    for one in world.happenings:
        batch = one.step if one.kind == "batch" else batch

        def log_line(at: float, words: str) -> str:
            return f"I{time(at):%m%d %H:%M:%S.%f} 138304841739136 train.py:819] {words}"

        last = one.step - 1
        match one.kind:
            case "start":
                yield log_line(one.begin, "Creating checkpoint manager with ocdbt=True and zarr3=True")
            case "restore":
                yield log_line(one.begin, f"restoring from this run's directory step {last}")
            case "step":
                rate = _TOKENS * batch / (one.end - one.begin)
                yield log_line(one.end, f"completed step: {last}, seconds: {one.end - one.begin:.3f}, TFLOP/s/device: "
                                    f"{rate / 30:.3f}, Tokens/s/device: {rate:.3f}, loss: 3.300")  # fmt: skip
            case "eval":
                yield log_line(one.begin, f"Starting eval after train step {last}")
                yield log_line(one.end, f"Completed eval after train step {last}, eval_loss: 2.91")
            case "save":
                yield log_line(one.end, f"Started an asynchronous checkpoint save for step {last}")
            case "crash":
                yield from failed(one, "")


_EACH = ("steps", "each")
_DEATHS = ("deaths", "causes", "times")
_CHECKPOINTS = ("saves", "restores")


def _shows(*parts: str | tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for part in parts for word in ((part,) if isinstance(part, str) else part))


PROGRAMS = (
    Program("recorder", recorder, _shows(
        _EACH, _DEATHS, _CHECKPOINTS, "starts", "inits", "evals", "loads", "process", "beats", "plans", "batch",
        "finish")),
    Program("cloud-logging", cloud_logging, _shows(_EACH, _CHECKPOINTS, "evals", "loads", "inits", "process")),
    Program("resiliency", resiliency, _shows(_CHECKPOINTS, "deaths", "times", "plans", "finish"), has_reference=True),
    Program("megatron", megatron, _shows(
        "steps", _DEATHS, _CHECKPOINTS, "starts", "evals", "inits", "plans", "batch", "finish")),
    Program("torchtitan", torchtitan, _shows(
        "steps", _DEATHS, _CHECKPOINTS, "starts", "evals", "inits", "batch", "finish")),
    Program("nemo2", nemo, _shows(_EACH, _DEATHS, _CHECKPOINTS, "starts", "batch", "finish")),
    Program("maxtext", maxtext, _shows(_EACH, "deaths", "causes", "starts", "evals", "batch"), blocking_save=0.02),
    Program("trainer", trainer, _shows("steps", _DEATHS, "starts", "evals", "finish"), True, _shows("save")),
    Program("lightning", lightning, _shows("steps", "deaths", "causes", "starts", "evals", "epochs", "finish"), True,
            _shows("save")),
    Program("loop", loop, _shows("steps", _DEATHS, "starts"), True, _shows("save", "eval")),
)  # fmt: skip

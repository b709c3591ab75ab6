"""More small logs in the shapes of public programs, launchers and collectors, with known attempts, steps, lost steps
and window: read correctly, drafted, or refused with a reason."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.api.check import draft_mapping
from goodput_cli.report.base import Page
from goodput_cli.report.first_screen import first_screen
from tests.text.support import analysed, codes

BEGIN = datetime(2026, 2, 27, 22, 41, 7, 318_000)
NS = 1_000_000_000
DIED = 'Traceback (most recent call last):\n  File "/app/train.py", line 214, in <module>\nRuntimeError: NCCL error'


@dataclass
class Event:
    """Event in a job: launch, resume, step, save (its end), death, end."""

    what: str
    time: float
    step: int = 0
    life: int = 0

    def at(self, form: str = "%Y-%m-%d %H:%M:%S", before: float = 0.0) -> str:
        return f"{BEGIN + timedelta(seconds=self.time - before):{form}}"

    @property
    def loss(self) -> float:
        return 9 / (1 + self.step / 60)


@dataclass
class Job:
    """240 steps of 2 s, saved every 40 steps for 4 s; dies after step 150, continues from 120 after 90 s and a
    start-up."""

    each: float = 2.0
    dies: bool = True
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        time, step, life = 0.0, 0, 0
        while step < 240:
            self.events.append(Event("launch", time, life=life))
            time += 24
            if life:
                self.events.append(Event("resume", time, step, life))
            time += 10
            while step < 240:
                time += self.each
                step += 1
                self.events.append(Event("step", time, step, life))
                if step == 150 and life == 0 and self.dies:
                    self.events.append(Event("death", time + 1, step))
                    time, step, life = time + 91, 120, 1
                    break
                if step % 40 == 0:
                    time += 4
                    self.events.append(Event("save", time, step, life))
        self.events.append(Event("end", time + 1, step, life))

    def text(self, **said: Callable[[Event], str]) -> str:
        return "".join(said[one.what](one) + "\n" for one in self.events if one.what in said)


JOB = Job()


def read(tmp_path: Path, text: str, **options: Any) -> Analysis:
    log = tmp_path / "train.log"
    log.write_text(text, encoding="utf-8", newline="")
    written = BEGIN.replace(tzinfo=UTC).timestamp() + JOB.events[-1].time
    os.utime(log, (written, written))
    return analysed(log, timezone="UTC", **options)


def every(count: int, line: Callable[[Event], str]) -> Callable[[Event], str]:
    """Return a function that prints every `count` steps."""
    return lambda event: line(event) if event.step % count == 0 else ""


def on_ranks(prefix: str) -> str:
    """Return a function that prints the job on four ranks."""

    def ranks(event: Event) -> str:
        said = f"{event.at()} TRAIN it={event.step} loss="
        return "\n".join(f"{prefix.format(rank)}{said}{event.loss + rank:.4f}" for rank in (1, 0, 3, 2))

    return JOB.text(launch=lambda e: f"{prefix.format(0)}{e.at()} hello from pid 41{e.life}", step=every(5, ranks))


def logs() -> Iterator[tuple[str, str]]:
    """Yield logs of the job that dies once."""
    head = "[INFO|DP=0|PP=0|TP=0|blue-17]:"
    yield "nanotron", JOB.text(
        launch=lambda e: f"{e.at('%m/%d/%Y %H:%M:%S')} {head} [Start training] datetime: {e.at()}.000000 | mbs: 2",
        step=lambda e: (
            f"{e.at('%m/%d/%Y %H:%M:%S')} {head} iteration: {e.step} / 240 | consumed_tokens: {e.step * 131:d}K | "
            f"elapsed_time_per_iteration_ms: 2.01K | tokens_per_sec: 65.5K | lm_loss: {e.loss:.3g} | lr: 0.0003"
        ),
        death=lambda _: DIED,
    )  # fmt: skip
    yield "PaddleNLP", JOB.text(
        launch=lambda e: f"[{e.at()},318] [    INFO] - ***** Running training *****",
        resume=lambda e: f"[{e.at()},318] [    INFO] - Loading model from /ck/checkpoint-{e.step} .",
        step=every(5, lambda e: (
            f"[{e.at()},318] [    INFO] - loss: {e.loss:.8f}, learning_rate: 2.87e-05, global_step: {e.step}, "
            "interval_runtime: 10.01, interval_samples_per_second: 7.99, interval_steps_per_second: 0.49"
        )),
        death=lambda _: DIED,
    )  # fmt: skip
    ray = "(TaskRunner pid=16292)"
    yield (
        "verl",
        JOB.text(
            launch=lambda e: f"{e.at()},318\tINFO worker.py:1918 -- Started a local Ray instance.",
            resume=lambda e: f"{ray} Setting global step to {e.step}",
            step=lambda e: (
                f"{ray} step:{e.step} - actor/pg_loss:0.012 - timing_s/gen:1.300 - timing_s/step:2.000 - perf/mfu:0.2"
            ),
            death=lambda e: f"{e.at()} {ray} {DIED}",
        ),
    )
    yield "levanter", JOB.text(
        step=every(5, lambda e: (
            f"{e.at('%Y-%m-%dT%H:%M:%S')} - 0 - levanter.tracker.tqdm - progress.py:41 - INFO :: Progress on:train "
            f"{e.step}it/240it rate:0.5it/s remaining:07:50 elapsed:00:12 postfix:loss={e.loss:.3f}"
        )),
        save=lambda e: (
            f"{e.at('%Y-%m-%dT%H:%M:%S', 4)} - 0 - levanter.checkpoint - checkpoint.py:221 - INFO :: Saving "
            f"checkpoint at step {e.step} to gs://fig/step-{e.step}\n"
            f"{e.at('%Y-%m-%dT%H:%M:%S')} - 0 - levanter.checkpoint - checkpoint.py:246 - INFO :: Saved checkpoint to "
            f"gs://fig/step-{e.step} for step {e.step}"
        ),
    )  # fmt: skip
    yield "t5x", JOB.text(
        launch=lambda e: f"I{e.at('%m%d %H:%M:%S')}.318456 1402214575 train.py:510] BEGIN Train loop.",
        step=every(5, lambda e: (
            f"I{e.at('%m%d %H:%M:%S')}.318456 1402214575 trainer.py:610] (write_metrics) [{e.step}] accuracy=0.4112, "
            f"cross_ent_loss={100 * e.loss:.3f}, loss={e.loss:.5f}, timing/seconds=10.01"
        )),
        save=lambda e: (
            f"I{e.at('%m%d %H:%M:%S', 4)}.318456 1402214575 checkpoints.py:880] Saving checkpoint for step {e.step}"
        ),
    )  # fmt: skip
    yield "fairseq2", JOB.text(
        launch=lambda e: f"[{e.at()},318] [Rank 0] INFO fairseq2.recipes.trainer - Running training on 8 device(s).",
        resume=lambda e: f"[{e.at()},318] [Rank 0] INFO fairseq2.recipes.trainer - Training will resume from step 120.",
        step=every(5, lambda e: (
            f"[{e.at()},318] [Rank 0] INFO fairseq2.recipes.trainer - Train Metrics (step {e.step}) - Loss: "
            f"{e.loss:.4f} | Gradient Norm: 0.41 | Batch Size: 128 | Elements per Second: 32,768 | Wall Time: 48s"
        )),
        save=lambda e: f"[{e.at()},318] [Rank 0] INFO fairseq2.recipes.trainer - Checkpoint at step {e.step} saved.",
        death=lambda _: DIED,
    )  # fmt: skip
    dino = "%Y%m%d %H:%M:%S"
    yield "DINOv2", JOB.text(
        launch=lambda e: f"I{e.at(dino)} 4107 dinov2 train.py:201] Starting training from iteration {120 * e.life}",
        step=every(5, lambda e: (
            f"I{e.at(dino)} 4107 dinov2 helpers.py:103] Training  [{e.step:6d}/240]  eta: 0:08:11  lr: 0.0001 (0.01)  "
            f"total_loss: {e.loss:.4f} ({e.loss:.4f})  time: 2.000170  data: 0.000170  max mem: 13871"
        )),
        save=lambda e: (
            f"I{e.at(dino)} 4107 dinov2 fvcore.common.checkpoint checkpoint.py:113] Saving checkpoint to "
            f"/ck/model_{e.step:07d}.rank_0.pth"
        ),
    )  # fmt: skip
    yield (
        "the journal, whose number of the process goes up",
        JOB.text(
            launch=lambda e: f"{e.at('%b %d %H:%M:%S')} cherry systemd[1]: Started train.service - Training.",
            step=every(
                5,
                lambda e: f"{e.at('%b %d %H:%M:%S')} cherry python3[{2211 + e.life}]: step {e.step} loss {e.loss:.4f}",
            ),
        ),
    )
    for name, prefix in {
        "Horovod's": "[1,{}]<stdout>:", "SageMaker's": "[1,mpirank:{},algo-1]<stdout>:", "srun's": "{:2d}: ",
        "an elastic agent's": "[default{}]:", "torchrun's": "[rank{}]: ",
    }.items():  # fmt: skip
        yield f"ranks behind {name} prefix", on_ranks(prefix)
    yield "JSON behind a pod's name and time", JOB.text(
        launch=lambda e: f"[pod/plum-worker-0/main] {e.at('%Y-%m-%dT%H:%M:%S')}.318000000Z starting up",
        step=every(5, lambda e: "\n".join(
            f"[pod/plum-worker-{rank}/main] {e.at('%Y-%m-%dT%H:%M:%S')}.318000000Z "
            f'{{"level":"info","msg":"train","step":{e.step},"loss":{e.loss:.4f}}}' for rank in (0, 1)
        )),
    )  # fmt: skip
    yield "structlog", JOB.text(
        launch=lambda e: json.dumps({"pid": 100 + e.life, "event": "startup", "timestamp": e.at("%Y-%m-%dT%H:%M:%SZ")}),
        step=every(5, lambda e: json.dumps(
            {"step": e.step, "loss": round(e.loss, 4), "event": "train_step", "timestamp": e.at("%Y-%m-%dT%H:%M:%SZ")}
        )),
        save=lambda e: json.dumps(
            {"step": e.step, "seconds": 4.0, "event": "checkpoint_saved", "timestamp": e.at("%Y-%m-%dT%H:%M:%SZ")}
        ),
    )  # fmt: skip
    yield (
        "samples and tokens beside steps",
        JOB.text(
            step=every(
                5, lambda e: f"{e.at()} seen={512 * e.step} upd={e.step} toks={1_048_576 * e.step} loss={e.loss:.4f}"
            )
        ),
    )
    yield (
        "month names and a clock of twelve hours",
        JOB.text(step=every(5, lambda e: f"{e.at('%b %d, %Y %I:%M:%S %p')} - step {e.step} - loss {e.loss:.4f}")),
    )


LOGS = dict(logs())


@pytest.mark.parametrize("name", LOGS)
def test_a_job_that_dies_once(tmp_path: Path, name: str) -> None:
    analysis = read(tmp_path, LOGS[name])
    assert analysis.job.attempts == 2
    assert len(analysis.disruptions) == 1
    assert 230 <= analysis.job.kept_steps <= 240
    assert 20 <= (analysis.disruptions[0].steps_lost or 0) <= 30
    window = (analysis.window.end_ns - analysis.window.start_ns) / NS
    assert 670 <= window <= JOB.events[-1].time + 1  # 675 s are between the fifth and the last step.
    assert 64 <= analysis.goodput.percent <= 76  # 480 s of 724 s, or of the at least 675 s that such a log shows.
    assert "several_runs_in_file" not in codes(analysis)


def test_rounds_of_boosting(tmp_path: Path) -> None:
    """Each line contains an evaluation."""
    job = Job(dies=False)
    text = job.text(step=lambda e: f"{e.at()} [{e.step - 1}]\ttrain-rmse:{e.loss:.5f}\teval-rmse:{e.loss:.5f}")
    analysis = read(tmp_path, text)
    assert (analysis.job.attempts, analysis.job.kept_steps) == (1, 239)


def test_micro_batches_are_not_steps(tmp_path: Path) -> None:
    text = "".join(
        f"{BEGIN + timedelta(seconds=8 * step + 2 * micro):%F %T} step {step} micro {micro}/4 loss {micro}.1\n"
        for step in range(1, 61) for micro in (1, 2, 3, 4)
    )  # fmt: skip
    assert read(tmp_path, text).job.kept_steps == 59


def refused(tmp_path: Path, text: str) -> str:
    (tmp_path / "train.log").write_text(text, encoding="utf-8")
    (reason, *_) = draft_mapping(str(tmp_path / "train.log")).refused
    return reason


def test_steps_with_few_timestamps_are_refused(tmp_path: Path) -> None:
    """Composer prints a timestamp only at saves: the times of the forty steps before each are unknown."""
    text = JOB.text(
        step=lambda e: (
            f"[batch={e.step}/240]:\n\t Train time/batch: {e.step - 1}\n\t Train loss/train/total: {e.loss:.4f}"
        ),
        save=lambda e: f"{e.at()},318: rank0[2908][MainThread]: INFO: composer: Saved checkpoint to ep0-ba{e.step}",
    )
    assert "have no timestamps, and lines between them have only" in refused(tmp_path, text)


def test_times_of_day_get_the_day_of_the_last_change(tmp_path: Path) -> None:
    text = JOB.text(step=lambda e: f"[{e.at('%H:%M:%S')}] [{e.step - 1}]\ttrain-logloss:{e.loss:.5f}")
    analysis = read(tmp_path, text)
    assert analysis.job.attempts == 2
    assert "warning: no line has a date" in " ".join(first_screen(analysis, Page()).split())


def test_restart_in_a_log_without_times_gives_a_warning(tmp_path: Path) -> None:
    """The times of its steps are logged, but not the downtime."""
    analysis = read(
        tmp_path, JOB.text(step=every(5, lambda e: f"step {e.step}: loss {e.loss:.4f} | 2000.{e.step % 3} ms/step"))
    )
    assert analysis.job.attempts == 2
    assert "elapsed time starts again" in " ".join(first_screen(analysis, Page()).split())


def test_hour_skipped_in_spring_gives_a_warning(tmp_path: Path) -> None:
    """Local times of Berlin, read as UTC: no step for an hour when clocks were set."""
    shown = [datetime(2026, 3, 29, 1, 10, 26) + timedelta(minutes=n + 60 * (n >= 50)) for n in range(120)]
    text = "".join(f"{time:%Y-%m-%d %H:%M:%S} step={n} loss=2\n" for n, time in enumerate(shown, 1))
    analysis = read(tmp_path, text)
    assert "clock_jumps" in codes(analysis)
    assert "pass it with --timezone" in " ".join(first_screen(analysis, Page()).split())
    assert "clock_jumps" not in codes(analysed(tmp_path / "train.log", timezone="Europe/Berlin"))


def shifted(tmp_path: Path, hours: Callable[[int], float]) -> Analysis:
    """Return the analysis of 120 steps of 2 s whose clocks are off by some hours each. With a mapping, because a draft
    in which one step takes half of the time is refused."""
    mapping = tmp_path / "own.toml"
    mapping.write_text('name = "own"\n[[rule]]\nevent = "step"\nline = "step={step:int} loss"\n')
    times = (BEGIN + timedelta(seconds=2 * n, hours=hours(n)) for n in range(1, 121))
    text = "".join(f"{time:%Y-%m-%d %H:%M:%S} step={n} loss=2\n" for n, time in enumerate(times, 1))
    return read(tmp_path, text, mapping=[str(mapping)])


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (lambda n: n >= 50, "one step took almost exactly an hour more than usual"),
        (lambda n: -(n >= 50), "timestamps jump back by 1 h, once"),
        (lambda n: 2 * (n % 3 == 0), "timestamps jump back by 2 h, 39 times"),
        (lambda n: 1.5 * (n > 60) - 1.5 * (n > 90), "timestamps jump back by 1.5 h, once"),
    ],
)
def test_clock_jump_and_mixed_zones_give_warnings(tmp_path: Path, hours: Callable[[int], float], said: str) -> None:
    shown = " ".join(first_screen(shifted(tmp_path, hours), Page()).split())
    assert f"warning: {said}" in shown


@pytest.mark.parametrize(
    "hours", [lambda _: 0, lambda n: 0.3 * (n >= 50), lambda n: 0.9 * (n >= 50), lambda n: 2 * (n >= 50)]
)
def test_other_gaps_give_no_warning(tmp_path: Path, hours: Callable[[int], float]) -> None:
    """A stall of 18 min, of 54 min, of two hours."""
    assert "clock_jumps" not in codes(shifted(tmp_path, hours))


def test_restart_after_an_hour_is_not_a_clock_jump(tmp_path: Path) -> None:
    log = "".join(
        f"{BEGIN + timedelta(seconds=2 * (n + 60 * life), hours=life):%Y-%m-%d %H:%M:%S} step={n + 40 * life} loss=2\n"
        for life in (0, 1) for n in range(1, 61)
    )  # fmt: skip
    analysis = read(tmp_path, log)
    assert analysis.job.attempts == 2
    assert "clock_jumps" not in codes(analysis)


def lightning(first: int, last: int, begin: float) -> str:
    """Return bars of epochs of 60 steps of 2 s."""
    states = (
        f"\rEpoch {(n - 1) // 60}: {done}%|█  | {done}/60 [0{done // 30}:{2 * done % 60:02d}<01:00, 0.50it/s, v_num=3]"
        for n, done in ((n, (n - 1) % 60 + 1) for n in range(first, last + 1))
    )
    return f"{BEGIN + timedelta(seconds=begin):%Y-%m-%d %H:%M:%S} | INFO | fit begins\n{''.join(states)}\n"


def test_epoch_whose_bar_restarts_was_repeated(tmp_path: Path) -> None:
    """The bar of the second process never shows 0: the first died after step 150, the second continues from 121."""
    analysis = read(tmp_path, lightning(1, 150, 0) + DIED + "\n" + lightning(121, 240, 400))
    assert (analysis.job.attempts, analysis.job.kept_steps) == (2, 240)
    assert analysis.disruptions[0].steps_lost == 30


def test_bar_continued_in_a_rotated_log_is_not_a_start(tmp_path: Path) -> None:
    def bars(first: int, last: int) -> str:
        states = (
            f"\rSteps: {n // 3}%|█  | {n}/240 [{2 * n // 60:02d}:{2 * n % 60:02d}<01:00, 2.00s/it]"
            for n in range(first, last)
        )
        return f"{BEGIN + timedelta(seconds=2 * first):%Y-%m-%d %H:%M:%S} - INFO - on\n{''.join(states)}\n"

    (tmp_path / "train.log.1").write_text(bars(1, 130), encoding="utf-8")
    (tmp_path / "train.log").write_text(bars(130, 241), encoding="utf-8")
    analysis = analysed(tmp_path / "train.log.1", tmp_path / "train.log", timezone="UTC")
    assert (analysis.job.attempts, analysis.job.kept_steps) == (1, 240)


def test_bars_of_two_runs_one_after_the_other(tmp_path: Path) -> None:
    """`tee -a` of a run, and of another one two days later; each died after 130 of 240 steps."""

    def attempt(begin: datetime, first: int, last: int) -> str:
        states = (
            f"\rSteps: {n // 3}%|█  | {n}/240 [{took // 60:02d}:{took % 60:02d}<01:00, 2.00s/it]"
            for n, took in zip(range(first, last + 1), range(2, 1000, 2), strict=False)
        )
        return f"{begin:%m/%d/%Y %H:%M:%S} - INFO - __main__ - ***** Running training *****\n{''.join(states)}\n"

    log = "".join(
        attempt(BEGIN + timedelta(days=day), 1, 130) + attempt(BEGIN + timedelta(days=day, minutes=6), 121, 240)
        for day in (0, 2)
    )
    analysis, together = read(tmp_path, log), read(tmp_path, log, run="all")
    assert (analysis.job.attempts, analysis.job.kept_steps) == (2, 240)  # The first reached 240 of 240.
    assert (together.job.attempts, together.job.kept_steps) == (4, 240)


def test_successive_runs_in_one_file_give_a_warning(tmp_path: Path) -> None:
    """`tee -a` of a run that ended, and of one that began from scratch ten minutes later."""
    log = "".join(
        f"{BEGIN + timedelta(seconds=second + 600 * run):%Y-%m-%d %H:%M:%S},318 - root - INFO - {said}\n"
        for run in (0, 1)
        for second, said in (
            (0, "Starting job: plum"),
            *((20 + 2 * n, f"step: {n:2d}  loss: {9 / n:.4f}  grad_norm: 1.2  tps: 5,815") for n in range(1, 61)),
            (142, "Training completed"),
        )
    )
    analysis = read(tmp_path, log)
    assert analysis.job.attempts == 1
    assert "warning: only run 2 of this name is analyzed" in " ".join(first_screen(analysis, Page()).split())

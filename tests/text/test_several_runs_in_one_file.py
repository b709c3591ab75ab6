"""Several runs that print into one file get a warning if equal steps with different losses alternate, but ranks,
micro-batches, evaluations and restarts do not."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain, zip_longest
from pathlib import Path

import pytest

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.report.base import Page
from goodput_cli.report.first_screen import first_screen
from tests.text.support import analysed, codes

CODE = "several_runs_in_file"
MAPPING = """\
name = "mine"
steps = "done"

[[rule]]
event = "step"
line = "step {step:int}{_}loss"

[[rule]]
event = "start"
line = "starting"

[[sample]]
line = "2026-03-01 10:00:00 step 3 loss 2.1"
gives = { event = "step", step = 3 }
"""


def at(second: float) -> str:
    return f"{datetime(2026, 3, 1, 10) + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}"


def run(
    steps: Sequence[int], seed: int, first: float = 0.0, each: float = 2.0, form: str = "{at} step {n} loss {loss:.4f}"
) -> list[tuple[float, str]]:
    """Return lines of a run with their times, s."""
    chance = random.Random(seed)
    loss = [9 / (1 + n / 40) + 0.2 * seed + chance.uniform(-0.05, 0.05) for n in steps]
    times = [first + each * (row + 1) for row in range(len(steps))]
    return [(time, form.format(at=at(time), n=n, loss=one)) for time, n, one in zip(times, steps, loss, strict=True)]


def by_time(*runs: list[tuple[float, str]]) -> list[str]:
    return [line for _, line in sorted(chain(*runs), key=lambda one: one[0])]


def alternate(*runs: list[tuple[float, str]], lines: int = 1) -> list[str]:
    """Return the lines of both in alternation, `count` of each."""
    parts = [[own[row : row + lines] for row in range(0, len(own), lines)] for own in runs]
    return [line for turn in zip_longest(*parts, fillvalue=[]) for part in turn for _, line in part]


def read(tmp_path: Path, lines: Sequence[str], **options: str) -> Analysis:
    (tmp_path / "mine.toml").write_text(MAPPING, encoding="utf-8")
    (tmp_path / "out.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.utime(tmp_path / "out.log", (1_772_359_200, 1_772_359_200))
    return analysed(tmp_path / "out.log", mapping=tmp_path / "mine.toml", **options)


ALL = range(1, 61)


def several() -> Iterator[tuple[str, list[str]]]:
    """Files of several runs."""
    yield "line by line", alternate(run(ALL, 1), run(ALL, 2))
    yield "three of them", alternate(run(ALL, 1), run(ALL, 2), run(ALL, 3))
    yield "one is slower", by_time(run(ALL, 1), run(ALL, 2, each=3.1))
    yield "one began later", by_time(run(ALL, 1), run(ALL, 2, first=41.0))
    yield "one ends earlier", by_time(run(ALL, 1, each=3.0), run(range(1, 31), 2, each=2.9))
    yield "buffers of thirty lines", alternate(run(range(1, 301), 1), run(range(1, 301), 2), lines=30)
    yield "every tenth step", by_time(run(range(10, 600, 10), 1), run(range(10, 600, 10), 2, first=0.9))
    yield "one is far ahead", by_time(run(range(5001, 5061), 1), run(ALL, 2, first=0.5))
    yield (
        "the same first losses",
        [line.replace("step 1 loss", "step 1 loss 9.5 #") for line in alternate(run(ALL, 1), run(ALL, 2))],
    )
    yield (
        "job numbers of an array",
        alternate(
            run(ALL, 1, form="[81231_1] {at} step {n} loss {loss:.4f}"),
            run(ALL, 2, form="[81231_2] {at} step {n} loss {loss:.4f}"),
        ),
    )
    yield (
        "numbers of processes",
        alternate(
            run(ALL, 1, form="{at} [81231] step {n} loss {loss:.4f}"),
            run(ALL, 2, form="{at} [90417] step {n} loss {loss:.4f}"),
        ),
    )
    yield (
        "rates of a sweep",
        alternate(
            run(ALL, 1, form="{at} step {n} lr 0.001 loss {loss:.4f}"),
            run(ALL, 2, form="{at} step {n} lr 0.01 loss {loss:.4f}"),
        ),
    )
    yield (
        "seeds",
        alternate(
            run(ALL, 1, form="{at} seed 0 step {n} loss {loss:.4f}"),
            run(ALL, 2, form="{at} seed 1 step {n} loss {loss:.4f}"),
        ),
    )
    yield "two jobs of srun with the same ranks", alternate(
        *(run(ALL, seed, form=f"{rank}: {{at}} step {{n}} loss {{loss:.4f}}")
          for seed in (1, 2) for rank in (0, 1))
    )  # fmt: skip
    yield (
        "containers of two names",
        alternate(
            run(ALL, 1, form="baseline-1  | {at} step {n} loss {loss:.4f}"),
            run(ALL, 2, form="wide-1      | {at} step {n} loss {loss:.4f}"),
        ),
    )
    yield (
        "times at the begin and the end",
        [line if row in (0, 119) else line[20:] for row, line in enumerate(alternate(run(ALL, 1), run(ALL, 2)))],
    )


def alone() -> Iterator[tuple[str, list[str]]]:
    """Files of one run."""
    yield "ranks with one loss", alternate(run(ALL, 1), run(ALL, 1), run(ALL, 1))
    yield "ranks out of order", by_time(*(run(ALL, 1, first=0.1 * rank) for rank in (3, 1, 0, 2)))
    for name, form in {
        "ranks of torchrun": "[rank{}]: ", "ranks of srun": "{}: ", "ranks of an elastic agent": "[default{}]:",
        "ranks of mpirun": "[1,{}]<stdout>:", "pods": "[pod/llm-{}-x7k2p/main] ", "containers": "trainer-{}  | ",
    }.items():  # fmt: skip
        yield (
            name,
            alternate(
                *(run(ALL, rank, form=form.format(rank) + "{at} step {n} loss {loss:.4f}") for rank in (0, 1, 2))
            ),
        )
    for name, form in {
        "ranks in brackets": "{{at}} [{}] step {{n}} loss {{loss:.4f}}",
        "ranks with their name": "{{at}} (rank {}) step {{n}} loss {{loss:.4f}}",
        "ranks behind the loss": "{{at}} step {{n}} loss {{loss:.4f}} gpu={}",
        "hosts": "{{at}} node{:02d} step {{n}} loss {{loss:.4f}}",
        "micro-batches": "{{at}} step {{n}} micro {}/4 loss {{loss:.4f}}",
        "accumulation": "{{at}} step {{n}} ({}/4) loss {{loss:.4f}}",
    }.items():
        yield name, alternate(*(run(ALL, part, form=form.format(part)) for part in (1, 2, 3, 4)))
    yield (
        "an iteration of which four are a step",
        [f"{at(2 * n)} iter {n} step {n // 4} loss {9 / n + n % 3:.4f}" for n in range(1, 200)],
    )
    evaluated = [(2.0 * n + 0.5, f"{at(2 * n + 1)} valid step {n} loss {9 / n + 0.3:.4f}") for n in range(5, 61, 5)]
    yield "evaluations", by_time(run(ALL, 1), evaluated)
    yield (
        "an evaluation each step",
        by_time(
            run(ALL, 1, form="{at} train step {n} loss {loss:.4f}"),
            run(ALL, 2, first=0.5, form="{at} val step {n} loss {loss:.4f}"),
        ),
    )
    yield (
        "two networks",
        alternate(
            run(ALL, 1, form="{at} G step {n} loss {loss:.4f}"), run(ALL, 2, form="{at} D step {n} loss {loss:.4f}")
        ),
    )
    redone = by_time(run(range(1, 41), 1), run(range(31, 90), 2, first=200), run(range(71, 130), 3, first=500))
    yield "restarts", redone
    yield (
        "restarts with another loss each",
        by_time(*(run(range(1 + 7 * n, 12 + 7 * n), n, first=300.0 * n) for n in range(12))),
    )
    lives = ((f"{at(60 * n)} starting", *by_time(run((n, n + 1), n, first=60.0 * n + 20))) for n in range(1, 20))
    yield "restarts at every step", list(chain.from_iterable(lives))
    yield (
        "ranks with one loss, restarted from the beginning",
        alternate(*(run([*ALL, *ALL, *range(1, 100)], 1) for _ in range(2))),
    )


IN_STEP = (
    "line by line", "three of them", "buffers of thirty lines", "every tenth step", "the same first losses",
    "rates of a sweep", "two jobs of srun with the same ranks",
)  # fmt: skip
"""Each step in the same second, and nothing but decimal numbers differs: they may be ranks."""
SEVERAL, ALONE = dict(several()), dict(alone())


@pytest.mark.parametrize("name", SEVERAL)
def test_several_runs_in_one_file_give_a_warning(tmp_path: Path, name: str) -> None:
    analysis = read(tmp_path, SEVERAL[name])
    (doubt,) = (one for one in analysis.diagnostics if one.code == CODE)
    in_step = name in IN_STEP
    assert ("They count as one job" if in_step else "so goodput is not judged") in doubt.message
    assert analysis.is_measurable == in_step
    assert read(tmp_path, SEVERAL[name], job_name="mine").is_measurable
    assert doubt.message in " ".join(first_screen(analysis, Page()).split())
    assert CODE not in codes(read(tmp_path, SEVERAL[name], job_name="mine"))


@pytest.mark.parametrize("name", ALONE)
def test_one_run_gives_no_warning(tmp_path: Path, name: str) -> None:
    assert CODE not in codes(read(tmp_path, ALONE[name]))


def state(n: int, loss: float, begun: str = "Epoch 0") -> str:
    clock = f"{2 * n // 60:02d}:{2 * n % 60:02d}"
    return f"{begun}: {n // 2}%|█   | {n}/200 [{clock}<01:00, 2.00s/it, loss={loss:.3f}]"


def bars(tmp_path: Path, states: Sequence[str]) -> set[str]:
    (tmp_path / "train.log").write_text("\r".join(states) + "\n", encoding="utf-8")
    return codes(analysed(tmp_path / "train.log"))


def test_bars_of_two_runs_give_a_warning(tmp_path: Path) -> None:
    states = [state(n, 3 - n / 100 + more) for n in range(1, 60) for more in (0, 0.7)]
    assert CODE in bars(tmp_path, states)


def test_bar_redrawn_with_a_new_loss_gives_no_warning(tmp_path: Path) -> None:
    """It first shows the step number with the loss of the step before."""
    assert CODE not in bars(tmp_path, [state(n, 3 - one / 100) for n in range(1, 60) for one in (n - 1, n)])


def test_losses_of_two_trainers_give_a_warning(tmp_path: Path) -> None:
    """Hugging Face's Trainer prints no step, but the epoch with two digits, which several lines of one run share."""

    def logged(*runs: float) -> str:
        lines = [
            (n * (2 + more), f"{{'loss': {3 - n / 40 + more:.4f}, 'grad_norm': 0.4, 'epoch': {n / 250:.2f}}}\n"
             f" {n}%|█   | {10 * n}/8000 [{20 * n // 60:02d}:{20 * n % 60:02d}<01:00,  2.00s/it]\n")
            for n in range(1, 400) for more in runs
        ]  # fmt: skip
        return "".join(line for _, line in sorted(lines, key=lambda one: one[0]))

    for runs, asked in (((0.0, 0.4), True), ((0.0, 0.0), False), ((0.0,), False)):
        (tmp_path / "train.log").write_text("***** Running training *****\n" + logged(*runs), encoding="utf-8")
        assert (CODE in codes(analysed(tmp_path / "train.log"))) == asked


def test_records_of_two_runs_give_a_warning(tmp_path: Path) -> None:
    def records(more: Sequence[float], **tag: int) -> str:
        return "".join(
            json.dumps({"ts": at(2 * n), "step": n, "loss": 3 - n / 100 + one, **dict.fromkeys(tag, row)}) + "\n"
            for n in range(1, 60) for row, one in enumerate(more)
        )  # fmt: skip

    (tmp_path / "my.toml").write_text(
        'name = "mine"\nsteps = "done"\n[[rule]]\nevent = "step"\nkeys = { step = "step", time = "ts" }\n'
        '[[sample]]\nline = \'{"ts": "2026-03-01 10:00:00", "step": 3, "loss": 1}\'\ngives = { step = 3 }\n',
        encoding="utf-8",
    )
    for text, asked in ((records((0, 0.5)), True), (records((0, 0)), False), (records((0, 0.5), rank=0), False)):
        (tmp_path / "train.jsonl").write_text(text, encoding="utf-8")
        analysis = analysed(tmp_path / "train.jsonl", mapping=tmp_path / "my.toml")
        assert (CODE in codes(analysis)) == asked

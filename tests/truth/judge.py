"""Comparison of an answer with the truth: correct, or its errors.

An answer is correct if its largest insight is true (a cause that is within a quarter of the largest one), with its
seconds within a quarter or 90 s; without an insight if a job is healthy; with goodput within one point, and exact
counts. An insight without a true cause is an error everywhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import goodput_cli
from benchmarks.noise import HEALTHY, Noise, autoregression, white
from goodput_cli import Analysis
from tests.truth.programs import PROGRAMS, Program
from tests.truth.stories import CAUSES, STORIES, Cause, Story, Truth
from tests.truth.world import World

_SHARE, _SECONDS, _POINTS = 0.25, 90.0, 1.0
_CALM: dict[str, Noise] = {
    "lognormal 3 %": white(0.03), "white 5 %": white(0.05), "lognormal 15 %": white(0.15),
    "AR .5 5 %": autoregression(0.05, 0.5),
}  # fmt: skip
_WANDERING = ("AR .9 8 %", "AR .95 8 %", "AR .98 6 %", "AR .99 5 %", "AR .98 4 % + 15 %", "MA 50 5 %", "MA 200 5 %",
              "walk .2 % + 5 %", "walk .2 % + 15 %")  # fmt: skip
_HEAVY = ("Pareto 1.5", "heavy tails", "lognormal 40 %")
_SHAPES = ("two shapes", "every other step 2 x", "a tenth of steps 2 x")
NOISES: dict[str, dict[str, Noise]] = {
    "calm": _CALM,
    "tellable": _CALM | {name: HEALTHY[name] for name in ("Pareto 1.5", "two shapes", "AR .5 15 %")},
    "heavy": {name: HEALTHY[name] for name in _HEAVY},
    "shapes": {name: HEALTHY[name] for name in _SHAPES},
    "wandering": {name: HEALTHY[name] for name in _WANDERING},
    "any": _CALM | {name: HEALTHY[name] for name in (*_HEAVY, *_SHAPES, *_WANDERING)},
}
"""Noise by the kinds of stories that it hides nothing of."""


@dataclass(frozen=True)
class Case:
    """A story with a seed, as one program prints it."""

    story: Story
    program: Program
    seed: int

    def __str__(self) -> str:
        return f"{self.story.name} {self.program.name} {self.seed}"

    def world(self) -> World:
        """The world before it is lived: its noise is drawn by story, program and seed."""
        noises = NOISES[self.story.noise]
        places = STORIES.index(self.story), PROGRAMS.index(self.program)
        seed = int(np.random.default_rng([self.seed, *places]).integers(2**31))
        return World(seed, list(noises.values())[seed % len(noises)], self.program.blocking_save)

    def noise(self) -> str:
        """The name of its noise."""
        names = list(NOISES[self.story.noise])
        return names[self.world().seed % len(names)]


def cases(seeds: range) -> Iterator[Case]:
    """Yield all cases: each story in the format of each program that shows what it needs."""
    for story in STORIES:
        for program in PROGRAMS:
            if story.needs <= program.shows:
                yield from (Case(story, program, seed) for seed in seeds)


def answered(log: str) -> Analysis:
    """The answer to a log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.log"
        path.write_text(log)
        return goodput_cli.analyze(str(path), timezone="UTC", year=2026, draft=False)


def wrongs(case: Case) -> list[str]:
    """Return the errors of the answer; empty if it is correct."""
    world = case.world()
    truth = case.story.live(world)
    analysis = answered(case.program.log(world))
    return [
        *_wrong_insights(analysis, truth),
        *_wrong_goodput(analysis, world, case.program),
        *_wrong_counts(analysis, world, truth, case.program),
    ]


def _ways(cause: Cause | tuple[Cause, ...]) -> tuple[Cause, ...]:
    return (cause,) if isinstance(cause, Cause) else cause


def _wrong_insights(analysis: Analysis, truth: Truth) -> Iterator[str]:
    ways = [way for cause in truth.causes for way in _ways(cause)]
    known = {code for way in ways for code in way.codes.split()} | set(truth.also.split())
    for one in analysis.insights:
        if one.code not in known:
            yield f"false: {one.code} {one.ns / 1e9:.0f} s: {one.text}"
    if not analysis.insights:
        if ways and not truth.may_be_silent:
            yield f"silent: {truth.causes}"
        return
    top = analysis.insights[0]
    largest = max((max(way.seconds for way in _ways(cause)) for cause in truth.causes), default=0.0)
    of_code = [way for way in ways if top.code in way.codes.split() and way.seconds >= (1 - _SHARE) * largest]
    if truth.causes and not truth.may_be_silent and not of_code:
        yield f"not the top: {top.code} {top.ns / 1e9:.0f} s, true {truth.causes}"
    elif of_code and not any(_is_near(top.ns / 1e9, way.seconds) for way in of_code):
        yield f"seconds: {top.code} {top.ns / 1e9:.0f} s, true {of_code}"


def _is_near(said: float, true: float) -> bool:
    return abs(said - true) <= max(_SHARE * true, _SECONDS)


def _wrong_goodput(analysis: Analysis, world: World, program: Program) -> Iterator[str]:
    true = world.goodput(of_undisturbed=program.has_reference, of_each="each" in program.shows,
                         hidden=program.hides)  # fmt: skip
    said = analysis.goodput.percent
    if said is None and not world.trained:  # cannot be judged
        return
    if said is None or abs(said - true) > _POINTS:
        yield f"goodput: {said} %, true {true:.2f} %"


def _wrong_counts(analysis: Analysis, world: World, truth: Truth, program: Program) -> Iterator[str]:
    reliability = analysis.reliability
    if reliability is None or analysis.job.disruptions != truth.disruptions:
        yield f"disruptions: {analysis.job.disruptions}, true {truth.disruptions}"
    if reliability is not None and reliability.failures != world.failures:
        yield f"failures: {reliability.failures}, true {world.failures}"
    if truth.attempts is not None and analysis.job.attempts != truth.attempts:
        yield f"attempts: {analysis.job.attempts}, true {truth.attempts}"
    if "causes" in program.shows:
        true = [CAUSES[one.text] for one in world.happenings if one.text in CAUSES]
        said = [row.cause for row in analysis.disruptions if row.cause not in (None, "unknown")]
        if any(cause not in true for cause in said):
            yield f"causes: {said}, true {true}"

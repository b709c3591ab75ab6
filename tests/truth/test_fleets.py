"""Fleets of known truth: crashes are failures, also those without a restart; planned ends and jobs that still run are
censored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from tests.truth.judge import NOISES
from tests.truth.programs import PROGRAMS, Program
from tests.truth.stories import OUT_OF_MEMORY
from tests.truth.world import World

JOBS = ("apple", "cherry", "fig", "lemon", "olive", "plum")


def lived(seed: int) -> World:
    """A job that dies up to twice and is started again; then it ends, dies for good, or still runs."""
    world = World(seed, NOISES["calm"]["white 5 %"])
    world.start()
    for _ in range(int(world.random.integers(0, 3))):
        world.steps(int(world.random.integers(8, 20)) * 10, saves=20)
        world.die(OUT_OF_MEMORY)
        world.again(60)
    world.steps(int(world.random.integers(8, 20)) * 10, saves=20)
    if seed % 3 == 0:
        world.finish()
    elif seed % 3 == 1:
        world.die(OUT_OF_MEMORY, follows=False)
    return world


@pytest.mark.parametrize("program", [one for one in PROGRAMS if "deaths" in one.shows], ids=lambda one: one.name)
def test_fleet_counts_failures_and_censors_the_rest(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worlds = [lived(seed) for seed in range(len(JOBS))]
    for name, world in zip(JOBS, worlds, strict=True):
        (tmp_path / name).mkdir()
        text = program.log(world).replace('"job_name": "truth"', f'"job_name": "{name}"')
        (tmp_path / name / "train.log").write_text(text)
    assert run(["fleet", str(tmp_path), "-q", "--timezone", "UTC", "--format", "json", "--workers", "1"]) == 0
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert (totals["runs"], totals["failures"]) == (len(JOBS), sum(world.failures for world in worlds))

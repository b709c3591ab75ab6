"""Jobs of files that a scheduler numbers, with its table and without (docs/formats.md, Jobs in text logs)."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.errors import NotEnoughData, UsageError
from tests.mappings.drafting import at as written


def at(second: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return written(second, form)


HEADER = "JobID|JobName|Submit|Start|End|State|ExitCode\n"


def output(start: int, first: int, last: int, total: int, resumed: int | None = None) -> str:
    """Return stdout of a custom loop: ten steps in 10 s."""
    load = "" if resumed is None else f"{at(start + 5)} INFO Resumed from checkpoint at step {resumed}\n"
    steps = range(first, last + 1, 10)
    return f"{at(start)} INFO Starting training: {total} steps\n{load}" + "".join(
        f"{at(start + 10 * n)} INFO step {step}/{total} loss 2.{n}\n" for n, step in enumerate(steps, 1)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two jobs that ran at the same time; the first was submitted again under a new number."""
    (tmp_path / "slurm-811.out").write_text(output(0, 10, 200, 1000), encoding="utf-8")
    (tmp_path / "slurm-812.out").write_text(output(70, 10, 300, 500), encoding="utf-8")
    (tmp_path / "slurm-815.out").write_text(output(3600, 210, 400, 1000, 200), encoding="utf-8")
    return tmp_path


def with_table(folder: Path) -> Path:
    rows = ((811, "llama", 0, 205), (812, "vit", 70, 375), (815, "llama", 3600, 3805))
    table = "".join(
        f"{number}|{name}|{at(0, '%Y-%m-%dT%H:%M:%S')}|{at(begin, '%Y-%m-%dT%H:%M:%S')}|"
        f"{at(end, '%Y-%m-%dT%H:%M:%S')}|COMPLETED|0:0\n"
        for number, name, begin, end in rows
    )
    (folder / "sacct.txt").write_text(HEADER + table, encoding="utf-8")
    return folder


def test_numbers_that_ran_at_one_time_are_separate_jobs(folder: Path) -> None:
    jobs = goodput_cli.jobs(folder)
    assert [(one.name, one.attempts) for one in jobs.jobs] == [("slurm-811", 2), ("slurm-812", 1)]
    with pytest.raises(UsageError, match="2 jobs: 'slurm-811', 'slurm-812'"):
        goodput_cli.analyze(folder)


def test_table_names_the_jobs(folder: Path) -> None:
    jobs = goodput_cli.jobs(with_table(folder))
    assert [(one.name, one.attempts) for one in jobs.jobs] == [("llama", 2), ("vit", 1)]
    analysis = goodput_cli.analyze(folder, job_name="llama")
    assert (analysis.job.attempts, analysis.job.kept_steps, analysis.job.last_step) == (2, 400, 400)
    assert goodput_cli.analyze(folder, job_name="vit").job.last_step == 300


def test_name_that_the_table_does_not_contain_is_an_error(folder: Path) -> None:
    with pytest.raises(NotEnoughData, match=r"no events for job 'bert'.*'llama', 'vit'"):
        goodput_cli.analyze(with_table(folder), job_name="bert")


def test_rules_are_inferred_for_a_file_named_like_a_format(tmp_path: Path) -> None:
    log = tmp_path / "deepspeed.log"
    log.write_text(output(0, 10, 200, 1000), encoding="utf-8")
    assert goodput_cli.analyze(log).job.kept_steps == 200

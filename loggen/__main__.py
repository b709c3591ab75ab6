"""The command `python -m loggen`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import click

from loggen.samples import SAMPLES
from loggen.scenario import Model, Scenario
from loggen.write import Truth, write_log

_NOT_OPTIONS = {"attempts", "model", "start"}


def _scenario_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add one option for each plain field of a scenario, with the same name and default."""
    for field in reversed(fields(Scenario)):
        if field.name in _NOT_OPTIONS:
            continue
        name = "--" + field.name.replace("_", "-")
        if isinstance(field.default, bool):
            name += f"/--no-{field.name.replace('_', '-')}"
        command = click.option(name, default=field.default, show_default=True)(command)
    return command


@click.group()
def main() -> None:
    """Writes realistic training-job logs, the same ones for the same seed and options."""


@main.command()
@click.option("--model", type=click.Choice([model.value for model in Model]), default=Model.RECORDER.value)
@click.option("--start", default="2026-01-01T00:00:00Z", show_default=True, help="ISO-8601; without a zone: UTC.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Log to write; default: standard output.")
@click.option("--truth", type=click.Path(path_type=Path), help="JSON file for what is true of the log, bad lines too.")
@_scenario_options
def write(model: str, start: str, output: Path | None, truth: Path | None, **options: Any) -> None:
    """Write a log drawn from intervals and durations.

    Example: python -m loggen write --seed 7 --lines 1000000 --bad-share 0.001 -o big.jsonl --truth big.truth.json
    """
    try:
        begin = datetime.fromisoformat(start)
        begin = begin if begin.tzinfo else begin.replace(tzinfo=UTC)
        scenario = Scenario(model=Model(model), start=begin, **options)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    _write(scenario, output, truth)


@main.command()
@click.argument("name", type=click.Choice(sorted(SAMPLES)))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Log to write; default: standard output.")
def sample(name: str, output: Path | None) -> None:
    """Write one of the logs of sample_logs/, byte for byte.

    Example: python -m loggen sample llm-pretrain -o sample_logs/llm-pretrain.jsonl
    """
    _write(SAMPLES[name], output, None)


def _write(scenario: Scenario, output: Path | None, truth: Path | None) -> None:
    try:
        with ExitStack() as stack:
            stream: BinaryIO = sys.stdout.buffer if output is None else stack.enter_context(output.open("wb"))
            facts = write_log(scenario, stream)
        if truth is not None:
            truth.write_text(json.dumps(asdict(facts), indent=1) + "\n")
    except OSError as error:
        raise click.ClickException(f"cannot write the log: {error}") from error
    click.echo(_summary(facts), err=True)


def _summary(truth: Truth) -> str:
    return (
        f"{truth.lines} lines, {truth.attempts} attempts, {truth.steps_worked} steps worked on, "
        f"last step {truth.last_step}, {len(truth.bad)} bad lines"
    )


if __name__ == "__main__":
    main()

"""`goodput record`: one event of a job, for launcher scripts."""

from __future__ import annotations

from typing import Any

import click

from goodput_cli.cli.group import Command
from goodput_cli.errors import GoodputError
from goodput_cli.record.command import TYPES, record_event
from goodput_cli.record.native import BY_RESILIENCY_NAME


class _Time(click.ParamType[Any]):
    """An instant: ISO-8601 or epoch seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from goodput_cli.record.command import read_time

        try:
            return read_time(value)
        except ValueError:
            self.fail(f"{value!r} is no time: ISO-8601, or epoch seconds", param, ctx)


@click.command(
    cls=Command,
    epilog="""\b
    Examples:
      goodput record scheduled -j llm-7b --sink logs/run.jsonl
      goodput record checkpoint_saved --step 500 --sink gs://my-logs/runs
      goodput record terminated --reason SIGTERM

    TYPE is scheduled, started, step_finished, checkpoint_saved, checkpoint_loaded,
    preemption_notice, terminated, crashed, stopped, finished or heartbeat; the
    names of the resiliency library (user_scheduled, job_started) are taken too.
    In an image without goodput-cli: python -m goodput_record TYPE.""",
)
@click.argument("event_type", metavar="TYPE", type=click.Choice([*TYPES, *BY_RESILIENCY_NAME]))
@click.option("--job-name", "-j", metavar="NAME", help="The job.  [default: as the scheduler names it]")
@click.option(
    "--sink",
    "sinks",
    metavar="PLACE",
    multiple=True,
    help="A file, a folder/, gs:// or cloud-logging:; repeatable.  [default: goodput-logs/JOB.jsonl]",
)
@click.option("--step", type=int, metavar="N", help="The step that this is about.")
@click.option("--node-rank", type=int, metavar="N", help="Which process of the job this is about.")
@click.option("--reason", default="", metavar="WORD", help="The name of a signal, say.")
@click.option("--time", "instant", metavar="TIME", type=_Time(), help="ISO-8601, or epoch seconds.  [default: now]")
def record(
    event_type: str,
    job_name: str | None,
    sinks: tuple[str, ...],
    step: int | None,
    node_rank: int | None,
    reason: str,
    instant: Any,
) -> int:
    """Write one event of a job, from its launcher script.

    Exits with 1 if a place did not take the line within 10 s.
    """
    try:
        delivered = record_event(
            event_type, job_name=job_name, sinks=sinks, step=step, rank=node_rank, reason=reason, time=instant
        )
    except ValueError as error:
        raise click.UsageError(str(error), click.get_current_context()) from None
    return 0 if delivered else GoodputError.exit_code

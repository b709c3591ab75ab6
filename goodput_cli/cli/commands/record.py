"""`goodput record`: one event of a job, for launcher scripts."""

from __future__ import annotations

from typing import Any

import click

from goodput_cli.cli.group import Command
from goodput_cli.errors import GoodputError
from goodput_cli.record.command import TYPES, record_event
from goodput_cli.record.lines import BY_RESILIENCY_NAME


class _Time(click.ParamType[Any]):
    """A time: ISO 8601 or epoch seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from goodput_cli.record.command import read_time

        try:
            return read_time(value)
        except ValueError:
            self.fail(f"invalid time {value!r}: use ISO 8601 or epoch seconds", param, ctx)


@click.command(
    cls=Command,
    epilog="""\b
    Examples:
      goodput record scheduled -j llm-7b --sink logs/run.jsonl
      goodput record checkpoint_saved --step 500 --sink gs://my-logs/runs
      goodput record terminated --reason SIGTERM

    TYPE is scheduled, started, step_finished, checkpoint_saved, checkpoint_loaded,
    preemption_notice, terminated, crashed, stopped, finished or heartbeat, or a name
    of the resiliency library (user_scheduled, job_started).
    In an image without goodput-cli, use python -m goodput_record TYPE.""",
)
@click.argument("event_type", metavar="TYPE", type=click.Choice([*TYPES, *BY_RESILIENCY_NAME]))
@click.option("--job-name", "-j", metavar="NAME", help="Name of the job.  [default: the scheduler's job name]")
@click.option(
    "--sink",
    "sinks",
    metavar="SINK",
    multiple=True,
    help="Write to a file, a folder/, gs:// or cloud-logging:. Repeatable.  [default: goodput-logs/JOB.jsonl]",
)
@click.option("--step", type=int, metavar="N", help="Step of the event.")
@click.option("--node-rank", type=int, metavar="N", help="Rank of the process.")
@click.option("--reason", default="", metavar="WORD", help="Reason, such as the name of a signal.")
@click.option(
    "--time",
    "instant",
    metavar="TIME",
    type=_Time(),
    help="Time of the event: ISO 8601 or epoch seconds.  [default: now]",
)
def record(
    event_type: str,
    job_name: str | None,
    sinks: tuple[str, ...],
    step: int | None,
    node_rank: int | None,
    reason: str,
    instant: Any,
) -> int:
    """Write one event of a job, from a launcher script.

    Exits with 1 if the line could not be written within 10 s.
    """
    try:
        delivered = record_event(
            event_type, job_name=job_name, sinks=sinks, step=step, rank=node_rank, reason=reason, time=instant
        )
    except ValueError as error:
        raise click.UsageError(str(error), click.get_current_context()) from None
    return 0 if delivered else GoodputError.exit_code

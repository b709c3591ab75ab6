"""`goodput fleet`: thousands of jobs, on this machine or on a dask cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from goodput_cli.cli.completion import FILE
from goodput_cli.cli.console import write_output
from goodput_cli.cli.options import CommandLine, options_of, shared_options, threshold_options
from goodput_cli.cli.outputs import DEFAULT_FORMAT
from goodput_cli.cli.parameters import GroupedCommand, option
from goodput_cli.cli.session import open_session
from goodput_cli.errors import ProblemsFound, UsageError
from goodput_cli.fleet.grouping import RUN, Grouping
from goodput_cli.fleet.passes.engine import Workers
from goodput_cli.fleet.question import Tables
from goodput_cli.fleet.totals.thresholds import FleetThreshold, parse_fleet_fail_under, parse_fleet_threshold
from goodput_cli.report.base import load_fleet_renderer
from goodput_cli.report.messages import threshold_lines


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput fleet logs/
      goodput fleet logs/ --labels labels.csv --by team --by cluster,week
      goodput fleet logs/ --accelerators 256 --price-per-hour 2.50 --last 28d
      goodput fleet logs/ --store results/ --workers 8 -o fleet.html
      goodput fleet logs/ --labels labels.csv --fail-if 'any(team):goodput<70'

    \b
    Goodput is by chip time: accelerators x time. Where nobody says how many a run
    holds, it is by time alone, and the report says so. Times are absolute: they
    hold for all jobs. docs/fleet.md defines every number.""",
)
@shared_options(
    leave_out=("run",),
    several={"job_name": "Only jobs whose names match the glob; may be repeated."},
)
@options_of(Grouping, "grouping")
@options_of(Tables, "tables")
@threshold_options(parse_fleet_threshold, parse_fleet_fail_under)
@options_of(Workers, "workers")
@option(RUN, "--store", metavar="DIR", type=FILE, help="Keep results here, and use those that are there.")
@option(RUN, "--plan", is_flag=True, help="Say what there is to read and how long it takes; read nothing.")
def fleet(
    line: CommandLine,
    job_name: tuple[str, ...],
    grouping: Grouping,
    tables: Tables,
    thresholds: tuple[FleetThreshold, ...],
    workers: Workers,
    store: str | None,
    plan: bool,
) -> int:
    """Show what thousands of jobs made of their time.

    SOURCE is as for analyze; documents are read one by one, on several processors if that pays.
    """
    if plan and (line.output.output or line.output.format_ not in (None, DEFAULT_FORMAT)):
        raise UsageError("--plan reads nothing and has sentences for a person alone: leave out --output and --format")
    session = open_session(line, load_fleet_renderer, charts=True)
    from goodput_cli.api.options import split
    from goodput_cli.fleet.question import FleetQuestion
    from goodput_cli.fleet.run import fleet_plan, report_on

    if plan:
        write_output("".join(f"{sentence}\n" for sentence in fleet_plan(session.sources, workers)))
        return 0
    from goodput_cli.fleet.report.sheet import fleet_sheet
    from goodput_cli.fleet.totals.thresholds import evaluate_fleet

    with session.reading(then="adding up") as options:
        question = FleetQuestion(_with_groups_of(grouping, thresholds), *split(options), job_name)
        report = report_on(question, session.sources, tables, workers, None if store is None else Path(store))
    judged = evaluate_fleet(thresholds, report)
    code = session.finish(
        fleet_sheet(report, judged),
        report.diagnostics,
        thresholds=judged,
        threshold_lines=lambda with_passes: threshold_lines(judged, with_passes=with_passes),
    )
    return code or (ProblemsFound.exit_code if line.strict and not report.complete else 0)


def _with_groups_of(grouping: Grouping, thresholds: Sequence[FleetThreshold]) -> Grouping:
    """With the tables whose groups are judged."""
    return replace(grouping, by=tuple(dict.fromkeys((*grouping.by, *(one.dims for one in thresholds if one.dims)))))

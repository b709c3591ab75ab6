"""`goodput fleet`: thousands of jobs, on this machine or on a dask cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import click

from goodput_cli.cli.completion import FILE
from goodput_cli.cli.console import put
from goodput_cli.cli.options import CommandLine, shared_options
from goodput_cli.cli.parameters import Checked, Decorated, GroupedCommand, declared_option, option
from goodput_cli.cli.session import open_session
from goodput_cli.errors import ProblemsFound
from goodput_cli.fleet.grouping import LABELS, RUN, Grouping
from goodput_cli.fleet.passes.engine import Workers
from goodput_cli.fleet.question import Tables
from goodput_cli.fleet.totals.thresholds import FleetThreshold, parse_fleet_fail_under, parse_fleet_threshold
from goodput_cli.report.base import load_fleet_renderer
from goodput_cli.report.messages import threshold_lines
from goodput_cli.vocabulary.option import declared, in_order


def _warns(text: str) -> FleetThreshold:
    """An expression that only warns."""
    return parse_fleet_threshold(text, fails=False)


def grouping_options(command: Decorated) -> Decorated:
    """What is asked of a fleet besides how its jobs are accounted for."""
    for one in reversed(in_order(declared(Grouping))):
        command = declared_option(one)(command)
    return command


def table_options(command: Decorated) -> Decorated:
    """Files with what logs do not say."""
    said = {
        "labels": "Team, cluster, accelerators, price … of jobs: CSV, JSON, JSONL or Parquet; earlier files win.",
        "sacct": "Allocations from `sacct --parsable2`.",
        "allocations": "Allocations from a table: job, start, end, accelerators.",
        "capacity": "What the fleet has: from, to, count, cluster, accelerator.",
    }
    for name, words in reversed(said.items()):
        command = option(LABELS, f"--{name}", metavar="FILE", type=FILE, multiple=True, help=words)(command)
    return command


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
@grouping_options
@table_options
@option(
    "Out",
    "--fail-under",
    metavar="PCT",
    type=Checked("percent", parse_fleet_fail_under),
    help="Exit with 3 if goodput is below.",
)
@option(
    "Out",
    "--fail-if",
    metavar="EXPR",
    type=Checked("expr", parse_fleet_threshold),
    multiple=True,
    help="Exit with 3 if EXPR holds.",
)
@option("Out", "--warn-if", metavar="EXPR", type=Checked("expr", _warns), multiple=True, help="Say so if EXPR holds.")
@option(RUN, "--workers", metavar="N", type=click.IntRange(min=1), help="Processes.  [default: as many as pay]")
@option(RUN, "--scheduler", metavar="ADDRESS", help="A dask scheduler (tls://HOST:PORT), or its file; needs --store.")
@option(RUN, "--insecure-scheduler", is_flag=True, help="Speak to a scheduler without TLS.")
@option(RUN, "--memory", metavar="SIZE", help="Of a worker, such as 2GiB.  [default: its share of 3/4 of the machine]")
@option(RUN, "--store", metavar="DIR", type=FILE, help="Keep results here, and use those that are there.")
@option(RUN, "--plan", is_flag=True, help="Say what there is to read and how long it takes; read nothing.")
def fleet(line: CommandLine, job_name: tuple[str, ...], plan: bool, store: str | None, **values: Any) -> int:
    """Show what thousands of jobs made of their time.

    SOURCE is as for analyze; documents are read one by one, on several processors if that pays.
    """
    judged = _thresholds(values)
    session = open_session(line, load_fleet_renderer)
    grouping = {one.keyword: values.pop(one.keyword) for one in declared(Grouping)}
    grouping["by"] = _with_judged(grouping["by"] or (), judged)
    workers = Workers(**_taken(Workers, values))
    tables = _taken(Tables, values)
    from goodput_cli.fleet.run import fleet_plan, fleet_report

    if plan:
        put("".join(f"{sentence}\n" for sentence in fleet_plan(session.sources, workers)))
        return 0
    from goodput_cli.fleet.report.sheet import fleet_sheet
    from goodput_cli.fleet.totals.thresholds import evaluate_fleet

    with session.reading(then="adding up") as options:
        report = fleet_report(
            session.sources, jobs=job_name, workers=workers, store=store, **tables, **grouping, **options
        )
    thresholds = evaluate_fleet(judged, report)
    code = session.finish(
        fleet_sheet(report, thresholds),
        report.diagnostics,
        thresholds=thresholds,
        threshold_lines=lambda with_passes: threshold_lines(thresholds, with_passes=with_passes),
    )
    return code or (ProblemsFound.exit_code if line.strict and not report.complete else 0)


def _thresholds(values: dict[str, Any]) -> list[FleetThreshold]:
    """All that were typed, those that fail first."""
    under, fails, warns = (values.pop(name) for name in ("fail_under", "fail_if", "warn_if"))
    return [*([under] if under is not None else []), *fails, *warns]


def _with_judged(by: Sequence[tuple[str, ...]], judged: Sequence[FleetThreshold]) -> tuple[tuple[str, ...], ...]:
    """The tables that were asked for, and those whose groups are judged."""
    return tuple(dict.fromkeys((*by, *(one.dims for one in judged if one.dims))))


def _taken(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    """The options that are fields of a dataclass."""
    return {one.name: values.pop(one.name) for one in fields(kind)}

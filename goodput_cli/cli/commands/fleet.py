"""`goodput fleet`: thousands of jobs, on this machine or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from goodput_cli.analysis.threshold import Expression
from goodput_cli.cli.console import print_messages, waiting, write_output
from goodput_cli.cli.group import FILE
from goodput_cli.cli.options import (
    OUTPUT,
    CommandLine,
    GroupedCommand,
    option,
    options_of,
    shared_options,
    threshold_options,
)
from goodput_cli.cli.session import DEFAULT_FORMAT, Session, is_brief, open_session, start_to_draw
from goodput_cli.diagnostics.diagnostic import folded
from goodput_cli.errors import ProblemsFound, UsageError
from goodput_cli.fleet.question import RUN, Grouping, Tables, Workers
from goodput_cli.fleet.thresholds import parse_fleet_fail_under, parse_fleet_threshold
from goodput_cli.report.base import load_fleet_renderer

if TYPE_CHECKING:
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.analysis.sheet import Sheet
    from goodput_cli.fleet.report import FleetSheet
    from goodput_cli.fleet.rows import RunLine


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput fleet logs/
      goodput fleet logs/ --labels labels.csv --by team --by cluster,week
      goodput fleet logs/ --accelerators 256 --price-per-hour 2.50 --last 28d
      goodput fleet logs/ --store results/ --workers 8 -o fleet.html
      goodput fleet logs/ --store results/ -o site/
      goodput fleet logs/ --labels labels.csv --fail-if 'any(team):goodput<70'

    Runs are weighed by chip time: accelerators x time. If the number of accelerators
    is unknown, they are weighed by time, and the report shows it. Times are absolute
    and apply to all jobs. -o DIR/ writes a site: one page for the fleet and one per
    run. docs/fleet.md defines every number.""",
)
@shared_options(
    leave_out=("run", "tokens_per_step", "total_steps"),
    work=True,
    several={"job_name": "Read only jobs whose names match this glob; repeatable."},
)
@options_of(Grouping, "grouping")
@options_of(Tables, "tables")
@threshold_options(parse_fleet_threshold, parse_fleet_fail_under)
@options_of(Workers, "workers")
@option(RUN, "--store", metavar="DIR", type=FILE, help="Store results in DIR, and use stored ones.")
@option(OUTPUT, "--full", is_flag=True, help="Print the whole report, not only the first screen.")
@option(RUN, "--plan", is_flag=True, help="Dry run: list what would be read and estimate the time.")
def fleet(
    line: CommandLine,
    job_name: tuple[str, ...],
    grouping: Grouping,
    tables: Tables,
    thresholds: tuple[Expression, ...],
    workers: Workers,
    store: str | None,
    plan: bool,
    full: bool,
) -> int:
    """Report goodput across many jobs.

    SOURCE is as for analyze. Files are read one by one, on several processors if that is faster.
    """
    if plan and (line.output.output or line.output.format_ not in (None, DEFAULT_FORMAT)):
        raise UsageError("--plan prints text only", tip="remove --output and --format")
    sites = tuple(one for one in line.output.output if one.endswith("/"))
    session = _open(line, sites)
    from goodput_cli.api.options import split
    from goodput_cli.fleet.question import FleetQuestion
    from goodput_cli.fleet.run import fleet_plan, report_on

    if plan:
        write_output("".join(f"{sentence}\n" for sentence in fleet_plan(session.sources, workers)))
        return 0
    from goodput_cli.fleet.report import fleet_sheet
    from goodput_cli.fleet.sums import Totals
    from goodput_cli.fleet.thresholds import evaluate_fleet

    with session.reading(then="adding up") as options:
        judged_groups = (one.each for one in thresholds if one.each)
        grouping_of_all = replace(grouping, by=tuple(dict.fromkeys((*grouping.by, *judged_groups))))
        question = FleetQuestion(grouping_of_all, *split(options), job_name)
        report = report_on(question, session.sources, tables, workers, None if store is None else Path(store))
    whole = Totals(report.sums, report.mpg, report.held, report.coverage.analysed)
    judged = evaluate_fleet(thresholds, whole, report.groups)
    sheet = fleet_sheet(report, judged)
    for site in sites:
        _write_site(Path(site), sheet, session, grouping)
    shown: Sheet = sheet
    if is_brief(line, full=full):
        from goodput_cli.fleet.report import first_screen

        shown = first_screen(sheet)
    said = report.diagnostics if line.output.verbose else folded(report.diagnostics)
    code = session.finish(shown, said, thresholds=judged)
    return code or (ProblemsFound.exit_code if line.strict and not report.complete else 0)


def _open(line: CommandLine, sites: Sequence[str]) -> Session[Sheet]:
    """Open the session with its output files. With a site, standard output stays empty, as with any file."""
    files = tuple(one for one in line.output.output if one not in sites)
    session = open_session(replace(line, output=replace(line.output, output=files)), load_fleet_renderer, charts=True)
    if not sites:
        return session
    from goodput_cli.report.html.site import make_folder

    for site in sites:
        make_folder(Path(site))
    start_to_draw()
    return replace(session, stdout=None) if line.output.format_ is None else session


def _write_site(folder: Path, sheet: FleetSheet, session: Session[Sheet], grouping: Grouping) -> None:
    """Write the pages of the fleet and of its runs, and report how many."""
    from goodput_cli.api.analyze import analyze
    from goodput_cli.fleet.results import code_version
    from goodput_cli.report.html.site import write_site
    from goodput_cli.sources.base import ReadContext, list_documents
    from goodput_cli.vocabulary.text import well_formed

    of_runs = {name: value for name, value in session.line.library.items() if name not in ("start", "end", "stdin")}
    price = None if grouping.price_per_hour is None else float(grouping.price_per_hour)

    def analysis_of(row: RunLine) -> Analysis:
        held = row.accelerators
        options: dict[str, Any] = {
            **of_runs,
            "job_name": row.job,
            "run": row.run if row.run and row.runs > 1 else "all",
        }
        if held is not None:
            options |= {"accelerators": held, "price_per_hour": price}
        return analyze([uri for name in dict.fromkeys(row.documents) for uri in named.get(name, [name])], **options)

    listed = list_documents(session.sources, ReadContext(lambda _: None))
    versions, named = dict[str, str](), dict[str, list[str]]()
    for one in (one for document in listed for one in (document, *document.parts)):
        name = well_formed(one.uri)  # file names are bytes, but rows contain text: several names may have one text
        named.setdefault(name, []).append(one.uri)
        versions[name] = versions.get(name, "") + one.version
    made_by = f"{code_version()} {price} {sorted((name, str(value)) for name, value in of_runs.items())}"
    with waiting("drawing the pages of runs", wanted=session.shows_progress):
        done, *failed = write_site(folder, sheet, analysis_of, versions, made_by)
    if not session.line.output.quiet:
        print_messages([f"{folder}/: {done}", *failed])

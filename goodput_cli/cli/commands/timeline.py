"""`goodput timeline`: the segments of a job, and the log lines that bound them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from goodput_cli.cli.completion import complete_category
from goodput_cli.cli.options import LENGTH, CommandLine, shared_options
from goodput_cli.cli.parameters import Checked, GroupedCommand, option
from goodput_cli.cli.session import open_sheet_session
from goodput_cli.errors import UsageError

if TYPE_CHECKING:
    from goodput_cli.analysis.timeline.around import Around

_MARGIN_NS = 600 * 10**9


def _around(text: str) -> object:
    from goodput_cli.analysis.timeline.around import parse_around

    return parse_around(text)


def _category(text: str) -> str:
    from goodput_cli.analysis.timeline.rows import check_category

    return check_category(text)


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput timeline run.jsonl
      goodput timeline run.jsonl --from -2h --min-duration 30s
      goodput timeline run.jsonl --around disruption:3 --events
      goodput timeline run.jsonl --around step:1503 --events --margin 2m
      goodput timeline run.jsonl --category step_stall --category custom:EVAL_STEP
      goodput timeline run.jsonl --format json | jq '.segments[0]'

    \b
    Tables show a run of alike steps as one row; JSON and CSV hold every segment.
    Disruptions are numbered from 1 in time order.""",
)
@shared_options()
@option(
    "When",
    "--around",
    metavar="TIME|disruption:N|step:N",
    type=Checked("around", _around),
    help="Show a neighbourhood.",
)
@option("When", "--margin", metavar="DURATION", type=LENGTH, help="How far around, on either side.  [default: 10m]")
@option("Which", "--min-duration", metavar="DURATION", type=LENGTH, help="Only what lasts at least that long.")
@option(
    "Which",
    "--category",
    metavar="NAME",
    multiple=True,
    type=Checked("name", _category),
    shell_complete=complete_category,
    help="Only these categories.",
)
@option("Which", "--events", is_flag=True, help="Show the events of the log between the segments.")
def timeline(
    line: CommandLine,
    around: Around | None,
    margin: int | None,
    min_duration: int | None,
    category: tuple[str, ...],
    events: bool,
) -> int:
    """Show what the job did when, and the lines that prove it.

    Every segment with its attempt and steps. SOURCE is as for analyze. A run of alike steps counts as one for
    --min-duration.
    """
    if around is not None and (line.library.get("start") or line.library.get("end")):
        raise UsageError("--around names a window of its own; leave out --from and --to")
    if margin is not None and around is None:
        raise UsageError("--margin belongs to --around")
    session = open_sheet_session(line)
    analysis = session.analyze()
    from goodput_cli.analysis.timeline.around import neighbourhood
    from goodput_cli.analysis.timeline.rows import choose_segments, event_rows
    from goodput_cli.analysis.timeline.sheet import timeline_sheet

    window = (analysis.window.start_ns, analysis.window.end_ns)
    if around is not None:
        zone = line.library["timezone"]
        window = neighbourhood(analysis.timeline, around, margin or _MARGIN_NS, zone, time.time_ns())
    rows = choose_segments(analysis.timeline, window, min_duration or 0, category)
    shown = event_rows(analysis.timeline, *window) if events else None
    sheet = timeline_sheet(analysis, rows, window, shown, filtered=bool(category or min_duration))
    return session.finish(sheet, analysis.diagnostics)

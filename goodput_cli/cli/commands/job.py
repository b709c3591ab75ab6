"""The commands about one job: analyze, advise, rolling, timeline, disruptions and steps."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import click

from goodput_cli.accounting.options import WHEN
from goodput_cli.analysis.goodput.phrases import reference_caution
from goodput_cli.analysis.goodput.thresholds import parse_advice, parse_fail_under, read_threshold
from goodput_cli.analysis.question import AdviceQuestion
from goodput_cli.analysis.threshold import Expression
from goodput_cli.cli.group import complete_category
from goodput_cli.cli.options import (
    LENGTH,
    OUTPUT,
    SELECTION,
    CommandLine,
    GroupedCommand,
    ParsedParameter,
    cost_options,
    option,
    options_of,
    shared_options,
    threshold_options,
    window_options,
)
from goodput_cli.cli.session import is_brief, open_session, open_sheet_session
from goodput_cli.errors import UsageError
from goodput_cli.report.base import Renderer, load_renderer
from goodput_cli.vocabulary.text import duration, safe
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_MINUTE

if TYPE_CHECKING:
    from goodput_cli.analysis.disruptions.find import Around
    from goodput_cli.analysis.disruptions.sheet import By
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.analysis.question import Price
    from goodput_cli.analysis.sheet import Sheet


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput analyze run.jsonl
      goodput analyze logs/ more/*.jsonl.gz -j llm-7b --from -2h
      goodput analyze run.jsonl --accelerators 256 -o report.json -o report.md
      goodput analyze run.jsonl -o segments.parquet -o run.events.parquet
      goodput analyze run.jsonl --fail-under 85 --fail-if 'step_stall>5%'

    TIME is ISO 8601, now, -2h (before the end), +30m (after the start) or attempt:3.
    EXPR is NAME OP VALUE[UNIT], such as 'goodput<85': see `goodput help gates`.
    Options can also be set in the environment, such as GOODPUT_ANALYZE_JOB_NAME=llm-7b
    (separate several values with ;).""",
)
@shared_options(drafts=True, work=True)
@window_options
@cost_options
@threshold_options(read_threshold, parse_fail_under)
@option(OUTPUT, "--full", is_flag=True, help="Print the whole report, not only the first screen.")
def analyze(
    line: CommandLine,
    window: tuple[int, ...],
    every: int | None,
    price: Price | None,
    thresholds: tuple[Expression, ...],
    full: bool,
) -> int:
    """Show where a job's time went (the default command).

    Puts every second of the job in exactly one category. SOURCE is a file, a glob, a folder, an address (gs://, s3://,
    cloud-logging://) or - for standard input. Compressed files are read directly, and several sources are merged.
    """
    brief = is_brief(line, full=full)
    session = open_session(line, _load_first_screen if brief else load_renderer, charts=True)
    analysis = session.analyze(thresholds=thresholds, window=window, every=every, price=price)
    return session.finish(
        analysis,
        [one for one in analysis.diagnostics if one.severity == "error" or not brief],
        thresholds=analysis.thresholds,
        cautions=(
            *_further_findings(line, analysis, brief=brief),
            *reference_caution(analysis),
            *_unended(session.sources, line, analysis),
        ),
    )


def _further_findings(line: CommandLine, analysis: Analysis, *, brief: bool) -> Iterator[str]:
    """Yield the number of findings that only `goodput check` lists, below a full report for people."""
    if brief or line.output.quiet or line.output.format_ not in (None, "table"):
        return
    from goodput_cli.analysis.check import counts_in_words, noticed_in

    rest = noticed_in(analysis, time.time_ns())[len(analysis.diagnostics) :]
    if rest:
        logs = safe(shlex.join(analysis.options)) or "LOG"
        codes = ", ".join(sorted({one.code for one in rest}))
        yield f"not listed: {counts_in_words(rest)} ({codes}). To list all: goodput check {logs}"


def _unended(sources: Sequence[str], line: CommandLine, analysis: Analysis) -> Iterator[str]:
    """Yield how to count the time since the last line if the job may still run.

    This is not part of the answer, which depends on the events alone.
    """
    asked = any(line.library.get(one) for one in ("as_of", "start", "end"))
    last, now = int(analysis.table.end.max(initial=0)), time.time_ns()
    if asked or analysis.job.ending != "not_logged" or not NS_PER_MINUTE < now - last < NS_PER_DAY:
        return
    from goodput_cli.sources.files import newest_file

    if newest_file(sources) > now - NS_PER_DAY:
        yield f"the job's end is not logged; the last line is {duration(now - last)} old: --as-of now counts this time"


def _load_first_screen(_: str) -> Renderer:
    """Return the renderer of the first screen, which shows the number of warnings."""
    from goodput_cli.report.first_screen import first_screen

    return first_screen


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput advise run.jsonl
      goodput advise run.jsonl --accelerators 256 --price-per-hour 4.20
      goodput advise run.jsonl --save-seconds 5s --mtbf 6h
      goodput advise run.jsonl --fail-if 'advice.gain_low>1pp' -o advice.md

    EXPR is advice.gain, advice.gain_low, advice.IMPROVEMENT or advice.interval_ratio,
    compared with a value in points of goodput (pp), s, m, h or d (advice.interval_ratio
    has no unit). Advice covers a whole job: see docs/advice.md.""",
)
@shared_options(leave_out=("start", "end"), drafts=True)
@options_of(AdviceQuestion, "question")
@cost_options
@threshold_options(parse_advice, holds="Exit with 3 if EXPR is true, with 4 if it is inconclusive. Repeatable.")
def advise(
    line: CommandLine,
    question: AdviceQuestion,
    price: Price | None,
    thresholds: tuple[Expression, ...],
) -> int:
    """Recommend a checkpoint interval, and rank improvements.

    goodput replays the job with other intervals, and shows how certain the result is. SOURCE is as for analyze.
    """
    session = open_sheet_session(line, offers=("chart", "published"))
    from goodput_cli.analysis.advice.advise import advice_options, advise_analysis
    from goodput_cli.analysis.advice.sheet import advice_sheet

    said = advice_options(question, price)
    analysis = session.analyze()
    advice = advise_analysis(analysis, said, question.death, question.save_ns, question.interval_now, thresholds)
    return session.finish(
        advice_sheet(analysis, advice),
        (*analysis.diagnostics, *advice.diagnostics),
        thresholds=advice.thresholds,
    )


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput rolling run.jsonl
      goodput rolling run.jsonl --window 1h --window 4h --every 10m
      goodput rolling logs/ -j llm-7b --from -12h --window 30m -o rolling.csv

    Windows end every E, counted from the start of the job (or --from). The last window
    ends at the end of the job (or --to). A window covers W before its end. With E = W,
    the default, the windows cover the job without gaps or overlaps.""",
)
@shared_options(drafts=True)
@window_options
def rolling(line: CommandLine, window: tuple[int, ...], every: int | None) -> int:
    """Show goodput over time, in rolling windows.

    One row per window. JSON and CSV contain every category. SOURCE is as for analyze. Without --window, a window is
    a tenth of the job, rounded up.
    """
    session = open_sheet_session(line)
    analysis = session.analyze(window=window or ("auto",), every=every)
    from goodput_cli.analysis.rolling import rolling_sheet

    return session.finish(_with_remark(rolling_sheet(analysis), analysis), analysis.diagnostics)


def _with_remark(sheet: Sheet, analysis: Analysis) -> Sheet:
    """Add the sentence about inferred rules to the CSV of a table."""
    drafted = analysis.inferred_rules
    return sheet if drafted is None else replace(sheet, remark=drafted.sentence(analysis.options))


_MARGIN_NS = 600 * 10**9


def _around(text: str) -> object:
    from goodput_cli.analysis.disruptions.find import parse_around

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

    Tables show consecutive similar steps as one row. JSON and CSV contain every
    segment. Disruptions are numbered from 1, in time order.""",
)
@shared_options(drafts=True)
@option(
    WHEN,
    "--around",
    metavar="TIME|disruption:N|step:N",
    type=ParsedParameter("around", _around),
    help="Show only the time around a time, disruption or step.",
)
@option(
    WHEN, "--margin", metavar="DURATION", type=LENGTH, help="Time to show before and after --around.  [default: 10m]"
)
@option(SELECTION, "--min-duration", metavar="DURATION", type=LENGTH, help="Show only segments of at least DURATION.")
@option(
    SELECTION,
    "--category",
    metavar="NAME",
    multiple=True,
    type=ParsedParameter("name", _category),
    shell_complete=complete_category,
    help="Show only this category; repeatable.",
)
@option(SELECTION, "--events", is_flag=True, help="Show the log events between the segments.")
def timeline(
    line: CommandLine,
    around: Around | None,
    margin: int | None,
    min_duration: int | None,
    category: tuple[str, ...],
    events: bool,
) -> int:
    """Show what the job did when, with the log lines.

    Lists every segment with its attempt and steps. SOURCE is as for analyze. For --min-duration, consecutive similar
    steps count as one segment.
    """
    if around is not None and (line.library.get("start") or line.library.get("end")):
        raise UsageError("--around sets the window", tip="remove --from and --to")
    if margin is not None and around is None:
        raise UsageError("--margin needs --around")
    session = open_sheet_session(line)
    analysis = session.analyze()
    from goodput_cli.analysis.disruptions.find import neighbourhood
    from goodput_cli.analysis.timeline.rows import choose_segments, event_rows
    from goodput_cli.analysis.timeline.sheet import timeline_sheet

    window = (analysis.window.start_ns, analysis.window.end_ns)
    if around is not None:
        zone = line.library["timezone"]
        window = neighbourhood(analysis.timeline, around, margin or _MARGIN_NS, zone, time.time_ns())
    rows = choose_segments(analysis.timeline, window, min_duration or 0, category)
    shown = event_rows(analysis.timeline, *window) if events else None
    sheet = timeline_sheet(analysis, rows, window, shown, filtered=bool(category or min_duration))
    return session.finish(_with_remark(sheet, analysis), analysis.diagnostics)


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput disruptions run.jsonl
      goodput disruptions run.jsonl --accelerators 256 --price-per-hour 2.50
      goodput disruptions logs/ --format json | jq '.reliability.mtbf_seconds'
      goodput disruptions run.jsonl -o disruptions.csv
      goodput disruptions logs/ --by cause
      goodput disruptions logs/ --by attempt
      goodput disruptions logs/ --full
      goodput disruptions logs/ --by link

    A disruption counts in the window that contains the last activity of the attempt;
    its amounts are never cut. Its cost is wasted training, downtime and restart,
    without time in the queue. Every row cites its log lines.""",
)
@shared_options(drafts=True)
@option(
    SELECTION,
    "--by",
    type=click.Choice(["cause", "group", "host", "link", "attempt"]),
    help="Show totals by cause, group of causes, host or recovery phase (link), or all time by attempt.",
)
@option(OUTPUT, "--full", is_flag=True, help="Show the recovery phases of each outage below the list.")
@cost_options
def disruptions(line: CommandLine, price: Price | None, by: By | Literal["link", "attempt"] | None, full: bool) -> int:
    """List the disruptions: losses, causes, log lines.

    Also shows MTBF with its 95 % range, mean downtime, MTTR and ETTR. SOURCE is as for analyze.
    """
    session = open_sheet_session(line)
    analysis = session.analyze()
    from goodput_cli.analysis.disruptions.sheet import attempts_sheet, by_sheet, disruptions_sheet, links_sheet

    if by is None:
        sheet = disruptions_sheet(analysis, price, full=full)
    elif by == "link":
        sheet = links_sheet(analysis)
    else:
        sheet = attempts_sheet(analysis) if by == "attempt" else by_sheet(analysis, by)
    return session.finish(_with_remark(sheet, analysis), analysis.diagnostics)


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput steps run.jsonl
      goodput steps run.jsonl --from -6h --slowest 25
      goodput steps logs/ -j llm-7b --format json | jq '.slow_regimes'
      goodput steps run.jsonl -o slowest.csv

    A step time is the time between two recorded steps of one attempt. The ideal step
    time is the mean of the step times up to median + 3 x MAD.
    In a slow period the step time rises by more than 5 % and stays high for at least
    24 steps. With fewer than 48 step times, 8 steps are enough if their times do not
    overlap with the others.
    Single slow steps, short bursts and random drift are not slow periods. If a slow
    period could not be detected, the result is inconclusive, with the reason.
    Steps that become slower all the time are a drift. p99 includes steps with a
    start-up, a save or an evaluation; the list of the slowest steps marks them.""",
)
@shared_options(drafts=True, work=True)
@option(
    SELECTION,
    "--slowest",
    metavar="N",
    type=click.IntRange(min=0, max=1_000_000),
    default=10,
    show_default=True,
    help="Number of the slowest steps to list.",
)
@option(
    SELECTION,
    "--by",
    type=click.Choice(["phase", "rank", "host", "device"]),
    default="phase",
    show_default=True,
    help="Show the step breakdown by phase, or by the rank or host that delayed others, or show each accelerator.",
)
def steps(line: CommandLine, slowest: int, by: Literal["phase", "rank", "host", "device"]) -> int:
    """Show step times, slow periods and the step breakdown.

    SOURCE is as for analyze. Logs without step lines have no step times: exit code 4.
    """
    session = open_sheet_session(line)
    analysis = session.analyze()
    from goodput_cli.analysis.steps.sheet import step_report, steps_sheet

    report = step_report(analysis, slowest)
    return session.finish(_with_remark(steps_sheet(analysis, report, by), analysis), analysis.diagnostics)

"""The commands that ask about one job: analyze and advise, and rolling, timeline, disruptions and steps in rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import click

from goodput_cli.accounting.options import WHEN
from goodput_cli.analysis.advice.thresholds import parse_advice
from goodput_cli.analysis.goodput.phrases import reference_caution
from goodput_cli.analysis.goodput.thresholds import parse_fail_under, read_threshold
from goodput_cli.analysis.question import AdviceQuestion
from goodput_cli.analysis.threshold import Expression
from goodput_cli.cli.group import complete_category
from goodput_cli.cli.options import (
    LENGTH,
    OUTPUT,
    SELECTION,
    Checked,
    CommandLine,
    GroupedCommand,
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
from goodput_cli.vocabulary.text import duration
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_MINUTE

if TYPE_CHECKING:
    from goodput_cli.analysis.disruptions.sheet import By
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.analysis.question import Price
    from goodput_cli.analysis.sheet import Sheet
    from goodput_cli.analysis.timeline.around import Around


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput analyze run.jsonl
      goodput analyze logs/ more/*.jsonl.gz -j llm-7b --from -2h
      goodput analyze run.jsonl --reference-step-time 2.5 -o report.json -o out.md
      goodput analyze run.jsonl -o segments.parquet -o run.events.parquet
      goodput analyze run.jsonl --fail-under 85 --fail-if 'step_stall>5%'

    TIME is ISO-8601, now, -2h (before the end), +30m (after the start) or attempt:3.
    EXPR is NAME OP VALUE[UNIT]: goodput, a category, custom:LABEL, disruptions,
    steps.p99 or insight:hang, compared (< <= > >= == !=) with a value in %, s, m or h.
    Every option can come from the environment: GOODPUT_ANALYZE_JOB_NAME=llm-7b
    (several values of one option with ; between them).""",
)
@shared_options(drafts=True, work=True)
@window_options
@cost_options
@threshold_options(read_threshold, parse_fail_under)
@option(OUTPUT, "--full", is_flag=True, help="On a terminal, the whole report and not the first screen.")
def analyze(
    line: CommandLine,
    window: tuple[int, ...],
    every: int | None,
    price: Price | None,
    thresholds: tuple[Expression, ...],
    full: bool,
) -> int:
    """Put every second of a training job in exactly one category.

    SOURCE is a file, a glob, a folder, or - for standard input; .gz is read as it is. Several are merged.
    """
    brief = is_brief(line, full=full)
    session = open_session(line, _load_first_screen if brief else load_renderer, charts=True)
    analysis = session.analyze(thresholds=thresholds, window=window, every=every, price=price)
    return session.finish(
        analysis,
        [one for one in analysis.diagnostics if one.severity == "error" or not brief],
        thresholds=analysis.thresholds,
        cautions=(*reference_caution(analysis), *_unended(session.sources, line, analysis)),
    )


def _unended(sources: Sequence[str], line: CommandLine, analysis: Analysis) -> Iterator[str]:
    """How to count the time since the last line, where the job may run still or have died since: it is no part of an
    answer, which is the same for the same events."""
    asked = any(line.library.get(one) for one in ("as_of", "start", "end"))
    last, now = int(analysis.table.end.max(initial=0)), time.time_ns()
    if asked or analysis.job.ending != "not_logged" or not NS_PER_MINUTE < now - last < NS_PER_DAY:
        return
    from goodput_cli.sources.files import newest_file

    if newest_file(sources) > now - NS_PER_DAY:
        yield f"no end is logged, the last line was {duration(now - last)} ago: --as-of now counts what came after"


def _load_first_screen(_: str) -> Renderer:
    """What writes the first screen, which says how many diagnostics there are besides the errors."""
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

    EXPR is advice.gain, advice.gain_low or advice.LEVER,
    compared with points of goodput (pp) or s, m, h, d; or advice.interval_ratio.
    Advice is about a whole job: docs/advice.md says how to read it.""",
)
@shared_options(leave_out=("start", "end"), drafts=True)
@options_of(AdviceQuestion, "question")
@cost_options
@threshold_options(parse_advice, holds="Exit with 3 if EXPR holds, with 4 if it cannot be judged.")
def advise(
    line: CommandLine,
    question: AdviceQuestion,
    price: Price | None,
    thresholds: tuple[Expression, ...],
) -> int:
    """Say how often to save, and what would buy most goodput.

    The job's own log is replayed under other policies, and the answer says how sure it is. SOURCE is as for analyze.
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

    Windows end every E, counted from the start of the job (or --from); the last one
    ends at its end (or --to). A window looks back W from its end, cut only to the
    job. Where E is W, which is the default, they tile the job and add up to it.""",
)
@shared_options(drafts=True)
@window_options
def rolling(line: CommandLine, window: tuple[int, ...], every: int | None) -> int:
    """Show goodput and badput in windows that move through the job.

    One row per window end; JSON and CSV hold every kind of badput. SOURCE is as for analyze. Without --window, windows
    are a round tenth of the job.
    """
    session = open_sheet_session(line)
    analysis = session.analyze(window=window or ("auto",), every=every)
    from goodput_cli.analysis.rolling import rolling_sheet

    return session.finish(_with_remark(rolling_sheet(analysis), analysis), analysis.diagnostics)


def _with_remark(sheet: Sheet, analysis: Analysis) -> Sheet:
    """A table of a job, with what its CSV says of drafted rules."""
    drafted = analysis.inferred_rules
    return sheet if drafted is None else replace(sheet, remark=drafted.sentence(analysis.options))


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

    Tables show a run of alike steps as one row; JSON and CSV hold every segment.
    Disruptions are numbered from 1 in time order.""",
)
@shared_options(drafts=True)
@option(
    WHEN,
    "--around",
    metavar="TIME|disruption:N|step:N",
    type=Checked("around", _around),
    help="Show a neighbourhood.",
)
@option(WHEN, "--margin", metavar="DURATION", type=LENGTH, help="How far around, on either side.  [default: 10m]")
@option(SELECTION, "--min-duration", metavar="DURATION", type=LENGTH, help="Only what lasts at least that long.")
@option(
    SELECTION,
    "--category",
    metavar="NAME",
    multiple=True,
    type=Checked("name", _category),
    shell_complete=complete_category,
    help="Only these categories.",
)
@option(SELECTION, "--events", is_flag=True, help="Show the events of the log between the segments.")
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

    A disruption belongs to the window in which the attempt's last sign of life lies;
    its amounts are always whole. Its cost is wasted training, downtime and starting
    again, without the time in the queue. Every row cites the log lines that show it.""",
)
@shared_options(drafts=True)
@option(
    SELECTION,
    "--by",
    type=click.Choice(["cause", "group", "host", "link", "attempt"]),
    help="Add up: by why they died, the group of that, where; by link of the outages; or all time by attempt.",
)
@option(OUTPUT, "--full", is_flag=True, help="Below the list, where each outage went, link by link.")
@cost_options
def disruptions(line: CommandLine, price: Price | None, by: By | Literal["link", "attempt"] | None, full: bool) -> int:
    """List every disruption: what it lost, and the proof.

    Above the list: MTBF with its 95 % interval, mean downtime, MTTR, ETTR. SOURCE is as for analyze.
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

    A step time lies between two recorded steps of one attempt. The ideal step time is
    the mean of those up to median + 3 x MAD. A slow regime is a stretch in which the
    level of the step time moved up by more than 5 % and stayed, 24 steps at least
    (8 of fewer than 48 step times, if they have nothing in common with the others);
    single slow steps and short bursts make none, nor does a pace that wanders. Where
    a slow regime would not show, the result is inconclusive, with the reason. Steps
    that become slower all the time are a drift. p99 is of all steps, also of those
    that hold a start-up, a save or an evaluation; the slowest say so.""",
)
@shared_options(drafts=True, work=True)
@option(
    SELECTION,
    "--slowest",
    metavar="N",
    type=click.IntRange(min=0, max=1_000_000),
    default=10,
    show_default=True,
    help="How many of the slowest steps to list.",
)
@option(
    SELECTION,
    "--by",
    type=click.Choice(["phase", "rank", "host", "device"]),
    default="phase",
    show_default=True,
    help="Where the log says what filled steps: by phase, or by the rank or host that held up others; or what each "
    "accelerator did.",
)
def steps(line: CommandLine, slowest: int, by: Literal["phase", "rank", "host", "device"]) -> int:
    """Show step times: statistics, slow regimes, what filled them.

    SOURCE is as for analyze. Logs that record only checkpoints have no step times: exit code 4.
    """
    session = open_sheet_session(line)
    analysis = session.analyze()
    from goodput_cli.analysis.steps.sheet import step_report, steps_sheet

    report = step_report(analysis, slowest)
    return session.finish(_with_remark(steps_sheet(analysis, report, by), analysis), analysis.diagnostics)

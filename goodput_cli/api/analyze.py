"""The library's front door: `goodput_cli.analyze(...)`, the same analysis that the command makes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, BinaryIO, Literal

from goodput_cli.analysis.results import Analysis, Rolling
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.vocabulary.when import Anchors, Span, When, parse_duration, parse_span, parse_when
from goodput_cli.vocabulary.zones import load_zone

if TYPE_CHECKING:
    from goodput_cli.accounting.build import Timeline
    from goodput_cli.accounting.order import Ordered
    from goodput_cli.accounting.rules import Rules
    from goodput_cli.analysis.goodput.thresholds import ThresholdExpression
    from goodput_cli.events.schema import EventLog
    from goodput_cli.sources.base import Progress

Source = str | os.PathLike[str]
Time = str | datetime | int
"""An instant: as typed on the command line, a datetime, or ns since 1970 UTC."""


@dataclass(frozen=True)
class Question:
    """What is asked of one job, parsed and checked before any log is read. The fields are those of `analyze`."""

    reference_step_time: Fraction | Literal["auto"] | None
    start: When | None
    end: When | None
    as_of: When | None
    exclude: tuple[Span, ...]
    exclude_stopped: bool
    timezone: str
    data_loading: str
    async_saves: bool
    stall_factor: float
    run: int | str | None
    now_ns: int
    windows: tuple[int, ...] = ()
    """Lengths of rolling windows (ns); 0 for a round tenth of the window."""
    every: int | None = None
    hindsight: bool = True


def analyze(
    sources: Source | Sequence[Source],
    *,
    job_name: str | None = None,
    reference_step_time: str | float | Fraction | None = None,
    start: Time | None = None,
    end: Time | None = None,
    as_of: Time | None = None,
    exclude: Sequence[str] = (),
    exclude_stopped: bool = False,
    timezone: str = "UTC",
    data_loading: str = "overlapped",
    async_saves: bool = False,
    stall_factor: float = 5.0,
    run: int | str | None = None,
    window: Sequence[str | int] = (),
    every: str | int | None = None,
    no_hindsight: bool = False,
    thresholds: Sequence[ThresholdExpression | str] = (),
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
    log_name: str | None = None,
    lookback_days: float | None = None,
    use_cache: bool = True,
    notice: Callable[[str], None] | None = None,
) -> Analysis:
    """Read the logs and account for every second of one job.

    sources: files, globs, folders or `-`, merged. job_name: may be left out when they hold one job.
    reference_step_time: seconds, or "auto" (accounting §6). start, end: the window of the question (default: the job).
    as_of: what was known then. exclude: windows `START/END` to take out; exclude_stopped: planned stops too.
    timezone: of times without a zone, in logs and in arguments. data_loading: "overlapped" or "blocking".
    async_saves: saves of a checkpoint log claim nothing. stall_factor: how many usual step times are a stall, 0 = off.
    run: analyse one run of a job name that was used several times: a number from 1, or "last".
    window: lengths of rolling windows ("1h", or ns; "auto" for a round tenth), every: between two of their ends
    (default: the shortest window); they fill `Analysis.rolling`. no_hindsight: everything as it was known at the
    window's end, rolling windows at the end of each (accounting §7).
    thresholds: expressions such as "goodput<90", judged in `Analysis.thresholds`.
    log_name, lookback_days, use_cache: for Cloud Logging: which log, how far back (None: as far as the job goes), and
    whether entries read before may be kept and used. notice: takes sentences for the person who waits.

    Raises SourceError (a source cannot be read), UsageError (the question makes no sense) and NotEnoughData (the logs
    cannot answer it); all are GoodputError.
    """
    question = make_question(
        reference_step_time=reference_step_time,
        start=start,
        end=end,
        as_of=as_of,
        exclude=exclude,
        exclude_stopped=exclude_stopped,
        timezone=timezone,
        data_loading=data_loading,
        async_saves=async_saves,
        stall_factor=stall_factor,
        run=run,
        window=window,
        every=every,
        no_hindsight=no_hindsight,
    )
    expressions = _expressions(thresholds)
    from goodput_cli.events.read import read_events
    from goodput_cli.sources.base import Wanted

    wanted = Wanted(job_name, log_name, lookback_days, use_cache)
    uris = [os.fspath(source) for source in ([sources] if isinstance(sources, str | os.PathLike) else sources)]
    # The log is handed over, not kept: its table is large, and let go as soon as the job's events are in order.
    return analyze_log(
        read_events(uris, timezone=timezone, stdin=stdin, progress=progress, wanted=wanted, notice=notice),
        question,
        job_name,
        expressions,
    )


def analyze_log(
    log: EventLog, question: Question, job_name: str | None = None, thresholds: Sequence[ThresholdExpression] = ()
) -> Analysis:
    """The same for events that have been read already."""
    from goodput_cli.analysis.goodput.analyse import analyse_window
    from goodput_cli.analysis.goodput.findings import beaten_reference
    from goodput_cli.analysis.goodput.thresholds import evaluate
    from goodput_cli.analysis.pick import pick_ordered
    from goodput_cli.analysis.rolling.windows import as_known_at
    from goodput_cli.diagnostics.diagnostic import merge

    given, name, formats = pick_ordered(log, job_name)
    of_reading = log.diagnostics
    del log
    timeline, start, end = account_for(given, question, name)
    known = timeline if question.hindsight else as_known_at(timeline, end)
    analysis = analyse_window(known, name, formats, start, end, of_reading)
    rows = _rolling(timeline, question, start, end) if question.windows else None
    method = replace(analysis.method, hindsight=question.hindsight)
    noticed = analysis.diagnostics
    over = analysis.goodput.ns > analysis.window.counted_ns
    if over or (rows is not None and (rows.productive_ns > rows.counted_ns).any()):
        noticed = beaten_reference(known, noticed)
    analysis = replace(analysis, diagnostics=merge(noticed), rolling=rows, method=method)
    return replace(analysis, thresholds=evaluate(thresholds, analysis)) if thresholds else analysis


def _rolling(timeline: Timeline, question: Question, start: int, end: int) -> Rolling:
    """The rolling windows that end inside the window of the question, [start, end) (ns)."""
    from goodput_cli.analysis.rolling.windows import default_window, rolling

    start, end = max(start, timeline.start), min(end, timeline.end)
    windows = [window or default_window(end - start) for window in question.windows]
    return rolling(timeline, start, end, windows, question.every, question.hindsight)


def account_for(given: Ordered, question: Question, name: str) -> tuple[Timeline, int, int]:
    """The timeline of one job, or of the run that is asked for, and the window of the question (ns) as it was asked.

    Raises NotEnoughData where the events span no time, UsageError where the question does not fit the job.
    """
    from goodput_cli.analysis.pick import pick_run

    if question.run is not None:
        given = pick_run(given, question.run)
    timeline, anchors = _timeline(given, question, name)
    start = question.start.resolve(anchors) if question.start else timeline.start
    end = question.end.resolve(anchors) if question.end else timeline.end
    if question.start and question.end and start >= end:
        raise UsageError(f"the window is empty: --from {question.start.text} is not before --to {question.end.text}")
    return timeline, start, end


def _timeline(given: Ordered, question: Question, name: str) -> tuple[Timeline, Anchors]:
    """Resolve the times that the accounting itself needs, and account for the job."""
    from goodput_cli.accounting.attempts.attempts import find_attempts
    from goodput_cli.accounting.build import build_timeline, is_step_log, job_start

    zone = load_zone(question.timezone)
    table = given.table
    spans = [when for span in question.exclude for when in (span.start, span.end)]
    named = [question.start, question.end, question.as_of, *spans]
    starts: list[int] = []
    if any(when is not None and when.kind == "attempt" for when in named):
        starts = find_attempts(table, is_step_log(table)).begin.tolist()
    whole = Anchors(job_start(table), int(table.end.max()), starts, question.now_ns, zone)
    as_of = question.as_of.resolve(whole) if question.as_of else None
    timeline = build_timeline(given, _rules(question, whole), as_of)
    if timeline is None:
        known = " that were known at --as-of" if as_of is not None else ""
        raise NotEnoughData(f"the events of job {name!r}{known} span no time: two at different times are needed")
    return timeline, replace(whole, start_ns=timeline.start, end_ns=timeline.end)


def _rules(question: Question, anchors: Anchors) -> Rules:
    from goodput_cli.accounting.rules import Rules

    reference = question.reference_step_time
    return Rules(
        reference_ns=reference * 10**9 if isinstance(reference, Fraction) else reference,
        exclusions=tuple(span.resolve(anchors) for span in question.exclude),
        exclude_stopped=question.exclude_stopped,
        data_blocking=question.data_loading == "blocking",
        async_saves=question.async_saves,
        stall_factor=question.stall_factor,
    )


def make_question(
    *,
    reference_step_time: str | float | Fraction | None = None,
    start: Time | None = None,
    end: Time | None = None,
    as_of: Time | None = None,
    exclude: Sequence[str] = (),
    exclude_stopped: bool = False,
    timezone: str = "UTC",
    data_loading: str = "overlapped",
    async_saves: bool = False,
    stall_factor: float = 5.0,
    run: int | str | None = None,
    window: Sequence[str | int] = (),
    every: str | int | None = None,
    no_hindsight: bool = False,
) -> Question:
    """A question from what a person typed; the arguments are those of `analyze`. UsageError if it makes no sense."""
    load_zone(timezone)
    if data_loading not in ("overlapped", "blocking"):
        raise UsageError(f"data loading is 'overlapped' or 'blocking', not {data_loading!r}")
    if not 0 <= stall_factor < float("inf"):
        raise UsageError(f"the stall factor is a number of usual step times, 0 for off; {stall_factor!r} is none")
    return Question(
        reference_step_time=_reference(reference_step_time),
        start=None if start is None else parse_when(start),
        end=None if end is None else parse_when(end),
        as_of=None if as_of is None else parse_when(as_of),
        exclude=tuple(parse_span(span) for span in exclude),
        exclude_stopped=exclude_stopped,
        timezone=timezone,
        data_loading=data_loading,
        async_saves=async_saves,
        stall_factor=stall_factor,
        run=run,
        now_ns=time.time_ns(),
        windows=_windows(window, every),
        every=None if every is None else _length(every, "--every"),
        hindsight=not no_hindsight,
    )


def _windows(window: Sequence[str | int], every: str | int | None) -> tuple[int, ...]:
    given = [window] if isinstance(window, str | int) else window
    if every is not None and not given:
        raise UsageError("--every says how often the windows of --window end; name a --window too")
    lengths = (0 if size == "auto" else _length(size, "--window") for size in given)
    return tuple(dict.fromkeys(lengths))


def _length(value: str | int, option: str) -> int:
    """A length of time above 0, in ns."""
    length = parse_duration(value) if isinstance(value, str) else value
    if length <= 0:
        raise UsageError(f"{option} {value}: a length of time above 0 is needed")
    return length


def _reference(value: str | float | Fraction | None) -> Fraction | Literal["auto"] | None:
    """The reference step time in seconds, exactly as written: 0.1 is a tenth, not the nearest float."""
    if value is None or value == "auto":
        return value  # type: ignore[return-value]
    try:
        seconds = value if isinstance(value, Fraction) else Fraction(str(value))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise UsageError(f"a reference step time is a number of seconds or auto, not {value!r}") from None
    if seconds <= 0:
        raise UsageError(f"a reference step time is above 0 s; {value} is not")
    return seconds


def _expressions(thresholds: Sequence[ThresholdExpression | str]) -> list[ThresholdExpression]:
    from goodput_cli.analysis.goodput.thresholds import parse_threshold

    return [parse_threshold(given) if isinstance(given, str) else given for given in thresholds]

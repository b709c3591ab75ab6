"""From a question and the events of a job to its timeline, and to the analysis of a window of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from goodput_cli.accounting.attempts.attempts import find_attempts
from goodput_cli.accounting.build import Timeline, build_timeline, is_step_log, job_start
from goodput_cli.accounting.order import Ordered
from goodput_cli.accounting.rules import Rules
from goodput_cli.analysis.goodput.analyse import analyse_window
from goodput_cli.analysis.goodput.findings import beaten_reference
from goodput_cli.analysis.goodput.thresholds import evaluate
from goodput_cli.analysis.pick import pick_ordered, pick_run
from goodput_cli.analysis.price import Price
from goodput_cli.analysis.question import Question
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.rolling import Rolling, as_known_at, default_window, rolling
from goodput_cli.analysis.threshold import Expression
from goodput_cli.diagnostics.diagnostic import Diagnostic, merge
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.events.schema import EventLog
from goodput_cli.vocabulary.text import duration
from goodput_cli.vocabulary.units import NS_PER_DAY
from goodput_cli.vocabulary.when import Anchors, load_zone

_LONG_SILENCE_NS = NS_PER_DAY


def analyze_log(
    log: EventLog,
    question: Question,
    job_name: str | None = None,
    thresholds: Sequence[Expression] = (),
    *,
    price: Price | None = None,
    asked: tuple[str, ...] = (),
) -> Analysis:
    """The analysis of one job in a log that was read; price and asked are those of `Analysis`. The log is let go as
    soon as the job's events are in order: its table is large, so that the caller should not keep it either."""
    ordered, name, formats = pick_ordered(log, job_name)
    of_reading = log.diagnostics
    del log
    timeline, start, end = account_for(ordered, question, name)
    known = timeline if question.method.hindsight else as_known_at(timeline, end)
    analysis = analyse_window(known, name, formats, start, end, of_reading)
    rows = _rolling(timeline, question, start, end) if question.window else None
    noticed = (*analysis.diagnostics, *_silence(ordered, timeline, question, name))
    over = analysis.goodput.ns > analysis.window.counted_ns
    if over or (rows is not None and (rows.productive_ns > rows.counted_ns).any()):
        noticed = beaten_reference(known, noticed)
    analysis = replace(analysis, diagnostics=merge(noticed), rolling=rows, price=price, asked=asked)
    return replace(analysis, thresholds=evaluate(thresholds, analysis)) if thresholds else analysis


def _silence(ordered: Ordered, timeline: Timeline, question: Question, name: str) -> Iterator[Diagnostic]:
    """`--as-of` long behind the last line of a job that nothing ended: most of the window is silence."""
    silent = timeline.end - int(ordered.table.end.max())
    if question.as_of is None or timeline.ended or silent < _LONG_SILENCE_NS:
        return
    logged, start, end = account_for(ordered, replace(question, as_of=None, start=None, end=None), name)
    percent = analyse_window(logged, name, (), start, end, ()).goodput_percent
    yield Diagnostic.of(
        "long_silence",
        f"no line for {duration(silent)}: the job has probably ended; without --as-of its goodput is {percent:.2f} %",
    )


def _rolling(timeline: Timeline, question: Question, start: int, end: int) -> Rolling:
    """The rolling windows that end inside the window of the question, [start, end) (ns)."""
    start, end = max(start, timeline.start), min(end, timeline.end)
    windows = [window or default_window(end - start) for window in question.window]
    return rolling(timeline, start, end, windows, question.every, question.method.hindsight)


def account_for(ordered: Ordered, question: Question, name: str) -> tuple[Timeline, int, int]:
    """The timeline of one job, or of the run that is asked for, and the window of the question (ns) as it was asked.

    Raises NotEnoughData where the events span no time, UsageError where the question does not fit the job.
    """
    if question.run is not None:
        ordered = pick_run(ordered, question.run)
    timeline, anchors = _timeline(ordered, question, name)
    start = question.start.resolve(anchors) if question.start else timeline.start
    end = question.end.resolve(anchors) if question.end else timeline.end
    if question.start and question.end and start >= end:
        raise UsageError(f"the window is empty: --from {question.start.text} is not before --to {question.end.text}")
    return timeline, start, end


def _timeline(ordered: Ordered, question: Question, name: str) -> tuple[Timeline, Anchors]:
    """Resolve the times that the accounting itself needs, and account for the job."""
    zone = load_zone(question.timezone)
    table = ordered.table
    spans = [when for span in question.exclude for when in (span.start, span.end)]
    named = [question.start, question.end, question.as_of, *spans]
    starts: list[int] = []
    if any(when is not None and when.kind == "attempt" for when in named):
        starts = find_attempts(table, is_step_log(table)).begin.tolist()
    whole = Anchors(job_start(table), int(table.end.max()), starts, question.now_ns, zone)
    as_of = question.as_of.resolve(whole) if question.as_of else None
    timeline = build_timeline(ordered, _rules(question, whole), as_of)
    if timeline is None:
        known = " that were known at --as-of" if as_of is not None else ""
        raise NotEnoughData(f"the events of job {name!r}{known} span no time: two at different times are needed")
    return timeline, replace(whole, start_ns=timeline.start, end_ns=timeline.end)


def _rules(question: Question, anchors: Anchors) -> Rules:
    reference = question.reference_step_time
    return Rules(
        method=question.method,
        reference_ns=reference * 10**9 if isinstance(reference, Fraction) else reference,
        exclusions=tuple(span.resolve(anchors) for span in question.exclude),
    )

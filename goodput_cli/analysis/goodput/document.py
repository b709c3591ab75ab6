"""An analysis as a `Document`: the parts of `analyze` for the output formats.

An analysis as metrics (docs/ci.md), for OpenMetrics and whatever scrapes it. A value that is not recorded has no
sample. A category that was recorded and is zero has one, so that a series does not vanish when all is well.

A job in one line: the window cut into equal cells, each with the category that fills most of it.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from msgspec import Struct

from goodput_cli.accounting.attempts.failure_cause import FailureCause
from goodput_cli.analysis import document as blocks
from goodput_cli.analysis.capabilities import CAPABILITIES
from goodput_cli.analysis.document import Strip
from goodput_cli.analysis.goodput import phrases
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.measures import MEASURES, published_value
from goodput_cli.analysis.results import CategoryTime
from goodput_cli.analysis.rolling import rolling_lines
from goodput_cli.analysis.sheet import Audience, Cell, Column, Family, Labels, PublishedAnswer, Sheet, family_of
from goodput_cli.analysis.summary import summary_of
from goodput_cli.arrays import I64
from goodput_cli.vocabulary.categories import CATEGORIES, NOT_BADPUT, UNKNOWN_CAUSE, Category, group_of, title
from goodput_cli.vocabulary.text import duration, exact, finite, iso, percent, safe, seconds_text


def strip_of(analysis: Analysis, cells: int) -> Strip:
    """Return the window in at most `cells` cells; fewer if it has fewer nanoseconds."""
    start, end = analysis.window.start_ns, analysis.window.end_ns
    cells = min(cells, end - start)
    # Python's integers are used because a product of ns and cells may not fit into 64 bits.
    bounds = np.array([start + (end - start) * cell // cells for cell in range(cells + 1)], dtype=np.int64)
    amounts: dict[int, I64] = {}  # Labels of the user are combined.
    for (category, _), amount in analysis.timeline.ledger.between(bounds[:-1], bounds[1:]).items():
        amounts[category] = amounts[category] + amount if category in amounts else amount
    keys = list(amounts)
    largest = np.argmax(np.array([amounts[key] for key in keys]), axis=0)
    names = tuple(CATEGORIES[keys[row]] for row in largest.tolist())
    marks = np.array([one.last_sign_of_life_ns for one in analysis.disruptions], dtype=np.int64)
    inside = marks[(marks >= start) & (marks <= end)]
    places = np.minimum(np.searchsorted(bounds, inside, side="right") - 1, cells - 1)
    return Strip(start, end, names, tuple(np.bincount(places, minlength=cells).tolist()))


def families(analysis: Analysis) -> Iterator[Family]:
    """Yield every metric of the job, also those without a sample."""
    window, measured = analysis.window, _measured(analysis)
    yield measured.pop("goodput_ratio")
    yield from _bounds(analysis)
    yield Family("goodput_category_seconds", "Time of the window by category.", list(_categories(analysis)))
    yield measured.pop("goodput_window_seconds")
    yield family_of("goodput_excluded_seconds", "Time excluded from the window.", seconds_text(window.excluded_ns))
    yield family_of(
        "goodput_window_start_timestamp_seconds", "Start of the window, since 1970 UTC.", seconds_text(window.start_ns)
    )
    yield family_of(
        "goodput_window_end_timestamp_seconds", "End of the window, since 1970 UTC.", seconds_text(window.end_ns)
    )
    overlapped: list[tuple[Labels, str]] = [
        ({"category": row.category}, seconds_text(row.ns)) for row in analysis.overlapped
    ]
    yield Family("goodput_overlapped_seconds", "Time that overlaps training.", overlapped)
    yield from (measured.pop(name) for name in ("goodput_attempts", "goodput_disruptions"))
    yield Family("goodput_disruptions_by_cause", "Disruptions in the window by cause.", list(_causes(analysis)))
    yield measured.pop("goodput_kept_steps")
    yield family_of("goodput_last_step", "Last recorded step of the final progress.", _of(analysis.job.last_step))
    step_times = measured.pop("goodput_step_time_seconds")
    yield from (measured.pop(name) for name in ("goodput_at_risk_steps", "goodput_at_risk_seconds"))
    yield from measured.values()
    reference = _of(analysis.reference.step_time_seconds)
    if analysis.inferred_rules is not None:
        yield phrases.drafted_rules(analysis.inferred_rules, analysis.options)
    yield family_of("goodput_reference_step_time_seconds", "Reference step time.", reference)
    yield step_times
    for capability in CAPABILITIES:
        yield from capability.families(analysis)


def _bounds(analysis: Analysis) -> Iterator[Family]:
    """Yield the bounds of goodput; samples only if it has no number."""
    for side, value in (("least", analysis.at_least_percent), ("most", analysis.at_most_percent)):
        known = value if analysis.is_bounded else None
        meaning = f"Productive share of the window, 0 to 1, is at {side} this; the exact value is unknown."
        yield family_of(f"goodput_at_{side}_ratio", meaning, None if known is None else exact(known / 100))


def _measured(analysis: Analysis) -> dict[str, Family]:
    """Return the published measures by name, each with its recorded samples."""
    summary = summary_of(analysis)
    families: dict[str, Family] = {}
    for measure in MEASURES.values():
        if measure.metric is not None:
            family = families.setdefault(measure.metric, Family(measure.metric, measure.meaning, []))
            value = published_value(summary, measure)
            family.samples.extend([] if value is None else [(dict(measure.labels), _number(value))])
    return families


def _categories(analysis: Analysis) -> Iterator[tuple[Labels, str]]:
    """Yield goodput and every badput that has a number, and zero for recorded categories that did not occur.

    Labels that are equal after escaping are one series: two would make the whole file invalid.
    """
    if not analysis.goodput_unknown:
        yield {"category": Category.PRODUCTIVE.id, "label": ""}, seconds_text(analysis.goodput.ns)
    amounts: dict[tuple[str, str], int] = {}
    seen = {bound.quantity for bound in analysis.bounds}
    for row in analysis.badput:
        key = row.category, safe(row.label or "")
        if row.category not in seen:
            amounts[key] = amounts.get(key, 0) + row.ns
    seen |= {category for category, _ in amounts}
    for category in Category:
        if category not in NOT_BADPUT and category.id not in (*seen, *analysis.not_recorded):
            amounts[category.id, ""] = 0
    yield from (({"category": category, "label": label}, seconds_text(ns)) for (category, label), ns in amounts.items())


def _causes(analysis: Analysis) -> Iterator[tuple[Labels, str]]:
    """Yield the number of disruptions by cause, and with an unknown one: in total `goodput_disruptions`. Nothing
    without any logged cause."""
    counts = Counter(why.code for why in analysis.disruptions.unplanned.why)
    if counts.keys() <= {UNKNOWN_CAUSE}:
        return
    counts.setdefault(UNKNOWN_CAUSE, 0)
    for code in sorted(counts):
        yield {"cause": code, "group": group_of(code)}, str(counts[code])


def _number(value: Fraction) -> str:
    """Return the exact number if it has no more digits than a time in ns."""
    billionths = value * 10**9
    return seconds_text(int(billionths)) if billionths.denominator == 1 else exact(float(value))


def _of(value: float | None) -> str | None:
    known = finite(value)
    return None if known is None else exact(known)


CATEGORY_COLUMNS = (
    Column("category", "text", Audience.TABLES),
    Column("label", "text", Audience.TABLES),
    Column("seconds", "duration", Audience.TABLES),
    Column("ns", "count", Audience.TABLES),
    Column("percent", "percent", Audience.TABLES),
)
"""Goodput first, then every badput: the amounts add up to the window without exclusions."""

_WORST = 3
"""Number of losses that a failed gate names."""


class AnalysisDocument(Struct, frozen=True):
    """Parts of an analysis for output formats; each is made on demand."""

    analysis: Analysis

    def tables(self) -> tuple[Sheet, ...]:
        """Return time by category."""
        analysis = self.analysis
        bounded = {bound.quantity for bound in analysis.bounds}
        rows: list[tuple[Cell, ...]] = [
            (row.category, row.label, *((None,) * 3 if row.category in bounded else (row.ns, row.ns, row.percent)))
            for row in analysis.badput
        ]
        goodput = analysis.goodput
        amounts = (None, None, None) if analysis.goodput_unknown else (goodput.ns, goodput.ns, goodput.percent)
        rows.insert(0, (goodput.category, goodput.label, *amounts))
        if analysis.inferred_rules is not None:
            rows.append((phrases.DRAFTED, analysis.inferred_rules.sentence(analysis.options), None, None, None))
        return (Sheet(title=f"Goodput of {analysis.job.name}", columns=CATEGORY_COLUMNS, rows=rows),)

    def gates(self) -> PublishedAnswer:
        """Return the thresholds, and the figures of the job as properties."""
        analysis = self.analysis
        share, amount = phrases.headline(analysis)
        warnings = (f"warning: {one}" for one in phrases.headline_warnings(analysis))
        return PublishedAnswer(
            job=analysis.job.name,
            end_ns=analysis.window.end_ns,
            headline=f"goodput {share}, {amount}",
            said=(phrases.window_text(analysis), *warnings, *_costly_causes(analysis)),
            properties=tuple(_properties(analysis)),
            thresholds=analysis.thresholds,
            diagnostics=analysis.diagnostics,
            verdict=tuple(_verdict(analysis)) if analysis.thresholds else (),
        )

    def figures(self) -> Iterator[Family]:
        """Return every metric."""
        return families(self.analysis)

    def json_answer(self) -> object:
        """Return the whole answer."""
        from goodput_cli.analysis.goodput.answer import analysis_answer

        return analysis_answer(self.analysis)

    def blocks(self) -> Iterator[blocks.Block]:
        """Yield the report, from the top."""
        analysis, window = self.analysis, self.analysis.window
        yield _headline(analysis)
        if analysis.thresholds:
            yield blocks.Gates(analysis.thresholds)
        yield losses_of(analysis)
        yield blocks.Picture(window.start_ns, window.end_ns, partial(strip_of, analysis))
        yield blocks.CategoryLedger(tuple(phrases.category_rows(analysis)), window.counted_ns)
        if beside := tuple(phrases.outside_ledger_texts(analysis)):
            yield blocks.Facts(beside)
        if analysis.rolling is not None:
            yield blocks.Curves(tuple(blocks.Curve(*words) for words in rolling_lines(analysis.rolling)))
        if analysis.disruptions and analysis.reliability is not None:
            yield blocks.Details("disruption", len(analysis.disruptions), partial(_disruptions, analysis))
        if (end := end_reason(analysis)) is not None:
            yield blocks.Sentence(end)
        if rows := phrases.reference_rows(analysis):
            yield blocks.Pairs(phrases.reference_text(analysis) or "", phrases.pin_option(analysis), tuple(rows))
        yield from (blocks.Sentence(one) for one in _of_steps(analysis))
        if analysis.not_recorded:
            yield blocks.Sentence("not recorded (unknown, not zero)", tuple(map(title, analysis.not_recorded)))
        if analysis.diagnostics:
            yield blocks.Findings(analysis.diagnostics)


def losses_of(analysis: Analysis) -> blocks.Losses:
    """Return the losses of an analysis, without what may be training."""
    unsure = partial(phrases.may_be_training, analysis)
    return blocks.Losses(
        counted_ns=analysis.window.counted_ns,
        badput=tuple(row for row in analysis.badput if not unsure(row.category)),
        insights=tuple(one for one in analysis.insights if not any(map(unsure, one.about.categories))),
        price=analysis.price,
        asked=analysis.options,
        disrupted=bool(analysis.disruptions),
        limits=analysis.lost_limits,
    )


def _of_steps(analysis: Analysis) -> Iterator[str]:
    """Yield the step times, and the sentences of capabilities."""
    if steps := phrases.step_text(analysis):
        yield f"step times, {steps}"
    for capability in CAPABILITIES:
        yield from capability.report_lines(analysis)


def end_reason(analysis: Analysis) -> str | None:
    """Return the cause of the last attempt's end, with its line and advice; None if it is not logged. It may contain
    text of the log."""
    last = phrases.last_cause(analysis)
    if last is None:
        return None
    from goodput_cli.analysis.disruptions.sheet import end_note  # Some screens do not need it.

    return f"{end_note(analysis)}; what to do: {last.advice}"


def _headline(analysis: Analysis) -> blocks.Headline:
    share, amount = phrases.headline(analysis)
    return blocks.Headline(
        subject=analysis.job.name,
        measure="goodput",
        value=share,
        amount=amount,
        adjective="" if analysis.goodput_unknown else "productive",
        window=phrases.window_text(analysis),
        whole=phrases.outside_window_text(analysis),
        attempts=phrases.attempts_text(analysis),
        progress=phrases.progress_text(analysis),
        doubts=phrases.headline_warnings(analysis),
    )


def _disruptions(analysis: Analysis) -> Sheet:
    from goodput_cli.analysis.disruptions.sheet import disruptions_sheet  # A terminal does not need it.

    sheet = disruptions_sheet(analysis, None)
    return replace(sheet, summary=sheet.summary[1:])  # The first line is the window.


def _verdict(analysis: Analysis) -> Iterator[str]:
    """Yield the largest costs, their cause and advice, as in the insights; without any, the largest losses."""
    lost, counted = sum(row.ns for row in analysis.badput), analysis.window.counted_ns
    if lost <= 0 or counted <= 0:
        return
    share, amount = percent(100 * lost / counted), duration(lost)
    if analysis.is_bounded:
        share, amount = phrases.limits_text(analysis.lost_limits, counted), phrases.limits_text(analysis.lost_limits)
    yield f"Lost {share}, {amount}; {phrases.progress_text(analysis)}. Largest losses:"
    for one in losses_of(analysis).lost[:_WORST] if analysis.insights else ():
        advice = f"{one.advice_sentence[:-1]}: " if one.advice else ""
        yield f"- {percent(one.percent)}, {duration(one.ns)}: {one.text}. {advice}{one.command}"
    if not analysis.insights:
        lost_to = [row for row in phrases.category_rows(analysis) if not row.is_goodput and row.ns > 0]
        yield from (f"- {row.percent}, {duration(row.ns)}: {row.title}" for row in lost_to[:_WORST])
        name = "disruptions" if analysis.disruptions else "timeline"
        yield f"For details: goodput {name} {shlex.join(analysis.options) or 'LOG'}"
    yield from _costly_causes(analysis)


def _costly_causes(analysis: Analysis) -> Iterator[str]:
    """Yield the causes of the most costly disruptions with a logged cause."""
    from goodput_cli.analysis.disruptions.sheet import cause_text_of, end_note  # Some screens do not need it.

    last, ended = phrases.last_cause(analysis), end_note(analysis)
    if last is not None and ended is not None:
        yield f"{ended[:1].upper()}{ended[1:]}. {_advice(last)}"
    rows = zip(analysis.disruptions, analysis.disruptions.why, strict=False)
    known = [(row, why) for row, why in rows if why.certainty is not None and not why.planned]
    for row, why in sorted(known, key=lambda one: -one[0].lost_ns)[:_WORST]:
        yield f"Disruption {row.number}: {cause_text_of(why)}. {_advice(why, training_lost=row.wasted_ns > 0)}"


def _advice(why: FailureCause, *, training_lost: bool = True) -> str:
    """Return the advice about a cause, as a sentence."""
    advice = why.advice_for(training_lost=training_lost)
    return f"{advice[:1].upper()}{advice[1:]}."


def _properties(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Yield name and value of every known figure."""
    job, window = analysis.job, analysis.window
    yield "job.name", job.name
    yield "job.ending", job.ending
    yield "job.attempts", str(job.attempts)
    yield "job.disruptions", str(job.disruptions)
    yield "window.start", iso(window.start_ns)
    yield "window.end", iso(window.end_ns)
    yield "window.seconds", seconds_text(window.ns)
    yield "window.excluded_seconds", seconds_text(window.excluded_ns)
    for name, row in (("goodput", analysis.goodput), *((f"badput.{row.name}", row) for row in analysis.badput)):
        limits = analysis.goodput_limits if row is analysis.goodput else analysis.limits_of(row)
        if limits.at_least == limits.at_most == row.ns:
            yield from _amount(name, row)
        else:
            sides = {"at_least": limits.at_least, "at_most": limits.at_most}
            yield from ((f"{name}.{side}.seconds", seconds_text(ns)) for side, ns in sides.items() if ns is not None)
    for labels, count in _causes(analysis):
        yield f"cause.{labels['cause']}.disruptions", count
    if (last := phrases.last_cause(analysis)) is not None:
        yield "job.ending.cause", last.code
    if analysis.not_recorded:
        yield "not_recorded", " ".join(analysis.not_recorded)


def _amount(name: str, amount: CategoryTime) -> Iterator[tuple[str, str]]:
    yield f"{name}.seconds", seconds_text(amount.ns)
    if finite(amount.percent) is not None:
        yield f"{name}.percent", repr(amount.percent)

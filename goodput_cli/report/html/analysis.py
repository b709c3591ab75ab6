"""The analysis as an HTML page: one file that needs no network, and no script for reading the numbers.

Every number is in a table or in text. A bar below the headline shows all time by category, and a waterfall goes from
the wall clock down to goodput. Charts are drawn here as SVG. If scripts run, the same charts replace them, with more
points, zoom and tooltips.

The words of each section are made here from the analysis; templates only lay them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from goodput_cli import __version__
from goodput_cli.analysis.capabilities import CAPABILITIES
from goodput_cli.analysis.document import WITHIN_GOODPUT, Loss
from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.document import end_reason, losses_of
from goodput_cli.analysis.picture import pictures_of, tiled_windows
from goodput_cli.analysis.results import Method
from goodput_cli.analysis.rolling import rolling_sheet
from goodput_cli.analysis.steps.sheet import (
    REGIMES,
    StepReport,
    falls_of_mfu,
    measured,
    metric_sheet,
    step_report,
    steps_sheet,
)
from goodput_cli.analysis.table import DEFINITIONS
from goodput_cli.arrays import garbage_collection_paused
from goodput_cli.diagnostics.diagnostic import Diagnostic, code_texts
from goodput_cli.errors import NotEnoughData
from goodput_cli.report.base import Page
from goodput_cli.report.html.charts import STILL_COLUMNS, figures, progress_drawing
from goodput_cli.report.html.columns import chart_columns
from goodput_cli.report.html.drawing_process import VERSION
from goodput_cli.report.html.page import document, library, resource, script_data
from goodput_cli.report.html.proof import (
    MOST_ROWS,
    DisruptionsSection,
    LedgerPart,
    Proof,
    command_line,
    disruptions,
    ledger,
    loss_links,
    threshold_target,
)
from goodput_cli.report.html.sheet import HtmlTable, html_table, with_ids
from goodput_cli.report.insight_lines import amount_text, cost_text
from goodput_cli.vocabulary.categories import (
    BY_NAME,
    CATEGORIES,
    Category,
    CategoryStyle,
    brief_name,
    short_title,
    title,
)
from goodput_cli.vocabulary.option import declared
from goodput_cli.vocabulary.text import duration, duration_of_seconds, iso, percent, period

_MOST_PLACES = 20
_MOST_SOURCES = 20
_LOOKS_OF_VERDICTS = {"failed": "bad", "passed": "good"}
_MARKS_OF_VERDICTS = {"failed": "\N{BALLOT X}", "passed": "\N{CHECK MARK}", "warning": "!"}


TemplateRow = dict[str, Any]
"""Values of one element of a template, by their names there."""


def losses_in_words(losses: Sequence[Loss], proof: Proof) -> Iterator[TemplateRow]:
    """Yield losses in words. id: in the page, of the first insight of its kind. links: to the rows that show it; more:
    the number of rows without a link."""
    for one in losses:
        links, more = loss_links(one, proof)
        yield {
            "id": "" if one.insight is None else f"insight-{one.insight.code}",
            "time": duration(one.ns),
            "share": percent(one.percent),
            "cost": cost_text(one),
            "text": one.text,
            "advice": one.advice_sentence,
            "command": one.command,
            "links": links,
            "more": more,
            "evidence": () if one.insight is None else one.insight.evidence,
        }


def lost(analysis: Analysis) -> tuple[str, str] | None:
    """Return the loss as share and as amount with its cost; None if unknown."""
    if analysis.is_bounded:
        limits = analysis.lost_limits
        return facts.limits_text(limits, analysis.window.counted_ns), facts.limits_text(limits)
    if analysis.goodput_unknown:
        return None
    ns = sum(row.ns for row in analysis.badput)
    return percent(100 * ns / analysis.window.counted_ns), amount_text(analysis.price, ns)


def key_facts(analysis: Analysis, proof: Proof) -> list[tuple[str, str, str | None]]:
    """Return the short facts next to the headline: name, words, and the id of the element that shows it."""
    job, reliability = analysis.job, analysis.reliability
    attempts = "attempts in the whole job" if facts.is_part(analysis) else "attempts"
    rows = [(attempts, str(job.attempts), None), ("disruptions", str(job.disruptions), "disruptions")]
    if reliability is not None and reliability.mtbf_seconds is not None:
        rows.append(("MTBF", duration_of_seconds(reliability.mtbf_seconds), "disruptions"))
    rows.append(("steps kept", facts.kept_text(analysis), proof.ledger.get(Category.PRODUCTIVE.id)))
    if analysis.saves is not None:
        between = analysis.saves.interval_seconds
        apart = "" if between is None else f" ({duration_of_seconds(between)} apart, median)"
        rows.append(("saves", f"{analysis.saves.count}{apart}", proof.ledger.get(Category.SAVE.id)))
    if analysis.steps.ideal_seconds is not None:
        rows.append(("ideal step time", duration_of_seconds(analysis.steps.ideal_seconds), "step-time"))
    rows += [(name, words, "step-time") for one in CAPABILITIES for name, words in one.facts(analysis)]
    if facts.has_ending(analysis):
        rows.append(("ending", facts.ending_text(job) + facts.last_cause_text(analysis), None))
    return rows


def find_steps(analysis: Analysis) -> StepReport | str:
    """Return the step times of the window, or the reason why there are none."""
    try:
        return step_report(analysis)
    except NotEnoughData as reason:
        return str(reason)


def step_tables(analysis: Analysis, report: StepReport | str) -> HtmlTable | str:
    """Return the step statistics as `goodput steps` shows them, or the reason why there are none."""
    if isinstance(report, str):
        return report
    table = html_table(steps_sheet(analysis, report, with_metrics=False))
    parts = (with_ids(part, "slow") if part.title == REGIMES else part for part in table.more)
    return replace(with_ids(table, "step"), more=tuple(parts))


def metric_table(analysis: Analysis, report: StepReport | str) -> HtmlTable | None:
    """Return the metrics that the program recorded; None without any."""
    metrics = measured(analysis)
    regimes = () if isinstance(report, str) else report.regimes
    return html_table(metric_sheet(metrics, falls_of_mfu(analysis, regimes))) if metrics else None


def thresholds(analysis: Analysis, proof: Proof) -> list[TemplateRow]:
    """Return the thresholds with their verdicts. look: a class of the style sheet. mark: shows the verdict without
    color. target: the id of the element that shows the value."""
    codes = frozenset(one.code for one in analysis.insights) if analysis.thresholds else frozenset()
    return [
        {
            "expression": threshold.expression,
            "look": _LOOKS_OF_VERDICTS.get(threshold.verdict, "warn"),
            "mark": _MARKS_OF_VERDICTS.get(threshold.verdict, "?"),
            "verdict": facts.threshold_verdict(threshold),
            "value": facts.threshold_value(threshold),
            "limit": facts.threshold_limit(threshold),
            "target": threshold_target(threshold, proof, codes),
        }
        for threshold in analysis.thresholds
    ]


def diagnostics(analysis: Analysis) -> Iterator[tuple[Diagnostic, list[str], int, str, str]]:
    """Yield the diagnostics with some locations, the number of further ones, the effect on the numbers, and the
    advice."""
    for one in analysis.diagnostics:
        code = code_texts(one.code)
        places = list(islice(one.where, _MOST_PLACES))
        more = max(one.count, len(one.where)) - len(places)
        yield one, places, more if places else 0, code.effect, code.advice_for(analysis.job.formats)


def definitions() -> list[tuple[str, CategoryStyle | None, str]]:
    """Return every number that a report can contain with its definition, categories first."""
    categories = [(title(category.id), category.look, category.row.meaning) for category in Category]
    return [*categories, *((name, None, meaning) for name, meaning in DEFINITIONS.items())]


def method(analysis: Analysis) -> list[tuple[str, str]]:
    """Return the question, its options and the logs."""
    job, window = analysis.job, analysis.window
    choices = [(one.option, getattr(analysis.method, one.name)) for one in declared(Method)]
    reference = facts.reference_text(analysis)
    rows = [
        ("window", f"{iso(window.start_ns)} to {iso(window.end_ns)}"),
        ("job", f"{iso(job.start_ns)} to {iso(job.end_ns)}"),
        ("log formats", " + ".join(job.formats) or "none"),
        ("progress from", "steps" if analysis.timeline.records is not None else "checkpoints"),
        ("reference", reference or "none"),
        *((one.label, text) for one, value in choices if (text := one.phrase(value))),
    ]
    rows += [("excluded", period(start, end)) for start, end in analysis.timeline.rules.exclusions]
    sources = analysis.table.files
    rows += [("source", source) for source in sources[:_MOST_SOURCES]]
    if len(sources) > _MOST_SOURCES:
        rows.append(("source", f"and {len(sources) - _MOST_SOURCES} more"))
    return [*rows, ("made by", f"goodput-cli {__version__}")]


_MOST_PIECES = 5
_LEAST_PERCENT = 1.0
_OTHERS = "#6b7075"


def pieces(analysis: Analysis, proof: Proof) -> Iterator[TemplateRow]:
    """Yield the parts of the bar below the headline: goodput and the largest categories; small ones are joined. left,
    width: of 1000. target: the id of its rows."""
    rows = [row for row in facts.category_rows(analysis) if row.ns > 0]
    rows.sort(key=lambda row: not row.is_goodput)
    whole = sum(row.ns for row in rows) or 1
    least = _LEAST_PERCENT * whole / 100
    shown = [row for place, row in enumerate(rows[:_MOST_PIECES]) if place == 0 or row.ns >= least]
    left = 0.0
    for row in shown:
        width = 1000 * row.ns / whole
        title = "goodput" if row.is_goodput else short_title(row.category, row.name.partition(":")[2] or None)
        colour = BY_NAME[row.category].look.colour
        yield {
            "title": title,
            "share": row.percent,
            "colour": colour,
            "left": left,
            "width": width,
            "target": proof.ledger.get(row.name),
        }
        left += width
    rest = sum(row.ns for row in rows[len(shown) :])
    if rest:
        share = percent(100 * rest / analysis.window.counted_ns)
        title = f"{len(rows) - len(shown)} more"
        place = {"left": left, "width": 1000 - left, "target": "where"}
        yield {"title": title, "share": share, "colour": _OTHERS, **place}


def waterfall(analysis: Analysis, proof: Proof) -> list[TemplateRow]:
    """Return the rows of the waterfall from the wall clock down to goodput. Every badput is subtracted from the rest.
    left, width: position of the bar, of 1000. kind: `total`, `badput` or `goodput`. proof: the id of its rows."""
    window, badput = analysis.window, [row for row in facts.category_rows(analysis) if not row.is_goodput]
    scale = 1000 / max(window.ns, analysis.goodput.ns, 1)
    whole = "" if window.excluded_ns else "100.00 %"

    def bar(name: str, title: str, ns: int, share: str, left: int, kind: str) -> TemplateRow:
        category = BY_NAME.get(name.partition(":")[0])
        return {
            "title": title,
            "look": None if category is None else category.look,
            "seconds": f"{ns / 1e9:.1f}",
            "time": duration(ns),
            "share": share,
            "left": max(left, 0) * scale,
            "width": abs(ns) * scale,
            "kind": kind,
            "proof": proof.ledger.get(name),
        }

    rows = [bar("wall clock", "wall clock", window.ns, whole, 0, "total")]
    left = window.ns
    if window.excluded_ns:
        left -= window.excluded_ns
        rows.append(bar("excluded", "excluded", window.excluded_ns, "not counted", left, "badput"))
    for row in badput:
        left -= row.ns
        rows.append(bar(row.name, brief_name(row.name), row.ns, row.percent, min(left, left + row.ns), "badput"))
    goodput = next(row for row in facts.category_rows(analysis) if row.is_goodput)
    return [*rows, bar(goodput.name, "goodput", goodput.ns, goodput.percent, 0, "goodput")]


MOVING_COLUMNS = 1500
"""Columns of the data for scripts: more than fit, so that zooming in shows more detail."""


@garbage_collection_paused()  # a page is hundreds of thousands of small objects without cycles
def render(analysis: Analysis, page: Page) -> str:
    """Return the analysis as one HTML page. A page of a site leaves its charts to its script: drawing would take three
    quarters of the CPU time for a page that may never be opened."""
    share, amount = facts.headline(analysis)
    pictures = pictures_of(analysis, *([] if page.back else [STILL_COLUMNS]), MOVING_COLUMNS)
    coarse = None if page.back else chart_columns(next(pictures))
    progress = progress_drawing(coarse)  # early: another process draws it while this one continues
    picture = next(pictures)
    fine, steps = chart_columns(picture), find_steps(analysis)
    shown = figures(analysis, picture, steps if isinstance(steps, StepReport) else None, fine, coarse, progress)
    rows, tables, parts = disruptions(analysis), step_tables(analysis, steps), ledger(analysis)
    proof, cost_most = _proof(rows, tables, parts), losses_of(analysis)
    return document(
        "analysis.html",
        scripts=[library(VERSION), resource("report.js")],
        back=page.back,
        which=page.which,
        others=page.others,
        title=f"Goodput of {analysis.job.name}{f', {page.which}' if page.which else ''}: {share}",
        job=analysis.job.name,
        share=share,
        amount=amount,
        doubts=facts.headline_warnings(analysis),
        ended=end_reason(analysis),
        window=facts.window_text(analysis),
        whole=facts.outside_window_text(analysis),
        facts=key_facts(analysis, proof),
        pieces=list(pieces(analysis, proof)),
        losses=list(losses_in_words(cost_most.lost if analysis.insights else (), proof)),
        within=list(losses_in_words(cost_most.within, proof)),
        within_title=WITHIN_GOODPUT,
        lost=lost(analysis),
        waterfall=waterfall(analysis, proof),
        ledger=parts,
        beside=list(facts.outside_ledger_texts(analysis)),
        not_recorded=tuple(map(title, analysis.not_recorded)),
        figures={figure.name: figure for figure in shown},
        has_steps=len(picture.curve) > 0,
        downsampled=picture.downsampled,
        columns=MOVING_COLUMNS,
        rolling=html_table(rolling_sheet(tiled_windows(analysis)), MOST_ROWS),
        steps=tables,
        metrics=metric_table(analysis, steps),
        disruptions=rows,
        commands=_commands(analysis, rows),
        thresholds=thresholds(analysis, proof),
        diagnostics=list(diagnostics(analysis)),
        definitions=definitions(),
        reference=facts.reference_rows(analysis),
        reference_title=facts.reference_text(analysis),
        pin=facts.pin_option(analysis),
        method=method(analysis),
        data=script_data(
            {
                "start": fine.start_ns / 1e6,
                "end": fine.end_ns / 1e6,
                "categories": list(map(title, CATEGORIES)),
                "tables": fine.tables,
                "charts": {figure.name: figure.spec for figure in shown},
            }
        ),
    )


def _proof(rows: DisruptionsSection, steps: HtmlTable | str, parts: list[LedgerPart]) -> Proof:
    """Return the rows of the page."""
    tables = [rows.table, *(() if isinstance(steps, str) else (steps, *steps.more))]
    ids = {identity for table in tables for identity in table.ids if identity is not None}
    ids |= {f"disruption-{number}" for number, *_ in rows.details}
    return Proof(frozenset(ids), {part.name: part.id for part in parts})


def _commands(analysis: Analysis, rows: DisruptionsSection) -> dict[str, str]:
    """Return the commands that show what does not fit on the page."""
    return {
        "rolling": command_line(analysis, "rolling", "-o", "rolling.csv"),
        "disruptions": command_line(analysis, "disruptions", "-o", "disruptions.csv"),
        "evidence": command_line(analysis, "disruptions", "-o", "disruptions.csv"),
        "around": command_line(analysis, "timeline", "--around", f"disruption:{len(rows.details) + 1}"),
    }

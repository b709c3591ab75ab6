"""The analysis as an HTML page: one file that needs no network, and no script to read the numbers.

Every number stands in a table or in text. What the time went to is one bar below the headline, and a waterfall from the
wall clock down to goodput. Charts are drawn here, as SVG; where scripts run, the same charts take their place, with
more points, and can be zoomed and asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.picture.picture import pictures_of
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.steps.statistics import StepReport
from goodput_cli.gc_pause import garbage_collection_paused
from goodput_cli.report.base import Page
from goodput_cli.report.html.charts import STILL_COLUMNS, figures, progress_drawing
from goodput_cli.report.html.columns import chart_columns
from goodput_cli.report.html.drawing_process import VERSION
from goodput_cli.report.html.page import document, library, resource, script_data
from goodput_cli.report.html.proof import Disruptions, LedgerPart, Proof, command_line, disruptions, ledger
from goodput_cli.report.html.sections import (
    definitions,
    diagnostics,
    find_steps,
    insights,
    key_facts,
    lost,
    method,
    metric_table,
    rolling_windows,
    step_tables,
    thresholds,
)
from goodput_cli.report.html.sheet import HtmlTable
from goodput_cli.vocabulary.categories import BY_NAME, CATEGORIES, Look, short_title, title
from goodput_cli.vocabulary.text import duration, percent, seconds_text

_MOST_PIECES = 5
_LEAST_PERCENT = 1.0
_OTHERS = "#6b7075"


@dataclass(frozen=True)
class Bar:
    """A row of the waterfall. left, width: of 1000, where the bar stands. kind: `total`, `badput` or `goodput`. proof:
    the id of the rows behind it."""

    name: str
    title: str
    look: Look | None
    seconds: str
    time: str
    share: str
    left: float
    width: float
    kind: str
    proof: str | None


@dataclass(frozen=True)
class Piece:
    """A piece of the bar below the headline. left, width: of 1000. target: the id of the rows behind it."""

    title: str
    share: str
    colour: str
    left: float
    width: float
    target: str | None


def pieces(analysis: Analysis, proof: Proof) -> list[Piece]:
    """Goodput and the largest categories; what is small is one piece."""
    rows = [row for row in facts.category_rows(analysis) if row.ns > 0]
    rows.sort(key=lambda row: not row.is_goodput)
    whole = sum(row.ns for row in rows) or 1
    least = _LEAST_PERCENT * whole / 100
    shown = [row for place, row in enumerate(rows[:_MOST_PIECES]) if place == 0 or row.ns >= least]
    made: list[Piece] = []
    left = 0.0
    for row in shown:
        width = 1000 * row.ns / whole
        title = "goodput" if row.is_goodput else short_title(row.category, row.name.partition(":")[2] or None)
        colour = BY_NAME[row.category].look.colour
        made.append(Piece(title, row.percent, colour, left, width, proof.ledger.get(row.name)))
        left += width
    rest = sum(row.ns for row in rows[len(shown) :])
    if rest:
        share = percent(100 * rest / analysis.window.counted_ns)
        made.append(Piece(f"{len(rows) - len(shown)} more", share, _OTHERS, left, 1000 - left, "where"))
    return made


def waterfall(analysis: Analysis, proof: Proof) -> list[Bar]:
    """From the wall clock down to goodput: every badput takes its part from what is left."""
    window, badput = analysis.window, [row for row in facts.category_rows(analysis) if not row.is_goodput]
    most = max(window.ns, analysis.goodput.ns, 1)
    whole = "" if window.excluded_ns else "100.00 %"

    def bar(name: str, title: str | None, ns: int, share: str, left: int, kind: str) -> Bar:
        return _bar(name, title, ns, share, (left, most), kind, proof.ledger.get(name))

    rows = [bar("wall clock", None, window.ns, whole, 0, "total")]
    left = window.ns
    if window.excluded_ns:
        left -= window.excluded_ns
        rows.append(bar("excluded", None, window.excluded_ns, "not counted", left, "badput"))
    for row in badput:
        left -= row.ns
        rows.append(bar(row.name, row.title, row.ns, row.percent, min(left, left + row.ns), "badput"))
    goodput = next(row for row in facts.category_rows(analysis) if row.is_goodput)
    return [*rows, bar(goodput.name, "goodput", goodput.ns, goodput.percent, 0, "goodput")]


def _bar(
    name: str, title: str | None, ns: int, share: str, place: tuple[int, int], kind: str, proof: str | None
) -> Bar:
    """place: where it begins, and how much is the whole width."""
    category, (left, most) = BY_NAME.get(name.partition(":")[0]), place
    scale = 1000 / most
    return Bar(
        name,
        title or name,
        None if category is None else category.look,
        seconds_text(ns),
        duration(ns),
        share,
        max(left, 0) * scale,
        abs(ns) * scale,
        kind,
        proof,
    )


MOVING_COLUMNS = 1500
"""Columns of the data that scripts draw from: more than fit, so that zooming in shows more."""


@garbage_collection_paused()  # a page is hundreds of thousands of small objects, and none of them a cycle
def render(analysis: Analysis, page: Page) -> str:
    """The analysis as one HTML page. One of a site's many pages leaves its charts to its script: three quarters of its
    processor time would be drawing, for a page that may never be opened."""
    share, amount = facts.headline(analysis)
    pictures = pictures_of(analysis, *([] if page.back else [STILL_COLUMNS]), MOVING_COLUMNS)
    coarse = None if page.back else chart_columns(next(pictures))
    progress = progress_drawing(coarse)  # as soon as can be: another process draws it while this one goes on
    picture = next(pictures)
    fine, steps = chart_columns(picture), find_steps(analysis)
    shown = figures(analysis, picture, steps if isinstance(steps, StepReport) else None, fine, coarse, progress)
    rows, tables, parts = disruptions(analysis), step_tables(analysis, steps), ledger(analysis)
    proof = _proof(rows, tables, parts)
    return document(
        "analysis.html",
        scripts=[library(VERSION), resource("report.js")],
        back=page.back,
        title=f"Goodput of {analysis.job.name}: {share}",
        job=analysis.job.name,
        share=share,
        amount=amount,
        window=facts.window_text(analysis),
        whole=facts.outside_window_text(analysis),
        facts=key_facts(analysis, proof),
        pieces=pieces(analysis, proof),
        insights=insights(analysis, proof),
        lost=lost(analysis),
        waterfall=waterfall(analysis, proof),
        ledger=parts,
        beside=list(facts.beside_ledger(analysis)),
        not_recorded=analysis.not_recorded,
        figures={figure.name: figure for figure in shown},
        has_steps=len(picture.curve) > 0,
        downsampled=picture.downsampled,
        columns=MOVING_COLUMNS,
        rolling=rolling_windows(analysis),
        steps=tables,
        metrics=metric_table(analysis, steps),
        disruptions=rows,
        commands=_commands(analysis, rows),
        thresholds=thresholds(analysis, proof),
        diagnostics=diagnostics(analysis),
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


def _proof(rows: Disruptions, steps: HtmlTable | str, parts: list[LedgerPart]) -> Proof:
    """What the page holds."""
    tables = [rows.table, *(() if isinstance(steps, str) else (steps, *steps.more))]
    ids = {identity for table in tables for identity in table.ids if identity is not None}
    ids |= {f"disruption-{one.number}" for one in rows.details}
    return Proof(frozenset(ids), {part.name: part.id for part in parts})


def _commands(analysis: Analysis, rows: Disruptions) -> dict[str, str]:
    """What shows that for which the page has no room."""
    return {
        "rolling": command_line(analysis, "rolling", "-o", "rolling.csv"),
        "disruptions": command_line(analysis, "disruptions", "-o", "disruptions.csv"),
        "evidence": command_line(analysis, "disruptions", "-o", "disruptions.csv"),
        "around": command_line(analysis, "timeline", "--around", f"disruption:{len(rows.details) + 1}"),
    }

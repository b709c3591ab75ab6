"""The analysis as an HTML page: one file that needs no network, and no script to read the numbers.

Every number stands in a table or in text. Charts are drawn here, as SVG; where scripts run, the same charts take their
place, with more points, and can be zoomed and asked.
"""

from __future__ import annotations

from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.picture.picture import pictures_of
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.steps.statistics import StepReport
from goodput_cli.gc_pause import garbage_collection_paused
from goodput_cli.report.base import Page
from goodput_cli.report.html.columns import chart_columns
from goodput_cli.report.html.disruptions import Disruptions, disruptions
from goodput_cli.report.html.drawing import moving_library
from goodput_cli.report.html.figures import STILL_COLUMNS, figures, progress_drawing
from goodput_cli.report.html.ledger import LedgerPart, ledger
from goodput_cli.report.html.page import document, resource, script_data
from goodput_cli.report.html.proof import Proof, command_line
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
from goodput_cli.report.html.waterfall import pieces, waterfall
from goodput_cli.report.sheets.html import HtmlTable
from goodput_cli.vocabulary.categories import CATEGORIES
from goodput_cli.vocabulary.category_names import title

MOVING_COLUMNS = 1500
"""Columns of the data that scripts draw from: more than fit, so that zooming in shows more."""


@garbage_collection_paused()  # a page is hundreds of thousands of small objects, and none of them a cycle
def render(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The analysis as one HTML page."""
    share, amount = facts.headline(analysis)
    pictures = pictures_of(analysis, STILL_COLUMNS, MOVING_COLUMNS)
    coarse = chart_columns(next(pictures))
    progress = progress_drawing(coarse)  # as soon as can be: another process draws it while this one goes on
    picture = next(pictures)
    fine, steps = chart_columns(picture), find_steps(analysis)
    shown = figures(analysis, picture, steps if isinstance(steps, StepReport) else None, fine, coarse, progress)
    rows, tables, parts = disruptions(analysis), step_tables(analysis, steps), ledger(analysis)
    proof = _proof(rows, tables, parts)
    return document(
        "analysis.html",
        scripts=[moving_library(), resource("report.js")],
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

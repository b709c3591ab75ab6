"""The rows behind each number of the waterfall: when a category was, and the lines of the log that say so."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.timeline.rows import CUSTOM_PREFIX, Runs, SegmentRows, find_runs, rows_of_runs
from goodput_cli.analysis.timeline.sheet import timeline_sheet
from goodput_cli.arrays import Rows
from goodput_cli.report.html.proof import command_line
from goodput_cli.report.sheets.html import HtmlTable, html_table
from goodput_cli.vocabulary.categories import BY_NAME, Category, Look
from goodput_cli.vocabulary.text import duration, plural

_MOST_ROWS = 50


@dataclass(frozen=True)
class LedgerPart:
    """The rows of a category. id: of them in the page. left_out: what the table does not show, in a sentence; None
    where it shows all. command: shows all. table: None where the category is no place in time."""

    id: str
    name: str
    title: str
    look: Look
    amount: str
    table: HtmlTable | None
    left_out: str | None
    command: str


def ledger(analysis: Analysis) -> list[LedgerPart]:
    """By category, in the order of the waterfall, the longest rows of each in the order of time."""
    window = analysis.window
    runs = find_runs(analysis.timeline, window.start_ns, window.end_ns)
    named = [(row.name, row.title, row.ns) for row in facts.category_rows(analysis)]
    if window.excluded_ns:
        named.append((Category.EXCLUDED.id, "excluded", window.excluded_ns))
    return [_part(analysis, runs, place, *one) for place, one in enumerate(named, 1)]


def _part(analysis: Analysis, runs: Runs, place: int, name: str, title: str, ns: int) -> LedgerPart:
    category, (kind, _, label) = BY_NAME[name.partition(":")[0]], name.partition(":")
    own = _runs_of(analysis, runs, category, label)
    length = runs.end[own] - runs.start[own]
    longest = np.sort(np.argsort(-length, kind="stable")[:_MOST_ROWS])
    rest = len(own) - len(longest)
    left = f"{plural(rest, 'shorter row')}, together {duration(int(length.sum() - length[longest].sum()))}"
    asked = CUSTOM_PREFIX + label if category == Category.CUSTOM else kind
    return LedgerPart(
        f"ledger-{place}", name, title, category.look, f"{duration(ns)} in {plural(len(own), 'row')}",
        html_table(_sheet(analysis, rows_of_runs(analysis.timeline, runs, own[longest]))) if len(own) else None,
        left if rest else None, command_line(analysis, "timeline", "--category", asked),
    )  # fmt: skip


def _runs_of(analysis: Analysis, runs: Runs, category: Category, label: str) -> Rows:
    own = runs.category == category
    if category == Category.CUSTOM:
        labels = np.array([text == label for text in analysis.timeline.table.labels], dtype=bool)
        own = own & labels[runs.label]
    return np.flatnonzero(own)


def _sheet(analysis: Analysis, rows: SegmentRows) -> Sheet:
    """As `goodput timeline` shows them, without what is the same in all rows."""
    window = (analysis.window.start_ns, analysis.window.end_ns)
    sheet = timeline_sheet(analysis, rows, window, None, filtered=False)
    return replace(sheet, columns=tuple(map(_without_category, sheet.columns)))


def _without_category(column: Column) -> Column:
    return replace(column, audience=column.audience & ~Audience.PEOPLE) if column.name == "category" else column

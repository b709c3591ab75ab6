"""CSV: one table, `productive` first and then every badput row; the amounts add up to the window without exclusions."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from goodput_cli.analysis.results import Analysis
from goodput_cli.report.base import Page
from goodput_cli.vocabulary.text import finite, safe, seconds_text

COLUMNS = ("category", "label", "seconds", "ns", "percent")
_FORMULA_STARTS = tuple("=+-@\t\r＝＋－＠")  # noqa: RUF001 - spreadsheets take the full-width forms too


def render(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The rows as CSV with a header; seconds are exact decimals, an amount without a label has an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in (analysis.goodput, *analysis.badput):
        share = "" if finite(row.percent) is None else repr(row.percent)
        writer.writerow((row.category, text_cell(row.label or ""), seconds_text(row.ns), row.ns, share))
    return out.getvalue()


def csv_text(head: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    """Rows of texts and numbers as CSV with a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([text_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return out.getvalue()


def text_cell(text: str) -> str:
    """Text for a cell that a spreadsheet will not take for a formula: a quote stands before what looks like one."""
    return "'" + safe(text) if text.lstrip(" ").startswith(_FORMULA_STARTS) else safe(text)

"""Markdown (GitHub's): headline, table, details. Text of the log is escaped so that none of it is markup, HTML or a
link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from goodput_cli.analysis.results import Analysis
from goodput_cli.diagnostics import Diagnostic
from goodput_cli.report import facts
from goodput_cli.report.base import Page
from goodput_cli.report.messages import places_text
from goodput_cli.report.rolling_sheet import rolling_lines
from goodput_cli.report.terminal import sparkline
from goodput_cli.report.text import duration, safe, seconds_text

_SPECIAL = re.compile(r"[\\`*_{}\[\]#|~$@]")
_SPARKS = 40
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def render(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The analysis as a Markdown document."""
    return "\n".join(_lines(analysis)) + "\n"


def escape(text: str) -> str:
    """Text as Markdown that shows exactly this text, in one line."""
    escaped = _SPECIAL.sub(r"\\\g<0>", "".join(_ENTITIES.get(char, char) for char in safe(text)))
    return escaped.replace("://", "\\://").replace("www.", "www\\.")


def _lines(analysis: Analysis) -> Iterator[str]:
    share, amount = facts.headline(analysis)
    yield f"# Goodput of {escape(analysis.job.name)}: {share}"
    yield ""
    yield f"**{share}** productive: {amount}."
    yield ""
    yield f"{facts.window_text(analysis)}; {facts.attempts_text(analysis)}; {escape(facts.progress_text(analysis))}"
    whole = facts.outside_window_text(analysis)
    if whole:
        yield f"({whole})"
    yield ""
    yield from _categories(analysis)
    yield from _details(analysis)


def _categories(analysis: Analysis) -> Iterator[str]:
    yield from _table_head("Category", "", "Seconds", "Time", "Share", left=2)
    for row in facts.category_rows(analysis):
        category, _, label = row.name.partition(":")
        name = f"`{category}`" + (f" {escape(label)}" if label else "")
        yield _table_row(name, row.title, seconds_text(row.ns), duration(row.ns), row.percent)
    total = analysis.window.counted_ns
    yield _table_row("total", "", seconds_text(total), duration(total), "100.00 %")


def _details(analysis: Analysis) -> Iterator[str]:
    beside = [f"- `{name}`: {words}" for name, words in facts.beside_ledger(analysis)]
    steps = facts.step_text(analysis)
    if steps:
        beside.append(f"- step times, {steps}")
    if analysis.rolling is not None:
        beside += [
            f"- goodput of windows {head}: {sparkline(shares, _SPARKS, unicode=True)} {lowest}, {last}"
            for head, shares, lowest, last in rolling_lines(analysis.rolling)
        ]
    if analysis.not_recorded:
        beside.append(f"- not recorded (unknown, not zero): {', '.join(f'`{n}`' for n in analysis.not_recorded)}")
    if beside:
        yield from ("", *beside)
    yield from _reference(analysis)
    yield from _thresholds(analysis)
    yield from _diagnostics(analysis.diagnostics)


def _reference(analysis: Analysis) -> Iterator[str]:
    rows = facts.reference_rows(analysis)
    if not rows:
        return
    pin = facts.pin_option(analysis)
    yield from ("", f"## {facts.reference_text(analysis)}", "")
    if pin:
        yield from (f"Taken from the log itself: pin it with `{pin}`.", "")
    yield from _table_head("Metric", "Value")
    for name, value in rows:
        yield _table_row(name, value)


def _thresholds(analysis: Analysis) -> Iterator[str]:
    if not analysis.thresholds:
        return
    yield from ("", "## Thresholds", "")
    yield from _table_head("Expression", "Result", "Value", left=2)
    for threshold in analysis.thresholds:
        verdict = facts.threshold_verdict(threshold)
        yield _table_row(escape(threshold.expression), verdict, facts.threshold_value(threshold))


def _diagnostics(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    found = list(diagnostics)
    if not found:
        return
    yield from ("", "## Diagnostics", "")
    yield "| Severity | Code | Count | Message | Where |"
    yield "| --- | --- | ---: | --- | --- |"
    for one in found:
        places = escape(places_text(one))
        yield _table_row(one.severity, f"`{one.code}`", str(one.count), escape(one.message), places)


def _table_head(*columns: str, left: int = 1) -> Iterator[str]:
    """Header and rule; the first `left` columns are text, the others numbers."""
    yield _table_row(*columns)
    yield _table_row(*("---" if i < left else "---:" for i in range(len(columns))))


def _table_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"

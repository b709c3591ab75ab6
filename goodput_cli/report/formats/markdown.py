"""Markdown (GitHub's), made for the summary of a CI step: headline, thresholds and categories first, the rest folded.

Text of the log is escaped so that none of it is markup, HTML or a link. The document stays under 1 MB, which is as much
as GitHub takes, whatever is in the log: rows and names have a limit, and what is left out is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from goodput_cli.analysis.disruptions.sheet import disruptions_sheet
from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.rolling.sheet import rolling_lines
from goodput_cli.diagnostics.diagnostic import problems, worst_first
from goodput_cli.report.base import Page
from goodput_cli.report.insight_lines import cost_text
from goodput_cli.report.markdown import category_text, code_text, escape, folded, name_text, table_head, table_row
from goodput_cli.report.messages import places_text
from goodput_cli.report.sheets.markdown import table_lines
from goodput_cli.report.strip import strip_lines
from goodput_cli.report.terminal import bar, sparkline
from goodput_cli.vocabulary.text import duration, percent, plural, seconds_text

_SPARKS = 40
_STRIP_WIDTH = 96
_BAR_WIDTH = 20
_MOST_ROWS = 100
_MOST_DIAGNOSTICS = 50
_MOST_INSIGHTS = 20
_LONGEST_MESSAGE = 400
_LONGEST_PLACES = 300
_WHOLE = "the whole list is in the JSON (`--format json`)"
Item = TypeVar("Item")


def render(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The analysis as a Markdown document. HTML at its end is closed by a blank line: another may be appended."""
    document = "\n".join(_lines(analysis))
    return document + ("\n\n" if document.endswith(">") else "\n")


def _lines(analysis: Analysis) -> Iterator[str]:
    share, amount = facts.headline(analysis)
    yield f"# Goodput of {name_text(analysis.job.name)}: {share}"
    yield ""
    yield f"**{share}** productive: {amount}."
    yield ""
    yield f"{facts.window_text(analysis)}; {facts.attempts_text(analysis)}; {escape(facts.progress_text(analysis))}"
    whole = facts.outside_window_text(analysis)
    if whole:
        yield f"({whole})"
    yield from _thresholds(analysis)
    yield from _insights(analysis)
    yield from _strip(analysis)
    yield from _categories(analysis)
    yield from _beside(analysis)
    yield from _disruptions(analysis)
    yield from _reference(analysis)
    yield from _diagnostics(analysis)


def _thresholds(analysis: Analysis) -> Iterator[str]:
    if not analysis.thresholds:
        return
    yield ""
    yield from table_head("threshold", "result", "value", "limit", left=2)
    shown, rest = _split(analysis.thresholds)
    for threshold in shown:
        words = facts.threshold_verdict(threshold)
        verdict = f"**{words}**" if threshold.verdict == "failed" else words
        value, limit = facts.threshold_value(threshold), facts.threshold_limit(threshold)
        yield table_row(name_text(threshold.expression), verdict, value, limit)
    if rest:
        yield from ("", f"{plural(len(rest), 'more threshold')}: {_WHOLE}.")


def _insights(analysis: Analysis) -> Iterator[str]:
    """What cost most and what to do, the most costly first."""
    if not analysis.insights:
        return
    yield from ("", "What cost most, and what to do:", "")
    shown, rest = _split(analysis.insights, _MOST_INSIGHTS)
    for insight in shown:
        cost = ", ".join(filter(None, (percent(insight.percent), duration(insight.ns), cost_text(insight))))
        command = code_text(insight.command_line(), _LONGEST_MESSAGE)
        yield f"- **{cost}**: {name_text(insight.text)}. {escape(_sentence(insight.advice))} {command}"
    if rest:
        yield from ("", f"{plural(len(rest), 'smaller one')}: {_WHOLE}.")


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _strip(analysis: Analysis) -> Iterator[str]:
    """The picture of the job. It holds words of our own only, so that nothing can end the block."""
    lines = [line.plain.rstrip() for line in strip_lines(analysis, _STRIP_WIDTH, Page())]
    if lines:
        yield from ("", "```text", *lines, "```")


def _categories(analysis: Analysis) -> Iterator[str]:
    yield ""
    yield from table_head("category", "", "seconds", "time", "share", left=2)
    shown, rest = _split(facts.category_rows(analysis))
    for row in shown:
        drawn = bar(row.share, _BAR_WIDTH, unicode=True)
        yield table_row(category_text(row.name), drawn, seconds_text(row.ns), duration(row.ns), row.percent)
    if rest:
        ns = sum(row.ns for row in rest)
        yield table_row(f"{len(rest)} more, together", "", seconds_text(ns), duration(ns), "")
    total = analysis.window.counted_ns
    yield table_row("total", "", seconds_text(total), duration(total), "100.00 %")
    if rest:
        yield from ("", f"Of {len(shown) + len(rest)} rows the {len(shown)} largest are shown: {_WHOLE}.")


def _beside(analysis: Analysis) -> Iterator[str]:
    beside = [f"- `{name}`: {words}" for name, words in facts.beside_ledger(analysis)]
    steps = facts.step_text(analysis)
    if steps:
        beside.append(f"- step times, {steps}")
    if analysis.rolling is not None:
        shown, rest = _split(list(rolling_lines(analysis.rolling)))
        beside += [
            f"- goodput of windows {head}: {sparkline(shares, _SPARKS, unicode=True)} {lowest}, {last}"
            for head, shares, lowest, last in shown
        ]
        if rest:
            beside.append(f"- windows of {plural(len(rest), 'more length')}: {_WHOLE}")
    if analysis.not_recorded:
        beside.append(f"- not recorded (unknown, not zero): {', '.join(f'`{n}`' for n in analysis.not_recorded)}")
    if beside:
        yield from ("", *beside)


def _disruptions(analysis: Analysis) -> Iterator[str]:
    if not analysis.disruptions or analysis.reliability is None:
        return
    yield from folded(plural(len(analysis.disruptions), "disruption"), _disruption_lines(analysis))


def _disruption_lines(analysis: Analysis) -> Iterator[str]:
    sheet = disruptions_sheet(analysis, None)
    yield from (f"- {escape(line)}" for line in sheet.summary[1:])  # the first is the window
    yield ""
    yield from table_lines(sheet, most=_MOST_ROWS)
    left_out = len(sheet.rows) - _MOST_ROWS
    if left_out > 0:
        yield from ("", f"{plural(left_out, 'more disruption')}, later ones: {_WHOLE}.")
    yield from ("", *(f"- {name_text(note, _LONGEST_MESSAGE)}" for note in sheet.notes))


def _reference(analysis: Analysis) -> Iterator[str]:
    if facts.reference_rows(analysis):
        yield from folded(facts.reference_text(analysis) or "", _reference_lines(analysis))


def _reference_lines(analysis: Analysis) -> Iterator[str]:
    pin = facts.pin_option(analysis)
    if pin:
        yield from (f"Taken from the log itself: pin it with `{pin}`.", "")
    yield from table_head("metric", "value")
    yield from (table_row(name, value) for name, value in facts.reference_rows(analysis))


def _diagnostics(analysis: Analysis) -> Iterator[str]:
    if not analysis.diagnostics:
        return
    worst = next((diagnostic.severity for diagnostic in worst_first(problems(analysis.diagnostics))), None)
    words = plural(len(analysis.diagnostics), "diagnostic")
    yield from folded(
        f"{words}, {worst}s among them" if worst else words, _diagnostic_lines(analysis), is_open=worst == "error"
    )


def _diagnostic_lines(analysis: Analysis) -> Iterator[str]:
    shown, rest = _split(worst_first(analysis.diagnostics), _MOST_DIAGNOSTICS)
    yield "| severity | code | count | message | where |"
    yield "| --- | --- | ---: | --- | --- |"
    for one in shown:
        message, places = name_text(one.message, _LONGEST_MESSAGE), name_text(places_text(one), _LONGEST_PLACES)
        yield table_row(one.severity, f"`{one.code}`", str(one.count), message, places)
    if rest:
        yield from ("", f"{plural(len(rest), 'more diagnostic')}: {_WHOLE}.")


def _split(rows: Sequence[Item], most: int = _MOST_ROWS) -> tuple[Sequence[Item], Sequence[Item]]:
    """What is shown, and what is left out."""
    return rows[:most], rows[most:]

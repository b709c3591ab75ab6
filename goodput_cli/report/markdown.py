"""GitHub Markdown for the summary of a CI step: the most important parts first, the rest folded.

Text of the log is escaped, so that it cannot be markup, HTML or a link. The report of a job stays below GitHub's limit
of 1 MB for every log: rows and names are limited, and the report shows how many are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from goodput_cli.analysis.document import (
    WITHIN_GOODPUT,
    Block,
    CategoryLedger,
    Curves,
    Details,
    Document,
    Facts,
    Findings,
    Gates,
    Headline,
    Losses,
    Pairs,
    Picture,
    Sentence,
)
from goodput_cli.analysis.goodput import phrases
from goodput_cli.analysis.goodput.phrases import locations_text
from goodput_cli.analysis.sheet import Cell, Column, Outcome, PublishedAnswer, Sheet
from goodput_cli.diagnostics.diagnostic import problems, worst_first
from goodput_cli.report.base import Page
from goodput_cli.report.insight_lines import cost_text
from goodput_cli.report.terminal import (
    bar,
    cell_texts,
    full_heading,
    is_left,
    shown_columns,
    shown_rows,
    sparkline,
    strip_lines,
)
from goodput_cli.vocabulary.categories import BY_NAME, brief_name, name_parts
from goodput_cli.vocabulary.text import duration, percent, plural, safe, shorten

_SPARKS = 40
_STRIP_WIDTH = 96
_BAR_WIDTH, _BAR_OF_CELLS = 20, 10
_MOST_ROWS = 100
_MOST_IN_TITLE = 3
_MOST_DIAGNOSTICS = 50
_MOST_INSIGHTS = 20
_LONGEST_NAME = 200
"""Maximum length of a name from a log; the middle of longer ones is cut."""
_LONGEST_MESSAGE = 400
_LONGEST_PLACES = 300
_WHOLE = "`--format json` lists all"
_OUTCOMES: dict[Outcome, str] = {"passed": "", "failed": "FAILED: ", "not_judged": "INCONCLUSIVE: "}
_SPECIAL = re.compile(r"[\\`*_{}\[\]#|~$@]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
Item = TypeVar("Item")


def render(document: Document, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """Return an answer as a Markdown document, with the folded parts at its end. A blank line closes HTML there,
    because another document may be appended."""
    gates = document.gates()
    text = "\n".join(_lines(tuple(document.blocks()), gates))
    return text + ("\n\n" if text.endswith(">") else "\n")


def _lines(blocks: Sequence[Block], gates: PublishedAnswer | None) -> Iterator[str]:
    for block in blocks:
        yield from _block(block, gates)
    beside = [line for block in blocks for line in _items(block)]
    if beside:
        yield from ("", *beside)
    for block in blocks:
        yield from _folded(block)


def _block(block: Block, gates: PublishedAnswer | None) -> Iterator[str]:
    """Yield a block that is not part of a list. The title of the document shows if a gate failed."""
    match block:
        case Sheet():
            yield from _sheet(block, gates)
        case Headline():
            yield from _headline(block, gates)
        case Gates():
            yield from _gates(block)
        case Losses():
            yield from _losses(block)
        case Picture():
            yield from _picture(block)


def _items(block: Block) -> Iterator[str]:
    """Yield a block as items of the list below the other blocks."""
    match block:
        case Facts():
            yield from (f"- {name}: {words}" for name, words in block.rows)
        case Curves():
            yield from _curves(block)
        case Sentence():
            names = f": {', '.join(block.names)}" if block.names else ""
            yield f"- {_name_text(block.sentence, _LONGEST_MESSAGE)}{names}"


def _folded(block: Block) -> Iterator[str]:
    """Yield a block that a reader can unfold."""
    match block:
        case CategoryLedger():
            yield from _unfolding("Time by category", _ledger(block))
        case Pairs():
            yield from _unfolding(block.title, _pairs(block))
        case Details():
            yield from _unfolding(plural(block.count, block.what), _details(block))
        case Findings():
            yield from _findings(block)


def _headline(block: Headline, gates: PublishedAnswer | None) -> Iterator[str]:
    subject = f"{block.measure.capitalize()} of {_name_text(block.subject)}"
    yield f"# {_outcome(gates)}{subject}: {block.value}{_why(gates, block.value)}"
    yield ""
    yield f"**{block.value}**{' ' * bool(block.adjective)}{block.adjective}: {block.amount}."
    yield ""
    for doubt in block.doubts:
        yield from (f"Warning: {escape(doubt)}.", "")
    yield f"{block.window}; {block.attempts}; {escape(block.progress)}"
    if block.whole:
        yield f"({block.whole})"


def _outcome(gates: PublishedAnswer | None) -> str:
    """Return the text before a title if a gate did not pass: `FAILED: `."""
    return "" if gates is None else _OUTCOMES[gates.outcome]


def _why(gates: PublishedAnswer | None, value: str) -> str:
    """Return the end of a title: the thresholds that did not pass, or that all passed. value: already in the title."""
    judged = [] if gates is None else [one for one in gates.thresholds if one.fails]
    failed = [one for one in judged if one.verdict != "passed"]
    failed = [one for one in failed if one.verdict == "failed"] or failed
    if not failed:
        return f" ({plural(len(judged), 'threshold')} passed)" if judged else ""
    shown = [
        f"{one.expression}: {phrases.threshold_reason(one).removeprefix(f'{value}, ')}"
        for one in failed[:_MOST_IN_TITLE]
    ]
    more = f" and {len(failed) - len(shown)} more" if len(failed) > len(shown) else ""
    return f" ({_name_text('; '.join(shown), _LONGEST_MESSAGE)}{more})"


def _gates(block: Gates) -> Iterator[str]:
    yield ""
    yield from _table_head("threshold", "result", "value", "limit", left=2)
    shown, rest = _split(block.thresholds)
    for threshold in shown:
        words = phrases.threshold_verdict(threshold)
        verdict = f"**{words}**" if threshold.verdict == "failed" else words
        value, limit = phrases.threshold_value(threshold), phrases.threshold_limit(threshold)
        yield _table_row(_name_text(threshold.expression), verdict, value, limit)
    if rest:
        yield from ("", f"{plural(len(rest), 'more threshold')}: {_WHOLE}.")


def _losses(block: Losses) -> Iterator[str]:
    """Yield the insights with their advice, most costly first."""
    if not block.insights:
        return
    for title, losses in (("What cost most, and what to do:", block.lost), (f"{WITHIN_GOODPUT}:", block.within)):
        if not losses:
            continue
        yield from ("", title, "")
        shown, rest = _split(losses, _MOST_INSIGHTS)
        for one in shown:
            cost = ", ".join(filter(None, (percent(one.percent), duration(one.ns), cost_text(one))))
            typed = shorten(safe(one.command), _LONGEST_MESSAGE)
            command = escape(typed) if "`" in typed else f"`{typed}`"  # a backtick would end the code
            advice = escape(one.advice_sentence)
            yield " ".join(filter(None, (f"- **{cost}**: {_name_text(one.text)}.", advice, command)))
        if rest:
            yield from ("", f"{plural(len(rest), 'smaller one')}: {_WHOLE}.")


def _picture(block: Picture) -> Iterator[str]:
    """Yield the chart of the job. It contains no text of the log, so nothing can end the block."""
    lines = [line.plain.rstrip() for line in strip_lines(block, _STRIP_WIDTH, Page())]
    if lines:
        yield from ("", "```text", *lines, "```")


def _ledger(block: CategoryLedger) -> Iterator[str]:
    yield from _table_head("category", "", "time", "share", left=2)
    shown, rest = _split(block.rows)
    for row in shown:
        drawn = bar(row.share, _BAR_WIDTH, unicode=True)
        yield _table_row(_name_text(brief_name(row.name)), drawn, duration(row.ns), row.percent)
    if rest:
        ns = sum(row.ns for row in rest)
        yield _table_row(f"{len(rest)} more (sum)", "", duration(ns), "")
    yield _table_row("total", "", duration(block.total_ns), "100.00 %")
    if rest:
        yield from ("", f"Shown: the {len(shown)} largest of {len(shown) + len(rest)} rows; {_WHOLE}.")


def _curves(block: Curves) -> Iterator[str]:
    shown, rest = _split(block.rows)
    for row in shown:
        line = sparkline(row.shares, _SPARKS, unicode=True)
        yield f"- goodput of windows {row.head}: {line} {row.lowest}, {row.last}"
    if rest:
        yield f"- windows of {plural(len(rest), 'more length')}: {_WHOLE}"


def _details(block: Details) -> Iterator[str]:
    sheet = block.sheet()
    yield from (f"- {escape(line)}" for line in sheet.summary)
    yield ""
    yield from _table(sheet, most=_MOST_ROWS)
    left_out = len(sheet.rows) - _MOST_ROWS
    if left_out > 0:
        yield from ("", f"{plural(left_out, f'later {block.what}')} not shown; {_WHOLE}.")
    yield from ("", *(f"- {_name_text(note, _LONGEST_MESSAGE)}" for note in sheet.every_note))


def _pairs(block: Pairs) -> Iterator[str]:
    if block.pin:
        yield from (f"Taken from this log. Pin it with `{block.pin}`.", "")
    yield from _table_head("metric", "value")
    yield from (_table_row(name, value) for name, value in block.rows)


def _findings(block: Findings) -> Iterator[str]:
    worst = next((diagnostic.severity for diagnostic in worst_first(problems(block.diagnostics))), None)
    words = plural(len(block.diagnostics), "diagnostic")
    yield from _unfolding(
        f"{words}, including {worst}s" if worst else words, _diagnostic_lines(block), is_open=worst == "error"
    )


def _diagnostic_lines(block: Findings) -> Iterator[str]:
    shown, rest = _split(worst_first(block.diagnostics), _MOST_DIAGNOSTICS)
    yield "| severity | code | count | message | where |"
    yield "| --- | --- | ---: | --- | --- |"
    for one in shown:
        message, places = _name_text(one.message, _LONGEST_MESSAGE), _name_text(locations_text(one), _LONGEST_PLACES)
        yield _table_row(one.severity, f"`{one.code}`", str(one.count), message, places)
    if rest:
        yield from ("", f"{plural(len(rest), 'more diagnostic')}: {_WHOLE}.")


def _split(rows: Sequence[Item], most: int = _MOST_ROWS) -> tuple[Sequence[Item], Sequence[Item]]:
    """Return the rows to show, and the rows left out."""
    return rows[:most], rows[most:]


def _sheet(sheet: Sheet, gates: PublishedAnswer | None = None, level: int = 1) -> Iterator[str]:
    yield f"{'#' * level} {_outcome(gates)}{escape(sheet.title)}"
    if gates is not None and gates.outcome != "passed":
        failed = [one for one in gates.thresholds if one.fails and one.verdict != "passed"]
        yield from ("", *(f"- **{_name_text(phrases.threshold_line(one))}**" for one in failed[:_MOST_ROWS]))
    for line in sheet.summary:
        yield from ("", escape(line))
    if shown_rows(sheet):
        yield ""
        yield from _table(sheet)
    if sheet.every_note:
        yield from ("", *(f"- {escape(note)}" for note in sheet.every_note))
    parts = (line for part in sheet.sections for line in ("", *_sheet(part, level=level + 1)))
    yield from _unfolding("All tables", parts) if sheet.folded else parts


def _table(sheet: Sheet, most: int | None = None) -> Iterator[str]:
    """Yield the rows for people as a table, at most `most` of them."""
    columns = shown_columns(sheet)
    yield _table_row(*(escape(full_heading(column)) for _, column in columns))
    yield _table_row(*("---" if is_left(column) else "---:" for _, column in columns))
    rows = list(islice(shown_rows(sheet), most))
    cells = [_cells(column, [row[position] for row in rows]) for position, column in columns]
    yield from (_table_row(*row) for row in zip(*cells, strict=True))


def _cells(column: Column, values: list[Cell]) -> list[str]:
    if column.kind == "share":
        return [bar(100 * one, _BAR_OF_CELLS, unicode=True) if isinstance(one, int | float) else "" for one in values]
    texts = cell_texts(column, values)
    return [_category_text(text) if column.brief is not None else escape(text) for text in texts]


def escape(text: str) -> str:
    """Return Markdown that shows exactly this text, in one line."""
    escaped = _SPECIAL.sub(r"\\\g<0>", "".join(_ENTITIES.get(char, char) for char in safe(text)))
    return escaped.replace("://", "\\://").replace("www.", "www\\.")


def _name_text(text: str, longest: int = _LONGEST_NAME) -> str:
    """Return at most `longest` characters of a text, escaped as by `escape`."""
    return escape(shorten(safe(text), longest))


def _category_text(name: str) -> str:
    """Return the readable name of a category, with its label and a sign before it."""
    return _name_text(brief_name(name) if name_parts(name)[1] in BY_NAME else name)


def _table_head(*columns: str, left: int = 1) -> Iterator[str]:
    """Yield header and rule; the first `left` columns are text, the others numbers."""
    yield _table_row(*columns)
    yield _table_row(*("---" if i < left else "---:" for i in range(len(columns))))


def _table_row(*cells: str) -> str:
    """Return a row. The cells are Markdown already."""
    return f"| {' | '.join(cells)} |"


def _unfolding(summary: str, lines: Iterable[str], *, is_open: bool = False) -> Iterator[str]:
    """Yield a part that a reader can unfold. summary: constant text, nothing from a log."""
    yield from ("", f"<details{' open' if is_open else ''}><summary>{summary}</summary>", "")
    yield from lines
    yield from ("", "</details>")

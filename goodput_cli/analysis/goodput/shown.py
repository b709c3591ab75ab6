"""`repr()` of an `Analysis`, and its HTML for a notebook: the summary, and the attributes that hold the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.results import Analysis
from goodput_cli.vocabulary.text import duration, percent, safe, shorten

_MOST = 5
_LONGEST = 100
_MORE = ".insights, .to_frame(), .disruptions.to_frame(), .segments, .events, .to_dict(), .to_html()"


def repr_text(analysis: Analysis) -> str:
    """The answer, and the most costly insights."""
    return "\n".join(_lines(analysis))


def _lines(analysis: Analysis) -> Iterator[str]:
    share, amount = facts.headline(analysis)
    yield f"<Analysis of {_name(analysis)}: goodput {share}, {amount}"
    yield f" {facts.window_text(analysis)}, {facts.attempts_text(analysis)}, {facts.progress_text(analysis)}"
    for insight in analysis.insights[:_MOST]:
        yield f" {percent(insight.percent):>8}  {duration(insight.ns):>11}  {safe(insight.text)}"
    yield f" more: {_MORE}>"


def _name(analysis: Analysis) -> str:
    return shorten(safe(analysis.job.name), _LONGEST, "...")


def notebook_html(analysis: Analysis) -> str:
    """The same as a piece of HTML, with the categories. No style but the notebook's own, no script; text of the log is
    escaped."""
    share, amount = facts.headline(analysis)
    categories = [(row.name, duration(row.ns), row.percent) for row in facts.category_rows(analysis)]
    insights = [(one.text, one.advice, duration(one.ns), percent(one.percent)) for one in analysis.insights[:_MOST]]
    parts = [
        f"<div><p><strong>{_text(_name(analysis))}: goodput {_text(share)}</strong>, {_text(amount)}<br>",
        f"{_text(facts.window_text(analysis))}, {_text(facts.attempts_text(analysis))}, "
        f"{_text(facts.progress_text(analysis))}</p>",
        _table(("what cost most", "what to do", "time", "share"), insights) if insights else "",
        _table(("category", "time", "share"), categories),
        "</div>",
    ]
    return "".join(parts)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(words: str) -> str:
    return escape(safe(words))

"""What the time went to: as one bar below the headline, and as a waterfall from the wall clock down to goodput."""

from __future__ import annotations

from dataclasses import dataclass

from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.results import Analysis
from goodput_cli.report.html.proof import Proof
from goodput_cli.vocabulary.categories import BY_NAME, Look
from goodput_cli.vocabulary.category_names import short_title
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

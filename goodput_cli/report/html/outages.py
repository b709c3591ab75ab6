"""An outage on the page of a run: a strip to scale, from last progress to training again, and its recovery phases as a
table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from goodput_cli.analysis.disruptions.rows import Disruption
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.recovery.chain import OutagePhase, OutageTimeline
from goodput_cli.analysis.recovery.links import chain_sheet, redone_steps
from goodput_cli.events.signs import RecoveryPhase
from goodput_cli.report.html.sheet import HtmlTable, html_table
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.text import duration

WIDTH = 1000
"""Width of a strip in its own units."""
_QUEUED = "queued"
_LOOKS = {
    "wasted": Category.WASTED,
    "downtime": Category.RECOVERY,
    _QUEUED: Category.QUEUED,
    "restart": Category.TRAINING_PREP,
    "elsewhere": Category.WASTED,
    "uncategorized": Category.OTHER,
}
"""Style of an amount. The queue is hatched, because nothing is allocated then."""


@dataclass(frozen=True)
class Piece:
    """A part of a strip. hatched: time in the queue."""

    x: float
    width: float
    colour: str
    hatched: bool


@dataclass(frozen=True)
class OutageOnPage:
    """An outage: its strip, the text alternative, and its recovery phases."""

    pieces: tuple[Piece, ...]
    cuts: tuple[float, ...]
    """Ends of recovery phases."""
    words: str
    table: HtmlTable


def outage_on_page(analysis: Analysis, row: Disruption) -> OutageOnPage | None:
    """Return the outage of a disruption; None for a scale-up and a rollback, which have none."""
    chain = row.chain
    if chain is None:
        return None
    links = [one for one in chain.links if one.point is not RecoveryPhase.CAUGHT_UP and one.ns]
    whole = sum(one.ns for one in links)
    step_ends = analysis.timeline.attempts.step_ends
    table = html_table(chain_sheet(analysis, chain, redone_steps(row, step_ends)))
    return OutageOnPage(tuple(_pieces(chain, links, whole)), tuple(_cuts(chain, links, whole)), _words(links), table)


def _pieces(chain: OutageTimeline, links: list[OutagePhase], whole: int) -> Iterator[Piece]:
    for link in links:
        begin = link.start_ns - chain.start.time
        for name, category in _LOOKS.items():
            ns = getattr(link, f"{name}_ns")
            if ns <= 0:
                continue
            yield Piece(_scaled(begin, whole), _scaled(ns, whole), category.look.colour, name == _QUEUED)
            begin += ns


def _cuts(chain: OutageTimeline, links: list[OutagePhase], whole: int) -> Iterator[float]:
    yield from (_scaled(one.end_ns - chain.start.time, whole) for one in links[:-1])


def _scaled(ns: int, whole: int) -> float:
    return round(WIDTH * ns / whole, 2)


def _words(links: list[OutagePhase]) -> str:
    """Return the phases in words: `until detected 10 min 00 s, until terminated 12.0 s`."""
    return "Outage to scale: " + ", ".join(f"until {one.point.words} {duration(one.ns)}" for one in links)

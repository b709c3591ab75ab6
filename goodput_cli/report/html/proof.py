"""Evidence for the numbers of the report: the rows of each number of the waterfall, and the disruptions with their
evidence and a strip to scale of each outage.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from goodput_cli.analysis.disruptions.rows import Disruption
from goodput_cli.analysis.disruptions.sheet import MORE_PHASES, by_sheet, disruptions_sheet
from goodput_cli.analysis.document import Loss
from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.insights.kinds import Insight
from goodput_cli.analysis.recovery.chain import OutagePhase, OutageTimeline
from goodput_cli.analysis.recovery.links import chain_sheet, redone_steps
from goodput_cli.analysis.sheet import Audience, Sheet
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.analysis.timeline.rows import SegmentRows, find_runs
from goodput_cli.analysis.timeline.sheet import timeline_sheet
from goodput_cli.arrays import Rows, alike
from goodput_cli.events.signs import RecoveryPhase
from goodput_cli.report.html.sheet import HtmlTable, html_table, with_ids
from goodput_cli.vocabulary.categories import BY_NAME, Category, CategoryStyle, brief_name, ended_words, short_title
from goodput_cli.vocabulary.text import clock, duration, iso, plural, seconds_text

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


_MOST_LINKS = 5
_NO_ROWS = np.zeros(0, dtype=np.intp)
_SECTIONS = {"steps": "step-time", "saves": "where", "elastic": "where", "rolling": "over-time"}
_OF_DISRUPTIONS = ("disruptions", "mtbf", "mttr", "time_to_detect", "mean_", "longest_", "attempts")


Link = tuple[str, str, str]
"""Words, the id of the link target, and the short form of the words after a link of the same kind; empty if nothing
remains."""


@dataclass(frozen=True)
class Proof:
    """The rows of a page. ids: of the rows of its tables. ledger: ids of the rows of each category, by its name with
    the label."""

    ids: frozenset[str]
    ledger: Mapping[str, str]

    def of_disruption(self, number: int) -> str | None:
        """Return the id of a disruption: with its log lines if the page has them, else its row; None if neither is on
        the page."""
        return next((one for one in (f"disruption-{number}", f"disruption-row-{number}") if one in self.ids), None)

    def of_step(self, number: int, table: str) -> str | None:
        """Return the id of the row of a step in a table: `step` for single steps, `slow` for slow periods by their
        first step."""
        identity = f"{table}-{number}"
        return identity if identity in self.ids else None


def loss_links(loss: Loss, proof: Proof) -> tuple[list[Link], int]:
    """Return links to the rows of a loss, and the number of further rows."""
    insight = loss.insight
    if insight is None:
        target = None if loss.row is None else proof.ledger.get(loss.row.name)
        return ([] if target is None else [(f"rows: {loss.text}", target, "")]), 0
    rows = [(words, target) for words, target in _rows_of(insight, proof) if target is not None]
    shown = rows[:_MOST_LINKS]
    links = [(words, target, _short(words) if place else "") for place, (words, target) in enumerate(shown)]
    return links, max(insight.count, len(rows)) - len(shown) if insight.about.disruptions else 0


def _short(words: str) -> str:
    """Return the number in the words of a link: `4` for `disruption 4`."""
    number = words.rpartition(" ")[2]
    return number if number.isdigit() else ""


def _rows_of(insight: Insight, proof: Proof) -> Iterator[tuple[str, str | None]]:
    about = insight.about
    yield from ((f"disruption {number}", proof.of_disruption(number)) for number in about.disruptions)
    table = "slow" if insight.code == "slow_steps" else "step"
    yield from ((f"step {number}", proof.of_step(number, table)) for number in about.steps)
    for name in about.categories:
        category, _, label = name.partition(":")
        yield f"rows: {short_title(category, label or None)}", proof.ledger.get(name)


def threshold_target(threshold: Threshold, proof: Proof, insights: frozenset[str]) -> str | None:
    """Return the id of the element that shows the value of a threshold. insights: the codes on the page."""
    name = re.split("[<>=!]", threshold.expression)[0].strip()
    kind, _, label = name.partition(":")
    if kind == "insight":
        return f"insight-{label}" if label in insights else None
    if name == "goodput":
        return proof.ledger.get(Category.PRODUCTIVE.id)
    if name.startswith(_OF_DISRUPTIONS):
        return "disruptions"
    if kind == "custom":
        return _custom_target(threshold.expression, proof)
    return proof.ledger.get(name) or _SECTIONS.get(name.partition(".")[0])


def _custom_target(expression: str, proof: Proof) -> str | None:
    """Return the id of the rows of a label. A label may contain characters that end other names."""
    prefix = f"{Category.CUSTOM.id}:"
    labels = [name.removeprefix(prefix) for name in proof.ledger if name.startswith(prefix)]
    starts = {label: (f"custom:{label}", short_title(Category.CUSTOM.id, label)) for label in labels}
    named = [label for label in labels if expression.startswith(starts[label])]
    return proof.ledger[prefix + max(named, key=len)] if named else None


def command_line(analysis: Analysis, name: str, *options: str) -> str:
    """Return a shell command for the logs of an analysis."""
    logs = shlex.join(analysis.options) or "LOG"
    return " ".join(("goodput", name, logs, *map(shlex.quote, options)))


_MOST_ROWS = 50


@dataclass(frozen=True)
class LedgerPart:
    """The rows of a category. id: of the rows in the page. left_out: a sentence about rows missing in the table; None
    if it shows all. command: shows all rows. table: None if the category has no position in time."""

    id: str
    name: str
    title: str
    look: CategoryStyle
    amount: str
    table: HtmlTable | None
    left_out: str | None
    command: str


def ledger(analysis: Analysis) -> list[LedgerPart]:
    """Return the rows of each category in the order of the waterfall: the longest ones, sorted by time."""
    window = analysis.window
    runs = find_runs(analysis.timeline, window.start_ns, window.end_ns)
    named = [(row.name, brief_name(row.name), row.ns) for row in facts.category_rows(analysis)]
    if window.excluded_ns:
        named.append((Category.EXCLUDED.id, "excluded", window.excluded_ns))
    own = _runs_by_name(analysis, runs)
    return [_part(analysis, runs, own.get(one[0], _NO_ROWS), place, *one) for place, one in enumerate(named, 1)]


def _part(analysis: Analysis, runs: SegmentRows, own: Rows, place: int, name: str, title: str, ns: int) -> LedgerPart:
    category, (kind, _, label) = BY_NAME[name.partition(":")[0]], name.partition(":")
    length = runs.end[own] - runs.start[own]
    longest = np.sort(np.argsort(-length, kind="stable")[:_MOST_ROWS])
    rest = len(own) - len(longest)
    left = f"{plural(rest, 'shorter row')}, together {duration(int(length.sum() - length[longest].sum()))}"
    asked = short_title(kind, label) if category == Category.CUSTOM else kind
    return LedgerPart(
        f"ledger-{place}", name, title, category.look, f"{duration(ns)} in {plural(len(own), 'row')}",
        html_table(_sheet(analysis, runs.take(own[longest]))) if len(own) else None,
        left if rest else None, command_line(analysis, "timeline", "--category", asked),
    )  # fmt: skip


def _runs_by_name(analysis: Analysis, runs: SegmentRows) -> dict[str, Rows]:
    """Return the segments of each category by its name; custom events by their type."""
    found = {Category(code).id: rows for code, rows in alike(runs.category).items()}
    custom = found.pop(Category.CUSTOM.id, _NO_ROWS)
    labels = analysis.timeline.table.labels
    of_type = {f"{Category.CUSTOM.id}:{labels[code]}": custom[at] for code, at in alike(runs.label[custom]).items()}
    return found | of_type


def _sheet(analysis: Analysis, rows: SegmentRows) -> Sheet:
    """Return the rows as `goodput timeline` shows them, without columns that are equal in all rows."""
    window = (analysis.window.start_ns, analysis.window.end_ns)
    sheet = timeline_sheet(analysis, rows, window, None, filtered=False)
    columns = (
        replace(one, audience=one.audience & ~Audience.PEOPLE) if one.name == "category" else one
        for one in sheet.columns
    )
    return replace(sheet, columns=tuple(columns))


MOST_ROWS = 500
"""Maximum number of rows in a table of the report. Pages of single commands show more."""
MOST_DETAILS = 100
"""Maximum number of disruptions with all their evidence."""
_EVIDENCE = {
    "last_step": "last step",
    "last_sign_of_life": "last log activity",
    "ended": "how it ended",
    "next_start": "next start",
    "next_up": "next attempt up",
    "resumed_step": "resumed at",
    "first_step": "first step after the restart",
    "regained": "regained",
    "cause": "cause",
}


Fact = tuple[str, str, str]
"""Name, value, and the exact value if it differs; else empty."""
Details = tuple[int, str, OutageOnPage | None, list[Fact], list[tuple[str, str]]]
"""One disruption: its number and title, its recovery phases, all its facts, and the log lines that show it."""


@dataclass(frozen=True)
class DisruptionsSection:
    """The disruptions as a table, the summary above it, and the details of the first ones."""

    summary: tuple[str, ...]
    by_cause: HtmlTable | None
    """Losses by cause; None if no log line shows a cause."""
    table: HtmlTable
    notes: tuple[str, ...]
    """Totals, and the legend of the columns."""
    details: list[Details]
    left_out: int


def disruptions(analysis: Analysis) -> DisruptionsSection:
    """Return all disruptions of the window."""
    sheet = disruptions_sheet(analysis, None)
    rows = analysis.disruptions
    return DisruptionsSection(
        summary=sheet.summary[1:],
        by_cause=html_table(by_sheet(analysis, "cause")) if any(one.certainty for one in rows.why) else None,
        table=with_ids(html_table(sheet, MOST_ROWS), "disruption-row"),
        notes=tuple(note for note in sheet.notes if note != MORE_PHASES),
        details=[_details(analysis, row) for row in rows[:MOST_DETAILS]],
        left_out=max(len(rows) - MOST_DETAILS, 0),
    )


def _details(analysis: Analysis, row: Disruption) -> Details:
    places = asdict(row.evidence)
    down_since = " ".join(clock(row.last_sign_of_life_ns))
    title = f"Disruption {row.number}: attempt {row.attempt}, {ended_words(row.ended)}, {down_since}"
    evidence = [(words, places[name]) for name, words in _EVIDENCE.items() if places[name] is not None]
    return row.number, title, outage_on_page(analysis, row), list(_disruption_facts(row)), evidence


def _disruption_facts(row: Disruption) -> Iterator[Fact]:
    """Yield all facts of a disruption that are in JSON."""
    yield "last step", _step(row.last_step), ""
    yield "last log activity", iso(row.last_sign_of_life_ns), ""
    yield "failed before", iso(row.death_latest_ns), ""
    yield "next start", iso(row.next_start_ns), ""
    yield "next attempt up", iso(row.next_up_ns), ""
    yield "resumed at step", _step(row.resumed_step), ""
    yield "steps lost", ("at least " if row.steps_lost_is == "at_least" else "") + _step(row.steps_lost), ""
    amounts = {
        "wasted": row.wasted_ns,
        "downtime": row.downtime_ns,
        "of which undetermined": row.undetermined_ns,
        "queued": row.queued_ns,
        "restarting": row.restart_ns,
        "lost in total": row.lost_ns,
        "time to the first step": row.time_to_first_step_ns,
        "regained": row.regained_after_ns,
    }
    for name, ns in amounts.items():
        yield (name, "unknown", "") if ns is None else (name, duration(ns), f"{seconds_text(ns)} s")
    yield from ((name, value, "") for name, value in _facts_of_cause(row))
    if row.ranks_before is not None or row.ranks_after is not None:
        yield "ranks before and after", f"{_step(row.ranks_before)}, {_step(row.ranks_after)}", ""


def _facts_of_cause(row: Disruption) -> Iterator[tuple[str, str]]:
    """Yield the cause of a failure and where it happened, as far as logged."""
    if row.cause is None or row.cause_certainty is None:
        return
    yield "cause", row.cause if row.cause_certainty == "confirmed" else f"likely {row.cause}"
    if row.cause_text is not None:
        yield "log line", row.cause_text
    if row.first_rank is not None:
        yield "rank", str(row.first_rank)
    for name, value in (("host", row.first_host), ("device", row.first_device), ("also seen", ", ".join(row.also))):
        if value:
            yield name, value
    if row.silent_ranks:
        yield "ranks without a log line", ", ".join(map(str, row.silent_ranks))


def _step(value: int | None) -> str:
    return "unknown" if value is None else str(value)

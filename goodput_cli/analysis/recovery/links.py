"""Recovery chains as tables (accounting §10, Links): each outage by phase, and the total loss by phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from goodput_cli.analysis.analysis_data import AnalysisData
from goodput_cli.analysis.disruptions.find import last_failure
from goodput_cli.analysis.disruptions.rows import Disruption
from goodput_cli.analysis.goodput.phrases import location_text
from goodput_cli.analysis.recovery.chain import REDONE, OutagePhase, OutageTimeline, chains_of
from goodput_cli.analysis.recovery.columns import mean_and_quantiles, restarts_words
from goodput_cli.analysis.recovery.insights import longest_link_words, waited_words
from goodput_cli.analysis.recovery.points import clocks_apart, standby_ns
from goodput_cli.analysis.results import MARK
from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.table import TableDeclaration, attribute, column, columns_of, each
from goodput_cli.events.signs import RecoveryPhase
from goodput_cli.vocabulary.text import clock, duration, plural

TOTAL, QUEUED = "total", "queued"
MOST_CHAINS = 100
"""Maximum number of outages that are shown by phase."""
_ALWAYS = (
    RecoveryPhase.FAILED,
    RecoveryPhase.DETECTED,
    RecoveryPhase.DECIDED,
    RecoveryPhase.TERMINATED,
    RecoveryPhase.REQUEUED,
    RecoveryPhase.ALLOCATED,
)
"""Points whose missing lines are reported to people, because all programs have them. Some programs have no health check
and no rendezvous."""


@dataclass(frozen=True)
class PhaseTotal:
    """A recovery phase over all outages."""

    link: str = column("text", "the recovery phase, named after the event that ends it", heading="recovery phase")
    known: int = column("count", "outages in which that event is logged", least=0)
    of: int = column("count", "outages in which the phase can occur", least=0)
    lost_ns: int = column("duration", "time lost in all of them; without `queued`, which has its own row", least=0,
                          heading="lost")  # fmt: skip
    share_percent: float | None = column("percent", "of the time lost in all phases", name="share", heading="share")
    p50_ns: int | None = column(
        "duration", "median, over outages in which the preceding event is logged or cannot occur",
        heading="median",
    )  # fmt: skip
    p90_ns: int | None = column("duration", "90th percentile, over the same outages", heading="p90")
    longest_ns: int | None = column("duration", "the longest of all, including those that span several phases",
                                    heading="longest")  # fmt: skip
    several: int = column("count", "how many of them include earlier phases whose end is not logged", least=0)


_KNOWN = Column("known in", "text", Audience.PEOPLE, each(lambda one: _known_in(one)))
_OF_LINK = columns_of(PhaseTotal, attribute)
BY_LINK = TableDeclaration(
    "link_total",
    "one recovery phase over all outages: how much time it lost, and how long it took",
    (*_OF_LINK, _KNOWN),
    people=("recovery phase", "known in", "lost", "share", "median", "p90", "longest"),
    first=("link", "known", "of", "lost"),
)


def _known_in(one: PhaseTotal) -> str:
    return "" if one.link in (TOTAL, QUEUED) else f"{one.known} of {one.of}"


@dataclass
class _PhaseSums:
    lost: int = 0
    known: int = 0
    of: int = 0
    several: int = 0
    lengths: list[int] = field(default_factory=list)
    apart: list[int] = field(default_factory=list)


def link_totals(chains: Sequence[OutageTimeline]) -> list[PhaseTotal]:
    """Return the loss of each recovery phase over some outages, in their order, and their total."""
    found = {name: _PhaseSums() for name in (REDONE, *(one.words for one in list(RecoveryPhase)[1:-1]))}
    for chain in chains:
        redone = found[REDONE]
        redone.lost, redone.known, redone.of = redone.lost + chain.redone_ns, redone.known + 1, redone.of + 1
        redone.lengths.append(chain.redone_ns)
        redone.apart.append(chain.redone_ns)
        for link in chain.links:
            _add(found, link)
    whole = sum(one.lost for one in found.values())
    rows = [_total(name, one, whole) for name, one in found.items() if one.known]
    count, queued = len(chains), sum(one.queued_ns for one in chains)
    rows.append(PhaseTotal(TOTAL, count, count, whole, 100.0 if whole else None, None, None, None, 0))
    if queued:
        rows.append(PhaseTotal(QUEUED, count, count, queued, None, None, None, None, 0))
    return rows


def _add(found: dict[str, _PhaseSums], link: OutagePhase) -> None:
    for one in link.missing:
        found[one.words].of += 1
    if link.point is RecoveryPhase.CAUGHT_UP:  # Its loss is redone work.
        return
    total = found[link.point.words]
    total.lost, total.known, total.of = total.lost + link.lost_ns, total.known + 1, total.of + 1
    total.lengths.append(link.ns)
    total.several += not link.alone
    if link.alone:
        total.apart.append(link.ns)


def _total(name: str, one: _PhaseSums, whole: int) -> PhaseTotal:
    _, p50, p90 = mean_and_quantiles(one.apart)
    p50_ns, p90_ns = (None if ns is None else round(ns * 1e9) for ns in (p50, p90))
    share = 100 * one.lost / whole if whole else None
    return PhaseTotal(name, one.known, one.of, one.lost, share, p50_ns, p90_ns, max(one.lengths), one.several)


def several_note(rows: Sequence[PhaseTotal]) -> str | None:
    """Return a note on the phases without a median; None if all have one."""
    names = [one.link for one in rows if one.several and one.p50_ns is None]
    if not names:
        return None
    return f"{', '.join(names)}: includes earlier phases whose end is not logged, so the median is unknown"


CHAIN_TABLE = TableDeclaration(
    "chain",
    "the recovery phases of an outage",
    (
        Column("recovery phase", "text", values=attribute("link")),
        Column("took", "text", values=attribute("took")),
        Column("lost", "text", values=attribute("lost")),
        Column("lost to", "text", values=attribute("lost_to"), wraps=True),
        Column("evidence", "text", values=attribute("evidence")),
    ),
)


@dataclass(frozen=True)
class OutagePhaseRow:
    """A row of an outage for people."""

    link: str
    took: str
    lost: str
    lost_to: str
    evidence: str


def chain_sheet(analysis: AnalysisData, chain: OutageTimeline, steps: str = "") -> Sheet:
    """Return an outage by recovery phase. steps: the retrained steps, in words."""
    columns = CHAIN_TABLE.sheet_columns()
    return Sheet(
        title=_title(analysis, chain),
        columns=columns,
        rows=CHAIN_TABLE.of_rows(list(_rows(chain, steps, analysis.table.files))).cells(columns),
        notes=tuple(chain_notes(analysis, chain)),
    )


def chain_sheets(analysis: AnalysisData) -> Iterator[Sheet]:
    """Yield the outages of the window: disruptions that count, planned stops, and a final end."""
    timeline, window = analysis.timeline, analysis.window
    rows = {one.number: one for one in analysis.disruptions}
    shown = 0
    for chain in chains_of(timeline, last=last_failure(timeline) is not None):
        inside = window.start_ns <= chain.start.time < window.end_ns if chain.number is None else chain.number in rows
        if not inside or shown == MOST_CHAINS:
            continue
        shown += 1
        yield chain_sheet(analysis, chain, redone_steps(rows.get(chain.number or 0), timeline.attempts.step_ends))


def redone_steps(row: Disruption | None, step_ends: bool) -> str:
    """Return the steps that were retrained: `steps 21 to 30 again`; "" if unknown."""
    if row is None or row.resumed_step is None or row.last_step is None or row.resumed_step >= row.last_step + 1:
        return ""
    first = row.resumed_step + step_ends
    return (
        f"step {first} again"
        if first == row.last_step
        else f"steps {first} to {row.last_step} again"
        if (first < row.last_step)
        else ""
    )


def _title(analysis: AnalysisData, chain: OutageTimeline) -> str:
    number = int(analysis.timeline.attempts.number[chain.ended])
    if not chain.followed:
        return f"End of attempt {number}: no further attempt"
    if chain.number is None:
        return f"Planned stop after attempt {number} (not included in totals)"
    day, _ = clock(chain.start.time)
    return f"Disruption {chain.number}, {day}: {duration(chain.lost_ns)} lost"


def _rows(chain: OutageTimeline, steps: str, sources: Sequence[str]) -> Iterator[OutagePhaseRow]:
    if chain.redone_ns:
        redone = duration(chain.redone_ns)
        yield OutagePhaseRow(REDONE, redone, redone, f"wasted{': ' * bool(steps)}{steps}", "")
    _, began = clock(chain.start.time)
    yield OutagePhaseRow(RecoveryPhase.LAST_PROGRESS.words, began, "", "", location_text(chain.start.where, sources))
    for link in chain.links:
        mark = " (at most)" if link.at_most else ""
        lost = duration(link.lost_ns) if link.lost_ns and link.point is not RecoveryPhase.CAUGHT_UP else ""
        yield OutagePhaseRow(
            _phase_name(link.point), f"+ {duration(link.ns)}{mark}", lost, "; ".join(_lost_to(link)),
            location_text(link.where, sources),
        )  # fmt: skip
    yield OutagePhaseRow(TOTAL, "", duration(chain.lost_ns), "", "")


def _phase_name(point: RecoveryPhase) -> str:
    """Return the name of the recovery phase that an event ends, as people read it."""
    return "initialized" if point is RecoveryPhase.INITIALISED else point.words


def _lost_to(link: OutagePhase) -> Iterator[str]:
    """Yield the losses in a phase: `wasted`, or `1.00 s downtime, 2.00 s restart`; then further notes."""
    if link.point is RecoveryPhase.CAUGHT_UP:
        yield "see redone work"
        return
    lost = {"wasted": link.wasted_ns, "downtime": link.downtime_ns, "restart": link.restart_ns}
    some = {name: ns for name, ns in lost.items() if ns}
    if len(some) == 1:
        yield next(iter(some))
    elif some:
        yield ", ".join(f"{duration(ns)} {name}" for name, ns in some.items())
    not_lost = {
        "queue time (its own category)": link.queued_ns,
        "wasted by another disruption": link.elsewhere_ns,
        "in other categories": link.uncategorized_ns,
    }
    yield from (name if ns == link.ns else f"{duration(ns)} {name}" for name, ns in not_lost.items() if ns)
    if link.undetermined_ns:
        yield f"{duration(link.undetermined_ns)} of it undetermined"
    missing = [_phase_name(one) for one in link.missing if one in _ALWAYS]
    if missing:
        yield f"{', '.join(missing)}: not logged"
    if link.moved_ns:
        yield f"logged {duration(link.moved_ns)} before the event above"


def chain_notes(analysis: AnalysisData, chain: OutageTimeline) -> Iterator[str]:
    """Yield who restarted the job, the restarts left, and ways to shorten the outage."""
    if chain.followed:
        parts = [f"restarted by: {_restarted_by(chain)}", restarts_words(chain)]
        parts.append(None if chain.nodes is None else chain.nodes.words)
        yield "; ".join(one for one in parts if one)
    if not chain.trained and chain.followed:
        yield "the next attempt did not train; its end is a separate disruption"
    elif chain.caught_up_later:
        yield "training did not catch up before the next disruption"
    if chain.number is not None:
        yield from filter(
            None, (longest_link_words(analysis.timeline, [chain]), waited_words([chain], standby_ns(analysis.timeline)))
        )


def _restarted_by(chain: OutageTimeline) -> str:
    """Return who restarted the job: `launcher (automatic)`, `scheduler`, `a person`, `unknown`."""
    match chain.recovery:
        case "automatic":
            return f"{chain.by} (automatic)" if chain.by else "automatic"
        case "by the scheduler":
            return "scheduler"
        case "by hand":
            return "a person"
        case None:
            return "unknown"


def order_notes(chains: Sequence[OutageTimeline]) -> Iterator[str]:
    """Yield which host clocks are wrong, and how many events are logged out of order."""
    for host, ns in sorted(clocks_apart([one.signs for one in chains]).items()):
        way = "ahead of" if ns > 0 else "behind"
        yield f"the clock of {host} is {duration(abs(ns))} {way} the other hosts; phases are accurate to that amount"
    moved = [link for chain in chains for link in chain.links if link.moved_ns]
    if not moved:
        return
    most = max(one.moved_ns for one in moved)
    lines = f"{plural(len(moved), 'event')} logged out of order, by up to {duration(most)}"
    yield f"{lines}: moved to the time of the preceding event; host clocks may differ"


def recovery_notes(analysis: AnalysisData) -> Iterator[str]:
    """Yield the notes below a list of disruptions: the meaning of *recover*, standby nodes, and lines that are out of
    order."""
    chains = analysis.disruptions.chains
    if any(one is not None and one.recover_ns is not None for one in chains):
        yield (
            f"recover: from the failure until training resumed; {MARK}: at most, because the failure is not logged and "
            "the time counts from the last progress"
        )
    if standby := standby_ns(analysis.timeline):
        yield f"standby nodes: {duration(standby)} of node time in the whole job"
    yield from order_notes([one for one in chains if one is not None])


def by_link_sheet(analysis: AnalysisData, chains: Sequence[OutageTimeline], answer: Callable[[], object]) -> Sheet:
    """Return the loss by recovery phase over all outages that count."""
    rows = link_totals(chains)
    columns = BY_LINK.sheet_columns()
    lost = next(one.lost_ns for one in rows if one.link == TOTAL)
    notes = (
        "a recovery phase runs from one logged event to the next and is named after the event that ends it",
        several_note(rows), *order_notes(chains),
    )  # fmt: skip
    count = plural(len(chains), "disruption")
    return Sheet(
        title=f"Recovery phases of {analysis.job.name}: {duration(lost)} lost in {count}",
        columns=columns,
        rows=BY_LINK.of_rows([one for one in rows if one.link not in (TOTAL, QUEUED)]).cells(columns),
        grouped_rows=tuple(BY_LINK.of_rows(rows).cells(columns)),
        answer=answer,
        notes=tuple(filter(None, notes)),
    )

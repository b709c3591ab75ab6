"""Losses of the outages of a fleet by recovery phase (accounting §10), over all runs; by cause, host, team; and the
time to notice and to recover."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from goodput_cli.analysis.recovery.chain import REDONE
from goodput_cli.analysis.recovery.columns import mean_and_quantiles, recoveries_of
from goodput_cli.analysis.results import Recoveries
from goodput_cli.analysis.sheet import Family
from goodput_cli.analysis.table import column
from goodput_cli.arrays import group_by_key
from goodput_cli.events.signs import RecoveryPhase
from goodput_cli.fleet.results import RunDisruption, RunPhase
from goodput_cli.fleet.rows import declared_table
from goodput_cli.fleet.sums import hours
from goodput_cli.vocabulary.categories import UNKNOWN_CAUSE
from goodput_cli.vocabulary.text import exact

LINKS = (
    REDONE,
    *(one.words for one in RecoveryPhase if one not in (RecoveryPhase.LAST_PROGRESS, RecoveryPhase.CAUGHT_UP)),
)
"""Recovery phases in order."""
_UNKNOWN_HOST, _NO_TEAM = "unknown host", "(none)"
_MOST_GROUPS = 10
"""Number of causes, hosts and teams that are listed, largest loss first."""


@dataclass(frozen=True)
class FleetPhaseRow:
    """A link of all outages of a fleet."""

    link: str = column(
        "text",
        "the phase, named after the event that ends it (docs/accounting.md, section 10)",
        heading="recovery phase",
    )
    known: int = column("count", "outages in which that event is logged", heading="outages")
    lost_ns: int = column("duration", "job time lost in all of them", heading="lost")
    accelerator_hours: float | None = column(
        "number", "the same x accelerators; null if the number is unknown", heading="accelerator h"
    )
    share_percent: float | None = column(
        "percent", "share of the time that all outages lost", name="share", heading="share"
    )
    p50_ns: int | None = column(
        "duration",
        "median duration, over outages in which the event before it is known or cannot occur",
        heading="median",
    )
    p90_ns: int | None = column("duration", "90th percentile of its duration", heading="p90")
    longest_ns: int = column(
        "duration", "longest duration, including outages in which it covers several phases", heading="longest"
    )


@dataclass(frozen=True)
class OutageGroupRow:
    """Outages of one cause, host or team."""

    what: str = column("text", "cause, host or team", heading="what")
    name: str = column("text", "which", heading="name")
    outages: int = column("count", "disruptions that count as outages", heading="outages")
    lost_ns: int = column("duration", "job time that they lost", heading="lost")
    accelerator_hours: float | None = column(
        "number", "the same x accelerators; null if the number is unknown", heading="accelerator h"
    )
    mttr_ns: int | None = column("duration", "mean time to recover; null if none recovered", heading="MTTR")
    time_to_detect_ns: int | None = column("duration", "mean time to detect; null: not logged", heading="detect")
    automatic: int = column("count", "restarted by a launcher or an agent")
    most_lost_in: str | None = column("text", "the phase that lost most", heading="most lost in")


OUTAGE_LINK_TABLE = declared_table(
    FleetPhaseRow, "fleet_outage_link", "a recovery phase over all outages",
    "recovery phase", "outages", "lost", "accelerator h", "share", "median", "p90", "longest",
)  # fmt: skip
OUTAGE_GROUP_TABLE = declared_table(
    OutageGroupRow, "fleet_outage_group", "outages of one cause, host or team",
    "what", "name", "outages", "lost", "accelerator h", "MTTR", "detect", "most lost in",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outage:
    """A disruption that counts, in the fleet."""

    one: RunDisruption
    team: str
    accelerators: int | None
    """Accelerators that were allocated then; None if unknown."""


@dataclass
class Outages:
    """Collector of all outages of a fleet."""

    every: list[Outage] = field(default_factory=list)

    @property
    def known(self) -> bool:
        """Return True if the number of allocated accelerators is known for every outage."""
        return all(one.accelerators is not None for one in self.every)

    def recoveries(self) -> Recoveries | None:
        """Return the times to notice and to recover; None without disruptions."""
        return recoveries_of([one.one for one in self.every]) if self.every else None

    def by_link(self) -> tuple[FleetPhaseRow, ...]:
        """Return the loss of each phase, in order; only phases that appear in a log."""
        found: defaultdict[str, list[tuple[RunPhase, int]]] = defaultdict(list)
        for outage in self.every:
            for link in outage.one.links:
                found[link.link].append((link, link.lost_ns * (outage.accelerators or 0)))
        whole = sum(link.lost_ns for some in found.values() for link, _ in some)
        return tuple(self._row(name, found[name], whole) for name in LINKS if name in found)

    def _row(self, name: str, some: Sequence[tuple[RunPhase, int]], whole: int) -> FleetPhaseRow:
        lost = sum(link.lost_ns for link, _ in some)
        _, p50, p90 = mean_and_quantiles([link.took_ns for link, _ in some if link.alone])
        return FleetPhaseRow(
            name, len(some), lost, hours(sum(chip for _, chip in some)) if self.known else None,
            100 * lost / whole if whole else None, _ns(p50), _ns(p90), max(link.took_ns for link, _ in some),
        )  # fmt: skip

    def by_group(self) -> Iterator[OutageGroupRow]:
        """Yield losses by cause, host and team, largest first; only if there are several."""
        names = {
            "cause": [one.one.cause for one in self.every],
            "host": [one.one.host or _UNKNOWN_HOST for one in self.every],
            "team": [one.team or _NO_TEAM for one in self.every],
        }
        for what, of_each in names.items():
            if set(of_each) <= {UNKNOWN_CAUSE, _UNKNOWN_HOST, _NO_TEAM}:
                continue
            groups = group_by_key((name, outage) for name, outage in zip(of_each, self.every, strict=True))
            rows = [self._group(what, name, some) for name, some in groups.items()]
            yield from sorted(rows, key=lambda row: (-row.lost_ns, row.name))[:_MOST_GROUPS]

    def _group(self, what: str, name: str, some: Sequence[Outage]) -> OutageGroupRow:
        recoveries = recoveries_of([one.one for one in some])
        by_link: Counter[str] = Counter()
        for outage in some:
            by_link.update({link.link: link.lost_ns for link in outage.one.links})
        most = min(by_link, key=lambda link: (-by_link[link], LINKS.index(link)), default=None)
        chip = sum(one.one.lost_ns * (one.accelerators or 0) for one in some)
        return OutageGroupRow(
            what, name, len(some), sum(one.one.lost_ns for one in some), hours(chip) if self.known else None,
            _ns(recoveries.mttr_seconds), _ns(recoveries.mean_time_to_detect_seconds), recoveries.automatic, most,
        )  # fmt: skip


def several_note(rows: Sequence[FleetPhaseRow]) -> tuple[str, ...]:
    """Return a sentence about phases without known percentiles."""
    names = [row.link for row in rows if row.p50_ns is None]
    words = "covers several phases, because the event before it is not logged; so there is no median"
    return (f"{', '.join(names)}: {words}",) if names else ()


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(1e9 * seconds)


def outage_families(links: Sequence[FleetPhaseRow], recoveries: Recoveries | None) -> Iterator[Family]:
    """The metrics of outages."""
    lost = [({"link": row.link}, exact(row.accelerator_hours)) for row in links if row.accelerator_hours is not None]
    yield Family("goodput_fleet_outage_lost_hours", "Accelerator hours that outages lost, by recovery phase.", lost)
    quantiles = () if recoveries is None else (("0.5", recoveries.p50_seconds), ("0.9", recoveries.p90_seconds))
    yield Family(
        "goodput_fleet_time_to_recover_seconds",
        "Time from a failure until training resumes, including queue time.",
        [({"quantile": name}, exact(value)) for name, value in quantiles if value is not None],
    )

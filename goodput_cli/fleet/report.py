"""The answer about a fleet, the sheet that every format shows it by, and its metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from goodput_cli.analysis.sheet import DisplayableAnswer, Family, Labels, PublishedAnswer, Sheet
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.fleet.answer import FleetData
from goodput_cli.fleet.held import SchedulerSummary
from goodput_cli.fleet.phrases import headline, summary, title, warnings_of_runs
from goodput_cli.fleet.recovery import outage_families
from goodput_cli.fleet.rows import FleetCauseRow, GroupTable, category_name
from goodput_cli.fleet.scheduler import SchedulerRow, SchedulerTotals
from goodput_cli.fleet.sums import FleetTotals, LabelledCategory, Totals, hours
from goodput_cli.fleet.tables import runs_sheet, sections_of_runs, sections_of_tables
from goodput_cli.fleet.thresholds import MEASURES
from goodput_cli.vocabulary.text import exact, iso, safe
from goodput_cli.vocabulary.when import NS_PER_SECOND

MOST_GROUPS = 200
"""Number of groups with their own samples; the others are merged."""
OTHER = "other"
_QUANTILES = (50, 95)
Sample = tuple[Labels, float]


def metrics(report: FleetData) -> Iterator[Family]:
    """The families, those without a sample left out."""
    groups, causes, held = [({}, report.sums), *_groups_of(report.groups)], report.causes, report.allocations
    yield from _measures([(labels, Totals(sums, report.mpg)) for labels, sums in groups])
    yield from outage_families(report.outages, report.recoveries)
    families: list[tuple[str, str, Iterable[Sample]]] = [
        ("time_seconds", "Time of all runs by category, each run counted once.", _times(groups)),
        ("accelerator_hours", "Accelerators x time by category.", _chips(groups)),
        ("runs", "Runs with time in the window.", _runs(groups)),
        ("failures_by_cause", "Failures by cause.", _causes(causes)),
        (
            "cause_lost_hours",
            "Hours that failures lost, by cause: accelerator hours, or job hours if accelerators are unknown.",
            _lost(causes),
        ),
        ("cost", "Cost of allocated time without progress, by currency.", _costs(groups)),
        ("cost_by_category", "The cost by category, adding up to goodput_fleet_cost.", _costs_by_category(groups)),
        ("wait_seconds", "Queue waits in scheduler tables.", _waits(held)),
        ("held_hours", "Allocated accelerator hours, by state.", _allocation_samples(held)),
    ]
    for name, meaning, samples in families:
        found = [(labels, exact(value)) for labels, value in samples]
        if found:
            yield Family(f"goodput_fleet_{name}", meaning, found)


def _measures(groups: Sequence[tuple[Labels, Totals]]) -> Iterator[Family]:
    """Yield the measures that gates also judge, of the whole and of each group."""
    for measure in (one for one in MEASURES.values() if one.metric is not None):
        samples: dict[tuple[str, ...], tuple[dict[str, str], str]] = {}
        for labels, totals in groups:
            value = measure.of(totals)
            if value is not None:
                value = value / 100 if measure.dimension == "ratio" else value
                samples.setdefault(tuple(map(safe, labels.values())), (labels, exact(float(value))))
        yield Family(measure.metric or "", measure.meaning, list(samples.values()))


def _groups_of(tables: Sequence[GroupTable]) -> list[tuple[Labels, FleetTotals]]:
    """The groups of the first --by, what lost most first; groups that look the same once they are safe are one."""
    found: dict[tuple[str, ...], tuple[Labels, FleetTotals]] = {}
    for table in tables[:1]:
        names = [re.sub(r"\W", "_", dim, flags=re.ASCII) for dim in table.dims]
        for place, (row, totals) in enumerate(zip(table.rows, table.totals, strict=True)):
            values = row.values if place < MOST_GROUPS else [OTHER] * len(names)
            key = tuple(map(safe, values))
            if key not in found:
                found[key] = (dict(zip(names, values, strict=True)), FleetTotals())
            found[key][1].add(totals.sums)
    return list(found.values())


def _times(groups: Sequence[tuple[Labels, FleetTotals]]) -> Iterator[Sample]:
    for labels, sums in groups:
        for name, ns in _by_category(sums.time).items():
            yield {**labels, "category": name}, float(Fraction(ns, NS_PER_SECOND))


def _chips(groups: Sequence[tuple[Labels, FleetTotals]]) -> Iterator[Sample]:
    for labels, sums in groups:
        for name, ns in _by_category(sums.chip).items() if sums.known_time else ():
            yield {**labels, "category": name}, hours(ns)


def _by_category(amounts: Counter[LabelledCategory]) -> Counter[str]:
    """Return amounts by the name of the category, labels of custom events together: a label may be anything, and series
    are few."""
    found: Counter[str] = Counter()
    for key, ns in amounts.items():
        found[category_name(key).partition(":")[0]] += ns
    return found


def _runs(groups: Sequence[tuple[Labels, FleetTotals]]) -> Iterator[Sample]:
    return ((labels, float(sums.runs)) for labels, sums in groups if sums.runs)


def _causes(causes: Sequence[FleetCauseRow]) -> Iterator[Sample]:
    return (({"cause": one.cause}, float(one.failures)) for one in causes)


def _lost(causes: Sequence[FleetCauseRow]) -> Iterator[Sample]:
    """Yield losses in accelerator hours if those of all runs are known, otherwise in job hours: `of` names the unit."""
    for one in causes:
        if one.accelerator_hours is None:
            yield {"cause": one.cause, "of": "job"}, hours(one.lost_ns)
        else:
            yield {"cause": one.cause, "of": "accelerator"}, one.accelerator_hours


def _costs(groups: Sequence[tuple[Labels, FleetTotals]]) -> Iterator[Sample]:
    for labels, sums in groups:
        for currency, amount in sorted(sums.money.items()) if sums.priced_runs else ():
            yield {**labels, "currency": currency}, float(amount)


def _costs_by_category(groups: Sequence[tuple[Labels, FleetTotals]]) -> Iterator[Sample]:
    """Yield costs as a separate family: with one more label in the other, a sum over it would count
    everything twice."""
    for labels, sums in groups:
        for (currency, category), amount in sorted(sums.costs.items()):
            if amount:
                yield {**labels, "category": category.id, "currency": currency}, float(amount)


def _waits(held: SchedulerSummary | None) -> Iterator[Sample]:
    for labels, amounts in _allocation_groups(held):
        for percentile in _QUANTILES:
            wait = amounts.wait(percentile)
            if wait is not None:
                yield {**labels, "quantile": f"{percentile / 100:g}"}, float(wait / NS_PER_SECOND)


def _allocation_samples(held: SchedulerSummary | None) -> Iterator[Sample]:
    if held is not None:
        for one in held.states:
            if one.accelerator_hours is not None:
                yield {"state": one.state}, one.accelerator_hours


def _allocation_groups(held: SchedulerSummary | None) -> Iterator[tuple[Labels, SchedulerTotals]]:
    """Yield the whole, and its groups; those beyond the first are merged."""
    if held is None:
        return
    yield {}, held.amounts
    found: dict[str, list[SchedulerRow]] = {}
    for table in held.groups[:1]:
        name = "_".join(re.sub(r"\W", "_", dim, flags=re.ASCII) for dim in table.dims)
        for place, (row, amounts) in enumerate(zip(table.rows, table.amounts, strict=True)):
            found.setdefault(safe(row.group) if place < MOST_GROUPS else OTHER, []).extend(amounts.rows)
        yield from (({name: group}, SchedulerTotals(rows, held.end_ns)) for group, rows in found.items())


@dataclass(frozen=True, repr=False)
class FleetReport(FleetData, DisplayableAnswer):
    """The answer about a fleet."""

    def sheet(self) -> Sheet:
        return fleet_sheet(self)

    def rows_sheet(self) -> Sheet:
        return runs_sheet(self)


@dataclass(frozen=True)
class FleetSheet(Sheet):
    """A sheet with the report that it was made from, for formats that show more."""

    report: FleetData | None = None

    def tables(self) -> tuple[Sheet, ...]:
        """Itself, and every run."""
        return (self,) if self.report is None else (self, runs_sheet(self.report))


def fleet_sheet(report: FleetData, thresholds: tuple[Threshold, ...] = ()) -> FleetSheet:
    """Return the sheet with the first --by as the table, or the categories; the others below. For a fleet without a
    training log: allocations and waits of jobs."""
    main, *others = sections_of_tables(report) if report.unlogged else sections_of_runs(report)
    return FleetSheet(
        title=title(report),
        columns=main.columns,
        rows=main.rows,
        answer=lambda: report,
        summary=tuple(summary(report)),
        sections=(*others, *_warnings(report)),
        published=lambda: _published(report, thresholds),
        report=report,
    )


def _warnings(report: FleetData) -> Iterator[Sheet]:
    """Yield the warnings of runs, if there are any."""
    if warnings := warnings_of_runs(report):
        yield Sheet("Warnings", (), (), summary=warnings)


def _published(report: FleetData, thresholds: tuple[Threshold, ...]) -> PublishedAnswer:
    """Goodput, lost hours and failures, whole and by the first --by, and the gates."""
    total = report.total
    figures = {
        "window.start": iso(report.window.start_ns), "window.end": iso(report.window.end_ns),
        "runs": report.coverage.runs,
        "not_analysed": report.coverage.not_analysed, "goodput.percent": total.goodput_percent,
        "goodput.time_percent": total.time_goodput_percent, "lost_hours": total.lost_hours,
        "failures": report.sums.failures,
    }  # fmt: skip
    return PublishedAnswer(
        job="fleet",
        end_ns=report.window.end_ns,
        headline=title(report),
        said=tuple(summary(report)),
        properties=tuple((name, str(value)) for name, value in figures.items() if value is not None),
        thresholds=thresholds,
        diagnostics=report.diagnostics,
        families=tuple(metrics(report)),
        verdict=tuple(headline(report)),
    )

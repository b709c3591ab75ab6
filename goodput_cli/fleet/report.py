"""The answer about a fleet, and the sheet that every format shows it by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from goodput_cli.analysis.sheet import DisplayableAnswer, PublishedAnswer, Sheet
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.fleet.answer import FleetData
from goodput_cli.fleet.metrics import metrics
from goodput_cli.fleet.phrases import headline, summary, title, warnings_of_runs
from goodput_cli.fleet.tables import runs_sheet, sections_of_runs, sections_of_tables
from goodput_cli.vocabulary.text import iso


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

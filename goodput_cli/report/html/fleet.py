"""The page of a fleet: one file, charts drawn as SVG, no script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from goodput_cli.analysis.sheet import Sheet
from goodput_cli.fleet.report.fill import category_rows
from goodput_cli.fleet.report.report import FleetReport
from goodput_cli.fleet.report.rows import CategoryRow
from goodput_cli.fleet.report.sheet import (
    CATEGORIES,
    DISRUPTIONS,
    LEFT_OUT,
    SIZES,
    WEEKS,
    FleetSheet,
    hide_unknown,
    mpg_text,
    rows_sheet,
    runs_sheet,
    summary,
    title,
    where_lost,
)
from goodput_cli.fleet.totals.ratios import hours, percent
from goodput_cli.report.base import Page
from goodput_cli.report.html import fleet_charts as charts
from goodput_cli.report.html.page import document
from goodput_cli.report.messages import diagnostic_lines
from goodput_cli.report.sheets.html import HtmlTable, html_table
from goodput_cli.vocabulary.text import percent as percent_text

_MOST_RUNS = 200


@dataclass(frozen=True)
class _Figure:
    name: str
    drawings: charts.Drawings
    words: str


@dataclass(frozen=True)
class _Part:
    """A section: charts, a table, and tables that open."""

    title: str
    figures: tuple[_Figure, ...] = ()
    table: HtmlTable | None = None
    details: tuple[HtmlTable, ...] = ()
    of_details: str = ""
    """What they are, where there are many."""


def render(sheet: FleetSheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The report as one HTML page."""
    report = sheet.report
    assert report is not None
    total = report.total
    return document(
        "fleet.html",
        title=title(report),
        coverage=list(summary(report))[:2] if report.coverage.known_runs < report.coverage.runs else
        list(summary(report))[:1],
        goodput=_goodput(report),
        tiles=_tiles(report),
        lost=list(where_lost(report)),
        parts=list(_parts(report, sheet)),
        method=[("time zone", report.timezone), *report.method.items()],
        findings=tuple(diagnostic_lines(report.diagnostics)) if total else (),
    )  # fmt: skip


def _goodput(report: FleetReport) -> tuple[str, str]:
    total = report.total
    if total.goodput_percent is None:
        share = total.time_goodput_percent
        words = "goodput by job time; by chip time it is not recorded: nobody says how many accelerators runs hold"
        return ("not recorded" if share is None else percent_text(share)), words
    return percent_text(total.goodput_percent), "goodput by chip time: accelerators x time that became progress"


def _tiles(report: FleetReport) -> list[tuple[str, str, bool]]:
    """Names and figures; what is a sentence is small."""
    sums, total = report.sums, report.total
    tiles = []
    if sums.known_time:
        tiles.append(("lost accelerator hours", _amount(hours(sums.lost)), False))
        tiles.append(("of them while held", _amount(hours(sums.held_lost)), False))
    if total.cost is not None:
        costs = (f"{_amount(float(amount))} {code}" for code, amount in sorted(sums.money.items()))
        tiles.append(("that cost", ", ".join(costs), False))
    tiles.append(("failures", f"{sums.failures:,}", False))
    if sums.availability is not None:
        tiles.append(("availability", percent_text(percent(sums.availability) or 0.0), False))
    mpg = percent(report.mpg.mpg)
    tiles.append(("MPG", mpg_text(report) if mpg is None else percent_text(mpg), mpg is None))
    return tiles


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def _parts(report: FleetReport, sheet: FleetSheet) -> Iterator[_Part]:
    """The sections in the order of the page."""
    sections = {part.title: part for part in sheet.sections}
    known = bool(report.sums.known_time)
    if known:
        words = "Capacity, allocated, kept and ideal accelerator hours; what is outlined is not recorded."
        yield _Part("From capacity to progress", _figures(("factors", charts.factors_chart(report), words)))
    weeks = "Hours of each week by category, goodput as a line. Weeks marked ~ lie in the window in part."
    details = tuple(
        replace(html_table(hide_unknown(_category_sheet(f"What {week.week} went to", sums), known=known)), notes=())
        for week, sums in zip(report.weeks, report.week_sums, strict=True)
        if week.runs
    )
    yield _Part("Weeks", _figures(("weeks", charts.weeks_chart(report), weeks)), _table(sections[WEEKS]), details,
                "What each week went to")  # fmt: skip
    yield _Part(CATEGORIES, (), _table(sections.get(CATEGORIES, sheet)))
    groups = [sheet, *(part for name, part in sections.items() if name.startswith("By "))] if report.groups else []
    for number, part in enumerate(groups):
        heading = f"By {', '.join(report.groups[number].dims)}"
        drawing = charts.groups_chart(report) if number == 0 else None
        words = "Hours without progress by group and category."
        yield _Part(heading, _figures(("groups", drawing, words)), _table(replace(part, title=heading, notes=())))
    failures = "Mean job time to a failure with its 95 % interval; an arrow where no failure was seen."
    sizes = _figures(("failures", charts.failures_chart(report), failures))
    yield _Part("Sizes and failures", sizes, _table(sections[SIZES]))
    for name in (DISRUPTIONS, LEFT_OUT):
        if name in sections:
            yield _Part(name, (), _table(sections[name]))
    scatter = "Goodput of each run against its hours: at most 500 runs, those that lost most."
    runs = html_table(hide_unknown(runs_sheet(report, _MOST_RUNS), known=known))
    yield _Part("Runs", _figures(("runs", charts.runs_chart(report), scatter)), runs)


def _category_sheet(name: str, sums: object) -> Sheet:
    return rows_sheet(name, CategoryRow, category_rows(sums))  # type: ignore[arg-type]


def _table(sheet: Sheet) -> HtmlTable:
    return replace(html_table(sheet, _MOST_RUNS), more=())


def _figures(*drawn: tuple[str, charts.Drawings | None, str]) -> tuple[_Figure, ...]:
    return tuple(_Figure(name, drawings, words) for name, drawings, words in drawn if drawings is not None)

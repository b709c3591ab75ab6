"""The page of a fleet: one file without scripts, with charts drawn as SVG. Names of groups are drawn as text only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

from goodput_cli.analysis.goodput.phrases import diagnostic_lines
from goodput_cli.analysis.sheet import Column, Sheet
from goodput_cli.fleet.answer import FleetData
from goodput_cli.fleet.held import NOT_KNOWN, SchedulerSummary, allocation_sections, sentences
from goodput_cli.fleet.hosts import hosts_that_repeat
from goodput_cli.fleet.phrases import (
    NOT_KNOWN_HERE,
    by_time,
    device_usage_lines,
    largest_losses,
    lost_amount,
    measured,
    not_known,
    reused_name_lines,
    runs_by_loss,
    scheduler_lines,
    title,
    trend,
    warnings_line,
    warnings_of_runs,
)
from goodput_cli.fleet.report import (
    CATEGORIES,
    CAUSES,
    CHANGES,
    DISRUPTIONS,
    HOSTS,
    LEFT_OUT,
    OUTAGE_GROUPS,
    OUTAGES,
    SIZES,
    WEEKS,
    FleetSheet,
    runs_sheet,
)
from goodput_cli.fleet.rows import CATEGORY_TABLE, RunLine, category_rows, grouped
from goodput_cli.fleet.sums import FleetTotals, hours, percent
from goodput_cli.report.base import Page
from goodput_cli.report.html.charts import LOST_COLOUR
from goodput_cli.report.html.drawing import (
    INK,
    Drawing,
    Spec,
    drawing,
    field,
    finished,
    independent,
    layered,
    marks,
    narrowed,
    only,
    sum_of,
)
from goodput_cli.report.html.page import LONG, document
from goodput_cli.report.html.sheet import HtmlTable, html_table, with_links
from goodput_cli.vocabulary.categories import BY_NAME, Category
from goodput_cli.vocabulary.categories import title as category_title
from goodput_cli.vocabulary.text import duration, plural, safe, shorten, tenths
from goodput_cli.vocabulary.text import percent as percent_text
from goodput_cli.vocabulary.when import NS_PER_HOUR

Drawings = tuple[Drawing, ...]
_WIDTH = 820
_MOST_GROUPS, _MOST_RUNS, _NAME = 20, 150, 32
_GOOD = Category.PRODUCTIVE.look.colour
_GOODPUT = category_title(Category.PRODUCTIVE.id)
_SAID = field("said", "N")
_LETTER = 7
_SHORT = {"labelExpr": "datum.label && format(datum.value, datum.value < 1000 ? '~r' : '~s')"}
"""Labels of an axis: 0.5, 20 and 4k. An empty label stays empty."""
_BASE = "https://vega.github.io/vega-datasets/"
_LABELLED = re.compile(r'<path aria-label="([^"]*)" role="[^"]*" aria-roledescription="[^"]*"([^>]*)/>')
"""A mark with a label. The label is escaped for an attribute, so it is safe as text too."""


def factors_chart(report: FleetData) -> Drawings:
    """Return the chart of capacity, allocated, kept and ideal accelerator time, as far as known."""
    sums, mpg = report.sums, report.mpg
    amounts = {
        "capacity": None if not mpg.scheduling else hours(sums.allocated / mpg.scheduling),
        "allocated": hours(sums.allocated),
        "kept training": hours(sums.kept),
        "ideal": None if not mpg.program else hours(sums.kept * mpg.program),
    }
    known = {name: value for name, value in amounts.items() if value is not None}
    shares = {"allocated": mpg.scheduling, "kept training": mpg.runtime, "ideal": mpg.program}
    rows = [
        {"name": name, "hours": value, "text": f"{tenths(value)} h{_of_above(shares.get(name))}"}
        for name, value in known.items()
    ]
    return _bars(rows, "accelerator hours", _GOOD, "factors")


def _bars(rows: Sequence[Mapping[str, Any]], axis: str, colour: str, name: str) -> Drawings:
    """Return a chart with one bar per row and text after each bar."""
    names = [str(row["name"]) for row in rows]
    y = field("name", "N", sort=names, axis={"title": None, "labelLimit": 240, "minExtent": _room_for(names)})
    widest = max(float(row["hours"]) for row in rows)
    scale = {"domain": [0, 1.45 * widest or 1], "nice": False}  # room for the text after the widest bar
    x = field("hours", axis={"title": axis, "tickCount": 6, **_SHORT}, scale=scale)
    word = {"align": "left", "dx": 4, "color": INK, "fontSize": 12}
    said: dict[str, Any] = {"description": _SAID} if "said" in rows[0] else {}
    layers = (
        marks(rows, "bar", {"color": colour}, x=x, y=y, **said),
        marks(rows, "text", word, x=x, y=y, text=field("text", "N")),
    )
    return _drawn(layered(*layers, width=_WIDTH, height=30 * len(rows)), name)


def _of_above(share: Fraction | None) -> str:
    """Return the share of a bar in the bar above it: a factor of MPG."""
    return "" if share is None else f" ({percent_text(float(100 * share))} of the bar above)"


def weeks_chart(report: FleetData) -> Drawings | None:
    """Return the chart of accelerator hours per week by category with goodput; None for a single week."""
    timed = by_time(report)
    if len(report.weeks) < 2:
        return None
    weeks = [week.week + ("~" if week.partial else "") for week in report.weeks]  # includes weeks without a run
    rows = [
        {"week": name, "order": order, **row}
        for name, week, sums in zip(weeks, report.weeks, report.week_sums, strict=True)
        for order, row in enumerate(_amounts(sums, week.week, timed=timed))
    ]
    line = [
        {"week": name, "goodput": value, "said": f"{week.week}: {percent_text(value)} goodput"}
        for name, week in zip(weeks, report.weeks, strict=True)
        if (value := week.time_goodput_percent if timed else week.goodput_percent) is not None
    ]
    axis = {"title": None, "labelAngle": -40, "labelOverlap": True}
    x = field("week", "O", axis=axis, scale={"domain": weeks})
    hours_axis = {"title": "job hours" if timed else "accelerator hours", "minExtent": _room_for(["0.00k"]), **_SHORT}
    percents = field(
        "goodput", scale={"domain": [0, 100]}, axis={"title": "goodput, %", "grid": False, "orient": "right"}
    )
    dots = {"point": {"filled": True, "color": INK}, "color": INK, "strokeWidth": 2}
    layers = (
        marks(
            rows,
            "bar",
            {},
            x=x,
            y=sum_of("hours", axis=hours_axis),
            color=_colour(rows),
            order=field("order"),
            description=_SAID,
        ),
        marks(line, "line", dots, x=x, y=percents, description=_SAID),
    )
    return _drawn(layered(*layers, **independent("y"), width=_WIDTH, height=260), "weeks")


def groups_chart(report: FleetData) -> Drawings | None:
    """Return the chart of lost accelerator hours of the first --by, by category."""
    table = report.groups[0]
    timed = by_time(report)
    rows: list[dict[str, str | float]] = []
    order: list[str] = []
    for row, totals in list(zip(table.rows, table.totals, strict=True))[:_MOST_GROUPS]:
        name = shorten(safe(row.group), _NAME)
        order.append(name)
        amounts = _amounts(totals.sums, shorten(safe(row.group), LONG), timed=timed)
        rows += [{"group": name, **one} for one in amounts if one["category"] != _GOODPUT]
    if not rows:
        return None
    y = field("group", "N", sort=order, axis={"title": None, "labelLimit": 240, "minExtent": _room_for(order)})
    title_of_x = "lost job hours" if timed else "lost accelerator hours"
    x = sum_of("hours", axis={"title": title_of_x, "tickCount": 8, **_SHORT})
    chart = marks(rows, "bar", {}, x=x, y=y, color=_colour(rows), description=_SAID)
    return _drawn({**chart, "width": _WIDTH, "height": max(24 * len(order), 60)}, "groups")


def _colour(rows: Sequence[Mapping[str, Any]]) -> Spec:
    """Return the colors of the categories, with a legend below."""
    names = list(dict.fromkeys(str(row["category"]) for row in rows))
    colours = {category_title(name): category.look.colour for name, category in BY_NAME.items()}
    scale = {"domain": names, "range": [colours[name] for name in names]}
    names_below = {"title": None, "orient": "bottom", "columns": 4, "labelLimit": 180, "columnPadding": 40}
    return field("category", "N", scale=scale, legend=names_below)


def failures_chart(report: FleetData) -> Drawings | None:
    """Return the chart of mean time to failure by size, with its interval; an arrow if only the lower end is known."""
    rows = [
        {
            "size": row.size,
            "mttf": None if row.mttf_ns is None else row.mttf_ns / NS_PER_HOUR,
            "low": row.mttf_low_ns / NS_PER_HOUR,
            "high": (row.mttf_low_ns * 4 if row.mttf_high_ns is None else row.mttf_high_ns) / NS_PER_HOUR,
            "open": row.mttf_high_ns is None,
        }
        for row in report.sizes
        if row.mttf_low_ns
    ]
    if not rows:
        return None
    x = field("size", "N", sort=[row["size"] for row in rows], axis={"title": "accelerators", "labelAngle": -40})
    scale = {"type": "log", "nice": True}
    axis = {"title": "job hours to failure", "tickCount": 6, "format": "~r"}
    arrow = {"size": 110, "shape": "triangle-up", "filled": True, "color": INK}
    point = {"size": 90, "filled": True, "color": _GOOD}
    layers = (
        marks(rows, "rule", {"strokeWidth": 2, "color": INK}, x=x, y=field("low", scale=scale, axis=axis), y2="high"),
        marks(rows, "point", point, only("!datum.open"), x=x, y=field("mttf", scale=scale, axis=axis)),
        marks(rows, "point", arrow, only("datum.open"), x=x, y=field("high", scale=scale, axis=axis)),
    )
    return _drawn(layered(*layers, width=_WIDTH, height=220), "failures")


def causes_chart(report: FleetData) -> Drawings | None:
    """Return the chart of losses through failures: one bar per cause, with the number of failures."""
    rows = report.causes
    if not rows:
        return None
    known = all(row.accelerator_hours is not None for row in rows)
    amounts = [float(row.accelerator_hours or 0) if known else row.lost_ns / NS_PER_HOUR for row in rows]
    words = [
        f"{_amount(amount)} h, {plural(row.failures, 'failure')}" for row, amount in zip(rows, amounts, strict=True)
    ]
    bars = [
        {"name": row.cause, "hours": amount, "text": text, "said": f"{row.cause}: {text}"}
        for row, amount, text in zip(rows, amounts, words, strict=True)
    ]
    return _bars(bars, "lost accelerator hours" if known else "lost job hours", LOST_COLOUR, "causes")


def runs_chart(report: FleetData, pages: Mapping[RunKey, str] = MappingProxyType({})) -> Drawings | None:
    """Return the chart of goodput against length of the runs that lost most. Each links to its page, if it has one."""
    known = [row for row in runs_by_loss(report) if row.goodput_percent is not None]
    timed = by_time(report)
    rows = []
    for row in known[:_MOST_RUNS]:
        amount = row.ns / NS_PER_HOUR if timed else hours(int(row.chip_ns or 0))
        if amount > 0:
            page = pages.get((row.job, row.run))
            rows.append(
                {"hours": amount, "goodput": row.goodput_percent, "name": _run_label(row, amount), "page": page}
            )
    if len(rows) < 2:
        return None
    axis = {"title": "job hours" if timed else "accelerator hours", "tickCount": 8, **_SHORT}
    x = field("hours", scale={"type": "log"}, axis=axis)
    y = field("goodput", scale={"domain": [0, 100]}, axis={"title": "goodput, %"})
    look = {"size": 36, "filled": True, "fillOpacity": 0.6, "strokeWidth": 0, "color": _GOOD}
    more: dict[str, Any] = {"href": field("page", "N")} if pages else {}
    chart = marks(rows, "point", look, x=x, y=y, description=field("name", "N"), **more)
    return _drawn({**chart, "width": _WIDTH, "height": 260}, "runs")[:1]  # one point per run: keep the page small


def _run_label(row: RunLine, amount: float) -> str:
    """Return the label of a run: `llm-7b #2, search: 74.20 % of 1,024.0 h`."""
    number = f" #{row.run}" if row.runs > 1 and row.run else ""
    team = f", {shorten(safe(row.team), _NAME)}" if row.team else ""
    job, goodput = shorten(safe(row.job), _NAME), percent_text(row.goodput_percent or 0.0)
    return f"{job}{number}{team}: {goodput} of {tenths(amount)} h"


def _amounts(sums: FleetTotals, name: str, *, timed: bool) -> list[dict[str, str | float]]:
    """Return hours by category with the titles of the legend, productive first. Excluded and negative time is left out.
    name: the owner of the hours; the label of a mark begins with it, and only the category follows its last `: `."""
    source = sums.time if timed else sums.chip
    keys = sorted(source, key=lambda key: (key[0] != Category.PRODUCTIVE, key[0]))
    found: dict[str, float] = {}
    for key in keys:
        if key[0] != Category.EXCLUDED and source[key] > 0:
            title = category_title(key[0].id)  # all custom events share one title
            found[title] = found.get(title, 0.0) + hours(source[key])
    return [
        {"category": title, "hours": amount, "said": f"{name}: {tenths(amount)} h of {title}"}
        for title, amount in found.items()
    ]


def _room_for(names: Iterable[str]) -> int:
    """Return the width in dots for names next to an axis: letters of the page are wider than those of the layout."""
    return _LETTER * max(map(len, names), default=0) + 8


def _drawn(chart: Spec, name: str) -> Drawings:
    """Return the chart and its version for a phone. The label of each mark is its tooltip, except on a phone without a
    mouse."""
    spec, name = finished(chart), f"fleet-{name}"
    titled, unlabelled = (
        partial(_labels_become, r"<path\2><title>\1</title></path>"),
        partial(_labels_become, r"<path\2/>"),
    )
    return drawing(spec, None, name, titled), drawing(narrowed(spec), None, f"{name}-narrow", unlabelled)


def _labels_become(written: str, svg: str) -> str:
    """Return a chart with tooltips and links in the form of the page. Links in a site are relative: the library
    prepends its base URL."""
    return _LABELLED.sub(written, svg).replace(f'xlink:href="{_BASE}', 'href="')


_MOST_ROWS = 200
RunKey = tuple[str, int] | str
"""A run by its job and number, or by its unique name."""


_Figure = tuple[str, Drawings, str]
"""Name, chart, and its content in words."""


@dataclass(frozen=True)
class _Part:
    """A section: charts, a table, and a folded table."""

    title: str
    figures: tuple[_Figure, ...] = ()
    table: HtmlTable | None = None
    details: HtmlTable | None = None

    @property
    def first(self) -> bool:
        """Return True if a site shows it before its runs: weeks, if there are several."""
        return self.title == WEEKS and bool(self.figures)


def render(sheet: FleetSheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """Return the report as one HTML page."""
    return fleet_page(sheet, "fleet.html")


def fleet_page(
    sheet: FleetSheet,
    template: str,
    *,
    every_run: bool = False,
    pages: Mapping[RunKey, str] = MappingProxyType({}),
    **more: Any,
) -> str:
    """Return the page by a template that may show more. every_run: the template has a table of all runs, so the page
    needs no second one. pages: addresses for the runs that tables name."""
    report = sheet.report
    assert report is not None
    return document(
        template,
        **more,
        title=title(report),
        coverage=_coverage(report),
        goodput=_goodput(report),
        tiles=_tiles(report),
        lost=[
            *([] if report.unlogged else scheduler_lines(report)),
            *largest_losses(report),
            *hosts_that_repeat(report.hosts, report.host_test),
        ],
        warnings=warnings_line(report),
        warnings_of_runs=warnings_of_runs(report),
        parts=list(_parts(report, sheet, pages, every_run=every_run)),
        method=[
            ("time zone", report.window.timezone),
            *report.method.items(),
            *([(NOT_KNOWN_HERE, ", ".join(lacking))] if (lacking := list(not_known(report))) else []),
        ],
        findings=tuple(diagnostic_lines(report.diagnostics)),
    )


def _coverage(report: FleetData) -> list[str]:
    """Return the time and the runs that the page covers."""
    if report.unlogged and report.allocations is not None:
        return [f"{name} {words}" for name, words in sentences(report.allocations) if name != "GOODPUT"]
    return [*measured(report), *reused_name_lines(report), *device_usage_lines(report)]


def _goodput(report: FleetData) -> tuple[str, str]:
    total = report.total
    if report.unlogged:
        return "unknown", NOT_KNOWN.removeprefix("unknown: ")
    if by_time(report):
        share, words = total.time_goodput_percent, "goodput by job time: runs are weighed by their length only"
    else:
        share, words = total.goodput_percent, "goodput by chip time: productive share of accelerators x time"
    return ("unknown" if share is None else percent_text(share)), words + trend(report)


def _tiles(report: FleetData) -> list[tuple[str, str, bool]]:
    """Return names and figures; True for sentences, which are printed small."""
    sums = report.sums
    if report.unlogged and report.allocations is not None:
        return _scheduler_tiles(report.allocations)
    tiles = [
        (f"lost {'job' if by_time(report) else 'accelerator'} hours", lost_amount(sums, by_time=by_time(report)), False)
    ]
    if not by_time(report) and sums.lost_while_allocated != sums.lost:
        tiles.append(("of them while allocated", tenths(hours(sums.lost_while_allocated)), False))
    if report.total.cost is not None:
        tiles.append(("cost", grouped(report.total.cost), False))
    tiles.append(("failures", f"{sums.failures:,}", False))
    if sums.availability is not None:
        tiles.append(("availability", percent_text(percent(sums.availability) or 0.0), False))
    mpg = percent(report.mpg.mpg)
    if mpg is not None:
        tiles.append(("MPG", percent_text(mpg), False))
    return tiles


def _scheduler_tiles(found: SchedulerSummary) -> list[tuple[str, str, bool]]:
    """Return the tiles of a fleet with scheduler data only."""
    total = found.total
    tiles = (
        [("accelerator hours allocated", _amount(total.accelerator_hours), False)] if total.accelerator_hours else []
    )
    if total.wait_p50_ns is not None and total.wait_p95_ns is not None:
        tiles += [("p50 wait", duration(total.wait_p50_ns), False), ("p95 wait", duration(total.wait_p95_ns), False)]
    tiles += [("never started", f"{total.never_started:,}", False), ("requeued", f"{total.requeued_jobs:,}", False)]
    return tiles


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else tenths(value)


def _parts(report: FleetData, sheet: FleetSheet, pages: Mapping[RunKey, str], *, every_run: bool) -> Iterator[_Part]:
    """Yield the sections in the order of the page: scheduler data before logs."""
    if report.allocations is not None:
        yield from (_Part(one.title, (), _table(one)) for one in allocation_sections(report.allocations))
    if not report.unlogged:
        yield from _parts_of_logs(report, sheet, pages, every_run=every_run)
    else:
        yield from (_Part(one.title, (), _table(one)) for one in sheet.sections if one.title == LEFT_OUT)


def _parts_of_logs(
    report: FleetData, sheet: FleetSheet, pages: Mapping[RunKey, str], *, every_run: bool
) -> Iterator[_Part]:
    """Yield the sections from logs in the order of the page."""
    sections = {part.title: part for part in sheet.sections}
    known = bool(report.sums.known_time)
    if known:
        words = "Capacity, allocated, kept and ideal accelerator hours, as far as known."
        yield _Part("From capacity to progress", _figures("factors", factors_chart(report), words))
    weeks = "Hours of each week by category, with goodput as a line. Weeks marked ~ are only partly in the window."
    details = html_table(_categories_of_weeks(report))
    yield _Part("Weeks", _figures("weeks", weeks_chart(report), weeks), _table(sections[WEEKS]), details)
    if report.change is not None:
        changed = [pages.get(row.name) if row.what == "run" else None for row in report.change.rows]
        yield _Part(CHANGES, (), with_links(_table(sections[CHANGES]), "name", changed))
    yield _Part(CATEGORIES, (), _table(sections.get(CATEGORIES, sheet)))
    groups = [sheet, *(part for name, part in sections.items() if name.startswith("By "))] if report.groups else []
    for number, part in enumerate(groups):
        heading = f"By {', '.join(report.groups[number].dims)}"
        drawing = groups_chart(report) if number == 0 else None
        words = "Hours without progress by group and category."
        yield _Part(heading, _figures("groups", drawing, words), _table(replace(part, title=heading, notes=())))
    failures = "Mean job time to failure with its 95 % interval. An arrow means that no failure was logged."
    sizes = _figures("failures", failures_chart(report), failures)
    yield _Part("Sizes and failures", sizes, _table(sections[SIZES]))
    causes = "Time lost to failures by cause, and their number. Unknown: the cause is not logged."
    for name in (CAUSES, HOSTS, OUTAGES, OUTAGE_GROUPS, DISRUPTIONS, LEFT_OUT):
        if name in sections:
            figures = _figures("causes", causes_chart(report), causes) if name == CAUSES else ()
            table = _table(sections[name])
            if name == DISRUPTIONS:
                table = with_links(table, "job", [pages.get((row.job, row.run)) for row in report.disruptions])
            yield _Part(name, figures, table)
    scatter = f"Goodput of each run against its hours (at most {_MOST_RUNS} runs, those that lost most)."
    runs = None if every_run else html_table(runs_sheet(report, _MOST_ROWS))
    dots = runs_chart(report, pages)
    if dots is not None or runs is not None:
        yield _Part("Runs", _figures("runs", dots, scatter), runs)


def _categories_of_weeks(report: FleetData) -> Sheet:
    """Return the share of each category in each week: one row per category, one column per week with runs."""
    timed = by_time(report)
    weeks = [(week.week, sums) for week, sums in zip(report.weeks, report.week_sums, strict=True) if week.runs]
    shares = [
        {row.category: row.time_share_percent if timed else row.share_percent for row in category_rows(sums)}
        for _, sums in weeks
    ]
    names = [row.category for row in category_rows(report.sums) if any(row.category in share for share in shares)]
    of_what = "job time" if timed else "accelerator hours"
    return Sheet(
        f"Categories of each week, as shares of its {of_what}",
        (CATEGORY_TABLE.sheet_columns()[0], *(Column(week, "percent") for week, _ in weeks)),
        [(name, *(share.get(name) for share in shares)) for name in names],
    )


def _table(sheet: Sheet) -> HtmlTable:
    return replace(html_table(sheet, _MOST_ROWS), more=())


def _figures(name: str, drawings: Drawings | None, words: str) -> tuple[_Figure, ...]:
    return () if drawings is None else ((name, drawings, words),)

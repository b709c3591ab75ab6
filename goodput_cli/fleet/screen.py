"""First screen of a fleet report on a terminal: progress, largest losses and their location; in 24 lines of 80 columns.

Everything else is under `--full`. It adds no wording: words and figures are those of the report, of its page and of
JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from goodput_cli.analysis.sheet import Sheet
from goodput_cli.fleet.answer import FleetData
from goodput_cli.fleet.held import MOST_STATES, allocation_sections, sentences
from goodput_cli.fleet.hosts import hosts_that_repeat
from goodput_cli.fleet.phrases import by_time, device_usage_lines, lost_words, title, trend, warnings_line
from goodput_cli.fleet.report import FleetSheet
from goodput_cli.fleet.rows import WEEK_TABLE, category_name
from goodput_cli.fleet.sums import PRODUCTIVE, hours, percent
from goodput_cli.fleet.tables import WEEKS, group_section, section
from goodput_cli.vocabulary.categories import Category, brief_name
from goodput_cli.vocabulary.text import clock, plural, tenths
from goodput_cli.vocabulary.text import percent as percent_text

_MOST_ROWS, _MOST_LOSSES = 6, 3
_REST = "more: --full (weeks, sizes, causes, hosts, disruptions), -o site/ (a page for each run)"
_REST_UNLOGGED = "more: -o fleet.html shows every column"


def first_screen(sheet: FleetSheet) -> Sheet:
    """The first screen of a fleet. sheet: the whole, whose gates and answer it keeps."""
    report = sheet.report
    assert report is not None
    table, left = _table(report)
    short = replace(
        sheet, title=_title(report), columns=table.columns, rows=table.rows, summary=tuple(_lines(report)),
        sections=(), notes=(*([left] if left else []), _REST_UNLOGGED if report.unlogged else _REST),
    )  # fmt: skip
    return replace(short, report=None)


def _title(report: FleetData) -> str:
    if report.unlogged:
        return title(report)
    jobs = len({one.job for one in report.runs})
    (first, _), (last, _) = clock(report.window.start_ns), clock(report.window.end_ns - 1)
    runs = plural(len(report.runs), "run")
    what = runs if jobs == len(report.runs) else f"{runs} of {plural(jobs, 'job')}"
    return f"Fleet: {what}, {first} - {last} ({plural(len(report.weeks), 'week')})"


def _lines(report: FleetData) -> Iterator[str]:
    if report.unlogged and report.allocations is not None:
        yield from (f"{name:<10} {words}" for name, words in sentences(report.allocations, MOST_STATES))
        return
    timed, total = by_time(report), report.total
    share = total.time_goodput_percent if timed else total.goodput_percent
    weighed = "by job time (to weigh by size: --labels or --accelerators)" if timed else "by chip time"
    yield f"GOODPUT  {'not recorded' if share is None else percent_text(share)}{trend(report)} {weighed}"
    yield f"LOST     {lost_words(report, by_time=timed)}"
    yield from _losses(report, timed=timed)
    if report.allocations is not None:
        yield from (
            f"{name:<8} {words}" for name, words in sentences(report.allocations) if name in ("waited", "waiting")
        )
    yield from device_usage_lines(report)
    yield from list(hosts_that_repeat(report.hosts, report.host_test))[:1]
    if (warnings := warnings_line(report)) is not None:
        yield f"{warnings} (--full lists them)"
    if report.not_analysed:
        yield f"{len(report.not_analysed):,} documents, jobs or runs are not in the totals (--full lists the reasons)"


def _losses(report: FleetData, *, timed: bool) -> Iterator[str]:
    """The categories that took most, a line each."""
    sums = report.sums
    source = sums.time if timed else sums.chip
    lost = sum(ns for (kind, _), ns in source.items() if kind not in (Category.PRODUCTIVE, Category.EXCLUDED))
    found = [(ns, category_name(key)) for key, ns in source.items() if key != PRODUCTIVE and ns > 0
             and key[0] is not Category.EXCLUDED]  # fmt: skip
    if len(found) < 2:
        return  # the line above already contains it
    for ns, name in sorted(found, key=lambda one: (-one[0], one[1]))[:_MOST_LOSSES]:
        yield f"{tenths(hours(ns)):>10} h  {percent_text(percent(Fraction(ns, lost)) or 0.0):>8}  {brief_name(name)}"


def _table(report: FleetData) -> tuple[Sheet, str]:
    """The first --by, else the latest weeks; and how many rows it leaves out, in words."""
    if report.unlogged and report.allocations is not None:
        table = next(iter(allocation_sections(report.allocations)))
    elif report.groups:
        table = group_section(report, report.groups[0])
    else:
        weeks = [week for week in report.weeks if week.runs]
        table = section(report, WEEKS, WEEK_TABLE, weeks[-_MOST_ROWS:])
        earlier = len(weeks) - len(table.rows)
        return table, f"{plural(earlier, 'earlier week')} (--full)" if earlier else ""
    more = len(table.rows) - _MOST_ROWS
    return replace(
        table, rows=list(table.rows)[:_MOST_ROWS]
    ), f"{plural(more, 'more row')} (--full)" if more > 0 else ""

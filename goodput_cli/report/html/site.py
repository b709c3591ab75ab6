"""A fleet as a site for any web server: `index.html` with a table of all runs that sorts and filters, and a page per
run.

Every page is written atomically. The pages of runs come before the index that links to them, and pages of removed runs
are deleted last. So nobody who reads the directory meanwhile finds an incomplete page or a dead link. `site.json`
records the input of each page, so that only changed pages are drawn again.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.arrays import group_by_key
from goodput_cli.errors import GoodputError, UsageError, not_written
from goodput_cli.fleet.phrases import by_time, runs_by_loss
from goodput_cli.fleet.report import FleetSheet
from goodput_cli.fleet.rows import RunLine, WeekRow, grouped, run_name, run_number_text
from goodput_cli.fleet.sums import hours
from goodput_cli.report.base import Page
from goodput_cli.report.html.analysis import render as render_run
from goodput_cli.report.html.fleet import RunKey, fleet_page
from goodput_cli.report.html.page import resource
from goodput_cli.vocabulary.categories import UNKNOWN_CAUSE, brief_name
from goodput_cli.vocabulary.text import duration, iso, percent, plural, safe, tenths
from goodput_cli.whole_file import lock_folder, write_whole

INDEX, _RUNS, _MADE_OF = "index.html", "runs", "site.json"
_KIND = "goodput fleet site"
_BACK = f"../{INDEX}"
_SLUG = 40
_MOST_COSTS = 8
_MOST_OTHERS = 20
_DASH = "-"


@dataclass(frozen=True)
class ListedRun:
    """A run as a row of the table of runs."""

    row: RunLine
    href: str | None
    """Address of its page; None if it could not be drawn."""
    costs: Mapping[str, int]
    """Cost in ns by kind of insight; empty if the run has no page."""


@dataclass(frozen=True)
class RunColumn:
    """A column of the table of runs. key: its name in addresses of the page. text: of a cell, empty if not recorded.
    number: True if sorted by size."""

    head: str
    key: str
    text: Callable[[RunLine], str]
    number: bool = False


COLUMNS = (
    RunColumn("job", "job", lambda row: row.job),
    RunColumn("run", "run", run_number_text),
    RunColumn("team", "team", lambda row: row.team or ""),
    RunColumn("start (UTC)", "start", lambda row: iso(row.start_ns)[:16].replace("T", " ")),
    RunColumn("length", "length", lambda row: duration(row.ns), number=True),
    RunColumn("goodput", "goodput", lambda row: _known(row.goodput_percent, percent), number=True),
    RunColumn("most lost to", "lost", lambda row: brief_name(row.most_lost_to) if row.most_lost_to else ""),
    RunColumn("why", "cause", lambda row: row.causes),
    RunColumn("lost h", "hours", lambda row: _known(row.lost_hours, tenths), number=True),
    RunColumn("lost job h", "time", lambda row: tenths(hours(row.lost_ns)), number=True),
    RunColumn("cost", "cost", lambda row: grouped(row.cost or ""), number=True),
    RunColumn("ended", "ended", lambda row: (row.ending or "").replace("_", " ")),
)
_BY_TIME, _BY_CHIPS = "lost job h", "lost h"
"""Columns that exclude each other: lost hours if accelerators are known, else lost job hours."""


@dataclass(frozen=True)
class DrawnPage:
    """Record of a page that was drawn."""

    made_of: str
    costs: dict[str, int]
    """Cost to the run in ns, by kind of insight."""


def make_folder(folder: Path) -> None:
    """Create the directory. Raises UsageError unless it is empty or a site of this program, since nothing else is ever
    overwritten; GoodputError if it is not writable."""
    if not folder.parent.is_dir():
        raise UsageError(f"{folder}/: the folder {folder.parent} does not exist", tip="create it first")
    _make(folder)
    begun = f".{_MADE_OF}."  # by another process that writes the first file of the same site
    if any(not path.name.startswith(begun) for path in folder.iterdir()) and _made_of(folder) is None:
        raise UsageError(f"{folder}/: contains files that are not a goodput fleet site", tip="use an empty folder")
    if not os.access(folder, os.W_OK):
        raise GoodputError(f"{folder}/: no permission to write to this folder")


def _make(folder: Path) -> None:
    """Create a directory, unless it exists."""
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        raise UsageError(f"{folder}/: is a file", tip="use a folder for the site") from None
    except OSError as error:
        raise not_written(f"{folder}/", error) from error


def write_site(
    folder: Path, sheet: FleetSheet, analyse: Callable[[RunLine], Analysis], versions: Mapping[str, str], made_by: str
) -> list[str]:
    """Write the site and return sentences: what was done, and which runs have no page, with the reason.

    analyse: returns the analysis of a run. versions: by URI, a value that changes with the document; a run without such
    values is drawn each time. made_by: further input of the pages, such as options and the version of the code. Raises
    GoodputError if a file cannot be written.
    """
    make_folder(folder)
    with lock_folder(folder) as alone:
        return _write(folder, sheet, analyse, versions, made_by, alone=alone)


def _write(
    folder: Path, sheet: FleetSheet, analyse: Callable[[RunLine], Analysis], versions: Mapping[str, str], made_by: str,
    *, alone: bool,
) -> list[str]:  # fmt: skip
    """Write the site into an existing directory. alone: True if no other process writes this site at the same time."""
    report = sheet.report
    assert report is not None
    before, now, failed = _made_of(folder) or {}, dict[str, DrawnPage](), list[str]()
    listed, drawn = list[ListedRun](), 0
    _note(folder, before)  # first: other processes recognize the directory by it
    _make(folder / _RUNS)
    of_job = group_by_key((row.job, row) for row in report.runs)
    for row in runs_by_loss(report):
        name, page = _page_name(row), _page_of(row, of_job[row.job])
        made_of = _hash(made_by, str(row.accelerators), page.which, repr(page.others), *_versions(row, versions))
        stays = name in before and before[name].made_of == made_of and (folder / name).exists()
        if stays and all(versions.get(one) for one in row.documents):
            now[name] = before[name]
        else:
            try:
                analysis = analyse(row)
                text, cost = render_run(analysis, page), costs_of(analysis)
            except GoodputError as error:
                failed.append(f"{safe(row.job)}: {error}")
                of_job[row.job].remove(row)
                listed.append(ListedRun(row, None, {}))
                continue
            write_whole(folder / name, text, force=True)
            now[name] = DrawnPage(made_of, cost)
            drawn += 1
        listed.append(ListedRun(row, name, now[name].costs))
    with_pages = [one.row for one in listed if one.href is not None]
    for row in (row for row in with_pages if failed and row.runs > 1):  # no links to failed pages
        page = _page_of(row, of_job[row.job])
        write_whole(folder / _page_name(row), render_run(analyse(row), page), force=True)
    write_whole(folder / INDEX, _index(sheet, listed), force=True)
    _note(folder, now)
    there = {f"{_RUNS}/{path.name}" for path in (folder / _RUNS).iterdir()} if alone else set()
    gone = [name for name in {**before, **dict.fromkeys(filter(_PAGE.fullmatch, there))} if name not in now]
    for name in gone:  # includes pages of an interrupted run
        (folder / name).unlink(missing_ok=True)
    left = f", {plural(len(gone), 'page')} of former runs removed" if gone else ""
    return [f"{INDEX} and {plural(len(now), 'run page')} ({drawn} updated{left})", *failed]


def _index(sheet: FleetSheet, listed: Sequence[ListedRun]) -> str:
    """Return the page that links to all others."""
    report = sheet.report
    assert report is not None
    timed = by_time(report)
    costs = cost_rows(((one.row, one.href, one.costs) for one in listed if one.href is not None), by_time=timed)
    cells = {column: [column.text(one.row) for one in listed] for column in COLUMNS}
    nothing = {"", UNKNOWN_CAUSE}  # an unknown cause needs no column
    kept = [one for one in COLUMNS if set(cells[one]) - nothing and one.head != (_BY_CHIPS if timed else _BY_TIME)]
    rows = zip(listed, zip(*(cells[column] for column in kept), strict=True), strict=True)
    return fleet_page(
        sheet,
        "site.html",
        scripts=(resource("site.js"),) if listed else (),
        more_style=resource("site.css") + _columns_style(kept),
        every_run=True,
        pages=dict(_pages((one.row, one.href) for one in listed if one.href is not None)),
        costs=costs,
        costs_of="job" if timed else "accelerator",
        weeks=[week.week for week in report.weeks],
        runs=[(one.href, texts, _week_numbers(report.weeks, one.row), _kinds(costs, one)) for one, texts in rows],
        heads=kept,
    )


def _week_numbers(weeks: Sequence[WeekRow], row: RunLine) -> str:
    """Return the numbers, from 1, of the weeks that a run overlaps."""
    inside = (week.start_ns < row.end_ns and row.start_ns < week.end_ns for week in weeks)
    return " ".join(str(number) for number, lies in enumerate(inside, 1) if lies)


def _kinds(costs: Sequence[Mapping[str, Any]], one: ListedRun) -> str:
    """Return the numbers, from 1, of the most costly kinds of insight that have a cost in this run."""
    return " ".join(str(number) for number, row in enumerate(costs, 1) if one.costs.get(row["code"], 0) > 0)


def _pages(drawn: Iterable[tuple[RunLine, str]]) -> Iterator[tuple[RunKey, str]]:
    """Yield the page for each key that names one run only; keys that several runs share are left out."""
    keys: dict[RunKey, list[str]] = {}
    for row, page in drawn:
        for key in ((row.job, row.run), run_name(row)):
            keys.setdefault(key, []).append(page)
    return ((key, pages[0]) for key, pages in keys.items() if len(pages) == 1)


def _columns_style(columns: Sequence[RunColumn]) -> str:
    """Return the style of the columns: numbers are aligned right and keep their unit, and cells in cards begin with
    their heading. It is set once per column: once per cell would be half of the page."""
    rules = []
    for place, column in enumerate(columns, 1):
        cell = f"#every-run tbody tr > :nth-child({place})"
        if column.number:
            rules.append(f"{cell} {{ text-align: right; white-space: nowrap; }}")
        rules.append(f"@media (max-width: 40rem) {{ {cell}::before {{ content: '{column.head} '; }} }}")
    return "\n".join(rules)


def costs_of(analysis: Analysis) -> dict[str, int]:
    """Return the cost in ns by kind of insight: what was lost, and apart from it the time that counts as goodput."""
    costs: Counter[str] = Counter()
    for insight in analysis.insights:
        costs[insight.code] += insight.ns - insight.in_goodput_ns
        costs[insight.code + _WITHIN] += insight.in_goodput_ns
    return {code: ns for code, ns in costs.items() if ns}


_WITHIN = ":within"
"""Suffix of a kind's time that counts as goodput."""


def cost_rows(costs: Iterable[tuple[RunLine, str, Mapping[str, int]]], *, by_time: bool) -> list[dict[str, Any]]:
    """Return the most costly kinds of insight over all runs, most costly first. Kinds do not overlap, since no second
    is in two insights. amount: accelerator hours or job hours, in tenths. job, href: the run with the highest cost, and
    its page; share: its part of the sum.

    costs: a run, its page and its `costs_of`. by_time: every run counts by its time alone; otherwise runs with an
    unknown number of accelerators are left out.
    """
    parts: dict[str, list[tuple[int, RunLine, str]]] = {}
    for row, href, of_run in costs:
        weight = 1 if by_time else row.accelerators or 0
        for code, ns in of_run.items():
            if code.removesuffix(_WITHIN) in BY_CODE and ns * weight > 0:
                parts.setdefault(code, []).append((ns * weight, row, href))
    rows = []
    for code, of_kind in sorted(parts.items(), key=lambda one: -sum(amount for amount, *_ in one[1])):
        whole, (most, row, href) = sum(amount for amount, *_ in of_kind), max(of_kind, key=lambda one: one[0])
        kind, within = BY_CODE[code.removesuffix(_WITHIN)], ", within goodput" * code.endswith(_WITHIN)
        rows.append(
            {
                "code": code,
                "title": kind.title + within,
                "amount": tenths(hours(whole)),
                "runs": len(of_kind),
                "job": row.job,
                "href": href,
                "share": percent(100 * most / whole),
                "advice": kind.advice,
            }
        )
    return rows[:_MOST_COSTS]


def _made_of(folder: Path) -> dict[str, DrawnPage] | None:
    """Return the input of each page by name; None if the directory is not a site, empty if the record is unreadable."""
    try:
        said = json.loads((folder / _MADE_OF).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(said, dict) or said.get("kind") != _KIND:
        return None
    try:
        pages = msgspec.convert(said.get("pages"), dict[str, DrawnPage])
    except msgspec.ValidationError:
        return {}
    return {name: page for name, page in pages.items() if _OURS.fullmatch(name)}


_OURS = re.compile(rf"{_RUNS}/[a-z0-9-]+\.html")
"""Files that may be deleted: an edited record cannot name others."""


_PAGE = re.compile(rf"{_RUNS}/[a-z0-9-]+-\d+-[0-9a-f]{{8}}\.html")
"""Names that `_page_name` makes."""


def _note(folder: Path, pages: Mapping[str, DrawnPage]) -> None:
    text = json.dumps({"kind": _KIND, "pages": {name: asdict(page) for name, page in pages.items()}}, indent=1)
    write_whole(folder / _MADE_OF, f"{text}\n", force=True)


def _page_name(row: RunLine) -> str:
    """Return the file name of the page of a run: stable over time, and unique among runs of one name."""
    slug = re.sub(r"[^a-z0-9]+", _DASH, row.job.lower()).strip(_DASH)[:_SLUG].strip(_DASH) or "run"
    first = min(row.documents, default="")
    return f"{_RUNS}/{slug}-{row.run}-{_hash(row.job, first)[:8]}.html"


def _page_of(row: RunLine, runs: Sequence[RunLine]) -> Page:
    """Return the frame of the page of a run. runs: the runs of the same job that have a page."""
    if row.runs < 2 or not row.run:
        return Page(back=_BACK)
    others = tuple(
        (f"run {one.run}{f' ({percent(one.goodput_percent)})' if one.goodput_percent is not None else ''}",
         _page_name(one).removeprefix(f"{_RUNS}/"))
        for one in runs if one is not row
    )  # fmt: skip
    return Page(back=_BACK, which=f"run {run_number_text(row)}", others=others[:_MOST_OTHERS])


def _versions(row: RunLine, versions: Mapping[str, str]) -> Iterator[str]:
    return (f"{document}\0{versions.get(document, '')}" for document in row.documents)


def _hash(*parts: str) -> str:
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _known(value: float | None, words: Callable[[float], str]) -> str:
    return "" if value is None else words(value)

"""A fleet as a site: `index.html` with every run in a table that sorts and filters, and a page a run, for any server.

Every page is put in place whole, the pages of runs before the index that leads to them, and pages of runs that left go
last: whoever reads the folder meanwhile finds no half and no dead link. `site.json` says what each page was made of, so
that only what changed is drawn again.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.errors import GoodputError, UsageError, not_written
from goodput_cli.fleet.phrases import by_time, runs_by_loss
from goodput_cli.fleet.report import FleetSheet
from goodput_cli.fleet.rows import RunLine, WeekRow, grouped, run_name, which_run
from goodput_cli.fleet.sums import hours
from goodput_cli.report.base import Page
from goodput_cli.report.html.analysis import render as render_run
from goodput_cli.report.html.fleet import RunKey, fleet_page
from goodput_cli.report.html.page import resource
from goodput_cli.vocabulary.categories import brief_name
from goodput_cli.vocabulary.causes import UNKNOWN_CAUSE
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
    """A run as the table of runs has it."""

    row: RunLine
    href: str | None
    """Where its own page is; None where it could not be drawn."""
    costs: Mapping[str, int]
    """By kind of insight, what it cost the run: ns; nothing where the run has no page."""


@dataclass(frozen=True)
class RunColumn:
    """A column of the table of runs. key: as addresses of the page name it. text: of a cell, empty where it is not
    recorded. number: whether it is sorted by size."""

    head: str
    key: str
    text: Callable[[RunLine], str]
    number: bool = False


COLUMNS = (
    RunColumn("job", "job", lambda row: row.job),
    RunColumn("run", "run", which_run),
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
"""Columns of which one says it: where accelerators are known, and where they are not."""


@dataclass(frozen=True)
class Drawn:
    """What is known of a page that was drawn."""

    made_of: str
    costs: dict[str, int]
    """By kind of insight, what it cost the run: ns."""


def make_folder(folder: Path) -> None:
    """Make it; `UsageError` unless it is a site of ours, or is empty: nothing else is ever written over. `GoodputError`
    where nothing can be written."""
    if not folder.parent.is_dir():
        raise UsageError(f"{folder}/: the folder {folder.parent} does not exist; create it first")
    _make(folder)
    begun = f".{_MADE_OF}."  # by another that writes the first file of the same site now
    if any(not path.name.startswith(begun) for path in folder.iterdir()) and _made_of(folder) is None:
        raise UsageError(f"{folder}/: contains files that are not a goodput fleet site; use an empty folder")
    if not os.access(folder, os.W_OK):
        raise GoodputError(f"{folder}/: no permission to write to this folder")


def _make(folder: Path) -> None:
    """Make a folder, unless it is there."""
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        raise UsageError(f"{folder}/: is a file; use a folder for the site") from None
    except OSError as error:
        raise not_written(f"{folder}/", error) from error


def write_site(
    folder: Path, sheet: FleetSheet, analyse: Callable[[RunLine], Analysis], versions: Mapping[str, str], made_by: str
) -> list[str]:
    """Write the site. Sentences: what was done, then which runs have no page, and why.

    analyse: the analysis of a run. versions: by URI, what changes with a document; a run whose documents have none is
    drawn each time. made_by: what else pages depend on, such as options and the code. Raises GoodputError where
    something cannot be written.
    """
    make_folder(folder)
    with lock_folder(folder) as alone:
        return _write(folder, sheet, analyse, versions, made_by, alone=alone)


def _write(
    folder: Path, sheet: FleetSheet, analyse: Callable[[RunLine], Analysis], versions: Mapping[str, str], made_by: str,
    *, alone: bool,
) -> list[str]:  # fmt: skip
    """The same in a folder that is there. alone: no other process writes this site now."""
    report = sheet.report
    assert report is not None
    before, now, failed = _made_of(folder) or {}, dict[str, Drawn](), list[str]()
    listed, drawn = list[ListedRun](), 0
    _note(folder, before)  # first: by it another that comes now knows the folder
    _make(folder / _RUNS)
    of_job: defaultdict[str, list[RunLine]] = defaultdict(list)
    for row in report.runs:
        of_job[row.job].append(row)
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
            now[name] = Drawn(made_of, cost)
            drawn += 1
        listed.append(ListedRun(row, name, now[name].costs))
    with_pages = [one.row for one in listed if one.href is not None]
    for row in (row for row in with_pages if failed and row.runs > 1):  # no page leads to one that is not there
        page = _page_of(row, of_job[row.job])
        write_whole(folder / _page_name(row), render_run(analyse(row), page), force=True)
    write_whole(folder / INDEX, _index(sheet, listed), force=True)
    _note(folder, now)
    there = {f"{_RUNS}/{path.name}" for path in (folder / _RUNS).iterdir()} if alone else set()
    gone = [name for name in {**before, **dict.fromkeys(filter(_PAGE.fullmatch, there))} if name not in now]
    for name in gone:  # those that a run drew which was interrupted are among them
        (folder / name).unlink(missing_ok=True)
    left = f", {plural(len(gone), 'page')} of former runs removed" if gone else ""
    return [f"{INDEX} and {plural(len(now), 'run page')} ({drawn} updated{left})", *failed]


def _index(sheet: FleetSheet, listed: Sequence[ListedRun]) -> str:
    """The page that leads to all others."""
    report = sheet.report
    assert report is not None
    timed = by_time(report)
    costs = cost_rows(((one.row, one.href, one.costs) for one in listed if one.href is not None), by_time=timed)
    cells = {column: [column.text(one.row) for one in listed] for column in COLUMNS}
    nothing = {"", UNKNOWN_CAUSE}  # that nobody says why is no column
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
        runs=[(one.href, texts, _places(report.weeks, one.row), _kinds(costs, one)) for one, texts in rows],
        heads=kept,
    )


def _places(weeks: Sequence[WeekRow], row: RunLine) -> str:
    """The weeks in which something of a run lies, by their numbers from 1."""
    inside = (week.start_ns < row.end_ns and row.start_ns < week.end_ns for week in weeks)
    return " ".join(str(number) for number, lies in enumerate(inside, 1) if lies)


def _kinds(costs: Sequence[Mapping[str, Any]], one: ListedRun) -> str:
    """Which kinds of those that cost most cost this run something, by their numbers from 1."""
    return " ".join(str(number) for number, row in enumerate(costs, 1) if one.costs.get(row["code"], 0) > 0)


def _pages(drawn: Iterable[tuple[RunLine, str]]) -> Iterator[tuple[RunKey, str]]:
    """Where tables that name a run lead; no name or number that several runs have."""
    keys: dict[RunKey, list[str]] = {}
    for row, page in drawn:
        for key in ((row.job, row.run), run_name(row)):
            keys.setdefault(key, []).append(page)
    return ((key, pages[0]) for key, pages in keys.items() if len(pages) == 1)


def _columns_style(columns: Sequence[RunColumn]) -> str:
    """Numbers stand at the right and keep their unit, and in cards each cell says what it is: once for a column, not in
    each of its cells, which would be half of the page."""
    rules = []
    for place, column in enumerate(columns, 1):
        cell = f"#every-run tbody tr > :nth-child({place})"
        if column.number:
            rules.append(f"{cell} {{ text-align: right; white-space: nowrap; }}")
        rules.append(f"@media (max-width: 40rem) {{ {cell}::before {{ content: '{column.head} '; }} }}")
    return "\n".join(rules)


def costs_of(analysis: Analysis) -> dict[str, int]:
    """By kind of insight, ns."""
    costs: Counter[str] = Counter()
    for insight in analysis.insights:
        costs[insight.code] += insight.ns
    return dict(costs)


def cost_rows(costs: Iterable[tuple[RunLine, str, Mapping[str, int]]], *, by_time: bool) -> list[dict[str, Any]]:
    """What cost most over all runs, the dearest kind of insight first: no second is in two insights, so kinds do not
    overlap. amount: in whole hours of accelerators or of jobs. job, href: the run that it cost most, and its page;
    share: that run's part of the whole.

    costs: a run, its page and `costs_of` it. by_time: every run counts by its time alone; else a run of which nobody
    knows the accelerators is left out.
    """
    parts: dict[str, list[tuple[int, RunLine, str]]] = {}
    for row, href, of_run in costs:
        weight = 1 if by_time else row.accelerators or 0
        for code, ns in of_run.items():
            if code in BY_CODE and ns * weight > 0:
                parts.setdefault(code, []).append((ns * weight, row, href))
    rows = []
    for code, of_kind in sorted(parts.items(), key=lambda one: -sum(amount for amount, *_ in one[1])):
        whole, (most, row, href) = sum(amount for amount, *_ in of_kind), max(of_kind, key=lambda one: one[0])
        kind = BY_CODE[code]
        rows.append(
            {
                "code": code,
                "title": kind.title,
                "amount": tenths(hours(whole)),
                "runs": len(of_kind),
                "job": row.job,
                "href": href,
                "share": percent(100 * most / whole),
                "advice": kind.advice,
            }
        )
    return rows[:_MOST_COSTS]


def _made_of(folder: Path) -> dict[str, Drawn] | None:
    """By page, what it was made of; None where the folder is no site, and nothing where that cannot be told."""
    try:
        said = json.loads((folder / _MADE_OF).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(said, dict) or said.get("kind") != _KIND:
        return None
    try:
        pages = msgspec.convert(said.get("pages"), dict[str, Drawn])
    except msgspec.ValidationError:
        return {}
    return {name: page for name, page in pages.items() if _OURS.fullmatch(name)}


_OURS = re.compile(rf"{_RUNS}/[a-z0-9-]+\.html")
"""What may be taken away again: a file that says more names nothing."""


_PAGE = re.compile(rf"{_RUNS}/[a-z0-9-]+-\d+-[0-9a-f]{{8}}\.html")
"""How `_page_name` names a page."""


def _note(folder: Path, pages: Mapping[str, Drawn]) -> None:
    text = json.dumps({"kind": _KIND, "pages": {name: asdict(page) for name, page in pages.items()}}, indent=1)
    write_whole(folder / _MADE_OF, f"{text}\n", force=True)


def _page_name(row: RunLine) -> str:
    """The page of a run: the same each day, and different for runs of one name."""
    slug = re.sub(r"[^a-z0-9]+", _DASH, row.job.lower()).strip(_DASH)[:_SLUG].strip(_DASH) or "run"
    first = min(row.documents, default="")
    return f"{_RUNS}/{slug}-{row.run}-{_hash(row.job, first)[:8]}.html"


def _page_of(row: RunLine, runs: Sequence[RunLine]) -> Page:
    """What the page of a run says beside its report. runs: of the same job, those that have a page."""
    if row.runs < 2 or not row.run:
        return Page(back=_BACK)
    others = tuple(
        (f"run {one.run}{f' ({percent(one.goodput_percent)})' if one.goodput_percent is not None else ''}",
         _page_name(one).removeprefix(f"{_RUNS}/"))
        for one in runs if one is not row
    )  # fmt: skip
    return Page(back=_BACK, which=f"run {which_run(row)}", others=others[:_MOST_OTHERS])


def _versions(row: RunLine, versions: Mapping[str, str]) -> Iterator[str]:
    return (f"{document}\0{versions.get(document, '')}" for document in row.documents)


def _hash(*parts: str) -> str:
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _known(value: float | None, words: Callable[[float], str]) -> str:
    return "" if value is None else words(value)

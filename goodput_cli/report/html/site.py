"""A fleet as a site: `index.html` with every run in a table that sorts and filters, and a page a run, for any server.

Every page is put in place whole, the pages of runs before the index that leads to them, and pages of runs that left go
last: whoever reads the folder meanwhile finds no half and no dead link. `site.json` says what each page was made of, so
that only what changed is drawn again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from goodput_cli.analysis.results import Analysis
from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.fleet.report.rows import RunLine
from goodput_cli.fleet.report.sheet import FleetSheet, runs_by_loss
from goodput_cli.report.base import Page
from goodput_cli.report.html.analysis import render as render_run
from goodput_cli.report.html.fleet import fleet_page
from goodput_cli.report.html.page import resource
from goodput_cli.report.whole_file import write_whole
from goodput_cli.vocabulary.text import duration, iso, plural, safe

INDEX, _RUNS, _MADE_OF = "index.html", "runs", "site.json"
_KIND = "goodput fleet site"
_BACK = f"../{INDEX}"
_SLUG = 40
_DASH = "-"
_MOST_SORTED = 100
"""Letters of a name by which rows are sorted."""
HEADS = ("job", "run", "team", "start (UTC)", "length", "goodput", "lost h", "disruptions", "ended")
_LEFT = frozenset({"job", "team", "start (UTC)", "ended"})


@dataclass(frozen=True)
class Cell:
    """A cell of the table of runs."""

    text: str
    value: str
    """By which the column is sorted: a number where it is one."""


@dataclass(frozen=True)
class RunLink:
    """A row of the table of runs."""

    href: str | None
    """Where the run's own page is; None where it could not be drawn."""
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Written:
    """What was done."""

    pages: int
    drawn: int
    gone: int
    failed: tuple[str, ...]
    """Sentences: which runs have no page, and why."""

    def __str__(self) -> str:
        gone = f", {plural(self.gone, 'page')} of runs that left taken away" if self.gone else ""
        return f"{INDEX} and {plural(self.pages, 'page')} of runs, {self.drawn} drawn anew{gone}"


def check_folder(folder: Path) -> None:
    """`UsageError` unless it is a site of ours, is empty, or can be made: nothing else is ever written over."""
    if not folder.exists():
        if not folder.parent.is_dir():
            raise UsageError(f"{folder}/: the folder {folder.parent} does not exist; create it first")
        return
    if not folder.is_dir():
        raise UsageError(f"{folder}/: is a file; name a folder for the site")
    if any(folder.iterdir()) and _made_of(folder) is None:
        raise UsageError(f"{folder}/: holds something else than a site of goodput fleet; name an empty folder")


def write_site(
    folder: Path, sheet: FleetSheet, analyse: Callable[[RunLine], Analysis], versions: Mapping[str, str], made_by: str
) -> Written:
    """Write the site. analyse: the analysis of a run. versions: by URI, what changes with a document; a run whose
    documents have none is drawn each time. made_by: what else pages depend on, such as options and the code."""
    report = sheet.report
    assert report is not None
    check_folder(folder)
    (folder / _RUNS).mkdir(parents=True, exist_ok=True)
    before, now, failed = _made_of(folder) or {}, dict[str, str](), list[str]()
    links, drawn = [], 0
    _note(folder, before)
    for row in runs_by_loss(report):
        name, made_of = _page_name(row), _hash(made_by, *_versions(row, versions))
        if (
            before.get(name) != made_of
            or not all(versions.get(one) for one in row.documents)
            or not (folder / name).exists()
        ):
            try:
                text = render_run(analyse(row), Page(back=_BACK))
            except GoodputError as error:
                failed.append(f"{safe(row.job)}: {error}")
                links.append(RunLink(None, _cells(row)))
                continue
            write_whole(folder / name, text, force=True)
            drawn += 1
        now[name] = made_of
        links.append(RunLink(name, _cells(row)))
    kept = [place for place in range(len(HEADS)) if any(link.cells[place].text for link in links)]
    page = fleet_page(
        sheet,
        "site.html",
        scripts=(resource("site.js"),),
        more_style=resource("site.css"),
        runs=[replace(link, cells=tuple(link.cells[place] for place in kept)) for link in links],
        heads=[(HEADS[place], HEADS[place] not in _LEFT) for place in kept],
    )
    write_whole(folder / INDEX, page, force=True)
    _note(folder, now)
    gone = [name for name in before if name not in now]
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    return Written(len(now), drawn, len(gone), tuple(failed))


def _made_of(folder: Path) -> dict[str, str] | None:
    """By page, what it was made of; None where the folder is no site, and nothing where that cannot be told."""
    try:
        said = json.loads((folder / _MADE_OF).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
    if not isinstance(said, dict) or said.get("kind") != _KIND:
        return None
    pages = said.get("pages")
    return {name: str(key) for name, key in pages.items() if _OURS.fullmatch(name)} if isinstance(pages, dict) else {}


_OURS = re.compile(rf"{_RUNS}/[a-z0-9-]+\.html")
"""What may be taken away again: a file that says more names nothing."""


def _note(folder: Path, pages: Mapping[str, str]) -> None:
    text = json.dumps({"kind": _KIND, "pages": dict(pages)}, indent=1)
    write_whole(folder / _MADE_OF, f"{text}\n", force=True)


def _page_name(row: RunLine) -> str:
    """The page of a run: the same each day, and different for runs of one name."""
    slug = re.sub(r"[^a-z0-9]+", _DASH, row.job.lower()).strip(_DASH)[:_SLUG].strip(_DASH) or "run"
    first = min(row.documents, default="")
    return f"{_RUNS}/{slug}-{row.run}-{_hash(row.job, first)[:8]}.html"


def _versions(row: RunLine, versions: Mapping[str, str]) -> Iterator[str]:
    yield f"{row.accelerators}"
    for document in row.documents:
        yield f"{document}\0{versions.get(document, '')}"


def _hash(*parts: str) -> str:
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _cells(row: RunLine) -> tuple[Cell, ...]:
    return (
        Cell(row.job, row.job[:_MOST_SORTED]),
        Cell(str(row.run) if row.runs > 1 else "", str(row.run)),
        Cell(row.team or "", (row.team or "")[:_MOST_SORTED]),
        Cell(iso(row.start_ns)[:16].replace("T", " "), str(row.start_ns)),
        Cell(duration(row.ns), str(row.ns)),
        Cell("" if row.goodput_percent is None else f"{row.goodput_percent:.2f} %", _number(row.goodput_percent)),
        Cell("" if row.lost_hours is None else f"{row.lost_hours:,.1f}", _number(row.lost_hours)),
        Cell(str(row.disruptions), str(row.disruptions)),
        Cell((row.ending or "").replace("_", " "), row.ending or ""),
    )


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)

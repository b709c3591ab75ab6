"""Hand-made analyses, and answers as tests read them: text, JSON with its schema, HTML pages, and files in
tests/golden (`UPDATE_GOLDEN=1 pytest` rewrites them).
"""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass, field, replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import jsonschema
import numpy as np
import xmlschema

import goodput_cli
from goodput_cli.analysis.disruptions.rows import no_disruptions
from goodput_cli.analysis.document import Losses, Picture
from goodput_cli.analysis.goodput.analyse import evaluate
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.document import AnalysisDocument
from goodput_cli.analysis.goodput.thresholds import parse_threshold
from goodput_cli.analysis.results import AtRisk, CategoryTime, CategoryTimes, Job, Reference, StepStatistics, Window
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.schema import COLUMNS, REFERENCE_LIBRARY, EventTable, LogFormat
from goodput_cli.report.base import Page, load_renderer

if TYPE_CHECKING:
    from goodput_cli.accounting.build import Timeline


BASE = 1_735_689_600 * 10**9  # 2025-01-01T00:00:00Z
MINUTE = 60 * 10**9

HOSTILE = "\x1b[31mred\x1b[0m [bold]x[/bold] \u202egnp.exe\u200b | `rm` <img src=x> [a](http://e.vil) \n# title"

ORBAX, RECORDER = LogFormat("orbax"), LogFormat("recorder", other_system=REFERENCE_LIBRARY)
RESILIENCY = LogFormat("resiliency", restores_are_inferred=True)


def empty_table() -> EventTable:
    columns: dict[str, Any] = {name: np.zeros(0, dtype) for name, dtype in COLUMNS.items()}
    return EventTable(**columns)


def amount(category: str, ns: int, total: int, label: str | None = None) -> CategoryTime:
    return CategoryTime(category, label, ns, 100 * ns / total if total else float("nan"))


@cache
def primer_timeline() -> Timeline:
    """The timeline of the same example, for what is drawn."""
    log = Path(__file__).parent.parent.parent / "sample_logs" / "primer-50-percent.jsonl"
    timeline = goodput_cli.analyze(log, reference_step_time=120).timeline
    return replace(timeline, table=replace(timeline.table, sources=("primer-50-percent.jsonl",)))


def primer(**changes: Any) -> Analysis:
    """Return the worked example of accounting §6, with its figures."""
    total = 200 * MINUTE
    badput = (
        amount("wasted_progress_from_disruption", 40 * MINUTE, total),
        amount("training_slowdown", 25 * MINUTE, total),
        amount("infrastructure_recovery_from_disruption", 15 * MINUTE, total),
        amount("unproductive_checkpoint_restore_time", 10 * MINUTE, total),
        amount("unproductive_checkpoint_save_time", 10 * MINUTE, total),
    )
    analysis = Analysis(
        job=Job("goodput-primer", BASE, BASE + total, "terminated", 2, 1, 1, 25, 75, 50.0, (25, 75), (RESILIENCY,)),
        window=Window(BASE, BASE + total, 0),
        goodput=amount("productive", 100 * MINUTE, total),
        badput=CategoryTimes(badput),
        overlapped=(),
        at_risk=None,
        reference=Reference(120.0, "given", 100 * MINUTE, 25, 75, 50, 11, 2, 2, 2),
        steps=StepStatistics(0, None, None, None, None, None),
        thresholds=(),
        not_recorded=("tpu_initialization", "training_prep", "data_loading_sync", "custom_badput_events"),
        diagnostics=(),
        timeline=primer_timeline(),
        table=empty_table(),
        disruptions=no_disruptions(empty_table()),
    )
    return replace(analysis, **changes)


def hostile() -> Analysis:
    """Return an analysis with hostile text everywhere: names, labels, locations and messages."""
    total = 90_061 * 10**9 + 123_456_789
    rows = (
        amount("custom_badput_events", 4000 * 10**9, total, "=HYPERLINK(1)"),
        amount("custom_badput_events", 3000 * 10**9, total, HOSTILE.upper()),
        amount("custom_badput_events", 2000 * 10**9, total, "X" * 10_000),
        amount("other", 1, total),
        amount("training_slowdown", -1500 * 10**9, total),
    )
    productive = total - sum(row.ns for row in rows)
    diagnostics = (
        Diagnostic("naive_timestamps", "info", "times without a zone were taken as UTC", 9, ("a.jsonl:1",)),
        Diagnostic(
            "malformed_lines", "error", f"not JSON: {HOSTILE}", 5, tuple(f"{HOSTILE}.jsonl:{i}" for i in range(1, 6))
        ),
    )
    return replace(
        primer(),
        job=Job(HOSTILE, BASE, BASE + total + MINUTE, "not_logged", 3, 2, 2, 0, 99, 99.5, (0, 99), (ORBAX, RECORDER)),
        window=Window(BASE, BASE + total + MINUTE, MINUTE),
        goodput=amount("productive", productive, total),
        badput=CategoryTimes(rows),
        overlapped=(amount("data_loading_async", 77 * 10**9, total),),
        at_risk=AtRisk(12.0, 30 * 10**9),
        reference=Reference(2.5, "auto", productive, None, None, None, 200, 3, 0, 0),
        steps=StepStatistics(120, 2.5, 2.61, 2.55, 2.9, 12.0),
        not_recorded=("queued",),
        diagnostics=diagnostics,
    )


# --- Analyses with thresholds.

SAMPLES = Path(__file__).parent.parent.parent / "sample_logs"
EVIL = [
    "<script>alert(1)</script>", "]]>", "=cmd|'/C calc'!A0", "[red]x[/red]", "\x1b[31m", "\u202egnp.exe", "a\nb\r\nc",
    "\ud800", "\x00", "\ufffe", '"}\n# EOF\nevil 1', "\\", "</details></testsuite>", "```\n# x", "&amp;", "|",
    "L" * 10_000,
]  # fmt: skip


def render(name: str, analysis: Analysis) -> str:
    text = load_renderer(name)(analysis, Page())
    assert isinstance(text, str)
    return text


def gated(*fail_if: str, warn_if: tuple[str, ...] = (), analysis: Analysis | None = None) -> Analysis:
    analysis = analysis or primer(not_recorded=("queued", "training_prep"))
    asked = [*map(parse_threshold, fail_if), *(parse_threshold(text, fails=False) for text in warn_if)]
    return replace(analysis, thresholds=evaluate(asked, analysis))


def all_verdicts() -> Analysis:
    return gated("goodput<90", "disruptions>3", "queued>1h", warn_if=("goodput<60", "goodput<10", "queued>5%"))


def evil(text: str) -> Analysis:
    """The text wherever a log or a person can put it."""
    total = 200 * MINUTE
    rows = (amount("custom_badput_events", 100 * MINUTE, total, text), amount("other", MINUTE, total, text + "2"))
    job = replace(primer().job, name=text)
    found = (Diagnostic("x", "warning", text, 1, (text,)),)
    asked = evaluate([parse_threshold(f"custom:x{text[:900]}x>5", fails=True)], primer())
    return primer(job=job, badput=rows, diagnostics=found, thresholds=asked)


@cache
def junit_schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(SAMPLES.parent / "tests" / "report" / "junit.xsd")


def junit(analysis: Analysis) -> Element:
    """The suite of a valid document."""
    text = render("junit", analysis)
    junit_schema().validate(text)
    (suite,) = ElementTree.fromstring(text)
    return suite


# --- An analysis as text in the formats that write what any answer offers.


def rendered(name: str, analysis: Analysis, page: Page) -> str:
    """Render in any text format."""
    text = load_renderer(name)(analysis, page)
    assert isinstance(text, str)
    return text


def as_json(analysis: Analysis, page: Page) -> str:
    return rendered("json", analysis, page)


def as_table(analysis: Analysis, page: Page) -> str:
    return rendered("table", analysis, page)


def as_markdown(analysis: Analysis, page: Page) -> str:
    return rendered("markdown", analysis, page)


def losses(analysis: Analysis) -> Losses:
    """Return the losses, as terminal and Markdown receive them."""
    return next(block for block in AnalysisDocument(analysis).blocks() if isinstance(block, Losses))


def picture(analysis: Analysis) -> Picture:
    """The window in a line, as they get it."""
    return next(block for block in AnalysisDocument(analysis).blocks() if isinstance(block, Picture))


# --- JSON answers and their schema.

SCHEMA_FILE = Path(__file__).parent.parent.parent / "docs" / "schema.json"


def check_answer(answer: Any, kind: str) -> None:
    """Check that the answer is of this kind and valid."""
    assert answer["kind"] == kind
    _validator(kind).validate(answer)


def check_any_answer(answer: Any) -> None:
    """Against the root, which takes the answer of any command."""
    _validator(None).validate(answer)


def json_of(analysis: Analysis) -> Any:
    """Return the JSON of an analysis."""
    return json.loads(as_json(analysis, Page()))


@cache
def schema() -> Any:
    """The schema as the file has it."""
    return json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


@cache
def _validator(kind: str | None) -> Any:
    """Return the validator of one kind of answer, or of any: made once, because checking the schema itself takes longer
    than any answer."""
    if kind is None:
        return jsonschema.Draft202012Validator(schema())
    (definition,) = (one for one in schema()["$defs"].values() if _kind(one) == kind)
    return jsonschema.Draft202012Validator(definition | {"$defs": schema()["$defs"]})


def _kind(definition: Any) -> Any:
    return definition.get("properties", {}).get("kind", {}).get("const")


# --- HTML pages as tests read them.

_EMPTY = frozenset(("meta", "link", "br", "img", "input", "hr"))


@dataclass
class PageElement:
    """An element and what is in it; text is a child as well."""

    name: str
    attributes: dict[str, str | None]
    children: list[PageElement | str] = field(default_factory=list)

    def all(self, name: str) -> list[PageElement]:
        """Elements of a name at any depth, in the order of the page."""
        found = []
        for child in self.children:
            if isinstance(child, PageElement):
                found += [child, *child.all(name)] if child.name == name else child.all(name)
        return found

    def by_id(self, identity: str) -> PageElement:
        return next(one for one in self.every() if one.attributes.get("id") == identity)

    def every(self) -> list[PageElement]:
        inner = [element for child in self.children if isinstance(child, PageElement) for element in child.every()]
        return [self, *inner]

    @property
    def text(self) -> str:
        """Return all text in it; folded text appears once, in full."""
        if self.name == "details" and self.attributes.get("class") == "long":
            return self.all("bdi")[-1].text
        return "".join(child if isinstance(child, str) else child.text for child in self.children).strip()

    def rows(self) -> list[list[str]]:
        """The cells of a table's body, row by row."""
        return [
            [cell.text for cell in row.children if isinstance(cell, PageElement)]
            for body in self.all("tbody")
            for row in body.all("tr")
        ]

    def pairs(self) -> list[tuple[str, str]]:
        """Names and values of the definition lists in it."""
        return [
            (name.text, value.text)
            for group in self.all("dl")
            for name, value in zip(group.all("dt"), group.all("dd"), strict=True)
        ]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = PageElement("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = PageElement(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in _EMPTY:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(PageElement(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read_page(text: str) -> PageElement:
    """The page as a tree; every element in it must be closed in its order."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].name}> is not closed"
    return reader.root


def page_text(page: Path) -> str:
    """A page as it reads: no entities, and nothing that keeps a number and its unit in one line."""
    return html.unescape(page.read_text(encoding="utf-8")).replace("\N{NO-BREAK SPACE}", " ")


# --- Comparison of text for people with files in tests/golden.

FOLDER = Path(__file__).parent.parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Compare with tests/golden/`name`, or write it."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.read_text(encoding="utf-8") == text, f"{name} differs: UPDATE_GOLDEN=1 writes it anew"

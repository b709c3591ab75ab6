"""Answers of other commands as HTML pages: one file, tables, and text that is only text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from goodput_cli import analyze
from goodput_cli.analysis.rolling import rolling_sheet
from goodput_cli.analysis.sheet import Column, Lazy, Sheet
from goodput_cli.cli.main import run
from goodput_cli.report.base import Page
from goodput_cli.report.csv import render as csv
from goodput_cli.report.html.page import content_policy, script_data
from goodput_cli.report.html.sheet import MOST_ROWS, render
from goodput_cli.vocabulary.text import safe
from tests.report.test_sheets import ROWS, sheet
from tests.support.answers import HOSTILE, page_text

LOG = Path(__file__).parent.parent.parent / "sample_logs" / "llm-pretrain.jsonl"


class Elements(HTMLParser):
    """The parts of a page: names of its elements, their attributes, and the text of each table cell."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self._open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs
        if tag in ("td", "th"):
            self._open = True
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._open:
            self.cells[-1] += data


def numbers(size: int) -> Sheet:
    column = Column("number", "count")
    return Sheet("Numbers", (column,), Lazy(size, lambda: ((row,) for row in range(size))))


def test_comparison_starts_with_the_change(tmp_path: Path) -> None:
    """Its card is like the report's: the points, both values, and the largest change. No line occurs twice."""
    page = tmp_path / "compare.html"
    assert run(["compare", str(LOG), str(LOG.with_name("llm-pretrain-r2.jsonl")), "-q", "-o", str(page)]) == 0
    card, _, rest = page_text(page).partition("</main>")[0].partition('class="headline"')[2].partition("</section>")
    gained = "wasted progress: 9.5 % less time (13 min 07 s) for the same work"
    for words in ("inconclusive", "70.43 % to 69.35 %", "1 min 28 s of 2 h 15 min", gained):
        assert words in card
    assert card.index("2.3 % less time per kept step") < card.index("goodput of")
    assert "per kept step" not in rest
    assert "<p><bdi>llm-pretrain-7b-r2: goodput 69" not in rest


def test_advice_starts_with_the_interval(tmp_path: Path) -> None:
    """The advice occurs once: not above the chart, and not among the lines below it."""
    page = tmp_path / "advise.html"
    assert run(["advise", str(LOG), "-q", "-o", str(page)]) == 0
    card, _, rest = page_text(page).partition('class="headline"')[2].partition("</section>")
    for words in ("every 50 steps", "72.26 %, +4.26 points against today", "every 200 steps", "half as many failures"):
        assert words in card
    assert "72.26 %, +4.26 points against today" not in rest
    assert "save every 50 steps (" not in rest.lower()


def test_page_contains_every_cell_shown_to_people() -> None:
    page = Elements(render(sheet(), Page()))
    heads = [*page.cells[:5], *page.cells[6:8]]
    assert heads == ["name", "events", "when (UTC)", "down time", "goodput", "factor", "short"]
    first = [cell for cell in page.cells[8:16] if cell]
    assert first == ["plain", "3", "2025-01-01 00:00:00", "1 min 30 s", "50.00 %", "1.5", "eye"]


def test_page_has_the_titles_of_categories() -> None:
    """JSON and CSV have category names. In two of six windows that category lost most."""
    rolled = rolling_sheet(analyze(LOG, window="2h"))
    assert Elements(render(rolled, Page())).cells.count("wasted progress") == 2
    assert "wasted_progress_from_disruption" in csv(rolled, Page())


def test_log_text_is_only_text() -> None:
    rows = tuple((*ROWS[0][:5], row[5], *ROWS[0][6:]) for row in ROWS)  # Hostile rows have bars.
    plain = sheet(title="Sheet", rows=rows, summary=("a", "b"), notes=("a", "b"))
    hostile, harmless = (render(shown, Page()) for shown in (sheet(), plain))
    assert Elements(hostile).names == Elements(harmless).names
    assert safe(HOSTILE) in Elements(hostile).cells
    assert not any(char in hostile for char in "\x1b\u202e\u200b")


@pytest.mark.parametrize(
    "text", ["{{7*7}}", "{% raw %}", "<script>alert(1)</script>", '"><img onerror=alert(1)>', "&lt;"]
)
def test_text_is_shown_as_written(text: str) -> None:
    page = Elements(render(replace(numbers(1), columns=(Column("x", "text"),), rows=((text,),)), Page()))
    assert page.cells == ["x", text]
    assert "img" not in page.names
    assert not any(name.startswith("on") for name, _ in page.attributes)


def test_long_text_is_folded_without_loss() -> None:
    page = render(replace(numbers(1), columns=(Column("x", "text"),), rows=(("L" * 10_000,),)), Page())
    assert "details" in Elements(page).names
    assert "L" * 10_000 in page


def test_long_tables_end_with_a_sentence() -> None:
    page = render(numbers(MOST_ROWS + 7), Page())
    assert f"Shown: the first {MOST_ROWS} of {MOST_ROWS + 7} rows." in page
    assert Elements(page).names.count("tr") == MOST_ROWS + 1
    assert "These are the first" not in render(numbers(MOST_ROWS), Page())


def test_page_loads_and_runs_nothing() -> None:
    page = render(numbers(3), Page())
    assert "script" not in Elements(page).names
    links = [value or "" for name, value in Elements(page).attributes if name in ("src", "href", "action")]
    assert all(link.startswith(("#", "data:")) for link in links)
    assert "default-src &#39;none&#39;" in page
    assert not re.search(r"https?://|url\(|@import", page)


def test_policy_lists_hashes_of_style_and_scripts() -> None:
    policy = content_policy("a{}", ["one", "two"])
    assert len(re.findall(r"'sha256-[A-Za-z0-9+/]{43}='", policy)) == 3
    assert "unsafe-eval" not in policy
    assert "script-src 'none'" in content_policy("a{}", [])


def test_script_data_cannot_close_their_element() -> None:
    text = str(script_data({"a": "</script><!--\u2028\u2029 & é"}))
    assert text == r'{"a":"\u003c/script\u003e\u003c!--\u2028\u2029 \u0026 \u00e9"}'


@pytest.mark.parametrize("command", ["rolling", "timeline", "disruptions", "steps", "jobs", "check"])
def test_every_command_writes_a_page(command: str, tmp_path: Path) -> None:
    target = tmp_path / "answer.html"
    assert run([command, str(LOG), "-q", "-o", str(target)]) == (5 if command == "check" else 0)
    page = Elements(target.read_text(encoding="utf-8"))
    assert page.names.count("h1") == page.names.count("main") == 1
    assert "table" in page.names

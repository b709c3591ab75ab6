"""A fleet's site in a real browser: it sorts, filters, leads to a run and back, by keyboard too, at both widths."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.cli.main import run
from tests.browser.tabs import DESKTOP, PHONE, Tab, opened
from tests.support.fleets import put, training


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for number, hours in enumerate((10, 12, 11)):
        put(folder / "logs" / f"{number}.jsonl", training(f"llm-{number}", hours, 6, at=number * 86_400))
    assert run(["fleet", str(folder / "logs"), "--workers", "1", "-q", "-o", f"{folder}/site/"]) == 0
    return folder / "site" / "index.html"


def jobs(tab: Tab) -> list[str]:
    """Names in the order in which they are shown."""
    rows = "[...document.querySelectorAll('#every-run tbody tr')].filter(row => !row.hidden)"
    found: list[str] = tab.evaluate(f"{rows}.map(row => row.cells[0].textContent)")
    return found


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("dark", [False, True])
def test_it_sorts_and_filters_and_leads_to_a_run_and_back(browser: Any, index: Path, width: int, dark: bool) -> None:
    with opened(browser, index, width=width, dark=dark, drawn=False) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        if width == DESKTOP:
            tab.page.focus("#every-run th:nth-child(3) button")
            tab.page.keyboard.press("Enter")
        else:
            tab.page.select_option("#order", label="length")
        assert jobs(tab) == ["llm-0", "llm-2", "llm-1"]
        tab.page.fill("#filter", "LLM-1")
        assert jobs(tab) == ["llm-1"]
        assert tab.page.text_content("#shown") == "1 of 3"
        tab.page.click("#every-run tr:not([hidden]) a")
        assert tab.page.title().startswith("Goodput of llm-1")
        tab.page.click(".back a")
        assert tab.page.title().startswith("Fleet")
        assert tab.errors == tab.dialogs == tab.said == []
        assert [one for one in tab.requests if not one.startswith("file:")] == []


def test_without_scripts_every_run_is_there(browser: Any, index: Path) -> None:
    with opened(browser, index, scripts=False, drawn=False) as tab:
        assert tab.page.locator("#every-run tbody tr").count() == 3
        assert not tab.page.is_visible("#filter")


def test_the_page_of_a_run_draws_its_charts_itself(browser: Any, index: Path) -> None:
    """A site's pages leave charts to their script; without scripts each place says so, and all numbers are there."""
    (page,) = (index.parent / "runs").glob("llm-0-*.html")
    assert "This chart is drawn by the page&#39;s script" in page.read_text(encoding="utf-8")
    with opened(browser, page) as tab:
        charts = tab.page.locator("figure[data-chart]")
        assert charts.count() == tab.page.locator("figure[data-chart] svg.marks").count() > 0
        assert not tab.page.get_by_text("which does not run here").first.is_visible()
        assert tab.is_quiet()
    with opened(browser, page, scripts=False, drawn=False) as tab:
        assert tab.page.get_by_text("which does not run here").first.is_visible()


HOSTILE = "</script><img src=x onerror=alert(1)>\"'&<svg/onload=alert(2)>\u202eevil"


@pytest.mark.parametrize("name", [HOSTILE, "../../etc/passwd", "javascript:alert(1)", "x" * 4000])
def test_a_hostile_name_does_nothing(browser: Any, tmp_path: Path, name: str) -> None:
    put(tmp_path / "logs" / "one.jsonl", training(name, 10, 6))
    put(tmp_path / "logs" / "two.jsonl", training("llm", 10, 7))
    assert run(["fleet", str(tmp_path / "logs"), "--workers", "1", "-q", "-o", f"{tmp_path}/site/"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "site"]
    with opened(browser, tmp_path / "site" / "index.html", drawn=False) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") == DESKTOP
        assert len(jobs(tab)) == 2
        tab.page.locator("#every-run tbody tr a").filter(has_not_text=re.compile("^llm$")).click()
        tab.until("document.title.startsWith('Goodput of')")
        assert tab.errors == tab.dialogs == []
        assert [one for one in tab.requests if not one.startswith("file:")] == []


def test_it_prints(browser: Any, index: Path) -> None:
    with opened(browser, index, drawn=False) as tab:
        tab.page.emulate_media(media="print")
        assert not tab.page.is_visible("#filter"), "on paper nothing can be filtered"
        assert len(jobs(tab)) == 3
        assert tab.page.pdf(format="A4").startswith(b"%PDF")

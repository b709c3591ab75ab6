"""The page of a fleet in a real browser: nothing is wider than the page, nothing is requested, marks have
descriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goodput_cli.cli.main import run
from tests.browser.tabs import DESKTOP, PHONE, opened
from tests.support.fleets import put, text_of, training


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of a few runs in two teams, with capacity and ideal steps, so that every chart is shown."""
    folder = tmp_path_factory.mktemp("fleet")
    for number in range(6):
        put(folder / "logs" / f"{number}.jsonl", training(f"llm-{number}", 10 + number, 6, at=number * 86_400))
    labels, capacity = folder / "labels.csv", folder / "capacity.csv"
    columns = "job,team,accelerators,ideal_step_seconds"
    labels.write_text(text_of(columns, "llm-[01],a team with a rather long name,8,30", "*,search,64,30"))
    capacity.write_text(text_of("from,to,count", "2026-01-01,2026-02-01,64"))
    asked = ["fleet", str(folder / "logs"), "--labels", str(labels), "--capacity", str(capacity), "--by", "team"]
    assert run([*asked, "--workers", "1", "-q", "-o", str(folder / "fleet.html")]) == 0
    return folder / "fleet.html"


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("dark", [False, True])
def test_page_fits_and_is_quiet(browser: Any, page: Path, width: int, dark: bool) -> None:
    with opened(browser, page, width=width, dark=dark, drawn=False) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        seen = "filter(e => e.getBoundingClientRect().width > 0)"
        assert tab.evaluate(f"[...document.querySelectorAll('figure svg')].{seen}.length") == 5
        names = f"[...document.querySelectorAll('#groups svg text')].{seen}.filter(e => /^a team/.test(e.textContent))"
        left = "document.querySelector('#groups .still').getBoundingClientRect().left"
        assert tab.evaluate(f"{names}[0].getBoundingClientRect().left >= {left}")
        titles = tab.evaluate("[...document.querySelectorAll('#runs title')].map(e => e.textContent)")
        assert "llm-5, search: 40.00 % of 960.0 h" in titles
        assert tab.is_quiet()

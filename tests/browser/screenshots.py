"""The pictures of the documents, made from the sample log by a real browser: `make screenshots`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.cli.main import run
from goodput_cli.report.base import Page, load_renderer
from loggen.scenario import Scenario
from loggen.write import write_log
from tests.browser.tabs import ROOT, launched, opened

IMAGES = ROOT / "docs" / "images"
LOG = ROOT / "sample_logs" / "llm-pretrain.jsonl"
_RUNS = 64
LARGEST = 300_000
"""Maximum size of a picture in bytes, because clones contain them."""


def main() -> None:
    """Write docs/images/."""
    IMAGES.mkdir(exist_ok=True)
    analysis = goodput_cli.analyze(LOG)
    with TemporaryDirectory() as folder, launched() as browser:
        report = _write_page(analysis, Path(folder), "html")
        _capture_headline(browser, report)
        _capture_zoom(browser, report)
        _capture_phone(browser, report)
        _capture_comparison(browser, Path(folder))
        _capture_picture(browser, _write_page(analysis, Path(folder), "svg"))
        _capture_site(browser, Path(folder))
    for image in sorted(IMAGES.glob("*.png")):
        size = image.stat().st_size
        print(f"{image.relative_to(ROOT)}  {size} bytes")
        assert size < LARGEST, f"{image.name} is too large"


def _write_page(analysis: Analysis, folder: Path, kind: str) -> Path:
    file = folder / f"report.{kind}"
    text = load_renderer(kind)(analysis, Page())
    assert isinstance(text, str)
    file.write_text(text, encoding="utf-8")
    return file


def _capture_headline(browser: Any, report: Path) -> None:
    """Capture the beginning of a report."""
    with opened(browser, report) as tab:
        tab.page.set_viewport_size({"width": 1280, "height": 1240})
        tab.page.wait_for_timeout(500)
        tab.page.screenshot(path=IMAGES / "report.png")


def _capture_zoom(browser: Any, report: Path) -> None:
    """Capture the main chart in dark mode, zoomed to a disruption, with its description."""
    with opened(browser, report, dark=True) as tab:
        figure = tab.page.locator("#progress")
        figure.scroll_into_view_if_needed()
        box = tab.page.locator("#progress .live").bounding_box()
        tab.page.mouse.move(box["x"] + 0.55 * box["width"], box["y"] + 100)
        tab.page.locator("#progress .live").focus()
        tab.page.keyboard.press("+")
        tab.page.keyboard.press("+")
        tab.until("document.querySelector('#progress .shown').innerText !== 'the whole window'")
        tab.page.wait_for_timeout(500)
        tab.evaluate("document.activeElement.blur()")
        box = tab.page.locator("#progress .live").bounding_box()
        tab.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 320)
        tab.page.locator("section[aria-labelledby=steps-and-clock]").screenshot(path=IMAGES / "report-zoom.png")


def _capture_phone(browser: Any, report: Path) -> None:
    """Capture the main chart on a phone."""
    with opened(browser, report, width=390) as tab:
        tab.page.locator("section[aria-labelledby=steps-and-clock]").screenshot(path=IMAGES / "report-phone.png")
        tab.page.locator(".rows:has(#disruption-row-1)").screenshot(path=IMAGES / "report-phone-rows.png")


def _capture_comparison(browser: Any, folder: Path) -> None:
    """Capture the beginning of a comparison."""
    file = folder / "change.html"
    assert run(["compare", str(LOG), str(LOG.with_name("llm-pretrain-r2.jsonl")), "-q", "-o", str(file)]) == 0
    with opened(browser, file, dark=True, drawn=False) as tab:
        tab.page.set_viewport_size({"width": 1280, "height": 1150})
        tab.page.screenshot(path=IMAGES / "compare.png")


def _capture_site(browser: Any, folder: Path) -> None:
    """Capture the first page of a fleet's site: eight weeks, each run separate."""
    logs = folder / "logs"
    logs.mkdir()
    for number in range(_RUNS):
        start = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(days=56 * number / _RUNS)
        pace = 150 + 37 * (number % 7)
        scenario = Scenario(seed=number, lines=1500, job_name=f"llm-{number:02d}", start=start, disruption_every=pace)
        with (logs / f"llm-{number:02d}.jsonl").open("wb") as stream:
            write_log(scenario, stream)
    accelerators = ["--accelerators", "256", "--price-per-hour", "2.5"]
    assert run(["fleet", str(logs), *accelerators, "--workers", "1", "-q", "-o", f"{folder}/site/"]) == 0
    with opened(browser, folder / "site" / "index.html", drawn=False) as tab:
        tab.page.set_viewport_size({"width": 1280, "height": 1150})
        tab.page.screenshot(path=IMAGES / "site.png")


def _capture_picture(browser: Any, picture: Path) -> None:
    """Capture the main picture alone."""
    with opened(browser, picture, drawn=False) as tab:
        tab.page.locator("svg").first.screenshot(path=IMAGES / "picture.png")


if __name__ == "__main__":
    main()

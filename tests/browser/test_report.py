"""The report in a real browser: quiet, readable at every width, by keyboard and without scripts, and harmless."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from goodput_cli.report.base import Page
from goodput_cli.report.html.analysis import render
from goodput_cli.vocabulary.categories import brief_name
from tests.browser.tabs import CUT, DESKTOP, PHONE, ROOT, Tab, opened
from tests.report.test_html_report import HOSTILE_NAMES, hostile_log, written
from tests.support.logs import Recorder

LUMINANCE = """
(selector) => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility()).map((one) => {
    const style = getComputedStyle(one);
    const ink = parse(one.closest("svg") ? style.fill : style.color);
    const [high, low] = [light(ink), light(ground(one))].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  });
}
"""


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the report of the sample log."""
    analysis = goodput_cli.analyze(ROOT / "sample_logs" / "llm-pretrain.jsonl", thresholds=["goodput<80"])
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(str(render(analysis, Page())), encoding="utf-8")
    return file


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_report_is_quiet_and_fits(browser: Any, report: Path, width: int, dark: bool) -> None:
    with opened(browser, report, width=width, dark=dark) as tab:
        tab.is_quiet()
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        ratios = tab.evaluate(f"({LUMINANCE})('p, dt, dd, th, td, h1, h2, h3, a, figure svg text, button, code')")
        assert len(ratios) > 100
        assert min(ratios) >= 4.5


def test_dark_mode_is_dark_and_paper_is_white(browser: Any, report: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, report, dark=True) as tab:
        assert tab.evaluate(ground) == "rgb(15, 20, 25)"
        tab.page.emulate_media(media="print")
        assert tab.evaluate(ground) == "rgb(255, 255, 255)"


def test_report_prints_on_four_pages_with_opened_parts(browser: Any, report: Path) -> None:
    with opened(browser, report) as tab:
        paper = tab.page.pdf(format="A4")
        assert paper.startswith(b"%PDF")
        assert len(re.findall(rb"/Type\s*/Page\b", paper)) <= 4
        tab.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        tab.evaluate("document.querySelectorAll('.unfold input').forEach((one) => one.click())")
        whole = tab.page.pdf(format="A4")
        assert len(re.findall(rb"/Type\s*/Page\b", whole)) > 6
        tab.is_quiet()


def test_report_without_scripts_has_every_number(browser: Any, report: Path) -> None:
    analysis = goodput_cli.analyze(ROOT / "sample_logs" / "llm-pretrain.jsonl")
    with opened(browser, report, scripts=False) as tab:
        text = tab.page.locator("main").inner_text()
        assert "70.43 %" in text
        rows = (analysis.goodput, *analysis.badput)
        assert all(brief_name(row.name) in text and str(row.ns // 10**9) in text for row in rows)
        drawings = tab.page.locator("figure .still svg")
        assert drawings.count() == 3
        assert all(drawings.nth(number).is_visible() for number in range(3))
        assert tab.page.locator("figure button").count() == 0


def zoomed_range(tab: Tab) -> str:
    return str(tab.page.locator("#progress .shown").inner_text())


def test_charts_zoom_together_and_respond(browser: Any, report: Path) -> None:
    with opened(browser, report) as tab:
        chart = tab.page.locator("#progress .live")
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        tab.page.mouse.move(box["x"] + 0.45 * box["width"], box["y"] + 200)
        told = tab.page.locator("#progress .tip").inner_text()
        assert re.search(r"2026-01-1\d \d\d:\d\d:\d\d UTC, .* after the start", told)
        assert "wasted training" in told
        assert "wasted progress" in told
        assert zoomed_range(tab) == "the whole window"
        tab.page.locator("#progress").get_by_role("button", name="Zoom in").click()
        tab.until("!document.querySelector('#step-times .shown').innerText.includes('whole')")
        assert zoomed_range(tab) == tab.page.locator("#step-times .shown").inner_text()
        tab.page.locator("#step-times").get_by_role("button", name="Whole window").click()
        tab.until("document.querySelector('#progress .shown').innerText === 'the whole window'")
        tab.is_quiet()


def drag(tab: Tab, begin: float, end: float) -> None:
    """Drag over the main chart, between fractions of its width."""
    box = tab.page.locator("#progress .live").bounding_box()
    tab.page.mouse.move(box["x"] + begin * box["width"], box["y"] + 100)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + (begin + end) / 2 * box["width"], box["y"] + 110)
    tab.page.mouse.move(box["x"] + end * box["width"], box["y"] + 110)
    tab.page.mouse.up()


def until_shown(tab: Tab, condition: str) -> str:
    tab.until(f"(shown => {condition})(document.querySelector('#progress .shown').innerText)")
    return zoomed_range(tab)


def seconds_shown(words: str) -> list[float]:
    """Return the shown range, in seconds since 1970."""
    parts = re.findall(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", words)
    return [datetime.fromisoformat(f"{part}+00:00").timestamp() for part in parts]


def test_mouse_and_keys_zoom_move_and_undo(browser: Any, report: Path) -> None:
    with opened(browser, report) as tab:
        tab.page.locator("#progress .live").scroll_into_view_if_needed()
        drag(tab, 0.4, 0.6)
        near = until_shown(tab, "shown !== 'the whole window'")
        start, end = seconds_shown(near)
        assert 0.15 < (end - start) / (11 * 3600) < 0.3
        tab.page.keyboard.down("Shift")
        drag(tab, 0.7, 0.5)
        tab.page.keyboard.up("Shift")
        moved = until_shown(tab, f"shown !== '{near}'")
        later = seconds_shown(moved)
        assert later[0] > start
        assert later[1] - later[0] == pytest.approx(end - start, abs=2)
        tab.page.locator("#progress .live").focus()
        tab.page.keyboard.press("Escape")
        until_shown(tab, f"shown === '{near}'")
        tab.page.locator("#progress").get_by_role("button", name="Zoom in").press("Enter")
        until_shown(tab, f"shown !== '{near}'")
        tab.page.locator("#progress").get_by_role("button", name="Back").press("Enter")
        until_shown(tab, f"shown === '{near}'")
        tab.page.locator("#progress .live").dblclick(position={"x": 500, "y": 80})
        until_shown(tab, "shown === 'the whole window'")
        assert tab.is_quiet()


def test_link_to_a_disruption_shows_its_summary_too(browser: Any, report: Path) -> None:
    with opened(browser, report) as tab:
        tab.page.evaluate("location.hash = '#disruption-4'")
        summary = "document.getElementById('disruption-4').closest('details').querySelector('summary')"
        tab.until(f"{summary}.getBoundingClientRect().top >= 0 && scrollY > 0")
        known = tab.page.locator("#disruption-4 dl").first
        exact = known.locator("dd[title='5439.906047 s']")
        assert exact.inner_text() == "1 h 31 min"
        assert not re.search(r"[0-9]\.[0-9]{4,} s", known.inner_text())


def test_wheel_scrolls_the_page_and_zooms_only_with_ctrl(browser: Any, report: Path) -> None:
    with opened(browser, report) as tab:
        chart = tab.page.locator("#progress .live")
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        tab.page.mouse.move(box["x"] + 500, box["y"] + 100)
        before = tab.evaluate("scrollY")
        tab.page.mouse.wheel(0, 120)
        tab.until(f"scrollY > {before}")
        assert zoomed_range(tab) == "the whole window"
        tab.page.keyboard.down("Control")
        tab.page.mouse.wheel(0, -240)
        tab.page.keyboard.up("Control")
        tab.until("document.querySelector('#progress .shown').innerText !== 'the whole window'")
        tab.is_quiet()


def test_everything_is_reachable_by_keyboard(browser: Any, report: Path) -> None:
    with opened(browser, report) as tab:
        page = tab.page
        page.keyboard.press("Tab")
        assert page.locator(":focus").inner_text() == "Skip to the content"
        assert page.locator(":focus").bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        assert tab.evaluate("document.activeElement.id") == "main"
        seen = []
        for _ in range(40):
            page.keyboard.press("Tab")
            seen.append(tab.evaluate("document.activeElement.className || document.activeElement.localName"))
            if seen[-1] == "body":  # the end of the page
                break
            style = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert style != "none", f"{seen[-1]} shows no focus"
        assert {"scroll", "live", "button"} <= set(seen)
        page.locator("#progress .live").focus()
        for key in ("ArrowRight", "+"):
            page.keyboard.press(key)
        tab.until("document.querySelector('#progress .shown').innerText !== 'the whole window'")
        assert "after the start" in page.locator("#progress .unseen").inner_text()
        page.keyboard.press("0")
        tab.until("document.querySelector('#progress .shown').innerText === 'the whole window'")


def test_screen_reader_finds_landmarks_names_and_charts(browser: Any, report: Path) -> None:
    with opened(browser, report) as tab:
        outline = tab.page.locator("body").aria_snapshot()
        for part in ("main", 'navigation "Sections"', "contentinfo", "banner", 'heading "llm-pretrain-7b" [level=1]'):
            assert f"- {part}" in outline
        assert 'table "Time by category, from wall clock to goodput"' in outline
        assert 'group "Step against wall clock: 6 attempts, 5 disruptions' in outline
        named = "one.textContent.trim() || one.ariaLabel || one.getAttribute('aria-labelledby')"
        controls = "[...document.querySelectorAll('button, a, [role=region], [role=group]')]"
        assert tab.evaluate(f"{controls}.every((one) => {named})")


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name)[:20])
def test_hostile_names_do_nothing(browser: Any, name: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(written(hostile_log(tmp_path, name), name), encoding="utf-8")
    with opened(browser, file, width=PHONE) as tab:
        assert (
            tab.evaluate("document.querySelectorAll('img, iframe, object, embed, link:not([rel=icon]), base').length")
            == 0
        )
        assert tab.evaluate("document.querySelectorAll('script').length") == 3
        handlers = "[...one.attributes].some((attribute) => attribute.name.startsWith('on'))"
        assert not tab.evaluate(f"[...document.querySelectorAll('*')].some((one) => {handlers})")
        assert tab.evaluate("document.documentElement.scrollWidth") == PHONE
        tab.page.locator("#progress .live").hover(position={"x": 200, "y": 100})
        tab.page.locator("details").first.click()
        tab.is_quiet()


def test_policy_blocks_foreign_content(browser: Any, report: Path) -> None:
    image = "<img src='https://example.com/x.png' onerror='window.acted = 1'>"
    script = "Object.assign(document.createElement('script'), { textContent: 'window.acted = 2' })"
    with opened(browser, report) as tab:
        tab.page.evaluate("(html) => document.body.insertAdjacentHTML('beforeend', html)", image)
        tab.evaluate(f"document.body.append({script})")
        tab.page.wait_for_timeout(300)
        assert tab.evaluate("window.acted") is None
        assert any("Content Security Policy" in line for line in tab.said)


def test_reports_of_short_jobs_are_quiet(browser: Any, tmp_path: Path) -> None:
    logs = {
        "without a step": Recorder().start(0).end(100),
        "without a disruption": Recorder().start(0).steps(0, 9, 10, 10),
        "of milliseconds": Recorder().start(0).steps(0, 400, 0, 0.00001),
        "of a year": Recorder().start(0).steps(0, 50, 10, 5).start(4e7).steps(30, 80, 4e7 + 10, 5),
    }
    for name, log in logs.items():
        file = tmp_path / f"{name}.html"
        analysis = goodput_cli.analyze(log.write(tmp_path / f"{name}.jsonl"))
        file.write_text(str(render(analysis, Page())), encoding="utf-8")
        with opened(browser, file, width=PHONE) as tab:
            assert tab.page.locator("#progress .live svg").is_visible()
            tab.page.locator("#progress .live").hover(position={"x": 200, "y": 40})
            assert "after the start" in tab.page.locator("#progress .tip").inner_text()
            tab.is_quiet()


@pytest.mark.parametrize("name", ["primer-50-percent", "fsdp-2-attempts"])
def test_reports_of_checkpoint_logs_are_quiet(browser: Any, name: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(str(render(goodput_cli.analyze(ROOT / "sample_logs" / f"{name}.jsonl"), Page())), encoding="utf-8")
    with opened(browser, file) as tab:
        assert tab.page.locator("figure .live svg").count() == 2
        tab.is_quiet()


@pytest.mark.parametrize("command", ["rolling", "timeline", "disruptions", "steps", "jobs", "check"])
def test_pages_of_other_commands_are_quiet(browser: Any, command: str, tmp_path: Path) -> None:
    file = tmp_path / "answer.html"
    run([command, str(ROOT / "sample_logs" / "llm-pretrain.jsonl"), "-q", "-o", str(file)])
    for width in (DESKTOP, PHONE):
        with opened(browser, file, width=width, drawn=False) as tab:
            assert tab.page.locator("table").first.is_visible()
            assert tab.evaluate("document.documentElement.scrollWidth") == width
            tab.page.emulate_media(media="print")
            assert tab.evaluate(CUT) == 0
            tab.is_quiet()


def test_first_screen_shows_the_largest_loss_and_the_picture(browser: Any, report: Path) -> None:
    with opened(browser, report) as tab:
        said = tab.page.locator("section.insights").inner_text().replace("\N{NO-BREAK SPACE}", " ")
        assert "step 1503 hung for 25 min 08 s" in said
        steps = "document.querySelector('#progress .concat_0_group path.background').getBoundingClientRect().bottom"
        assert tab.evaluate(steps) <= 940  # 898 here; other fonts are taller
        tab.page.locator("section.insights a", has_text="disruption 4").first.click()
        tab.until("document.getElementById('disruption-4').closest('details').open")
        assert tab.is_quiet()


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_names_are_complete_and_the_page_is_short(browser: Any, report: Path, width: int) -> None:
    """Each category is on one line, and no part of the waterfall is cut."""
    with opened(browser, report, width=width) as tab:
        heights = "[...document.querySelectorAll('.waterfall .named bdi')].map((one) => one.getClientRects().length)"
        assert {*tab.evaluate(heights)} == {1}
        wide = (
            "[...document.querySelectorAll('.waterfall tr > *')].filter((one) => one.scrollWidth > innerWidth).length"
        )
        assert tab.evaluate(wide) == 0
        assert tab.evaluate("document.documentElement.scrollHeight") < 12_000


def test_link_to_a_folded_row_opens_it_without_a_script(browser: Any, report: Path) -> None:
    with opened(browser, report, width=PHONE, scripts=False) as tab:
        page = tab.page
        rows = page.locator(".rows:has(#step-1503) tbody tr")
        assert sum(rows.nth(number).is_visible() for number in range(rows.count())) == 6
        page.locator(".waterfall a").first.click()
        behind = page.locator("div.target:target")
        assert behind.locator("table").is_visible()
        last = rows.last.get_attribute("id")
        page.goto(f"{report.as_uri()}#{last}")
        assert page.locator(f"#{last}").is_visible()
        page.locator(".rows:has(#step-1503) input").check()
        assert all(rows.nth(number).is_visible() for number in range(rows.count()))


TRACKS = """[...document.querySelectorAll("table")].map((table) =>
  [...table.querySelectorAll("svg.bar")].filter((bar) => bar.checkVisibility()).map((bar) => bar.clientWidth))"""
"""Script that returns the maximum length of the bars of each table, in px."""


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_bars_of_a_table_have_tracks_of_one_length(browser: Any, tmp_path: Path, width: int) -> None:
    logs = [str(ROOT / "sample_logs" / name) for name in ("llm-pretrain.jsonl", "llm-pretrain-r2.jsonl")]
    pages = [["rolling", logs[0]], ["compare", *logs], ["fleet", *logs, "--workers", "1", "--accelerators", "8"]]
    for command in pages:
        file = tmp_path / f"{command[0]}.html"
        assert run([*command, "-q", "-o", str(file)]) == 0
        with opened(browser, file, width=width, drawn=False) as tab:
            tracks = [one for one in tab.evaluate(TRACKS) if one]
            assert tracks
            assert all(len(set(one)) == 1 and one[0] >= 80 for one in tracks)


@pytest.mark.parametrize("command", ["disruptions", "compare", "advise"])
def test_nothing_is_cut_on_a_phone(browser: Any, command: str, tmp_path: Path) -> None:
    """Tables are cards, and charts fit, so nothing scrolls horizontally."""
    file, logs = tmp_path / "answer.html", [ROOT / "sample_logs" / "llm-pretrain.jsonl"]
    logs += [ROOT / "sample_logs" / "llm-pretrain-r2.jsonl"] * (command == "compare")
    run([command, *map(str, logs), "-q", "-o", str(file)])
    cut = "[...document.querySelectorAll('.scroll, .still')].filter((one) => one.scrollWidth > one.clientWidth + 1)"
    with opened(browser, file, width=PHONE, drawn=False) as tab:
        assert tab.evaluate(f"{cut}.length") == 0

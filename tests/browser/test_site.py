"""A fleet's site in a real browser: it sorts, filters, and links to runs and back, also by keyboard, at both widths."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.cli.main import run
from tests.browser.tabs import CUT, DESKTOP, PHONE, Tab, opened
from tests.causes.test_rules import FIRST, SECOND, raised
from tests.support.fleets import put, text_of, training


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for number, hours in enumerate((10, 12, 11)):
        put(folder / "logs" / f"{number}.jsonl", training(f"llm-{number}", hours, 6, at=number * 86_400))
    assert run(["fleet", str(folder / "logs"), "--workers", "1", "-q", "-o", f"{folder}/site/"]) == 0
    return folder / "site" / "index.html"


def jobs(tab: Tab) -> list[str]:
    """Return the names in the displayed order."""
    rows = "[...document.querySelectorAll('#every-run tbody tr')].filter(row => !row.hidden)"
    found: list[str] = tab.evaluate(f"{rows}.map(row => row.cells[0].textContent)")
    return found


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("dark", [False, True])
def test_site_sorts_and_filters_and_links_to_runs(browser: Any, index: Path, width: int, dark: bool) -> None:
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


def test_site_without_scripts_has_every_run(browser: Any, index: Path) -> None:
    with opened(browser, index, scripts=False, drawn=False) as tab:
        assert tab.page.locator("#every-run tbody tr").count() == 3
        assert not tab.page.is_visible("#filter")


def test_page_of_a_run_draws_its_charts_itself(browser: Any, index: Path) -> None:
    """A script draws the charts of a site's pages. Without scripts each chart has a message, and all numbers are
    shown."""
    (page,) = (index.parent / "runs").glob("llm-0-*.html")
    assert "This chart needs JavaScript, which does not run here" in page.read_text(encoding="utf-8")
    with opened(browser, page) as tab:
        charts = tab.page.locator("figure[data-chart]")
        assert charts.count() == tab.page.locator("figure[data-chart] svg.marks").count() > 0
        assert not tab.page.get_by_text("which does not run here").first.is_visible()
        assert tab.is_quiet()
    with opened(browser, page, scripts=False, drawn=False) as tab:
        assert tab.page.get_by_text("which does not run here").first.is_visible()


HOSTILE = "</script><img src=x onerror=alert(1)>\"'&<svg/onload=alert(2)>\u202eevil"


@pytest.mark.parametrize("name", [HOSTILE, "../../etc/passwd", "javascript:alert(1)", "x" * 4000])
def test_hostile_name_does_nothing(browser: Any, tmp_path: Path, name: str) -> None:
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


def test_site_prints(browser: Any, index: Path) -> None:
    with opened(browser, index, drawn=False) as tab:
        tab.page.emulate_media(media="print")
        assert not tab.page.is_visible("#filter"), "on paper nothing can be filtered"
        assert len(jobs(tab)) == 3
        assert tab.page.pdf(format="A4").startswith(b"%PDF")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a site of 40 runs in four teams."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(40):
        hours = 10 + number % 3
        put(
            folder / "logs" / f"{number}.jsonl",
            training(f"llm-{number:02d}", hours, 1 + number % 9, at=number * 40_000),
        )
    rows = [f"llm-{number:02d},team {number % 4}&<b>,8" for number in range(40)]
    (folder / "labels.csv").write_text(text_of("job,team,accelerators", *rows))
    asked = ["fleet", str(folder / "logs"), "--labels", str(folder / "labels.csv"), "--by", "team", "--workers", "1"]
    assert run([*asked, "-q", "-o", f"{folder}/site/"]) == 0
    return folder / "site" / "index.html"


TEAM = "team 1&<b>"
_ADDRESS = "decodeURIComponent(location.hash)"


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_filters_are_kept_in_the_address(browser: Any, many: Path, width: int) -> None:
    with opened(browser, many, width=width, drawn=False) as tab:
        tab.page.select_option("[data-filter=team]", label=TEAM)
        found = jobs(tab)
        assert len(found) == 10
        tab.page.fill("[data-filter=goodput]", "40")
        fewer = jobs(tab)
        assert 0 < len(fewer) < 10
        assert tab.evaluate(_ADDRESS) == f"#team={TEAM}&goodput<40"
        tab.page.reload()
        assert jobs(tab) == fewer
        assert tab.page.text_content("#shown") == f"{len(fewer)} of 40"
        tab.page.press("[data-filter=goodput]", "Enter")
        tab.page.select_option("[data-filter=team]", label="team 2&<b>")
        tab.page.go_back()
        assert jobs(tab) == fewer
        tab.page.click("#filters button[type=reset]")
        tab.until("document.querySelector('#shown').textContent === '40 in all'")
        assert tab.errors == tab.dialogs == tab.said == []


@pytest.mark.parametrize(
    "hash_",
    ["#<img src=x onerror=alert(1)>=1", "#q=<script>alert(1)</script>", "#team=nobody", "#x=%E0%A4%A&sort=none",
     "#sort=constructor&__proto__=1", "#all-runs"],
)  # fmt: skip
def test_strange_address_is_only_text(browser: Any, many: Path, hash_: str) -> None:
    with opened(browser, many, drawn=False) as tab:
        tab.page.evaluate(f"location.hash = {hash_!r}")
        tab.page.wait_for_timeout(100)
        assert len(jobs(tab)) == (0 if "q=" in hash_ else 40)
        assert tab.errors == tab.dialogs == []


@pytest.mark.parametrize("scripts", [True, False])
def test_runs_are_near_the_top_and_the_page_is_short(browser: Any, many: Path, scripts: bool) -> None:
    with opened(browser, many, scripts=scripts, drawn=False) as tab:
        top = tab.page.locator("#all-runs").bounding_box()
        assert top["y"] < 1800
        assert tab.page.evaluate("document.documentElement.scrollHeight") < 5000
        assert tab.page.locator("#every-run tbody tr").count() == 40
        tab.page.click("text=By team")
        tab.page.locator("summary", has_text="By team").scroll_into_view_if_needed()


def test_dots_and_teams_link_to_runs(browser: Any, many: Path) -> None:
    with opened(browser, many, drawn=False) as tab:
        hrefs = tab.evaluate("[...document.querySelectorAll('#runs svg a')].map(one => one.getAttribute('href'))")
        assert len(hrefs) == 40
        assert all((many.parent / one).is_file() for one in hrefs)
        tab.page.evaluate("document.querySelector('#runs').closest('details').open = true")
        tab.page.click("#runs svg a path", force=True)
        tab.until("document.title.startsWith('Goodput of')")


@pytest.fixture(scope="module")
def died(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a site of runs that died of two causes, in two weeks and two teams. One run has an odd name."""
    folder = tmp_path_factory.mktemp("died")
    full, memory = (
        "OSError: [Errno 28] No space left on device",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    )
    for name, *said in (("a", memory), ("b", memory), ("c", full), ("d", memory, full)):
        later = [[line.replace("2026-03-01", f"2026-03-{day:02d}") for line in SECOND] for day in (2, 3)]
        lives = [line for life in ([], *later)[: len(said)] for line in life]
        lines = [*FIRST, *raised(1, said[0]), *lives, *(raised(2, said[1]) if len(said) > 1 else ()), *later[-1]]
        put(folder / "logs" / name / f"{name}.log", lines)
    put(folder / "logs" / "late.jsonl", training("late", 10, 6, at=70 * 86_400))
    (folder / "labels.csv").write_text(text_of("job,team,accelerators", f'[ab],"{ODD}",8', "*,rl,8"))
    asked = ["fleet", str(folder / "logs"), "--labels", str(folder / "labels.csv"), "--by", "team", "--workers", "1"]
    assert run([*asked, "-q", "-o", f"{folder}/site/"]) == 0
    return folder / "site" / "index.html"


ODD = "vision: <b>&1"
PRESSED = [
    ("#weeks path.press", "week=2026-W", ["2026-W09", "2026-W10", "2026-W11"]),
    ("#groups path.press", "team=", [ODD, "rl"]),
    ("#causes path.press", "cause=", ["device_oom", "disk_full"]),
]


@pytest.mark.parametrize(("marks", "address", "names"), PRESSED, ids=["week", "team", "cause"])
def test_click_on_a_chart_shows_the_runs_of_its_row(
    browser: Any, died: Path, marks: str, address: str, names: list[str]
) -> None:
    """The number agrees with the row of the table, whose name has the same link; back shows all runs."""
    with opened(browser, died, drawn=False) as tab:
        tab.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        figure = tab.page.locator(marks).first.locator("xpath=ancestor::section[1]")
        said = tab.evaluate(f"[...document.querySelectorAll('{marks} title')].map((one) => one.textContent)")
        assert {one.rpartition(": ")[0] for one in said} <= set(names)
        for place, one in enumerate(said[:4]):
            name = one.rpartition(": ")[0]
            tab.page.locator(marks).nth(place).dispatch_event("click")
            tab.until(f"{_ADDRESS}.startsWith('#{address}')")
            shown = jobs(tab)
            row = figure.locator("tbody tr").filter(has=tab.page.get_by_role("rowheader", name=name, exact=True)).first
            heads = figure.locator("table").first.locator("thead tr > *").all_inner_texts()
            assert len(shown) == int(row.locator("> *").nth(heads.index("runs")).inner_text())
            tab.page.go_back()
            tab.until("document.querySelector('#shown').textContent.endsWith('in all')")
            row.locator("th a").click()
            assert jobs(tab) == shown
            tab.page.go_back()
        assert tab.errors == tab.dialogs == tab.said == []


def test_runs_are_found_by_any_of_their_causes(browser: Any, died: Path) -> None:
    with opened(browser, died, drawn=False) as tab:
        tab.page.select_option("[data-filter=cause]", label="disk_full")
        assert sorted(jobs(tab)) == ["c", "d"]
        tab.page.reload()
        assert sorted(jobs(tab)) == ["c", "d"]
        tab.page.evaluate("location.hash = '#kind=disruptions'")
        tab.until("document.querySelector('[data-filter=cause]').value === ''")


def test_folded_parts_are_printed_and_cut_parts_are_marked(browser: Any, many: Path) -> None:
    with opened(browser, many, drawn=False) as tab:
        tab.page.emulate_media(media="print")
        assert tab.page.get_by_text("10 of 40 rows; all are on the page").is_visible()
        assert tab.evaluate(CUT) == 0
        hidden = "filter((one) => !one.checkVisibility({ contentVisibilityAuto: true }))"
        assert (
            tab.evaluate(f"[...document.querySelectorAll('main details h2, main details table')].{hidden}.length") == 0
        )
        tab.page.emulate_media(media="screen")
        tab.page.select_option("[data-filter=team]", label=TEAM)
        tab.page.emulate_media(media="print")
        assert tab.page.is_visible("text=10 of 40 runs: team team 1&<b>")
        assert len(jobs(tab)) == 10
        assert tab.evaluate(CUT) == 0

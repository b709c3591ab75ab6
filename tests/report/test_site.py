"""`goodput fleet -o DIR/`: a page for the fleet and a page per run. Only changed pages are written again."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import goodput_cli
from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.cli.main import run
from tests.support.answers import page_text
from tests.support.commands import LONG_ENOUGH, until
from tests.support.documents import ROOT, section
from tests.support.fleets import HOUR, of_job, put, text_of, training
from tests.support.story import end, job_finished, start, steps, story_lines

Output = pytest.CaptureFixture[str]
HOSTILE = '<img src=x onerror=alert(1)>"/../../../etc'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        put(Path(f"logs/{name}.jsonl"), training(name, 2, 1))
    return tmp_path


def site(*more: str) -> int:
    return run(["fleet", "logs", "--workers", "1", "-o", "site/", *more])


def links(page: Path) -> list[str]:
    """Return the targets of the page's links, except those within the page, each once."""
    found = re.findall(r'href="([^"#]*)"', page.read_text(encoding="utf-8"))
    return [one for one in dict.fromkeys(found) if one and not one.startswith("data:")]


def test_each_run_has_a_page_and_a_way_back(capsys: Output) -> None:
    assert site() == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "site/: index.html and 2 run pages (2 updated)" in said.err
    pages = [Path("site") / one for one in links(Path("site/index.html"))]
    assert sorted(pages) == sorted(Path("site/runs").iterdir())
    assert all(links(page) == ["../index.html"] for page in pages)
    assert [re.search("<title>Goodput of (.)", page.read_text())[1] for page in sorted(pages)] == ["a", "b"]  # type: ignore[index]


def test_only_changed_pages_are_redrawn_and_old_ones_removed(capsys: Output) -> None:
    site("--store", "store")
    pages = {path: path.stat().st_mtime_ns for path in Path("site/runs").iterdir()}
    capsys.readouterr()
    put(Path("logs/b.jsonl"), training("b", 3, 1))
    assert site("--store", "store") == 0
    assert "index.html and 2 run pages (1 updated)" in capsys.readouterr().err
    assert [path.stat().st_mtime_ns != before for path, before in sorted(pages.items())] == [False, True]
    Path("logs/a.jsonl").unlink()
    site("--store", "store")
    assert "index.html and 1 run page (0 updated, 1 page of former runs removed)" in capsys.readouterr().err
    assert len(list(Path("site/runs").iterdir())) == 1
    assert len(links(Path("site/index.html"))) == 1


def test_log_with_an_undecodable_name_has_a_page() -> None:
    Path("logs/a.jsonl").rename(os.fsdecode(b"logs/\xff.jsonl"))
    put(Path(os.fsdecode(b"logs/\xfe.jsonl")), training("c", 1, 1))
    assert site() == 0
    assert len(links(Path("site/index.html"))) == 3
    before = {path: path.stat().st_mtime_ns for path in Path("site/runs").iterdir()}
    assert site() == 0
    assert {path: path.stat().st_mtime_ns for path in Path("site/runs").iterdir()} == before


def start_site(folder: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "goodput_cli", "fleet", folder, "--workers", "1", "-q", "-o", "site/"]
    return subprocess.Popen(command)


def test_two_writers_of_a_site_leave_no_orphan_page() -> None:
    for at in range(2):
        put(Path(f"others/{at}.jsonl"), training(f"other-{at}", 1, 1))
        put(Path(f"logs/{at}.jsonl"), training(f"job-{at}", 1, 1))
    with start_site("logs") as one, start_site("others") as other:
        assert (one.wait(LONG_ENOUGH), other.wait(LONG_ENOUGH)) == (0, 0)
    assert sorted(links(Path("site/index.html"))) == sorted(f"runs/{page.name}" for page in Path("site/runs").iterdir())


def test_killed_writer_leaves_no_orphan_page() -> None:
    for at in range(6):
        put(Path(f"others/{at}.jsonl"), training(f"other-{at}", 1, 1))
    with start_site("others") as process:
        until(lambda: list(Path("site").glob("runs/*.html")))
        process.kill()
    assert not Path("site/index.html").exists()
    Path("site/runs/mine.html").touch()
    assert site("-q") == 0
    pages = {f"runs/{page.name}" for page in Path("site/runs").iterdir()}
    assert pages == {*links(Path("site/index.html")), "runs/mine.html"}


@pytest.mark.parametrize(
    ("name", "reason"), [("a" * 300, "File name too long\ntip: use a shorter name"), ("/proc/x", "")]
)
def test_invalid_directory_is_one_sentence(name: str, reason: str, capsys: Output) -> None:
    assert run(["fleet", "logs", "-o", f"{name}/"]) == 1
    said = capsys.readouterr().err
    assert re.fullmatch(rf"error: {name}/: cannot be written: [^;]*{reason}\n", said)


def test_job_names_are_text_and_nothing_is_loaded() -> None:
    put(Path("logs/a.jsonl"), training(HOSTILE, 2, 1))
    assert site("-q") == 0
    index = Path("site/index.html").read_text(encoding="utf-8")
    assert "<img" not in index
    assert "&lt;img src=x" in index
    assert "default-src &#39;none&#39;" in index
    assert sorted(path.parent.name for path in Path("site").rglob("*.html")) == ["runs", "runs", "site"]
    assert all(re.fullmatch(r"runs/[a-z0-9-]+\.html", one) for one in links(Path("site/index.html")))


def test_table_row_adds_little_markup() -> None:
    """Rows are the largest part of a page with hundreds of runs."""
    site("-q", "--accelerators", "8")
    index = Path("site/index.html").read_text(encoding="utf-8")
    table = index[index.index('id="every-run"') :]
    rows = re.findall('<tr data-w="[0-9 ]*"(?: data-k="[0-9 ]*")?><th scope="row">.*', table[: table.index("</table>")])
    assert len(rows) == 2
    for row in rows:
        words = "".join(re.findall('href="([^"]*)"|>([^<]+)', row)[0]) + "".join(re.findall(">([^<]+)", row))
        assert len(row) - len(words) < 100


@pytest.mark.parametrize("more", [[], ["--accelerators", "8", "--price-per-hour", "2"]], ids=["time", "chips"])
def test_page_agrees_with_the_terminal(more: list[str], capsys: Output) -> None:
    """Losses, their categories and costs are the same figures in the same words."""
    put(Path("logs/a.jsonl"), training("a", 12, 10))
    site("-q", *more)
    capsys.readouterr()
    run(["fleet", "logs", "--workers", "1", "-q", *more])
    shown = " ".join(capsys.readouterr().out.split())
    page = page_text(Path("site/index.html"))
    (sentence,) = re.findall("<bdi>(most was lost to [^<]*)</bdi>", page)
    assert sentence in shown
    tiles = dict(re.findall("<dt>([^<]*)</dt><dd><bdi>([^<]*)</bdi>", page))
    assert [name for name in tiles if name.startswith("lost")] == [
        "lost accelerator hours" if more else "lost job hours"
    ]
    if more:
        assert f"lost {tiles['lost accelerator hours']} h = {tiles['cost']}" in shown
    assert "not recorded" not in page.partition('id="method"')[0]


def test_missing_values_are_one_final_line_with_their_option() -> None:
    site("-q")
    said = r"<dt>Not computed \(missing input\)</dt><dd><bdi>([^<]*)</bdi>"
    (line,) = re.findall(said, page_text(Path("site/index.html")))
    assert re.findall("--[a-z]+", line) == ["--labels", "--allocations", "--accelerators", "--capacity", "--labels"]


def test_tables_that_name_a_run_link_to_its_page() -> None:
    """They are the worst disruptions, and the changes from week to week."""
    for number in range(10):
        name, hours = f"run-{number}", 10 - number / 2
        put(Path(f"logs/{name}.jsonl"), training(name, 12, hours, at=7 * 24 * HOUR * (number // 5)))
    died = story_lines(
        start(0), steps(0, 61, at=0, every=60), start(2 * HOUR), steps(30, 91, at=2 * HOUR, every=60), end(4 * HOUR)
    )
    put(Path("logs/died.jsonl"), of_job(died, "died"))
    site("-q")
    index = Path("site/index.html").read_text(encoding="utf-8")
    pages = dict(re.findall(r'<th scope="row"><a href="(runs/[^"]*)">([^<]*)', index))
    assert len(pages) == 13
    for title, names in (("Worst disruptions", {"died"}), ("Change since", {"run-0", "run-9"})):
        part = index[index.index(f"<bdi>{title}") :]
        linked = re.findall(r'<a href="([^"]*)"><bdi>([^<]*)</bdi></a>', part[: part.index("</section>")])
        assert names <= {name for _, name in linked}
        assert all(pages[href] == name for href, name in linked)


def test_directory_that_is_not_a_site_is_unchanged(capsys: Output) -> None:
    Path("site").mkdir()
    Path("site/thesis.tex").write_text("x")
    assert site() == 2
    assert "contains files that are not a goodput fleet site" in capsys.readouterr().err
    assert [path.name for path in Path("site").iterdir()] == ["thesis.tex"]
    assert run(["fleet", "logs", "-o", "no/such/"]) == 2
    assert "create it first" in capsys.readouterr().err


def test_files_are_written_too_and_gates_apply() -> None:
    assert site("-q", "-o", "fleet.json", "--accelerators", "8", "--fail-under", "99.9") == 3
    assert Path("fleet.json").exists()
    assert Path("site/index.html").exists()


def test_changed_list_of_pages_deletes_nothing_else() -> None:
    site("-q")
    Path("precious.html").write_text("x")
    made_of = Path("site/site.json")
    made_of.write_text(
        made_of.read_text().replace(
            '"pages": {', '"pages": {"runs/../../precious.html": {"made_of": "x", "costs": {}},'
        )
    )
    assert site("-q") == 0
    assert Path("precious.html").exists()
    made_of.write_text(text_of("half of a file"))
    assert site("-q") == 0
    assert len(list(Path("site/runs").iterdir())) == 2


COSTS = re.compile(
    'data-head="what">([^<]*)<.*?accelerator h">([^<]*)<.*?"runs">([0-9]+)<.*?<bdi>(.)</bdi>.*?to do">([^<]+)<'
)
"""A row of the largest losses: title, hours, runs, the run that lost most, and advice."""


def test_largest_losses_are_sums_over_all_runs() -> None:
    """The costliest kind is first, with the run that lost most. Accelerators weight it, like the whole page."""
    for number, (name, hours) in enumerate((("a", 12), ("b", 16), ("c", 11))):
        put(Path(f"logs/{name}.jsonl"), training(name, hours, 10, at=number * 86_400))
    expected: dict[str, list[tuple[int, str]]] = {}
    for name in "abc":
        for insight in goodput_cli.analyze(f"logs/{name}.jsonl").insights:
            expected.setdefault(BY_CODE[insight.code].title, []).append((insight.ns, name))
    assert expected
    site("-q", "--accelerators", "8")
    index = Path("site/index.html").read_text(encoding="utf-8")
    section = index[index.index('id="cost-most"') : index.index('class="note"')]
    rows = re.findall(
        r'data-head="what">([^<]*)<.*?accelerator h">([^<]*)<.*?"runs">(\d+)<.*?<bdi>(\w)</bdi>.*?to do">([^<]+)<',
        section,
    )
    dearest = sorted(expected.items(), key=lambda one: -sum(ns for ns, _ in one[1]))
    assert [(title, hours, int(runs), most) for title, hours, runs, most, _ in rows] == [
        (title, f"{8 * sum(ns for ns, _ in costs) / 3.6e12:,.1f}", len(costs), max(costs)[1])
        for title, costs in dearest
    ]
    before = Path("site/site.json").read_text()
    site("-q", "--accelerators", "8")
    assert Path("site/site.json").read_text() == before
    assert COSTS.findall(Path("site/index.html").read_text(encoding="utf-8")) == rows, (
        "pages that are not drawn again count too"
    )


def test_recipes_are_commands_that_work() -> None:
    """The commands of cron, a workflow and a CronJob run with the logs of this test."""
    text = section(ROOT / "docs" / "fleet.md", "A site")
    pages, cron_job = map(yaml.safe_load, re.findall("```yaml\n(.*?)```", text, re.DOTALL))
    (cron,) = re.findall(r"&& (goodput fleet .*)", text)
    (step,) = [one["run"] for one in pages["jobs"]["site"]["steps"] if "run" in one]
    (container,) = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    for words in (shlex.split(cron)[1:], shlex.split(step)[1:], container["args"]):
        shutil.rmtree("site", ignore_errors=True)
        here = {"/logs": "logs", "gs://my-logs/jobs": "logs", "/shared/logs": "logs", "/shared/results": "results",
                "results/": "results", "/shared/site/": "site/"}  # fmt: skip
        assert run([*(here.get(word, word) for word in words), "--workers", "1"]) == 0
        assert len(list(Path("site/runs").iterdir())) == 2


def test_pages_of_a_job_s_runs_have_titles_and_links() -> None:
    again = story_lines(*(part for at in (0, 9, 18)
                          for part in (start(at * HOUR), *steps(0, 61, at=at * HOUR, every=60),
                                       end((at + 2) * HOUR))))  # fmt: skip
    put(Path("logs/again.jsonl"), of_job(again, "again"))
    site("-q", "--runs", "each")
    pages = sorted(Path("site/runs").glob("again-*.html"))
    titles = [re.findall("<title>([^<]*)", page.read_text(encoding="utf-8"))[0] for page in pages]
    redone = ", discarded later"
    assert [re.sub(":.*", "", one) for one in titles] == [
        f"Goodput of again, run {n} of 3{redone if n < 3 else ''}" for n in (1, 2, 3)
    ]
    assert "5 runs of 3 jobs: 2 restarted at the first step" in page_text(Path("site/index.html"))
    for page in pages:
        others = [one for one in links(page) if one != "../index.html"]
        assert sorted(others) == sorted(one.name for one in pages if one != page)
    put(Path("logs/again.jsonl"), Path("logs/again.jsonl").read_text().splitlines()[: 2 * len(again) // 3])
    site("-q", "--runs", "each")
    left = sorted(Path("site/runs").glob("again-*.html"))
    assert [re.findall("run [0-9] of [0-9]", page_text(page))[0] for page in left] == ["run 1 of 2", "run 2 of 2"]
    assert all((page.parent / one).exists() for page in left for one in links(page))


def test_finished_run_was_not_discarded() -> None:
    """A `job_end_time` alone is not enough, because a crash can write it too."""
    again = story_lines(*(part for at in (0, 9) for part in (start(at * HOUR), *steps(0, 61, at=at * HOUR, every=60),
                                                      job_finished((at + 2) * HOUR))))  # fmt: skip
    put(Path("logs/again.jsonl"), of_job(again, "again"))
    site("-q", "--runs", "each")
    page = page_text(Path("site/index.html"))
    assert ">1 of 2<" in page.replace("\n", "<")
    assert "thrown away" not in page
    assert "began again" not in page

"""Views of a platform manager: causes, groups and sizes that lost most, by group and by week."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from goodput_cli.fleet.run import NO_FORMAT
from tests.support.fleets import fleet, put, text_of, training
from tests.text.test_folders import printed

Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("folder")
DAY = 86_400


@pytest.fixture
def two_teams() -> tuple[str, ...]:
    """In each of two weeks, red loses 10 x 1 h and blue 1 x 4 h; in the second, blue's job has a long name."""
    long = "b" * 180
    for week in range(2):
        put(Path(f"logs/red_{week}.jsonl"), training(f"red_{week}", 4, 3, at=7 * week * DAY))
        put(Path(f"logs/blue_{week}.jsonl"), training(long if week else "blue_0", 8, 4, at=7 * week * DAY))
    Path("labels.csv").write_text(text_of("job,team,accelerators", "red_*,red,10", "*,blue,1"))
    return ("logs", "--labels", "labels.csv")


def test_largest_loss_is_printed_first(two_teams: tuple[str, ...], capsys: Output) -> None:
    assert run(["fleet", *two_teams, "--by", "team", "--workers", "1", "-q"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "most was lost to other (28.0 h, 100.00 % of what was lost), in team red (20.0 h, 71.43 %), in size 9" in said
    )
    assert run(["fleet", "logs", "--workers", "1", "-q"]) == 0
    assert "most was lost to other (10.0 h, 100.00 % of what was lost), by job time" in " ".join(
        capsys.readouterr().out.split()
    )


def test_weeks_of_a_group_are_in_order(two_teams: tuple[str, ...]) -> None:
    (table,) = fleet(*two_teams, "--by", "week,team")["groups"]
    assert [row["values"] for row in table["rows"]] == [
        ["2026-W01", "red"], ["2026-W02", "red"], ["2026-W01", "blue"], ["2026-W02", "blue"]
    ]  # fmt: skip
    (by_name,) = fleet(*two_teams, "--by", "week,team", "--sort", "name")["groups"]
    assert [row["values"][1] for row in by_name["rows"]] == ["blue", "red", "blue", "red"]


def test_page_lists_worst_runs_and_fits_long_names(two_teams: tuple[str, ...]) -> None:
    assert run(["fleet", *two_teams, "--workers", "1", "-q", "-o", "fleet.html"]) == 0
    page = Path("fleet.html").read_text()
    runs = page[page.index("<bdi>Runs</bdi></h2>") :]
    names = re.findall(r'<th scope="row" class="(\w*)" data-head="job"><bdi>(\w{4})', runs)
    assert names == [("whole", "red_"), ("whole", "red_"), ("long", "bbbb"), ("whole", "blue")]


def test_the_page_has_its_contents_under_its_title(two_teams: tuple[str, ...]) -> None:
    """In the order of its sections, and complete."""
    assert run(["fleet", *two_teams, "--workers", "1", "-q", "-o", "fleet.html"]) == 0
    page = Path("fleet.html").read_text()
    (contents,) = re.findall(r'(?s)<nav aria-label="Contents">(.*?)</nav>', page)
    assert page.index("</h1>") < page.index(contents) < page.index("<main")
    links = re.findall(r'<a href="#([^"]*)">([^<]*)</a>', contents)
    assert links == [(at, re.sub("<[^>]*>", "", name)) for at, name in re.findall(r'<h2 id="([^"]*)">(.*?)</h2>', page)]
    assert len(links) > 4


def test_unnamed_job_differs_from_document_without_events() -> None:
    put(Path("logs/a.jsonl"), training("a", 4, 3))
    put(Path("logs/b.jsonl"), ['{"step_count": 3, "step_start_time": 1767225600}'])
    put(Path("logs/c.jsonl"), ['{"hello": 3}'])
    listed = {one["name"]: one["reason"] for one in fleet("logs")["not_analysed"]}
    assert listed == {
        "logs/b.jsonl": "its events have no job name", "logs/c.jsonl": NO_FORMAT
    }  # fmt: skip


def test_a_plan_is_for_the_screen(capsys: Output) -> None:
    put(Path("logs/a.jsonl"), training("a", 4, 3))
    assert run(["fleet", "logs", "--plan", "-o", "plan.html"]) == 2
    assert run(["fleet", "logs", "--plan", "--format", "html"]) == 2
    assert capsys.readouterr().err.count("remove --output and --format") == 2
    assert not Path("plan.html").exists()


def test_empty_log_and_broken_link_are_listed(capsys: Output) -> None:
    put(Path("logs/a.jsonl"), training("a", 1, 0.5))
    put(Path("logs/empty.jsonl"), [])
    Path("logs/gone.jsonl").symlink_to("moved/away.jsonl")
    report = fleet("logs", "--workers", "1")
    assert {one["name"]: one["reason"] for one in report["not_analysed"]} == {
        "logs/empty.jsonl": "is empty",
        "logs/gone.jsonl": "is a link to moved/away.jsonl, which does not exist; fix or remove the link",
    }
    assert not report["complete"]
    assert run(["jobs", "logs"]) == 0
    said = capsys.readouterr().err
    assert "the target of the link does not exist\n    logs/gone.jsonl" in said
    assert "empty_logs: empty logs; their jobs are not listed\n    logs/empty.jsonl" in said


def test_changes_since_last_week_add_up(capsys: Output) -> None:
    """Six runs per week: in the second, one of them has its accelerators for 12 h longer without progress."""
    for week in range(2):
        for number in range(6):
            idle = 12 if (week, number) == (1, 4) else 0
            at = 7 * week * DAY + 3600 * number
            put(Path(f"logs/{week}-{number}.jsonl"), training(f"job-{week}-{number}", 10 + idle, 6, at=at))
    for more in (("--accelerators", "8"), ()):
        change = fleet("logs", "--workers", "1", *more)["change"]
        assert change["by_time"] is (more == ())
        assert change["points"] == pytest.approx(100 * (36 / 72 - 36 / 60))
        for what in ("category", "run"):
            rows = [row for row in change["rows"] if row["what"] == what]
            assert sum(row["points"] for row in rows) == pytest.approx(change["points"])
            assert all(row["points"] == pytest.approx(row["before_percent"] - row["now_percent"]) for row in rows)
        worst = min(change["rows"], key=lambda row: row["points"] if row["what"] == "run" else 0)
        assert (worst["name"], worst["before_percent"]) == ("job-1-4", 0.0)
    assert run(["fleet", "logs", "--workers", "1", "-q"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Change since the week before" in said
    assert "changed by -10.00 points from" in said


def test_weeks_with_few_runs_are_not_compared(two_teams: tuple[str, ...]) -> None:
    assert fleet(*two_teams, "--workers", "1")["change"] is None


@pytest.mark.parametrize("command", [["fleet", "logs", "--workers", "1"], ["jobs", "logs"]], ids=["fleet", "jobs"])
def test_info_diagnostics_are_printed_once(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """For five logs that name no job: the locations of the first three, and the number of others; `--verbose` and JSON
    have each."""
    for number in range(5):
        put(Path(f"logs/run-{number}/train.log"), printed(3000 * number).splitlines())
    said = {}
    for more in ([], ["--verbose"]):
        assert run([*command, *more]) == 0
        said[bool(more)] = [line for line in capsys.readouterr().err.splitlines() if "info: job_name_assumed" in line]
    assert [line.endswith("; and 4 more (--verbose lists each)") for line in said[False]] == [True]
    assert said[False][0].startswith(
        "info: job_name_assumed (5): no job name in the log; named after its file or directory: run-"
    )
    codes = [one["code"] for one in fleet("logs")["diagnostics"]]
    assert len(said[True]) == codes.count("job_name_assumed") == 5


def test_unknown_values_are_one_sentence_at_the_end(
    two_teams: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """With the missing inputs; figures are printed only if they are known."""
    assert run(["fleet", *two_teams, "--workers", "1", "-q"]) == 0
    (summary, *_) = capsys.readouterr().out.split("\n\n")
    said = " ".join(summary.split())
    assert "not recorded" not in said
    assert " runtime goodput " in said
    assert said.partition(" Not computed (missing input): ")[2] == (
        "scheduling goodput (--capacity), program goodput (--labels with ideal_step_seconds, or with flops_per_step "
        "and peak_flops), availability (queue events in the log, or --sacct)"
    )

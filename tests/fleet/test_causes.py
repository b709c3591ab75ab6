"""Causes and hosts of failed attempts of a fleet: failures by cause per thousand accelerator days, with their interval,
and hosts that repeat over all jobs."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.cli.main import run
from tests.causes.test_repeats import write_attempts
from tests.causes.test_rules import FIRST, SECOND, raised
from tests.support.fleets import fleet, put, training

OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
GARWOOD_OF_2 = (0.24221, 7.22469)
"""From a table: half of chi-square's quantiles 0.025 with 4 and 0.975 with 6 degrees of freedom."""
FULL = "OSError: [Errno 28] No space left on device"


def job(name: str, *said: str) -> None:
    put(Path(f"logs/{name}/{name}.log"), [*FIRST, *said, *SECOND])


@pytest.fixture
def answered(folder: Path) -> None:
    """Write two failures from lack of memory, one from lack of disk space, and one without a logged cause."""
    job("a", *raised(3, OUT_OF_MEMORY))
    job("b", *raised(1, OUT_OF_MEMORY))
    job("c", *raised(0, FULL))
    job("d")


@pytest.mark.usefixtures("answered")
def test_failures_by_cause_with_unknown_causes_last() -> None:
    answer = fleet("logs", "--accelerators", "8")
    assert [(row["cause"], row["group"], row["failures"], row["runs"]) for row in answer["causes"]] == [
        ("device_oom", "memory", 2, 2), ("disk_full", "storage", 1, 1), ("unknown", "unknown", 1, 1),
    ]  # fmt: skip
    assert sum(row["failures"] for row in answer["causes"]) == answer["totals"]["failures"]
    assert {row["cause"] for row in answer["disruptions"]} == {"device_oom", "disk_full", "unknown"}


@pytest.mark.usefixtures("answered")
def test_rates_per_accelerator_day_use_garwood_interval() -> None:
    answer = fleet("logs", "--accelerators", "8")
    row, days = answer["causes"][0], sum(size["accelerator_days"] for size in answer["sizes"])
    found = (row["per_1000_accelerator_days"], row["per_1000_low"], row["per_1000_high"])
    assert found == pytest.approx([1000 * count / days for count in (2, *GARWOOD_OF_2)], rel=1e-4)


@pytest.mark.usefixtures("answered")
def test_the_page_draws_what_each_cause_lost() -> None:
    assert run(["fleet", "logs", "--accelerators", "8", "--workers", "1", "-q", "-o", "fleet.html"]) == 0
    page = Path("fleet.html").read_text(encoding="utf-8")
    drawing = page[page.index('<figure id="causes">') :].partition("</figure>")[0]
    assert {"device_oom", "disk_full", "unknown"} <= set(re.findall(">([^<]+)</text>", drawing))
    assert re.search("[0-9.]+ h, 2 failures</text>", drawing)


@pytest.mark.usefixtures("answered")
def test_without_accelerators_there_is_no_rate() -> None:
    """A missing value is null, never a rate of 1 accelerator."""
    row = fleet("logs")["causes"][0]
    assert (row["failures"], row["per_1000_accelerator_days"], row["per_1000_low"], row["accelerator_hours"]) == (
        2, None, None, None,
    )  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_no_table_of_causes_without_logged_causes() -> None:
    put(Path("logs/a.jsonl"), training("a", 3, 2))
    job("d")
    assert fleet("logs", "--accelerators", "8")["causes"] == []


CHANCES = [1 - (63 / 64) ** deaths for deaths in (2, 2, 3)]
P_OF_3 = 64 * math.prod(CHANCES)
"""By hand: each of three runs with two, two and three failures had at least one on one of 64 hosts with equal up time,
over 64 hosts."""


P_OF_2 = 64 * (CHANCES[0] * CHANCES[1] * (1 - 1 / 64) + 1 / 64 * (CHANCES[0] + CHANCES[1] - CHANCES[0] * CHANCES[1]))
"""Two or more of runs that died twice, twice and once."""


def hosts_of(*logs: str, accelerators: str = "512") -> tuple[list[dict[str, Any]], dict[str, Any]]:
    answer = fleet(*logs, "--accelerators", accelerators)
    return answer["hosts"], answer["host_test"]


def three_jobs() -> None:
    """Each dies on node-7 among others, once or twice: too seldom for any of them alone."""
    write_attempts(Path("logs/a"), 64, ["node-7", "node-3"], name="a", day="2026-03-01")
    write_attempts(Path("logs/b"), 64, ["node-9", "node-7"], name="b", day="2026-03-02")
    write_attempts(Path("logs/c"), 64, ["node-7", "node-11", "node-7"], name="c", day="2026-03-03")


@pytest.mark.usefixtures("folder")
def test_host_repeats_over_jobs_that_alone_are_inconclusive() -> None:
    three_jobs()
    (row,), test = hosts_of("logs")
    assert (row["host"], row["deaths"], row["of"], row["causes"], row["runs"]) == (
        "node-7", 4, 7, "native_crash", "a, b, c",
    )  # fmt: skip
    assert row["p"] == pytest.approx(P_OF_3)
    assert (row["runs_died"], row["expected"]) == (3, pytest.approx(sum(CHANCES)))
    assert row["share_percent"] == pytest.approx(100 / 64)
    assert test == {
        "runs": 3, "other_runs": 0, "hosts": 64, "deaths": 7, "deaths_elsewhere": 0, "judged": True, "runs_died": 3,
        "least_seen": 3,
    }  # fmt: skip
    text = " ".join(run_text("logs").split())
    assert "3 of 3 runs failed on node-7 (p = 0.0028): drain and test this host" in text
    assert "7 failures of 3 runs that a host can cause, on 64 hosts" in text
    assert "smallest detectable number: 3 of 3 runs on one host" in text


@pytest.mark.usefixtures("folder")
def test_hosts_below_the_limit_are_listed_and_not_accused() -> None:
    """Two runs failed on node-7: with so few, no host can be distinguished from chance."""
    three_jobs()
    shutil.rmtree("logs/c")
    write_attempts(Path("logs/c"), 64, ["node-8"], name="c", day="2026-03-03")
    answer = fleet("logs", "--accelerators", "512")
    assert answer["hosts"] == []
    assert [(row["host"], row["runs_died"], row["p"]) for row in answer["hosts_not_named"]] == [
        ("node-7", 2, pytest.approx(P_OF_2))
    ]
    text = " ".join(run_text("logs").split())
    assert "not conclusive: 2 of 3 runs failed on node-7; within chance" in text


@pytest.mark.usefixtures("folder")
def test_first_host_of_every_run_may_be_rank_0() -> None:
    """Code that dies at rank 0 dies on the first host of a list, and that is node-1 of each run."""
    for at, name in enumerate("abcd"):
        write_attempts(Path(f"logs/{name}"), 64, ["node-1"], name=name, day=f"2026-03-0{at + 1}")
    answer = fleet("logs", "--accelerators", "512")
    assert (answer["hosts"], answer["hosts_not_named"][0]["as_rank_0"]) == ([], 4)
    text = " ".join(run_text("logs").split())
    assert "4 of 4 runs failed on node-1; in 4 of them it was the first host, like that of rank 0" in text


@pytest.mark.usefixtures("folder")
def test_runs_without_host_lists_are_not_counted() -> None:
    three_jobs()
    write_attempts(Path("logs/d"), 64, ["node-7"] * 5, "None assigned", name="d", day="2026-03-04")
    (row,), test = hosts_of("logs")
    assert (row["deaths"], row["of"], row["p"]) == (4, 7, pytest.approx(P_OF_3))
    assert (test["other_runs"], test["deaths_elsewhere"]) == (1, 5)


@pytest.mark.usefixtures("folder")
def test_hosts_are_not_judged_without_host_lists() -> None:
    write_attempts(Path("logs/d"), 64, ["node-7"] * 5, "None assigned", name="d")
    rows, test = hosts_of("logs")
    assert (rows, test["judged"], test["deaths_elsewhere"]) == ([], False, 5)
    assert "hosts with repeated failures: inconclusive" in " ".join(run_text("logs").split())


@pytest.mark.usefixtures("folder")
def test_simultaneous_failures_on_one_host_count_once() -> None:
    """The host took both with it: two deaths, one failure."""
    for name in "abcd":
        write_attempts(Path(f"logs/{name}"), 64, ["node-7"], name=name)
    rows, test = hosts_of("logs")
    assert (rows, test["deaths"], test["runs"]) == ([], 1, 4)


@pytest.mark.usefixtures("folder")
def test_hosts_of_two_clusters_with_one_name_are_two_hosts() -> None:
    three_jobs()
    Path("labels.csv").write_text("job,cluster\na,east\nb,east\nc,west\n")
    rows, test = hosts_of("logs", "--labels", "labels.csv")
    assert (rows, test["hosts"]) == ([], 128)


@pytest.mark.usefixtures("folder")
def test_allocation_table_lists_hosts_missing_in_logs() -> None:
    three_jobs()
    rows = ["JobName|Start|End|AllocTRES|NodeList"]
    for name in "abc":
        listed = Path(f"logs/{name}/sacct.txt")
        table = [line.split("|") for line in listed.read_text().splitlines()[1:]]
        rows += [f"{name}|{one[5]}|{one[6]}|gres/gpu=512|{one[7]}" for one in table]
        listed.write_text(listed.read_text().replace("node-[1-64]", "None assigned"))
    Path("slurm.txt").write_text("\n".join(rows) + "\n")
    assert hosts_of("logs")[1]["judged"] is False
    (row,), test = hosts_of("logs", "--sacct", "slurm.txt")
    assert (row["host"], row["deaths"], row["p"]) == ("node-7", 4, pytest.approx(P_OF_3))
    assert (test["runs"], test["deaths"]) == (3, 7)


@pytest.mark.usefixtures("folder")
def test_only_time_and_failures_of_the_window_count() -> None:
    three_jobs()
    rows, test = hosts_of("logs", "--from", "2026-03-02", "--to", "2026-03-03")
    assert (rows, test["runs"], test["deaths"]) == ([], 1, 2)


@pytest.mark.usefixtures("folder")
def test_a_store_keeps_hosts() -> None:
    three_jobs()
    fresh = hosts_of("logs", "--store", "store")
    assert fresh == hosts_of("logs", "--store", "store")
    assert [row["host"] for row in fresh[0]] == ["node-7"]


def run_text(*arguments: str) -> str:
    """Return the report for people."""
    out = Path("fleet.txt")
    assert run(["fleet", *arguments, "--accelerators", "512", "--workers", "1", "-q", "-o", str(out), "--force"]) == 0
    return out.read_text()

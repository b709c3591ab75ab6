"""Hosts with repeated failures: the exact test, by hand and against other implementations, and a job."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path

import pytest

import goodput_cli
from benchmarks.hosts import FleetOfRuns, Place, anywhere, first, naming
from goodput_cli.analysis.insights.hosts import LEVEL, HostDraw, holm, least_seen, repeats, tails
from goodput_cli.events.text.entries import nodes_in


def make_runs(hosts: int, size: int, on: int, of: int) -> list[HostDraw[str]]:
    """Return `of` runs of `size` hosts with one failure each. `on` of them failed on node-5, which all of them had."""
    names, found = [f"node-{number}" for number in range(hosts)], []
    for run in range(of):
        others = [names[6 + (run * (size - 1) + at) % (hosts - 6)] for at in range(size - 1)]
        died = "node-5" if run < on else others[0]
        found.append(HostDraw(1, dict.fromkeys(["node-5", *others], 1 / size), frozenset({died})))
    return found


@pytest.mark.parametrize(("on", "p", "named"), [(6, 0.000849064, True), (5, 0.0194137, False)])
def test_repeats_of_nine_runs_of_sixteen_hosts(on: int, p: float, named: bool) -> None:
    """A fleet of 200 hosts, one failure per run: 0.56 are expected on one host. By hand: 200 times the sum of C(9,k)
    15^(9-k) / 16^9."""
    assert p == pytest.approx(200 * sum(math.comb(9, k) * 15 ** (9 - k) for k in range(on, 10)) / 16**9, rel=2e-5)
    first = repeats(make_runs(200, 16, on, 9), 200)[0]
    assert (first.host, first.runs, first.of, first.named) == ("node-5", on, 9, named)
    assert first.expected == 9 / 16
    assert first.p == pytest.approx(p, rel=2e-5)
    assert least_seen(make_runs(200, 16, on, 9), 200) == 6


def test_run_counts_once_for_repeated_failures() -> None:
    """Two runs that fail nine times each on one of sixteen hosts are two runs. Each was likely to fail there once."""
    often = [HostDraw(9, one.shares, one.died) for one in make_runs(200, 16, 2, 2)]
    (first, *_) = repeats(often, 200)
    assert (first.runs, first.named, least_seen(often, 200)) == (2, False, None)
    assert first.expected == pytest.approx(2 * (1 - (15 / 16) ** 9))


def test_host_with_more_uptime_may_fail_more() -> None:
    def three_hosts(share: float) -> list[HostDraw[str]]:
        return [HostDraw(1, {"a": share, "b": 1 - share}, frozenset({"a"}))] * 4

    assert [one.named for one in repeats(three_hosts(0.01), 3)] == [True]
    assert [one.named for one in repeats(three_hosts(0.7), 3)] == [False]


def test_host_of_rank_0_is_not_accused() -> None:
    """A bug at rank 0 fails on the first host of every run, which then looks like a bad host."""
    always = [HostDraw(1, one.shares, one.died, "node-5") for one in make_runs(200, 16, 9, 9)]
    (first, *_) = repeats(always, 200)
    assert (first.host, first.runs, first.as_rank_0, first.named) == ("node-5", 9, 9, False)
    assert first.p < LEVEL


def steps_down(values: list[float]) -> list[float]:
    """Return Holm's adjusted p-values from the definition: the largest product of all that are smaller or equal."""
    order = sorted(values)
    products = [min(1.0, (len(order) - at) * value) for at, value in enumerate(order)]
    return [max(products[: order.index(value) + order.count(value)]) for value in values]


def test_holm_agrees_with_its_definition() -> None:
    rng = random.Random(7)
    for _ in range(200):
        values = [rng.random() ** 4 for _ in range(rng.randint(1, 30))]
        others = rng.randint(0, 5)
        assert holm(values, len(values) + others) == pytest.approx(steps_down(values + [1.0] * others)[: len(values)])


def test_tail_agrees_with_exact_fractions() -> None:
    """Compare with integer arithmetic, event by event."""
    rng = random.Random(5)
    for _ in range(100):
        chances = [Fraction(rng.randint(1, 40), rng.randint(41, 4000)) for _ in range(rng.choice((1, 3, 12, 40)))]
        exactly = [Fraction(1)]
        for p in chances:
            pairs = zip([*exactly, Fraction(0)], [Fraction(0), *exactly], strict=True)
            exactly = [no * (1 - p) + yes * p for no, yes in pairs]
        beyond = [float(sum(exactly[k:])) for k in range(len(exactly))]
        assert tails([float(p) for p in chances]).tolist() == pytest.approx(beyond, rel=1e-9, abs=0)


@pytest.mark.parametrize(("place", "shuffled"), [(anywhere, False), (anywhere, True), (first, False)])
@pytest.mark.parametrize("fleet", [FleetOfRuns(9, 32, 16), FleetOfRuns(30, 64, 8)])
def test_healthy_fleets_name_no_host(fleet: FleetOfRuns, place: Place, shuffled: bool) -> None:
    """At most one of 100 fleets names a host if failures are on random hosts, or at rank 0 on any host."""
    assert naming(fleet, place, shuffled, fleets=100, seed=11) <= 1


def test_bad_host_is_named_given_enough_runs() -> None:
    assert naming(FleetOfRuns(100, 200, 16, deaths=1.0, bad=50), anywhere, fleets=20) >= 6


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("node[01-03,7],big", ("node01", "node02", "node03", "node7", "big")),
        ("gpu-a-1", ("gpu-a-1",)),
        ("r1n[09-11]", ("r1n09", "r1n10", "r1n11")),
        ("r[1-2]n[3-4]", ()),
        ("None assigned", ()),
        ("node[3-1]", ()),
        ("node[0-99999999]", ()),
    ],
)
def test_slurm_node_lists_are_read(text: str, nodes: tuple[str, ...]) -> None:
    assert nodes_in(text) == nodes


ECC = "[rank3]:[E301 {:02d}:29:20.000000123 ProcessGroupNCCL.cpp:616] CUDA error: uncorrectable ECC error encountered"


def write_attempts(
    folder: Path, hosts: int, deaths: list[str], node_list: str = "", name: str = "llm", day: str = "2026-03-01",
    lists: list[str] | None = None, tasks: list[int] | None = None, said: str = "",
) -> None:  # fmt: skip
    """Write a job of one allocation per attempt. Each attempt ends half an hour after it began, every hour from
    08:00. lists: hosts of each attempt, else the same for all. tasks: the task of each failure, else 3. said: by
    the rank that died."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = node_list or f"node-[1-{hosts}]"
    how = "Exited with exit code 1" if said else "Segmentation fault (core dumped)"
    rows = ["JobID|JobName|State|ExitCode|Submit|Start|End|NodeList"]
    for number, host in enumerate([*deaths, ""]):
        begin = f"{day}T{8 + number:02d}:00:00"
        state, end = ("FAILED", f"{day}T{8 + number:02d}:30:00") if host else ("COMPLETED", f"{day}T23:30:00")
        rows.append(f"{70 + number}|{name}|{state}|1:0|{begin}|{begin}|{end}|{lists[number] if lists else listed}")
        hour = f"{day} {8 + number:02d}"
        lines = ["time to initialize megatron (seconds): 20.000",
                 f"[after megatron is initialized] datetime: {hour}:00:20.000000 "]  # fmt: skip
        lines += [
            f" [{hour}:{minute:02d}:00.000000] iteration {200 * number + 10 * minute:8d}/   99999 | elapsed time per "
            "iteration (ms): 6000.0 | loss scale: 1.0 |" for minute in range(1, 30)
        ]  # fmt: skip
        lines += [said.format(8 + number)] if host and said else []
        lines += [f"srun: error: {host}: task {tasks[number] if tasks else 3}: {how}"] if host else []
        (folder / f"slurm-{70 + number}.out").write_text("\n".join(lines) + "\n")
    (folder / "sacct.txt").write_text("\n".join(rows) + "\n")


def insights_of_job(folder: Path, hosts: int, deaths: list[str], node_list: str = "") -> dict[str, str]:
    """Return the insights of such a job, by kind."""
    write_attempts(folder, hosts, deaths, node_list)
    return {one.code: one.text for one in goodput_cli.analyze(str(folder), job_name="llm").insights}


def test_fixed_ranks_do_not_accuse_their_host(tmp_path: Path) -> None:
    """Task 3 died on node-7 four times: either the host is bad or the code of task 3."""
    found = insights_of_job(tmp_path, 64, ["node-7", "node-7", "node-3", "node-7", "node-7"])
    assert found["repeat_host"].startswith(
        "4 of 5 failures were on node-7, one of 64 hosts (likely native_crash); rank 3 always ran on node-7, so either "
        "the rank or the host may be the cause: "
    )
    assert "1 other disruption" in found["disruptions"]


@pytest.mark.parametrize(
    ("lists", "deaths", "advice"),
    [  # node-7 has another rank in one attempt, and one attempt does not use it.
        (["node-[1-64]", "node-[2-65]", "node-[3-66]", "node-[4-67]"], ["node-7"] * 3, "drain node-7 and test it"),
        (["node-[1-64]", "node-[1-64]", "node-[1-6,8-65]", "node-[1-64]", "node-[1-64]"],
         ["node-7", "node-7", "node-3", "node-7"], "start once without node-7"),
        (["node-[1-64]"] * 3 + ["node-[1-6,8-65]"], ["node-7"] * 3, "drain node-7 and test it"),
        (["node-[1-64]"] * 4, ["node-7"] * 3, "start once without node-7"),
    ],
    ids=["its ranks moved", "it died without it too", "it lived without it", "nothing changed"],
)  # fmt: skip
def test_moved_ranks_accuse_their_host(tmp_path: Path, lists: list[str], deaths: list[str], advice: str) -> None:
    moved = lists[0] != lists[1]
    write_attempts(tmp_path, 64, deaths, lists=lists, tasks=[3, 67, 131] if moved else None)
    (found,) = [one for one in goodput_cli.analyze(str(tmp_path), job_name="llm").insights if one.code == "repeat_host"]
    assert found.advice == advice
    assert ("probability by chance" in found.text) == advice.startswith("drain")


def test_hardware_faults_accuse_their_host(tmp_path: Path) -> None:
    """Code cannot make the memory of a GPU fail, so the ranks do not matter."""
    write_attempts(tmp_path, 64, ["node-7"] * 3, said=ECC)
    (found,) = [one for one in goodput_cli.analyze(str(tmp_path), job_name="llm").insights if one.code == "repeat_host"]
    assert found.advice == "drain node-7 and test it"


def test_changing_hosts_are_not_repeats(tmp_path: Path) -> None:
    assert "repeat_host" not in insights_of_job(tmp_path, 64, ["node-7", "node-7", "node-3", "node-4", "node-5"])


def test_missing_host_lists_give_no_insight(tmp_path: Path) -> None:
    assert "repeat_host" not in insights_of_job(tmp_path, 64, ["node-7"] * 5, node_list="None assigned")


def test_each_failure_of_the_job_has_its_host(tmp_path: Path) -> None:
    insights_of_job(tmp_path, 64, ["node-7", "node-7", "node-7"])
    rows = goodput_cli.analyze(str(tmp_path), job_name="llm").disruptions
    assert [(row.cause, row.first_host) for row in rows] == [("native_crash", "node-7")] * 3

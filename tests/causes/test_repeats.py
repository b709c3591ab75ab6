"""Hosts on which a job dies again and again: the exact test, by hand and against other implementations, and a job."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.insights.hosts import deaths_by_host, holm, repeating, tail
from goodput_cli.events.text.entries import nodes_in


@pytest.mark.parametrize(
    ("hosts", "deaths", "least", "p", "over_all", "said"),
    [
        (128, 12, 4, 1.75389e-06, 0.000224498, True),
        (128, 12, 3, 9.95083e-05, 0.0127371, False),
        (128, 12, 2, 0.00382395, 0.489466, False),
        (16, 9, 4, 0.00148941, 0.0238306, False),
        (8, 5, 3, 0.0160522, 0.128418, False),
        (2, 2, 2, 0.25, 0.5, False),
    ],
)
def test_equal_hosts(hosts: int, deaths: int, least: int, p: float, over_all: float, said: bool) -> None:
    alone = tail(least, deaths, 1 / hosts)
    assert alone == pytest.approx(p, rel=5e-6)
    assert min(1.0, hosts * alone) == pytest.approx(over_all, rel=5e-6)
    names = [f"node-{number}" for number in range(hosts)]
    others = Counter(dict.fromkeys(names[1 : 1 + deaths - least], 1))
    found = repeating({names[0]: least, **others}, dict.fromkeys(names, 3600))
    assert [one.host for one in found] == (names[:1] if said else [])
    assert all(one.p == pytest.approx(over_all, rel=5e-6) for one in found)


def test_a_host_that_was_up_longer_may_die_more_often() -> None:
    deaths = {"a": 5, "b": 1}
    assert [one.host for one in repeating(deaths, {"a": 1, "b": 20, "c": 20})] == ["a"]
    assert repeating(deaths, {"a": 100, "b": 20, "c": 20}) == []


def test_a_host_that_is_not_listed_makes_it_unknown() -> None:
    assert repeating({"x": 12}, {"a": 1, "b": 1}) == []


def steps_down(values: list[float]) -> list[float]:
    """Holm's adjustment from its definition: the largest of the products of all that are smaller or equal."""
    order = sorted(values)
    products = [min(1.0, (len(order) - at) * value) for at, value in enumerate(order)]
    return [max(products[: order.index(value) + order.count(value)]) for value in values]


def test_holm_is_that_of_its_definition() -> None:
    rng = random.Random(7)
    for _ in range(200):
        values = [rng.random() ** 4 for _ in range(rng.randint(1, 30))]
        assert holm(values) == pytest.approx(steps_down(values))


def test_the_tail_is_that_of_exact_fractions_however_many_deaths() -> None:
    """Against whole numbers alone; thousands of deaths have terms that no float can hold."""
    rng = random.Random(5)
    for _ in range(300):
        trials = rng.choice((3, 12, 60, 400))
        least, share = rng.randint(0, min(trials, 30)), Fraction(rng.randint(1, 40), rng.randint(41, 400))
        exact = sum(math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(least, trials + 1))
        assert tail(least, trials, float(share)) == pytest.approx(float(exact), rel=1e-9)
    assert tail(3, 20_000, 0.5) == 1.0
    assert 0 < tail(60, 20_000, 1 / 1000) < 1e-9


def test_healthy_fleets_name_no_host() -> None:
    """Of 1000 fleets whose deaths are of any host by chance, at most 1 % name one."""
    rng = random.Random(11)
    names = [f"node-{number}" for number in range(64)]
    time_up = {name: rng.randint(1000, 5000) for name in names}
    wrong = 0
    for _ in range(1000):
        deaths = Counter(rng.choices(names, weights=list(time_up.values()), k=rng.randint(3, 30)))
        wrong += bool(repeating(deaths, time_up))
    assert wrong <= 10


def test_restarts_that_die_at_once_are_one_failure() -> None:
    minute = 60 * 10**9
    assert deaths_by_host([(0, "a"), (5 * minute, "a"), (14 * minute, "a"), (6 * minute, "b")]) == {"a": 1, "b": 1}
    assert deaths_by_host([(0, "a"), (11 * minute, "a")]) == {"a": 2}


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
def test_nodes_as_slurm_lists_them(text: str, nodes: tuple[str, ...]) -> None:
    assert nodes_in(text) == nodes


def lives(
    folder: Path, hosts: int, deaths: list[str], node_list: str = "", name: str = "llm", day: str = "2026-03-01"
) -> None:
    """A job of one allocation a life, each of which ends half an hour after it began, on every hour from 08:00."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = node_list or f"node-[1-{hosts}]"
    rows = ["JobID|JobName|State|ExitCode|Submit|Start|End|NodeList"]
    for number, host in enumerate([*deaths, ""]):
        begin = f"{day}T{8 + number:02d}:00:00"
        state, end = ("FAILED", f"{day}T{8 + number:02d}:30:00") if host else ("COMPLETED", f"{day}T23:30:00")
        rows.append(f"{70 + number}|{name}|{state}|1:0|{begin}|{begin}|{end}|{listed}")
        hour = f"{day} {8 + number:02d}"
        lines = ["time to initialize megatron (seconds): 20.000",
                 f"[after megatron is initialized] datetime: {hour}:00:20.000000 "]  # fmt: skip
        lines += [
            f" [{hour}:{minute:02d}:00.000000] iteration {200 * number + 10 * minute:8d}/   99999 | elapsed time per "
            "iteration (ms): 6000.0 | loss scale: 1.0 |" for minute in range(1, 30)
        ]  # fmt: skip
        lines += [f"srun: error: {host}: task 3: Segmentation fault (core dumped)"] if host else []
        (folder / f"slurm-{70 + number}.out").write_text("\n".join(lines) + "\n")
    (folder / "sacct.txt").write_text("\n".join(rows) + "\n")


def job(folder: Path, hosts: int, deaths: list[str], node_list: str = "") -> dict[str, str]:
    """The insights of such a job, by kind."""
    lives(folder, hosts, deaths, node_list)
    return {one.code: one.text for one in goodput_cli.analyze(str(folder), job_name="llm").insights}


def test_a_job_that_dies_on_one_host_again_and_again(tmp_path: Path) -> None:
    found = job(tmp_path, 64, ["node-7", "node-7", "node-3", "node-7", "node-7"])
    assert found["repeat_host"].startswith(
        "4 of 5 deaths were on node-7, one of 64 hosts (native_crash; by chance p = "
    )
    assert "1 other disruption" in found["disruptions"]


def test_hosts_that_change_are_no_repetition(tmp_path: Path) -> None:
    assert "repeat_host" not in job(tmp_path, 64, ["node-7", "node-7", "node-3", "node-4", "node-5"])


def test_without_a_list_of_all_hosts_nothing_is_said(tmp_path: Path) -> None:
    assert "repeat_host" not in job(tmp_path, 64, ["node-7"] * 5, node_list="None assigned")


def test_each_death_of_that_job_has_its_host(tmp_path: Path) -> None:
    job(tmp_path, 64, ["node-7", "node-7", "node-7"])
    rows = goodput_cli.analyze(str(tmp_path), job_name="llm").disruptions
    assert [(row.cause, row.first_host) for row in rows] == [("native_crash", "node-7")] * 3

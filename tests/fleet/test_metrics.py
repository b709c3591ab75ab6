"""The metrics of a fleet: their presence, their sums, and the limit on their number."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from goodput_cli.fleet.report import MOST_GROUPS, FleetReport
from goodput_cli.vocabulary.when import NS_PER_HOUR, NS_PER_SECOND
from tests.support.fleets import job_bytes, put, text_of, training

pytestmark = pytest.mark.usefixtures("folder")
Labels = dict[str, str]
SECONDS, HOURS = "goodput_fleet_time_seconds", "goodput_fleet_accelerator_hours"
COST, BY_CATEGORY = "goodput_fleet_cost", "goodput_fleet_cost_by_category"


def metrics(*arguments: str) -> dict[str, list[tuple[Labels, float]]]:
    """Return the labels and values of `-o fleet.prom`, by family."""
    assert run(["fleet", "logs", *arguments, "--workers", "1", "-q", "-o", "fleet.prom", "--force"]) == 0
    found: dict[str, list[tuple[Labels, float]]] = {}
    for name, labels, value in re.findall(r"(?m)^(\w+)\{(.*)\} (\S+)$", Path("fleet.prom").read_text()):
        found.setdefault(name, []).append((dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)))
    return found


def by_team_and_currency(samples: list[tuple[Labels, float]]) -> dict[tuple[str, str], float]:
    """Return the sums over all other labels; without a team: the whole."""
    sums: dict[tuple[str, str], float] = {}
    for labels, value in samples:
        key = labels.get("team", ""), labels["currency"]
        sums[key] = sums.get(key, 0.0) + value
    return sums


@pytest.fixture
def priced(folder: Path) -> FleetReport:
    """Jobs that wait, crash and redo, of two teams with two currencies."""
    (folder / "logs").mkdir()
    for seed in range(6):
        (folder / f"logs/{seed}.jsonl").write_bytes(job_bytes(seed, f"job-{seed}"))
    rows = ("job-[012],red,8,2.5,USD", "job-3,red,24,0.1,EUR", "*,blue,16,0.3,USD")
    Path("labels.csv").write_text(text_of("job,team,accelerators,price,currency", *rows))
    report = goodput_cli.fleet_report("logs", labels="labels.csv", by=["team"], workers=1)
    assert len(report.categories) > 4
    return report


NO_COST = {"productive", "excluded", "queued", "stopped"}
"""Progress, excluded time, and categories without allocated resources."""


def test_a_category_costs_its_accelerators_times_the_price(priced: FleetReport) -> None:
    """Exactly, before figures are written: job-3 is all that is priced in EUR."""
    alone = goodput_cli.fleet_report("logs", labels="labels.csv", jobs=["job-3"], workers=1)
    costs = {category.id: amount for (code, category), amount in priced.sums.costs.items() if code == "EUR" and amount}
    amounts = {
        row.category.partition(":")[0]: int(row.chip_ns) * Fraction("0.1") / NS_PER_HOUR for row in alone.categories
    }
    assert costs == {name: amount for name, amount in amounts.items() if name not in NO_COST}
    assert (
        sum(costs.values())
        == priced.sums.money["EUR"]
        == alone.sums.lost_while_allocated * Fraction("0.1") / NS_PER_HOUR
    )


def test_only_what_an_allocation_covers_costs() -> None:
    """10 h that begin with 4 h without training; 8 accelerators are allocated from the third hour on: two
    hours cost."""
    put(Path("logs/a.jsonl"), training("a", 10, 6))
    held = text_of("job,start,end,accelerators", "a,2026-01-01T02:00:00,2026-01-01T10:00:00,8")
    Path("held.csv").write_text(held)
    report = goodput_cli.fleet_report("logs", allocations="held.csv", price_per_hour=3, workers=1)
    assert {category.id: float(amount) for (_, category), amount in report.sums.costs.items() if amount} == {
        "other": 2 * 8 * 3
    }


def test_a_sum_over_categories_is_the_cost(priced: FleetReport) -> None:
    """A separate family: queries of `goodput_fleet_cost` keep their results."""
    found = metrics("--labels", "labels.csv", "--by", "team")
    assert {frozenset(labels) for labels, _ in found[COST]} == {
        frozenset({"job_name", "currency"}), frozenset({"job_name", "currency", "team"})
    }  # fmt: skip
    assert by_team_and_currency(found[BY_CATEGORY]) == pytest.approx(by_team_and_currency(found[COST]))
    assert not NO_COST & {labels["category"] for labels, _ in found[BY_CATEGORY]}


def test_categories_of_time_and_of_accelerators_add_up(priced: FleetReport) -> None:
    found = metrics("--labels", "labels.csv", "--by", "team")
    for name, whole in (
        (SECONDS, priced.sums.time.total() / NS_PER_SECOND),
        (HOURS, priced.sums.chip.total() / NS_PER_HOUR),
    ):
        of_all = [value for labels, value in found[name] if "team" not in labels]
        of_teams = [value for labels, value in found[name] if "team" in labels]
        assert sum(of_all) == pytest.approx(whole)
        assert sum(of_teams) == pytest.approx(whole)


def test_costs_are_omitted_without_a_price() -> None:
    put(Path("logs/a.jsonl"), training("a", 4, 2))
    assert not {COST, BY_CATEGORY} & set(metrics("--accelerators", "8"))


def test_smallest_of_many_teams_are_merged() -> None:
    """200 teams have their own series, all others share one; their sum is the whole."""
    count = MOST_GROUPS + 7
    put(Path("logs/all.jsonl"), [line for number in range(count) for line in training(f"j{number}", 2, 0.1)])
    Path("labels.csv").write_text(
        text_of("job,team,accelerators,price,currency", *(f"j{n},team-{n},{n + 1},2,USD" for n in range(count)))
    )
    found = metrics("--labels", "labels.csv", "--by", "team")
    for name in (COST, BY_CATEGORY, HOURS, SECONDS):
        teams = {labels["team"] for labels, _ in found[name] if "team" in labels}
        assert len(teams) == MOST_GROUPS + 1
        assert "other" in teams
    parts = [value for labels, value in found[COST] if "team" in labels]
    whole = [value for labels, value in found[COST] if "team" not in labels]
    assert len(parts) == MOST_GROUPS + 1
    assert whole == [pytest.approx(sum(parts))]

"""What leads from a number of the report to the rows that prove it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from goodput_cli.analysis.insights.insight import Insight
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.category_names import short_title

_MOST_LINKS = 5
_SECTIONS = {"steps": "step-time", "saves": "where", "elastic": "where", "rolling": "over-time"}
_OF_DISRUPTIONS = ("disruptions", "mtbf", "mean_", "longest_", "attempts")


@dataclass(frozen=True)
class Link:
    """text: its words. target: the id of what it leads to. short: what is left of the words behind a link of the same
    kind; empty where there is none."""

    text: str
    target: str
    short: str = ""


@dataclass(frozen=True)
class Proof:
    """The rows that a page holds. ids: of rows of its tables. ledger: ids of the rows behind each category, by its name
    with the label."""

    ids: frozenset[str]
    ledger: Mapping[str, str]

    def of_disruption(self, number: int) -> str | None:
        """Where a disruption is shown, with its lines if they are there; None where the page does not hold it."""
        return next((one for one in (f"disruption-{number}", f"disruption-row-{number}") if one in self.ids), None)

    def of_step(self, number: int, table: str) -> str | None:
        """The row of a step in a table: of single ones (`step`), or of slow regimes that begin with one (`slow`)."""
        identity = f"{table}-{number}"
        return identity if identity in self.ids else None


def insight_links(insight: Insight, proof: Proof) -> tuple[list[Link], int]:
    """Links to the rows of an insight, and how many rows more it is about."""
    rows = [(words, target) for words, target in _rows_of(insight, proof) if target is not None]
    shown = rows[:_MOST_LINKS]
    links = [Link(words, target, _short(words) if place else "") for place, (words, target) in enumerate(shown)]
    return links, max(insight.count, len(rows)) - len(shown) if insight.about.disruptions else 0


def _short(words: str) -> str:
    """`4` of `disruption 4`."""
    number = words.rpartition(" ")[2]
    return number if number.isdigit() else ""


def _rows_of(insight: Insight, proof: Proof) -> Iterator[tuple[str, str | None]]:
    about = insight.about
    yield from ((f"disruption {number}", proof.of_disruption(number)) for number in about.disruptions)
    table = "slow" if insight.code == "slow_steps" else "step"
    yield from ((f"step {number}", proof.of_step(number, table)) for number in about.steps)
    for name in about.categories:
        category, _, label = name.partition(":")
        yield f"its rows: {short_title(category, label or None)}", proof.ledger.get(name)


def threshold_target(threshold: Threshold, proof: Proof, insights: frozenset[str]) -> str | None:
    """What shows the value of a threshold; insights: the codes that the page holds."""
    name = re.split("[<>=!]", threshold.expression)[0].strip()
    kind, _, label = name.partition(":")
    if kind == "insight":
        return f"insight-{label}" if label in insights else None
    if name == "goodput":
        return proof.ledger.get(Category.PRODUCTIVE.id)
    if name.startswith(_OF_DISRUPTIONS):
        return "disruptions"
    if kind == "custom":
        return _custom_target(threshold.expression, proof)
    return proof.ledger.get(name) or _SECTIONS.get(name.partition(".")[0])


def _custom_target(expression: str, proof: Proof) -> str | None:
    """The rows of a label, which may hold what ends other names."""
    prefix = f"{Category.CUSTOM.id}:"
    labels = [name.removeprefix(prefix) for name in proof.ledger if name.startswith(prefix)]
    named = [label for label in labels if expression.startswith(f"custom:{label}")]
    return proof.ledger[prefix + max(named, key=len)] if named else None


def command_line(analysis: Analysis, name: str, *options: str) -> str:
    """A command on the logs of an analysis as it is typed."""
    logs = shlex.join(analysis.asked) or "LOG"
    return " ".join(("goodput", name, logs, *map(shlex.quote, options)))

"""Who and what a run is: team, cluster, accelerators, price. Labels are put on when the fleet is summed up, never
before, so that changing them reads no log again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import UsageError
from goodput_cli.fleet.inventory.tables import TableRow, amount, instant, read_table, whole

JOB, SOURCE, FROM, TO = "job", "source", "from", "to"
NUMBERS: Mapping[str, Callable[[str], Any]] = {
    "accelerators": whole,
    "accelerators_per_node": whole,
    "price": amount,
    "peak_flops": amount,
    "flops_per_step": amount,
    "ideal_step_seconds": amount,
}
"""Columns of labels that are numbers; every other one is text, and a dimension."""
_MAGIC = frozenset("*?[")


@dataclass(frozen=True)
class RunLabels:
    """What is known of a run besides its log; None where nobody says."""

    texts: Mapping[str, str]
    accelerators: int | None = None
    accelerators_per_node: int | None = None
    price: Fraction | None = None
    """Of an accelerator for an hour."""
    currency: str | None = None
    peak_flops: Fraction | None = None
    flops_per_step: Fraction | None = None
    ideal_step_seconds: Fraction | None = None


@dataclass(frozen=True)
class _Rule:
    where: str
    job: str
    source: str
    start: int | None
    end: int | None
    values: Mapping[str, Any]

    def fits(self, job: str, documents: Sequence[str], start: int) -> bool:
        return (
            (job == self.job or fnmatchcase(job, self.job))
            and (self.source == "*" or any(fnmatchcase(one, self.source) for one in documents))
            and (self.start is None or start >= self.start)
            and (self.end is None or start < self.end)
        )


@dataclass
class Labels:
    """The rows of all files, in order: each column takes its value from the first row that fits and has one."""

    rules: list[_Rule] = field(default_factory=list)
    _by_job: dict[str, list[int]] = field(default_factory=dict)
    _globs: list[int] = field(default_factory=list)
    _used: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, paths: Sequence[str], zone: tzinfo) -> Labels:
        """Raises UsageError for a file that is no table of labels."""
        labels = cls()
        for path in paths:
            for row in read_table(path):
                labels._add(_rule(row, zone))
        return labels

    @property
    def dimensions(self) -> set[str]:
        """The columns that are texts."""
        return {name for rule in self.rules for name in rule.values if name not in NUMBERS}

    def of(self, job: str, documents: Sequence[str], start_ns: int, fallback: Mapping[str, Any]) -> RunLabels:
        """The labels of a run. fallback: what counts where no row says it."""
        values: dict[str, Any] = {}
        for place in sorted((*self._by_job.get(job, ()), *self._globs)):
            rule = self.rules[place]
            if rule.fits(job, documents, start_ns):
                self._used.add(place)
                values = {**rule.values, **values}
        values = {**{name: value for name, value in fallback.items() if value is not None}, **values}
        texts = {name: value for name, value in values.items() if name not in NUMBERS}
        numbers = {name: value for name, value in values.items() if name in NUMBERS}
        return RunLabels(texts, currency=texts.pop("currency", None), **numbers)

    def cluster_of(self, document: str) -> str:
        """The cluster that rows about documents name, empty without one."""
        fitting = (rule for rule in self.rules if rule.job == "*" and "cluster" in rule.values)
        return next((str(rule.values["cluster"]) for rule in fitting if fnmatchcase(document, rule.source)), "")

    def diagnostics(self) -> list[Diagnostic]:
        """Rows that no run used."""
        unused = [rule.where for place, rule in enumerate(self.rules) if place not in self._used]
        message = "rows of labels that fit no run; look at the names of jobs and sources in them"
        return [Diagnostic.of("unused_label_rows", message, len(unused), tuple(unused[:20]))] if unused else []

    def _add(self, rule: _Rule) -> None:
        if _MAGIC.isdisjoint(rule.job):
            self._by_job.setdefault(rule.job, []).append(len(self.rules))
        else:
            self._globs.append(len(self.rules))
        self.rules.append(rule)


def _rule(row: TableRow, zone: tzinfo) -> _Rule:
    values: dict[str, Any] = {}
    for name, text in row.cells.items():
        if name not in (JOB, SOURCE, FROM, TO):
            values[name] = row.get(name, NUMBERS[name]) if name in NUMBERS else text
    start, end = (row.get(name, instant(zone)) for name in (FROM, TO))
    if start is not None and end is not None and start >= end:
        raise UsageError(f"{row.where}: from is not before to")
    return _Rule(row.where, row.cells.get(JOB, "*"), row.cells.get(SOURCE, "*"), start, end, values)

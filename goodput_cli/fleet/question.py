"""What is asked of a fleet, checked as it is made: how its logs are read and accounted for, and what of it counts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from goodput_cli.analysis.question import Question
from goodput_cli.api.options import Reading
from goodput_cli.errors import UsageError
from goodput_cli.fleet.grouping import DIMENSIONS, LABELS, Grouping
from goodput_cli.vocabulary.option import declared, option
from goodput_cli.vocabulary.when import Anchors, When
from goodput_cli.vocabulary.zones import load_zone

if TYPE_CHECKING:
    from goodput_cli.fleet.inventory.allocations import Allocation, Capacity
    from goodput_cli.fleet.inventory.labels import Labels
    from goodput_cli.fleet.store.results import AsOf

_WAYS = ("attempt", "before_end", "after_start")


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Files with what logs do not say."""

    labels: tuple[str, ...] = option(
        (),
        LABELS,
        "Team, cluster, accelerators, price … of jobs: CSV, JSON, JSONL or Parquet; earlier files win.",
        metavar="FILE", path=True, read=os.fspath,
    )  # fmt: skip
    """Who and what runs are."""
    sacct: tuple[str, ...] = option(
        (), LABELS, "Allocations from `sacct --parsable2`.", metavar="FILE", path=True, read=os.fspath
    )
    """What a scheduler held for them."""
    allocations: tuple[str, ...] = option(
        (),
        LABELS,
        "Allocations from a table: job, start, end, accelerators.",
        metavar="FILE",
        path=True,
        read=os.fspath,
    )
    """The same from a table."""
    capacity: tuple[str, ...] = option(
        (), LABELS, "What the fleet has: from, to, count, cluster, accelerator.", metavar="FILE", path=True,
        read=os.fspath,
    )  # fmt: skip
    """How many accelerators there are."""


@dataclass(frozen=True)
class Inventory:
    """What these files say."""

    labels: Labels
    allocations: Mapping[str, Sequence[Allocation]]
    capacity: Sequence[Capacity]


@dataclass(frozen=True)
class FleetQuestion:
    """A question about a fleet. Raises UsageError where it does not fit one."""

    grouping: Grouping
    reading: Reading
    question: Question
    jobs: tuple[str, ...]
    """Globs: only jobs whose names match one of them; all if there is none."""

    def __post_init__(self) -> None:
        question = self.question
        for name, when in (("--from", question.start), ("--to", question.end), ("--as-of", question.as_of)):
            if when is not None and when.kind in _WAYS:
                raise UsageError(f"{name} {when.text}: differs from job to job; write a date and time, or now")
        if question.start is not None and self.grouping.last is not None:
            raise UsageError("--from and --last exclude each other: --last ends at --to")
        if question.run is not None or question.window:
            raise UsageError("a fleet has no --run and no --window; see --runs and --last")

    @property
    def zone(self) -> tzinfo:
        """Of weeks, and of times that name none."""
        return load_zone(self.question.timezone)

    @property
    def as_of(self) -> AsOf | None:
        """`--as-of`, resolved."""
        from goodput_cli.fleet.store.results import AsOf

        when = self._resolved(self.question.as_of)
        return None if when is None else AsOf(when, self.grouping.alive_within)

    @property
    def of_each_job(self) -> Question:
        """What is asked of every job: without a window."""
        return replace(self.question, start=None, end=None, as_of=None)

    def inventory(self, tables: Tables) -> Inventory:
        """What labels, allocations and capacity say. Raises UsageError with file and line, or for a dimension of --by
        that nothing names."""
        from goodput_cli.fleet.inventory.allocations import read_allocations, read_capacity
        from goodput_cli.fleet.inventory.labels import Labels

        labels = Labels.read(tables.labels, self.zone)
        allocations = read_allocations(tables.allocations, tables.sacct, self.zone)
        said = {name for found in allocations.values() for one in found for name in one.texts}
        _check_dimensions(self.grouping.by, labels.dimensions | said)
        return Inventory(labels, allocations, read_capacity(tables.capacity, self.zone))

    def window(self, extents: Sequence[tuple[str, int, int, int]]) -> tuple[int, int]:
        """[start, end) (ns): as asked, else from the first run's beginning to the last one's end. extents: job, number,
        start and end of every run."""
        end = self._resolved(self.question.end)
        end = max(extent[3] for extent in extents) if end is None else end
        start = self._resolved(self.question.start)
        if self.grouping.last is not None:
            start = end - self.grouping.last
        elif start is None:
            start = min(extent[2] for extent in extents)
        if start >= end:
            raise UsageError("the window is empty: --from is not before --to")
        return start, end

    def reader(self, code: str) -> str:
        """What a document in a store must have been read with. code: the version of the reader."""
        wanted = replace(self.reading.wanted, use_cache=True)
        hints = replace(self.reading.hints.checked(), now_ns=0)
        made_of = f"{code}\0{self.question.timezone}\0{wanted}\0{self.jobs}\0{hints}\0{hints.files}"
        return blake2b(made_of.encode(), digest_size=16).hexdigest()

    def method(self) -> dict[str, str]:
        """How it was accounted for and added up: every option that is not as by default, and the choices of method."""
        question = self.question
        method = {one.names[0].removeprefix("--"): one.typed(getattr(question.method, one.name))
                  for one in declared(type(question.method))}  # fmt: skip
        if question.reference_step_time is not None:
            method["reference-step-time"] = str(question.reference_step_time)
        if question.exclude:
            method["exclude"] = "; ".join(span.text for span in question.exclude)
        for one in declared(Grouping):
            value = getattr(self.grouping, one.name)
            if value != one.default or one.name in ("runs", "weight"):
                method[one.names[0].removeprefix("--")] = _typed(value)
        return method

    def _resolved(self, when: When | None) -> int | None:
        """An absolute time in ns since 1970 UTC."""
        return None if when is None else when.resolve(Anchors(0, 0, (), self.question.now_ns, self.zone))


def _typed(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_typed, value))
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _check_dimensions(by: Iterable[tuple[str, ...]], columns: Iterable[str]) -> None:
    """Raises UsageError for a dimension that nothing names."""
    known = sorted({*DIMENSIONS, *columns})
    for name in (name for dims in by for name in dims):
        if name not in known:
            raise UsageError(f"--by {name}: there is no such dimension; there are {', '.join(known)}")

"""Options of a fleet report, checked as they are set: how logs are read and accounted for, and how runs are grouped.

Each option is declared once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from fractions import Fraction
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from goodput_cli.accounting.options import WHEN
from goodput_cli.analysis.question import Question
from goodput_cli.api.options import Reading
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.categories import ENDED
from goodput_cli.vocabulary.option import bounded, declared, option, read_ns
from goodput_cli.vocabulary.when import AUTO, NS_PER_DAY, Anchors, TimeArgument, load_zone

if TYPE_CHECKING:
    from goodput_cli.fleet.labels import Allocation, Capacity, Labels
    from goodput_cli.fleet.results import AsOfRule

LABELS, GROUPS, RUN, SELECTION = "Labels and costs", "Groups", "Execution", "Selection"
"""Headings in `--help`."""
WEEK, SIZE = "week", "size"
DIMENSIONS = ("team", "cluster", "accelerator", SIZE, WEEK)
"""Dimensions that always exist; every other column of labels is one too."""
SCHEDULER_DIMENSIONS = ("account", "user", "partition", "namespace", "queue", "state")
"""Dimensions that a scheduler's tables may name."""
FAILURES = ("crashed", "terminated", "silent", "slice_down")
"""Ends of attempts that failed."""


def _read_names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    if isinstance(text, tuple):
        return text
    names = tuple(part.strip().lower() for part in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise UsageError(f"{text!r} is not a list of names", tip="use names separated by commas, such as team,week")
    return names


def _read_failures(text: str) -> tuple[str, ...]:
    names = _read_names(text)
    unknown = [name for name in names if name not in ENDED]
    if unknown:
        raise UsageError(f"unknown end {unknown[0]!r}", tip=f"use {', '.join(ENDED)}")
    return names


def _read_sizes(text: Any) -> tuple[int, ...]:
    try:
        sizes = text if isinstance(text, tuple) else tuple(int(part) for part in str(text).split(","))
    except ValueError:
        sizes = ()
    if not sizes or sizes[0] < 1 or any(first >= second for first, second in pairwise(sizes)):
        raise UsageError(
            f"{text!r} is not a list of sizes", tip="use increasing numbers of accelerators, such as 8,64,512"
        )
    return sizes


def _read_currency(text: str) -> str:
    if not (text.isascii() and text.isalpha() and 2 <= len(text) <= 5):
        raise UsageError(f"{text!r} is not a currency", tip="use a code such as USD")
    return text.upper()


_COUNT = bounded(int, "is not a number of accelerators; use a whole number from 1", least=1, most=1e9)


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """How the runs of a fleet are selected, labeled and summed."""

    runs: Literal["auto", "each", "all", "last"] = option(
        "auto",
        SELECTION,
        "Count every run of a job name, all of them as one job, or only the last. auto: each run that finished, "
        "otherwise all as one.",
        about="Count each run of a job name, all of them as one job, only the last, or decide automatically.",
        choices=("auto", "each", "all", "last"),
        settings={"show_default": True},
    )
    distinct_by: Literal["name", "cluster", "source-folder"] = option(
        "name",
        SELECTION,
        "Label that distinguishes jobs with the same name.",
        choices=("name", "cluster", "source-folder"),
        settings={"show_default": True},
    )
    last: int | None = option(
        None,
        WHEN,
        "Use the last DURATION before --to or before the latest event.",
        accepts="str | int | None",
        metavar="DURATION",
        read=read_ns,
    )
    """ns."""
    alive_within: int = option(
        NS_PER_DAY,
        WHEN,
        "Apply --as-of only to runs with events within DURATION before.  [default: 1d]",
        about='Apply `as_of` only to runs with events this shortly before, such as "1d" or ns.',
        accepts="str | int",
        metavar="DURATION",
        read=read_ns,
    )
    """ns."""
    accelerators: int | None = option(
        None, LABELS, "Accelerators of runs without a number in logs or labels.", metavar="N", read=_COUNT
    )
    price_per_hour: Fraction | None = option(
        None,
        LABELS,
        "Price per accelerator and hour, for runs without one.",
        accepts="str | float | Fraction | None",
        metavar="P",
        read=bounded(Fraction, "is not an amount; use a number above 0", above=0),
    )
    currency: str = option(
        "USD", LABELS, "Currency of prices.", metavar="CODE", read=_read_currency, settings={"show_default": True}
    )
    count_unlogged: bool = option(False, LABELS, "Count allocations without a log as allocated time.")
    saved_only: bool = option(False, GROUPS, "Do not count progress after the last checkpoint.")
    by: tuple[tuple[str, ...], ...] = option(
        (),
        GROUPS,
        "Add a table by team, cluster, size, week …; team,week combines two. Repeatable.",
        accepts="Sequence[str]",
        metavar="DIM",
        read=_read_names,
    )
    sizes: tuple[int, ...] | None = option(
        None,
        GROUPS,
        "Upper limits of size classes.  [default: 8,64,512,4096,32768]",
        accepts="str | tuple[int, ...] | None",
        metavar="LIST",
        read=_read_sizes,
    )
    failures: tuple[str, ...] | None = option(
        None,
        GROUPS,
        f"Ends that count as failures.  [default: {','.join(FAILURES)}]",
        accepts="str | tuple[str, ...] | None",
        metavar="LIST",
        read=_read_failures,
    )
    weight: Literal["chips", "time"] = option(
        "chips",
        GROUPS,
        "Weigh runs by accelerators x time (chips) or by time.",
        choices=("chips", "time"),
        settings={"show_default": True},
    )
    top: int = option(
        20,
        GROUPS,
        "Number of disruptions to list, the worst first.",
        metavar="N",
        read=bounded(int, "is not a number of at least 0", least=0, most=1e6),
        settings={"show_default": True},
    )
    sort: Literal["lost", "goodput", "name", "hours"] = option(
        "lost",
        GROUPS,
        "Order of groups.",
        choices=("lost", "goodput", "name", "hours"),
        settings={"show_default": True},
    )
    limit: int | None = option(
        None,
        GROUPS,
        "Show only the first N groups of a table.",
        metavar="N",
        read=bounded(int, "is not a number of at least 1", least=1, most=1e9),
    )

    @property
    def size_bounds(self) -> tuple[int, ...]:
        """Upper bounds of size classes."""
        return self.sizes or (8, 64, 512, 4096, 32768)

    @property
    def failing(self) -> tuple[str, ...]:
        """Ends of attempts that failed."""
        return self.failures or FAILURES


def size_class(bounds: tuple[int, ...], accelerators: int | None) -> str:
    """Return the class of a run by its largest number of accelerators: `9 - 64`, `over 32768`, `unknown`."""
    if accelerators is None:
        return UNKNOWN_SIZE
    low = 1
    for bound in bounds:
        if accelerators <= bound:
            return f"{low} - {bound}" if low < bound else str(bound)
        low = bound + 1
    return f"over {bounds[-1]}"


UNKNOWN_SIZE = "unknown"


def size_classes(bounds: tuple[int, ...]) -> list[str]:
    """Return all classes, in order."""
    return [*(size_class(bounds, bound) for bound in bounds), f"over {bounds[-1]}", UNKNOWN_SIZE]


_WAYS = ("attempt", "before_end", "after_start")


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Files with facts that logs do not contain."""

    labels: tuple[str, ...] = option(
        (),
        LABELS,
        "Read labels of jobs, such as team and price, from CSV, JSON or Parquet; repeatable.",
        metavar="FILE", accepts="Paths", path=True, read=os.fspath,
    )  # fmt: skip
    """Labels of runs."""
    sacct: tuple[str, ...] = option(
        (),
        LABELS,
        "Read allocations from the output of `sacct --parsable2`.",
        metavar="FILE",
        accepts="Paths",
        path=True,
        read=os.fspath,
    )
    """Allocations of a Slurm scheduler."""
    allocations: tuple[str, ...] = option(
        (),
        LABELS,
        "Read allocations from a table: job, start, end, accelerators.",
        metavar="FILE",
        accepts="Paths",
        path=True,
        read=os.fspath,
    )
    """Allocations from a table."""
    capacity: tuple[str, ...] = option(
        (), LABELS, "Read the fleet's capacity: from, to, count, cluster, accelerator.", metavar="FILE",
        accepts="Paths", path=True, read=os.fspath,
    )  # fmt: skip
    """Number of accelerators of the fleet."""


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Where the work is done."""

    workers: int | None = option(
        None, RUN, "Number of worker processes.  [default: automatic]", metavar="N",
        read=bounded(int, "is not a number of processes; use a whole number from 1", least=1, most=1e4),
    )  # fmt: skip
    """Processes; 1: this one alone; None: as many as pay."""
    scheduler: str | None = option(
        None, RUN, "Use a Dask scheduler (tls://HOST:PORT or its file); needs --store.", metavar="ADDRESS"
    )
    """The address of a dask scheduler, or a scheduler file."""
    insecure_scheduler: bool = option(False, RUN, "Connect to the scheduler without TLS.")
    """True if the scheduler may be used without TLS."""
    memory: str | None = option(
        None, RUN, "Memory limit of a worker, such as 2GiB.  [default: its share of 3/4 of the machine]", metavar="SIZE"
    )
    """Memory limit of a worker, in dask's notation (2GiB)."""


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
                raise UsageError(f"{name} {when.text}: is different for each job", tip="use a date and time, or now")
        if question.start is not None and self.grouping.last is not None:
            raise UsageError("--from and --last cannot be combined: --last ends at --to")
        if question.run != AUTO or question.window:
            raise UsageError("goodput fleet does not take --run and --window", tip="use --runs and --last")

    @property
    def zone(self) -> tzinfo:
        """Time zone of weeks, and of times without one."""
        return load_zone(self.question.timezone)

    @property
    def as_of(self) -> AsOfRule | None:
        """`--as-of`, resolved."""
        from goodput_cli.fleet.results import AsOfRule

        when = self._resolved(self.question.as_of)
        return None if when is None else AsOfRule(when, self.grouping.alive_within)

    def inventory(self, tables: Tables) -> tuple[Labels, Mapping[str, Sequence[Allocation]], Sequence[Capacity]]:
        """Return the labels, allocations (by job) and capacity. Raises UsageError with file and line, or for an unknown
        dimension of --by."""
        from goodput_cli.fleet.labels import Labels, read_allocations, read_capacity

        labels = Labels.read(tables.labels, self.zone)
        allocations = read_allocations(tables.allocations, tables.sacct, self.zone)
        texts = {name for found in allocations.values() for one in found for name in one.texts}
        self.check_dimensions({*labels.dimensions, *texts, *SCHEDULER_DIMENSIONS})  # logs may have tables among them
        return labels, allocations, read_capacity(tables.capacity, self.zone)

    def check_dimensions(self, named: Iterable[str]) -> None:
        """Raises UsageError for a dimension of --by that nothing names. named: by labels and a scheduler's tables."""
        dimensions = {*DIMENSIONS, *named}
        for name in (name for dims in self.grouping.by for name in dims):
            if name not in dimensions:
                known = ", ".join(sorted(dimensions))
                raise UsageError(f"--by {name}: unknown dimension", tip=f"use one of {known}")

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
            raise UsageError("the window is empty: --from must be before --to")
        return start, end

    def reader(self, code: str) -> str:
        """Return the reader hash that a document in a store must have. code: the version of the reader."""
        wanted = replace(self.reading.wanted, use_cache=True)
        hints = replace(self.reading.hints.checked(), now_ns=0)
        made_of = f"{code}\0{self.question.timezone}\0{wanted}\0{self.jobs}\0{hints}\0{hints.files}"
        return blake2b(made_of.encode(), digest_size=16).hexdigest()

    def method(self) -> dict[str, str]:
        """Return how it was accounted for and summed: every option that differs from its default, and the choices of
        method."""
        question = self.question
        method = {one.names[0].removeprefix("--"): one.typed(value) for one in declared(type(question.method))
                  if (value := getattr(question.method, one.name)) is not None}  # fmt: skip
        if question.reference_step_time is not None:
            method["reference-step-time"] = str(question.reference_step_time)
        if question.exclude:
            method["exclude"] = "; ".join(span.text for span in question.exclude)
        for one in declared(Grouping):
            value = getattr(self.grouping, one.name)
            if value != one.default or one.name in ("runs", "weight"):
                method[one.names[0].removeprefix("--")] = _typed(value)
        return method

    def _resolved(self, when: TimeArgument | None) -> int | None:
        """An absolute time in ns since 1970 UTC."""
        return None if when is None else when.resolve(Anchors(0, 0, (), self.question.now_ns, self.zone))


def _typed(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_typed, value))
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)

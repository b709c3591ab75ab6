"""Tables that complete the logs: labels, read from CSV, JSON, JSONL and Parquet; and what a scheduler allocated for
each run, and the capacity, joined to the runs by name and time."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from goodput_cli.diagnostics.diagnostic import MAX_NAMES, Diagnostic, renamed
from goodput_cli.errors import UsageError
from goodput_cli.events.text.entries import nodes_in
from goodput_cli.sources.layouts import unreadable
from goodput_cli.vocabulary.option import bounded
from goodput_cli.vocabulary.when import Anchors, parse_when

Value = TypeVar("Value")
MISSING = ("", "unknown", "none", "n/a")
"""Contents of a cell without a value."""


@dataclass(frozen=True)
class TableRow:
    """A row of a table: texts by column, without those that are missing."""

    where: str
    """`file:line`; of Parquet `file:row`."""
    cells: Mapping[str, str]

    def get(self, column: str, read: Callable[[str], Value]) -> Value | None:
        """Return a cell as a value; None if it is missing. Raises UsageError with the location."""
        text = self.cells.get(column)
        if text is None:
            return None
        try:
            return read(text)
        except UsageError as error:
            raise error.after(f"{self.where}: {column}") from error

    def need(self, column: str, read: Callable[[str], Value]) -> Value:
        """Return the same; raise UsageError if it is missing."""
        value = self.get(column, read)
        if value is None:
            raise UsageError(f"{self.where}: missing value for {column}")
        return value


def read_table(path: str, needed: Sequence[str] = ()) -> list[TableRow]:
    """The rows of a CSV, JSON, JSONL or Parquet file.

    Raises UsageError: the file cannot be read, is not such a table, or lacks a column.
    """
    rows = _listed(path, _rows)
    columns = {column for row in rows for column in row.cells}
    lacking = [column for column in needed if column not in columns]
    if rows and lacking:
        raise UsageError(f"{path}: missing column {lacking[0]}", cause=f"the columns are {', '.join(sorted(columns))}")
    return rows


def timestamp_reader(zone: tzinfo) -> Callable[[str], int]:
    """Return a reader of timestamps (ns since 1970 UTC); those without an offset are in the zone."""

    def read(text: str) -> int:
        when = parse_when(text)
        if when.kind not in ("instant", "local"):
            raise UsageError(f"{text!r} is not a date and time")
        return when.resolve(Anchors(0, 0, (), 0, zone))

    return read


def whole(text: str) -> int:
    """A count from 1."""
    number = _read_count(text)
    if number.denominator != 1:
        raise UsageError(f"{text!r} is not a whole number")
    return int(number)


_read_count = bounded(Fraction, "is not a number of at least 1", least=1, most=1e12)
amount: Callable[[str], Fraction] = bounded(Fraction, "is not an amount above 0", above=0)
"""An exact number above 0."""


_MOST_BYTES = 256 << 20


def text_of(path: Path) -> str:
    """Return the contents of a table. Raises ValueError for one without an end, such as a device."""
    with path.open("rb") as stream:
        content = stream.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"larger than {_MOST_BYTES >> 20} MiB")
    return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def _listed(path: str, read: Callable[[Path], Iterator[TableRow]]) -> list[TableRow]:
    try:
        return list(read(Path(path)))
    except (OSError, ValueError, csv.Error, RecursionError) as error:
        if isinstance(error, OSError):
            raise UsageError.from_sentence(str(unreadable(path, error))) from error
        raise UsageError(f"{path}: cannot be read as a table: {error}") from error


def _rows(path: Path) -> Iterator[TableRow]:
    ending = path.suffix.lower()
    if ending == ".parquet":
        import pyarrow.parquet as pq

        return _named(path, enumerate(pq.read_table(path).to_pylist(), start=1))
    text = text_of(path)
    if ending == ".json":
        listed = json.loads(text, parse_float=Fraction)
        if not isinstance(listed, list):
            raise ValueError("JSON must be a list of objects")
        return _named(path, enumerate(listed, start=1))
    if ending in (".jsonl", ".ndjson"):
        lines = ((number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip())
        return _named(path, ((number, json.loads(line, parse_float=Fraction)) for number, line in lines))
    reader = csv.DictReader(text.splitlines(), strict=True)
    return _named(path, ((reader.line_num, row) for row in reader))


def _rows_of_sacct(path: Path) -> Iterator[TableRow]:
    """Yield the rows of a table as `sacct --parsable2` prints it: cells separated by `|`, nothing quoted. The name of a
    job may itself contain a `|` or a line break. Raises ValueError if a column is missing, or the table ends within a
    row."""
    first, *lines = text_of(path).rstrip("\n").split("\n")
    header = [column.strip().lower() for column in first.split("|")]
    lacking = [column for column in ("jobname", "start", "end", "alloctres") if column not in header]
    if lacking:
        raise ValueError(
            f"its first line has no column {lacking[0]}; run sacct with --parsable2 and without --noheader"
        )
    return _named(path, records_of(header, header.index("jobname"), lines))


def records_of(header: Sequence[str], free: int, lines: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by the number of their first line. A row with too few cells goes on in the next line, and what is too much
    is of the free column."""
    held: list[str] = []
    bars = begin = 0
    for number, line in enumerate(lines, start=2):
        if not held and not line:
            continue
        begin, bars = (begin, bars) if held else (number, 0)
        held.append(line)
        bars += line.count("|")
        more = bars + 1 - len(header)
        if more >= 0:
            cells = "\n".join(held).split("|")
            cells[free : free + more + 1] = ["|".join(cells[free : free + more + 1])]
            yield begin, dict(zip(header, cells, strict=True))
            held = []
    if held:
        raise ValueError(f"line {begin} is truncated")


def _named(path: Path, rows: Iterable[tuple[int, Any]]) -> Iterator[TableRow]:
    for number, row in rows:
        if not isinstance(row, dict):
            raise ValueError(f"row {number} is not an object")
        yield table_row(f"{path}:{number}", row)


def table_row(where: str, row: Mapping[Any, Any]) -> TableRow:
    """A row of cells by the names of their columns. where: `file:line`."""
    cells = {str(key).strip().lower(): str(value).strip() for key, value in row.items()
             if key is not None and value is not None}  # fmt: skip
    return TableRow(where, {key: text for key, text in cells.items() if text.lower() not in MISSING})


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
    """Facts about a run that are not in its log; None if unknown."""

    texts: Mapping[str, str]
    accelerators: int | None = None
    accelerators_per_node: int | None = None
    price: Fraction | None = None
    """Price per accelerator hour."""
    currency: str | None = None
    peak_flops: Fraction | None = None
    flops_per_step: Fraction | None = None
    ideal_step_seconds: Fraction | None = None

    def ideal_seconds(self, accelerators: int) -> Fraction | None:
        """Return the ideal time of a step on this number of accelerators."""
        if self.ideal_step_seconds is None and self.flops_per_step is not None and self.peak_flops is not None:
            return self.flops_per_step / (accelerators * self.peak_flops)
        return self.ideal_step_seconds


@dataclass
class FormerNames:
    """Names of jobs before 0.2, which tables may still use; and which of these names they used."""

    by_job: Mapping[str, str] = field(default_factory=dict)
    _used: defaultdict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    """By use and old name, the jobs that it stood for."""

    def of(self, job: str) -> tuple[str, ...]:
        """Return the names that tables may use for a job."""
        return (job, self.by_job[job]) if job in self.by_job else (job,)

    def use(self, job: str, then: str) -> None:
        """Note that a table called a job by its old name. then: what was made of that."""
        self._used[then, self.by_job[job]].add(job)

    def note_requested_jobs(self, names: Sequence[str]) -> None:
        """Note the jobs that were asked for by their old names. names: globs."""
        for job, old in self.by_job.items():
            if names and not any(name == job or fnmatchcase(job, name) for name in names):
                self._used["--job-name accepts the old one", old].add(job)

    def diagnostics(self) -> list[Diagnostic]:
        """The jobs that were named so."""
        return [
            Diagnostic.of("job_renamed", renamed(old, sorted(jobs), then), len(jobs))
            for (then, old), jobs in sorted(self._used.items())[:MAX_NAMES]
        ]


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
    former: FormerNames = field(default_factory=FormerNames)
    _by_job: dict[str, list[int]] = field(default_factory=dict)
    _globs: list[int] = field(default_factory=list)
    _used: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, paths: Sequence[str], zone: tzinfo) -> Labels:
        """Read label tables. Raises UsageError for a file that is not one."""
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
        """Return the labels of a run. fallback: values that count if no row contains them."""
        values: dict[str, Any] = {}
        names = self.former.of(job)
        exact = (place for name in names for place in self._by_job.get(name, ()))
        for place in sorted({*exact, *self._globs}):
            rule = self.rules[place]
            fitting = next((name for name in names if rule.fits(name, documents, start_ns)), None)
            if fitting is not None:
                self._used.add(place)
                if fitting != job:
                    self.former.use(job, "labels may use the old name")
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
        message = "rows of labels match no run; check their job and source names"
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
    start, end = (row.get(name, timestamp_reader(zone)) for name in (FROM, TO))
    if start is not None and end is not None and start >= end:
        raise UsageError(f"{row.where}: 'from' must be before 'to'")
    return _Rule(row.where, row.cells.get(JOB, "*"), row.cells.get(SOURCE, "*"), start, end, values)


_GRES = re.compile(r"gres/(?:gpu|tpu)(?::([^=,]{1,200}))?=(\d{1,12})(?!\d)")
STILL_HELD = (1 << 63) - 1
"""End of an allocation that had not ended when it was listed."""


@dataclass(frozen=True, eq=False)
class Allocation:
    """Accelerators that were allocated for a job in [start, end) (ns since 1970 UTC). Compared by identity: two rows
    may be equal, and both count."""

    job: str
    start: int
    end: int
    accelerators: int
    waiting_since: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    """Team, cluster, user and accelerator, as far as the scheduler reports them."""
    hosts: tuple[str, ...] = ()
    """All of its hosts; empty if the table does not list them."""


@dataclass(frozen=True)
class Capacity:
    """Number of accelerators in [start, end) (ns since 1970 UTC)."""

    cluster: str
    accelerator: str
    start: int
    end: int
    count: int


def read_allocations(tables: Sequence[str], sacct: Sequence[str], zone: tzinfo) -> dict[str, list[Allocation]]:
    """Return the allocations of each job in order of time. Raises UsageError with file and line."""
    by_job: defaultdict[str, list[Allocation]] = defaultdict(list)
    for path in tables:
        for row in read_table(path, ("job", "start", "end", "accelerators")):
            start, end = _period(row, "start", "end", zone)
            waiting = row.get("waiting_since", timestamp_reader(zone))
            texts = {name: row.cells[name] for name in ("team", "cluster", "user", "accelerator") if name in row.cells}
            job, count = row.need("job", str), row.need("accelerators", whole)
            by_job[job].append(Allocation(job, start, end, count, waiting, texts))
    for path in sacct:
        for row in _listed(path, _rows_of_sacct):
            found = _of_sacct(row, zone)
            if found is not None:
                by_job[found.job].append(found)
    return {job: sorted(found, key=lambda one: (one.start, one.end)) for job, found in by_job.items()}


def read_capacity(paths: Sequence[str], zone: tzinfo) -> list[Capacity]:
    """Return the capacity of the fleet. Raises UsageError with file and line, also if two rows cover one time."""
    rows: list[tuple[TableRow, Capacity]] = []
    for row in (row for path in paths for row in read_table(path, ("from", "to", "count"))):
        start, end = _period(row, "from", "to", zone)
        place = row.cells.get("cluster", ""), row.cells.get("accelerator", "")
        rows.append((row, Capacity(*place, start, end, row.need("count", whole))))
    rows.sort(key=lambda pair: (pair[1].cluster, pair[1].accelerator, pair[1].start))
    for (_, before), (row, one) in pairwise(rows):
        same = (before.cluster, before.accelerator) == (one.cluster, one.accelerator)
        if same and one.start < before.end:
            raise UsageError(f"{row.where}: overlaps another row of the same cluster and accelerator")
    return [one for _, one in rows]


def _of_sacct(row: TableRow, zone: tzinfo) -> Allocation | None:
    """Return a row of `sacct -X -D`; None for one that never started, or had no accelerator."""
    start, end = row.get("start", timestamp_reader(zone)), row.get("end", timestamp_reader(zone))
    count, kind = accelerators_in(row.cells.get("alloctres", ""))
    if start is None or not count or (end is not None and end <= start):
        return None
    waiting = row.get("eligible", timestamp_reader(zone)) or row.get("submit", timestamp_reader(zone))
    columns = {"account": "team", "cluster": "cluster", "user": "user"}
    texts = {name: row.cells[column] for column, name in columns.items() if column in row.cells}
    if kind:
        texts["accelerator"] = kind
    hosts = nodes_in(row.cells.get("nodelist", ""))
    return Allocation(row.need("jobname", str), start, STILL_HELD if end is None else end, count, waiting, texts, hosts)


def accelerators_in(tres: str) -> tuple[int, str]:
    """Return the number of accelerators: `gres/gpu=N`, or without that the sum of `gres/gpu:TYPE=N`; and their type, if
    all are of one."""
    counts = [(kind, int(count)) for kind, count in _GRES.findall(tres)]
    plain = sum(count for kind, count in counts if not kind)
    typed = sum(count for kind, count in counts if kind)
    kinds = {kind for kind, _ in counts if kind}
    return plain or typed, kinds.pop() if len(kinds) == 1 else ""


def _period(row: TableRow, first: str, last: str, zone: tzinfo) -> tuple[int, int]:
    start, end = row.need(first, timestamp_reader(zone)), row.need(last, timestamp_reader(zone))
    if start >= end:
        raise UsageError(f"{row.where}: {first} must be before {last}")
    return start, end


@dataclass(frozen=True)
class AcceleratorSpan:
    """A piece [start, end) (ns) of a run's time with one number of accelerators."""

    start: int
    end: int
    accelerators: int | None
    """None if unknown."""
    held: bool | None
    """True if an allocation covers it; None for a run without allocations, where the log decides."""


def holdings(
    start: int, end: int, allocations: Sequence[Allocation], otherwise: int | None, cuts: Sequence[int]
) -> list[AcceleratorSpan]:
    """Return the pieces of [start, end) (ns), in order, also cut at `cuts`. allocations: of the run; those of one time
    add up. Where there is none, the nearest earlier number counts, and before the first one that. otherwise: the number
    of a run without allocations."""
    inside = [one for one in allocations if one.start < end and one.end > start]
    own = (edge for one in inside for edge in (one.start, one.end) if start < edge < end)
    bounds = list(pairwise(sorted({start, end, *cuts, *own})))
    if not inside:
        return [AcceleratorSpan(begin, stop, otherwise, None) for begin, stop in bounds]
    counts = [sum(one.accelerators for one in inside if one.start <= begin and one.end > begin) for begin, _ in bounds]
    last = next(count for count in counts if count)
    pieces: list[AcceleratorSpan] = []
    for (begin, stop), count in zip(bounds, counts, strict=True):
        last = count or last
        pieces.append(AcceleratorSpan(begin, stop, last, count > 0))
    return pieces


_Run = tuple[int, str, int]
"""A run as its owner: start (ns), job, number."""


_NOBODYS = "an allocation that matches several of them is assigned to none"


class JoinedAllocations:
    """Allocations by the names of jobs, and whose each is once all runs are known."""

    def __init__(
        self, by_job: Mapping[str, Sequence[Allocation]], until: int, former: FormerNames | None = None
    ) -> None:
        """until: where those end (ns) that had not ended when they were listed: the end of the last run."""
        self._by_job = {
            job: [replace(one, end=until) if one.end == STILL_HELD else one for one in found]
            for job, found in by_job.items()
        }
        self._former = former or FormerNames()
        self._owners: dict[Allocation, _Run] = {}
        self._by_old_name: defaultdict[Allocation, set[str]] = defaultdict(set)
        """Jobs that may have had an allocation under the name they had before 0.2."""

    def __bool__(self) -> bool:
        return bool(self._by_job)

    def expect(self, job: str, run: int, start: int, end: int) -> None:
        """Register a run (its window in ns). Call this for every run before any query."""
        name, found = self._of_name(job)
        for one in _overlapping(found, start, end):
            owner = (start, job, run)
            self._owners[one] = min(self._owners.get(one, owner), owner)
            if name != job:
                self._by_old_name[one].add(job)

    def settle(self) -> None:
        """Finish registration: an allocation that several jobs of one old name may have had belongs to none."""
        for one, jobs in self._by_old_name.items():
            shared = len(jobs) > 1
            for job in jobs:
                self._former.use(job, _NOBODYS if shared else "allocations may use the old name")
            if shared:
                del self._owners[one]

    def overlapping(self, job: str, start: int, end: int) -> list[Allocation]:
        """Return the allocations of a job that overlap [start, end) (ns)."""
        name, found = self._of_name(job)
        return [one for one in _overlapping(found, start, end) if name == job or len(self._by_old_name[one]) < 2]

    def of_run(self, job: str, run: int, start: int) -> list[Allocation]:
        """Return the allocations that belong to one run, which starts at `start` (ns), and to no other."""
        return [one for one in self._of_name(job)[1] if self._owners.get(one) == (start, job, run)]

    def _of_name(self, job: str) -> tuple[str, Sequence[Allocation]]:
        """Allocations, and by which name of a job they are found."""
        return next(((name, self._by_job[name]) for name in self._former.of(job) if name in self._by_job), (job, ()))

    def without_run(self) -> Iterator[Allocation]:
        """Yield the allocations that no run overlaps."""
        return (one for found in self._by_job.values() for one in found if one not in self._owners)


def _overlapping(allocations: Sequence[Allocation], start: int, end: int) -> list[Allocation]:
    return [one for one in allocations if one.start < end and one.end > start]

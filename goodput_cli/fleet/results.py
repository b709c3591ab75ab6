"""Facts about one run of a job after accounting: enough for every question about the fleet, and small.

A run is one use of a job's name (accounting §10). Times and amounts are ns; times count from 1970 UTC.

`goodput fleet` stores the results of every run of a job, under a key made from all inputs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from hashlib import blake2b
from importlib.metadata import entry_points
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from msgspec import Struct, field, structs
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import clipped, run_heads
from goodput_cli.accounting.options import RULES
from goodput_cli.accounting.order import OrderedEvents, in_order
from goodput_cli.analysis.account import (
    NO_TRAINING_LOG,
    account_for,
    is_scheduled_alone,
    pick_run,
    run_starts,
    with_other_readings,
)
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.disruptions.find import disruptions_inside, last_failure, up_times
from goodput_cli.analysis.disruptions.losses import last_activity_rows
from goodput_cli.analysis.goodput.analyse import at_risk, slice_counts
from goodput_cli.analysis.goodput.findings import findings
from goodput_cli.analysis.goodput.phrases import DOUBTS
from goodput_cli.analysis.hangs.hang import blocked_by, hangs_of_timeline
from goodput_cli.analysis.insights.hosts import listed_name
from goodput_cli.analysis.kept_work.records import WorkRecords
from goodput_cli.analysis.kept_work.work import logged_sizes
from goodput_cli.analysis.question import ALL, Question
from goodput_cli.analysis.recovery.chain import REDONE, OutageTimeline, chains_of
from goodput_cli.arrays import F64, I64
from goodput_cli.errors import GoodputError
from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES
from goodput_cli.events.formats.registry import ENTRY_POINT_GROUP as FORMATS
from goodput_cli.events.schema import EventLog, EventTable
from goodput_cli.events.signs import RecoveryPhase
from goodput_cli.fleet.passes.work import Origin
from goodput_cli.vocabulary.categories import ENDED
from goodput_cli.vocabulary.text import well_formed
from goodput_cli.vocabulary.when import AUTO, NS_PER_HOUR, NS_PER_MINUTE, TimeArgument

_KEY_BYTES = 16
"""Size of the key of a job's results."""
Runs = Literal["auto", "each", "all", "last"]
_NOTHING: I64 = np.zeros(0, dtype=np.int64)


class RunSpans(Struct, frozen=True):
    """The segments of a run, merged with equal neighbors: they touch and cover it."""

    start: I64 = field(default_factory=lambda: _NOTHING)
    end: I64 = field(default_factory=lambda: _NOTHING)
    category: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    label: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    """Position in `labels`; -1 for none."""
    slowdown: I64 = field(default_factory=lambda: _NOTHING)
    """Time (ns) of each that is training_slowdown; spans with some are never merged."""
    steps: F64 = field(default_factory=lambda: np.zeros(0))
    """Kept steps that begin in each."""
    labels: tuple[str, ...] = ()


class AcceleratorUse(Struct, frozen=True):
    """Used and idle accelerators, in pieces of a run with samples, in order of time."""

    start: I64 = field(default_factory=lambda: _NOTHING)
    end: I64 = field(default_factory=lambda: _NOTHING)
    joules: F64 = field(default_factory=lambda: np.zeros(0))
    """Without exclusions."""
    trained: F64 = field(default_factory=lambda: np.zeros(0))
    """The part of it that was training that counts."""
    powered: F64 = field(default_factory=lambda: np.zeros(0))
    """Device time (ns) with samples of power."""
    idle: F64 = field(default_factory=lambda: np.zeros(0))
    """Device time (ns) of training that counts in which accelerators were busy for less than 20 %."""
    watched: F64 = field(default_factory=lambda: np.zeros(0))
    """Device time (ns) of training that counts with samples of utilization."""


class RunPhase(Struct, frozen=True):
    """A link of an outage (accounting §10)."""

    link: str
    """The point in which it ends."""
    lost_ns: int
    took_ns: int
    """Its length, including time that is not lost."""
    alone: bool
    """True if the point before it is known or cannot occur."""


class RunDisruption(Struct, frozen=True):
    """A disruption of a run, or the failure of its last attempt (accounting §10). lost_ns: of the three before it."""

    number: int
    """From 1; 0 for the failure of the last attempt, which is not a disruption because nothing followed."""
    ended: str
    at_ns: int
    """The last activity, inside the run."""
    wasted_ns: int
    downtime_ns: int
    restart_ns: int
    lost_ns: int
    evidence: str | None
    """The line that shows how it ended, or the last line of its attempt."""
    cause: str
    """Cause (docs/causes.md); `unknown` if not logged."""
    host: str
    """Host, under its name in the lists of the job's hosts; empty if not logged."""
    detect_ns: int | None = None
    """Time from the failure to the line that shows that it was noticed; None if not logged."""
    recover_ns: int | None = None
    """Time from the failure to training again; None if the next disruption came first."""
    failed_is_known: bool = False
    """True if the time of the failure is logged; otherwise these count from the last progress, and are upper limits."""
    recovery: str | None = None
    """Agent that restarted the job; None if not logged."""
    links: tuple[RunPhase, ...] = ()
    """Recovery phases; empty for a scale-up, a rollback, and the failure of the last attempt."""

    @property
    def trained(self) -> bool:
        """Return True if the next attempt trained."""
        return self.recover_ns is not None


class RunResult(Struct, frozen=True):
    """One run of a job."""

    job: str
    run: int
    """From 1; 0 for all runs of the name together."""
    runs: int
    """Number of runs of the name."""
    start_ns: int
    end_ns: int
    """The run's window; of one that cannot be analysed, its first and last event."""
    last_event_ns: int
    events: int
    """Each once."""
    documents: tuple[str, ...]
    """Documents with its events."""
    formats: tuple[str, ...] = ()
    redone: bool = False
    """True if a later run of the name began at or below its first step, and its end is not logged."""
    attempts: int = 0
    ended: bool = False
    ending: str | None = None
    at_risk_ns: int | None = None
    """Kept progress after the last save; None without saves."""
    blocked_by: str | None = None
    """Ranks that held it up at its last end; None if none is named."""
    reason: str | None = None
    """Reason why it could not be analyzed."""
    findings: tuple[tuple[str, str, int], ...] = ()
    """Code, severity and count of what is wrong with its log."""
    doubts: tuple[str, ...] = ()
    """Why its goodput may be that of another job, as `AnalysisAnswer.doubts`."""
    spans: RunSpans = field(default_factory=RunSpans)
    used: AcceleratorUse = field(default_factory=AcceleratorUse)
    up: tuple[I64, I64] = (_NOTHING, _NOTHING)
    """Start and end of the times when attempts were up."""
    hosts: tuple[str, ...] = ()
    """The lists of all hosts that attempts had, each as names with commas between them."""
    listed: I64 = field(default_factory=lambda: _NOTHING)
    """For each attempt, the position of its list in `hosts`; -1 if its hosts are not all listed."""
    partial: tuple[I64, I64] = (_NOTHING, _NOTHING)
    """Start and end of the times when fewer slices were active than exist."""
    disruptions: tuple[RunDisruption, ...] = ()
    logged_accelerators: int | None = None
    """Number of accelerators according to its log; None if not logged."""
    logged_flops: float | None = None
    """Floating-point operations of one step of all accelerators, according to its log."""
    peak_flops: float | None = None
    """Peak operations per second of one accelerator, from options or its log."""
    rules: int = RULES
    """Version of the rules that made it."""

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        intervals = 2 * len(self.up[0]) + len(self.partial[0])
        names = sum(map(len, self.hosts))
        return (
            3000
            + 40 * len(self.spans.start)
            + 56 * len(self.used.start)
            + 16 * intervals
            + 500 * len(self.disruptions)
            + names
        )


@dataclass(frozen=True)
class AsOfRule:
    """`--as-of`, for runs with recent events."""

    instant_ns: int
    alive_within_ns: int

    def counts_for(self, last_event_ns: int) -> bool:
        """Return True if a run with this last event may still be running."""
        return last_event_ns >= self.instant_ns - self.alive_within_ns

    def of(self, question: Question, last_event_ns: int) -> Question:
        """The question as it is asked of such a run."""
        if not self.counts_for(last_event_ns):
            return question
        return replace(question, as_of=TimeArgument(str(self.instant_ns), "instant", self.instant_ns))


def account_runs(
    job: EventLog, question: Question, runs: Runs, as_of: AsOfRule | None, documents: tuple[str, ...]
) -> list[RunResult]:
    """The runs of one job, in time order. job: its log alone. question: without a window.

    What cannot be analysed has a reason; whatever else goes wrong is one too, and never ends the work on a fleet.
    """
    ordered = in_order(job.table)
    question = replace(question, run=ALL)
    if as_of is None:  # usually there is one run, and its timeline has the number
        whole = _account(job, ordered, question, None, documents, (0, 1))
        if whole.reason is None and (runs == "all" or whole.runs == 1):
            return [whole if runs == "all" else structs.replace(whole, run=1)]
    starts, apart = run_starts(ordered.table), run_starts(ordered.table, apart=True)
    count = len(starts)
    if runs == AUTO:
        runs = "each" if len(apart) == count else "all"
    chosen = {"each": list(range(1, count + 1)), "last": [count], "all": [0]}[runs]
    accounted = [_account(job, ordered, question, as_of, documents, (run, count)) for run in chosen]
    finished = [any(start < row <= end for row in apart) for start, end in pairwise(starts)]
    return [structs.replace(one, redone=0 < one.run < count and not finished[one.run - 1]) for one in accounted]


def _account(
    job: EventLog, ordered: OrderedEvents, question: Question, as_of: AsOfRule | None, documents: tuple[str, ...],
    run: tuple[int, int],
) -> RunResult:  # fmt: skip
    """Account for one run. run: its number (0 for all), and the number of runs."""
    number, count = run
    name = job.table.jobs[0]
    if number and count > 1:
        ordered, _ = pick_run(ordered, str(number))
    table = ordered.table
    first, last = int(table.time.min()), int(table.end.max())
    shown = tuple(map(well_formed, documents))  # names of files are bytes, and the store contains text
    bare = RunResult(name, number, count, first, last, last, len(table), shown, job.format_names[0])
    if is_scheduled_alone(bare.formats):
        return structs.replace(bare, reason=NO_TRAINING_LOG)
    try:
        asked = question if as_of is None else as_of.of(question, last)
        timeline, _, _ = account_for(ordered, asked, name)
        if timeline.unknown(np.array([timeline.start]), np.array([timeline.end]))[0]:
            return structs.replace(bare, reason=f"goodput is unknown: {timeline.why_unknown}")
        if bounds := timeline.bounds(timeline.start, timeline.end):
            return structs.replace(bare, reason=f"goodput is known only within bounds: {bounds[0].text}")
        return _result(bare, timeline, ordered, asked)
    except GoodputError as error:
        return structs.replace(bare, reason=well_formed(str(error)))
    except (MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:  # one job must not take thousands along
        return structs.replace(bare, reason=well_formed(f"internal error: {type(error).__name__}: {error}"))


def _result(bare: RunResult, timeline: Timeline, ordered: OrderedEvents, question: Question) -> RunResult:
    attempts = timeline.attempts.count
    risk = at_risk(timeline)
    noticed = findings(timeline)
    hosts, listed = _hosts(timeline)
    sizes = logged_sizes(WorkRecords(timeline, bare.job, bare.formats, timeline.start, timeline.end, question.work))
    return structs.replace(
        bare,
        logged_accelerators=sizes.accelerators,
        logged_flops=sizes.flops_per_step,
        peak_flops=sizes.peak_flops or question.work.peak_flops,
        runs=bare.runs if bare.run else len(timeline.runs),
        start_ns=timeline.start,
        end_ns=timeline.end,
        attempts=attempts,
        ended=timeline.ended,
        ending=timeline.ending,
        at_risk_ns=None if risk is None else risk.ns,
        blocked_by=blocked_by(hangs_of_timeline(timeline).get(attempts - 1)),
        doubts=tuple(
            well_formed(one.message)
            for one in with_other_readings((one for one in noticed if one.code in DOUBTS), ordered, question, bare.job)
        ),
        findings=tuple(sorted((one.code, one.severity, one.count) for one in noticed)),
        spans=joined_spans(timeline),
        used=_used(timeline),
        up=up_times(timeline),
        hosts=hosts,
        listed=listed,
        partial=_partial(timeline.table, timeline.end),
        disruptions=_disruptions(timeline),
    )


def joined_spans(timeline: Timeline) -> RunSpans:
    """Return the segments, merged with neighbors of one category and label where neither has slowdown: inside these an
    amount is a length, so every window has the same amounts as the ledger."""
    segments = timeline.segments
    rows = np.arange(len(segments))
    label, slowdown = segments.label(rows), segments.slowdown
    slowed = slowdown != 0
    heads = run_heads(segments.category) | run_heads(label) | slowed
    heads[1:] |= slowed[:-1]
    first = np.flatnonzero(heads)
    start, kept = segments.start[first], timeline.kept_training
    place = np.maximum(start.searchsorted(kept.start, side="right") - 1, 0)
    steps = np.zeros(len(first))
    np.add.at(steps, place, kept.counted_steps)
    return RunSpans(
        start,
        np.append(start[1:], segments.end[-1:]),
        segments.category[first],
        label[first],
        np.asarray(slowdown[first], dtype=np.int64),
        steps,
        timeline.table.labels,
    )


_FINE, _MOST_PIECES = (NS_PER_MINUTE, 10 * NS_PER_MINUTE, NS_PER_HOUR), 1000
"""Lengths of the pieces of accelerator usage: the shortest that does not give a run too many pieces."""


def _used(timeline: Timeline) -> AcceleratorUse:
    """Return used and idle accelerators, piece by piece of the run."""
    if not DEVICE_SAMPLES.of(timeline.table):
        return AcceleratorUse()
    from goodput_cli.analysis.accelerators.devices import used_between  # few logs contain any

    length = next((ns for ns in _FINE if timeline.end - timeline.start <= _MOST_PIECES * ns), _FINE[-1])
    inside = np.arange(timeline.start // length + 1, -(-timeline.end // length), dtype=np.int64) * length
    edges = np.concatenate(([timeline.start], inside, [timeline.end]))
    found = used_between(timeline, timeline.table.jobs[0], edges)
    seen = (found.powered > 0) | (found.watched > 0)
    return AcceleratorUse(edges[:-1][seen], edges[1:][seen], *(column[seen] for column in found))


def _partial(table: EventTable, end: int) -> tuple[I64, I64]:
    """Return the times (ns) when fewer slices were active than the job has in all."""
    stepping = slice_counts(table).stepping
    if len(stepping.time) == 0:
        return _NOTHING, _NOTHING
    fewer = stepping.value < 1  # not where it is unknown
    until = np.append(stepping.time[1:], end)
    return stepping.time[fewer], np.maximum(until, stepping.time)[fewer]


def _disruptions(timeline: Timeline) -> tuple[RunDisruption, ...]:
    """Return the result of `find_disruptions` for the whole run, with the facts that a fleet needs."""
    inside, failed = disruptions_inside(timeline, timeline.start, timeline.end), last_failure(timeline)
    if len(inside) == 0 and failed is None:
        return ()
    table, dead = timeline.table, timeline.disruptions[inside]  # the attempt that ended
    costs, ended, shown = AttemptCosts(timeline), timeline.ends.how, timeline.ends.row
    wasted, down, restart = costs.taken_back[dead], costs.downtime[dead], costs.restart[dead]
    columns = [timeline.sign_of_life[dead], wasted, down, restart, wasted + down + restart]
    if failed is not None:
        inside, dead = np.append(inside, -1), np.append(dead, len(timeline.attempts) - 1)
        columns = [np.append(one, last) for one, last in zip(columns, (failed, 0, 0, 0, 0), strict=True)]
    columns[0] = clipped(columns[0], timeline.start, timeline.end - 1)
    rows = np.where(shown >= 0, shown, last_activity_rows(timeline))[dead]
    named = [ENDED[code] for code in ended[dead].tolist()]
    values = (one.tolist() for one in columns)
    evidence = (None if place is None else well_formed(place) for place in table.locations(rows))
    causes = [timeline.causes.why[attempt] for attempt in dead.tolist()]
    hosts = (_host(timeline, attempt, one.host) for attempt, one in zip(dead.tolist(), causes, strict=True))
    why = (one.code for one in causes)
    chain_of = {one.ended: one for one in chains_of(timeline, costs=costs)}
    chains = [chain_of.get(attempt) for attempt in dead.tolist()]
    rows_of = zip((inside + 1).tolist(), named, *values, evidence, why, hosts, *_recovered(chains), strict=True)
    return tuple(RunDisruption(*row) for row in rows_of)


def _recovered(chains: Sequence[OutageTimeline | None]) -> Iterator[list[Any]]:
    """Yield the recovery facts of rows, column by column."""
    yield [None if one is None else one.detect_ns for one in chains]
    yield [None if one is None else one.recover_ns for one in chains]
    yield [one is not None and one.failed_is_known for one in chains]
    yield [None if one is None else one.recovery for one in chains]
    yield [_links(one) for one in chains]


def _links(chain: OutageTimeline | None) -> tuple[RunPhase, ...]:
    """Return the loss and length of each phase of an outage; caught-up steps are not a separate loss."""
    if chain is None:
        return ()
    redone = RunPhase(REDONE, chain.redone_ns, chain.redone_ns, True)
    rest = (one for one in chain.links if one.point is not RecoveryPhase.CAUGHT_UP)
    return redone, *(RunPhase(one.point.words, one.lost_ns, one.ns, one.alone) for one in rest)


def _hosts(timeline: Timeline) -> tuple[tuple[str, ...], I64]:
    """Return the lists of all hosts of the attempts, and for each attempt the position of its list."""
    lists = [",".join(sorted(hosts)) for hosts in timeline.causes.hosts]
    place = {text: at for at, text in enumerate(sorted({text for text in lists if text}))}
    listed = [place.get(text, -1) for text in lists] or [-1] * len(timeline.attempts)
    return tuple(place), np.array(listed, dtype=np.int64)


def _host(timeline: Timeline, attempt: int, host: str) -> str:
    """Return the name of a host in the list of its attempt; without a list, its name in the log line."""
    listed = timeline.causes.hosts[attempt] if timeline.causes.hosts else frozenset()
    return well_formed(listed_name(host, sorted(listed)) or host) if host else ""


@dataclass(frozen=True)
class AccountRuns:
    """Work of `goodput fleet`; the driver receives the key of each job in the store."""

    question: Question
    runs: Runs
    as_of: AsOfRule | None
    reader: str
    """Hash of the options for reading and of this code."""
    put: Callable[[Sequence[tuple[str, RunResult]]], None]
    """Puts results into the store, each with the key of its job."""

    def account(self, job: EventLog, origin: Origin, /) -> tuple[str, list[RunResult]]:
        documents = tuple(dict.fromkeys(uri for uri, _ in origin))
        results = account_runs(job, self.question, self.runs, self.as_of, documents)
        return self.key(job.table.jobs[0], origin, int(job.table.end.max())), results

    def keep(self, answers: Sequence[Any], /) -> Sequence[str]:
        self.put([(key, result) for key, results in answers for result in results])
        return [key for key, _ in answers]

    def key(self, job: str, origin: Origin, last_event_ns: int) -> str:
        """Return a hash of the inputs of a job's results: its documents, the question, and the code."""
        alive = self.as_of is not None and self.as_of.counts_for(last_event_ns)
        as_of = asdict(self.as_of) if alive and self.as_of is not None else None
        made_of = [job, origin, self._asked, as_of]
        return blake2b(json.dumps(made_of, sort_keys=True).encode(), digest_size=_KEY_BYTES).hexdigest()

    @cached_property
    def _asked(self) -> list[Any]:
        question = self.question
        now = any(when.kind == "now" for span in question.exclude for when in (span.start, span.end))
        return [
            self.reader, self.runs, question.timezone, str(question.reference_step_time), asdict(question.method),
            [span.text for span in question.exclude], asdict(question.work), question.now_ns if now else None,
        ]  # fmt: skip


@cache
def code_version() -> str:
    """Return a hash that changes with the rules, with this package and with format plugins: results of other code are
    not used. The rules are included separately, because a package in an archive has no files to hash."""
    digest = blake2b(b"rules %d\0" % RULES, digest_size=_KEY_BYTES)
    package = Path(str(files("goodput_cli")))
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    for point in sorted(entry_points(group=FORMATS), key=lambda one: (one.name, one.value)):
        version = point.dist.version if point.dist is not None else ""
        digest.update(f"{point.name}\0{point.value}\0{version}\0".encode())
    return digest.hexdigest()

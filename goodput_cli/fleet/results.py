"""What is known of one run of a job once it is accounted for: enough for every question about the fleet, and little.

A run is one use of a job's name (accounting §10). Instants and amounts are ns; instants count from 1970 UTC.

What `goodput fleet` makes of every job: the results of its runs, put into a store, under a key that says what they
were made of.
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
from goodput_cli.accounting.order import Ordered, in_order
from goodput_cli.analysis.account import (
    NO_TRAINING_LOG,
    account_for,
    is_scheduled_alone,
    pick_run,
    run_starts,
    with_other_readings,
)
from goodput_cli.analysis.disruptions.chain import REDONE, Chain, chains_of
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.disruptions.find import disruptions_inside, last_failure, up_times
from goodput_cli.analysis.disruptions.losses import signs_of_life
from goodput_cli.analysis.goodput.analyse import at_risk, slice_counts
from goodput_cli.analysis.goodput.findings import findings
from goodput_cli.analysis.goodput.phrases import DOUBTS
from goodput_cli.analysis.insights.hosts import listed_name
from goodput_cli.analysis.question import ALL, Question
from goodput_cli.analysis.work import logged_sizes
from goodput_cli.analysis.work_records import WorkRecords
from goodput_cli.arrays import F64, I64
from goodput_cli.errors import GoodputError
from goodput_cli.events.formats.registry import ENTRY_POINT_GROUP as FORMATS
from goodput_cli.events.schema import EventLog, EventTable
from goodput_cli.events.signs import Point
from goodput_cli.fleet.passes.work import Origin
from goodput_cli.vocabulary.categories import ENDED
from goodput_cli.vocabulary.text import well_formed
from goodput_cli.vocabulary.when import AUTO, NS_PER_HOUR, NS_PER_MINUTE, When

_KEY_BYTES = 16
"""Of what names the results of a job."""
Runs = Literal["auto", "each", "all", "last"]
_NOTHING: I64 = np.zeros(0, dtype=np.int64)


class Spans(Struct, frozen=True):
    """The segments of a run, joined where neighbours say the same: they touch and cover it."""

    start: I64 = field(default_factory=lambda: _NOTHING)
    end: I64 = field(default_factory=lambda: _NOTHING)
    category: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    label: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    """Position in `labels`; -1 for none."""
    slowdown: I64 = field(default_factory=lambda: _NOTHING)
    """ns of each that are training_slowdown; what has some is never joined."""
    steps: F64 = field(default_factory=lambda: np.zeros(0))
    """Kept steps that begin in each."""
    labels: tuple[str, ...] = ()


class Used(Struct, frozen=True):
    """What accelerators used and idled, in pieces of a run of which samples hold, in order of time."""

    start: I64 = field(default_factory=lambda: _NOTHING)
    end: I64 = field(default_factory=lambda: _NOTHING)
    joules: F64 = field(default_factory=lambda: np.zeros(0))
    """Without exclusions."""
    trained: F64 = field(default_factory=lambda: np.zeros(0))
    """The part of it that was training that counts."""
    powered: F64 = field(default_factory=lambda: np.zeros(0))
    """Device time (ns) in which samples of power hold."""
    idle: F64 = field(default_factory=lambda: np.zeros(0))
    """Device time (ns) of training that counts in which accelerators were busy for less than 20 %."""
    watched: F64 = field(default_factory=lambda: np.zeros(0))
    """Device time (ns) of training that counts in which samples say how busy they were."""


class RunLink(Struct, frozen=True):
    """A link of an outage (accounting §10)."""

    link: str
    """The point in which it ends."""
    lost_ns: int
    took_ns: int
    """How long it was, what is not lost included."""
    alone: bool
    """Whether the point before it is known or cannot occur."""


class RunDisruption(Struct, frozen=True):
    """A disruption of a run, or the failure of its last attempt (accounting §10). lost_ns: of the three before it."""

    number: int
    """From 1; 0 of the failure of the last attempt, which is no disruption: nothing followed."""
    ended: str
    at_ns: int
    """The last sign of life, inside the run."""
    wasted_ns: int
    downtime_ns: int
    restart_ns: int
    lost_ns: int
    evidence: str | None
    """The line that says how it ended, or the last one of its life."""
    cause: str
    """Why (docs/causes.md); `unknown` where nobody says."""
    host: str
    """On which host, under the name that lists of the job's hosts have for it; empty where no line says it."""
    detect_ns: int | None = None
    """From the failure to the line that says that it was noticed; None where none does."""
    recover_ns: int | None = None
    """From the failure to training again; None where it did not before the next disruption."""
    failed_is_known: bool = False
    """Whether a line says when it failed; else these are from the last progress, and at most so long."""
    recovery: str | None = None
    """Who restarted the job; None if not logged."""
    links: tuple[RunLink, ...] = ()
    """Where it went; none of a scale-up, of a rollback, and of the failure of the last attempt."""

    @property
    def trained(self) -> bool:
        """Whether the next attempt trained."""
        return self.recover_ns is not None


class RunResult(Struct, frozen=True):
    """One run of a job."""

    job: str
    run: int
    """From 1; 0 for all runs of the name together."""
    runs: int
    """How often the name was used."""
    start_ns: int
    end_ns: int
    """The run's window; of one that cannot be analysed, its first and last event."""
    last_event_ns: int
    events: int
    """Each once."""
    documents: tuple[str, ...]
    """Where its events stand."""
    formats: tuple[str, ...] = ()
    redone: bool = False
    """Whether a later run of the name began at or below its first step, and nothing says that it was finished."""
    attempts: int = 0
    ended: bool = False
    ending: str | None = None
    at_risk_ns: int | None = None
    """Kept progress after the last save; None where there are no saves."""
    reason: str | None = None
    """Why it could not be analysed."""
    findings: tuple[tuple[str, str, int], ...] = ()
    """Code, severity and count of what is wrong with its log."""
    doubts: tuple[str, ...] = ()
    """Why its goodput may be that of another job, as `Answer.doubts`."""
    spans: Spans = field(default_factory=Spans)
    used: Used = field(default_factory=Used)
    up: tuple[I64, I64] = (_NOTHING, _NOTHING)
    """When attempts were up, and until when."""
    hosts: tuple[str, ...] = ()
    """The lists of all hosts that attempts had, each as names with commas between them."""
    listed: I64 = field(default_factory=lambda: _NOTHING)
    """Of each attempt, the position of its list in `hosts`; -1 where nothing lists them all."""
    partial: tuple[I64, I64] = (_NOTHING, _NOTHING)
    """When fewer slices were active than there are: start and end."""
    disruptions: tuple[RunDisruption, ...] = ()
    logged_accelerators: int | None = None
    """Those that its log says it holds; None where it does not."""
    logged_flops: float | None = None
    """Floating-point operations of one step of all accelerators, as its log says it."""
    peak_flops: float | None = None
    """What one accelerator does in a second at its best: as options or its log say it."""
    rules: int = RULES
    """Which version of the rules made it."""

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
class AsOf:
    """`--as-of`, for runs of which something was heard lately."""

    instant_ns: int
    alive_within_ns: int

    def counts_for(self, last_event_ns: int) -> bool:
        """Whether a run with this last event may still be running."""
        return last_event_ns >= self.instant_ns - self.alive_within_ns

    def of(self, question: Question, last_event_ns: int) -> Question:
        """The question as it is asked of such a run."""
        if not self.counts_for(last_event_ns):
            return question
        return replace(question, as_of=When(str(self.instant_ns), "instant", self.instant_ns))


def account_runs(
    job: EventLog, question: Question, runs: Runs, as_of: AsOf | None, documents: tuple[str, ...]
) -> list[RunResult]:
    """The runs of one job, in time order. job: its log alone. question: without a window.

    What cannot be analysed has a reason; whatever else goes wrong is one too, and never ends the work on a fleet.
    """
    ordered = in_order(job.table)
    question = replace(question, run=ALL)
    if as_of is None:  # mostly there is one run, and its timeline says so
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
    job: EventLog, ordered: Ordered, question: Question, as_of: AsOf | None, documents: tuple[str, ...],
    run: tuple[int, int],
) -> RunResult:  # fmt: skip
    """One run. run: its number (0 for all), and how many there are."""
    number, count = run
    name = job.table.jobs[0]
    if number and count > 1:
        ordered, _ = pick_run(ordered, str(number))
    table = ordered.table
    first, last = int(table.time.min()), int(table.end.max())
    shown = tuple(map(well_formed, documents))  # names of files are bytes, and the store holds texts
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


def _result(bare: RunResult, timeline: Timeline, ordered: Ordered, question: Question) -> RunResult:
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


def joined_spans(timeline: Timeline) -> Spans:
    """The segments, neighbours of one category and label joined where neither has slowdown: inside these an amount is
    a length, so that every window has the same amounts as the ledger says."""
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
    return Spans(
        start,
        np.append(start[1:], segments.end[-1:]),
        segments.category[first],
        label[first],
        np.asarray(slowdown[first], dtype=np.int64),
        steps,
        timeline.table.labels,
    )


_FINE, _MOST_PIECES = (NS_PER_MINUTE, 10 * NS_PER_MINUTE, NS_PER_HOUR), 1000
"""So long are the pieces in which it is kept what accelerators used: the shortest of which a run has not too many."""


def _used(timeline: Timeline) -> Used:
    """What accelerators used and idled, piece by piece of the run."""
    if not timeline.table.devices:
        return Used()
    from goodput_cli.analysis.steps.devices import used_between  # few logs hold any

    length = next((ns for ns in _FINE if timeline.end - timeline.start <= _MOST_PIECES * ns), _FINE[-1])
    inside = np.arange(timeline.start // length + 1, -(-timeline.end // length), dtype=np.int64) * length
    edges = np.concatenate(([timeline.start], inside, [timeline.end]))
    found = used_between(timeline, timeline.table.jobs[0], edges)
    seen = (found.powered > 0) | (found.watched > 0)
    return Used(edges[:-1][seen], edges[1:][seen], *(column[seen] for column in found))


def _partial(table: EventTable, end: int) -> tuple[I64, I64]:
    """When (ns) fewer slices were active than the job has in all."""
    stepping = slice_counts(table).stepping
    if len(stepping.time) == 0:
        return _NOTHING, _NOTHING
    fewer = stepping.value < 1  # not where nobody knows
    until = np.append(stepping.time[1:], end)
    return stepping.time[fewer], np.maximum(until, stepping.time)[fewer]


def _disruptions(timeline: Timeline) -> tuple[RunDisruption, ...]:
    """What `find_disruptions` says of the whole run, as far as a fleet asks for it."""
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
    rows = np.where(shown >= 0, shown, signs_of_life(timeline))[dead]
    named = [ENDED[code] for code in ended[dead].tolist()]
    values = (one.tolist() for one in columns)
    evidence = (None if place is None else well_formed(place) for place in table.places(rows))
    causes = [timeline.causes.why[attempt] for attempt in dead.tolist()]
    hosts = (_host(timeline, attempt, one.host) for attempt, one in zip(dead.tolist(), causes, strict=True))
    why = (one.code for one in causes)
    chain_of = {one.ended: one for one in chains_of(timeline, costs=costs)}
    chains = [chain_of.get(attempt) for attempt in dead.tolist()]
    rows_of = zip((inside + 1).tolist(), named, *values, evidence, why, hosts, *_recovered(chains), strict=True)
    return tuple(RunDisruption(*row) for row in rows_of)


def _recovered(chains: Sequence[Chain | None]) -> Iterator[list[Any]]:
    """What rows say of how they recovered, column by column."""
    yield [None if one is None else one.detect_ns for one in chains]
    yield [None if one is None else one.recover_ns for one in chains]
    yield [one is not None and one.failed_is_known for one in chains]
    yield [None if one is None else one.recovery for one in chains]
    yield [_links(one) for one in chains]


def _links(chain: Chain | None) -> tuple[RunLink, ...]:
    """What the links of an outage lost, and how long they took; caught up is no loss of its own."""
    if chain is None:
        return ()
    redone = RunLink(REDONE, chain.redone_ns, chain.redone_ns, True)
    rest = (one for one in chain.links if one.point is not Point.CAUGHT_UP)
    return redone, *(RunLink(one.point.words, one.lost_ns, one.ns, one.alone) for one in rest)


def _hosts(timeline: Timeline) -> tuple[tuple[str, ...], I64]:
    """The lists of all hosts of the attempts, and of each attempt the position of its own."""
    lists = [",".join(sorted(hosts)) for hosts in timeline.causes.hosts]
    place = {text: at for at, text in enumerate(sorted({text for text in lists if text}))}
    listed = [place.get(text, -1) for text in lists] or [-1] * len(timeline.attempts)
    return tuple(place), np.array(listed, dtype=np.int64)


def _host(timeline: Timeline, attempt: int, host: str) -> str:
    """A host as the list of its attempt names it; as the line that names it does, where there is no list."""
    listed = timeline.causes.hosts[attempt] if timeline.causes.hosts else frozenset()
    return well_formed(listed_name(host, sorted(listed)) or host) if host else ""


@dataclass(frozen=True)
class AccountRuns:
    """Work of `goodput fleet`; what the driver is given of each job is its key in the store."""

    question: Question
    runs: Runs
    as_of: AsOf | None
    reader: str
    """How its documents were read: a hash of the options for that and of this code."""
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
        """What the results of a job are made of, as a hash: its documents, the question, and the code."""
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
    """Changes with the rules, with this package and with the formats that others plug in: results of other code are not
    used. The rules by themselves, as a package in an archive has no files to tell it by."""
    digest = blake2b(b"rules %d\0" % RULES, digest_size=_KEY_BYTES)
    package = Path(str(files("goodput_cli")))
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    for point in sorted(entry_points(group=FORMATS), key=lambda one: (one.name, one.value)):
        version = point.dist.version if point.dist is not None else ""
        digest.update(f"{point.name}\0{point.value}\0{version}\0".encode())
    return digest.hexdigest()

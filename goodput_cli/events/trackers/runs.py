"""Common parts of all trackers: runs as log lines, step breakdowns in their rows by the names that trainers log, and
which runs are restarts of one training although no name shows it (docs/formats.md, Restarts as new runs).

The names are verl's `timing_s/..` and `perf/..`, those of Lightning's throughput monitor (`device/..`) and the token
count of Hugging Face's trainer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from types import MappingProxyType
from typing import NamedTuple

from goodput_cli.arrays import group_by_key
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.evidence import UntimedEvidence
from goodput_cli.events.inside import LONGEST_NS, STEP_TIME, PhaseName, PhaseTime, safe_name
from goodput_cli.events.text.counted_steps import counted_steps
from goodput_cli.events.text.event_passes import events_of
from goodput_cli.events.text.line_timestamps import Timestamp, Zone
from goodput_cli.events.text.log_lines import MAX_STEP, EventType, LogLine, ParsedEvent, event_of
from goodput_cli.events.values import counts_from_0
from goodput_cli.vocabulary.when import NS_PER_SECOND

_TIMES = "timing_s/"
_PHASES = {
    "gen": "generate",
    "reward": "reward",
    "old_log_prob": "train",
    "ref": "train",
    "values": "train",
    "adv": "train",
    "update_actor": "train",
    "update_critic": "train",
    "update_weights": "sync",
    "param_sync": "sync",
    "testing": "evaluation",
    "save_checkpoint": "save",
    "step": STEP_TIME,
}
_BESIDE = "fully_async/"
"""Prefix of names for generators that run in parallel with training; `gen` is then the time of waiting for their
samples."""
_WORK = {
    "perf/mfu/actor": ("mfu", 100.0),
    "perf/total_num_tokens": ("tokens_per_step", 1.0),
    "perf/throughput": ("tokens_per_second_accelerator", 1.0),
    "device/mfu": ("mfu", 100.0),
    "device/flops_per_sec": ("tflops", 1e-12),
    "samples_per_sec": ("samples_per_second", 1.0),
    "num_input_tokens_seen": ("tokens_total", 1.0),
    "train/num_input_tokens_seen": ("tokens_total", 1.0),
}
"""By name, the metric and its factor."""
_MOST_WORK = 1e300

Logged = Mapping[str, float]


def is_inside(name: str) -> bool:
    """Return True if a value of this name is part of a step breakdown."""
    return name in _WORK or (name.startswith(_TIMES) and _phase(name) in _PHASES)


def logged_of(values: Mapping[str, object]) -> dict[str, float]:
    """Return the values of a row that are part of its step breakdown, without invalid ones."""
    found: dict[str, float] = {}
    for name, value in values.items():
        if is_inside(name) and isinstance(value, int | float) and 0 <= value < _MOST_WORK:
            found[name] = float(value)
    if found and any(name.startswith(_BESIDE) for name in values):
        found[_BESIDE] = 1.0
    return found


def phases_of(logged: Logged) -> tuple[PhaseTime, ...]:
    """Return the phases of a row."""
    return tuple(_times(logged))


def work_of(logged: Logged) -> dict[str, float]:
    """Return the amounts of work of a row, as metrics."""
    found = {_WORK[name][0]: value * _WORK[name][1] for name, value in logged.items() if name in _WORK}
    return {name: value for name, value in found.items() if value > 0}


def _times(logged: Logged) -> Iterator[PhaseTime]:
    for name, seconds in logged.items():
        own = _phase(name)
        if name in _WORK or own not in _PHASES or seconds * NS_PER_SECOND > LONGEST_NS:
            continue
        phase = "wait" if own == "gen" and _BESIDE in logged else _PHASES[own]
        yield PhaseTime(PhaseName(safe_name(own), phase), round(seconds * NS_PER_SECOND))


def _phase(name: str) -> str:
    """Return the phase in a name: `timing_s/timing_s/param_sync` is `param_sync`."""
    return name.removeprefix(_TIMES).removeprefix(_TIMES)


STEP_KEYS = ("train/global_step", "trainer/global_step", "global_step", "iteration", "iter", "step", "_step")
"""Counters of steps, the best first; the last one counts rows."""
_LEAST_GAPS = 7
ROWS = "_step"
"""Number of logging calls, if the program passed no step."""
_NOT_STEPS = 10**9
"""Maximum of a step counter. A higher one counts tokens, samples or time."""


class LoggedTime(NamedTuple):
    """A time, and the line that proves it."""

    time: int
    """ns UTC."""
    source: int
    """The code of the source."""
    line: int


class Row(NamedTuple):
    """One logged row."""

    at: LoggedTime
    steps: dict[str, int]
    """By name, the counters in it."""
    trains: bool = True
    """True if it contains more than evaluations and system metrics."""
    step_time: int | None = None
    """ns of one step."""
    logged: Mapping[str, float] = MappingProxyType({})
    """Its step breakdown, by name (`trackers.inside`)."""


@dataclass
class ProcessOfRun:
    """One process of a run."""

    begin: LoggedTime | None = None
    """The begin of the process; None if unknown."""
    rows: list[Row] = field(default_factory=list)
    alive: list[LoggedTime] = field(default_factory=list)
    end: LoggedTime | None = None
    """The logged end; None: the process was killed, or it is running."""
    ended: EventType | None = None
    host: str = ""
    resumes: bool = False
    """True if repeated steps in it are a resume: several processes, without rows about their starts."""
    printed: list[tuple[int, LogLine]] = field(default_factory=list)
    """(source, log line) of lines that it printed, with their times."""

    @property
    def locations(self) -> Iterable[LoggedTime]:
        """Yield all proofs of its activity, the begin first."""
        places = (self.begin, *(row.at for row in self.rows), *self.alive, self.end)
        return (one for one in places if one is not None)

    @property
    def last(self) -> int:
        """Return ns UTC of its last activity."""
        return max(place.time for place in self.locations)


@dataclass
class TrackedRun:
    """A job in a tracker."""

    tool: str
    """The name of its format."""
    job: str
    name: str = ""
    """The display name, if it differs."""
    lives: list[ProcessOfRun] = field(default_factory=list)
    """In order of time."""
    restarts: list[str] = field(default_factory=list)
    """The ids of runs that continue it."""
    step_key: str = ""
    """The counter whose numbers are steps; "" where none is."""
    printed: bool = False
    """True if its steps are those that it printed."""
    log_lines: list[tuple[int, LogLine]] = field(default_factory=list)
    """(source, log line): see `with_marks`."""
    seen: list[tuple[int, UntimedEvidence]] = field(default_factory=list)
    """(source, observation) of the output of its processes."""

    @property
    def rows(self) -> Iterable[Row]:
        return (row for life in self.lives for row in life.rows)

    def by_source(self) -> dict[int, list[LogLine]]:
        """Return the log lines by source."""
        return group_by_key(self.log_lines)

    @property
    def location(self) -> LoggedTime:
        """Return any location in the run."""
        return next(place for life in self.lives for place in life.locations)

    def note(self, code: str, message: str, notes: DiagnosticCollector) -> None:
        """Report a diagnostic about the run. code: of the diagnostic."""
        notes.add(code, message, self.location.source, [max(self.location.line, 1)])


def with_marks(run: TrackedRun, notes: DiagnosticCollector) -> TrackedRun:
    """Return the run with the log lines of its processes; add diagnostics to `notes`."""
    run.lives = _as_attempts([life for life in run.lives if life.begin or life.rows or life.alive or life.end])
    if not run.lives:
        return run
    run.step_key = _numbers(run)
    if _prints_more(run):
        return _as_printed(run)
    one_more = counts_from_0(row.steps[run.step_key] for row in run.rows if run.step_key in row.steps)
    for life in run.lives:
        run.log_lines += _marks(run, life, one_more)
    _note_steps(run, notes)
    return run


_PRINTED = frozenset(
    {
        EventType.STEP,
        EventType.SAVE,
        EventType.RESTORE,
        EventType.RESUME,
        EventType.EVAL,
        EventType.INIT,
        EventType.PREP,
        EventType.DATA,
    }
)
"""Kinds of printed lines that are more reliable than the tracker."""


def _prints_more(run: TrackedRun) -> bool:
    """Return True if the printed output contains more steps than the logged rows."""
    logged = sum(len({row.steps.get(run.step_key) for row in life.rows} - {None}) for life in run.lives)
    printed = sum(
        len({event_of(one).step for _, one in life.printed if event_of(one).type is EventType.STEP})
        for life in run.lives
    )
    return printed > max(logged, 1)


def _as_printed(run: TrackedRun) -> TrackedRun:
    """Return the run with the steps that its programs printed, and its rows as activity."""
    for life in run.lives:
        life.alive += [row.at for row in life.rows]
        life.rows = []
        run.log_lines += _marks(run, life, False)
        by_source: defaultdict[int, list[LogLine]] = defaultdict(list)
        for code, log_line in life.printed:
            if log_line.stamp is not None:
                log_line.time = log_line.end = log_line.stamp.ns
                by_source[code].append(log_line)
        for code, log_lines in by_source.items():
            rank = life.host or run.job  # the process that logged
            for log_line in events_of(counted_steps(log_lines)):
                one = event_of(log_line)
                if one.type in _PRINTED:
                    own = replace(log_line, stream="", event=replace(one, format=run.tool, rank=rank, job=run.job))
                    run.log_lines.append((code, own))
    run.printed = True
    return run


def _numbers(run: TrackedRun) -> str:
    """Return the best counter of steps; "" if no counter has more than one value."""
    distinct: defaultdict[str, set[int]] = defaultdict(set)
    for row in run.rows:
        for name, number in row.steps.items():
            if len(distinct[name]) < 2:
                distinct[name].add(number)
    named = [name for name in (*STEP_KEYS, *distinct) if name in distinct]
    several = [name for name in named if len(distinct[name]) > 1]
    single = [name for name in named if distinct[name] != {0}]
    found = next(iter((*several, *single)), "")
    return "" if found == ROWS and _in_bursts([row.at.time for row in run.rows if ROWS in row.steps]) else found


def _in_bursts(times: Sequence[int]) -> bool:
    """Return True if many rows directly follow another one, with a long gap after them: several calls per step, not an
    outage. times: of the rows in their order, ns."""
    gaps = sorted(after - before for before, after in pairwise(times))
    if len(gaps) < _LEAST_GAPS:
        return False
    half = len(gaps) // 2
    return gaps[len(gaps) * 17 // 20] > 4 * (gaps[half] + gaps[-half - 1])


def _as_attempts(lives: Sequence[ProcessOfRun]) -> list[ProcessOfRun]:
    """Merge processes that overlap, which are ranks of one attempt: the first begins it, and it ends when all have
    ended."""
    ordered = sorted(lives, key=_begin)
    groups: list[list[ProcessOfRun]] = []
    until = -1
    for life in ordered:
        if groups and _begin(life) < until:
            groups[-1].append(life)
        else:
            groups.append([life])
        until = max(until, life.last)
    return [_joined(group) for group in groups]


def _begin(life: ProcessOfRun) -> int:
    return life.begin.time if life.begin is not None else min(place.time for place in life.locations)


def _joined(group: Sequence[ProcessOfRun]) -> ProcessOfRun:
    if len(group) == 1:
        return group[0]
    begins = [life.begin for life in group if life.begin is not None]
    ends = [life.end for life in group if life.end is not None]
    ways = [life.ended for life in group if life.ended is not None]
    over = max(ends, default=None)
    if over is not None and over.time < max(life.last for life in group):  # another process is still running
        over = None
    return ProcessOfRun(
        min(begins, default=None),
        sorted((row for life in group for row in life.rows), key=lambda row: row.at.time),
        [*(place for life in group for place in life.alive), *begins, *ends],
        over,
        None if over is None else EventType.CRASHED if EventType.CRASHED in ways else ways[-1],
        group[0].host,
        any(life.resumes for life in group),
        printed=group[0].printed,
    )


def _marks(run: TrackedRun, life: ProcessOfRun, one_more: bool) -> Iterable[tuple[int, LogLine]]:
    """Yield the log lines of one attempt. A directly repeated number is another call at the same step."""
    if life.begin is not None:
        yield _mark(run, life, life.begin, EventType.START)
    for row, began in _resumed(run, life) if life.resumes else ():
        done = row.steps[run.step_key] + one_more - _stride(run, life)
        yield _mark(run, life, row.at._replace(time=began), EventType.RESUME, step=max(done, 0))
    before: int | None = None
    for row in life.rows:
        number = row.steps.get(run.step_key)
        if number is None or not row.trains or number == before or not 0 <= number <= MAX_STEP:
            yield _mark(run, life, row.at, EventType.ALIVE)
            continue
        before = number
        code, log_line = _mark(run, life, row.at, EventType.STEP, step=number + one_more, step_time=row.step_time)
        if row.logged:
            spoken = event_of(log_line)
            spoken.phases, spoken.metrics = phases_of(row.logged), work_of(row.logged)
        yield code, log_line
    for place in life.alive:
        yield _mark(run, life, place, EventType.ALIVE)
    if life.end is not None and life.ended is not None:
        yield _mark(run, life, life.end, life.ended)


def _resumed(run: TrackedRun, life: ProcessOfRun) -> list[tuple[Row, int]]:
    """Return the first rows of processes that repeated steps, and the begin of their first step, one usual step
    earlier, in ns UTC.

    accounting §3 (reports by a second host) defines these rows; it cannot determine when the step began.
    """
    rows = [row for row in life.rows if run.step_key in row.steps]
    usual = _usual_step(rows, run.step_key) * _stride(run, life)
    found: list[tuple[Row, int]] = []
    first_seen: dict[int, int] = {}
    for at, row in enumerate(rows):
        number = row.steps[run.step_key]
        if first_seen and number <= max(first_seen):
            soon = number in first_seen and row.at.time - first_seen[number] < 2 * usual
            if soon or _continues_before_repeat(rows[at:], run.step_key, first_seen):
                continue
            found.append((row, max(row.at.time - usual, rows[at - 1].at.time)))
            first_seen = {}
        first_seen.setdefault(number, row.at.time)
    return found


def _continues_before_repeat(rows: Sequence[Row], key: str, seen: Mapping[int, int]) -> bool:
    """Return True if a new highest number comes before those from the repeated one on have been repeated."""
    highest, repeated = max(seen), rows[0].steps[key]
    missing = {number for number in seen if number > repeated}
    for row in rows[1:]:
        if row.steps[key] > highest:
            return bool(missing)
        missing.discard(row.steps[key])
        if not missing:
            return False
    return False


def _usual_step(rows: Sequence[Row], key: str) -> int:
    """Return the median time (ns) of one step, between rows that rise; 0 without any."""
    lengths = sorted(
        (after.at.time - before.at.time) / (after.steps[key] - before.steps[key])
        for before, after in pairwise(rows)
        if after.steps[key] > before.steps[key]
    )
    half = len(lengths) // 2
    return round((lengths[half] + lengths[-half - 1]) / 2) if lengths else 0


def _stride(run: TrackedRun, life: ProcessOfRun) -> int:
    """Return the usual difference between the numbers of two rows."""
    numbers = [row.steps[run.step_key] for row in life.rows if run.step_key in row.steps]
    strides = sorted(after - before for before, after in pairwise(numbers) if after > before)
    return strides[(len(strides) - 1) // 2] if strides else 1


def _mark(
    run: TrackedRun,
    life: ProcessOfRun,
    place: LoggedTime,
    what: EventType,
    step: int | None = None,
    step_time: int | None = None,
) -> tuple[int, LogLine]:
    spoken = ParsedEvent(run.tool, what, step=step, step_time=step_time, rank=life.host or run.job, job=run.job)
    stamp = Timestamp(place.time, Zone.EXACT, False)
    return place.source, LogLine(place.line, "", stamp, spoken, place.time, place.time)


def _note_steps(run: TrackedRun, notes: DiagnosticCollector) -> None:
    job = notes.bounded("job", run.job)
    if not run.step_key:
        if any(row.steps.get(ROWS) for row in run.rows):
            message = f"rows of {job} contain no step and come in bursts of several calls: steps are unknown"
            run.note("rows_not_steps", message, notes)
        elif any(True for _ in run.rows):
            run.note("tracker_without_steps", f"no row of {job} has a step above 0: steps are unknown", notes)
        return
    if run.step_key == ROWS:
        message = f"rows of {job} contain no step: log calls are counted instead, which may not be steps"
        run.note("rows_not_steps", message, notes)
    highest = max(row.steps.get(run.step_key, 0) for row in run.rows)
    if highest > _NOT_STEPS:
        key = notes.bounded("key", run.step_key)
        run.note("steps_too_high", f"{key} of {job} reaches {highest}: it probably does not count steps", notes)


@dataclass(frozen=True)
class RunExtent:
    """The time and the steps of a run."""

    name: str
    training: Hashable
    """The training of the run, such as its configuration: only runs with the same value can be one training."""
    begin: int
    end: int
    """The run lasts from `begin`, its first activity, to `end`, its last one; ns UTC."""
    steps: Sequence[int]
    """Distinct and rising step numbers."""

    @property
    def stride(self) -> int:
        """Return the usual difference between two logged step numbers."""
        strides = sorted(after - before for before, after in pairwise(self.steps))
        return strides[len(strides) // 2] if strides else 1


@dataclass
class _Chain:
    """Runs that continue each other, in order."""

    runs: list[RunExtent] = field(default_factory=list)
    last: RunExtent | None = None
    """The last run with steps."""

    def is_continued_by(self, run: RunExtent) -> bool:
        """Return True if the steps of a run continue after those of the chain, or restart after the chain's first
        step."""
        if self.last is None:
            return False
        return self.runs[0].steps[0] < run.steps[0] <= self.last.steps[-1] + self.last.stride


def find_continued_runs(runs: Iterable[RunExtent]) -> dict[str, str]:
    """Return the first run of the training that each run likely belongs to, by name.

    Runs that overlap in time are unrelated, and so are runs that start at the first step. A run without steps belongs
    to a training if it lies between two of its runs. A run that could continue several trainings continues none.
    """
    by_training = group_by_key((run.training, run) for run in runs)
    found: dict[str, str] = {}
    for alike in by_training.values():
        for chain in _chains(sorted(alike, key=lambda run: (run.begin, run.end))):
            found |= {run.name: chain.runs[0].name for run in chain.runs}
    return found


def _chains(ordered: Sequence[RunExtent]) -> list[_Chain]:
    if any(after.begin <= before.end for before, after in pairwise(ordered)):
        return [_Chain([run]) for run in ordered]
    chains: list[_Chain] = []
    without_steps: list[RunExtent] = []
    lowest: int | None = None
    for run in ordered:
        if not run.steps:
            without_steps.append(run)
            continue
        may_continue: list[_Chain] = []
        if lowest is not None and run.steps[0] > lowest:  # with many runs, most start at the first step
            may_continue = list(islice((chain for chain in chains if chain.is_continued_by(run)), 2))
        lowest = run.steps[0] if lowest is None else min(lowest, run.steps[0])
        if len(may_continue) == 1:
            chain = may_continue[0]
            first = len(without_steps)
            while first and without_steps[first - 1].begin > chain.runs[-1].end:
                first -= 1
            chain.runs += without_steps[first:]
            del without_steps[first:]
        else:
            chain = _Chain()
            chains.append(chain)
        chain.runs.append(run)
        chain.last = run
    return [*chains, *(_Chain([run]) for run in without_steps)]

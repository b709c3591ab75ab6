"""The canonical event table, into which every log format is translated.

One row is one fact of one job. A log of any format becomes an `EventTable`: plain NumPy columns, so that the engine can
process all events at once and ten million of them fit in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import ColumnCode
from goodput_cli.events.evidence import NO_EVIDENCE, EvidenceOfLog
from goodput_cli.events.inside import RankSteps
from goodput_cli.vocabulary.text import JoinedName, file_line, files_of

if TYPE_CHECKING:
    from goodput_cli.diagnostics.diagnostic import Diagnostic

BEGINS_RUN = (("begins_run", True),)
"""The detail of a heartbeat that begins a run, for formats without a start line."""
COUNTS_FROM_0 = (("counts_from_0", True),)
"""The detail of a step end of a program that numbers steps from 0: the first step that ends is 0."""
ASYNCHRONOUS = (("asynchronous", True),)
"""The detail of a `Kind.SAVED` whose log shows that saves continue during training."""
SAVE_STATE = "save_state"
"""The key of the `SaveState` in the detail of a `Kind.SAVE`."""


class SaveState(StrEnum):
    """Progress of a save at its line. A line without a state shows that saving ended."""

    BEGUN = "begun"
    BLOCKING_DONE = "blocking_done"
    """Training goes on; the checkpoint is still being written in the background."""
    COMPLETE = "complete"


LEFT_OPEN_SAVE = ((SAVE_STATE, SaveState.BEGUN.value), ("left_open", True))
"""The detail of the begin of a save that had not ended when its attempt did."""
NO_STEP = np.iinfo(np.int64).min
"""Value of `EventTable.step` for an event without a step."""
NONE = -1
"""Value of the code columns (`rank`, `label`, `detail`, `writer`, `entry`) and of `step_time` for an event without the
property."""


UNLOGGED_GROUP = (("unlogged_group", True),)
"""Detail of a start that only the failures of two groups of workers show."""
UNTIMED_RESTART = (("untimed_restart", True),)
"""Detail of activity where a process began after another one, in a log whose clocks do not show how long after that
was."""
UNTIMED_PHASE = (("untimed_phase", True),)
"""Detail of activity at a save or an evaluation whose time is unknown: it may count as training."""
NEXT_EPOCH = (("next_epoch", True),)
"""Detail of activity at a step that begins to count again: as the next epoch, or in another process."""
NEXT_EPOCH_AFTER_START = (("next_epoch_after_start", True),)
"""The same after a line that looks like a start, which one process may print before each of several trainings."""
PREEMPTED = (("reached_preemption", True),)
"""The detail of a heartbeat that announces a preemption. Saves of Orbax have the same pair among others."""

OWN_END = (("own_end", True),)
"""The detail of an end that a program reached regularly: its last step, or a limit that it enforces."""


BETWEEN_STEPS = (("between_steps", True),)
"""The detail of the begin of data loading that delayed training between two steps."""
TEXT_PROCESS = "text: "
"""Prefix of the process of a writer that is known only by format, host and rank. It has the same name after a
restart."""
AGENT_PROCESS = f"{TEXT_PROCESS}launcher "
"""Prefix of the process of a launcher agent. The process ends with a space if only its file is known: several agents
may write into one file."""
CLOCK_STEP = "clock_step"
"""The key of the amount (ns) by which the clock was set forward just before a heartbeat, in its detail."""
SECOND_WRITER = "second_writer"
"""The key in the detail of a heartbeat of a process that writes into the file of another one, with the number of that
process."""
LOST_STEPS = "lost_steps"
"""The key in the detail of a heartbeat with the time range (ns) in which lines of steps were lost."""


class Kind(ColumnCode):
    """Kind of an event. The values are in the order in which events with the same timestamp are processed (accounting
    §1)."""

    SCHEDULED = 0
    START = 1
    TPU_INIT = 2
    PREP = 3
    RESTORE = 4  # an interval; a point if a log contains only the step from which training continues
    LOAD = 5  # resiliency checkpoint_loaded, a point
    DATA = 6
    ELASTIC_DOWN = 7
    ELASTIC_UP = 8
    ELASTIC_REINIT = 9
    STEP = 10  # a point: step `step` begins; with `Edge.END`: `step` steps are done
    SAVE = 11  # an interval
    CUSTOM = 12
    FINISHED = 13  # resiliency step_finished, a point
    SAVED = 14  # resiliency checkpoint_saved, a point
    TERMINATED = 15  # job_terminated: the job is down, and the reason is unknown
    CRASHED = 16
    USER_TERMINATED = 17  # a clean end
    JOB_FINISHED = 18  # a clean end
    JOB_END = 19  # the recorder's job_end_time: a clean end if it is plausible (accounting §3)
    SLICES = 20  # slice counts from this time on
    HEARTBEAT = 21  # a process of the job was alive: activity without progress or claim


CHECKPOINT_KINDS = (Kind.LOAD, Kind.FINISHED, Kind.SAVED)
"""Kinds of events of checkpoint logs; each needs a step."""


class Edge(ColumnCode):
    """Side of a phase that a row describes."""

    POINT = 0
    BEGIN = 1  # the start line of a phase
    END = 2  # its end line; of a step: `step` steps are done (a step end)
    INTERVAL = 3  # both in one line: `time` to `end`; never used for a step


def rows_of_column(column: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Return some rows of a column. A constant column that takes no memory (see `rows.constant`) stays constant."""
    if column.strides == (0,) and len(column):
        size = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
        return np.ndarray((size,), column.dtype, column[:1], 0, (0,))
    chosen: NDArray[Any] = column[rows]
    return chosen


_OFTEN_CONSTANT = ("edge", "step_time", "rank", "label", "detail", "job", "source", "entry", "writer")


def _constant_if_it_is(column: NDArray[Any]) -> NDArray[Any]:
    if len(column) == 0 or column.strides == (0,) or not (column == column[0]).all():
        return column
    return np.broadcast_to(column[:1].copy().reshape(()), (len(column),))


BATCH_SIZE = "global_batch_size"
"""The name of the metric of samples per step."""
SAMPLES = (BATCH_SIZE, "samples_per_step")
"""Names of metrics of samples per step, the most reliable first."""
WORLD_SIZE = "world_size"
"""The name of the metric of the number of processes, or ranks."""
ACCELERATORS = ("accelerators", "num_devices", "num_gpus", WORLD_SIZE)
"""Names of metrics of the number of accelerators."""
PROFILING = "profiling"
"""A metric without steps: 1 when a profile session begins, 0 when it ends."""
TOKENS_PER_STEP = "tokens_per_step"
"""The name of the metric of tokens per step."""


RATE_SECONDS = "rate_seconds"
"""The name of the metric of the seconds of one step on which the rates of a line are based, if that is not the step
time."""
SIZES = frozenset({"slices", "peak_flops", "total_steps", "sequence_length", WORLD_SIZE, RATE_SECONDS})
"""Names of metrics of the size of the job or of the basis of other metrics; they are not measured per step."""


@dataclass(frozen=True)
class Metric:
    """A metric that a program logged for a job: n values of one name, in order of time."""

    job: str
    name: str
    unit: str
    """The unit as logged; "" if unknown."""
    time: NDArray[np.int64]
    """ns since 1970 UTC."""
    step: NDArray[np.int64]
    """`NO_STEP` for a value without a step."""
    value: NDArray[np.float64]


class Announcement(NamedTuple):
    """A line with which a process announces itself (`attempt` of a recorder). It is not an event and not activity."""

    job: str
    source: str
    time: int
    """ns since 1970 UTC."""


@dataclass(frozen=True, repr=False)
class EventTable:
    """Events as columns of equal length n, in the order of arrival.

    The columns `label`, `detail`, `job`, `source`, `entry` and `writer` contain indexes into the tuple of the same
    plural name, or NONE (never for `job` and `source`).

    **Step ends.** Logs with the begin of steps have rows of `Kind.STEP` with `Edge.POINT`. Logs with the end of steps
    have rows with `Edge.END`: `step` steps were done by `time`. The first step that ends is 1; a format that counts
    from 0 adds one, or has the detail `COUNTS_FROM_0`. If the line contains the duration of a step, that is
    `step_time`: the mean of one step over the steps since the previous record. It is not the time since that record,
    because it excludes saves and evaluations.
    The position of a step end in time is `time`, whatever its mean. A job with rows of both edges is accounted for by
    the points, and its step ends count as activity only.

    **Restores.** An interval claims its time. A `Edge.POINT` at `step` claims none: its line shows that training
    continues from there, but not how long the restore took.

    **Heartbeats** (`Kind.HEARTBEAT`, a point; `step` and `rank` if the line has them) may be thinned while reading: at
    most one per source, rank and 10 s, and always the last one before a longer gap.
    """

    time: NDArray[np.int64]
    """ns since 1970 UTC."""
    end: NDArray[np.int64]
    """ns since 1970 UTC; equals `time` except for `Edge.INTERVAL`."""
    kind: NDArray[np.int8]
    """Values of `Kind`."""
    edge: NDArray[np.int8]
    """Values of `Edge`."""
    step: NDArray[np.int64]
    """`NO_STEP` for an event without a step."""
    step_time: NDArray[np.int64]
    """Mean time (ns) of one step since the previous record, for a step end; NONE if unknown."""
    rank: NDArray[np.int32]
    """Node rank; NONE if unknown. Formats of text leave it out and identify rank and node by `writer`."""
    label: NDArray[np.int32] | NDArray[np.int8]
    """int8 if all values fit."""
    detail: NDArray[np.int32] | NDArray[np.int16]
    """int16 if all values fit."""
    job: NDArray[np.int32]
    source: NDArray[np.int32]
    line: NDArray[np.int64] | NDArray[np.int32]
    """Line number in the source, from 1; int32 if all values fit."""
    entry: NDArray[np.int32]
    writer: NDArray[np.int32]
    """The writer of the line, if the log identifies it. Not part of an event's identity."""
    jobs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """Names in upper case."""
    sources: tuple[str, ...] = ()
    details: Sequence[tuple[Any, ...]] = ()
    """Contents of an event beyond the columns: the remaining fields of an Orbax line; active, total and available
    slices of `Kind.SLICES`. Two events with equal columns and equal detail are the same event."""
    entries: tuple[tuple[str, str, str], ...] = ()
    """The identities of Cloud Logging entries: log name, timestamp, insertId."""
    writers: tuple[tuple[str, str], ...] = ()
    """(node, process) of each writer: the machine or pod ("" if unknown), and a name that distinguishes its processes.
    Formats of text write `TEXT_PROCESS`, format, host and rank as the process: a restarted process keeps the name, and
    its start line begins a new attempt. In Cloud Logging entries, and in heartbeats of the recorder with their
    `run_id`, it has a new name (accounting §3, Ranks without numbers, Rollbacks)."""
    metrics: tuple[Metric, ...] = ()
    """Metrics that programs logged next to the events, of all jobs of the log. They do not affect the ledger."""
    inside: tuple[RankSteps, ...] = ()
    """Time of phases inside steps, by rank, of all jobs of the log. They do not affect the ledger."""
    tables: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Tables of capabilities by name: rows of all jobs of the log, each with its job (`InputTable.of`). They do not
    affect the ledger."""
    announced: tuple[Announcement, ...] = ()
    """Processes that announced themselves, of all jobs of the log, except those of ranks above 0."""
    bad_losses: tuple[tuple[str, NDArray[np.int64]], ...] = ()
    """By job, the times (ns) at which a loss that is not finite was logged."""
    observed: EvidenceOfLog = NO_EVIDENCE
    """Observations about failures, of all jobs of the log. They do not affect the ledger."""

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        return f"<{len(self)} events in columns; Analysis.events is a DataFrame of them>"

    def take(self, rows: NDArray[Any]) -> EventTable:
        """Return the rows chosen by an index array or a mask, in that order, with the same tuples."""
        done: dict[int, NDArray[Any]] = {}  # by the id of a column: `end` may be the same array as `time`
        columns: dict[str, Any] = {}
        for name in COLUMNS:
            column = getattr(self, name)
            if id(column) not in done:
                done[id(column)] = rows_of_column(column, rows)
            columns[name] = done[id(column)]
        return replace(self, **columns)

    def compacted(self) -> EventTable:
        """Return the same events in less memory: a column of one value takes none; line numbers, labels and details
        have the narrowest type."""
        columns: dict[str, Any] = {name: _constant_if_it_is(getattr(self, name)) for name in _OFTEN_CONSTANT}
        if int(self.line.max(initial=0)) <= np.iinfo(np.int32).max:
            columns["line"] = self.line.astype(np.int32, copy=False)
        for name, narrow, values in (("label", np.int8, self.labels), ("detail", np.int16, self.details)):
            if columns[name] is getattr(self, name) and len(values) < np.iinfo(narrow).max:
                columns[name] = columns[name].astype(narrow, copy=False)
        return replace(self, **columns)

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files of the sources: one each, or the parts of a log."""
        return files_of(self.sources)

    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the file of each row, as an index into `files`, and the line in that file."""
        begins = np.cumsum([0, *(len(files_of((one,))) for one in self.sources)], dtype=np.int64)
        file, line = begins[self.source], self.line.astype(np.int64)
        for code, name in enumerate(self.sources):
            if not isinstance(name, JoinedName) or not name.parts:
                continue
            rows = np.flatnonzero(self.source == code)
            index = {one: at for at, one in enumerate(name.files)}
            first, own, at = np.array([(one.first, one.line, index[one.file]) for one in name.parts], dtype=np.int64).T
            part = np.maximum(np.searchsorted(first, line[rows], side="right") - 1, 0)
            file[rows] += at[part]
            line[rows] += np.where(line[rows] > 0, own[part] - first[part], 0)
        return file, line

    def by_file(self) -> EventTable:
        """Return the same events with a source per file, for a copy that stores only names."""
        if not any(isinstance(one, JoinedName) for one in self.sources):
            return self
        file, line = self.places()
        return replace(self, source=file.astype(np.int32), line=line, sources=self.files)

    def where(self, row: int) -> str:
        """Return the evidence for a row: `file:line`, or the insertId of an entry without a line."""
        if self.line[row] <= 0 and self.entry[row] >= 0:
            return str(self.entries[self.entry[row]][2])
        return file_line(self.sources[self.source[row]], int(self.line[row]))

    def locations(self, rows: NDArray[np.signedinteger[Any]]) -> Iterator[str | None]:
        """Yield `where` of each row, None for negative rows."""
        some = np.maximum(rows, 0)
        columns = (rows, self.source[some], self.line[some], self.entry[some])
        return (
            None if row < 0 else self.entries[entry][2] if line <= 0 <= entry else file_line(self.sources[source], line)
            for row, source, line, entry in zip(*(column.tolist() for column in columns), strict=True)
        )


COLUMNS: dict[str, type[np.generic]] = {
    "time": np.int64, "end": np.int64, "kind": np.int8, "edge": np.int8, "step": np.int64, "step_time": np.int64,
    "rank": np.int32, "label": np.int32, "detail": np.int32, "job": np.int32, "source": np.int32, "line": np.int64,
    "entry": np.int32, "writer": np.int32,
}  # fmt: skip
"""Name and dtype of every column of `EventTable`, in order."""

assert [f.name for f in fields(EventTable)][: len(COLUMNS)] == list(COLUMNS)


PROGRESS_BARS = "progress-bars"
"""Name of the format of progress bars of training, as `LogFormat.name`."""
REFERENCE_LIBRARY = "reference library"
"""ml-goodput-measurement, whose recorder writes such logs, as `LogFormat.other_system`."""


@dataclass(frozen=True)
class LogFormat:
    """Properties of a log format that are known without its code. Sorted by name."""

    name: str
    """The name in results."""
    restores_are_inferred: bool = False
    """True if its restores have an end and no start (accounting §2)."""
    other_system: str | None = None
    """Another system that can account for its logs, for `goodput reconcile`."""

    def __lt__(self, other: LogFormat) -> bool:
        return self.name < other.name


@dataclass(frozen=True)
class EventLog:
    """Result of reading the sources: the events and the diagnostics."""

    table: EventTable
    formats: tuple[tuple[LogFormat, ...], ...] = ()
    """The log formats of each job, sorted, in the order of `table.jobs`."""
    diagnostics: tuple[Diagnostic, ...] = ()
    has_text: bool = False
    """True if some events come from files of text or event files: their meaning depends on files in the same folder."""
    earlier: frozenset[str] = frozenset()
    """Jobs that were earlier runs of another job in their folder: without a job name, the last one is selected."""
    former: Mapping[str, str] = field(default_factory=dict)
    """The former name (before 0.2: its file or folder alone) of each text job that is named after its folder."""

    @property
    def format_names(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of `formats`."""
        return tuple(tuple(one.name for one in formats) for formats in self.formats)

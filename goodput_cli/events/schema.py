"""The canonical event: what every log format is translated into.

One row is one fact of one job. A log of any format becomes an `EventTable`: plain NumPy columns, so that
the engine can work on all events at once and ten million of them fit in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import Code
from goodput_cli.events.devices import DeviceSamples
from goodput_cli.events.evidence import NO_EVIDENCE, EvidenceOfLog
from goodput_cli.events.inside import RankSteps

if TYPE_CHECKING:
    from goodput_cli.diagnostics.diagnostic import Diagnostic

BEGINS_RUN = (("begins_run", True),)
"""The detail of a heartbeat at which a run begins whose format has no start line."""
COUNTS_FROM_0 = (("counts_from_0", True),)
"""The detail of a step end whose program numbers steps from 0: the first step that ends is 0."""
ASYNCHRONOUS = (("asynchronous", True),)
"""The detail of a `Kind.SAVED` whose log says that saves go on behind training."""
SAVE_STATE = "save_state"
"""The key in the detail of a `Kind.SAVE` under which its line names a `SaveState`."""


class SaveState(StrEnum):
    """How far a save has come by its line. A line that names none shows that saving ended."""

    BEGUN = "begun"
    BLOCKING_DONE = "blocking_done"
    """Training goes on; the checkpoint is still being written in the background."""
    COMPLETE = "complete"


LEFT_OPEN_SAVE = ((SAVE_STATE, SaveState.BEGUN.value), ("left_open", True))
"""The detail of a begin of a save that its attempt did not outlive."""
NO_STEP = np.iinfo(np.int64).min
"""Value of `EventTable.step` where the event names no step."""
NONE = -1
"""Value of the code columns (`rank`, `label`, `detail`, `writer`, `entry`) and of `step_time` where the event has
none."""


PREEMPTED = (("reached_preemption", True),)
"""The detail of a heartbeat that announces a preemption; Orbax' saves have the same pair among theirs."""

OWN_END = (("own_end", True),)
"""The detail of an end that a program reached by itself: its last step, or a limit of its own."""


BETWEEN_STEPS = (("between_steps", True),)
"""The detail of the beginning of a load of data that kept training waiting between two steps."""
TEXT_PROCESS = "text: "
"""What the process of a writer begins with that is known by format, host and rank alone: a restarted one is called the
same."""
AGENT_PROCESS = f"{TEXT_PROCESS}launcher "
"""Prefix of the process of a launcher agent. The process ends with a space if only its file is known: several agents
may write into one file."""
EVAL_LABEL = "EVAL_STEP"
"""The label of evaluations that programs print."""
CLOCK_STEP = "clock_step"
"""The key in the detail of a heartbeat that says by how much (ns) the clock was set forward just before."""
SECOND_WRITER = "second_writer"
"""The key in the detail of a heartbeat of a process that writes the file of another one, with that one's number."""
LOST_STEPS = "lost_steps"
"""The key in the detail of a heartbeat that says between which instants (ns) lines of steps were lost."""


class Kind(Code):
    """What happened. The values are in the order in which events of one instant are taken (accounting §1)."""

    SCHEDULED = 0
    START = 1
    TPU_INIT = 2
    PREP = 3
    RESTORE = 4  # an interval; a point where a log says only from which step training goes on
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
    TERMINATED = 15  # job_terminated: down, nobody says why
    CRASHED = 16
    USER_TERMINATED = 17  # a clean end
    JOB_FINISHED = 18  # a clean end
    JOB_END = 19  # the recorder's job_end_time: a clean end if it can be believed (accounting §3)
    SLICES = 20  # slice counts from then on
    HEARTBEAT = 21  # a process of the job was alive: a sign of life, no progress, no claim


CHECKPOINT_KINDS = (Kind.LOAD, Kind.FINISHED, Kind.SAVED)
"""What checkpoint logs say of a step: each needs one."""


class Edge(Code):
    """Which side of a phase a row is."""

    POINT = 0
    BEGIN = 1  # the start line of a phase
    END = 2  # its end line; of a step: so many steps are done (a step end)
    INTERVAL = 3  # both in one line: `time` to `end`; never a step


def rows_of_column(column: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Some rows of a column. A column of one value that takes no memory (see `rows.constant`) stays one."""
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
"""The name of the metric that says how many samples a step takes."""
SAMPLES = (BATCH_SIZE, "samples_per_step")
"""Names of metrics that say so, the surest first."""
WORLD_SIZE = "world_size"
"""The name of the metric that says how many processes, or ranks, there are."""
ACCELERATORS = ("accelerators", "num_devices", "num_gpus", WORLD_SIZE)
"""The same of how many accelerators there are."""
PROFILING = "profiling"
"""A metric without steps: 1 where a profile session begins, 0 where it ends."""
TOKENS_PER_STEP = "tokens_per_step"
"""The name of the metric that says how many tokens a step takes."""


RATE_SECONDS = "rate_seconds"
"""The name of the metric that says of how many seconds of one step the rates of a line are, where that is not the step
time."""
SIZES = frozenset({"slices", "peak_flops", "total_steps", "sequence_length", WORLD_SIZE, RATE_SECONDS})
"""Names of metrics that say how large the job is or what others are of: nothing that is measured of steps."""


@dataclass(frozen=True)
class Metric:
    """What a program measured of a job: n values of one name, in order of time."""

    job: str
    name: str
    unit: str
    """As it was written; "" where it was not."""
    time: NDArray[np.int64]
    """ns since 1970 UTC."""
    step: NDArray[np.int64]
    """`NO_STEP` where a value is of no step."""
    value: NDArray[np.float64]


class Announcement(NamedTuple):
    """A line by which a process announces itself (`attempt` of a recorder): no event, and no sign of life."""

    job: str
    source: str
    time: int
    """ns since 1970 UTC."""


@dataclass(frozen=True, repr=False)
class EventTable:
    """Events as columns of equal length n, in the order of arrival.

    The columns `label`, `detail`, `job`, `source`, `entry` and `writer` hold positions in the tuple of the same plural
    name, NONE where there is none (`job` and `source` always are).

    **Step ends.** Logs that say when a step began have rows of `Kind.STEP` with `Edge.POINT`; those that say when steps
    had been done, with `Edge.END`: by `time`, `step` steps were done (the first step that ends is 1; a format that
    counts from 0 adds one, or has the detail `COUNTS_FROM_0`). Where the line says how long a step took, that is
    `step_time`: the mean of one step over the steps since the record before. It is not the time since that record, as
    saves and evaluations are not in it.
    The place of a step end in time is `time`, whatever its mean. A job with rows of both edges is accounted for by the
    points, and its step ends are signs of life.

    **Restores.** An interval claims its time. A `Edge.POINT` at `step` claims none: its line says that training goes
    on from there, and not how long that took to come.

    **Heartbeats** (`Kind.HEARTBEAT`, a point; `step` and `rank` if the line has them) may be thinned while reading: at
    most one a source, rank and 10 s, and always the last before a longer gap.
    """

    time: NDArray[np.int64]
    """ns since 1970 UTC."""
    end: NDArray[np.int64]
    """ns since 1970 UTC; equals `time` but for `Edge.INTERVAL`."""
    kind: NDArray[np.int8]
    """Values of `Kind`."""
    edge: NDArray[np.int8]
    """Values of `Edge`."""
    step: NDArray[np.int64]
    """`NO_STEP` where there is none."""
    step_time: NDArray[np.int64]
    """Of a step end: the mean time (ns) of one step since the record before it; NONE where it says none."""
    rank: NDArray[np.int32]
    """Node rank; NONE where there is none. Formats of text leave it out and name rank and node by `writer`."""
    label: NDArray[np.int32] | NDArray[np.int8]
    """int8 where that is enough."""
    detail: NDArray[np.int32] | NDArray[np.int16]
    """int16 where that is enough."""
    job: NDArray[np.int32]
    source: NDArray[np.int32]
    line: NDArray[np.int64] | NDArray[np.int32]
    """Line number in the source, from 1; int32 where that is enough."""
    entry: NDArray[np.int32]
    writer: NDArray[np.int32]
    """Who wrote the line, as far as the log names it. No part of an event's identity."""
    jobs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """Upper case."""
    sources: tuple[str, ...] = ()
    details: Sequence[tuple[Any, ...]] = ()
    """What an event says beyond the columns: the remaining fields of an Orbax line; active, total and available slices
    of `Kind.SLICES`. Two events with equal columns and equal detail are the same event."""
    entries: tuple[tuple[str, str, str], ...] = ()
    """The identities of Cloud Logging entries: log name, timestamp, insertId."""
    writers: tuple[tuple[str, str], ...] = ()
    """(node, process) of each writer: the machine or pod ("" where the log names none), and what tells its processes
    apart. Formats of text write `TEXT_PROCESS`, format, host and rank as the process: a restarted process has the same
    name there, and its start line begins a new attempt. Behind Cloud Logging entries, and in heartbeats of the recorder
    that name their `run_id`, it has a new name (accounting §3, Ranks without numbers, Rollbacks)."""
    metrics: tuple[Metric, ...] = ()
    """What programs measured beside the events, of all jobs of the log. It feeds no figure of the ledger."""
    inside: tuple[RankSteps, ...] = ()
    """How long phases inside steps took, by rank, of all jobs of the log. It feeds no figure of the ledger."""
    devices: tuple[DeviceSamples, ...] = ()
    """What accelerators did, of all jobs of the log. It feeds no figure of the ledger."""
    announced: tuple[Announcement, ...] = ()
    """Processes that announced themselves, of all jobs of the log, those of ranks above 0 left out."""
    bad_losses: tuple[tuple[str, NDArray[np.int64]], ...] = ()
    """By job, when (ns) a loss was logged that is not finite."""
    observed: EvidenceOfLog = NO_EVIDENCE
    """What lines say about deaths, of all jobs of the log. It feeds no figure of the ledger."""

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        return f"<{len(self)} events in columns; Analysis.events is a DataFrame of them>"

    def take(self, rows: NDArray[Any]) -> EventTable:
        """The rows chosen by an index array or a mask, in that order; the tuples stay as they are."""
        done: dict[int, NDArray[Any]] = {}  # by column: `end` may be the very column `time`
        columns: dict[str, Any] = {}
        for name in COLUMNS:
            column = getattr(self, name)
            if id(column) not in done:
                done[id(column)] = rows_of_column(column, rows)
            columns[name] = done[id(column)]
        return replace(self, **columns)

    def compacted(self) -> EventTable:
        """The same events in less memory: a column of one value takes none; line numbers, labels and details are as
        wide as they have to be."""
        columns: dict[str, Any] = {name: _constant_if_it_is(getattr(self, name)) for name in _OFTEN_CONSTANT}
        if int(self.line.max(initial=0)) <= np.iinfo(np.int32).max:
            columns["line"] = self.line.astype(np.int32, copy=False)
        for name, narrow, values in (("label", np.int8, self.labels), ("detail", np.int16, self.details)):
            if columns[name] is getattr(self, name) and len(values) < np.iinfo(narrow).max:
                columns[name] = columns[name].astype(narrow, copy=False)
        return replace(self, **columns)

    def where(self, row: int) -> str:
        """The evidence for a row: `file:line`, or the insertId of an entry that has no line."""
        if self.line[row] <= 0 and self.entry[row] >= 0:
            return str(self.entries[self.entry[row]][2])
        return f"{self.sources[self.source[row]]}:{self.line[row]}"

    def places(self, rows: NDArray[np.signedinteger[Any]]) -> Iterator[str | None]:
        """`where` of each row, None for those below 0."""
        some = np.maximum(rows, 0)
        columns = (rows, self.source[some], self.line[some], self.entry[some])
        return (
            None if row < 0 else self.entries[entry][2] if line <= 0 <= entry else f"{self.sources[source]}:{line}"
            for row, source, line, entry in zip(*(column.tolist() for column in columns), strict=True)
        )


COLUMNS: dict[str, type[np.generic]] = {
    "time": np.int64, "end": np.int64, "kind": np.int8, "edge": np.int8, "step": np.int64, "step_time": np.int64,
    "rank": np.int32, "label": np.int32, "detail": np.int32, "job": np.int32, "source": np.int32, "line": np.int64,
    "entry": np.int32, "writer": np.int32,
}  # fmt: skip
"""Name and dtype of every column of `EventTable`, in order."""

assert [f.name for f in fields(EventTable)][: len(COLUMNS)] == list(COLUMNS)


REFERENCE_LIBRARY = "reference library"
"""ml-goodput-measurement, whose recorder writes such logs, as `LogFormat.other_system`."""


@dataclass(frozen=True)
class LogFormat:
    """What is known of a log format without its code. Sorted by name."""

    name: str
    """Its name in answers."""
    restores_are_inferred: bool = False
    """Whether its restores have an end and no start (accounting §2)."""
    other_system: str | None = None
    """The system that could account for its logs too, and that ours is reconciled with."""

    def __lt__(self, other: LogFormat) -> bool:
        return self.name < other.name


@dataclass(frozen=True)
class EventLog:
    """What reading the sources gave: the events, and what was noticed on the way."""

    table: EventTable
    formats: tuple[tuple[LogFormat, ...], ...] = ()
    """The log formats of each job, sorted, in the order of `table.jobs`."""
    diagnostics: tuple[Diagnostic, ...] = ()
    has_text: bool = False
    """Whether files of text or of events gave some of it: what these mean depends on those of the same folder."""
    earlier: frozenset[str] = frozenset()
    """Jobs that were runs before another job of their folder: whoever names none means the last."""
    former: Mapping[str, str] = field(default_factory=dict)
    """By job of text that is called with its folder, what it was called before 0.2: its file or folder alone."""

    @property
    def format_names(self) -> tuple[tuple[str, ...], ...]:
        """The names of `formats`."""
        return tuple(tuple(one.name for one in formats) for formats in self.formats)

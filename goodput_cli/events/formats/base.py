"""Interfaces between bytes and events: the reader of a document, which returns its records; the collectors of what
capabilities read in it; and a log format with its tools for translating records.

To add a format, register a class like `Format` under the entry-point group `goodput_cli.formats`. Field names by
which a format recognizes its records and a collector reads them are declared here, because formats are imported with
every log and collectors only when needed.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Characters, Mask
from goodput_cli.diagnostics.diagnostic import MAX_PLACES, DiagnosticCollector
from goodput_cli.events.evidence import DeathsAtEnd
from goodput_cli.events.fast_json import Columns
from goodput_cli.events.inside import RecordedStepCollector
from goodput_cli.events.rows import DetailCollector, Interner, Measurements, Origin, RowBuilder, constant
from goodput_cli.events.text.collector import Collector, TextPart
from goodput_cli.events.timestamps import EntryZones, TimestampReader, labels_in
from goodput_cli.events.values import DecimalColumn, epoch_column, invalid_time_reason, whole_column
from goodput_cli.sources.base import RawBatch, Record


class PartCollector(Protocol):
    """Collector of the parts of all sources of one capability, in bounded memory."""

    def add(self, source: int, part: Any, notes: DiagnosticCollector, /) -> None:
        """Add a part of a source. source: its code. notes: receives what is wrong with the part."""

    def __bool__(self) -> bool:
        """Return True if anything was collected."""


class InputCollectors:
    """Collectors of the parts of documents, by capability."""

    def __init__(self, made_by: Mapping[str, Callable[[], PartCollector]]) -> None:
        """made_by: by the name of a capability: creates its collector."""
        self._made_by = made_by
        self._collectors: dict[str, PartCollector] = {}

    def take(self, name: str, source: int, part: Any, notes: DiagnosticCollector) -> None:
        """Add a part of a source to the inputs of a capability. source: its code."""
        if name not in self._collectors:
            self._collectors[name] = self._made_by[name]()
        self._collectors[name].add(source, part, notes)

    def collected(self, name: str) -> Any:
        """Return the collector of a capability; None if it collected nothing."""
        return self._collectors.get(name) or None


RUNS = "mldiagnostics"
"""The format of google-cloud-mldiagnostics, whose lines identify runs."""
VALUES, STEP, CONFIGS = "values", "step_index", "userConfigs"
UNIT, PROCESS, HOST = "unit", "process_index", "hostname"

SACCT = "sacct"
"""The format of Slurm's accounting."""

WANDB, RAY, MLFLOW = "wandb", "ray", "mlflow"
"""Formats of experiment trackers."""
SYSTEM = "system."
"""Prefix of system metrics in exports of Weights & Biases."""


EVENT_TYPE = "event_type"
JOB_NAME = "job_name"

Entry = Mapping[str, Any]
"""The Cloud Logging entry around a record: `logName`, `resource`, `labels`, `timestamp` and more, as in its JSON."""


@dataclass(frozen=True)
class Records:
    """n records of one set of keys; no value is None."""

    records: Sequence[Record]
    """Parsed on demand if there are `columns`, which is slow."""
    keys: frozenset[str]
    """The keys of every record."""
    origin: Origin
    stamp: I64
    """The timestamps of the entries around the records, ns since 1970 UTC; -1 for none."""
    loose: bool = False
    """True if a record may have more keys than `keys`, all unknown to every format."""
    columns: Columns | None = None
    """The same records as columns, if they were read as columns."""
    entries: Sequence[Entry] | None = None
    """The entries of Cloud Logging around the records; None without entries."""

    def __len__(self) -> int:
        return len(self.records)

    def column(self, key: str) -> list[Any]:
        """Return the values of one of `keys`."""
        if self.columns is not None and key in self.columns.constants:
            return [self.columns.constants[key]] * len(self.records)
        return [record[key] for record in self.records]

    def same(self, key: str) -> Any:
        """Return the value of one of `keys` if it is known to be the same in all records, otherwise None."""
        return None if self.columns is None else self.columns.constants.get(key)

    def numerals(self, key: str) -> DecimalColumn | None:
        """Return the values of one of `keys` if they were read as digits, otherwise None."""
        return None if self.columns is None else self.columns.numbers.get(key)

    def characters(self, key: str) -> Characters | None:
        """Return uint8[n, width]: the texts of one of `keys` if they were read as timestamps of one layout, otherwise
        None."""
        return None if self.columns is None else self.columns.texts.get(key)

    def of_job(self, job: NDArray[np.int32]) -> Records:
        """Return the same records with these jobs."""
        return replace(self, origin=structs.replace(self.origin, job=job))

    def parsed(self) -> Records:
        """Return the same records, all parsed, for a format that reads nearly all of their keys."""
        return self if self.columns is None else replace(self, records=list(self.records), columns=None)

    def every(self) -> Mask:
        """Return bool[n], all true."""
        return np.ones(len(self.records), dtype=np.bool_)


@dataclass(frozen=True)
class Output:
    """Destination of the results of a format. The interners return the codes of the columns of the same name."""

    rows: RowBuilder
    notes: DiagnosticCollector
    labels: Interner[str]
    details: DetailCollector
    clock: TimestampReader
    writers: Interner[tuple[str, str]] = field(default_factory=Interner)
    """Codes for `Origin.writer`."""
    measured: Measurements = field(default_factory=Measurements)
    """Collects metrics of programs."""
    recorded_steps: RecordedStepCollector = field(default_factory=RecordedStepCollector)
    """Collects the step breakdowns of ranks."""
    inputs: InputCollectors = field(default_factory=lambda: InputCollectors({}))
    """Collects parts of documents that capabilities read."""
    zones: EntryZones | None = None
    """Collects lines whose zone can be inferred from their entries; None if the zone was given."""
    announced: list[tuple[int, int, int]] = field(default_factory=list)
    """Processes that announced themselves: codes of job and source, and the time (ns)."""
    bad_losses: defaultdict[int, array[int]] = field(default_factory=lambda: defaultdict(lambda: array("q")))
    """By code of the job: the times (ns) at which a loss that is not finite was logged."""
    texts: Collector = field(default_factory=Collector)
    """Collects records without a job and possibly without a time, like lines of text."""

    def report(self, code: str, message: str, records: Records, which: Mask | Sequence[int]) -> None:
        """Report a finding about the records chosen by a mask or by positions."""
        chosen = np.flatnonzero(which) if isinstance(which, np.ndarray) else np.asarray(which, dtype=np.int64)
        if len(chosen):
            origin = records.origin
            few = chosen[:MAX_PLACES]
            lines, entries = origin.line[few].tolist(), origin.entry[few].tolist()
            self.notes.add(code, message, origin.source, lines, entries, len(chosen))

    def take_input(self, name: str, source: int, part: Sized) -> None:
        """Add a part of a source that a capability reads. name: of its table. source: its code."""
        self.inputs.take(name, source, part, self.notes)

    def times(self, records: Records, key: str) -> tuple[I64, Mask]:
        """Return epoch seconds of a key as ns int64[n], and True for valid values; report the others as `bad_value`."""
        numerals = records.numerals(key)
        ns, good = epoch_column(records.column(key)) if numerals is None else numerals.epoch_ns()
        for at in np.flatnonzero(~good).tolist() if not good.all() else ():
            self.report("bad_value", f"{invalid_time_reason(key, records.records[at][key])}; dropped", records, [at])
        return ns, good

    def whole(self, records: Records, key: str) -> tuple[I64, Mask]:
        """Return whole numbers of a key as int64[n], and True for valid values; report the others as `bad_value`."""
        numbers, good = whole_numbers(records, key)
        self.report("bad_value", f"`{key}` is not a whole number; dropped", records, ~good)
        return numbers, good

    def names(self, records: Records, key: str) -> tuple[NDArray[np.int32], Mask]:
        """Return labels of a key, upper case, `UNKNOWN` if missing, as int32[n] codes, and True for valid values."""
        same = records.same(key) if key in records.keys else ""
        if type(same) is str:
            return constant(len(records), self.labels.code(same.upper() or UNKNOWN_LABEL)), records.every()
        texts = records.column(key)
        good = np.array([isinstance(text, str | int | float) for text in texts], dtype=np.bool_)
        self.report("bad_value", f"`{key}` is not a name; dropped", records, ~good)
        return self.labels.codes([str(text).upper() or UNKNOWN_LABEL for text in texts]), good


def whole_numbers(records: Records, key: str) -> tuple[I64, Mask]:
    """Return whole numbers of a key as int64[n], and True for valid values."""
    numerals = records.numerals(key)
    if numerals is not None and numerals.fraction is None:
        return numerals.whole, records.every()
    return whole_column(records.column(key))


UNKNOWN_LABEL = "UNKNOWN"
_MISSING: Any = object()


class Format(Protocol):
    """A log format: recognizes its records and translates them into canonical rows (see `events.schema`).

    It may also have what `FormatOptions` lists.
    """

    @property
    def name(self) -> str:
        """Return the name that reports show, in lower case."""

    @property
    def keys(self) -> frozenset[str]:
        """Return the known keys; others are counted as `unknown_keys`."""

    def recognises(self, record: Mapping[str, Any], /) -> bool:
        """Return True if a record has this format. May use only the names of its keys and `event_type`."""

    def translate(self, records: Records, output: Output, /) -> Mask:
        """Add the rows of `records`. Return bool[n]: True for records that gave a row or a diagnostic."""


@dataclass(frozen=True)
class FormatOptions:
    """Optional attributes and methods of a format, with their defaults."""

    job_key: str = JOB_NAME
    """The key of the job name in a record."""
    job_of: Callable[[Records], str | Sequence[Any]] | None = None
    """Returns the job name of all records, or a name for each; "" for none. Takes precedence over `job_key`."""
    recognises_entry: Callable[[Entry], bool] | None = None
    """Returns True if the payload of an entry has this format, whatever the payload contains; takes precedence over
    `recognises`. May use only `logName`, the type of `resource`, and the names of its labels."""
    any_key: Callable[[Records], bool] | None = None
    """Returns True if these records may have any keys in addition to `keys`: none of them counts as unknown then."""
    restores_are_inferred: bool = False
    """See `LogFormat`."""
    other_system: str | None = None
    """See `LogFormat`."""

    @classmethod
    def of(cls, one: Format) -> FormatOptions:
        """Return the options of a format."""
        found = ((name, getattr(one, name, _MISSING)) for name in cls.__dataclass_fields__)
        return cls(**{name: value for name, value in found if value is not _MISSING})

    def job_names(self, records: Records) -> str | Sequence[Any]:
        """Return the job names. See `job_of`."""
        if self.job_of is not None:
            return self.job_of(records)
        same = records.same(self.job_key)
        return same if isinstance(same, str) and same else [one.get(self.job_key, "") for one in records.records]


def labels_of(entry: Entry) -> Mapping[str, Any]:
    """Return the labels of the resource of an entry of metrics; none for other entries."""
    resource = entry.get("resource")
    is_of_metrics = isinstance(resource, dict) and resource.get("type") == "generic_node"
    return labels_in(resource) if is_of_metrics else {}


class ParsedPart(Struct, frozen=True):
    """The records of a part of a document, and its bad lines."""

    records: Sequence[Record]
    lines: I64
    """The number of the line at which each record begins."""
    bad: Sequence[tuple[int, str]] = ()
    """Lines without a record: number and reason."""
    nulls: bool = True
    """True if a value of a record may be None."""
    columns: Sequence[Columns] = ()
    """Further records: lines that were read as columns."""
    modified_ns: int | None = None
    """The time of the last change of the document, if its reader does not return it."""
    text: TextPart | None = None
    """The contents of lines of text, for a document of text."""
    inputs: Sequence[tuple[str, Sized]] = ()
    """Parts that capabilities read: the name of the table, and the part."""

    def __len__(self) -> int:
        """Return the number of records and bad lines."""
        of_text = 0 if self.text is None else len(self.text.log_lines) + len(self.text.bad) + self.text.noise
        of_text += sum(len(part) for _, part in self.inputs)
        return of_text + len(self.records) + len(self.bad) + sum(len(one.rows) for one in self.columns)


NOTHING = ParsedPart((), np.empty(0, dtype=np.int64))


def without_records(part: TextPart) -> ParsedPart:
    """Return a part of a document without records, which is collected until all sources have been read."""
    return ParsedPart((), np.empty(0, dtype=np.int64), text=part)


@runtime_checkable
class ObservesDeaths(Protocol):
    """Reader of a document that contains evidence of failures."""

    def deaths_at_end(self) -> DeathsAtEnd:
        """Return what the document shows if it ends here. The reader does not change."""


@runtime_checkable
class WrittenAtOnce(Protocol):
    """Reader of a document that is only understood as a whole. It is read again if it changes."""

    written_at_once: bool


class DocumentReader(Protocol):
    """Reader of one document, from its first batch to its last. It may keep state in between."""

    @property
    def by_line(self) -> bool:
        """Return True if lines are independent, so that any subset of the lines is a document."""

    def feed(self, batch: RawBatch, /) -> ParsedPart:
        """Return the records that end in the next bytes of the document."""

    def finish(self) -> ParsedPart:
        """Return the remaining records at the end of the document."""

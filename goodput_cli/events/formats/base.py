"""The plug-in points between bytes and events: what reads a document and gives its records, and what a log format is
and has at hand while it translates them.

To add a format, register a class like `Format` under the entry-point group `goodput_cli.formats`.

Names of fields by which a format recognises its records and what collects them reads them: declared here, since
formats are imported with every log and collectors only where records are theirs.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Characters, Mask
from goodput_cli.diagnostics.diagnostic import MAX_PLACES, DiagnosticCollector
from goodput_cli.events.devices import DeviceCollector, DevicePart
from goodput_cli.events.envelope import labels_in
from goodput_cli.events.fast_json import Columns
from goodput_cli.events.recorded_steps import RecordedSteps
from goodput_cli.events.rows import Details, Interner, Measurements, Origin, RowBuilder, constant
from goodput_cli.events.text.collector import Collector, TextPart
from goodput_cli.events.timestamps import EntryZones, TimestampReader
from goodput_cli.events.values import DecimalColumn, epoch_column, whole_column, why_no_time
from goodput_cli.sources.base import RawBatch, Record

RUNS = "mldiagnostics"
"""The format of google-cloud-mldiagnostics, whose lines tell runs."""
VALUES, STEP, CONFIGS = "values", "step_index", "userConfigs"
UNIT, PROCESS, HOST = "unit", "process_index", "hostname"

SACCT = "sacct"
"""The format of Slurm's accounting."""

WANDB, RAY, MLFLOW = "wandb", "ray", "mlflow"
SYSTEM = "system."
"""What names of metrics of the machine begin with in exports of Weights & Biases."""
"""Formats of experiment trackers."""


EVENT_TYPE = "event_type"
JOB_NAME = "job_name"

Entry = Mapping[str, Any]
"""What Cloud Logging wraps around a record: `logName`, `resource`, `labels`, `timestamp` and more, as in its JSON."""


@dataclass(frozen=True)
class Records:
    """n records of one set of keys; no value is None."""

    records: Sequence[Record]
    """Parsed when asked for where there are `columns`, which is slow."""
    keys: frozenset[str]
    """Those that every record has."""
    origin: Origin
    stamp: I64
    """The timestamps of the entries around the records, ns since 1970 UTC; -1 where there is none."""
    loose: bool = False
    """Whether a record may have more keys than `keys`, none of which any format knows."""
    columns: Columns | None = None
    """The same records as columns, if they were read so."""
    entries: Sequence[Entry] | None = None
    """The entries of Cloud Logging around the records, if there are some."""

    def __len__(self) -> int:
        return len(self.records)

    def column(self, key: str) -> list[Any]:
        """The values of one of `keys`."""
        if self.columns is not None and key in self.columns.constants:
            return [self.columns.constants[key]] * len(self.records)
        return [record[key] for record in self.records]

    def same(self, key: str) -> Any:
        """The value of one of `keys` if it is known to be the same in all records, else None."""
        return None if self.columns is None else self.columns.constants.get(key)

    def numerals(self, key: str) -> DecimalColumn | None:
        """The values of one of `keys` if they were read as digits."""
        return None if self.columns is None else self.columns.numbers.get(key)

    def characters(self, key: str) -> Characters | None:
        """uint8[n, width]: the texts of one of `keys` if they were read as timestamps of one layout."""
        return None if self.columns is None else self.columns.texts.get(key)

    def of_job(self, job: NDArray[np.int32]) -> Records:
        """The same as records of these jobs."""
        return replace(self, origin=structs.replace(self.origin, job=job))

    def parsed(self) -> Records:
        """The same with every record parsed, for a format that looks at nearly all of their keys."""
        return self if self.columns is None else replace(self, records=list(self.records), columns=None)

    def every(self) -> Mask:
        """bool[n], all true."""
        return np.ones(len(self.records), dtype=np.bool_)


@dataclass(frozen=True)
class Output:
    """Where a format puts what it finds. The interners hand out the codes of the columns of the same name."""

    rows: RowBuilder
    notes: DiagnosticCollector
    labels: Interner[str]
    details: Details
    clock: TimestampReader
    writers: Interner[tuple[str, str]] = field(default_factory=Interner)
    """Codes for `Origin.writer`."""
    measured: Measurements = field(default_factory=Measurements)
    """Takes what programs measured of themselves."""
    recorded_steps: RecordedSteps = field(default_factory=RecordedSteps)
    """Takes what ranks recorded of the inside of their steps."""
    devices: DeviceCollector = field(default_factory=DeviceCollector)
    """Takes what accelerators did."""
    zones: EntryZones | None = None
    """Takes lines whose zone their entries may show; None where the zone was given."""
    announced: list[tuple[int, int, int]] = field(default_factory=list)
    """Processes that announced themselves: codes of job and source, and when (ns)."""
    bad_losses: defaultdict[int, array[int]] = field(default_factory=lambda: defaultdict(lambda: array("q")))
    """By code of the job: when (ns) a loss was logged that is not finite."""
    texts: Collector = field(default_factory=Collector)
    """Takes what has no job and perhaps no time of its own, as lines of text have not."""

    def report(self, code: str, message: str, records: Records, which: Mask | Sequence[int]) -> None:
        """A finding about the records chosen by a mask or by positions."""
        chosen = np.flatnonzero(which) if isinstance(which, np.ndarray) else np.asarray(which, dtype=np.int64)
        if len(chosen):
            origin = records.origin
            few = chosen[:MAX_PLACES]
            lines, entries = origin.line[few].tolist(), origin.entry[few].tolist()
            self.notes.add(code, message, origin.source, lines, entries, len(chosen))

    def take_devices(self, source: int, part: DevicePart) -> None:
        """Take what accelerators did, as a part of a source says. source: its code."""
        self.devices.add(source, part)
        for line, reason in part.bad:
            self.notes.add("bad_sample", self.notes.bounded("bad_sample", reason), source, [line])

    def times(self, records: Records, key: str) -> tuple[I64, Mask]:
        """Epoch seconds of a key as ns int64[n], and which are good; the others are reported as `bad_value`."""
        numerals = records.numerals(key)
        ns, good = epoch_column(records.column(key)) if numerals is None else numerals.epoch_ns()
        for at in np.flatnonzero(~good).tolist() if not good.all() else ():
            self.report("bad_value", f"{why_no_time(key, records.records[at][key])}; dropped", records, [at])
        return ns, good

    def whole(self, records: Records, key: str) -> tuple[I64, Mask]:
        """Whole numbers of a key as int64[n], and which are good; the others are reported as `bad_value`."""
        numbers, good = whole_numbers(records, key)
        self.report("bad_value", f"`{key}` is not a whole number; dropped", records, ~good)
        return numbers, good

    def names(self, records: Records, key: str) -> tuple[NDArray[np.int32], Mask]:
        """Labels of a key, upper case, `UNKNOWN` where missing, as int32[n] codes, and which are good."""
        same = records.same(key) if key in records.keys else ""
        if type(same) is str:
            return constant(len(records), self.labels.code(same.upper() or UNKNOWN_LABEL)), records.every()
        texts = records.column(key)
        good = np.array([isinstance(text, str | int | float) for text in texts], dtype=np.bool_)
        self.report("bad_value", f"`{key}` is not a name; dropped", records, ~good)
        return self.labels.codes([str(text).upper() or UNKNOWN_LABEL for text in texts]), good


def whole_numbers(records: Records, key: str) -> tuple[I64, Mask]:
    """Whole numbers of a key as int64[n], and which are good."""
    numerals = records.numerals(key)
    if numerals is not None and numerals.fraction is None:
        return numerals.whole, records.every()
    return whole_column(records.column(key))


UNKNOWN_LABEL = "UNKNOWN"
_MISSING: Any = object()


class Format(Protocol):
    """A log format: recognises its records and translates them into canonical rows (see `events.schema`).

    It may also have what `FormatOptions` lists.
    """

    @property
    def name(self) -> str:
        """The name that reports show, lower case."""

    @property
    def keys(self) -> frozenset[str]:
        """The keys that it knows; others are counted as `unknown_keys`."""

    def recognises(self, record: Mapping[str, Any], /) -> bool:
        """Whether a record is of this format. May look only at which keys there are and at `event_type`."""

    def translate(self, records: Records, output: Output, /) -> Mask:
        """Add the rows of `records`. Returns bool[n]: the records that it made something of, be it a diagnostic."""


@dataclass(frozen=True)
class FormatOptions:
    """What else a format may have, as attributes and methods of these names, and what is taken of one that has not."""

    job_key: str = JOB_NAME
    """The key of a record that names its job."""
    job_of: Callable[[Records], str | Sequence[Any]] | None = None
    """The name of the job of all records, or a name for each; "" where there is none. Goes before `job_key`."""
    recognises_entry: Callable[[Entry], bool] | None = None
    """Whether the payload of an entry is of this format, whatever the payload is; goes before `recognises`. May look
    only at `logName`, at the type of `resource`, and at which labels that has."""
    any_key: Callable[[Records], bool] | None = None
    """Whether these records may have any keys beside `keys`: none of them is counted as unknown then."""
    restores_are_inferred: bool = False
    """See `LogFormat`."""
    other_system: str | None = None
    """See `LogFormat`."""

    @classmethod
    def of(cls, one: Format) -> FormatOptions:
        """Those of a format."""
        found = ((name, getattr(one, name, _MISSING)) for name in cls.__dataclass_fields__)
        return cls(**{name: value for name, value in found if value is not _MISSING})

    def job_names(self, records: Records) -> str | Sequence[Any]:
        """See `job_of`."""
        if self.job_of is not None:
            return self.job_of(records)
        same = records.same(self.job_key)
        return same if isinstance(same, str) and same else [one.get(self.job_key, "") for one in records.records]


def labels_of(entry: Entry) -> Mapping[str, Any]:
    """The labels of the resource of an entry of metrics; none of any other."""
    resource = entry.get("resource")
    is_of_metrics = isinstance(resource, dict) and resource.get("type") == "generic_node"
    return labels_in(resource) if is_of_metrics else {}


class Parsed(Struct, frozen=True):
    """The records of a part of a document, and what in it holds none."""

    records: Sequence[Record]
    lines: I64
    """The number of the line where each record begins."""
    bad: Sequence[tuple[int, str]] = ()
    """Lines that hold no record: number and reason."""
    nulls: bool = True
    """Whether a value of a record may be None."""
    columns: Sequence[Columns] = ()
    """Further records, those of lines that were read as columns."""
    modified_ns: int | None = None
    """When the document was last written to, where its reader does not say it."""
    text: TextPart | None = None
    """What lines of text said, if the document is one of text."""
    devices: DevicePart | None = None
    """What accelerators did, if the document says it."""

    def __len__(self) -> int:
        """How many records and bad lines there are."""
        of_text = 0 if self.text is None else len(self.text.log_lines) + len(self.text.bad) + self.text.noise
        of_text += 0 if self.devices is None else len(self.devices.time)
        return of_text + len(self.records) + len(self.bad) + sum(len(one.rows) for one in self.columns)


NOTHING = Parsed((), np.empty(0, dtype=np.int64))


def without_records(part: TextPart) -> Parsed:
    """A part of a document that holds no records, only what is collected until all sources have been read."""
    return Parsed((), np.empty(0, dtype=np.int64), text=part)


class DocumentReader(Protocol):
    """Reads one document, from its first batch to its last. It may keep state in between."""

    @property
    def by_line(self) -> bool:
        """Whether each line stands for itself, so that any lines of a document are a document."""

    def feed(self, batch: RawBatch, /) -> Parsed:
        """The records that end in the next bytes of the document."""

    def finish(self) -> Parsed:
        """What is left at the end of the document."""

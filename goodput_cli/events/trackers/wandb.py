"""Weights & Biases: the contents of a folder of runs, read without its package (docs/formats.md, Weights & Biases).

A folder `run-DATE_TIME-ID` is one process, and an id is one job in all its folders. The `.wandb` file contains the
logged values. The two logs next to it show when the process started and its activity after the last record.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import orjson
from google.protobuf.message import DecodeError
from msgspec import structs

from goodput_cli.arrays import group_by_key
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.accelerators.samples import TABLE, DevicePart, take
from goodput_cli.events.evidence import UntimedEvidence
from goodput_cli.events.formats.base import ParsedPart, without_records
from goodput_cli.events.text.collector import CollectedSource, TextPart
from goodput_cli.events.text.entries import events_in_line
from goodput_cli.events.text.evidence_lines import EntryObserver, may_contain_evidence
from goodput_cli.events.text.line_timestamps import Timestamp, Zone, read_or_none, timestamp_or_none
from goodput_cli.events.text.lines import LONGEST, LineRules
from goodput_cli.events.text.log_lines import EventType, LogLine, timed
from goodput_cli.events.text.observed_line import Line
from goodput_cli.events.trackers.runs import STEP_KEYS, LoggedTime, ProcessOfRun, Row, TrackedRun, logged_of
from goodput_cli.events.trackers.wandb_file import EXIT, HEAD, HISTORY, ITEM, OUTPUT, RUN, Frames, parse
from goodput_cli.events.values import MAX_NS, MAX_SECONDS, round_to_us
from goodput_cli.sources.base import RawBatch
from goodput_cli.sources.layouts import RunFolder, is_output, wandb_folder
from goodput_cli.vocabulary.when import NS_PER_MINUTE, NS_PER_SECOND

NAME = "wandb"
TIMESTAMP, RUNTIME = "_timestamp", "_runtime"
_KEYS = frozenset({TIMESTAMP, RUNTIME, *STEP_KEYS})
_EVALUATES = re.compile(r"^(?:eval|val|valid|validation|test)(?:[/_. ]|$)|validation", re.IGNORECASE)
_OF_MACHINE = re.compile(r"^system[/.]")
EARLIEST = 1_262_304_000 * NS_PER_SECOND
"""2010: no tracker is older, so an earlier time is invalid."""
_QUARTER = 15 * NS_PER_MINUTE


@dataclass
class RunFile:
    """The contents of a `.wandb` file."""

    about: dict[str, Any] = field(default_factory=dict)
    """`id`, `name`, `host` and `start` (ns UTC) of the first run record."""
    about_line: int = 0
    rows: list[HistoryRow] = field(default_factory=list)
    alive: list[tuple[int, int]] = field(default_factory=list)
    """(record, ns UTC) of other records with a time."""
    printed: list[LogLine] = field(default_factory=list)
    """Log lines of its output, at the times at which they were printed."""
    seen: list[UntimedEvidence] = field(default_factory=list)
    """Observations of failures in its output."""
    exit: dict[str, int] | None = None
    exit_line: int = 0
    torn: bool = False


@dataclass(frozen=True)
class Printout:
    """Observations of failures in `files/output.log`, without times."""

    seen: Sequence[UntimedEvidence]


@dataclass
class SideLog:
    """The first and last time of a log next to a run file."""

    internal: bool
    """True if its times are UTC, False for local times."""
    first: tuple[int, int] | None = None
    """(line, ns)."""
    last: tuple[int, int] | None = None


class RunFileReader:
    """Reader of a `.wandb` file (see `DocumentReader`). The number of a record replaces its line."""

    by_line = False

    @staticmethod
    def begins(name: str, data: bytes) -> bool:
        """Return True if a document of this name that begins like this is a `.wandb` file; `data` may be incomplete."""
        return data.startswith(HEAD) or (name.endswith(".wandb") and HEAD.startswith(data[: len(HEAD)]))

    def __init__(self, rules: LineRules) -> None:
        """rules: for the output of the program."""
        self._printed = _OutputLines(rules)
        self._frames = Frames()
        self._number = 0
        self._file = RunFile()
        self._devices = DevicePart()

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Collect the records; return nothing before the end of the file."""
        for record in self._frames.feed(batch.data):
            self._number += 1
            with suppress(DecodeError):
                self._take(*parse(record, _KEYS))
        devices, self._devices = self._devices, DevicePart()
        return structs.replace(without_records(TextPart()), inputs=((TABLE, devices),))

    def finish(self) -> ParsedPart:
        """Return the contents of the file."""
        self._file.torn = self._frames.cut
        self._file.printed += self._printed.finish(self._file.torn)
        self._file.seen = self._printed.seen()
        return structs.replace(without_records(TextPart(tracked=[self._file])), inputs=((TABLE, self._devices),))

    def _take(self, kind: int, values: dict[str, Any]) -> None:
        file, number, time = self._file, self._number, values.get("time")
        if kind == RUN:
            if not file.about and _is_time(values.get("start", 0)):
                file.about, file.about_line = values, number
        elif kind == EXIT:
            file.exit, file.exit_line = values, number
        elif kind == HISTORY:
            row = row_of(number, values)
            file.rows += [row] if row is not None else []
        elif time is not None and _is_time(time):
            file.alive.append((number, time))
            for name, value in values.get(ITEM, {}).items():
                take(self._devices, number, name, time, value, file.about.get("host", ""))
            if kind == OUTPUT:
                file.printed += self._printed.feed(number, time, values.get("text", ""))


class _OutputLines:
    """Lines of output, which records contain in pieces."""

    def __init__(self, rules: LineRules) -> None:
        self._rules = rules
        self._observer = EntryObserver(rules.causes)
        self._text = ""
        self._number = self._time = 0

    def feed(self, number: int, time: int, text: str) -> Iterator[LogLine]:
        """Yield the log lines of the lines that end in the next piece; a line has the time of its first piece."""
        first, *others = text.split("\n")
        if not self._text:
            self._number, self._time = number, time
        self._text += first[: LONGEST - len(self._text)]
        for other in others:
            yield from self._marks()
            self._text, self._number, self._time = other[:LONGEST], number, time

    def finish(self, torn: bool) -> Iterator[LogLine]:
        """Yield the log lines of an unterminated last line. torn: True if the file was cut off, and the line may be,
        too."""
        if self._text and not torn:
            yield from self._marks()

    def seen(self) -> list[UntimedEvidence]:
        """Return the observations of failures."""
        return self._observer.fresh()

    def _marks(self) -> Iterator[LogLine]:
        line = self._text.rpartition("\r")[2] or self._text
        read, stamp = events_in_line(line, self._rules), Timestamp(self._time, Zone.EXACT, False)
        said = [one for _, one in read]
        worth = self._rules.causes.may_read(line.encode(errors="replace")) and may_contain_evidence(said, bool(said))
        self._observer.take(replace(Line.of(line, self._number), collected=stamp), worth, said)
        for own, one in read:
            yield timed(LogLine(self._number, "", own, one), stamp)


class HistoryRow(NamedTuple):
    """A row of a history."""

    line: int
    """The number of its record or line."""
    time: int
    """ns UTC."""
    base: int | None
    """ns UTC: the start of its process."""
    steps: dict[str, int]
    """By name, the counters in it."""
    trains: bool
    """True for a row of training."""
    logged: Mapping[str, float]
    """Its step breakdown."""


def row_of(line: int, values: Mapping[str, Any]) -> HistoryRow | None:
    """Return a row of a history; None for one without a time."""
    time = ns_of(values.get(TIMESTAMP))
    if time is None or time < EARLIEST:
        return None
    runtime = ns_of(values.get(RUNTIME))
    base = None if runtime is None or runtime > time else time - runtime
    steps = {key: number for key in STEP_KEYS if (number := whole_of(values.get(key))) is not None}
    others = [key for key in values if not key.startswith("_") and key not in STEP_KEYS]
    trains = not others or not all(_EVALUATES.search(key) or _OF_MACHINE.match(key) for key in others)
    return HistoryRow(line, time, base, steps, trains, logged_of(values))


def as_row(row: HistoryRow, source: int) -> Row:
    """Return the row of a history as one of a run. source: its code."""
    return Row(LoggedTime(row.time, source, row.line), row.steps, row.trains, logged=row.logged)


def ns_of(value: Any) -> int | None:
    """Return ns of a number of seconds; None for an invalid or impossible time."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return round_to_us(seconds) if 0 <= seconds < MAX_SECONDS else None


def whole_of(value: Any) -> int | None:
    """Return a whole number that is not negative; None for other values."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if 0 <= number < 1 << 62 and number == int(number) else None


def _is_time(ns: Any) -> bool:
    return isinstance(ns, int) and 0 < ns < MAX_NS


class SideLogReader:
    """Reader of `debug.log` or `debug-internal.log` of a run: the times of its first and its last line."""

    by_line = False

    def __init__(self, internal: bool) -> None:
        self._log = SideLog(internal)

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Collect the times; return nothing before the end of the file."""
        time_of = _time_of_json if self._log.internal else _time_of_text
        for number, line in enumerate(batch.data.split(b"\n"), batch.first_line):
            time = time_of(line)
            if time is not None:
                self._log.first = self._log.first or (number, time)
                self._log.last = (number, time)
        return without_records(TextPart())

    def finish(self) -> ParsedPart:
        """Return the contents of the log."""
        return without_records(TextPart(tracked=[self._log]))


def _time_of_json(line: bytes) -> int | None:
    try:
        written = orjson.loads(line).get("time")
    except (orjson.JSONDecodeError, AttributeError):
        return None
    stamp = read_or_none(written) if isinstance(written, str) else None
    return stamp.ns if stamp is not None and stamp.zone is Zone.EXACT else None


def _time_of_text(line: bytes) -> int | None:
    stamp = timestamp_or_none(line[:64].decode(errors="replace")) if line[:4].isdigit() else None
    return stamp.ns if stamp is not None and stamp.zone is Zone.NAIVE else None


@dataclass
class _Folder:
    """The documents of one run folder, by the codes of their sources."""

    where: RunFolder
    file: tuple[int, RunFile] | None = None
    internal: tuple[int, SideLog] | None = None
    local: tuple[int, SideLog] | None = None
    printout: tuple[int, Printout] | None = None

    @property
    def offset(self) -> int | None:
        """Return ns by which local time is ahead of UTC, if both logs show it."""
        internal, local = self.internal and self.internal[1].first, self.local and self.local[1].first
        if not internal or not local:
            return None
        return round((local[1] - internal[1]) / _QUARTER) * _QUARTER


def _folders(tracked: Mapping[int, Sequence[object]], names: Sequence[str]) -> dict[str, _Folder]:
    """Return the run folders by path; a single run file counts as a folder."""
    folders: dict[str, _Folder] = {}
    for code, parts in tracked.items():
        for part in parts:
            if isinstance(part, RunFile | SideLog | Printout):
                where = wandb_folder(names[code])
                folder = folders.setdefault(where.path or names[code], _Folder(where))
                if isinstance(part, RunFile):
                    folder.file = code, part
                elif isinstance(part, Printout):
                    folder.printout = code, part
                elif part.internal:
                    folder.internal = code, part
                else:
                    folder.local = code, part
    return folders


def runs(
    tracked: Mapping[int, Sequence[object]], names: Sequence[str], local: Callable[[int], int],
    notes: DiagnosticCollector,
) -> list[TrackedRun]:  # fmt: skip
    """Return the runs of all folders. tracked: the contents by source. local: converts a local time to ns UTC."""
    folders = _folders(tracked, names)
    offsets = {offset for folder in folders.values() if (offset := folder.offset) is not None}
    by_id: defaultdict[str, TrackedRun] = defaultdict(lambda: TrackedRun(NAME, ""))
    for folder in folders.values():
        about = folder.file[1].about if folder.file is not None else {}
        job = about.get("id") or folder.where.run_id
        if not job:
            continue
        run = by_id[job]
        run.job, run.name = job, about.get("name") or run.name
        life = _process_of_folder(folder, local, offsets, notes)
        if life is not None:
            run.lives.append(life)
            run.seen += _seen(folder, life)
        elif folder.file is not None:
            message = "a run file without times: its process was killed before the first block of 32 KiB was written"
            notes.add("rows_lost_at_kill", f"{message}; pass the directory of its run", folder.file[0], [1])
    return [run for run in by_id.values() if run.lives]


def _process_of_folder(
    folder: _Folder, local: Callable[[int], int], offsets: Set[int], notes: DiagnosticCollector
) -> ProcessOfRun | None:
    """Return the process of a folder; None if its documents contain none. offsets: the offsets in all folders."""
    life = ProcessOfRun()
    places: list[LoggedTime] = []
    if folder.file is not None:
        code, file = folder.file
        life.rows = [as_row(row, code) for row in file.rows]
        life.alive = [LoggedTime(time, code, line) for line, time in file.alive]
        life.host = file.about.get("host", "")
        life.printed = [(code, log_line) for log_line in file.printed]
        if file.about:
            places.append(LoggedTime(file.about["start"], code, file.about_line))
    logs = [(folder.internal, 0), (folder.local, folder.offset)]
    for log, offset in logs:
        if log is not None and log[1].first and log[1].last and offset is not None:
            spots = [LoggedTime(ns - offset, log[0], line) for line, ns in (log[1].first, log[1].last)]
            places += spots[:1]
            life.alive += spots[1:]
    if not places and folder.file is not None and folder.where.stamp is not None:
        stamp = folder.where.stamp
        begun = stamp - next(iter(offsets)) if len(offsets) == 1 else local(stamp)
        places.append(LoggedTime(begun, folder.file[0], 1))
    if not places and not life.rows and not life.alive:
        return None
    life.begin = min(places, default=None)
    _end(life, folder, notes)
    return life


def without_outputs(sources: Mapping[int, CollectedSource], names: Sequence[str]) -> dict[int, CollectedSource]:
    """Return the sources without the output of a run (`files/output.log`) next to its run file or its logs. Such an
    output is not a log: only its observations of failures count, if its folder has their times."""
    told = {
        wandb_folder(names[code]).path
        for code, one in sources.items()
        if any(isinstance(part, RunFile | SideLog) for part in one.tracked)
    }
    return {
        code: CollectedSource(tracked=[Printout(one.seen)], left_out=one.left_out)
        if is_output(names[code]) and wandb_folder(names[code]).path in told
        else replace(one, seen=[])
        if one.tracked
        else one
        for code, one in sources.items()
    }


def _seen(folder: _Folder, life: ProcessOfRun) -> Iterator[tuple[int, UntimedEvidence]]:
    """Yield the observations of failures in a process' output, each once: the line of `output.log`, which can be
    opened, with the time in the run file or otherwise the end of the process; then those only in the run file."""
    last_row = max((row.at.time for row in life.rows), default=0)
    recorded = group_by_key(
        ((one.row, one.text), replace(one, host=one.host or life.host, ordinary=_continued_line(one, last_row)))
        for one in (folder.file[1].seen if folder.file is not None else ())
    )
    code, printed = (folder.printout[0], folder.printout[1].seen) if folder.printout is not None else (0, ())
    for one in printed:
        same = recorded[one.row, one.text]
        stamp = same[0].stamp if same else Timestamp(life.last, Zone.EXACT, False)
        went_on = same.pop(0).ordinary if same else _continued_line(one, 0)
        own = replace(one, stamp=stamp, before=None, behind=None, late=None)
        yield code, replace(own, host=one.host or life.host, ordinary=went_on)
    if folder.file is not None:
        for left in recorded.values():
            yield from ((folder.file[0], one) for one in left)


def _continued_line(one: UntimedEvidence, last_row: int) -> int | None:
    """Return the line after a root cause at which its process continued: one process printed and logged everything.
    last_row: the time of its last row, ns."""
    logged = one.stamp is not None and one.stamp.ns < last_row
    return one.ordinary or (one.last_line + 1 if one.role == "root" and (logged or not one.ends) else None)


def _end(life: ProcessOfRun, folder: _Folder, notes: DiagnosticCollector) -> None:
    """Set the end of a process from its exit record; without one it was killed, or it is running."""
    if folder.file is None:
        return
    code, file = folder.file
    if file.exit is None:
        if not file.rows or file.torn:
            message = "a run file ends without an exit record, inside a block of 32 KiB: rows of the last"
            notes.add("rows_lost_at_kill", f"{message} seconds or minutes are missing", code, [1])
        return
    life.ended = EventType.CRASHED if file.exit.get("code", 0) else EventType.EXITED
    ends = [LoggedTime(life.last, code, file.exit_line)]
    if file.about:
        ends.append(LoggedTime(file.about["start"] + file.exit.get("runtime", 0) * NS_PER_SECOND, code, file.exit_line))
    life.end = max(ends)

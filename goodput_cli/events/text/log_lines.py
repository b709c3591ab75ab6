"""Log lines, which are recognized lines of text (a step, a save, a start) without time and job; the rules that read
them; and the rules of lines that capabilities read, which are no events.

The text of a line for a capability is kept with the lines that belong to it. The capability reads it when the job and
the time of all lines are known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import repeat
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from goodput_cli.arrays import F64, I64
from goodput_cli.errors import SourceError
from goodput_cli.events.evidence import UntimedEvidence
from goodput_cli.events.inside import PhaseTime
from goodput_cli.events.schema import NONE, SAVE_STATE, Edge, SaveState
from goodput_cli.events.signs import RecoveryEventText
from goodput_cli.events.text.date_positions import depends_on_digits, has_digits, masked
from goodput_cli.events.text.line_timestamps import Timestamp, TimestampError, Zone
from goodput_cli.events.values import round_to_us


class EventType(StrEnum):
    """Meaning of a line, in the words of mappings (docs/formats.md)."""

    STEP = "step"
    """The number of completed steps."""
    STEP_START = "step_start"
    STEP_FINISHED = "step_finished"
    """A completed step in a log that has only saves: no record of step times."""
    START = "start"
    FINISHED = "finished"
    STOPPED = "stopped"
    EXITED = "exited"
    """The program exited: a clean end, unless steps are repeated."""
    TERMINATED = "terminated"
    PREEMPTED = "preempted"
    """Terminated because another job needs the machines."""
    CRASHED = "crashed"
    SCHEDULED = "scheduled"
    SAVE = "save"
    SAVED = "saved"
    RESTORE = "restore"
    RESUME = "resume"
    EVAL = "eval"
    INIT = "init"
    PREP = "prep"
    DATA = "data"
    CUSTOM = "custom"
    REINIT = "reinit"
    ROLLBACK = "rollback"
    """The process itself returns to an earlier step: not an event of the job."""
    STAGE = "stage"
    """The same process begins the next stage of its training, such as a fold: not an event of the job."""
    PHASE = "phase"
    """Time inside steps, work or sizes: not an event of the job."""
    SIGN = "sign"
    """Only a moment of a recovery: not an event of the job."""
    ALIVE = "alive"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Running:
    """Context of a step or time that depends on other lines (`mappings.running`)."""

    epoch: int | None = None
    """From 0; None: not logged."""
    of: int | None = None
    """Steps per epoch, if the step restarts with each epoch."""
    elapsed: int | None = None
    """Time (ns) since a process or a progress bar began."""
    begins: bool = False
    """True if it is the time of a process, so that one begins where it is 0."""
    last: int | None = None
    """Time (ns) of the last step alone, of all steps since the record before."""
    whole: int | None = None
    """Time (ns) of all steps since the record before."""
    cut: bool = False
    """True if the log begins in the middle of that process: the time of the record's own steps is unknown."""


@dataclass(slots=True)
class ParsedEvent:
    """Event that a rule read from a line."""

    format: str
    type: EventType
    step: int | None = None
    """Number of completed steps, or (`STEP_START`) the step that begins."""
    step_time: int | None = None
    """Mean time (ns) per step since the record before."""
    took: int | None = None
    """Time (ns) of the whole; it ends with the line, or begins with it (`begins`)."""
    begins: bool = False
    edge: Edge = Edge.POINT
    at: Timestamp | None = None
    """Time of the event, if it differs from that of the line."""
    earlier: bool = False
    """True if `at` is before the line was printed, so a collector's time does not apply to it."""
    name: str = ""
    """Kind of line within its format, if the format needs it."""
    label: str = ""
    rank: str = ""
    """Rank or node that wrote it, if the prefixes do not name it."""
    process: str = ""
    """Process that the line shows to be alive, if known."""
    job: str = ""
    once: bool = False
    """True for a start that counts only as the first line of its format since the last step or end."""
    running: Running | None = None
    common: bool = False
    """True if other programs also print such lines: it counts only in a folder with an unambiguous line of its
    format."""
    counted: bool = True
    """True if a record without a timestamp takes the time of its steps (a cursor)."""
    usual: bool = False
    """True if its steps took the usual time although the record before is much earlier."""
    since_line: bool = False
    """True for a save or an evaluation that took no longer than the time since the line before."""
    since_step: bool = False
    """True for a save or an evaluation that began when the step of the record before it was completed."""
    since_record: bool = False
    """True if `took` is all the time since the record before, except evaluations, whatever lines are between them."""
    trained: int | None = None
    """Time (ns) of all its steps, if known through `usual`."""
    total: int | None = None
    """Total number of steps of the training, if the line of a completed step contains it."""
    epochs: int | None = None
    """Total number of epochs of the training, if the line contains it."""
    detail: tuple[tuple[str, Any], ...] = ()
    metrics: dict[str, float] = field(default_factory=dict)
    phases: tuple[PhaseTime, ...] = ()
    """Phases inside a step."""
    bad_phases: tuple[str, ...] = ()
    """Reasons why further phases are invalid."""
    signs: tuple[RecoveryEventText, ...] = ()
    """Moments of a recovery in the line, whatever its type."""


def save_detail(state: SaveState | None) -> tuple[tuple[str, Any], ...]:
    """Return the detail of a save with a state."""
    return () if state is None else ((SAVE_STATE, state.value),)


_VALUES = attrgetter(*ParsedEvent.__dataclass_fields__)


def changed(event: ParsedEvent, **values: Any) -> ParsedEvent:
    """Return a copy of an event with other values; five times faster than `dataclasses.replace`."""
    copy = ParsedEvent(*_VALUES(event))
    for name, value in values.items():
        setattr(copy, name, value)
    return copy


OTHER_RUN = "other run"
"""The name of an end that no line states, but steps that begin again as those of another run."""
ENDS = frozenset(
    {
        EventType.TERMINATED,
        EventType.PREEMPTED,
        EventType.CRASHED,
        EventType.FINISHED,
        EventType.STOPPED,
        EventType.EXITED,
    }
)
"""Events that end an attempt."""


NO_STEP_YET = "no step yet"
"""Name of a start that is a record of 0 steps; ignored if another line contains the process start."""


@dataclass(slots=True)
class LogLine:
    """A line with an event, or, without one, a line that only has a timestamp."""

    line: int
    stream: str
    """Rank or process in the prefix of the line; empty if none."""
    stamp: Timestamp | None
    event: ParsedEvent | None = None
    time: int = 0
    """ns since 1970 UTC; set when the time of the line is known."""
    end: int = 0
    entry: int = -1
    """Code of its Cloud Logging entry; -1 if none."""
    odd: bool = False
    """True if the time was not written but counted from other lines."""
    borrowed: bool = False
    """True for a copy from another file, which only gives context to the lines around it."""
    local: Timestamp | None = None
    """Timestamp of the line itself if `stamp` is a collector's: their difference is the zone offset."""
    words: int = 0
    """For a line with only a timestamp: a number shared by lines with the same words, digits aside; 0 if unknown."""
    inner: Stretch | None = None
    """Records of steps like this one that follow it, up to the next log line."""


class Stamps(NamedTuple):
    """Timestamps of records, as written."""

    ns: I64
    zone: Zone
    whole: bool

    def each(self) -> Iterator[Timestamp]:
        """Yield each timestamp."""
        return (Timestamp(ns, self.zone, self.whole) for ns in self.ns.tolist())


@dataclass(frozen=True, eq=False)
class Stretch:
    """Records of steps in a row, as columns: of one format and stream, with timestamps that do not fall, or without
    any, and steps that rise by one stride."""

    event: ParsedEvent
    """Event of each record, except step, time and measurements."""
    stream: str
    stamps: Stamps | None
    """None if the records have no timestamps; then each begins at the end of the one before."""
    local: Stamps | None
    """Timestamps of the lines themselves if `stamps` are a collector's."""
    line: I64
    first: int
    """The step of the first record."""
    stride: int
    step_time: I64 | None
    """ns; NONE where a line contains none."""
    metrics: Mapping[str, F64]
    """NaN for none."""
    time: I64
    """ns since 1970 UTC; 0 until the records are placed."""
    next_line: int
    """Line of the record after the last one, which is a log line."""
    next_ns: int
    """Its timestamp."""
    next_time: int = 0
    """Its time; without timestamps, that of the last record."""

    def __len__(self) -> int:
        return len(self.line)

    @property
    def last(self) -> int:
        """Return the step of the last record."""
        return self.first + self.stride * (len(self) - 1)

    @property
    def steps(self) -> I64:
        """Return the step of each record."""
        return np.arange(self.first, self.last + 1, self.stride, dtype=np.int64)

    def begins(self, since: int) -> I64:
        """Return the times (ns) of the records: their begins if they have no timestamps. since: end of the record
        before the first one."""
        return self.time if self.stamps is not None else np.append(since, self.time[:-1])

    def records(self, since: int) -> Iterator[LogLine]:
        """Yield the records as log lines. since: end of the record before the first one (ns)."""
        each = [None] * len(self) if self.step_time is None else self.step_time.tolist()
        each = [None if one == NONE else one for one in each]
        measured = {name: values.tolist() for name, values in self.metrics.items()}
        stamps, local = (repeat(None, len(self)) if one is None else one.each() for one in (self.stamps, self.local))
        times = (self.begins(since).tolist(), self.time.tolist())
        is_odd = self.stamps is None and bool(self.next_time)
        columns = zip(self.line.tolist(), stamps, local, self.steps.tolist(), each, *times, strict=True)
        for at, (line, stamp, own, step, step_time, begin, end) in enumerate(columns):
            metrics = {name: values[at] for name, values in measured.items() if not math.isnan(values[at])}
            event = changed(self.event, step=step, step_time=step_time, metrics=metrics)
            yield LogLine(line, self.stream, stamp, event, begin, end, odd=is_odd, local=own)


def timed(log_line: LogLine, collected: Timestamp | None) -> LogLine:
    """Return a log line with the exact time of its collector; unchanged for None. Events in the past, or with an
    explicit zone, keep their time."""
    if collected is None:
        return log_line
    log_line.stamp, log_line.local = collected, log_line.stamp
    if log_line.event is not None and log_line.event.at is not None and not log_line.event.earlier:
        log_line.event.at = log_line.event.at if log_line.event.at.zone is Zone.EXACT else None
    return log_line


MAX_STEP = 1 << 53
LONGEST_SECONDS = 1e9
"""Durations are shorter."""
_STEP_DIGITS = len(str(MAX_STEP))


class Pattern(Protocol):
    """A pattern compiled by `re` or `re2`."""

    @property
    def pattern(self) -> str:
        """Return its text."""

    @property
    def flags(self) -> int:
        """Return its flags in `re`; 0 for RE2."""

    def search(self, text: str, /) -> Any:
        """Return the first match, or None."""


class BadValueError(ValueError):
    """Raised for a line of a rule with an impossible value; args: a sentence."""


@dataclass(frozen=True, eq=False)
class LineRule:
    """Reads one kind of line. Lines without the anchor are skipped."""

    format: str
    anchor: str
    pattern: Pattern
    read: Callable[[Any], ParsedEvent | None]
    """Returns the event of a match; None to ignore the line. Raises BadValueError."""
    name: str = ""
    also: bool = False
    """True if other rules may read the same line."""
    split: bool = True
    """True if it also reads text that a carriage return overwrote."""
    columns: Callable[[Any], Any] | None = None
    """Reads `FieldColumns` as `StepColumns` (step_columns.py), None for others; None if lines are read one by one."""

    @cached_property
    def depends_on_digits(self) -> bool:
        """Return True if its matches, or the positions of its fields, may depend on the values of digits."""
        return has_digits(self.anchor) or depends_on_digits(self.pattern.pattern, self.pattern.flags)

    @cached_property
    def masked_anchor(self) -> str:
        """Return the anchor with each digit replaced by 0."""
        return masked(self.anchor)


class AnyRule(Protocol):
    """A rule for lines or for records."""

    @property
    def also(self) -> bool:
        """Return True if other rules may read the same input."""

    @property
    def read(self) -> Callable[[Any], ParsedEvent | None]:
        """Return the reader of a match: the event, or None to ignore it. Raises BadValueError, TimestampError."""


OneRule = TypeVar("OneRule", bound=AnyRule)
RuleOfLines = TypeVar("RuleOfLines", bound=LineRule)


class LineReading(NamedTuple, Generic[OneRule]):
    """Result of a rule that matched a line or record."""

    rule: OneRule
    event: ParsedEvent | None = None
    """None: ignored, or its values are wrong."""
    refused: ValueError | None = None
    """Reason why its values are wrong."""


def readings(found: Iterable[tuple[OneRule, Any]]) -> Iterator[LineReading[OneRule]]:
    """Yield the results of rules in order, up to the first one that refuses its values or excludes others (not `also`).

    found: rules with their matches; a match is computed only when it is needed.
    """
    for rule, match in found:
        try:
            yield LineReading(rule, rule.read(match))
        except (BadValueError, TimestampError) as error:
            yield LineReading(rule, None, error)
            return
        if not rule.also:
            return


def asked_of(rules: Iterable[RuleOfLines], text: str, overwritten: bool = False) -> Iterator[RuleOfLines]:
    """Return the rules whose anchor is in a line. overwritten: True if a carriage return replaced this text."""
    return (rule for rule in rules if rule.anchor in text and (rule.split or not overwritten))


def line_readings(
    rules: Iterable[RuleOfLines], text: str, overwritten: bool = False
) -> Iterator[LineReading[RuleOfLines]]:
    """Yield the results of rules for a line."""
    matches = ((rule, rule.pattern.search(text)) for rule in asked_of(rules, text, overwritten))
    return readings((rule, match) for rule, match in matches if match is not None)


def whole(text: str) -> int:
    """Return a step number. Raises BadValueError."""
    if len(text) < _STEP_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    plain = text.replace(",", "")
    digits = plain.lstrip("0") or plain[:1]  # Python refuses to read thousands of digits.
    if not (plain.isascii() and plain.isdigit()) or len(digits) > _STEP_DIGITS or int(digits) > MAX_STEP:
        raise BadValueError(f"{text[:40]} is not a step number")
    return int(digits)


def duration(text: str, unit: float = 1.0) -> int:
    """Convert seconds (times `unit`) to ns. Raises BadValueError."""
    try:
        seconds = float(text.replace(",", "")) * unit
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < LONGEST_SECONDS:
        raise BadValueError(f"{text[:40]} is not a duration")
    return round_to_us(seconds)


def pattern(text: str) -> re.Pattern[str]:
    """Compile a simple, trusted pattern."""
    return re.compile(text, re.ASCII)


def linear() -> Any:
    """Return the regular expression module with linear run time, `re2`."""
    try:
        import re2
    except ImportError as error:
        raise SourceError("logs of plain text are read with google-re2; `pip install google-re2`") from error
    return re2


_MOST_STATES = 1 << 26
"""Memory (bytes) for the automaton of many literals; with less, RE2 gives it up and each line is slower."""


def any_of(literals: Iterable[str], *others: str) -> Any:
    """Compile an expression that finds any of the literals in bytes, the longest first, or any of the other
    expressions."""
    return _compile_any(frozenset(literals), others)


@lru_cache(maxsize=64)  # Each log needs the shipped rules, which take 4 ms to compile.
def _compile_any(literals: frozenset[str], others: tuple[str, ...]) -> Any:
    re2 = linear()
    options = re2.Options()
    options.max_mem = _MOST_STATES
    ordered = map(re.escape, sorted(literals, key=lambda one: (-len(one), one)))
    return re2.compile("|".join((*ordered, *others)).encode(), options)


def event_of(log_line: LogLine) -> ParsedEvent:
    """Return the event of a log line that has one."""
    assert log_line.event is not None
    return log_line.event


def formats_of(log_lines: Sequence[LogLine]) -> frozenset[str]:
    """Return the formats of log lines."""
    return frozenset(one.format for one in (log_line.event for log_line in log_lines) if one is not None)


BEYOND_ALL = 2**62
"""Value larger than any time or step."""


@dataclass(frozen=True)
class SourceText:
    """The lines of one source with times, for the passes that find its events."""

    lines: Sequence[LogLine]
    """All lines, with and without an event."""
    seen: Sequence[UntimedEvidence] = ()
    """Evidence of failures."""

    @cached_property
    def shown(self) -> list[LogLine]:
        """Return the lines with nothing but a time."""
        return [one for one in self.lines if one.event is None]

    @cached_property
    def shown_times(self) -> list[tuple[int, int]]:
        """Return the line and time (ns) of the lines with nothing but a time, in order of lines."""
        return sorted((one.line, one.time) for one in self.shown if one.stamp is not None)


@dataclass(frozen=True, kw_only=True, eq=False)
class CollectedRule:
    """Rule for lines that a capability reads."""

    name: str
    """Name of the rule, unique among all capabilities."""
    anchors: tuple[str, ...]
    """Literals, one of which is in each line."""
    begins: Pattern
    """Pattern of a line without prefixes of launchers and collectors."""
    goes_on: Pattern | None = None
    """Pattern of the next lines of the same process that belong to it; None: it is alone."""
    most: int = 0
    """Maximum number of these lines."""


@dataclass(slots=True)
class CollectedLine:
    """A line that a capability reads, before its job and time are known."""

    rule: str
    number: int
    text: str
    """Text without prefixes of launchers and collectors."""
    prefix: str
    """These prefixes."""
    stream: str
    stamp: Timestamp | None
    job: str = ""
    """Job that a collector's entry names."""
    more: list[str] = field(default_factory=list)
    """The lines that belong to it."""


def literals_of(rules: Iterable[CollectedRule]) -> set[str]:
    """Return the literals of some rules."""
    return {anchor for rule in rules for anchor in rule.anchors}

"""Log lines: one recognised line of text each (a step, a save, a start), before its time and job are known; and the
rules that make them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from goodput_cli.errors import SourceError
from goodput_cli.events.inside import PhaseTime
from goodput_cli.events.schema import SAVE_STATE, Edge, SaveState
from goodput_cli.events.signs import RecoveryEventText
from goodput_cli.events.text.digit_values import depends_on_digits
from goodput_cli.events.text.stamps import Stamp, StampError, Zone
from goodput_cli.events.values import round_to_us


class EventType(StrEnum):
    """What a line says, in the words of mappings (docs/formats.md)."""

    STEP = "step"
    """So many steps are done."""
    STEP_START = "step_start"
    STEP_FINISHED = "step_finished"
    """A step is finished, of a log that has saves only: no record of step times."""
    START = "start"
    FINISHED = "finished"
    STOPPED = "stopped"
    EXITED = "exited"
    """The program left: a clean end, unless steps are redone."""
    TERMINATED = "terminated"
    PREEMPTED = "preempted"
    """Terminated, because somebody else needs the machines."""
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
    """The process goes back to an earlier step itself: no event of the job."""
    PHASE = "phase"
    """What a line says of the time inside steps, of work or of sizes: no event of the job."""
    SIGN = "sign"
    """A moment of a recovery, and nothing else: no event of the job."""
    ALIVE = "alive"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Running:
    """What a step or a time is counted within, where other lines have to be known to say it (`mappings.running`)."""

    epoch: int | None = None
    """From 0; None: the line does not say."""
    of: int | None = None
    """Steps of an epoch, where the step begins anew with each."""
    elapsed: int | None = None
    """ns since a process or a progress bar began."""
    begins: bool = False
    """Whether that was a process, so that one begins where it is 0."""
    last: int | None = None
    """ns of the last step alone, of all that there were since the record before."""
    whole: int | None = None
    """ns of all steps since the record before."""
    cut: bool = False
    """Whether the log begins in the middle of that process: the record does not show how long its own steps took."""


@dataclass(slots=True)
class ParsedEvent:
    """What a rule made of a line."""

    format: str
    type: EventType
    step: int | None = None
    """Of a step: how many are done by then, or (`STEP_START`) the one that begins."""
    step_time: int | None = None
    """ns of one step, the mean since the record before."""
    took: int | None = None
    """ns that the whole took; it ends with the line, or begins (`begins`)."""
    begins: bool = False
    edge: Edge = Edge.POINT
    at: Stamp | None = None
    """When it happened, where the line says so in words of its own."""
    earlier: bool = False
    """Whether `at` is before the line was printed, so that the time of a collector says nothing about it."""
    name: str = ""
    """Which line of its format it is, where the format has to know."""
    label: str = ""
    rank: str = ""
    """Who wrote it beyond what prefixes say: a rank or a node."""
    process: str = ""
    """Which process shows that it lives, where that is known."""
    job: str = ""
    once: bool = False
    """A start that counts only as the first line of its format since the last step or end."""
    running: Running | None = None
    common: bool = False
    """Whether other programs print such a line too: it counts only in a folder with a line of its format that they do
    not."""
    counted: bool = True
    """Whether a record without a stamp takes the time of its steps (a cursor)."""
    usual: bool = False
    """Whether its steps took what steps mostly take, where far more lies between it and the record before."""
    trained: int | None = None
    """ns that all its steps took, where `usual` says how long that is."""
    total: int | None = None
    """Of a step that is done: how many all of training is to take, where its line says so."""
    detail: tuple[tuple[str, Any], ...] = ()
    metrics: dict[str, float] = field(default_factory=dict)
    phases: tuple[PhaseTime, ...] = ()
    """Of a step: what its line says of the time inside it."""
    bad_phases: tuple[str, ...] = ()
    """Why further ones are none."""
    signs: tuple[RecoveryEventText, ...] = ()
    """The moments of a recovery that the line names, whatever else it is."""


def save_detail(state: SaveState | None) -> tuple[tuple[str, Any], ...]:
    """Return the detail of a save whose line names a state."""
    return () if state is None else ((SAVE_STATE, state.value),)


_VALUES = attrgetter(*ParsedEvent.__dataclass_fields__)


def changed(event: ParsedEvent, **values: Any) -> ParsedEvent:
    """Return a copy of an event with other values, in a fifth of the time of `dataclasses.replace`."""
    copy = ParsedEvent(*_VALUES(event))
    for name, value in values.items():
        setattr(copy, name, value)
    return copy


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
"""What ends a life of the job."""


NO_STEP_YET = "no step yet"
"""The name of a start that is a record of 0 steps: it starts nothing where a line says that its process started."""


@dataclass(slots=True)
class LogLine:
    """A line that says something, or, without `said`, one that shows what time it is."""

    line: int
    stream: str
    """The rank or process whose prefix the line has; "" for none."""
    stamp: Stamp | None
    event: ParsedEvent | None = None
    time: int = 0
    """ns since 1970 UTC; set when the log line is placed."""
    end: int = 0
    entry: int = -1
    """The code of the Cloud Logging entry that says it; -1: none does."""
    odd: bool = False
    """Whether the time was not written but counted from other lines."""
    borrowed: bool = False
    """Whether it stands in another file, and here only to say what the lines around it are about."""
    local: Stamp | None = None
    """The line's own time, where `stamp` is that of a collector: their difference is the offset of a zone."""
    words: int = 0
    """Of a line that only shows what time it is: a number that lines with the same words have, digits aside; 0: not
    known."""


def timed(log_line: LogLine, collected: Stamp | None) -> LogLine:
    """A log line with the time of the collector that took its line (None: none did), which is exact and counts for it.
    What the line says to have happened earlier, or in a zone that it names, keeps its own time."""
    if collected is None:
        return log_line
    log_line.stamp, log_line.local = collected, log_line.stamp
    if log_line.event is not None and log_line.event.at is not None and not log_line.event.earlier:
        log_line.event.at = log_line.event.at if log_line.event.at.zone is Zone.EXACT else None
    return log_line


MAX_STEP = 1 << 53
_STEP_DIGITS = len(str(MAX_STEP))


class Pattern(Protocol):
    """What `re` and `re2` compile."""

    @property
    def pattern(self) -> str:
        """Its text."""

    @property
    def flags(self) -> int:
        """Those that `re` compiled it with; 0 for RE2."""

    def search(self, text: str, /) -> Any:
        """The first match, or None."""


class BadValueError(ValueError):
    """A line of a rule with a value that cannot be; args: a sentence."""


@dataclass(frozen=True, eq=False)
class LineRule:
    """Reads one kind of line. Lines without the anchor are never looked at."""

    format: str
    anchor: str
    pattern: Pattern
    read: Callable[[Any], ParsedEvent | None]
    """What a match says; None: nothing, though the line is known. Raises BadValueError."""
    name: str = ""
    also: bool = False
    """Whether further rules may read the same line."""
    split: bool = True
    """Whether it reads what a carriage return overwrote too."""

    @cached_property
    def depends_on_digits(self) -> bool:
        """Return True if which lines it reads, or where its fields are, may depend on the values of digits."""
        return depends_on_digits(self.pattern.pattern, self.pattern.flags)


class AnyRule(Protocol):
    """A rule for lines, or for records."""

    @property
    def also(self) -> bool:
        """Whether further rules may read the same."""

    @property
    def read(self) -> Callable[[Any], ParsedEvent | None]:
        """What is said by what the rule found; None: nothing, though it is known. Raises BadValueError, StampError."""


OneRule = TypeVar("OneRule", bound=AnyRule)
RuleOfLines = TypeVar("RuleOfLines", bound=LineRule)


class Reading(NamedTuple, Generic[OneRule]):
    """What a rule made of a line or record that it knows."""

    rule: OneRule
    event: ParsedEvent | None = None
    """None: nothing, or its values are wrong."""
    refused: ValueError | None = None
    """Why its values are wrong."""


def readings(found: Iterable[tuple[OneRule, Any]]) -> Iterator[Reading[OneRule]]:
    """What rules say of a line or record, in the order in which they are tried: the first that knows it is the last
    that is asked, unless it lets others read the same (`also`); so is one that refuses it. found: the rules that know
    it, each with what it found there, looked for only when it is the rule's turn."""
    for rule, match in found:
        try:
            yield Reading(rule, rule.read(match))
        except (BadValueError, StampError) as error:
            yield Reading(rule, None, error)
            return
        if not rule.also:
            return


def asked_of(rules: Iterable[RuleOfLines], text: str, overwritten: bool = False) -> Iterator[RuleOfLines]:
    """The rules that may know a line: their anchor stands in it. overwritten: whether a carriage return let something
    else stand in its place."""
    return (rule for rule in rules if rule.anchor in text and (rule.split or not overwritten))


def line_readings(rules: Iterable[RuleOfLines], text: str, overwritten: bool = False) -> Iterator[Reading[RuleOfLines]]:
    """What rules say of a line."""
    matches = ((rule, rule.pattern.search(text)) for rule in asked_of(rules, text, overwritten))
    return readings((rule, match) for rule, match in matches if match is not None)


def whole(text: str) -> int:
    """A step. Raises BadValueError."""
    if len(text) < _STEP_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    plain = text.replace(",", "")
    digits = plain.lstrip("0") or plain[:1]  # Python refuses to read thousands of digits
    if not (plain.isascii() and plain.isdigit()) or len(digits) > _STEP_DIGITS or int(digits) > MAX_STEP:
        raise BadValueError(f"{text[:40]} is not a step number")
    return int(digits)


def duration(text: str, unit: float = 1.0) -> int:
    """Seconds (times `unit`) -> ns. Raises BadValueError."""
    try:
        seconds = float(text.replace(",", "")) * unit
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < 1e9:
        raise BadValueError(f"{text[:40]} is not a duration")
    return round_to_us(seconds)


def pattern(text: str) -> re.Pattern[str]:
    """A pattern of ours: plain, read once."""
    return re.compile(text, re.ASCII)


def linear() -> Any:
    """The regular expressions whose time grows with the text only."""
    try:
        import re2
    except ImportError as error:
        raise SourceError("logs of plain text are read with google-re2; `pip install google-re2`") from error
    return re2


_MOST_STATES = 1 << 26
"""Bytes that the automaton of very many literals may take: with fewer it is given up, and each line costs more."""


def any_of(literals: Iterable[str], *others: str) -> Any:
    """Compile an expression that finds any of some literals in bytes, the longest first, or other expressions."""
    return _compile_any(frozenset(literals), others)


@lru_cache(maxsize=64)  # the shipped rules need the same ones for every log, and they take 4 ms to make
def _compile_any(literals: frozenset[str], others: tuple[str, ...]) -> Any:
    re2 = linear()
    options = re2.Options()
    options.max_mem = _MOST_STATES
    ordered = map(re.escape, sorted(literals, key=lambda one: (-len(one), one)))
    return re2.compile("|".join((*ordered, *others)).encode(), options)

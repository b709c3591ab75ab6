"""Count steps on across the numbered stages of one training, such as folds, in each of which they begin again
(docs/formats.md, Text)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from goodput_cli.events.text.log_lines import MAX_STEP, EventType, LineRule, LogLine, ParsedEvent, pattern, whole
from goodput_cli.events.text.programs.progress_bars import NAME as BARS

NAME = "stages"
_WORDS = ("fold", "stage", "phase", "trial")
_ANCHORS = tuple(form for word in _WORDS for form in (word, word.capitalize(), word.upper()))
_LINE = pattern(
    rf"(?<![A-Za-z\d_/.-])(?P<word>{'|'.join(_ANCHORS)})(?:[\s#:\[(-]|[Nn]o\.?){{1,6}}(?P<stage>\d{{1,9}})"
    r"(?:\s{0,3}(?:/|of|out of)\s{0,3}\d{1,9})?(?:\s{1,3}(?:start(?:s|ed|ing)?|begins?|training))?\W{0,80}$"
)
"""A line that ends with the number of a stage: `Fold 2/5`, `===== Training fold: 3 =====`."""
_RESUMED = (EventType.RESUME, EventType.RESTORE)


def _read_stage(found: re.Match[str]) -> ParsedEvent:
    return ParsedEvent(NAME, EventType.STAGE, whole(found["stage"]), name=found["word"].lower())


RULES = tuple(LineRule(NAME, anchor, _LINE, _read_stage, "stage") for anchor in _ANCHORS)


def number_of_stage(text: str) -> int | None:
    """Return the number of the stage of training that a line announces; None for other lines."""
    found = _LINE.search(text)
    return None if found is None else whole(found["stage"])


def without_stages_alone(log_lines: list[LogLine]) -> list[LogLine]:
    """Return the log lines of one source without lines about stages if no others contain an event."""
    types = {one.event.type for one in log_lines if one.event is not None}
    return list(_clocks_of(log_lines)) if types == {EventType.STAGE} else log_lines


def _clocks_of(log_lines: Sequence[LogLine], word: str | None = None) -> Iterator[LogLine]:
    """Yield the log lines, with those about stages reduced to their timestamps. word: of the stages that stay."""
    for log_line in log_lines:
        event = log_line.event
        if event is None or event.type is not EventType.STAGE or event.name == word:
            yield log_line
        elif log_line.stamp is not None:
            yield replace(log_line, event=None)


@dataclass
class _StageWriter:
    """State of the records of one format and stream."""

    stage: int | None = None
    """The stage of the last record."""
    bases: dict[int | None, int] = field(default_factory=dict)
    """Number of steps before each stage."""
    step: int | None = None
    """Of the last record, within its stage."""

    @property
    def base(self) -> int:
        """Return the number of steps before the stage."""
        return self.bases.get(self.stage, 0)

    def enters(self, stage: int | None, step: int, begin: int) -> bool:
        """Return True if a step is in the next stage, and begins to count again there. stage: announced last. begin:
        steps before its epoch."""
        before, base, last = self.stage, self.base, self.step
        if stage == before or last is None:
            self.stage = stage
            return False
        self.stage = stage
        if step > last:  # The stages of the next epoch.
            self.bases = {stage: base}
            return False
        number = stage or 0
        ends_first = before is None and number <= 1  # The line reports the end of the first stage.
        is_next = stage not in self.bases and (ends_first or (before is not None and number > before))
        self.bases.setdefault(stage, min(max(base + last - begin, 0), MAX_STEP) if is_next else 0)
        return is_next


def with_stages(log_lines: list[LogLine]) -> list[LogLine]:
    """Return the log lines of one source, in order, with steps that count on where a stage with a higher number than
    before begins. A new process would not know the number: the same one goes on, and no step is lost. A stage whose
    number was announced before begins with its first step again. The first stage begins the process."""
    numbers: dict[str, set[int | None]] = {}
    for one in log_lines:
        if one.event is not None and one.event.type is EventType.STAGE:
            numbers.setdefault(one.event.name, set()).add(one.event.step)
    if not numbers:
        return log_lines
    outer = next((word for word, own in numbers.items() if len(own) > 1), None)
    log_lines = list(_clocks_of(log_lines, outer))  # Settings contain such numbers, too, and folds have phases.
    if outer is None:
        return log_lines
    counter = _StageCounter()
    for log_line in log_lines:
        counter.add(log_line)
    counted_on = {key for key, writer in counter.writers.items() if any(writer.bases.values())}
    return [_without_total(one) if _key(one) in counted_on else one for one in counter.found]


class _StageCounter:
    """Counts the steps of one source on."""

    def __init__(self) -> None:
        self.found: list[LogLine] = []
        self.writers: dict[tuple[str, str], _StageWriter] = {}
        self._stages: dict[str, int] = {}
        """The last announced stage of each stream."""
        self._first: LogLine | None = None
        """The line that announces the first stage, until a process is known to have begun."""
        self._drawn: dict[str, int] = {}
        """Index of the start of a bar that no line states, by stream."""

    def add(self, log_line: LogLine) -> None:
        """Add the next line."""
        event, stream = log_line.event, log_line.stream
        if event is None:
            self.found.append(log_line)
            return
        if event.type is EventType.STAGE:
            self._announce(log_line, event.step or 0)
            return
        writer = self.writers.setdefault(_key(log_line), _StageWriter())
        if event.type is EventType.START:
            self._first = None
            if event.format == BARS and not event.name:
                self._drawn[stream] = len(self.found)
        elif event.step is not None and event.type in (EventType.STEP, *_RESUMED):
            self._count(log_line, event.step, writer)
        if event.step is not None and writer.base:
            log_line = replace(log_line, event=replace(event, step=event.step + writer.base))
        self.found.append(log_line)

    def _announce(self, log_line: LogLine, stage: int) -> None:
        if not self._stages and not self.writers and stage <= 1:
            self._first = log_line
        self._stages[log_line.stream] = stage
        self.found += _clocks_of([log_line])

    def _count(self, log_line: LogLine, step: int, writer: _StageWriter) -> None:
        """Set the steps before the stage of a record or a resume."""
        stream, is_record = log_line.stream, log_line.event is not None and log_line.event.type is EventType.STEP
        if self._first is not None and log_line.event is not None:
            start = ParsedEvent(log_line.event.format, EventType.START)
            self.found.append(replace(self._first, stream=stream, event=start))
            self._first = None
        is_next = writer.enters(self._stages.get(stream, self._stages.get("")), step, _begin_of_epoch(log_line))
        drawn = self._drawn.pop(stream, None)
        if is_next and drawn is not None:
            self.found[drawn] = replace(self.found[drawn], event=ParsedEvent(BARS, EventType.ALIVE))
        writer.step = step if is_record else writer.step


def _begin_of_epoch(log_line: LogLine) -> int:
    """Return the number of steps before the epoch of a record that counts within it."""
    running = None if log_line.event is None else log_line.event.running
    return 0 if running is None else (running.epoch or 0) * (running.of or 0)


def _key(log_line: LogLine) -> tuple[str, str]:
    return ("" if log_line.event is None else log_line.event.format, log_line.stream)


def _without_total(log_line: LogLine) -> LogLine:
    """Return a log line without the totals of a stage."""
    event = log_line.event
    if event is None or (event.total is None and event.epochs is None):
        return log_line
    return replace(log_line, event=replace(event, total=None, epochs=None))

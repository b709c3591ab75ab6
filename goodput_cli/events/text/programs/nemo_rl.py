"""Read stdout of NeMo-RL drivers: a heading per step, followed by the times of the step and its parts, without
timestamps.

If generation overlaps training, `exposed_generation` is the time that the trainer waits for samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from goodput_cli.events.inside import PhaseName, PhaseTime
from goodput_cli.events.text.log_lines import (
    EventType,
    LineRule,
    LogLine,
    ParsedEvent,
    duration,
    event_of,
    pattern,
    whole,
)

NAME = "nemo-rl"
_PHASES = {
    "data_processing": "data",
    "exposed_generation": "wait",
    "generation": "generate",
    "reward_calculation": "reward",
    "policy_and_reference_logprobs": "train",
    "logprob_inference_prep": "train",
    "advantage_calculation": "train",
    "value_inference": "train",
    "value_training": "train",
    "training_prep": "train",
    "policy_training": "train",
    "weight_sync": "sync",
    "prepare_for_generation/total": "sync",
    "checkpointing": "save",
}
"""Parts of a step that are not contained in others."""
_SAVE = "checkpointing"


def _heading(found: Any) -> ParsedEvent:
    detail = (("of", whole(found["of"])),)
    return ParsedEvent(NAME, EventType.ALIVE, whole(found["number"]), name=found["what"].lower(), detail=detail)


def _part(found: Any) -> ParsedEvent | None:
    phase = _PHASES.get(found["name"])
    if phase is None:
        return None
    time = PhaseTime(PhaseName(found["name"], phase), duration(found["took"]))
    return ParsedEvent(NAME, EventType.IGNORE, name="part", label=found["name"], phases=(time,), counted=False)


def _took(name: str, counted: bool) -> Any:
    return lambda found: ParsedEvent(NAME, EventType.ALIVE, took=duration(found["took"]), name=name, counted=counted)


RULES = (
    LineRule(NAME, "===== ", pattern(r"={20,} (?P<what>Epoch|Step) (?P<number>\d+)/(?P<of>\d+) ={20,}"), _heading,
             "heading"),
    LineRule(NAME, "Total step time: ", pattern(r"^\s*• Total step time: (?P<took>[\d.]+)s\s*$"),
             _took("total", True), "total"),
    LineRule(NAME, "Total validation time: ", pattern(r"^\s*• Total validation time: (?P<took>[\d.]+)s\s*$"),
             _took("validation", False), "validation"),
    LineRule(NAME, "s (", pattern(r"^\s*• (?P<name>[\w/]{1,80}): (?P<took>[\d.]+)s \([\d.]+%\)\s*$"), _part, "part"),
    LineRule(NAME, "Setting up compute cluster", pattern(r"▶ Setting up compute cluster\.\.\."),
             lambda _: ParsedEvent(NAME, EventType.START, name="start", once=True), "start"),
    LineRule(NAME, "Max number of ", pattern(r"^\s*Max number of (?:steps|epochs) has been reached, stopping training"),
             lambda _: ParsedEvent(NAME, EventType.FINISHED, name="finished"), "finished"),
)  # fmt: skip


def translate(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the log lines of one source as records of steps with phases."""
    return _PolicyProcess().read(log_lines)


class _PolicyProcess:
    """Follows the headings in one source."""

    def __init__(self) -> None:
        self._out: list[LogLine] = []
        self._epoch = 1
        self._step: int | None = None
        """Step in the last heading."""
        self._done: int | None = None
        """The last recorded step; None: none of this process."""
        self._record: LogLine | None = None
        """Record whose parts follow."""
        self._validation = 0
        """Time (ns) of the validation in this step."""

    def read(self, log_lines: Sequence[LogLine]) -> list[LogLine]:
        for log_line in log_lines:
            getattr(self, f"_on_{event_of(log_line).name}")(log_line)
        return self._out

    def _add(self, log_line: LogLine, what: EventType, took: int = 0, **more: Any) -> LogLine:
        one = replace(log_line, event=ParsedEvent(NAME, what, **more), time=log_line.end - took)
        self._out.append(one)
        return one

    def _on_start(self, log_line: LogLine) -> None:
        self._epoch, self._step, self._done, self._record = 1, None, None, None
        self._out.append(log_line)

    def _on_finished(self, log_line: LogLine) -> None:
        self._out.append(log_line)

    def _on_epoch(self, log_line: LogLine) -> None:
        self._epoch = event_of(log_line).step or 1

    def _on_step(self, log_line: LogLine) -> None:
        """Begin a step; step numbers restart with each epoch."""
        one = event_of(log_line)
        self._step = (self._epoch - 1) * dict(one.detail)["of"] + (one.step or 0)
        self._record, self._validation = None, 0
        if self._done is None and self._step > 1:
            self._add(log_line, EventType.RESUME, step=self._step - 1)
        else:
            self._add(log_line, EventType.ALIVE)

    def _on_validation(self, log_line: LogLine) -> None:
        took = event_of(log_line).took or 0
        if self._step is None or self._record is not None:
            self._add(log_line, EventType.EVAL, took)
        else:
            self._validation += took

    def _on_total(self, log_line: LogLine) -> None:
        if self._step is None:
            return
        took = event_of(log_line).took
        self._done = self._step
        self._record = self._add(log_line, EventType.STEP, step=self._step, step_time=took)
        if self._validation:
            name = PhaseName("validation", "evaluation")
            event_of(self._record).phases = (PhaseTime(name, self._validation),)
            self._add(log_line, EventType.EVAL, self._validation, step=self._step)

    def _on_part(self, log_line: LogLine) -> None:
        """Add a part of the step; a save also has its own category."""
        if self._record is None:
            return
        (part,) = event_of(log_line).phases
        record = event_of(self._record)
        record.phases += (part,)
        if event_of(log_line).label == _SAVE and part.ns:
            behind = replace(self._record, end=self._record.end - self._validation)
            self._add(behind, EventType.SAVE, part.ns, step=self._step)

"""Turn relative steps and times into absolute ones: steps that count from 0 in each epoch, and times since a process or
a progress bar began. The lines before each one, in the order written, say what to add."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from goodput_cli.events.text.marks import Mark, What

_BEGINS = (What.START, What.CRASHED, What.TERMINATED)


@dataclass
class _Stream:
    """What the lines of one writer said so far."""

    epoch: int = 0
    elapsed: int = 0


def settled(marks: list[Mark]) -> list[Mark]:
    """The same marks with the steps, and the times that they took, of what is counted within something. marks: of one
    source, in order of lines."""
    if not any(mark.said is not None and mark.said.running is not None for mark in marks):
        return marks
    streams: defaultdict[tuple[str, str], _Stream] = defaultdict(_Stream)
    return [_settled(mark, streams[mark.said.format, mark.stream]) if mark.said else mark for mark in marks]


def _settled(mark: Mark, stream: _Stream) -> Mark:
    said = mark.said
    assert said is not None
    if said.what in _BEGINS:
        stream.elapsed = 0
    if said.running is None:
        return mark
    step, took, running = said.step, said.took, said.running
    if running.epoch is not None:
        stream.epoch = running.epoch
    elif step is not None and running.of is not None:
        step += stream.epoch * running.of
    if running.elapsed is not None:
        took = running.elapsed - stream.elapsed if running.elapsed >= stream.elapsed else running.elapsed
        stream.elapsed = running.elapsed
    return replace(mark, said=replace(said, step=step, took=took))


def by_elapsed(marks: list[Mark]) -> None:
    """Move marks that say how long it is since their process or progress bar began to where that puts them, behind the
    first of it. marks: placed already, in order of lines."""
    clocks: dict[tuple[str, str], tuple[int, int]] = {}  # when it began, and the last that was said
    for mark in marks:
        said = mark.said
        if said is None or said.running is None or said.running.elapsed is None:
            continue
        stream, elapsed = (said.format, mark.stream), said.running.elapsed
        began, last = clocks.get(stream, (0, elapsed + 1))
        if elapsed < last or mark.stamp is not None:
            began = mark.end - elapsed
        else:
            mark.end = began + elapsed
            mark.time = mark.end - (said.took or 0)
        clocks[stream] = (began, elapsed)

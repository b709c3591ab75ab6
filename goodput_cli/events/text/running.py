"""Steps and times that are counted within something: steps that begin anew with each epoch, and time since a process or
a progress bar began. What they mean follows from the lines before them, in the order in which they were written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from goodput_cli.events.text.marks import Mark, Running, Said, What

_BEGINS = (What.START, What.CRASHED, What.TERMINATED)


@dataclass
class _Stream:
    """What the lines of one writer said so far."""

    epoch: int = 0
    elapsed: int = 0


def settle(marks: Iterable[Mark]) -> None:
    """Set the step, and the time that it took, of what is counted within something. marks: of one source, in order of
    lines."""
    streams: defaultdict[tuple[str, str], _Stream] = defaultdict(_Stream)
    for mark in marks:
        said = mark.said
        if said is None:
            continue
        stream = streams[said.format, mark.stream]
        if said.what in _BEGINS:
            stream.elapsed = 0
        if said.running is not None:
            _settle(said, said.running, stream)


def _settle(said: Said, running: Running, stream: _Stream) -> None:
    if running.epoch is not None:
        stream.epoch = running.epoch
    elif said.step is not None and running.of is not None:
        said.step += stream.epoch * running.of
    if running.elapsed is not None:
        said.took = running.elapsed - stream.elapsed if running.elapsed >= stream.elapsed else running.elapsed
        stream.elapsed = running.elapsed

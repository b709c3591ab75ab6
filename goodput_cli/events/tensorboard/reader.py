"""An event file as a document: its events as they are, what they mean is found when all have been read."""

from __future__ import annotations

import numpy as np

from goodput_cli.events.parsed import Parsed
from goodput_cli.events.tensorboard.frames import BrokenFrameError, begins, frames
from goodput_cli.events.tensorboard.messages import Event, parse
from goodput_cli.events.text.parts import TextPart
from goodput_cli.sources.base import RawBatch


class EventFile:
    """Reads an event file (see `DocumentReader`). What stands for the line of an event is its number."""

    by_line = False

    @staticmethod
    def begins(data: bytes) -> bool:
        """Whether a document that begins like this is one, by its first checksum."""
        return begins(data)

    def __init__(self) -> None:
        self._rest = b""
        self._number = 0
        self._broken = False

    def feed(self, batch: RawBatch) -> Parsed:
        """The events that end in the next bytes."""
        if self._broken:
            return _parsed(TextPart())
        data = self._rest + batch.data
        events: list[tuple[int, Event]] = []
        damaged: list[int] = []
        at = 0
        broken: int | None = None
        try:
            for frame, end in frames(data):
                at = end
                self._number += 1
                event = None if frame.data is None else parse(frame.data)
                if event is None:
                    damaged.append(self._number)
                else:
                    events.append((self._number, event))
        except BrokenFrameError:
            self._broken, broken = True, self._number + 1
        self._rest = b"" if self._broken else data[at:]
        return _parsed(TextPart(events=events, damaged=damaged, broken=broken))

    def finish(self) -> Parsed:
        """The end of the document: a last record that is cut off is being written, or was when its writer died."""
        return _parsed(TextPart())


def _parsed(part: TextPart) -> Parsed:
    return Parsed((), np.empty(0, dtype=np.int64), text=part)

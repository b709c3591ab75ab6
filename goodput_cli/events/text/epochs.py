"""The epoch of a count that begins again, if the log may not name it (docs/formats.md, Steps of epochs)."""

from __future__ import annotations


def epoch_of(named: int | None, epoch: int, *, was_full: bool, begun: bool, restored: bool) -> int:
    """Return the epoch of a count of steps that begins again.

    named: the epoch in its line or in a line before it; None: no line names it.
    epoch: that of the count before.
    was_full: whether that count came to its end.
    begun: whether a process began or died in between; restored: whether it loaded a checkpoint.
    """
    if named is not None:
        return named
    if was_full and not begun:
        return epoch + 1
    return epoch if restored else 0

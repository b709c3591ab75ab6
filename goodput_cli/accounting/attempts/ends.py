"""Table of ends (accounting §10): how and when every attempt ended, the last one included."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.attempts.endings import ElasticTransition, End, Endings
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.vocabulary.categories import ENDED

_DOWN = (End.TERMINATED, End.CRASHED)


class Ends(Struct, frozen=True):
    """Ends of the attempts of a job: columns with one value per attempt."""

    how: I64
    """Position in `ENDED`."""
    row: Rows
    """Row of the line that states it; -1 without."""
    time: I64
    """Time (ns) of the first line that states it, otherwise of the last sign of life."""
    followed: Mask
    """True if another attempt follows."""
    stated: Mask
    """True if a line states that the attempt ended, and it is not a believed clean end."""
    failed: Mask
    """True for a failure: an unplanned disruption, or the stated end of a last attempt that was not cancelled."""


def find_ends(
    attempts: Attempts,
    endings: Endings,
    died: Mask,
    preempted: Rows,
    passages: tuple[NDArray[np.int8], Rows],
    sign_of_life: I64,
    disrupted: Mask,
    *,
    cancelled: bool,
) -> Ends:
    """Return the end of every attempt.

    A save that reached a preemption names the reason. A crash or a termination only states that the attempt was down.

    died: True if an uncaught exception ended it. preempted: row of its save that had reached a preemption; -1 without.
    passages: what the elastic passage after it shows, and the row. disrupted: True if a disruption that counts ended
    it. cancelled: True if the last attempt was cancelled.
    """
    count = len(attempts)
    followed = np.arange(count) < count - 1
    stated = (endings.how != End.CLEAN) & (np.isin(endings.how, _DOWN) | died | (preempted >= 0))
    failed = np.where(followed, disrupted, stated & (not cancelled))
    how = np.where(endings.how == End.TERMINATED, ENDED.index("terminated"), ENDED.index("silent"))
    how[endings.down | died] = ENDED.index("crashed")
    row = np.where(endings.down, endings.crash_row, attempts.first_ending)
    passage, shown = passages
    for what, name in ((ElasticTransition.SLICE_DOWN, "slice_down"), (ElasticTransition.SCALE_UP, "scale_up")):
        how[passage == what] = ENDED.index(name)
    row = np.where(shown >= 0, shown, row)
    how[preempted >= 0] = ENDED.index("preempted")
    how[attempts.gone_back] = ENDED.index("rolled_back")
    return Ends(how, np.where(preempted >= 0, preempted, row), sign_of_life, followed, stated, failed)

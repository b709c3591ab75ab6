"""Which claim gets a second that several claims name (accounting.md §5)."""

from __future__ import annotations

from enum import IntEnum


class Priority(IntEnum):
    """Of claims that overlap, the one with the lowest number gets the time.

    Below all of these come kept training (14), unclaimed time of attempts that were lost (15) and `other` (16), which
    never overlap each other.
    """

    EXCLUDED = 1
    ELASTIC_REINIT = 2
    ELASTIC_WAIT = 3
    QUEUED = 4
    DOWNTIME = 5
    WASTED = 6
    RESTORE = 7
    SAVE = 8
    CUSTOM = 9
    TPU_INIT = 10
    PREP = 11
    INFERRED_RESTORE = 12
    DATA = 13

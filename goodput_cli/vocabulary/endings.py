"""How the attempt before a disruption ended, as answers and measures name it (docs/accounting.md §10)."""

from __future__ import annotations

from typing import Literal, get_args

Ended = Literal["crashed", "terminated", "silent", "preempted", "slice_down", "scale_up"]
ENDED: tuple[Ended, ...] = get_args(Ended)

"""The zone of stamps without one, where a collector's exact stamps stand beside them (`kubectl logs --timestamps`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from goodput_cli.events.text.marks import Mark
from goodput_cli.events.text.stamps import Zone
from goodput_cli.events.timestamps.entry_zones import offset_of_day, offset_text
from goodput_cli.vocabulary.units import NS_PER_DAY, NS_PER_SECOND

_QUARTER = 900 * NS_PER_SECOND


class FoundZone:
    """Offsets from UTC by day, as lines with two times show them."""

    def __init__(self, marks: Sequence[Mark]) -> None:
        """marks: of the sources that one cluster wrote."""
        ahead: defaultdict[int, list[int]] = defaultdict(list)
        for mark in marks:
            if mark.local is not None and mark.stamp is not None and mark.local.zone is Zone.NAIVE:
                ahead[mark.stamp.ns // NS_PER_DAY].append(mark.local.ns - mark.stamp.ns)
        self._quarters = {day: offset_of_day(np.array(found)) for day, found in sorted(ahead.items())}

    def __bool__(self) -> bool:
        return any(self._quarters.values())

    def __str__(self) -> str:
        named = sorted({offset_text(quarter) for quarter in self._quarters.values()})
        return f"UTC{', UTC'.join(named)}"

    def from_local(self, ns: int) -> int:
        """The instant of a local time: with the offset of its day, else of the nearest day that shows one."""
        day = min(self._quarters, key=lambda one: abs(one - ns // NS_PER_DAY))
        return ns - self._quarters[day] * _QUARTER

"""Attempts of checkpoint logs that no start line shows (accounting §3): loads after progress, and life after an end."""

from __future__ import annotations

from goodput_cli.accounting.columns import latest_row, next_row, search
from goodput_cli.arrays import Rows


def split_checkpoint_region(
    progress: Rows, loads: Rows, startup: Rows, endings: Rows, resuming: Rows, start: int, stop: int
) -> list[int]:
    """The rows in [start, stop) at which a new attempt begins without a start line: at a load after progress (from the
    first start-up event after that progress on), and at a load, init, prep or restore after an end line. All arguments
    are sorted rows."""
    boundaries: list[int] = []
    begin = start
    while True:
        load = next_row(loads, next_row(progress, begin))
        lost = next_row(resuming, next_row(endings, begin))
        if load is not None and (lost is None or load <= lost):
            shown, begin = load, _first_startup(progress, startup, endings, load)
        elif lost is not None:
            shown = begin = lost
        else:
            return boundaries
        if shown >= stop:
            return boundaries
        boundaries.append(begin)


def _first_startup(progress: Rows, startup: Rows, endings: Rows, load: int) -> int:
    """First start-up event after the last progress (and end line) before a load, else the load."""
    last_progress = int(progress[search(progress, load) - 1])
    first = next_row(startup, latest_row(endings, last_progress, load))
    return load if first is None else min(load, first)

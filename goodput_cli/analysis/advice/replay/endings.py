"""How lives ended: what the next one began with, against what it could have (docs/advice.md, *How a life ended*)."""

from __future__ import annotations

from dataclasses import replace

from goodput_cli.analysis.advice.replay.policy import AsRecorded
from goodput_cli.analysis.advice.replay.record import Ending, JobRecord, Kind, Life
from goodput_cli.analysis.advice.replay.run import Run


def with_endings(record: JobRecord) -> JobRecord:
    """The record with `ends` filled in."""
    policy = AsRecorded(record)
    usable = [record.lives[0].first]
    ends: list[Ending] = []
    for index, life in enumerate(record.lives):
        if life.resumed is None:
            ends.append(Ending(Kind.END, life.stop, life.first, None))
            continue
        died = Run(record, policy, index, 0, life.first).within(life.budget, record.end).position
        stored = [int(made) + record.shift for made in life.saves.made_at]
        stored = [position for position in stored if position <= died + 1]
        usable += [position for position in stored if position > life.first]
        newest = max([life.first, *stored])
        ends.append(Ending(_kind(life, newest), died, newest, _newest_upto(usable, life.resumed)))
        usable.append(life.resumed)
    return replace(record, ends=tuple(ends))


def _kind(life: Life, newest: int) -> Kind:
    assert life.resumed is not None
    if life.clean:
        return Kind.STOP
    if life.resumed == newest:
        return Kind.NEWEST
    return Kind.OLDER if life.resumed < newest else Kind.BEYOND


def _newest_upto(usable: list[int], limit: int) -> int | None:
    """The newest checkpoint not above a position; those above it are forgotten."""
    while usable and usable[-1] > limit:
        usable.pop()
    return usable[-1] if usable else None

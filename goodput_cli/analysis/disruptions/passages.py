"""How each attempt ended, and what that cost besides lost progress: by attempt, which is less work than all that is
said of a disruption."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goodput_cli.accounting.attempts.causes import Elastic
from goodput_cli.accounting.attempts.endings import End
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import search
from goodput_cli.arrays import I64, Rows
from goodput_cli.vocabulary.categories import Category, in_group
from goodput_cli.vocabulary.endings import ENDED

_DOWN, _STARTING = in_group("down"), in_group("starting")


@dataclass(frozen=True)
class PassageAmounts:
    """ns, one value an attempt that another one follows."""

    down: I64
    undetermined: I64
    queued: I64
    restart: I64


def how_ended(timeline: Timeline) -> tuple[I64, Rows]:
    """How each attempt ended, as a position in `ENDED`, and the row that says so (-1: none). A save that had reached a
    preemption knows why; a crash or a termination only says that it was down."""
    how, preempted = timeline.endings.how, timeline.preempted_saves
    crashed = how == End.CRASHED
    ended = np.where(how == End.TERMINATED, ENDED.index("terminated"), ENDED.index("silent"))
    ended[crashed] = ENDED.index("crashed")
    row = np.where(crashed, timeline.endings.crash_row, timeline.attempts.first_ending)
    cause, shown = timeline.elastic_passages
    for what, name in ((Elastic.SLICE_DOWN, "slice_down"), (Elastic.SCALE_UP, "scale_up")):
        ended[cause == what] = ENDED.index(name)
    row = np.where(shown >= 0, shown, row)
    ended[preempted >= 0] = ENDED.index("preempted")
    return ended, np.where(preempted >= 0, preempted, row)


def passage_amounts(timeline: Timeline) -> PassageAmounts:
    """Time between the last training of each attempt and the next one's start, and until that trained. The spans of
    two passages never overlap, so that no second is counted for two disruptions."""
    trained_from = _training_span(timeline)[0]
    left, up = downtimes(timeline)
    between = timeline.ledger.between(left, up, (*_DOWN, Category.QUEUED))
    starting = timeline.ledger.between(left, np.maximum(left, trained_from[1:]), _STARTING)
    nothing = np.zeros(len(left), dtype=np.int64)
    restart = sum((starting.get((category, -1), nothing) for category in _STARTING), nothing)
    return PassageAmounts(
        down=sum((between.get((category, -1), nothing) for category in _DOWN), nothing),
        undetermined=between.get((Category.UNDETERMINED, -1), nothing),
        queued=between.get((Category.QUEUED, -1), nothing),
        restart=restart + _startup(timeline)[1:],
    )


def downtimes(timeline: Timeline) -> tuple[I64, I64]:
    """From where to where (ns) downtime behind each attempt that another one follows can lie: from its last training
    until the next one was up."""
    left = np.maximum(timeline.attempts.up, _training_span(timeline)[1])[:-1]
    return left, np.maximum(left, timeline.attempts.up[1:])


def _training_span(timeline: Timeline) -> tuple[I64, I64]:
    """When (ns) each attempt began to train and when its last span ended; both when it was up if it never did."""
    spans = timeline.training.spans
    begin = timeline.attempts.up.copy()
    bounds = search(spans.attempt, np.arange(len(begin) + 1))
    some = np.flatnonzero(bounds[1:] > bounds[:-1])
    begin[some] = spans.start[bounds[some]]
    return begin, spans.latest_end(timeline.attempts.up)


def _startup(timeline: Timeline) -> I64:
    """Program start-up (ns) of each attempt's first span of training: what follows a re-initialisation later in its
    life is no restart."""
    segments, spans = timeline.segments, timeline.training.spans
    rows = np.flatnonzero(segments.category == Category.PROGRAM_STARTUP)
    if len(spans.restarted):
        rows = rows[~np.isin(segments.start[rows], spans.start[spans.restarted])]
    startup = np.zeros(len(timeline.attempts), dtype=np.int64)
    np.add.at(startup, segments.attempt(rows), segments.end[rows] - segments.start[rows])
    return startup

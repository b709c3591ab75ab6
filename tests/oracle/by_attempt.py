"""What each attempt cost (accounting §10): the painted cells once more, dealt to attempts by their time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from .amounts import Books, painting
from .job import Job
from .training import UNDETERMINED, Training

DOWN = {"infrastructure_recovery_from_disruption", UNDETERMINED, "stopped"}
STARTING = {
    "tpu_initialization", "training_prep", "unproductive_checkpoint_restore_time", "data_loading_sync",
    "elastic_slice_down", "elastic_scale_up", "elastic_reinitialization",
}  # fmt: skip


@dataclass(frozen=True)
class Costs:
    """ns. rows: by attempt, category -> ns; training_slowdown is a part of productive. down, restart, queued: behind
    each attempt that another one follows."""

    rows: list[dict[str, int]]
    down: list[int]
    restart: list[int]
    queued: list[int]


def costs(job: Job) -> Costs:
    """The table, cell by cell."""
    training, canvas = painting(job)
    trained, left = trained_between(job, training)
    up = [attempt.up for attempt in job.attempts]
    found = Costs([{} for _ in up], *([0] * job.last for _ in range(3)))
    cuts = sorted({*left, *up, *trained})
    for start, end, owner in canvas.cells():
        if not isinstance(owner, str):
            continue
        for at, stop in pieces(start, end, cuts):
            row = found.rows[owner_of(at, trained, up, left)]
            row[owner] = row.get(owner, 0) + stop - at
            for passage in range(job.last):
                down = left[passage] <= at < up[passage + 1]
                found.down[passage] += (stop - at) * (down and owner in DOWN)
                found.queued[passage] += (stop - at) * (down and owner == "queued")
                found.restart[passage] += (stop - at) * (
                    left[passage] <= at < trained[passage + 1] and owner in STARTING
                )
    add_kept(job, training, canvas.totals(), found)
    return found


def trained_between(job: Job, training: Training) -> tuple[list[int], list[int]]:
    """By attempt, when it first trained (when it was up if it never did), and when it was up and its last training was
    over."""
    trained: list[int] = []
    left: list[int] = []
    for index, attempt in enumerate(job.attempts):
        own = [span for span in training.spans if span.attempt == index]
        begun, ends = [span.start for span in own], [span.end for span in own]
        if attempt.steps:
            begun.append(attempt.steps[0].time)
            ends.append(attempt.steps[-1].time)
        ends += [last[index] for last in (training.wasted_end, training.credited_end) if index in last]
        trained.append(min(begun, default=attempt.up))
        left.append(max([attempt.up, *ends]))
    return trained, left


def owner_of(at: int, trained: list[int], up: list[int], left: list[int]) -> int:
    """The attempt in whose row an instant lies: the last one that had begun to be up or to train."""
    index = 0
    while index + 1 < len(up) and at >= max(left[index], min(up[index + 1], trained[index + 1])):
        index += 1
    return index


def pieces(start: int, end: int, cuts: list[int]) -> Iterator[tuple[int, int]]:
    """[start, end) cut at some instants."""
    return pairwise([start, *(cut for cut in cuts if start < cut < end), end])


def add_kept(job: Job, training: Training, totals: dict[str | int, int], found: Costs) -> None:
    """Kept spans are of their attempt, whole; the start-up in the first one of each is a part of the restart."""
    books = Books(job, training)
    for number, span in enumerate(training.spans):
        for category, amount in books.parts(span, totals.get(number, 0)).items() if span.kept else ():
            row = found.rows[span.attempt]
            row[category] = row.get(category, 0) + amount
            if category == "program_startup" and span.attempt and not span.reinit:
                found.restart[span.attempt - 1] += amount

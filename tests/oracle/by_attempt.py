"""Cost of each attempt (accounting §10): the painted cells again, assigned to attempts by their time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from .amounts import Books, painting
from .canvas import Canvas
from .ends import beginnings
from .job import Job
from .training import UNDETERMINED, WASTED, Training

DOWN = {"infrastructure_recovery_from_disruption", UNDETERMINED, "stopped"}
STARTING = {
    "tpu_initialization", "training_prep", "unproductive_checkpoint_restore_time", "data_loading_sync",
    "elastic_slice_down", "elastic_scale_up", "elastic_reinitialization",
}  # fmt: skip


@dataclass(frozen=True)
class Costs:
    """Costs in ns. rows: by attempt, category -> ns; training_slowdown is a part of productive. down, restart, queued:
    after each attempt that another one follows."""

    rows: list[dict[str, int]]
    down: list[int]
    restart: list[int]
    queued: list[int]
    taken_back: list[int] | None
    """Training that the end of each attempt undid; None for checkpoint logs."""


def costs(job: Job) -> Costs:
    """Return the table, cell by cell."""
    training, canvas = painting(job)
    trained, left = trained_between(job, training)
    up = [attempt.up for attempt in job.attempts]
    down, restart, queued = ([0] * job.last for _ in range(3))
    found = Costs([{} for _ in up], down, restart, queued, charged(job, training, canvas))
    cuts = sorted({*left, *up, *trained})
    for start, end, owner in canvas.cells():
        if not isinstance(owner, str):
            continue
        for at, stop in pieces(start, end, cuts):
            row = found.rows[owner_of(at, trained, up, left)]
            row[owner] = row.get(owner, 0) + stop - at
            for passage in range(job.last):
                behind = left[passage] <= at < up[passage + 1]
                found.down[passage] += (stop - at) * (behind and owner in DOWN)
                found.queued[passage] += (stop - at) * (behind and owner == "queued")
                found.restart[passage] += (stop - at) * (
                    left[passage] <= at < trained[passage + 1] and owner in STARTING
                )
    add_kept(job, training, canvas.totals(), found)
    return found


def charged(job: Job, training: Training, canvas: Canvas) -> list[int] | None:
    """Return wasted time by the attempt whose end undid it, with each step of each span judged separately. Time wasted
    after an attempt's spans belongs to its last step."""
    if not job.is_step_log:
        return None
    began = began_at(job)
    spans = dict(stepwise(began, training))
    cuts = sorted({*(attempt.begin for attempt in job.attempts), *(at for own in spans.values() for at, _ in own)})
    lost = [0] * len(job.attempts)
    for start, end, owner in canvas.cells():
        for at, stop in pieces(start, end, cuts) if owner == WASTED else ():
            index = max(i for i, attempt in enumerate(job.attempts) if attempt.begin <= at or i == 0)
            kept = sum(int(s.kept) for s in training.spans if s.attempt == index and s.role == "plain")
            number = next((step for begun, step in reversed(spans.get(index, [])) if begun <= at), began[index] or 0)
            charge = taker(index, max(number, (began[index] or 0) + kept), began)
            if charge is not None:
                lost[charge] += stop - at
    return lost


def began_at(job: Job) -> list[int | None]:
    """Return the step at which each attempt began; None for those without any."""
    if job.step_ends:
        return [None if one is None else one.step for one in beginnings(job.attempts)]
    return [attempt.steps[0].number if attempt.steps else None for attempt in job.attempts]


def stepwise(began: list[int | None], training: Training) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield per attempt the begin and number of each of its steps, in proportion between two records, and the position
    of the last record."""
    for index, first in enumerate(began):
        found: list[tuple[int, int]] = []
        number, end = first or 0, None
        for span in (one for one in training.spans if one.attempt == index and one.role == "plain"):
            steps = int(span.steps)
            found += [(span.start + span.gross * step // steps, number + step) for step in range(steps)]
            number, end = number + steps, span.end
        yield index, found if end is None else [*found, (end, number)]


def taker(index: int, number: int, began: list[int | None]) -> int | None:
    """Return the attempt whose end undid a step: the one before the first later attempt that began at or below it,
    otherwise its own. Chosen: None if no attempt with a step follows."""
    stepping = [later for later, first in enumerate(began) if first is not None and later >= index]
    for before, later in pairwise(stepping):
        if (began[later] or 0) <= number:
            return before
    return index if stepping[1:] else None


def trained_between(job: Job, training: Training) -> tuple[list[int], list[int]]:
    """Return per attempt when it first trained (when it was up if it never did), and when it was up and its last
    training was over."""
    trained: list[int] = []
    left: list[int] = []
    for index, attempt in enumerate(job.attempts):
        own = [span for span in training.spans if span.attempt == index]
        begun, ends = [span.start for span in own], [span.end for span in own]
        if attempt.steps and not (job.step_ends and own):
            begun.append(attempt.steps[-1 if job.step_ends else 0].time)
            ends.append(attempt.steps[-1].time)
        ends += [last[index] for last in (training.wasted_end, training.credited_end) if index in last]
        trained.append(min(begun, default=attempt.up))
        left.append(max([attempt.up, *ends]))
    return trained, left


def owner_of(at: int, trained: list[int], up: list[int], left: list[int]) -> int:
    """Return the attempt whose row contains a time: the last one that had begun to be up or to train."""
    index = 0
    while index + 1 < len(up) and at >= max(left[index], min(up[index + 1], trained[index + 1])):
        index += 1
    return index


def pieces(start: int, end: int, cuts: list[int]) -> Iterator[tuple[int, int]]:
    """Yield [start, end) cut at some times."""
    return pairwise([start, *(cut for cut in cuts if start < cut < end), end])


def add_kept(job: Job, training: Training, totals: dict[str | int, int], found: Costs) -> None:
    """Add kept spans to their attempt, in full; the start-up in the first one of each is a part of the restart."""
    books = Books(job, training)
    for number, span in enumerate(training.spans):
        for category, amount in books.parts(span, totals.get(number, 0)).items() if span.kept else ():
            row = found.rows[span.attempt]
            row[category] = row.get(category, 0) + amount
            if category == "program_startup" and span.attempt and not span.reinit:
                found.restart[span.attempt - 1] += amount

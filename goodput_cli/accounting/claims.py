"""Claims (accounting §5): the time that each event, planned exclusion and wasted span claims, and its priority.

Downtime (accounting §3 and §4): time in which no attempt of the job was running, or one was coming up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.attempts.endings import End, Endings
from goodput_cli.accounting.columns import positions, search, without
from goodput_cli.accounting.intervals import Intervals, Priority
from goodput_cli.accounting.sweep import Claims, claim, join
from goodput_cli.accounting.training.checkpoints import CheckpointProgress
from goodput_cli.accounting.training.kept import TrainingOutcome, merged_exclusions
from goodput_cli.arrays import I64, Rows
from goodput_cli.events.schema import CLOCK_STEP, LOST_STEPS, SECOND_WRITER, EventTable, Kind
from goodput_cli.vocabulary.categories import Category

_PHASES: dict[Kind, tuple[Priority, Category]] = {
    Kind.TPU_INIT: (Priority.TPU_INIT, Category.TPU_INITIALIZATION),
    Kind.PREP: (Priority.PREP, Category.TRAINING_PREP),
    Kind.CUSTOM: (Priority.CUSTOM, Category.CUSTOM),
    Kind.ELASTIC_DOWN: (Priority.ELASTIC_WAIT, Category.ELASTIC_DOWN),
    Kind.ELASTIC_UP: (Priority.ELASTIC_WAIT, Category.ELASTIC_UP),
    Kind.ELASTIC_REINIT: (Priority.ELASTIC_REINIT, Category.ELASTIC_REINIT),
}


def excluded(exclusions: tuple[tuple[int, int], ...]) -> Claims:
    """Return the claims of windows that the user excluded."""
    parts = [claim(start, end, Priority.EXCLUDED, Category.EXCLUDED) for start, end in merged_exclusions(exclusions)]
    return join(parts)


def phases(table: EventTable, attempts: Attempts, intervals: Intervals) -> Claims:
    """Return the claims of init, prep, custom and elastic intervals."""
    kind = table.kind[intervals.row]
    parts = []
    for phase, (priority, category) in _PHASES.items():
        of_kind = kind == int(phase)
        if not of_kind.any():
            continue
        row = intervals.row[of_kind]
        parts.append(
            claim(
                intervals.start[of_kind],
                intervals.end[of_kind],
                priority,
                category,
                label=table.label[row] if phase == Kind.CUSTOM else -1,
                attempt=attempts.of_row[row],
                row=row,
                end_row=intervals.end_row[of_kind],
            )
        )
    return join(parts)


def saves_and_restores(table: EventTable, attempts: Attempts) -> Claims:
    """Return the claims of Orbax lines: the blocking interval of a save, and restores."""
    parts = []
    for kind, priority, category in (
        (Kind.RESTORE, Priority.RESTORE, Category.RESTORE),
        (Kind.SAVE, Priority.SAVE, Category.SAVE),
    ):
        row = np.flatnonzero((table.kind == kind) & (attempts.of_row >= 0))
        parts.append(
            claim(
                table.time[row], table.end[row], priority, category, attempt=attempts.of_row[row], row=row, end_row=row
            )
        )
    return join(parts)


def queued(table: EventTable, attempts: Attempts, job_end: int) -> Claims:
    """Return the time from `user_scheduled` to the next start, if no event of the job is in between. A termination at
    the same time (clocks of whole seconds) does not count as in between. A save or restore that still goes on does."""
    scheduled = np.flatnonzero(table.kind == Kind.SCHEDULED)
    if len(scheduled) == 0:
        return join([])
    behind_ties = search(table.time, table.time[scheduled], side="right")
    events = np.flatnonzero((table.kind != Kind.SCHEDULED) & (table.kind != Kind.SLICES))
    events = without(events, attempts.stray, len(table))
    place = search(events, behind_ties)
    starts = np.flatnonzero(table.kind == Kind.START)
    at_once = search(starts, behind_ties) > search(starts, scheduled)
    waiting = place == len(events)
    following = np.append(events, -1)[place]
    waits = (waiting | (table.kind[following] == Kind.START)) & ~at_once & ~_is_inside_interval(table, scheduled)
    end = np.where(waiting, job_end, table.time[following])
    return claim(
        table.time[scheduled][waits],
        end[waits],
        Priority.QUEUED,
        Category.QUEUED,
        row=scheduled[waits],
        end_row=following[waits],
    )


def _is_inside_interval(table: EventTable, rows: Rows) -> NDArray[np.bool_]:
    """Return True for each row within an interval that is one line (an Orbax save or restore)."""
    long = np.flatnonzero(table.end > table.time)
    latest = np.append(table.time[0], np.maximum.accumulate(table.end[long]))
    time = table.time[rows]
    return np.asarray(latest[search(table.time[long], time, side="right")] > time)


def wasted(training: TrainingOutcome, partial: NDArray[np.intp], splits: I64) -> Claims:
    """Return the claims of training that the lineage does not keep; adjacent spans are one claim.

    partial, splits: spans kept in part, and the times (ns) from which on they are wasted.
    """
    spans = training.spans
    lost = (training.kept_steps <= 0) & ~training.credited
    lost[partial] = True
    chosen = positions(lost)
    if len(chosen) == 0:
        return join([])
    owner, first = spans.attempt[chosen], spans.first[chosen].astype(np.int64)
    starts, ends = spans.start[chosen], spans.end[chosen]
    place = search(chosen, partial)
    starts[place] = splits
    first[place] += training.kept_steps[partial].astype(np.int64)
    new = np.append(True, (owner[1:] != owner[:-1]) | (starts[1:] != ends[:-1]))[: len(chosen)]
    head = np.flatnonzero(new)
    tail = np.append(head[1:], len(chosen))[: len(head)] - 1
    return claim(
        starts[head],
        ends[tail],
        Priority.WASTED,
        Category.WASTED,
        attempt=owner[head],
        first=first[head],
        stop=spans.stop[chosen][tail],
        row=spans.row[chosen][head],
        end_row=spans.end_rows(chosen[tail]),
    )


def checkpoint_log(
    table: EventTable, attempts: Attempts, endings: Endings, progress: CheckpointProgress
) -> tuple[Claims, ...]:
    """Return the claims of checkpoint logs only: blocking saves, inferred restores, and training lost after the last
    one."""
    finished, saved = progress.saves[:, 0], progress.saves[:, 1]
    initial = table.step[finished] == progress.began[attempts.of_row[finished]]
    loaded = np.flatnonzero(progress.load_row >= 0)
    load = progress.load_row[loaded]
    dead = np.arange(len(attempts)) < len(attempts) - 1
    end_row = np.where(dead, attempts.first_ending, endings.crash_row)
    lost = np.flatnonzero((end_row >= 0) & (progress.position_row >= 0))
    return (
        claim(
            table.time[finished],
            table.time[saved],
            np.where(initial, Priority.INITIAL_SAVE, Priority.SAVE),
            Category.SAVE,
            attempt=attempts.of_row[finished],
            row=finished,
            end_row=saved,
        ),
        claim(
            attempts.up[loaded],
            table.time[load],
            Priority.INFERRED_RESTORE,
            Category.RESTORE,
            attempt=loaded,
            row=attempts.up_row[loaded],
            end_row=load,
        ),
        claim(
            progress.position[lost],
            attempts.cut_at_next(table.time[end_row])[lost],
            Priority.WASTED,
            Category.WASTED,
            attempt=lost,
            row=progress.position_row[lost],
            end_row=end_row[lost],
        ),
    )


def downtime(
    table: EventTable,
    attempts: Attempts,
    endings: Endings,
    sign_of_life: I64,
    progress: CheckpointProgress | None,
    job_end: int,
) -> Claims:
    """Return the time from each attempt's last sign of life to the next start, and on until the last rank is up.

    sign_of_life: ns, one per attempt. progress: of checkpoint logs. job_end: ns.
    """
    dead = np.arange(max(len(attempts) - 1, 0))
    clean = endings.how[dead] == End.CLEAN
    parts: list[Claims] = []
    last = len(attempts) - 1
    if last >= 0 and endings.down[last]:  # after a crash that ended the job, downtime goes on
        row = endings.crash_row[last]
        parts.append(claim(table.time[row], job_end, Priority.DOWNTIME, Category.RECOVERY, attempt=last, row=row))
    coming_up = claim(
        attempts.begin[dead + 1],
        attempts.up[dead + 1],
        Priority.DOWNTIME,
        np.where(clean, Category.STOPPED, Category.RECOVERY),
        attempt=dead + 1,
        row=attempts.begin_row[dead + 1],
        end_row=attempts.up_row[dead + 1],
    )
    parts.append(coming_up)
    unlogged = np.zeros(len(dead), dtype=bool)
    if progress is not None:  # the end of an attempt that had loaded or progressed is not logged
        unlogged = (attempts.first_ending[dead] < 0) & (progress.position_row[dead] >= 0)
        undetermined = dead[unlogged], progress.position, progress.position_row
        parts.append(_until_next_start(attempts, *undetermined, Category.UNDETERMINED))
    recovering, stopped, clean_row = dead[~unlogged & ~clean], dead[clean], endings.clean_row
    parts.append(_until_next_start(attempts, recovering, sign_of_life, attempts.first_ending, Category.RECOVERY))
    parts.append(_until_next_start(attempts, stopped, table.time[clean_row], clean_row, Category.STOPPED))
    return join(parts)


def _until_next_start(attempts: Attempts, dead: Rows, start: I64, row: Rows, category: Category) -> Claims:
    """Return the time from the end of each dead attempt to the next start. start, row: ns and event, one per
    attempt."""
    return claim(
        start[dead],
        attempts.begin[dead + 1],
        Priority.DOWNTIME,
        category,
        attempt=dead,
        row=row[dead],
        end_row=attempts.begin_row[dead + 1],
    )


def clock_steps(table: EventTable) -> tuple[tuple[int, int], ...]:
    """Return time that did not pass (accounting §5): how far the recorder saw its clock set forward, [begin, end) in
    ns."""
    reported = recorder_facts(table, CLOCK_STEP)
    return tuple((int(table.time[row]) - by, int(table.time[row])) for row, by in reported)


def lost_steps(table: EventTable) -> tuple[tuple[int, int], ...]:
    """Return the intervals (ns) in which step lines were lost, as reported by the recorder (accounting §5)."""
    return tuple(between for _, between in recorder_facts(table, LOST_STEPS))


def lost_lines(table: EventTable, training: TrainingOutcome) -> Claims:
    """Return the claims of unknown time: intervals in which step lines were lost, within spans that contain such
    steps."""
    parts: list[Claims] = []
    chosen = positions(training.lost_lines)
    start, end = training.spans.start[chosen], training.spans.end[chosen]
    for begin, stop in merged_exclusions(lost_steps(table)):
        here = np.flatnonzero((start < stop) & (end > begin))
        of_span = chosen[here]
        parts.append(
            claim(
                np.maximum(start[here], begin),
                np.minimum(end[here], stop),
                Priority.LOST_LINES,
                Category.OTHER,
                attempt=training.spans.attempt[of_span],
                row=training.spans.row[of_span],
                end_row=training.spans.end_rows(of_span),
            )
        )
    return join(parts)


def second_writers(table: EventTable) -> Rows:
    """Return the rows by which a process reports that another one writes its file too."""
    return np.array([row for row, _ in recorder_facts(table, SECOND_WRITER)], dtype=np.intp)


def recorder_facts(table: EventTable, name: str) -> Iterator[tuple[int, Any]]:
    """Yield the row and value of each line by which the recorder reports a fact about itself."""
    rows = np.flatnonzero(table.kind == Kind.HEARTBEAT)
    for row in rows[table.detail[rows] >= 0].tolist():
        for key, value in table.details[table.detail[row]]:
            if key == name:
                yield row, value


def planned_stops_excluded(downtime: Claims) -> Claims:
    """Return the planned stops of some downtime as excluded time (`--exclude-stopped`)."""
    stops = downtime.category == Category.STOPPED
    return claim(
        downtime.start[stops],
        downtime.end[stops],
        Priority.EXCLUDED,
        Category.EXCLUDED,
        attempt=downtime.attempt[stops],
        row=downtime.row[stops],
        end_row=downtime.end_row[stops],
    )

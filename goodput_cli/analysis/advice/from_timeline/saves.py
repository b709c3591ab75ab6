"""What the lines of a job say about its saves: which were made, how often, and which position each stores."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goodput_cli.analysis.advice.from_timeline.job import JobTimeline
from goodput_cli.analysis.advice.from_timeline.saved_intervals import SavedLines
from goodput_cli.events.schema import Edge, Kind


class SaveLog:
    """The lines of saves of a job."""

    def __init__(self, job: JobTimeline) -> None:
        self._job = job

    @cached_property
    def lines(self) -> SavedLines:
        """All lines of saves: Orbax intervals; pairs of finished and saved; and saved lines that show no beginning."""
        timeline, table = self._job.timeline, self._job.timeline.table
        owner = timeline.attempts.of_row
        orbax = np.flatnonzero((table.kind == Kind.SAVE) & (owner >= 0))
        pairs = timeline.progress.saves if timeline.progress is not None else np.zeros((0, 2), dtype=np.intp)
        alone = self._alone(orbax, pairs)
        first = np.concatenate((orbax, pairs[:, 0], alone))
        saved = np.concatenate((orbax, pairs[:, 1], alone))
        start, end = self._job.clock.counted(table.time[first]), self._job.clock.counted(table.end[saved])
        start[len(orbax) + len(pairs) :] = end[len(orbax) + len(pairs) :]
        seen = timeline.ordered.table.end[orbax] == table.end[orbax]
        completed, measured = np.ones(len(first), dtype=bool), np.ones(len(first), dtype=bool)
        completed[: len(orbax)], measured[len(orbax) + len(pairs) :] = seen, False
        measured[: len(orbax)] = table.edge[orbax] == Edge.INTERVAL
        return SavedLines(owner[saved].astype(np.int64), table.step[saved], start, end, end, completed, measured)

    def _alone(self, orbax: NDArray[np.intp], pairs: NDArray[np.intp]) -> NDArray[np.intp]:
        """The first `checkpoint_saved` of each step and attempt that no other line shows."""
        table, owner = self._job.timeline.table, self._job.timeline.attempts.of_row
        rows = np.flatnonzero((table.kind == Kind.SAVED) & (owner >= 0))
        known = {(int(owner[row]), int(table.step[row])) for row in (*orbax.tolist(), *pairs[:, 1].tolist())}
        alone: list[int] = []
        for row, attempt, step in zip(rows.tolist(), owner[rows].tolist(), table.step[rows].tolist(), strict=True):
            if (attempt, step) not in known:
                known.add((attempt, step))
                alone.append(row)
        return np.array(alone, dtype=np.intp)

    @cached_property
    def finished(self) -> dict[tuple[int, int], int]:
        """When (counted ns) each attempt first finished each step."""
        table, owner = self._job.timeline.table, self._job.timeline.attempts.of_row
        rows = np.flatnonzero((table.kind == Kind.FINISHED) & (owner >= 0))[::-1]
        time = self._job.clock.counted(table.time[rows])
        return dict(zip(zip(owner[rows].tolist(), table.step[rows].tolist(), strict=True), time.tolist(), strict=True))

    @cached_property
    def saved_steps(self) -> NDArray[np.int64]:
        """Distinct steps of the saves that came to an end."""
        return np.unique(self.lines.step[self.lines.completed])

    def interval(self, origin: int) -> int | None:
        """Today's interval: lower median distance of the steps that were saved."""
        steps = self.saved_steps
        if len(steps) < 2:
            return max(int(steps[0]) - origin, 1) if len(steps) else None
        apart = np.sort(np.diff(steps))
        return int(apart[(len(apart) - 1) // 2])

    @cached_property
    def shift(self) -> int:
        """From the position at which a save is made to the one it stores: what the restores of saved steps show. A
        restore of a step that was never saved is a beginning from somewhere else."""
        if not self._job.step_log:
            return 0
        table, attempts = self._job.timeline.table, self._job.timeline.attempts
        offsets: list[int] = []
        saved = np.isin(table.step, self.lines.step[self.lines.completed])
        restores = np.flatnonzero((table.kind == Kind.RESTORE) & (attempts.of_row >= 0) & saved)
        owner, begin = attempts.of_row[restores], self._job.timeline.training.spans.start
        for attempt in self._job.lived:
            before = restores[(owner == attempt) & (table.time[restores] <= begin[self._job.bounds[attempt]])]
            if len(before):
                offsets.append(int(self._job.began[attempt] - table.step[before[-1]]))
        if not offsets:
            return 0
        return min(offsets, key=lambda offset: (-offsets.count(offset), offset)) - self._job.behind

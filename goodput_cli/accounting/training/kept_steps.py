"""How many steps of each training span are kept (accounting §4): all of them or none, but for a few spans."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import among, search
from goodput_cli.accounting.training.spans import TrainingSpans
from goodput_cli.arrays import F64, Mask, Rows


class KeptSteps:
    """A column of float64, one value a span, of which only those are held that are neither 0 nor all of the span's
    steps. It is read and filled in as an array is, by a row, rows or a slice; `[:]` makes an array of it.

    whole: spans of which all steps are kept, where no other number is filled in.
    """

    def __init__(self, spans: TrainingSpans, whole: Mask) -> None:
        self._spans, self._whole = spans, whole
        self._rows: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._steps = np.zeros(0)

    def __len__(self) -> int:
        return len(self._whole)

    @property
    def some(self) -> Mask:
        """Of which spans any steps are kept."""
        some = self._whole & (self._spans.stop > self._spans.first)
        some[self._rows] = self._steps > 0
        return some

    def __getitem__(self, chosen: slice | Rows) -> F64:
        steps = np.where(self._whole[chosen], self._spans.stop[chosen] - self._spans.first[chosen], 0.0)
        if len(self._rows) == 0:
            return steps
        if isinstance(chosen, slice):
            start, stop, _ = chosen.indices(len(self))
            here = slice(*search(self._rows, np.array((start, stop))).tolist())
            steps[self._rows[here] - start] = self._steps[here]
            return steps
        filled_in = np.append(self._steps, 0)[search(self._rows, chosen)]
        return np.where(among(chosen, self._rows), filled_in, steps)

    def __setitem__(self, places: int | Rows, steps: float | F64) -> None:
        new = np.atleast_1d(np.asarray(places, dtype=np.intp)) % max(len(self), 1)
        if len(new) == 0:
            return
        old = ~among(self._rows, np.sort(new))
        rows = np.concatenate((self._rows[old], new))
        values = np.concatenate((self._steps[old], np.broadcast_to(np.asarray(steps, dtype=np.float64), new.shape)))
        order = np.argsort(rows, kind="stable")
        self._rows, self._steps = rows[order], values[order]

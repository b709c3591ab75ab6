"""What rolling windows answer: one row a window, held as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from goodput_cli.analysis.results import CategoryTime
from goodput_cli.vocabulary.text import plural

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True)
class WindowRow:
    """One window of `Rolling`: [start_ns, end_ns), cut to the job window."""

    window_ns: int
    """The length asked for."""
    start_ns: int
    """ns since 1970 UTC."""
    end_ns: int
    """ns since 1970 UTC."""
    excluded_ns: int
    """Time of it that the user excluded."""
    productive_ns: int
    """Time that became progress."""
    percent: float | None
    """Goodput; None where nothing counts."""
    badput: tuple[CategoryTime, ...]
    """Every category that is not zero, the largest first."""
    stepping: float | None
    """Slice efficiency; None where unknown."""


@dataclass(frozen=True, repr=False)
class Rolling:
    """Goodput of many windows (accounting §7), as columns of length n: `rows` makes them one by one."""

    window_ns: NDArray[np.int64]
    """The length asked for, of each row."""
    start_ns: NDArray[np.int64]
    """Start of each window, cut to the job window; ns since 1970 UTC."""
    end_ns: NDArray[np.int64]
    """End of each window, ns since 1970 UTC."""
    excluded_ns: NDArray[np.int64]
    """Time of each that the user excluded."""
    productive_ns: NDArray[np.int64]
    """Time of each that became progress."""
    categories: tuple[tuple[str, str | None], ...]
    """k pairs (category, label)."""
    badput_ns: NDArray[np.int64]
    """int64[k, n]: the amounts; `productive_ns` and they add up to the window without `excluded_ns`."""
    stepping: NDArray[np.float64]
    """Slice efficiency, NaN where unknown."""
    every_ns: int
    """Between two ends."""
    hindsight: bool
    """False where each window is as it was known at its end."""

    def __len__(self) -> int:
        return len(self.window_ns)

    def __repr__(self) -> str:
        return f"<{plural(len(self), 'window')}; .to_frame() has a row for each>"

    def to_frame(self) -> pd.DataFrame:
        """A row a window: its start and end (UTC), lengths and productive time in ns, and goodput in percent."""
        import pandas as pd

        counted = pd.Series(self.counted_ns)
        return pd.DataFrame(
            {
                "start": pd.to_datetime(self.start_ns, unit="ns", utc=True),
                "end": pd.to_datetime(self.end_ns, unit="ns", utc=True),
                "window_ns": self.window_ns,
                "counted_ns": counted,
                "productive_ns": self.productive_ns,
                "goodput_percent": 100 * self.productive_ns / counted.where(counted > 0),
            }
        )

    @property
    def counted_ns(self) -> NDArray[np.int64]:
        """Length of each window without what is excluded: its 100 %."""
        return self.end_ns - self.start_ns - self.excluded_ns

    def rows(self) -> Iterator[WindowRow]:
        """The windows, length by length and each in time order."""
        columns = (self.window_ns, self.start_ns, self.end_ns, self.excluded_ns, self.productive_ns, self.stepping)
        amounts = self.badput_ns.T.tolist()
        lists = (column.tolist() for column in columns)
        for window, start, end, excluded, productive, stepping, badput in zip(*lists, amounts, strict=True):
            counted = end - start - excluded
            yield WindowRow(
                window_ns=window,
                start_ns=start,
                end_ns=end,
                excluded_ns=excluded,
                productive_ns=productive,
                percent=100 * productive / counted if counted else None,
                badput=self._badput(badput, counted),
                stepping=None if stepping != stepping else stepping,  # NaN
            )

    def _badput(self, amounts: list[int], counted: int) -> tuple[CategoryTime, ...]:
        some = [
            CategoryTime(category, label, ns, 100 * ns / counted if counted else float("nan"))
            for (category, label), ns in zip(self.categories, amounts, strict=True)
            if ns
        ]
        return tuple(sorted(some, key=lambda row: (-row.ns, row.category, row.label or "")))

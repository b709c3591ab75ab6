"""What an answer offers to the output formats, and the blocks that a page for people is made of.

An answer is a `Document`: a `Sheet` is one, and `analysis/goodput/document.py` makes one of an `Analysis`. A format
takes what it can show: CSV and Parquet the tables, JUnit and OpenMetrics gates and figures, a terminal and Markdown the
blocks. It lays out each kind of block and knows no question; an answer says what there is and in which order, and knows
no format. Blocks hold exact values and text as the log has it: the format makes it safe.

What continuous integration and monitoring take of an answer: its figures as metrics, and its gates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from goodput_cli.accounting.bounds import Limits
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic

if TYPE_CHECKING:
    from goodput_cli.analysis.insights.kinds import Insight
    from goodput_cli.analysis.question import Price
    from goodput_cli.analysis.results import CategoryTime
    from goodput_cli.analysis.sheet import Family, Published, Sheet


class Document(Protocol):
    """What every answer offers."""

    def tables(self) -> Sequence[Sheet]:
        """Tables for programs. CSV holds the first, which people see as well; Parquet the last, the most detailed."""

    def gates(self) -> Published | None:
        """The thresholds as they were judged, with what stands beside them; None for answers that have none."""

    def figures(self) -> Iterable[Family]:
        """Metrics, without those of thresholds and diagnostics, which follow from the gates."""

    def blocks(self) -> Iterable[Block]:
        """What people read, from the top."""

    def json_answer(self) -> object:
        """The whole answer as JSON writes it. `UsageError` where it is a part of an answer only."""


@dataclass(frozen=True)
class Headline:
    """What the answer is about, and the answer in a line."""

    subject: str
    """The job, as the log has it."""
    measure: str
    """What the value is: `goodput`."""
    value: str
    """`50.00 %`, or `cannot be judged`."""
    amount: str
    """What it is made of: `1 h 40 min of 3 h 20 min`; or why it cannot be judged."""
    adjective: str
    """The value in a sentence: `50.00 %` of what is `productive`. Empty where it cannot be judged."""
    window: str
    """The window asked for and its length."""
    whole: str | None
    """The whole job, where the window is a part of it."""
    attempts: str
    """How often the job was started."""
    progress: str
    """Disruptions, steps, how it ended."""
    doubts: tuple[str, ...] = ()
    """Why the value may be that of another job."""


@dataclass(frozen=True)
class Gates:
    """The thresholds, with their verdicts."""

    thresholds: tuple[Threshold, ...]


@dataclass(frozen=True)
class Losses:
    """What was lost, what cost most and what to do."""

    counted_ns: int
    """The window without exclusions: the 100 %."""
    badput: tuple[CategoryTime, ...]
    """By category, the largest first."""
    insights: tuple[Insight, ...]
    """What cost most, the most costly first."""
    price: Price | None
    """Of the accelerators."""
    asked: tuple[str, ...]
    """The logs and the options that choose the job, for commands that show more."""
    disrupted: bool
    """Whether there is any disruption."""
    limits: Limits
    """Time (ns) that was lost: both sides are None where it cannot be judged."""

    @property
    def ns(self) -> int:
        """All badput of the ledger."""
        return sum(row.ns for row in self.badput)


@dataclass(frozen=True)
class Strip:
    """[start_ns, end_ns) in `len(categories)` cells of equal length, to the nanosecond."""

    start_ns: int
    """ns since 1970 UTC."""
    end_ns: int
    """ns since 1970 UTC."""
    categories: tuple[str, ...]
    """Per cell, the one with most time in it; of equal ones the first in the fixed order."""
    disruptions: tuple[int, ...]
    """Per cell, how many attempts were disrupted in it (their last sign of life lies there)."""


@dataclass(frozen=True)
class Picture:
    """The window in one line. A format says how many cells it has room for."""

    start_ns: int
    end_ns: int
    strip: Callable[[int], Strip]
    """From a number of cells, at most, to the strip."""


@dataclass(frozen=True)
class LedgerRow:
    """Time in one category, as people read it."""

    category: str
    """Its name."""
    name: str
    """The same with the label, where it has one."""
    title: str
    ns: int
    percent: str
    """Of the window, in words."""
    share: float
    """Percent of the window, for a bar; never below 0."""
    is_goodput: bool = False


@dataclass(frozen=True)
class Ledger:
    """Where the time went: rows that add up to the window."""

    rows: tuple[LedgerRow, ...]
    """The largest first."""
    total_ns: int


@dataclass(frozen=True)
class Facts:
    """Names, and a few words on each."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Line:
    """A sentence, with names of ours behind it where it lists some."""

    sentence: str
    names: tuple[str, ...] = ()
    """Of categories."""


@dataclass(frozen=True)
class Curve:
    """How a share went, as a line of small bars."""

    head: str
    """Which windows."""
    shares: Sequence[float | None]
    """Percent, window by window; None where nothing counts."""
    lowest: str
    last: str


@dataclass(frozen=True)
class Curves:
    """Several of them."""

    rows: tuple[Curve, ...]


@dataclass(frozen=True)
class Pairs:
    """A table of names and values, which Markdown folds."""

    title: str
    pin: str | None
    """The option that keeps what the title says, where that was found in the log itself."""
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Details:
    """A table that a reader unfolds. A terminal has a command for it instead."""

    what: str
    """What a row is: `disruption`."""
    count: int
    """How many rows there are."""
    sheet: Callable[[], Sheet]
    """Makes the table where it is shown."""


@dataclass(frozen=True)
class Findings:
    """Diagnostics of the log. On a terminal they go to standard error."""

    diagnostics: tuple[Diagnostic, ...]


Block: TypeAlias = (
    "Headline | Gates | Losses | Picture | Ledger | Facts | Line | Curves | Pairs | Details | Findings | Sheet"
)
"""All kinds that there are. A sheet is one as well: a table with its title, and what stands above and below it."""

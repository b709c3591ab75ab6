"""Interface between answers and output formats, and the blocks of a page for people.

An answer is a `Document`: a `Sheet` is one, and `analysis/goodput/document.py` makes one from an `Analysis`. A format
takes the parts that it can show: CSV and Parquet the tables, JUnit and OpenMetrics gates and figures, a terminal and
Markdown the blocks. A format lays out each kind of block and does not know the question. An answer determines the
blocks and their order, and does not know the format. Blocks contain exact values and unescaped text of the log: the
format escapes it.

Also the parts of an answer for continuous integration and monitoring: figures as metrics, and gates.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

from goodput_cli.accounting.options import Limits
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.vocabulary.categories import Category, brief_name, short_title

if TYPE_CHECKING:
    from goodput_cli.analysis.insights.kinds import Insight
    from goodput_cli.analysis.question import Price
    from goodput_cli.analysis.results import CategoryTime
    from goodput_cli.analysis.sheet import Family, PublishedAnswer, Sheet


class Document(Protocol):
    """Interface of every answer."""

    def tables(self) -> Sequence[Sheet]:
        """Return tables for programs. CSV has the first, which people see as well; Parquet the last, the most
        detailed."""

    def gates(self) -> PublishedAnswer | None:
        """Return the judged thresholds, with the text next to them; None for answers that have none."""

    def figures(self) -> Iterable[Family]:
        """Return metrics, without those of thresholds and diagnostics, which follow from the gates."""

    def blocks(self) -> Iterable[Block]:
        """Return the blocks for people, from the top."""

    def json_answer(self) -> object:
        """Return the whole answer for JSON. Raise `UsageError` for a part of an answer."""


@dataclass(frozen=True)
class Headline:
    """Subject of the answer, and the answer in one line."""

    subject: str
    """Name of the job, as logged."""
    measure: str
    """Name of the value: `goodput`."""
    value: str
    """`50.00 %`, or `unknown`."""
    amount: str
    """Amounts of the value: `1 h 40 min of 3 h 20 min`; or why it is unknown."""
    adjective: str
    """Adjective after the value: `productive` after `50.00 %`. Empty if the value is unknown."""
    window: str
    """Window of the question and its length."""
    whole: str | None
    """Figures of the whole job, if the window is a part of it."""
    attempts: str
    """Number of attempts."""
    progress: str
    """Disruptions, steps, end of the job."""
    doubts: tuple[str, ...] = ()
    """Reasons for which the value may be that of another job."""


@dataclass(frozen=True)
class Gates:
    """Thresholds with their verdicts."""

    thresholds: tuple[Threshold, ...]


@dataclass(frozen=True)
class Loss:
    """A row of what cost most: an insight, or a category that no insight explains."""

    ns: int
    percent: float
    """Percentage of the window."""
    text: str
    advice: str
    """Recommended action; empty for a category."""
    command: str
    """Command that shows more, as typed."""
    price: Price | None
    """Price of the accelerators; None in the queue, where none are allocated."""
    confirmed: bool = True
    insight: Insight | None = None
    row: CategoryTime | None = None

    @property
    def cost(self) -> float | None:
        return None if self.price is None else self.price.money(self.ns)

    @property
    def accelerator_hours(self) -> float | None:
        return None if self.price is None else self.price.hours(self.ns)

    @property
    def advice_sentence(self) -> str:
        return f"{self.advice[:1].upper()}{self.advice[1:]}." if self.advice else ""


WITHIN_GOODPUT = "Within goodput (kept training, not part of the loss)"
"""Heading of `Losses.within`."""
_LONG = 200
"""Length of a category's name from which no command contains it."""
_LEAST_PERCENT = 1
_LEAST_NS = 60 * 10**9
"""Minimum (percent of the window, and ns) for a category without an insight, as for most insights."""


@dataclass(frozen=True)
class Losses:
    """Losses, the largest costs and advice."""

    counted_ns: int
    """Window without exclusions: the base of percentages (ns)."""
    badput: tuple[CategoryTime, ...]
    """Badput by category, the largest first."""
    insights: tuple[Insight, ...]
    """Insights, the most costly first."""
    price: Price | None
    """Price of the accelerators."""
    asked: tuple[str, ...]
    """Logs and options that select the job, for commands that show more."""
    disrupted: bool
    """True if there is any disruption."""
    limits: Limits
    """Limits of the lost time (ns); both are None if it is unknown."""

    @property
    def ns(self) -> int:
        """Return all badput of the ledger (ns)."""
        return sum(row.ns for row in self.badput)

    @cached_property
    def lost(self) -> tuple[Loss, ...]:
        """What was lost, the largest first, and unconfirmed losses last. They do not overlap."""
        found = [
            self._of_insight(one, one.ns - one.in_goodput_ns) for one in self.insights if not _is_mostly_within(one)
        ]
        named = {name for one in self.insights for name in (*one.about.categories, *one.kind.covers)}
        found += [self._of_category(row) for row in self.badput if not named & {row.name, row.category}]
        return tuple(sorted(filter(self._is_large, found), key=lambda one: (not one.confirmed, -one.ns)))

    @cached_property
    def within(self) -> tuple[Loss, ...]:
        """Time that counts as goodput because the training was kept, the largest first. It may overlap."""
        return tuple(self._of_insight(one, one.in_goodput_ns) for one in self.insights if _is_mostly_within(one))

    def _is_large(self, loss: Loss) -> bool:
        large = loss.ns >= _LEAST_NS and loss.percent >= _LEAST_PERCENT
        return loss.insight is not None or large

    def _of_insight(self, one: Insight, ns: int) -> Loss:
        share = 100 * ns / self.counted_ns
        price = None if one.accelerator_hours is None else one.price
        return Loss(ns, share, one.text, one.advice, one.command_line(), price, one.confirmed, insight=one)

    def _of_category(self, row: CategoryTime) -> Loss:
        name = row.category if row.label is None else short_title(row.category, row.label)
        words = [shlex.join(self.asked) or "LOG", *(["--category", shlex.quote(name)] if len(name) < _LONG else [])]
        command = f"goodput timeline {' '.join(words)}"
        price = None if row.category == Category.QUEUED.id else self.price
        share = 100 * row.ns / self.counted_ns if self.counted_ns else 0.0
        return Loss(row.ns, share, brief_name(row.name), "", command, price, row=row)


def _is_mostly_within(insight: Insight) -> bool:
    """Return True if most of an insight's time counts as goodput."""
    return 2 * insight.in_goodput_ns > insight.ns


@dataclass(frozen=True)
class Strip:
    """[start_ns, end_ns) in `len(categories)` cells of equal length, to the nanosecond."""

    start_ns: int
    """Start, ns since 1970 UTC."""
    end_ns: int
    """End, ns since 1970 UTC."""
    categories: tuple[str, ...]
    """Category with the most time, per cell; of equal ones the first in the fixed order."""
    disruptions: tuple[int, ...]
    """Number of attempts whose disruption (last sign of life) is in the cell, per cell."""


@dataclass(frozen=True)
class Picture:
    """The window in one line. A format chooses the number of cells."""

    start_ns: int
    end_ns: int
    strip: Callable[[int], Strip]
    """Function from the maximum number of cells to the strip."""


@dataclass(frozen=True)
class LedgerRow:
    """Time in one category, for people."""

    category: str
    """Name of the category."""
    name: str
    """Name of the category with its label, if it has one."""
    title: str
    ns: int
    percent: str
    """Percentage of the window, in words."""
    share: float
    """Percentage of the window, for a bar; never below 0."""
    is_goodput: bool = False


@dataclass(frozen=True)
class CategoryLedger:
    """Time by category: rows that add up to the window."""

    rows: tuple[LedgerRow, ...]
    """Rows, the largest first."""
    total_ns: int


@dataclass(frozen=True)
class Facts:
    """Names, with a few words on each."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Sentence:
    """A sentence, followed by names from the vocabulary if it lists some."""

    sentence: str
    names: tuple[str, ...] = ()
    """Names of categories."""


@dataclass(frozen=True)
class Curve:
    """A share over time, as a line of small bars."""

    head: str
    """Description of the windows."""
    shares: Sequence[float | None]
    """Percentage per window; None if it has no counted time."""
    lowest: str
    last: str


@dataclass(frozen=True)
class Curves:
    """Several curves."""

    rows: tuple[Curve, ...]


@dataclass(frozen=True)
class Pairs:
    """A table of names and values, which Markdown folds."""

    title: str
    pin: str | None
    """Option that fixes the value in the title, if the value comes from the log itself."""
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Details:
    """A table that a reader unfolds. A terminal names a command instead."""

    what: str
    """Noun for a row: `disruption`."""
    count: int
    """Number of rows."""
    sheet: Callable[[], Sheet]
    """Function that makes the table when it is shown."""


@dataclass(frozen=True)
class Findings:
    """Diagnostics of the log. On a terminal they go to standard error."""

    diagnostics: tuple[Diagnostic, ...]


Block: TypeAlias = (
    "Headline | Gates | Losses | Picture | CategoryLedger | Facts | Sentence | Curves | Pairs | Details | Findings | "
    "Sheet"
)
"""All kinds of blocks. A sheet is one as well: a table with its title, and the text above and below it."""

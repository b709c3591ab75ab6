"""What is asked of a fleet besides how its jobs are accounted for: each an option, declared once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, TypedDict

from goodput_cli.analysis.measures import ENDED
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.amounts import bounded, read_length
from goodput_cli.vocabulary.option import option
from goodput_cli.vocabulary.units import NS_PER_DAY

LABELS, GROUPS, RUN, WHAT, WHEN = "Labels", "Groups", "How to run", "What", "When"
WEEK, SIZE = "week", "size"
DIMENSIONS = ("team", "cluster", "accelerator", SIZE, WEEK)
"""Dimensions that always exist; every other column of labels is one too."""
FAILURES = ("crashed", "terminated", "silent", "slice_down")
"""How attempts end that failed."""


def _read_ns(value: Any) -> int:
    """A length of time from text; in ns where it was read before."""
    return value if isinstance(value, int) else read_length(value)


def _read_names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    if isinstance(text, tuple):
        return text
    names = tuple(part.strip().lower() for part in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise UsageError(f"{text!r} are no names with commas between them, such as team,week")
    return names


def _read_failures(text: str) -> tuple[str, ...]:
    names = _read_names(text)
    unknown = [name for name in names if name not in ENDED]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is no way to end; there are {', '.join(ENDED)}")
    return names


def _read_sizes(text: Any) -> tuple[int, ...]:
    try:
        sizes = text if isinstance(text, tuple) else tuple(int(part) for part in str(text).split(","))
    except ValueError:
        sizes = ()
    if not sizes or sizes[0] < 1 or any(first >= second for first, second in pairwise(sizes)):
        raise UsageError(f"{text!r} are no sizes; write rising numbers of accelerators, such as 8,64,512")
    return sizes


def _read_currency(text: str) -> str:
    if not (text.isascii() and text.isalpha() and 2 <= len(text) <= 5):
        raise UsageError(f"{text!r} is no currency; write a code such as USD")
    return text.upper()


_COUNT = bounded(int, "is not a number of accelerators; write a whole number from 1", least=1, most=1e9)


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """How the runs of a fleet are chosen, labelled and summed up."""

    runs: Literal["each", "all", "last"] = option(
        "each",
        WHAT,
        "Every run of a name on its own, all of them as one job, or the last.",
        choices=("each", "all", "last"),
        settings={"show_default": True},
    )
    distinct_by: Literal["name", "cluster", "source-folder"] = option(
        "name",
        WHAT,
        "What makes two jobs of one name two.",
        choices=("name", "cluster", "source-folder"),
        settings={"show_default": True},
    )
    last: int | None = option(
        None, WHEN, "The last DURATION before --to, or before the latest event.", metavar="DURATION", read=_read_ns
    )
    """ns."""
    alive_within: int = option(
        NS_PER_DAY,
        WHEN,
        "--as-of counts for runs heard of so shortly before.  [default: 1d]",
        metavar="DURATION",
        read=_read_ns,
    )
    """ns."""
    accelerators: int | None = option(None, LABELS, "For runs without a number of their own.", metavar="N", read=_COUNT)
    price_per_hour: Fraction | None = option(
        None,
        LABELS,
        "Of an accelerator for an hour, for runs without one.",
        metavar="P",
        read=bounded(Fraction, "is not an amount; write a number above 0", above=0),
    )
    currency: str = option(
        "USD", LABELS, "Of prices.", metavar="CODE", read=_read_currency, settings={"show_default": True}
    )
    count_unlogged: bool = option(False, LABELS, "Allocations without a log count as allocated too.")
    saved_only: bool = option(False, GROUPS, "Runtime goodput without progress after the last save.")
    by: tuple[tuple[str, ...], ...] = option(
        (), GROUPS, "A table by team, cluster, size, week …; team,week crosses two.", metavar="DIM", read=_read_names
    )
    sizes: tuple[int, ...] | None = option(
        None, GROUPS, "Upper bounds of size classes.  [default: 8,64,512,4096,32768]", metavar="LIST", read=_read_sizes
    )
    failures: tuple[str, ...] | None = option(
        None,
        GROUPS,
        f"Which ends are failures.  [default: {','.join(FAILURES)}]",
        metavar="LIST",
        read=_read_failures,
    )
    weight: Literal["chips", "time"] = option(
        "chips",
        GROUPS,
        "Whether a run counts by its accelerators, or each the same.",
        choices=("chips", "time"),
        settings={"show_default": True},
    )
    top: int = option(
        20,
        GROUPS,
        "How many of the worst disruptions.",
        metavar="N",
        read=bounded(int, "is not a number from 0", least=0, most=1e6),
        settings={"show_default": True},
    )
    sort: Literal["lost", "goodput", "name", "hours"] = option(
        "lost",
        GROUPS,
        "Order of groups.",
        choices=("lost", "goodput", "name", "hours"),
        settings={"show_default": True},
    )
    limit: int | None = option(
        None,
        GROUPS,
        "Only the first N groups of a table.",
        metavar="N",
        read=bounded(int, "is not a number from 1", least=1, most=1e9),
    )

    @property
    def size_bounds(self) -> tuple[int, ...]:
        """Upper bounds of size classes."""
        return self.sizes or (8, 64, 512, 4096, 32768)

    @property
    def failing(self) -> tuple[str, ...]:
        """How attempts end that failed."""
        return self.failures or FAILURES


class GroupingOptions(TypedDict, total=False):
    """How to choose, label and sum up, for editors and type checkers: the arguments that a `Grouping` is made of. Each
    is described at the field of its name; what is left out or None is as by default."""

    runs: Literal["each", "all", "last"]
    distinct_by: Literal["name", "cluster", "source-folder"]
    last: str | int | None
    alive_within: str | int
    accelerators: int | None
    price_per_hour: str | float | Fraction | None
    currency: str
    count_unlogged: bool
    saved_only: bool
    by: Sequence[str]
    sizes: str | tuple[int, ...] | None
    failures: str | tuple[str, ...] | None
    weight: Literal["chips", "time"]
    top: int
    sort: Literal["lost", "goodput", "name", "hours"]
    limit: int | None


def size_class(bounds: tuple[int, ...], accelerators: int | None) -> str:
    """The class of a run with so many accelerators at most: `9 - 64`, `over 32768`, `unknown`."""
    if accelerators is None:
        return UNKNOWN_SIZE
    low = 1
    for bound in bounds:
        if accelerators <= bound:
            return f"{low} - {bound}" if low < bound else str(bound)
        low = bound + 1
    return f"over {bounds[-1]}"


UNKNOWN_SIZE = "unknown"


def size_classes(bounds: tuple[int, ...]) -> list[str]:
    """All classes, in order."""
    return [*(size_class(bounds, bound) for bound in bounds), f"over {bounds[-1]}", UNKNOWN_SIZE]

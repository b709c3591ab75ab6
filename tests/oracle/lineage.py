"""Kept progress, and the usual time of a step (accounting §4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from .attempts import median

EVERYTHING, NOTHING = float("inf"), float("-inf")


@dataclass
class TrainingSpan:
    """A span of training of one attempt, [start, end) ns, over `steps` steps; the first `kept` are kept.

    first: it may contain a start-up: the attempt's first, or the first after an elastic re-initialization (`reinit`).
    role: "plain", "credited" (last step of a dead attempt) or "final" (last step of the job). excluded: ns that the
    user excluded. lost_lines: True if lines of its steps were lost. net: ns without claims of a higher rank, once
    painted.
    """

    attempt: int
    start: int
    end: int
    steps: Fraction
    kept: Fraction
    first: bool = False
    reinit: bool = False
    role: str = "plain"
    excluded: int = 0
    lost_lines: bool = False
    net: int = 0

    @property
    def gross(self) -> int:
        return self.end - self.start

    @property
    def is_sample(self) -> bool:
        """Return True if it is wholly kept, measured, not touched by an exclusion, and without lost lines: it shows the
        time of a step."""
        return self.role == "plain" and self.kept == self.steps and not self.excluded and not self.lost_lines


def lineage(step_ranges: list[tuple[int, int] | None], reach: list[int]) -> dict[int, int | None]:
    """Return the attempts of the final progress: index -> the step up to which its steps are kept (None: all it
    recorded).

    step_ranges: per attempt the step that it began at and the last that it recorded; None if it recorded none. reach:
    number of steps that it may miss and still count as reached (step logs: its stride, otherwise 0).
    """
    stepped = [(index, *step_range) for index, step_range in enumerate(step_ranges) if step_range is not None]
    if not stepped:
        return {}
    current, r, _ = stepped[-1]
    kept: dict[int, int | None] = {current: None}
    while earlier := [(i, began, last) for i, began, last in stepped if i < current and began <= r]:
        reached = [one for one in earlier if one[2] >= r - reach[one[0]]]
        current, began, _ = reached[-1] if reached else max(earlier, key=lambda one: (one[2], one[0]))
        kept[current] = r
        r = began
    return kept


def kept_of(a: int, b: int, upto: float) -> Fraction:
    """Return how many of the steps a..b-1 are below `upto`."""
    return Fraction(b - a) if upto >= b else Fraction(int(upto) - a) if upto > a else Fraction(0)


def net(span: TrainingSpan) -> int:
    return span.net


def gross(span: TrainingSpan) -> int:
    return span.gross


def sample(spans: list[TrainingSpan], attempt: int, last_step: bool) -> list[TrainingSpan]:
    """Return the spans for an attempt's usual step time; for a last step its own first span precedes those of
    others."""
    non_first = [s for s in spans if s.is_sample and not s.first]
    own = [s for s in non_first if s.attempt == attempt]
    own_first = [s for s in spans if s.is_sample and s.first and not s.reinit and s.attempt == attempt]
    return own or (own_first if last_step else []) or non_first


def paces(spans: list[TrainingSpan], time: Callable[[TrainingSpan], int] = net) -> list[Fraction]:
    """Return the time per step, ns."""
    return [Fraction(time(span)) / span.steps for span in spans]


def usual_for_last_step(
    spans: list[TrainingSpan], attempt: int, time: Callable[[TrainingSpan], int]
) -> Fraction | None:
    """Return the usual step time (ns) by which a last step is judged; None if the job shows none."""
    return median(paces(sample(spans, attempt, last_step=True), time))

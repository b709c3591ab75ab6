"""Which progress was kept, and how long a step usually takes (accounting §4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from .attempts import median

EVERYTHING, NOTHING = float("inf"), float("-inf")


@dataclass
class TrainingSpan:
    """A piece of training of one attempt, [start, end) ns, over `steps` steps, of which the first `kept` are kept.

    first: a start-up may be in it: the attempt's first, or the first behind an elastic re-initialisation (`reinit`).
    role: "plain", "credited" (last step of a dead attempt) or "final" (last step of the job).
    excluded: ns that the user took out. lost_lines: whether lines of its steps were lost.
    net: ns that nothing of a higher rank claims, once painted.
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
        """Wholly kept, measured, not touched by an exclusion, and no line of it lost: it says how long a step takes."""
        return self.role == "plain" and self.kept == self.steps and not self.excluded and not self.lost_lines


def lineage(step_ranges: list[tuple[int, int] | None], reach: list[int]) -> dict[int, int | None]:
    """The attempts of the final progress: index -> the step up to which its steps are kept (None: all it recorded).

    step_ranges: per attempt the step that it began at and the last that it recorded; None if it recorded none.
    reach: by how much it may miss a step and still have reached it (step logs: its stride, else 0).
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
    """How many of the steps a..b-1 lie below `upto`."""
    return Fraction(b - a) if upto >= b else Fraction(int(upto) - a) if upto > a else Fraction(0)


def net(span: TrainingSpan) -> int:
    return span.net


def gross(span: TrainingSpan) -> int:
    return span.gross


def sample(spans: list[TrainingSpan], attempt: int, last_step: bool) -> list[TrainingSpan]:
    """The spans that tell an attempt's usual step time; for a last step its own first one comes before others'."""
    non_first = [s for s in spans if s.is_sample and not s.first]
    own = [s for s in non_first if s.attempt == attempt]
    own_first = [s for s in spans if s.is_sample and s.first and not s.reinit and s.attempt == attempt]
    return own or (own_first if last_step else []) or non_first


def paces(spans: list[TrainingSpan], time: Callable[[TrainingSpan], int] = net) -> list[Fraction]:
    """Time per step, ns."""
    return [Fraction(time(span)) / span.steps for span in spans]


def usual_for_last_step(
    spans: list[TrainingSpan], attempt: int, time: Callable[[TrainingSpan], int]
) -> Fraction | None:
    """Usual step time (ns) by which a last step is judged; None if the job shows none."""
    return median(paces(sample(spans, attempt, last_step=True), time))

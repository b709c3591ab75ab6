"""What made the difference between two runs, as a picture shows it: points of goodput by category."""

from __future__ import annotations

from dataclasses import dataclass

from goodput_cli.analysis.compare.compare import Pair
from goodput_cli.analysis.compare.phrases import contribution_name, moved_lines, side_name, verdict
from goodput_cli.analysis.sheet import Chart

_MOST = 20


@dataclass(frozen=True)
class ChangeChart(Chart):
    """Bars from a line in the middle: worse to the left, better to the right."""

    title: tuple[str, str]
    """The two sides, and what became of goodput."""
    moved: tuple[tuple[str, float], ...]
    """Category and points, the largest change first."""


def change_chart(pair: Pair) -> ChangeChart | None:
    """None where no category that both sides record changed."""
    moved = [(contribution_name(one), float(one.points)) for one in pair.contributions if one.points]
    if not moved:
        return None
    largest = sorted(moved, key=lambda one: (-abs(one[1]), one[0]))[:_MOST]
    return ChangeChart(
        words=f"What made the difference. {'; '.join(moved_lines(pair))}.",
        title=(f"From {side_name(pair.baseline)} to {side_name(pair.side)}", verdict(pair)),
        moved=tuple(largest),
    )

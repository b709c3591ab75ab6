"""The strip at the top of `analyze`: the whole window in one line. Each cell has the category that fills most of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.document import strip_of as strip
from goodput_cli.analysis.results import Window
from goodput_cli.report.base import Page
from goodput_cli.report.terminal import strip_lines
from goodput_cli.vocabulary.categories import CATEGORIES, Category
from tests.accounting.test_properties import analyse, slowly
from tests.strategies import any_logs
from tests.support.answers import BASE, MINUTE, picture, primer
from tests.support.commands import on_a_terminal

LOG = Path(__file__).parent.parent.parent / "sample_logs" / "llm-pretrain.jsonl"


@cache
def night() -> Analysis:
    """Return the analysis of the sample log."""
    return goodput_cli.analyze(LOG)


def lines(analysis: Analysis, width: int, **page: object) -> list[str]:
    return [line.plain for line in strip_lines(picture(analysis), width, Page(**page))]  # type: ignore[arg-type]


def filling(analysis: Analysis, start: int, end: int) -> str:
    """Return the category with most time in [start, end), computed segment by segment."""
    amounts: Counter[int] = Counter()
    segments = analysis.timeline.segments
    columns = (segments.start, segments.end, segments.category)
    for begin, stop, category in zip(*(column.tolist() for column in columns), strict=True):
        amounts[category] += max(0, min(stop, end) - max(begin, start))
    return CATEGORIES[min(amounts, key=lambda category: (-amounts[category], category))]


@slowly
@given(log=any_logs(), cells=st.integers(1, 60))
def test_each_cell_has_the_category_that_fills_most_of_it(log: list[str], cells: int) -> None:
    analysis = analyse(log)
    if analysis is None or analysis.timeline.ledger.has_slowdown:
        return  # slowdown is a share of productive segments: the example below has it
    drawn = strip(analysis, cells)
    start, length = analysis.window.start_ns, analysis.window.ns
    bounds = [start + length * cell // cells for cell in range(cells + 1)]
    expected = [filling(analysis, *bounds[cell : cell + 2]) for cell in range(cells)]
    assert list(drawn.categories) == expected


@slowly
@given(log=any_logs(), cells=st.integers(1, 60))
def test_every_disruption_of_the_window_is_marked_once(log: list[str], cells: int) -> None:
    analysis = analyse(log)
    if analysis is not None:
        assert sum(strip(analysis, cells).disruptions) == len(analysis.disruptions)


def test_short_window_has_a_cell_per_nanosecond() -> None:
    analysis = primer(window=Window(BASE, BASE + 3, 0))
    assert strip(analysis, 80).categories == ("unproductive_checkpoint_restore_time",) * 3


def test_worked_example_is_shown_in_order() -> None:
    cells, clock, *legend = lines(primer(), 100, unicode=False)
    assert re.sub(r"(.)\1+", r"\1", cells) == "R=CX!R=C"  # Slow steps are mostly productive.
    assert clock.startswith("|00:00")
    assert "|03:00" in clock
    assert " ".join(legend).split("  ")[0] == "= productive"


def test_clock_labels_are_below_their_times() -> None:
    cells, clock, *_ = lines(primer(), 100)
    assert len(cells) == 100
    for tick in re.finditer(r"\|(\d\d):(\d\d)", clock):
        after = (int(tick[1]) * 60 + int(tick[2])) * MINUTE
        assert tick.start() == after * 100 // (200 * MINUTE)


@pytest.mark.parametrize(
    ("length", "shape"),
    [
        (MINUTE // 2, r"\d\d:\d\d:\d\d"),
        (3000 * MINUTE, r"\d\d:\d\d"),
        (40 * 1440 * MINUTE, r"\d\d-\d\d"),
        (3000 * 1440 * MINUTE, r"\d{4}-\d\d"),
    ],
)
def test_clock_fits_the_length(length: int, shape: str) -> None:
    clock = lines(primer(window=Window(BASE, BASE + length, 0)), 78)[1]
    assert re.fullmatch(rf"\s*\|{shape}(\s+\|{shape})+", clock)


@pytest.mark.parametrize("width", [1, 39, 40, 41, 72, 78, 158])
@pytest.mark.parametrize("page", [{}, {"colour": True}, {"unicode": False}])
def test_no_line_is_wider_than_requested(width: int, page: dict[str, object]) -> None:
    drawn = lines(night(), width, **page)
    assert len(drawn[0]) == max(width, 40)
    assert max(cell_len(line) for line in drawn) <= max(width, 40)
    if not page.get("unicode", True):
        assert all(line.isascii() for line in drawn)


def test_several_disruptions_in_a_cell_are_a_number() -> None:
    marks = lines(night(), 78)[1]
    assert re.fullmatch(r"\s*▲\s+2\s+▲\s+▲", marks)
    assert any("digit = several" in line for line in lines(night(), 78))


def command(**variables: str) -> str:
    """Return the output of `goodput analyze` on a terminal, from a process of its own: rich keeps the colors of the
    first terminal."""
    run = f"import pty, sys; sys.exit(pty.spawn([{sys.executable!r}, '-m', 'goodput_cli', 'analyze', {str(LOG)!r}]))"
    clean = {name: value for name, value in os.environ.items() if name not in ("COLORTERM", "TERM")}
    environment = {**clean, "PYTHONIOENCODING": "utf-8", **variables}
    return subprocess.run([sys.executable, "-c", run], env=environment, capture_output=True, check=True).stdout.decode()


def test_terminal_gets_as_many_colors_as_it_has() -> None:
    green = Category.PRODUCTIVE.look.colour
    red, grass, blue = (int(green[at : at + 2], 16) for at in (1, 3, 5))
    assert f"48;2;{red};{grass};{blue}" in command(TERM="xterm-256color", COLORTERM="truecolor")
    assert "48;5;" in command(TERM="xterm-256color")
    plain = command(TERM="xterm")
    assert "\x1b[30;42m" in plain
    assert "48;" not in plain


def test_no_color_leaves_letters() -> None:
    shown = on_a_terminal("analyze", str(LOG), TERM="xterm-256color", NO_COLOR="1")
    assert "━━━" in shown
    assert "48;5" not in shown
    assert "\x1b[30" not in shown

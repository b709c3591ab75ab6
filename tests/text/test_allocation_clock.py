"""Rows of `sacct` in local time next to text in UTC: all allocations differ from their text by the same zone offset."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from goodput_cli.analysis.goodput.analysis import Analysis
from tests.text.support import analysed, codes, seconds

ROW = "{number}|llm|{state}|{submitted}|{begin}|{end}\n"
DAY = datetime(2026, 5, 1)


def at(minutes: float) -> str:
    return (DAY + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%S")


def text(folder: Path, number: int, begin: int, first: int) -> None:
    """Write an hour of 60 steps that begins 2 min after its allocation."""
    lines = [f"[before the start of training step] datetime: {at(begin + 2).replace('T', ' ')}\n"]
    for step in range(60):
        stamp = at(begin + 3 + step).replace("T", " ")
        name = f"iteration {first + step}/ 1000"
        lines.append(f" [{stamp}] {name} | elapsed time per iteration (ms): 60000.0 |\n")
    folder.mkdir(exist_ok=True)
    (folder / f"slurm-{number}.out").write_text("".join(lines))


def table(folder: Path, *rows: tuple[int, str, int, int], off: int = 0, zone: str = "") -> None:
    """Write a table. rows: number, state, begin and end in minutes. off: minutes by which all are later."""
    lines = ["JobID|JobName|State|Submit|Start|End\n"]
    for number, state, begin, end in rows:
        times = [f"{at(one + off)}{zone}" for one in (begin - 1, begin, end)]
        lines.append(ROW.format(number=number, state=state, submitted=times[0], begin=times[1], end=times[2]))
    (folder / "sacct.txt").write_text("".join(lines))


TWO = ((812, "FAILED", 600, 665), (813, "COMPLETED", 670, 735))


def two(folder: Path, off: int, zone: str = "", timezone: str = "auto") -> Analysis:
    text(folder, 812, 600, 1)
    text(folder, 813, 670, 61)
    table(folder, *TWO, off=off, zone=zone)
    return analysed(folder, timezone=timezone)


def warning_of(analysis: Analysis) -> str:
    return next(one.message for one in analysis.diagnostics if one.code == "allocation_clock")


@pytest.mark.parametrize("off", [60, -60, 120, 330, -570, 720])
def test_sacct_rows_in_local_time_get_the_zone_of_the_text(tmp_path: Path, off: int) -> None:
    truth, shifted = two(tmp_path / "truth", 0), two(tmp_path / "shifted", off)
    assert "allocation_clock" not in codes(truth)
    assert seconds(shifted) == seconds(truth)
    assert (shifted.job.start_ns, shifted.job.attempts) == (truth.job.start_ns, 2)
    assert ("ahead of" if off > 0 else "behind") in warning_of(shifted)
    assert "are shifted to match" in warning_of(shifted)
    assert "requeues_hidden" not in codes(shifted)


@pytest.mark.parametrize("off", [0, -1, 1])
def test_small_clock_difference_gives_no_warning(tmp_path: Path, off: int) -> None:
    assert "allocation_clock" not in codes(two(tmp_path / "run", off))


def test_sacct_rows_with_a_known_zone_stay_unchanged(tmp_path: Path) -> None:
    for analysis in (two(tmp_path / "exact", 60, zone="Z"), two(tmp_path / "given", 60, timezone="UTC")):
        assert "is outside the time" in warning_of(analysis)
        assert analysis.job.attempts > 2


def test_allocations_with_different_offsets_give_a_warning(tmp_path: Path) -> None:
    """The second began 40 min before its text: 20 min is not a zone offset."""
    folder = tmp_path / "run"
    text(folder, 812, 600, 1)
    text(folder, 813, 710, 61)
    table(folder, (812, "FAILED", 600, 665), (813, "COMPLETED", 670, 775), off=60)
    assert "is outside the time" in warning_of(analysed(folder))


def test_hidden_requeue_is_not_a_zone_offset(tmp_path: Path) -> None:
    """The text has two attempts, but only the second has a row."""
    folder = tmp_path / "run"
    text(folder, 812, 600, 1)
    first = (folder / "slurm-812.out").read_text()
    text(folder, 812, 670, 61)
    (folder / "slurm-812.out").write_text(first + (folder / "slurm-812.out").read_text())
    table(folder, (812, "COMPLETED", 670, 735))
    found = codes(analysed(folder))
    assert "requeues_hidden" in found
    assert "allocation_clock" not in found


def test_allocation_without_text_gives_no_warning(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    text(folder, 812, 600, 1)
    (folder / "slurm-812.out").rename(folder / "train.log")
    table(folder, TWO[0], off=60)
    assert "allocation_clock" not in codes(analysed(folder))

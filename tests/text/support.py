"""Helpers for tests of text: logs in a folder, and the seconds by category of their job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis

SAMPLES = Path(__file__).parent / "samples"


def written(folder: Path, **files: str) -> Path:
    """Return a folder with files of these names (`_` replaces the dot before the ending)."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        stem, _, ending = name.rpartition("_")
        (folder / f"{stem.replace('__', '-')}.{ending}").write_text(text, encoding="utf-8")
    return folder


def analysed(*sources: Path | str, **options: Any) -> Analysis:
    """Return the analysis of the only job in these sources."""
    return goodput_cli.analyze([str(source) for source in sources], **options)


def seconds(analysis: Analysis) -> dict[str, float]:
    """Return the seconds by category, without zeros; custom events by label."""
    times = (analysis.goodput, *analysis.badput)
    return {one.label or one.category: one.ns / 1e9 for one in times if one.ns}


def codes(analysis: Analysis) -> set[str]:
    """Return the codes of the diagnostics."""
    return {one.code for one in analysis.diagnostics}


NANOGPT = """\
name = "nanogpt"
steps = "index"

[[rule]]
event = "step"
line = "iter {step:int}: loss {_}, time {each:float}ms"
each = { unit = "ms" }
time = "cursor"

[[rule]]
event = "save"
line = "saving checkpoint to {_}"

[[sample]]
line = "iter 100: loss 4.1021, time 251.13ms, mfu 17.20%"
gives = { event = "step", step = 101, each = 0.25113 }
"""
"""A mapping for the output of nanoGPT."""

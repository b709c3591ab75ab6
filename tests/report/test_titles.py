"""One heading per concept: docs/glossary.md defines every heading that tables show, except self-explanatory ones."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.documents import section
from tests.support.generated_docs import headings

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
HEADINGS = section(GLOSSARY, "Headings of tables")
DEFINED = re.findall(r"^- \*(.+?)\*: .", HEADINGS, re.MULTILINE)
SELF_EXPLANATORY = " ".join(
    """\
ETTR; MTTF; MTTR; accelerator h; accelerators; action; allocated h; allocations; amount; attempt; attempts; average;
busy; category; change; cluster; code; cost; count; custom; data; device; difference; disruptions; downtime;
effect; elastic; end; ended; event; every steps; evidence; failures; first at; from; goodput; goodput by job time;
group; host; how many; improvement; job; job h; jobs; kWh; last at; limit; lines; longest; lost; mean; measure;
median; memory, most; metric; most lost in; most lost to; name; never started; no.; other; outages; p10; p50
wait; p90; p95 wait; phase; points; productive; queued; rank; ranks; ranks on it; reason; recovery phase;
regained; replayed; requeued; restore; result; role; rows; rule; run; runs; runs died; samples; saves; severity;
share; share of job time; side; size; slices; slowdown; source; stalls; start; start-up; state; step time;
steps; steps lost; team; threshold; time; to; took; unit; up; verdict; wait; waited; wasted; week; where; why; window;
work""".split()
).split("; ")
"""Headings that are words of the glossary or need no definition, in order."""
TITLES = DEFINED + SELF_EXPLANATORY


def test_every_heading_is_declared_and_used() -> None:
    assert sorted(headings()) == sorted(TITLES)


def test_headings_are_in_order() -> None:
    assert sorted(DEFINED) == DEFINED
    assert sorted(SELF_EXPLANATORY) == SELF_EXPLANATORY


def test_shared_column_has_one_heading() -> None:
    places = headings()
    assert places["category"] == {"accelerators", "compare", "compat", "fleet", "timeline"}
    assert places["ended"] == {"disruptions", "fleet", "jobs"}
    assert places["accelerator h"] == {"advice", "disruptions", "fleet"}
    assert places["start"] == {"check", "compare", "fleet", "jobs", "steps", "timeline"}


def test_headings_are_lower_case_except_names() -> None:
    assert {one for one in TITLES if one != one.lower()} == {"ETTR", "MTTF", "MTTR", "kWh", "kWh lost"}

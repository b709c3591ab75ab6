"""What `goodput rolling --format json` answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from goodput_cli.analysis.answer import Answer, Instant, NamedJob, Part, Row, Rows, named_job, row_of
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.rolling.results import Rolling
from goodput_cli.analysis.rolling.sheet import COLUMNS, parts
from goodput_cli.analysis.table import json_rows
from goodput_cli.vocabulary.text import iso

RollingRows = Sequence[Annotated[Row, row_of("rolling_row", "one window", COLUMNS)]]


class RollingSpan(Part):
    start: Instant
    """windows end after this instant"""
    end: Instant
    """the last window ends here"""


class RollingAnswer(Answer, kw_only=True):
    """goodput rolling --format json"""

    kind: Literal["rolling"] = "rolling"
    job: NamedJob
    window: RollingSpan
    every_seconds: float
    """time between two window ends"""
    hindsight: bool
    """false: each window as it was known at its end"""
    rolling: RollingRows


def rolling_answer(analysis: Analysis, rolling: Rolling) -> RollingAnswer:
    """The windows of an analysis."""
    return RollingAnswer(
        job=named_job(analysis),
        window=RollingSpan(start=iso(analysis.window.start_ns), end=iso(analysis.window.end_ns)),
        every_seconds=rolling.every_ns / 1e9,
        hindsight=rolling.hindsight,
        rolling=rolling_rows(rolling),
    )


def rolling_rows(rolling: Rolling) -> Rows:
    """The windows alone."""
    return json_rows(COLUMNS, len(rolling), lambda: parts(rolling))

"""What `goodput check --format json` answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from goodput_cli.analysis.answer import Answer, Count, Row, row_of
from goodput_cli.analysis.check.check import CheckReport
from goodput_cli.analysis.check.sheet import COLUMNS
from goodput_cli.analysis.table import json_rows


class CheckAnswer(Answer, kw_only=True):
    """goodput check --format json"""

    kind: Literal["check"] = "check"
    jobs: Count
    """jobs checked"""
    runs: Count
    """their runs: more than jobs where a name was used again"""
    events: Count
    """events checked, duplicates included"""
    findings: Sequence[Annotated[Row, row_of("finding", "one thing that is wrong, or worth knowing", COLUMNS)]]
    """the gravest first, then by code and job"""


def check_answer(report: CheckReport) -> CheckAnswer:
    """Everything that was found."""
    return CheckAnswer(
        jobs=report.jobs,
        runs=report.runs,
        events=report.events,
        findings=json_rows(COLUMNS, len(report.findings), lambda: [report.findings]),
    )

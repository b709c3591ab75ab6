"""Columns of jobs about the progress at risk, and about the rank that held the job up at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.goodput.analyse import at_risk
from goodput_cli.analysis.hangs.hang import blocked_by, hangs_of_timeline
from goodput_cli.analysis.sheet import Audience, Column
from goodput_cli.analysis.table import JobFacts

_NAME = "hangs"


def _facts(timeline: Timeline) -> dict[str, Any]:
    risk, hangs = at_risk(timeline), hangs_of_timeline(timeline)
    return {
        "at_risk_ns": None if risk is None else risk.ns,
        "at_risk_steps": None if risk is None else risk.steps,
        "blocked_by": blocked_by(hangs.get(len(timeline.attempts) - 1)),
    }


def _of(key: str) -> Callable[[Sequence[Any]], list[Any]]:
    return lambda jobs: [one.facts.get(_NAME, {}).get(key) for one in jobs]


JOB_COLUMNS = JobFacts(
    name=_NAME,
    of=_facts,
    columns=(
        Column(
            "at_risk", "duration", Audience.PROGRAMS, _of("at_risk_ns"),
            "kept progress after the last complete checkpoint; null: the log has no saves", nullable=True, later=True,
        ),
        Column(
            "at_risk_steps", "number", Audience.PROGRAMS, _of("at_risk_steps"), "the same in steps", nullable=True,
            later=True,
        ),
        Column(
            "blocked_by", "text", Audience.ALL, _of("blocked_by"),
            "ranks or hosts that held the job up at its last end (docs/hangs.md); null if none is named",
            nullable=True, later=True, title="blocked by",
        ),
    ),
)  # fmt: skip

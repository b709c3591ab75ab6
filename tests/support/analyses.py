"""Hand-made analyses for the tests of reports and thresholds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import goodput_cli
from goodput_cli.analysis.disruptions.rows import no_disruptions
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.results import AtRisk, CategoryTime, CategoryTimes, Job, Reference, StepStatistics, Window
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.schema import COLUMNS, REFERENCE_LIBRARY, EventTable, LogFormat

if TYPE_CHECKING:
    from goodput_cli.accounting.build import Timeline

BASE = 1_735_689_600 * 10**9  # 2025-01-01T00:00:00Z
MINUTE = 60 * 10**9

HOSTILE = "\x1b[31mred\x1b[0m [bold]x[/bold] \u202egnp.exe\u200b | `rm` <img src=x> [a](http://e.vil) \n# title"

ORBAX, RECORDER = LogFormat("orbax"), LogFormat("recorder", other_system=REFERENCE_LIBRARY)
RESILIENCY = LogFormat("resiliency", restores_are_inferred=True)


def empty_table() -> EventTable:
    columns: dict[str, Any] = {name: np.zeros(0, dtype) for name, dtype in COLUMNS.items()}
    return EventTable(**columns)


def amount(category: str, ns: int, total: int, label: str | None = None) -> CategoryTime:
    return CategoryTime(category, label, ns, 100 * ns / total if total else float("nan"))


@cache
def primer_timeline() -> Timeline:
    """The timeline of the same example, for what is drawn."""
    log = Path(__file__).parent.parent.parent / "sample_logs" / "primer-50-percent.jsonl"
    timeline = goodput_cli.analyze(log, reference_step_time=120).timeline
    return replace(timeline, table=replace(timeline.table, sources=("primer-50-percent.jsonl",)))


def primer(**changes: Any) -> Analysis:
    """Return the worked example of accounting §6, with its figures."""
    total = 200 * MINUTE
    badput = (
        amount("wasted_progress_from_disruption", 40 * MINUTE, total),
        amount("training_slowdown", 25 * MINUTE, total),
        amount("infrastructure_recovery_from_disruption", 15 * MINUTE, total),
        amount("unproductive_checkpoint_restore_time", 10 * MINUTE, total),
        amount("unproductive_checkpoint_save_time", 10 * MINUTE, total),
    )
    analysis = Analysis(
        job=Job("goodput-primer", BASE, BASE + total, "terminated", 2, 1, 1, 25, 75, 50.0, (25, 75), (RESILIENCY,)),
        window=Window(BASE, BASE + total, 0),
        goodput=amount("productive", 100 * MINUTE, total),
        badput=CategoryTimes(badput),
        overlapped=(),
        at_risk=None,
        reference=Reference(120.0, "given", 100 * MINUTE, 25, 75, 50, 11, 2, 2, 2),
        steps=StepStatistics(0, None, None, None, None, None),
        thresholds=(),
        not_recorded=("tpu_initialization", "training_prep", "data_loading_sync", "custom_badput_events"),
        diagnostics=(),
        timeline=primer_timeline(),
        table=empty_table(),
        disruptions=no_disruptions(empty_table()),
    )
    return replace(analysis, **changes)


def hostile() -> Analysis:
    """Return an analysis with hostile text everywhere: names, labels, locations and messages."""
    total = 90_061 * 10**9 + 123_456_789
    rows = (
        amount("custom_badput_events", 4000 * 10**9, total, "=HYPERLINK(1)"),
        amount("custom_badput_events", 3000 * 10**9, total, HOSTILE.upper()),
        amount("custom_badput_events", 2000 * 10**9, total, "X" * 10_000),
        amount("other", 1, total),
        amount("training_slowdown", -1500 * 10**9, total),
    )
    productive = total - sum(row.ns for row in rows)
    diagnostics = (
        Diagnostic("naive_timestamps", "info", "times without a zone were taken as UTC", 9, ("a.jsonl:1",)),
        Diagnostic(
            "malformed_lines", "error", f"not JSON: {HOSTILE}", 5, tuple(f"{HOSTILE}.jsonl:{i}" for i in range(1, 6))
        ),
    )
    return replace(
        primer(),
        job=Job(HOSTILE, BASE, BASE + total + MINUTE, "not_logged", 3, 2, 2, 0, 99, 99.5, (0, 99), (ORBAX, RECORDER)),
        window=Window(BASE, BASE + total + MINUTE, MINUTE),
        goodput=amount("productive", productive, total),
        badput=CategoryTimes(rows),
        overlapped=(amount("data_loading_async", 77 * 10**9, total),),
        at_risk=AtRisk(12.0, 30 * 10**9),
        reference=Reference(2.5, "auto", productive, None, None, None, 200, 3, 0, 0),
        steps=StepStatistics(120, 2.5, 2.61, 2.55, 2.9, 12.0),
        not_recorded=("queued",),
        diagnostics=diagnostics,
    )

"""Parts that several answers share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from goodput_cli.analysis.json_fields import Bounds, Count, Instant, Json, written
from goodput_cli.analysis.results import AnalysisData, TimeSpan
from goodput_cli.analysis.threshold import Threshold, Verdict
from goodput_cli.diagnostics.diagnostic import Diagnostic, Severity


@written("named_job")
@dataclass(frozen=True)
class NamedJob:
    """Job of an answer about a part of it."""

    name: str
    start_ns: Instant
    """T0"""
    end_ns: Instant
    """T1"""


@written("measured_window", "the window of the question", keys="start_ns end_ns ns")
@dataclass(frozen=True)
class MeasuredWindow(TimeSpan):
    """The window of the question."""


@written("diagnostic_entry")
@dataclass(frozen=True)
class DiagnosticEntry:
    """A diagnostic."""

    code: Annotated[str, Bounds(pattern="^[a-z][a-z0-9_]*$")]
    """code of the diagnostic: see `goodput help CODE`"""
    severity: Severity
    """error, warning or info"""
    count: Count
    """how often it occurred"""
    message: str
    """the diagnostic as a sentence"""
    where: Sequence[str]
    """file:line or insertId; may be fewer than count"""


@written("threshold_part")
@dataclass(frozen=True)
class ThresholdPart:
    """The result of a threshold."""

    expression: str
    met: bool | None
    """whether the expression is true; null: not recorded"""
    value: float | None
    """in the unit; null: not recorded, or a change in % of 0"""
    limit: float
    """in the unit"""
    unit: Literal["%", "pp", "s", ""]
    """of value and limit: percent, points of goodput or of a share, seconds, a plain number"""
    fails: bool
    """whether the run fails if the expression is true (--fail-under, --fail-if), or only warns (--warn-if)"""
    verdict: Verdict
    """result of the expression"""
    hint: str | None = None
    """suggestion, if a name is not in the log"""


def diagnostic_entry(one: Diagnostic) -> DiagnosticEntry:
    """Return the JSON entry of a diagnostic."""
    return DiagnosticEntry(one.code, one.severity, one.count, one.message, one.where)


def _diagnostic(one: DiagnosticEntry) -> Diagnostic:
    """Return the diagnostic of an entry in a saved answer."""
    return Diagnostic(one.code, one.severity, one.message, one.count, tuple(one.where))


def threshold_part(one: Threshold) -> ThresholdPart:
    """Return the JSON entry of a threshold."""
    return ThresholdPart(**asdict(one), verdict=one.verdict)


Diagnostics = tuple[Annotated[Diagnostic, Json(made=diagnostic_entry, kind=DiagnosticEntry, back=_diagnostic)], ...]
Thresholds = tuple[Annotated[Threshold, Json(made=threshold_part, kind=ThresholdPart)], ...]


def named_job(analysis: AnalysisData) -> NamedJob:
    """Return the job of an analysis."""
    return NamedJob(analysis.job.name, analysis.job.start_ns, analysis.job.end_ns)


def measured_window(analysis: AnalysisData) -> MeasuredWindow:
    """Return the window of the question."""
    return MeasuredWindow(analysis.window.start_ns, analysis.window.end_ns)

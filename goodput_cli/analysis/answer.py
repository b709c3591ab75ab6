"""What JSON answers are made of: each is declared once, as a `msgspec.Struct`.

From a declaration follow what is written (report/json_text.py), how a saved answer is read (analysis/compare), and
docs/schema.json (report/schema.py), which takes the string under a field as its description. Every field is written,
null included; only one of the type `UnsetType` may be left out. On reading, a field with a default may be missing: so
answers of older versions are read.

Only what writes or reads JSON imports this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.sheet import SCHEMA_VERSION, Column
from goodput_cli.analysis.table import row_schema
from goodput_cli.analysis.threshold import Threshold, Verdict
from goodput_cli.diagnostics.codes import Severity
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.vocabulary.text import iso

Count = Annotated[int, Meta(ge=0)]
FromOne = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
"""Of time in seconds, or a number that is not below 0."""
Instant = Annotated[
    str,
    Meta(
        title="instant",
        description="ISO-8601 in UTC, with 0, 3, 6 or 9 fractional digits",
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6}|\.\d{9})?Z$",
    ),
]
Row = Mapping[str, Any]
Rows = Sequence[Row]
"""Rows of a table, as `table.json_rows` makes them of its columns."""


def row_of(title: str, words: str, columns: Sequence[Column]) -> Meta:
    """What the schema says of a row with these columns. title: its name among the schema's definitions."""
    return Meta(extra_json_schema=row_schema(columns, title, words))


class Part(Struct):
    """An object inside an answer."""


class Answer(Struct, kw_only=True):
    """A whole answer. Each has a field `kind`, which says of what."""

    schema_version: Literal[1] = SCHEMA_VERSION

    indented: ClassVar[bool] = False
    """Whether objects and short lists are spread over several lines."""


class NamedJob(Part):
    name: str
    start: Instant
    """T0"""
    end: Instant
    """T1"""


class MeasuredWindow(Part):
    """the window of the question"""

    start: Instant
    """start"""
    end: Instant
    """end"""
    seconds: Amount
    """length"""


class DiagnosticEntry(Part):
    code: Annotated[str, Meta(pattern="^[a-z][a-z0-9_]*$")]
    severity: Severity
    count: Count
    """how often"""
    message: str
    where: Sequence[str]
    """file:line or insertId; may hold fewer than count"""


class ThresholdPart(Part, kw_only=True):
    expression: str
    met: bool | None
    """whether what the expression says holds; null: not recorded"""
    value: float | None
    """in the unit; null: not recorded, or a change in % of 0"""
    limit: float
    """in the unit"""
    unit: Literal["%", "pp", "s", ""]
    """of value and limit: percent, points of goodput or of a share, seconds, a plain number"""
    fails: bool
    """whether the run fails when the expression holds (--fail-under, --fail-if), or is only warned of (--warn-if)"""
    verdict: Verdict
    """what the expression did"""
    hint: str | None = None
    """what may have been meant, where a name is not in the log"""


def threshold_parts(thresholds: Sequence[Threshold]) -> list[ThresholdPart]:
    """Thresholds as every answer has them."""
    return [ThresholdPart(**asdict(one), verdict=one.verdict) for one in thresholds]


def named_job(analysis: Analysis) -> NamedJob:
    """The job as answers about a part of it name it."""
    return NamedJob(name=analysis.job.name, start=iso(analysis.job.start_ns), end=iso(analysis.job.end_ns))


def measured_window(analysis: Analysis) -> MeasuredWindow:
    """The window of the question."""
    window = analysis.window
    return MeasuredWindow(start=iso(window.start_ns), end=iso(window.end_ns), seconds=window.ns / 1e9)


def diagnostic_entries(diagnostics: Sequence[Diagnostic]) -> list[DiagnosticEntry]:
    """Diagnostics as every answer has them."""
    return [
        DiagnosticEntry(code=one.code, severity=one.severity, count=one.count, message=one.message, where=one.where)
        for one in diagnostics
    ]

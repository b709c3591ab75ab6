"""The data of an analysis, from which everything about the job is derived, and the parts that several answers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from goodput_cli.accounting.options import GOODPUT, Bound, Limits, Method, limits_of
from goodput_cli.analysis.json_fields import Bounds, Count, Instant, Json, written
from goodput_cli.analysis.question import NOTHING_SAID, WorkOptions
from goodput_cli.analysis.results import (
    NO_SLICE_COUNTS,
    AtRisk,
    CategoryTime,
    CategoryTimes,
    InferredRules,
    Job,
    Reference,
    Reliability,
    Rolling,
    Saves,
    SliceEfficiency,
    StepStatistics,
    TimeSpan,
    Window,
)
from goodput_cli.analysis.threshold import Threshold, Verdict
from goodput_cli.diagnostics.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from goodput_cli.accounting.build import Timeline
    from goodput_cli.analysis.disruptions.rows import Disruptions
    from goodput_cli.analysis.question import Price
    from goodput_cli.events.schema import EventTable

_JUDGED_STEPS = 10


def _deprecated(old: str, new: str) -> property:
    """Return a property with an old name, which warns and names the new one."""

    def value(self: object) -> Any:
        from warnings import warn

        warn(f"Analysis.{old} is deprecated; use Analysis.{new}", DeprecationWarning, stacklevel=2)
        return getattr(self, new)

    value.__doc__ = f"Deprecated: use `{new}`."
    return property(value)


Part = TypeVar("Part")


@dataclass(frozen=True, repr=False, eq=False)
class AnalysisData:
    """The data of an `Analysis`, from which everything else is derived."""

    job: Job
    """The job that was analyzed."""
    window: Window
    """The analyzed part of the job."""
    goodput: CategoryTime
    """Time that became training progress (`productive`)."""
    badput: CategoryTimes
    """Every category that is not zero, `other` included, `excluded` not; the largest first."""
    overlapped: tuple[CategoryTime, ...]
    """Time that overlaps training (`data_loading_async`)."""
    at_risk: AtRisk | None
    """Progress after the last completed checkpoint; None if the log has no saves."""
    reference: Reference
    """The checkpoint-step model, and what the log loaded and saved."""
    steps: StepStatistics
    """Step times of the window."""
    thresholds: tuple[Threshold, ...]
    """Every `--fail-if` and `--warn-if` expression, judged."""
    not_recorded: tuple[str, ...]
    """Categories without evidence in the log: unknown, not zero."""
    diagnostics: tuple[Diagnostic, ...]
    """Problems and assumptions, the most severe first."""
    timeline: Timeline
    """The whole job as the accounting engine sees it: attempts, segments and ledger."""
    table: EventTable
    """The job's events, as columns."""
    disruptions: Disruptions
    """Disruptions inside the window, in time order; created when they are read."""
    elastic: SliceEfficiency = NO_SLICE_COUNTS
    """Slice efficiency."""
    rolling: Rolling | None = None
    """Rolling windows; None unless requested."""
    reliability: Reliability | None = None
    """Totals over the disruptions (accounting §10)."""
    saves: Saves | None = None
    """Checkpoints that were saved; None if the log has no saves."""
    method: Method = Method()
    """Options of the measurement."""
    price: Price | None = None
    """Price of the accelerators; None if not given."""
    work_options: WorkOptions = NOTHING_SAID
    """The options about the work of the job that the log does not contain."""
    inferred_rules: InferredRules | None = None
    """The rules inferred from the log; None if a format reads it."""
    options: tuple[str, ...] = ()
    """The logs, and the options that select the job, as given: other commands need them to show it again."""

    bounds: tuple[Bound, ...] = ()
    """Bounds of amounts that the log does not decide (accounting §7). The ledger has one reading."""

    @cached_property
    def _parts(self) -> dict[Callable[[Any], Any], Any]:
        return {}

    def part(self, make: Callable[[AnalysisData], Part]) -> Part:
        """Return what a function makes of the analysis. It is called once."""
        if make not in self._parts:
            self._parts[make] = make(self)
        part: Part = self._parts[make]
        return part

    @property
    def goodput_percent(self) -> float | None:
        """Goodput in percent of the window without excluded time; never clamped. None if it is unknown or only bounds
        are known; see `unavailable_reason`."""
        return None if self.goodput_unknown else self.goodput.percent

    @property
    def at_least_percent(self) -> float | None:
        """The lowest goodput that the log allows, in percent; None if it allows any. `goodput_percent` if that is
        known."""
        return self._percent_of(self.goodput_limits.at_least)

    @property
    def at_most_percent(self) -> float | None:
        """The highest goodput that the log allows, in percent; None if it allows any. `goodput_percent` if that is
        known."""
        return self._percent_of(self.goodput_limits.at_most)

    def _percent_of(self, ns: int | None) -> float | None:
        counted = self.window.counted_ns
        return None if ns is None or counted <= 0 else 100 * ns / counted

    @cached_property
    def goodput_limits(self) -> Limits:
        """Limits of productive time, in ns."""
        return Limits(None, None) if self._goodput_unjudged else self.limits_of(self.goodput)

    def limits_of(self, amount: CategoryTime) -> Limits:
        """Return the limits of a row of the ledger: its amount on both sides if the log determines it."""
        name = GOODPUT if amount.category == self.goodput.category else amount.category
        return limits_of(self.bounds if amount.label is None else (), name, amount.ns)

    @property
    def lost_limits(self) -> Limits:
        """Limits of the lost time of the window, in ns."""
        counted, goodput = self.window.counted_ns, self.goodput_limits
        low, high = (None if ns is None else counted - ns for ns in (goodput.at_most, goodput.at_least))
        return Limits(low, high)

    @property
    def is_bounded(self) -> bool:
        """True if only bounds of goodput are known."""
        return any(bound.quantity == GOODPUT for bound in self.bounds)

    @property
    def is_too_short(self) -> bool:
        """Return True if fewer than ten steps were kept, or one or two records cover all of them.

        Percentages then mean little. For checkpoint logs, only True if goodput is unknown.
        """
        if self._goodput_unjudged:
            return True
        if self.timeline.records is None:
            return False
        first, last = self.job.kept_range or (0, -1)
        return last - first + 1 < _JUDGED_STEPS or self.timeline.few_records is not None

    @property
    def has_steps(self) -> bool:
        """Return True if the log shows any training, kept or not (`Timeline.shows_training`)."""
        return self.timeline.shows_training

    @property
    def is_measurable(self) -> bool:
        """Return True if goodput has a number: neither unknown nor bounded (accounting §7)."""
        return not self.goodput_unknown

    @property
    def unavailable_reason(self) -> str | None:
        """Reason for which goodput has no number; None if it has one. Training may not be logged, or two readings
        remain.

        See accounting §7. None for a window in which the job was never up.
        """
        if self._goodput_unjudged:
            return self.timeline.why_unknown
        return self.bounds[0].text if self.is_bounded else None

    @property
    def goodput_unknown(self) -> bool:
        """True if goodput has no number: it is unknown, or only bounds are known (accounting §7)."""
        return self._goodput_unjudged or self.is_bounded

    asked = _deprecated("asked", "options")
    known = _deprecated("known", "work_options")
    drafted = _deprecated("drafted", "inferred_rules")
    inside = _deprecated("inside", "step_phases")
    too_short = _deprecated("too_short", "is_too_short")
    shows_training = _deprecated("shows_training", "has_steps")
    why_unknown = _deprecated("why_unknown", "unavailable_reason")

    @cached_property
    def _goodput_unjudged(self) -> bool:
        from numpy import array

        return bool(self.timeline.unknown(array([self.window.start_ns]), array([self.window.end_ns]))[0])


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

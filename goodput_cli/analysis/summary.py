"""Numbers from which measures are computed, the same for an analyzed log and for a saved answer.

Every number is one that JSON represents exactly: ns as integers, seconds as the floats that are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from goodput_cli.accounting.options import RULES
from goodput_cli.analysis.json_fields import Amount, Count, Json, written
from goodput_cli.analysis.results import Recoveries
from goodput_cli.analysis.sheet import Lazy
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.vocabulary.categories import Category, CategoryKey

if TYPE_CHECKING:
    from goodput_cli.accounting.options import Bound
    from goodput_cli.analysis.analysis_data import AnalysisData
    from goodput_cli.analysis.kept_work.work import KeptWork
    from goodput_cli.analysis.results import (
        AtRisk,
        Job,
        Method,
        Reference,
        Reliability,
        Saves,
        SliceEfficiency,
        StepStatistics,
        Window,
    )


@written("disruption_summary")
@dataclass(frozen=True, kw_only=True)
class DisruptionSummary:
    """The values of a disruption that comparisons use."""

    ended: str
    """Kind of end of the attempt."""
    wasted_seconds: Amount
    """Training time that was lost."""
    steps_lost: Count | None = None
    """Steps that had to be trained again; None if unknown."""


class Blocks(Lazy[float]):
    """Mean step times of stretches of an analysis, made on demand: most measures use none."""

    def __init__(self, analysis: AnalysisData) -> None:
        self._analysis = analysis

    @cached_property
    def values(self) -> tuple[float, ...]:
        """Return the step times in seconds, in time order."""
        from goodput_cli.analysis.steps.times import pace_blocks, step_times  # Only comparisons need NumPy's work.

        analysis, window = self._analysis, self._analysis.window
        times = step_times(analysis.timeline, window.start_ns, window.end_ns)
        steps = (analysis.job.last_step or 0) - (analysis.job.first_step or 0) if len(times) else 0
        return pace_blocks(times, steps / len(times) if steps > len(times) else 1.0)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)


@written("size_part", nulls=True)
@dataclass(frozen=True)
class Size:
    """Size of the job from the log: medians of metrics, otherwise counts of the last attempt."""

    accelerators: float | None = None
    """from a metric `accelerators`, `num_devices`, `num_gpus` or `world_size`"""
    ranks: int | None = None
    """ranks that started in the last attempt"""
    slices: int | None = None
    """slices of the job, from the last record of slices"""
    samples_per_step: float | None = None
    """from a metric `global_batch_size` or `samples_per_step`"""
    tokens_per_step: Annotated[float | None, Json(optional=True)] = None
    """from --tokens-per-step, a metric `tokens_per_step`, or samples of a step x `sequence_length`"""


@dataclass(frozen=True)
class StepWork:
    """Kept steps, and all the time that they took, including losses between them."""

    steps: float
    """Number of steps."""
    ns: int
    """Time in ns, without excluded time."""
    badput: Mapping[CategoryKey, int] | None
    """Lost part of the time, by category and label; None if a saved answer lacks it."""


_POINTS = 64
_MOST = 2.0**62
"""Limit of sizes: larger numbers are not plausible."""


class StepProgress(Protocol):
    """Times at which the kept steps of a window ended."""

    @property
    def bounds(self) -> tuple[int, int]:
        """Return the first and the last kept step, in the numbering of the log."""

    def work(self, last: int, behind: int | None = None) -> StepWork:
        """Return the work from the end of the step `behind` (None: the start of the window) to the end of the step
        `last`."""


class LoggedProgress:
    """Progress of an analysis made now, looked up when a comparison needs it."""

    def __init__(self, analysis: AnalysisData, bounds: tuple[int, int]) -> None:
        self._analysis, self.bounds = analysis, bounds

    def work(self, last: int, behind: int | None = None) -> StepWork:
        """Return the work to the nanosecond; a step gets its share of the time of a record that stands for several
        steps."""
        timeline = self._analysis.timeline
        begin = self._analysis.window.start_ns if behind is None else self._done(behind)
        end = max(self._done(last), begin)
        amounts = timeline.ledger.in_window(begin, end)
        excluded = amounts.pop((Category.EXCLUDED, -1), 0)
        amounts.pop((Category.PRODUCTIVE, -1), 0)
        labels = timeline.table.labels
        badput = {
            (category.id, labels[label] if label >= 0 else None): ns for (category, label), ns in amounts.items() if ns
        }
        steps = last - (self.bounds[0] - 1 if behind is None else behind)
        return StepWork(steps, end - begin - excluded, badput)

    def _seconds(self, last: int) -> float:
        """Return the seconds until a step was done, without excluded time."""
        begin, end = self._analysis.window.start_ns, self._done(last)
        amounts = self._analysis.timeline.ledger.in_window(begin, end, (Category.EXCLUDED,))
        excluded = amounts.get((Category.EXCLUDED, -1), 0)
        return (end - begin - excluded) / 1e9

    @cached_property
    def _kept(self) -> Any:
        return (self._analysis.timeline.kept_training.kept_steps > 0).nonzero()[0]

    def _done(self, step: int) -> int:
        """Return when (ns) a kept step was done, limited to the window."""
        import numpy as np

        timeline, window = self._analysis.timeline, self._analysis.window
        kept_training, spans = timeline.kept_training, timeline.kept_training.spans
        number = step - timeline.attempts.step_ends
        place = min(int(np.searchsorted(spans.first[self._kept], number, side="right")), len(self._kept)) - 1
        span = int(self._kept[max(place, 0)])
        begin, end = int(kept_training.start[span]), int(kept_training.end[span])
        kept = float(kept_training.kept_steps[span])
        share = min(max((number + 1 - int(spans.first[span])) / kept, 0.0), 1.0)
        return min(max(begin + round((end - begin) * share), window.start_ns), window.end_ns)

    @cached_property
    def points(self) -> tuple[tuple[int, float], ...]:
        """Return steps at equal distances, with the seconds until each was done, for a saved answer.

        The first is the step before the first kept one; the last kept step is always included.
        """
        first, last = self.bounds
        count = min(last - first + 1, _POINTS)
        steps = [first - 1 + (last - first + 1) * (place + 1) // count for place in range(count)]
        return ((first - 1, 0.0), *((step, self._seconds(step)) for step in steps))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoggedProgress | SavedProgress) and self.points == other.points

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class SavedProgress:
    """Progress of a saved answer: straight lines between some steps."""

    points: tuple[tuple[int, float], ...]
    """The step before the first kept one, and others, ascending, with the seconds from the start of the window until
    each was done."""

    @property
    def bounds(self) -> tuple[int, int]:
        return self.points[0][0] + 1, self.points[-1][0]

    def work(self, last: int, behind: int | None = None) -> StepWork:
        """Return the work; steps between two points are spread evenly."""
        begin = 0.0 if behind is None else self._done(behind)
        steps = last - (self.bounds[0] - 1 if behind is None else behind)
        return StepWork(steps, round((self._done(last) - begin) * 1e9), None)

    def _done(self, step: int) -> float:
        before = self.points[0]
        for point in self.points[1:]:
            if point[0] >= step:
                share = (step - before[0]) / max(point[0] - before[0], 1)
                return before[1] + max(share, 0.0) * (point[1] - before[1])
            before = point
        return before[1]


@dataclass(frozen=True)
class Summary:
    """Numbers of one analysis. None is "not recorded", or that there was nothing to average; never zero."""

    job: str
    """Name of the job."""
    window: Window
    """Window of the question."""
    goodput_ns: int | None
    """Goodput; with `badput` it adds up to `window.counted_ns`. None if it is unknown, or only bounds are known."""
    bounds: Sequence[Bound]
    """Limits of values that the log does not determine."""
    badput: Mapping[CategoryKey, int]
    """ns by category and label, without zeros."""
    not_recorded: frozenset[str]
    """Categories without evidence."""
    overlapped_ns: int | None
    """Data loading that overlaps training, outside the ledger."""
    attempts: int
    """Number of attempts."""
    runs: int
    """Number of runs with the job name."""
    kept_steps: float | None
    """Steps of the final progress inside the window."""
    step_range: tuple[int, int] | None
    """First and last recorded step of the final progress; None if no step was recorded."""
    disruptions: int
    """Number of disruptions."""
    failures: int
    """Disruptions, plus the crash of the last attempt if it is in the window."""
    each_disruption: Sequence[DisruptionSummary] | None
    """Each disruption; None if only their number is known."""
    mtbf_seconds: float | None
    """Mean time between failures."""
    mean_downtime_seconds: float | None
    """Mean downtime of a disruption."""
    mean_time_to_regain_seconds: float | None
    """Mean time until the progress before a disruption was reached again."""
    longest_unproductive_seconds: float | None
    """Longest time without progress; 0 if all time is productive."""
    recoveries: Recoveries | None
    """Time to detect and to recover; None without a disruption, or if a saved answer lacks it."""
    steps: StepStatistics
    """Step times."""
    step_blocks: Sequence[float]
    """Mean step times (s) of up to 64 stretches of the window; empty if unknown."""
    progress: StepProgress | None
    """Times at which kept steps were done; None without one, or if a saved answer lacks it."""
    size: Size
    """Size of the job, as far as it is logged."""
    saves: Saves | None
    """Saved checkpoints."""
    at_risk_seconds: float | None
    """Training time since the last completed save."""
    at_risk_steps: float | None
    """Steps since the last completed save."""
    elastic: SliceEfficiency
    """Slice efficiency."""
    reference_seconds: float | None
    """The reference step time in use."""
    origin: Literal["given", "auto"] | None
    """Origin of the reference step time."""
    method: Method | None
    """Options of the analysis; None if a saved answer lacks them."""
    rules: int
    """Version of the accounting rules."""
    diagnostics: tuple[Diagnostic, ...]
    """Possible problems of the log, and assumptions."""
    kept_work: Callable[[], KeptWork | None] = field(default=lambda: None, compare=False)
    """Function that returns the work of the kept steps. It is called on demand: most measures do not use it."""

    @property
    def work(self) -> KeptWork | None:
        """Return the work of the kept steps; None if it is unknown."""
        return self.kept_work()

    @property
    def ledger_goodput_ns(self) -> int:
        """Return the productive time of the ledger, which has one value even if only bounds are known."""
        return self.window.counted_ns - sum(self.badput.values())

    @property
    def crashed(self) -> bool:
        """Return True if the window ends with a failure that no attempt followed."""
        return self.failures > self.disruptions


def _failures(answer: AnalysisSummary) -> int:
    """Count the failures in the window. A saved answer may lack them: count disruptions and a crash at the end."""
    if answer.reliability is not None and answer.reliability.failures is not None:
        return answer.reliability.failures
    job = answer.job
    return job.disruptions + (job.ending == "crashed" and answer.window.end_ns >= job.end_ns)


def summary_of(analysis: AnalysisData) -> Summary:
    """Return the summary of an analysis made now. Disruptions are made on demand: a long job has tens of thousands, and
    few measures use them."""
    disruptions = analysis.disruptions
    return summary_from(
        analysis,
        goodput_ns=None if analysis.goodput_unknown else analysis.goodput.ns,
        bounds=analysis.bounds,
        each_disruption=Lazy(
            len(disruptions),
            lambda: (
                DisruptionSummary(ended=row.ended, steps_lost=row.steps_lost, wasted_seconds=row.wasted_ns / 1e9)
                for row in disruptions
            ),
        ),
        step_blocks=Blocks(analysis),
        progress=progress_of(analysis),
        size=size_of(analysis),
        kept_work=cache(partial(_work_of, analysis)),
    )


def _work_of(analysis: AnalysisData) -> KeptWork | None:
    from goodput_cli.analysis.kept_work.work import work_of  # NumPy's work, for few logs

    return analysis.part(work_of)


class AnalysisSummary(Protocol):
    """Parts that an analysis and a saved answer (`wire.json_type`) have in the same form. Rows of badput have category,
    label and ns; overlapping rows have ns."""

    @property
    def job(self) -> Job: ...
    @property
    def window(self) -> Window: ...
    @property
    def badput(self) -> Sequence[Any]: ...
    @property
    def overlapped(self) -> Sequence[Any]: ...
    @property
    def at_risk(self) -> AtRisk | None: ...
    @property
    def reference(self) -> Reference: ...
    @property
    def steps(self) -> StepStatistics: ...
    @property
    def not_recorded(self) -> Sequence[str]: ...
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]: ...
    @property
    def elastic(self) -> SliceEfficiency: ...
    @property
    def reliability(self) -> Reliability | None: ...
    @property
    def saves(self) -> Saves | None: ...
    @property
    def method(self) -> Method | None: ...


def summary_from(
    answer: AnalysisSummary,
    *,
    goodput_ns: int | None,
    bounds: Sequence[Bound],
    each_disruption: Sequence[DisruptionSummary] | None,
    step_blocks: Sequence[float],
    progress: StepProgress | None,
    size: Size,
    kept_work: Callable[[], KeptWork | None],
) -> Summary:
    """Return the summary of an analysis, or of a saved one. The keywords are the parts whose form differs between the
    two."""
    job, reliability, risk, reference = answer.job, answer.reliability, answer.at_risk, answer.reference
    badput: dict[CategoryKey, int] = {}
    for row in answer.badput:
        badput[row.category, row.label] = badput.get((row.category, row.label), 0) + row.ns
    known = reference.step_time_seconds is not None
    start, stop = (reliability and reliability.longest_unproductive) or (0, 0)  # Both are 0 if all time is productive.
    return Summary(
        job=job.name,
        window=answer.window,
        goodput_ns=goodput_ns,
        bounds=bounds,
        badput={key: ns for key, ns in badput.items() if ns},
        not_recorded=frozenset(answer.not_recorded),
        overlapped_ns=sum(row.ns for row in answer.overlapped) if answer.overlapped else None,
        attempts=job.attempts,
        runs=job.runs,
        kept_steps=job.kept_steps,
        step_range=None if job.first_step is None or job.last_step is None else (job.first_step, job.last_step),
        disruptions=job.disruptions,
        failures=_failures(answer),
        each_disruption=each_disruption,
        mtbf_seconds=None if reliability is None else reliability.mtbf_seconds,
        mean_downtime_seconds=None if reliability is None else reliability.mean_downtime_seconds,
        mean_time_to_regain_seconds=None if reliability is None else reliability.mean_time_to_regain_seconds,
        longest_unproductive_seconds=None if reliability is None else (stop - start) / 1e9,
        recoveries=None if reliability is None else reliability.recoveries,
        steps=answer.steps,
        step_blocks=step_blocks,
        progress=progress,
        size=size,
        saves=answer.saves,
        at_risk_seconds=None if risk is None else risk.ns / 1e9,
        at_risk_steps=None if risk is None else risk.steps,
        elastic=answer.elastic,
        reference_seconds=reference.step_time_seconds,
        origin=(reference.origin or "given") if known else None,
        method=answer.method,
        rules=RULES,
        diagnostics=answer.diagnostics,
        kept_work=kept_work,
    )


def progress_of(analysis: AnalysisData) -> LoggedProgress | None:
    """Return the progress; None without a whole kept step, and for checkpoint logs, which show no single steps."""
    bounds = analysis.job.kept_range
    if bounds is None or bounds[1] < bounds[0] or analysis.timeline.records is None:
        return None
    return LoggedProgress(analysis, bounds)


def size_of(analysis: AnalysisData) -> Size:
    """Return the size of the job, from its records in the window."""
    from goodput_cli.analysis.disruptions.find import ranks_of  # Only comparisons and JSON need NumPy's work.
    from goodput_cli.events.schema import ACCELERATORS, SAMPLES, Kind

    timeline, table = analysis.timeline, analysis.timeline.table
    ranks = int(ranks_of(timeline)[-1]) if len(timeline.attempts) else 0
    counts = (table.details[code] for code in table.detail[table.kind == Kind.SLICES].tolist())
    totals = [one[1] for one in counts if len(one) > 1 and isinstance(one[1], int) and one[1] > 0]
    samples = _recorded_number(analysis, SAMPLES)
    return Size(
        _recorded_number(analysis, ACCELERATORS), ranks or None, totals[-1] if totals else None, samples,
        _tokens_of_step(analysis, samples),
    )  # fmt: skip


def _tokens_of_step(analysis: AnalysisData, samples: float | None) -> float | None:
    """Return the logged tokens per step, never computed from rates of rounded numbers: these differ from run to run."""
    said = analysis.work_options.tokens_per_step or _recorded_number(analysis, ("tokens_per_step",))
    length = _recorded_number(analysis, ("sequence_length",)) if said is None and samples is not None else None
    found = said if samples is None or length is None else samples * length
    return found if found is not None and found < _MOST else None


def _recorded_number(analysis: AnalysisData, names: Sequence[str]) -> float | None:
    """Return the median of the first of these metrics in the window; None without one, or if it is not a plausible
    size."""
    window = analysis.window
    for name in names:
        for metric in analysis.table.metrics:
            if (metric.job, metric.name) == (analysis.job.name, name):
                inside = sorted(
                    metric.value[(metric.time >= window.start_ns) & (metric.time <= window.end_ns)].tolist()
                )
                if inside and 0 < inside[len(inside) // 2] < _MOST:
                    return float(inside[len(inside) // 2])
    return None

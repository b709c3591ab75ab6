"""The numbers of an analysis of which measures are taken, the same whether a log was analysed now or an answer saved.

Every number is one that JSON holds exactly: ns as integers, seconds as the floats that are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from goodput_cli.accounting.options import RULES
from goodput_cli.analysis.json_fields import Amount, Count, Json, written
from goodput_cli.analysis.recoveries import Recoveries
from goodput_cli.analysis.sheet import Lazy
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.vocabulary.categories import Category, CategoryKey

if TYPE_CHECKING:
    from goodput_cli.accounting.bounds import Bound
    from goodput_cli.accounting.segments import Key
    from goodput_cli.analysis.results import (
        AnalysisData,
        AtRisk,
        Elastic,
        Job,
        Method,
        Reference,
        Reliability,
        Saves,
        StepStatistics,
        Window,
    )
    from goodput_cli.analysis.work import KeptWork


@written("disruption_summary")
@dataclass(frozen=True, kw_only=True)
class DisruptionSummary:
    """The values of a disruption that comparisons use."""

    ended: str
    """How the attempt ended."""
    wasted_seconds: Amount
    """Training time that was lost."""
    steps_lost: Count | None = None
    """Steps that had to be trained again; None if unknown."""


class Blocks(Lazy[float]):
    """Mean step times of stretches of an analysis, made when they are read: most measures look at none."""

    def __init__(self, analysis: AnalysisData) -> None:
        self._analysis = analysis

    @cached_property
    def values(self) -> tuple[float, ...]:
        """Seconds, in time order."""
        from goodput_cli.analysis.steps.times import pace_blocks, step_times  # NumPy's work is for comparisons alone

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
class Work:
    """Kept steps, and the time that they took all in, what was lost on the way included."""

    steps: float
    """How many."""
    ns: int
    """Without what is excluded."""
    badput: Mapping[CategoryKey, int] | None
    """The part of it that was lost, by category and label; None where a saved answer does not say it."""


_POINTS = 64
_MOST = 2.0**62
"""Larger numbers are no sizes."""


class Progress(Protocol):
    """When the kept steps of a window were done."""

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last kept step, as the log counts them."""

    def work(self, last: int, behind: int | None = None) -> Work:
        """From the start of the window, or from when the step `behind` was done, to when the step `last` was done."""


class LoggedProgress:
    """Of an analysis that was made now, each time looked up when a comparison asks."""

    def __init__(self, analysis: AnalysisData, bounds: tuple[int, int]) -> None:
        self._analysis, self.bounds = analysis, bounds

    def work(self, last: int, behind: int | None = None) -> Work:
        """To the nanosecond; of several steps that one record stands for, each takes its share."""
        timeline = self._analysis.timeline
        begin = self._analysis.window.start_ns if behind is None else self._done(behind)
        end = max(self._done(last), begin)
        amounts = self._between(begin, end)
        excluded = amounts.pop((Category.EXCLUDED, -1), 0)
        amounts.pop((Category.PRODUCTIVE, -1), 0)
        labels = timeline.table.labels
        badput = {
            (category.id, labels[label] if label >= 0 else None): ns for (category, label), ns in amounts.items() if ns
        }
        steps = last - (self.bounds[0] - 1 if behind is None else behind)
        return Work(steps, end - begin - excluded, badput)

    def _between(self, begin: int, end: int, only: Collection[Category] | None = None) -> dict[Key, int]:
        """Amount (ns) of each category, or of some."""
        import numpy as np  # thresholds are read without it

        amounts = self._analysis.timeline.ledger.between(np.array([begin]), np.array([end]), only)
        return {key: int(ns[0]) for key, ns in amounts.items()}

    def _seconds(self, last: int) -> float:
        """Until a step was done, without what is excluded."""
        begin, end = self._analysis.window.start_ns, self._done(last)
        excluded = self._between(begin, end, (Category.EXCLUDED,)).get((Category.EXCLUDED, -1), 0)
        return (end - begin - excluded) / 1e9

    @cached_property
    def _kept(self) -> Any:
        return (self._analysis.timeline.kept_training.kept_steps > 0).nonzero()[0]

    def _done(self, step: int) -> int:
        """When (ns) a kept step was done, cut to the window."""
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
        """The step before the first, and others at equal distances, the last one among them, with the seconds until
        each was done: what a saved answer holds."""
        first, last = self.bounds
        count = min(last - first + 1, _POINTS)
        steps = [first - 1 + (last - first + 1) * (place + 1) // count for place in range(count)]
        return ((first - 1, 0.0), *((step, self._seconds(step)) for step in steps))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoggedProgress | SavedProgress) and self.points == other.points

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class SavedProgress:
    """Of a saved answer: straight lines between some steps."""

    points: tuple[tuple[int, float], ...]
    """The step before the first kept one, and others, rising, with the seconds from the start of the window until each
    was done."""

    @property
    def bounds(self) -> tuple[int, int]:
        return self.points[0][0] + 1, self.points[-1][0]

    def work(self, last: int, behind: int | None = None) -> Work:
        """What lies between two points is spread evenly."""
        begin = 0.0 if behind is None else self._done(behind)
        steps = last - (self.bounds[0] - 1 if behind is None else behind)
        return Work(steps, round((self._done(last) - begin) * 1e9), None)

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
    """The numbers of one analysis. None is "not recorded", or that there was nothing to average; never zero."""

    job: str
    """Its name."""
    window: Window
    """Of the question."""
    goodput_ns: int | None
    """With `badput` it adds up to `window.counted_ns`; None where it cannot be judged, or only bounds are known."""
    bounds: Sequence[Bound]
    """Limits of what the log leaves open."""
    badput: Mapping[CategoryKey, int]
    """ns by category and label, those that are not zero."""
    not_recorded: frozenset[str]
    """Categories without evidence."""
    overlapped_ns: int | None
    """Data loading beside the ledger."""
    attempts: int
    """How many attempts."""
    runs: int
    """How often the job name was used."""
    kept_steps: float | None
    """Steps of the final progress inside the window."""
    step_range: tuple[int, int] | None
    """The first and the last recorded one of them; None where none was."""
    disruptions: int
    """How many."""
    failures: int
    """These, and the crash of the last attempt, if the window has it."""
    each_disruption: Sequence[DisruptionSummary] | None
    """Each disruption; None where only their number is known."""
    mtbf_seconds: float | None
    """Mean time between failures."""
    mean_downtime_seconds: float | None
    """Mean downtime of a disruption."""
    mean_time_to_regain_seconds: float | None
    """Mean time until the progress before a disruption was reached again."""
    longest_unproductive_seconds: float | None
    """Longest time without progress; 0 where all is productive."""
    recoveries: Recoveries | None
    """How long it took to notice and to recover; None where nothing was disrupted, or a saved answer does not say."""
    steps: StepStatistics
    """Step times."""
    step_blocks: Sequence[float]
    """Mean step times (s) of up to 64 stretches of the window; none where they are not known."""
    progress: Progress | None
    """When each kept step was done; None where none was, or a saved answer does not say it."""
    size: Size
    """How large the job is, as far as anybody says."""
    saves: Saves | None
    """Checkpoints that were saved."""
    at_risk_seconds: float | None
    """Training time that no completed save holds yet."""
    at_risk_steps: float | None
    """Steps that no completed save holds yet."""
    elastic: Elastic
    """Slice efficiency."""
    reference_seconds: float | None
    """The reference step time in use."""
    origin: Literal["given", "auto"] | None
    """Where that is from."""
    method: Method | None
    """None where a saved answer does not say how it was made."""
    rules: int
    """Which version of the rules made it."""
    diagnostics: tuple[Diagnostic, ...]
    """What looked wrong or had to be assumed."""
    kept_work: Callable[[], KeptWork | None] = field(default=lambda: None, compare=False)
    """How much work the kept steps were, made when it is asked for: most measures look at none of it."""

    @property
    def work(self) -> KeptWork | None:
        """How much work the kept steps were; None where nobody says it."""
        return self.kept_work()

    @property
    def ledger_goodput_ns(self) -> int:
        """Productive time of the ledger, which has one reading where only bounds are known."""
        return self.window.counted_ns - sum(self.badput.values())

    @property
    def crashed(self) -> bool:
        """Whether the window ends with a failure that nothing followed."""
        return self.failures > self.disruptions


def _failures(answer: Answer) -> int:
    """Failures in the window; of an answer that was saved without them, the disruptions and a crash at the end."""
    if answer.reliability is not None and answer.reliability.failures is not None:
        return answer.reliability.failures
    job = answer.job
    return job.disruptions + (job.ending == "crashed" and answer.window.end_ns >= job.end_ns)


def summary_of(analysis: AnalysisData) -> Summary:
    """The summary of an analysis that was made now. A disruption is made when it is read: a long job has tens of
    thousands, and few measures look at them."""
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
    from goodput_cli.analysis.work import work_of  # NumPy's work, for few logs

    return work_of(analysis)


class Answer(Protocol):
    """What an analysis and what was read back of a saved one (`wire.json_type`) hold in the same form. Rows of badput
    have category, label and ns; what overlaps has ns."""

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
    def elastic(self) -> Elastic: ...
    @property
    def reliability(self) -> Reliability | None: ...
    @property
    def saves(self) -> Saves | None: ...
    @property
    def method(self) -> Method | None: ...


def summary_from(
    answer: Answer,
    *,
    goodput_ns: int | None,
    bounds: Sequence[Bound],
    each_disruption: Sequence[DisruptionSummary] | None,
    step_blocks: Sequence[float],
    progress: Progress | None,
    size: Size,
    kept_work: Callable[[], KeptWork | None],
) -> Summary:
    """The summary of an analysis, or of a saved one. The keywords are what the two hold in different forms."""
    job, reliability, risk, reference = answer.job, answer.reliability, answer.at_risk, answer.reference
    badput: dict[CategoryKey, int] = {}
    for row in answer.badput:
        badput[row.category, row.label] = badput.get((row.category, row.label), 0) + row.ns
    known = reference.step_time_seconds is not None
    start, stop = (reliability and reliability.longest_unproductive) or (0, 0)  # none where all is productive
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
    """None where no whole step was kept, and of checkpoint logs, which show no single steps."""
    bounds = analysis.job.kept_range
    if bounds is None or bounds[1] < bounds[0] or analysis.timeline.records is None:
        return None
    return LoggedProgress(analysis, bounds)


def size_of(analysis: AnalysisData) -> Size:
    """How large the job is, of what it recorded in the window."""
    from goodput_cli.analysis.disruptions.find import ranks_of  # NumPy's work is for comparisons and JSON alone
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
    """What is said of it, and nothing that rates of rounded numbers make: these differ from run to run."""
    said = analysis.work_options.tokens_per_step or _recorded_number(analysis, ("tokens_per_step",))
    length = _recorded_number(analysis, ("sequence_length",)) if said is None and samples is not None else None
    found = said if samples is None or length is None else samples * length
    return found if found is not None and found < _MOST else None


def _recorded_number(analysis: AnalysisData, names: Sequence[str]) -> float | None:
    """The median of the first metric of these names that the window has; None without, or where it is no size."""
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

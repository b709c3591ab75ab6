"""Expected end of a job: at the goodput of the window, and without badput (docs/inside-steps.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from goodput_cli.analysis.insights.patterns import hangs_now, silent_since
from goodput_cli.analysis.json_fields import Amount, FromOne, Instant, Json, written
from goodput_cli.analysis.kept_work.records import WorkRecords
from goodput_cli.analysis.steps.regimes import PaceFinding, models_by_size, pace_finding
from goodput_cli.analysis.steps.times import TimedSteps, timed_steps, winsorised_mean
from goodput_cli.vocabulary.categories import Category

if TYPE_CHECKING:
    from goodput_cli.accounting.build import Timeline
    from goodput_cli.analysis.results import AnalysisData


LEAST_STEPS = 24
"""Minimum number of kept steps for a known pace."""
_MOST_SECONDS = 1e9
"""Upper limit of an estimate: 30 years."""
_TRAINED = frozenset({Category.PRODUCTIVE.id, Category.SLOWDOWN.id})
"""Kept training, without stalls in it."""


@written("eta", "when the job will be done if it continues as in the window; not used for any other number")
@dataclass(frozen=True, kw_only=True)
class Eta:
    """Expected end of a job that continues as in the window."""

    total_steps: FromOne
    """number of steps of the whole job"""
    total_from: str
    """source of total_steps: logged, or --total-steps"""
    steps_left: FromOne
    """steps left after the end of the window"""
    step_seconds: Amount
    """time per step: the mean of the last level"""
    seconds: Amount
    """from the end of the window until the job is done, at this goodput"""
    least_seconds: Amount
    """the same without any badput"""
    done_ns: Instant
    """when the job will be done, at this goodput"""
    pace: Annotated[PaceFinding | None, Json(optional=True)] = None
    """whether the level of the step time moved; inconclusive: step_seconds may mix several levels"""


def eta_of(analysis: AnalysisData) -> Eta | None:
    """Return when the job is done.

    None if the last step is unknown or reached, after the end of a job, for a job that hangs or may be dead, for
    checkpoint logs, and for fewer than 24 steps.
    """
    total, how = _total(analysis)
    kept = analysis.job.kept_range
    if total is None or kept is None or analysis.job.ending != "not_logged" or analysis.timeline.records is None:
        return None
    left = total - kept[1] - analysis.timeline.attempts.counts_from_0
    share = _trained(analysis) / analysis.window.counted_ns
    if left < 1 or (analysis.job.kept_steps or 0) < LEAST_STEPS or share <= 0:
        return None
    window = analysis.window
    hung, heard = hangs_now(analysis.timeline), silent_since(analysis.timeline)
    if (hung is not None and hung.heard <= window.end_ns) or (heard is not None and heard < window.end_ns):
        return None
    each, finding = _last_level(analysis.timeline, timed_steps(analysis.timeline, window.start_ns, window.end_ns))
    if each is None or left * each / share > _MOST_SECONDS:
        return None
    seconds = left * each / share
    return Eta(
        total_steps=total, total_from=how, steps_left=left, step_seconds=each, seconds=seconds,
        least_seconds=left * each, done_ns=window.end_ns + round(seconds * 1e9), pace=finding,
    )  # fmt: skip


def _total(analysis: AnalysisData) -> tuple[int | None, str]:
    """Return the last step of the job, and its source."""
    if analysis.work_options.total_steps is not None:
        return analysis.work_options.total_steps, "--total-steps"
    stated = WorkRecords.of(analysis).stated(("total_steps",))
    return None if stated is None else int(stated.value[-1]), "logged"


def _trained(analysis: AnalysisData) -> int:
    """Return the kept training of the window, with slow steps, in ns."""
    return sum(row.ns for row in (analysis.goodput, *analysis.badput) if row.category in _TRAINED)


def _last_level(timeline: Timeline, steps: TimedSteps) -> tuple[float | None, PaceFinding]:
    """Return the step time at the end (s), and the finding about its level. It is the mean of the last level of the
    steps of the last size."""
    if not len(steps) or int(steps.count.sum()) < LEAST_STEPS - 1:
        return None, PaceFinding("inconclusive")
    part, model = models_by_size(timeline, steps)[-1]
    finding = pace_finding([(part, model)]) if model.kind == "level" else PaceFinding("found")
    if model.line is not None:
        return model.line[1], finding
    last = int(model.cuts[-1]) if len(model.cuts) else 0
    return winsorised_mean(part.seconds[last:]), finding

"""What an analysis answers: frozen results, ready for every renderer. A renderer formats and computes nothing.

Amounts of time are integer nanoseconds (`…_ns`); `seconds` and `percent` are made from them at the edge.
Instants are ns since 1970 UTC. `None` is "not recorded" or "does not apply", never zero.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal

from goodput_cli.accounting.rules import Method as Method
from goodput_cli.analysis.written import Amount, Count, Instant, Json, written
from goodput_cli.diagnostics.diagnostic import Diagnostic

if TYPE_CHECKING:
    import pandas as pd

    from goodput_cli.accounting.build import Timeline
    from goodput_cli.analysis.disruptions.find import Reliability
    from goodput_cli.analysis.disruptions.rows import Disruptions
    from goodput_cli.analysis.insights.kinds import Insight
    from goodput_cli.analysis.question import Price
    from goodput_cli.analysis.rolling import Rolling
    from goodput_cli.analysis.threshold import Threshold
    from goodput_cli.events.schema import EventTable, LogFormat

_JUDGED_STEPS = 10
Ending = Literal["clean", "terminated", "crashed", "not_logged"]
Frame = Literal["categories", "insights", "disruptions", "attempts", "segments", "events"]


@written(
    "job_part",
    keys="name start_ns end_ns ending attempts runs disruptions first_step last_step kept_steps formats",
)
@dataclass(frozen=True)
class Job:
    """The whole job: [start_ns, end_ns) is the job window (accounting §1)."""

    name: str
    """as the log says it, or made from the files"""
    start_ns: Instant
    """T0, the start of the job window"""
    end_ns: Instant
    """T1, the end of the job window"""
    ending: Ending
    """how the job's last attempt ended, as far as it was logged"""
    attempts: Count
    """lives of the job"""
    runs: Count
    """how often the job's name was used"""
    disruptions: Count
    """passages to a next attempt that do not follow a clean end"""
    first_step: int | None
    """first step of the final progress inside the window"""  # of checkpoint logs, where kept progress begins
    last_step: int | None
    """last recorded step of the final progress inside the window; it may be in flight, or lost. Of checkpoint logs:
    where kept progress ends"""
    kept_steps: Annotated[Amount, Json("whole")]
    """steps of the final progress inside the window; an integer unless a step counts in part"""
    kept_range: tuple[int, int] | None
    """First and last step of which something was kept; None where nothing was."""
    log_formats: tuple[LogFormat, ...]
    """Those seen, sorted."""

    @property
    def formats(self) -> Sequence[str]:
        """log formats seen"""
        return tuple(one.name for one in self.log_formats)


@written("window_part", "the window of the question", keys="start_ns end_ns ns excluded_ns")
@dataclass(frozen=True)
class Window:
    """The window of the question, [start_ns, end_ns), and how much of it the user excluded."""

    start_ns: Instant
    """where the question begins"""
    end_ns: Instant
    """where it ends"""
    excluded_ns: Annotated[Count, Json("seconds and ns", ns="taken out by the user, in ns")]
    """taken out by the user"""  # counts as neither goodput nor badput

    @property
    def ns(self) -> Annotated[Count, Json("seconds and ns", ns="length in ns, exclusions included")]:
        """length, exclusions included"""
        return self.end_ns - self.start_ns

    @property
    def counted_ns(self) -> int:
        """Length that is the 100 %: without what is excluded."""
        return self.ns - self.excluded_ns


@dataclass(frozen=True)
class CategoryTime:
    """Time in one category."""

    category: str
    """Name of the category, as in docs/accounting.md."""
    label: str | None
    """Of `custom_badput_events`; None for every other category."""
    ns: int
    """The time, in ns; of `training_slowdown` it may be negative."""
    percent: float
    """Of `Window.counted_ns`."""

    @property
    def seconds(self) -> float:
        return self.ns / 1e9

    @property
    def name(self) -> str:
        """`category`, or `category:LABEL`."""
        return self.category if self.label is None else f"{self.category}:{self.label}"


@written(
    "at_risk_part",
    "kept progress after the last completed save, 0 after a clean end; null where the log has no saves",
    nulls=True,
)
@dataclass(frozen=True)
class AtRisk:
    """Kept progress after the last completed save, where the log has saves; none after a clean end (accounting §2)."""

    steps: Annotated[Amount, Json("whole")]
    """kept steps after the last completed save"""
    ns: Annotated[Count, Json("seconds")]
    """their time"""


@written("reference_part", "the checkpoint-step model and the resiliency calculator's table")
@dataclass(frozen=True)
class Reference:
    """The checkpoint-step model (accounting §6) and the resiliency calculator's table."""

    step_time_seconds: Amount | None
    """the reference step time"""  # None where there is none; the counts below are of the log in any case
    origin: Literal["given", "auto"] | None
    """auto: taken from the log itself"""
    effective_computation_ns: Annotated[int | None, Json("seconds")]
    """kept steps x reference step time"""
    min_loaded_step: int | None
    """the lowest step that was loaded"""
    max_saved_step: int | None
    """the highest step that was saved"""
    step_difference: int | None
    """the one less the other"""
    total_events: Count
    """lines left after removing identical ones"""
    job_started_count: Count
    """attempts that a start line opened"""
    checkpoints_loaded: Count
    """loads of a step above 0"""
    checkpoints_saved: Count
    """checkpoints saved"""


@written("steps_part")
@dataclass(frozen=True)
class StepStatistics:
    """Step times in seconds (accounting §8); all None where no step time was recorded."""

    count: Count
    """step times recorded"""
    ideal_seconds: Amount | None = None
    """mean of the step times up to median + 3 x MAD"""
    mean_seconds: Amount | None = None
    """mean of all step times"""
    median_seconds: Amount | None = None
    """half of them took no longer"""
    p90_seconds: Amount | None = None
    """nine in ten took no longer"""
    p99_seconds: Amount | None = None
    """99 in 100 took no longer"""

    @property
    def known(self) -> dict[str, float]:
        """Seconds by name (`ideal`, `p99`), without those that are None."""
        names = [one.name for one in fields(self) if one.name != "count"]
        seconds = {name.removesuffix("_seconds"): getattr(self, name) for name in names}
        return {name: value for name, value in seconds.items() if value is not None}


@written(
    "saves_part",
    "checkpoints saved in the window: the reports of all hosts about one step are one save; null where the log has no "
    "saves",
    nulls=True,
)
@dataclass(frozen=True)
class Saves:
    """Checkpoints that were saved."""

    count: Count
    """saves that were completed"""
    interval_seconds: Amount | None
    """median time between the beginnings of two saves in a row of one attempt"""


@written("elastic_part", "slice efficiency (accounting, section 9)", nulls=True)
@dataclass(frozen=True)
class Elastic:
    """Slice efficiency over the window (accounting §9), shares of 0 to 1; None where no slice counts are known."""

    stepping: Annotated[Amount | None, Json(key="stepping_slice_efficiency")]
    """time-weighted mean of active/total slices over the window, 0 to 1; null: no counts known"""
    available: Annotated[Amount | None, Json(key="available_slice_efficiency")]
    """the same of available/total slices"""
    unknown_ns: Annotated[Count | None, Json("seconds")]
    """time of the window left out because no count was known; null: no counts in the log"""
    goodput_percent: Annotated[Amount | None, Json(key="goodput_x_stepping_percent")]
    """goodput times stepping_slice_efficiency"""


@dataclass(frozen=True, repr=False, eq=False)
class Analysis:
    """Where every second of the window went. `goodput.ns` and all `badput` add up to `window.counted_ns` exactly."""

    job: Job
    """The job that was analysed."""
    window: Window
    """The part of it that the question is about."""
    goodput: CategoryTime
    """Time that became training progress (`productive`)."""
    badput: tuple[CategoryTime, ...]
    """Every category that is not zero, `other` included, `excluded` not; the largest first."""
    overlapped: tuple[CategoryTime, ...]
    """Time beside the ledger (`data_loading_async`)."""
    at_risk: AtRisk | None
    """Progress that no completed save holds yet; None where the log has no saves."""
    reference: Reference
    """The checkpoint-step model, and what the log loaded and saved."""
    steps: StepStatistics
    """Step times of the window."""
    thresholds: tuple[Threshold, ...]
    """Every `--fail-if` and `--warn-if` expression, judged."""
    not_recorded: tuple[str, ...]
    """Categories that this log holds no evidence for: unknown, not zero."""
    diagnostics: tuple[Diagnostic, ...]
    """What looked wrong or had to be assumed, the gravest first."""
    timeline: Timeline
    """The whole job as the accounting engine sees it: attempts, segments and ledger."""
    table: EventTable
    """The job's events, as columns."""
    disruptions: Disruptions
    """Those inside the window, in time order; each is made when it is read."""
    elastic: Elastic = Elastic(None, None, None, None)
    """Slice efficiency."""
    rolling: Rolling | None = None
    """Where windows were asked for."""
    reliability: Reliability | None = None
    """What the disruptions add up to (accounting §10)."""
    saves: Saves | None = None
    """None where the log has none."""
    method: Method = Method()
    """How all this was measured."""
    price: Price | None = None
    """What the accelerators cost, if said."""
    asked: tuple[str, ...] = ()
    """The logs, and the options that choose the job, as they were named: what other commands need to see it again."""

    @property
    def goodput_percent(self) -> float | None:
        """Goodput in percent of the window without what is excluded; never clamped. None where it cannot be judged,
        and `why_unknown` says why."""
        return None if self.goodput_unknown else self.goodput.percent

    @property
    def too_short(self) -> bool:
        """Whether fewer than ten steps were kept, by their numbers, or one or two records stand for all of them: shares
        then say little. Of checkpoint logs only where goodput is not known."""
        if self.goodput_unknown:
            return True
        if self.timeline.records is None:
            return False
        first, last = self.job.kept_range or (0, -1)
        return last - first + 1 < _JUDGED_STEPS or self.timeline.few_records is not None

    @property
    def shows_training(self) -> bool:
        """Whether the job's lines show any training, kept or not (`Timeline.shows_training`)."""
        return self.timeline.shows_training

    @property
    def why_unknown(self) -> str | None:
        """Why goodput cannot be judged, where training may have gone on that no line shows: then no goodput is not the
        same as none; None where it can (accounting §7). Not of a window in which the job was never up."""
        return self.timeline.why_unknown if self.goodput_unknown else None

    @cached_property
    def goodput_unknown(self) -> bool:
        """Whether goodput cannot be judged (accounting §7)."""
        from numpy import array

        return bool(self.timeline.unknown(array([self.window.start_ns]), array([self.window.end_ns]))[0])

    def __repr__(self) -> str:
        from goodput_cli.analysis.goodput.frames import repr_text

        return repr_text(self)

    def _repr_html_(self) -> str:
        from goodput_cli.analysis.goodput.frames import notebook_html

        return notebook_html(self)

    def to_frame(self, of: Frame = "categories") -> pd.DataFrame:
        """Rows of the answer as a DataFrame: `categories` (goodput among them), `insights`, `disruptions`, `attempts`
        (what each cost), `segments` or `events`. Raises UsageError for anything else."""
        from goodput_cli.analysis.goodput.frames import frame_of

        return frame_of(self, of)

    def to_dict(self) -> dict[str, Any]:
        """The answer as `--format json` writes it (docs/schema.json)."""
        answer: dict[str, Any] = json.loads(self._rendered("json"))
        return answer

    def to_html(self) -> str:
        """The report: a page of one file that needs no network."""
        return self._rendered("html")

    def _rendered(self, format_name: str) -> str:
        """As a renderer writes it. It is looked up by its name, as a plug-in is: results know none."""
        registry = import_module("goodput_cli.report.base")
        return str(registry.load_renderer(format_name)(self, registry.Page()))

    @cached_property
    def insights(self) -> tuple[Insight, ...]:
        """What cost most and what to do, the most costly first (docs/insights.md). Made when it is read."""
        from goodput_cli.analysis.insights.find import find_insights

        return find_insights(self)

    @cached_property
    def segments(self) -> pd.DataFrame:
        """The segments of the window as a DataFrame (needs pandas; see docs/accounting.md for the columns)."""
        from goodput_cli.analysis.goodput.frames import segment_frame

        return segment_frame(self.timeline, self.window.start_ns, self.window.end_ns)

    @cached_property
    def events(self) -> pd.DataFrame:
        """The job's events in time order as a DataFrame (needs pandas)."""
        from goodput_cli.analysis.goodput.frames import event_frame

        return event_frame(self.table)

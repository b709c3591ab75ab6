"""What an analysis answers: frozen results, ready for every renderer. A renderer formats and computes nothing.

Amounts of time are integer nanoseconds (`…_ns`); `seconds` and `percent` are made from them at the edge.
Instants are ns since 1970 UTC. `None` is "not recorded" or "does not apply", never zero.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from goodput_cli.accounting.rules import Method as Method
from goodput_cli.diagnostics.diagnostic import Diagnostic

if TYPE_CHECKING:
    import pandas as pd

    from goodput_cli.accounting.build import Timeline
    from goodput_cli.analysis.disruptions.reliability import Reliability
    from goodput_cli.analysis.disruptions.rows import Disruptions
    from goodput_cli.analysis.insights.insight import Insight
    from goodput_cli.analysis.price import Price
    from goodput_cli.analysis.rolling.results import Rolling
    from goodput_cli.analysis.threshold import Threshold
    from goodput_cli.events.schema import EventTable, LogFormat

Ending = Literal["clean", "terminated", "crashed", "not_logged"]
Frame = Literal["categories", "insights", "disruptions", "segments", "events"]


@dataclass(frozen=True)
class Job:
    """The whole job: [start_ns, end_ns) is the job window (accounting §1)."""

    name: str
    """As the log has it."""
    start_ns: int
    """Start of the job window, ns since 1970 UTC."""
    end_ns: int
    """End of the job window, ns since 1970 UTC."""
    ending: Ending
    """How the last attempt ended, as far as it was logged."""
    attempts: int
    """How many attempts the log shows."""
    runs: int
    """How often the name was used (accounting §10)."""
    disruptions: int
    """How many disruptions lie inside the window of the question."""
    first_step: int | None
    """First recorded step of the final progress inside the window; of checkpoint logs, where kept progress begins."""
    last_step: int | None
    """Last recorded one, which may be in flight, or lost; of checkpoint logs, where kept progress ends."""
    kept_steps: float
    """Steps of the final progress inside the window; a fraction where a step counts in part."""
    kept_range: tuple[int, int] | None
    """First and last step of which something was kept; None where nothing was."""
    log_formats: tuple[LogFormat, ...]
    """Those seen, sorted."""

    @property
    def formats(self) -> tuple[str, ...]:
        """The names of the log formats seen, sorted."""
        return tuple(one.name for one in self.log_formats)


@dataclass(frozen=True)
class Window:
    """The window of the question, [start_ns, end_ns), and how much of it the user excluded."""

    start_ns: int
    """ns since 1970 UTC."""
    end_ns: int
    """ns since 1970 UTC."""
    excluded_ns: int
    """Time of it that the user excluded; it counts as neither goodput nor badput."""

    @property
    def ns(self) -> int:
        """Length, with what is excluded."""
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


@dataclass(frozen=True)
class AtRisk:
    """Kept progress after the last completed save, where the log has saves; none after a clean end (accounting §2)."""

    steps: float
    """Kept steps after the last completed save; a fraction where a step counts in part."""
    ns: int
    """Their training time."""


@dataclass(frozen=True)
class Reference:
    """The checkpoint-step model (accounting §6) and the resiliency calculator's table."""

    step_time_seconds: float | None
    """None where there is no reference; the counts below are of the log in any case."""
    origin: Literal["given", "auto"] | None
    """auto: taken from the log itself."""
    effective_computation_ns: int | None
    """Kept steps x reference step time."""
    min_loaded_step: int | None
    """Lowest step that a checkpoint was loaded from; None where none was loaded."""
    max_saved_step: int | None
    """Highest step that was saved; None where none was."""
    step_difference: int | None
    """`max_saved_step - min_loaded_step`; None where one of them is."""
    total_events: int
    """Lines left after removing identical ones."""
    job_started_count: int
    """Attempts that a start line opened."""
    checkpoints_loaded: int
    """Loads of a step above 0."""
    checkpoints_saved: int
    """Completed saves."""


@dataclass(frozen=True)
class StepStatistics:
    """Step times in seconds (accounting §8); all None where no step time was recorded."""

    count: int
    """How many step times there are."""
    ideal_seconds: float | None
    """The ideal step time."""
    mean_seconds: float | None
    """Mean."""
    median_seconds: float | None
    """Median."""
    p90_seconds: float | None
    """90th percentile."""
    p99_seconds: float | None
    """99th percentile."""


@dataclass(frozen=True)
class Saves:
    """Checkpoints that were saved."""

    count: int
    """How many."""
    interval_seconds: float | None
    """Median time between two in a row of the same attempt; None where no attempt has two."""


@dataclass(frozen=True)
class Elastic:
    """Slice efficiency over the window (accounting §9), shares of 0 to 1; None where no slice counts are known."""

    stepping: float | None
    """Time-weighted mean of active/total slices."""
    available: float | None
    """The same of available/total slices."""
    unknown_ns: int | None
    """Time of the window left out because no count had been recorded yet; None where the log holds none at all."""
    goodput_percent: float | None
    """Goodput times `stepping`."""


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
    def goodput_percent(self) -> float:
        """Goodput in percent of the window without what is excluded; never clamped."""
        return self.goodput.percent

    def __repr__(self) -> str:
        from goodput_cli.analysis.goodput.shown import repr_text

        return repr_text(self)

    def _repr_html_(self) -> str:
        from goodput_cli.analysis.goodput.shown import notebook_html

        return notebook_html(self)

    def to_frame(self, of: Frame = "categories") -> pd.DataFrame:
        """Rows of the answer as a DataFrame: `categories` (goodput among them), `insights`, `disruptions`, `segments`
        or `events`. Raises UsageError for anything else."""
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

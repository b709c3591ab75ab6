"""What an analysis answers: frozen results, ready for every renderer. A renderer formats and computes nothing.

Amounts of time are integer nanoseconds (`…_ns`); `seconds` and `percent` are made from them at the edge.
Instants are ns since 1970 UTC. `None` is "not recorded" or "does not apply", never zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from goodput_cli.accounting.rules import Method as Method
from goodput_cli.diagnostics.diagnostic import Diagnostic

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from goodput_cli.accounting.build import Timeline
    from goodput_cli.analysis.disruptions.reliability import Reliability
    from goodput_cli.analysis.disruptions.rows import Disruptions
    from goodput_cli.analysis.insights.insight import Insight
    from goodput_cli.analysis.price import Price
    from goodput_cli.events.schema import EventTable, LogFormat

Ending = Literal["clean", "terminated", "crashed", "not_logged"]
Frame = Literal["categories", "insights", "disruptions", "segments", "events"]
Verdict = Literal["failed", "warning", "passed", "not_recorded"]


@dataclass(frozen=True)
class Job:
    """The whole job: [start_ns, end_ns) is the job window (accounting §1).

    kept_steps: steps that are part of the final progress inside the window; a fraction where a step counts in part.
    first_step, last_step: recorded ones of the final progress inside the window, the last of which may be in flight, or
    lost; None where there is none. kept_range: first and last step of which something was kept; None where nothing was.
    In checkpoint logs both are where the kept progress begins and ends.
    runs: how often the name was used (accounting §10). log_formats: those seen, sorted.
    """

    name: str
    start_ns: int
    end_ns: int
    ending: Ending
    attempts: int
    runs: int
    disruptions: int
    first_step: int | None
    last_step: int | None
    kept_steps: float
    kept_range: tuple[int, int] | None
    log_formats: tuple[LogFormat, ...]

    @property
    def formats(self) -> tuple[str, ...]:
        """The names of the log formats seen, sorted."""
        return tuple(one.name for one in self.log_formats)


@dataclass(frozen=True)
class Window:
    """The window of the question, [start_ns, end_ns), and how much of it the user excluded."""

    start_ns: int
    end_ns: int
    excluded_ns: int

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
    """Time in one category (and label, for `custom_badput_events`). `percent` is of `Window.counted_ns`."""

    category: str
    label: str | None
    ns: int
    percent: float

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
    ns: int


@dataclass(frozen=True)
class Reference:
    """The checkpoint-step model (accounting §6) and the resiliency calculator's table.

    step_time_seconds and origin are None where there is no reference; the counts are of the log in any case.
    """

    step_time_seconds: float | None
    origin: Literal["given", "auto"] | None
    effective_computation_ns: int | None
    min_loaded_step: int | None
    max_saved_step: int | None
    step_difference: int | None
    total_events: int
    job_started_count: int
    checkpoints_loaded: int
    checkpoints_saved: int


@dataclass(frozen=True)
class StepStatistics:
    """Step times in seconds (accounting §8); all None where no step time was recorded."""

    count: int
    ideal_seconds: float | None
    mean_seconds: float | None
    median_seconds: float | None
    p90_seconds: float | None
    p99_seconds: float | None


@dataclass(frozen=True)
class Saves:
    """Checkpoints that were saved: how many, and the median time (s) between two in a row of the same attempt, None
    where no attempt has two."""

    count: int
    interval_seconds: float | None


@dataclass(frozen=True)
class Elastic:
    """Slice efficiency over the window (accounting §9), shares of 0 to 1; None where no slice counts are known.

    stepping: time-weighted mean of active/total slices; available: of available/total. unknown_ns: time of the window
    that is left out because no count had been recorded yet; None where the log holds no counts at all.
    goodput_percent: goodput times `stepping`.
    """

    stepping: float | None
    available: float | None
    unknown_ns: int | None
    goodput_percent: float | None


@dataclass(frozen=True)
class WindowRow:
    """One window of `Rolling`: [start_ns, end_ns), cut to the job window. percent: goodput, None where nothing counts.
    badput: every category that is not zero, the largest first. stepping: slice efficiency, None where unknown."""

    window_ns: int
    start_ns: int
    end_ns: int
    excluded_ns: int
    productive_ns: int
    percent: float | None
    badput: tuple[CategoryTime, ...]
    stepping: float | None


@dataclass(frozen=True)
class Rolling:
    """Goodput of many windows (accounting §7), as columns of length n: `rows` makes them one by one.

    window_ns: the length asked for. start_ns, end_ns: the window, cut to the job. excluded_ns, productive_ns: of it.
    categories: k pairs (category, label), and badput_ns: int64[k, n], the amounts; `productive_ns` and they add up to
    the window without `excluded_ns`. stepping: float64[n], slice efficiency, NaN where unknown. every_ns: between two
    ends. hindsight: False where each window is as it was known at its end.
    """

    window_ns: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    excluded_ns: NDArray[np.int64]
    productive_ns: NDArray[np.int64]
    categories: tuple[tuple[str, str | None], ...]
    badput_ns: NDArray[np.int64]
    stepping: NDArray[np.float64]
    every_ns: int
    hindsight: bool

    def __len__(self) -> int:
        return len(self.window_ns)

    @property
    def counted_ns(self) -> NDArray[np.int64]:
        """Length of each window without what is excluded: its 100 %."""
        return self.end_ns - self.start_ns - self.excluded_ns

    def rows(self) -> Iterator[WindowRow]:
        """The windows, length by length and each in time order."""
        columns = (self.window_ns, self.start_ns, self.end_ns, self.excluded_ns, self.productive_ns, self.stepping)
        amounts = self.badput_ns.T.tolist()
        lists = (column.tolist() for column in columns)
        for window, start, end, excluded, productive, stepping, badput in zip(*lists, amounts, strict=True):
            counted = end - start - excluded
            yield WindowRow(
                window_ns=window,
                start_ns=start,
                end_ns=end,
                excluded_ns=excluded,
                productive_ns=productive,
                percent=100 * productive / counted if counted else None,
                badput=self._badput(badput, counted),
                stepping=None if stepping != stepping else stepping,  # NaN
            )

    def _badput(self, amounts: list[int], counted: int) -> tuple[CategoryTime, ...]:
        some = [
            CategoryTime(category, label, ns, 100 * ns / counted if counted else float("nan"))
            for (category, label), ns in zip(self.categories, amounts, strict=True)
            if ns
        ]
        return tuple(sorted(some, key=lambda row: (-row.ns, row.category, row.label or "")))


@dataclass(frozen=True)
class Threshold:
    """One `--fail-…`/`--warn-if` expression. `met`: True = what it says holds, which fails the run (or warns).
    None = it was not recorded.

    value, limit: in percent, seconds or a plain number, as `unit` says ("%", "s" or ""). hint: where it was not
    recorded, what may have been meant; it may hold text of the log.
    """

    expression: str
    fails: bool
    met: bool | None
    value: float | None
    limit: float
    unit: str
    hint: str | None = None

    @property
    def verdict(self) -> Verdict:
        """What the expression did: fail the run, warn, nothing (passed), or it could not be judged."""
        if self.met is None:
            return "not_recorded"
        if not self.met:
            return "passed"
        return "failed" if self.fails else "warning"


@dataclass(frozen=True, repr=False)
class Analysis:
    """Where every second of the window went. `goodput.ns` and all `badput` add up to `window.counted_ns` exactly.

    badput: every category that is not zero, `other` included, `excluded` not; largest first.
    overlapped: time beside the ledger (`data_loading_async`).
    not_recorded: categories that this log holds no evidence for: unknown, not zero.
    rolling: where windows were asked for.
    disruptions: those inside the window, in time order; each is made when it is read. reliability: what they add up to
        (accounting §10).
    saves: None where the log has none. method: how all this was measured. price: what the accelerators cost, if said.
    asked: the logs, and the options that choose the job, as they were named: what other commands need to see it again.
    """

    job: Job
    window: Window
    goodput: CategoryTime
    badput: tuple[CategoryTime, ...]
    overlapped: tuple[CategoryTime, ...]
    at_risk: AtRisk | None
    reference: Reference
    steps: StepStatistics
    thresholds: tuple[Threshold, ...]
    not_recorded: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    timeline: Timeline
    table: EventTable
    disruptions: Disruptions
    elastic: Elastic = Elastic(None, None, None, None)
    rolling: Rolling | None = None
    reliability: Reliability | None = None
    saves: Saves | None = None
    method: Method = Method()
    price: Price | None = None
    asked: tuple[str, ...] = ()

    @property
    def goodput_percent(self) -> float:
        """Goodput in percent of the window without what is excluded; never clamped."""
        return self.goodput.percent

    def __repr__(self) -> str:
        from goodput_cli.analysis.goodput.shown import in_a_few_lines

        return in_a_few_lines(self)

    def _repr_html_(self) -> str:
        from goodput_cli.analysis.goodput.shown import in_a_cell

        return in_a_cell(self)

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

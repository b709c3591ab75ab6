"""Frozen results of an analysis, ready for every renderer. A renderer formats and computes nothing.

Amounts of time are integer nanoseconds (`…_ns`); `seconds` and `percent` are computed from them for output. Times are
ns since 1970 UTC. `None` is "not recorded" or "does not apply", never zero. This module does not import NumPy:
thresholds and saved answers are read without it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from goodput_cli.accounting.options import Method as Method
from goodput_cli.analysis.json_fields import Amount, Count, Instant, Json, written
from goodput_cli.vocabulary.text import duration, plural

if TYPE_CHECKING:
    import pandas as pd

    from goodput_cli.arrays import F64, I64, Mask
    from goodput_cli.events.schema import LogFormat


Recovery = Literal["automatic", "by the scheduler", "by hand"]
"""Who restarted a job; None if that is not logged."""
RECOVERIES: tuple[Recovery, ...] = get_args(Recovery)
UNKNOWN_IN_VERSION_1 = "not said"
"""A recovery that is not logged in answers with `schema_version` 1, which are still read."""
MARK = "<="
"""Prefix of a time that is an upper limit."""


@written("recoveries_part", "over the unplanned disruptions of the window; null where there is nothing to average")
@dataclass(frozen=True)
class Recoveries:
    """Times to detect and to recover, over the unplanned disruptions of a window."""

    mttr_seconds: Amount | None
    """mean time to recover: from the failure until training resumed, queue included; over those that resumed"""
    p50_seconds: Amount | None
    """median"""
    p90_seconds: Amount | None
    """90th percentile"""
    at_most: bool
    """whether a failure is not logged: times then count from the last progress"""
    recovered: Count
    """how many the mean is over"""
    not_recovered: Count
    """how many more did not resume training before the next disruption"""
    mean_time_to_detect_seconds: Amount | None
    """from the failure to the line that reports it, over those that have one"""
    detected: Count
    """how many that is over"""
    detect_at_most: bool
    """whether at least one of these times counts from the last progress"""
    automatic: Count
    """restarted by a launcher or an agent"""
    by_scheduler: Count
    """restarted by the scheduler"""
    by_hand: Count
    """restarted by a person"""
    not_said: Count
    """the log does not report who restarted the job"""


def recovery_words(one: Recoveries) -> str | None:
    """Return `MTTR <=12 min 30 s (1 of 1), p50 ..., p90 ...; restarts: 1 automatic`; None without disruptions."""
    count = one.recovered + one.not_recovered
    if not count:
        return None
    who = [
        f"{number} {words}"
        for number, words in zip((one.automatic, one.by_scheduler, one.by_hand), RECOVERIES, strict=True)
        if number
    ]
    if who and one.not_said:
        who.append(f"{one.not_said} unknown")
    by = f"; restarts: {', '.join(who)}" if who else ""
    if one.mttr_seconds is None:
        return f"MTTR unknown: training did not resume after {plural(count, 'disruption')} before the next one{by}"
    mark = MARK if one.at_most else ""
    mean, p50, p90 = (
        mark + duration(round(1e9 * (ns or 0))) for ns in (one.mttr_seconds, one.p50_seconds, one.p90_seconds)
    )
    spread = f", p50 {p50}, p90 {p90}" if one.recovered > 1 else ""
    detect = ""
    if one.mean_time_to_detect_seconds is not None:
        mark = MARK if one.detect_at_most else ""
        mean_detect = mark + duration(round(1e9 * one.mean_time_to_detect_seconds))
        detect = f"; time to detect {mean_detect} ({one.detected} of {count})"
    return f"MTTR {mean} ({one.recovered} of {count}){spread}{detect}{by}"


Ending = Literal["clean", "cancelled", "terminated", "crashed", "not_logged"]


@dataclass(frozen=True)
class TimeSpan:
    """A stretch of time, with its length."""

    start_ns: Instant
    """start"""
    end_ns: Instant
    """end"""

    @property
    def ns(self) -> Annotated[Count, Json("seconds")]:
        """length"""
        return self.end_ns - self.start_ns


@written(
    "job_part",
    keys="name start_ns end_ns ending attempts runs disruptions first_step last_step kept_steps formats",
)
@dataclass(frozen=True)
class Job:
    """The whole job: [start_ns, end_ns) is the job window (accounting §1)."""

    name: str
    """from the log, or derived from the file names"""
    start_ns: Instant
    """T0, the start of the job window"""
    end_ns: Instant
    """T1, the end of the job window"""
    ending: Ending
    """how the job's last attempt ended, as far as it was logged"""
    attempts: Count
    """attempts of the job"""
    runs: Count
    """how often the job's name was used"""
    disruptions: Count
    """transitions to the next attempt that do not follow a clean end"""
    first_step: int | None
    """first step of the final progress inside the window"""  # For checkpoint logs, kept progress begins here.
    last_step: int | None
    """last recorded step of the final progress inside the window; it may be in flight, or lost. In checkpoint
    logs: the end of kept progress"""
    kept_steps: Annotated[Amount, Json("whole")]
    """steps of the final progress inside the window; an integer unless a step counts in part"""
    kept_range: tuple[int, int] | None
    """First and last step with kept parts; None without any."""
    log_formats: tuple[LogFormat, ...]
    """Log formats, sorted."""

    @property
    def formats(self) -> Sequence[str]:
        """log formats seen"""
        return tuple(one.name for one in self.log_formats)

    @property
    def ends_clean(self) -> bool:
        """Return True if its end was intended, by its program or by whoever cancelled it (accounting §3)."""
        return self.ending in ("clean", "cancelled")


@written("window_part", "the window of the question", keys="start_ns end_ns ns excluded_ns")
@dataclass(frozen=True)
class Window:
    """The window of the question, [start_ns, end_ns), and how much of it the user excluded."""

    start_ns: Instant
    """where the question begins"""
    end_ns: Instant
    """where it ends"""
    excluded_ns: Annotated[Count, Json("seconds and ns", ns="excluded by the user, in ns")]
    """excluded by the user"""  # It counts as neither goodput nor badput.

    @property
    def ns(self) -> Annotated[Count, Json("seconds and ns", ns="length in ns, exclusions included")]:
        """length, exclusions included"""
        return self.end_ns - self.start_ns

    @property
    def counted_ns(self) -> int:
        """Length without excluded time: the base of percentages."""
        return self.ns - self.excluded_ns


@dataclass(frozen=True)
class CategoryTime:
    """Time in one category."""

    category: str
    """Name of the category, as in docs/accounting.md."""
    label: str | None
    """Label of `custom_badput_events`; None for every other category."""
    ns: int
    """Time, in ns; it may be negative for `training_slowdown`."""
    percent: float
    """Percentage of `Window.counted_ns`."""

    @property
    def seconds(self) -> float:
        return self.ns / 1e9

    @property
    def name(self) -> str:
        """`category`, or `category:LABEL`."""
        return self.category if self.label is None else f"{self.category}:{self.label}"


class CategoryTimes(tuple[CategoryTime, ...]):
    """Times in several categories: a tuple that prints as a table, and that pandas can show."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return a table: one row per category, with its duration and its percentage of the window."""
        if not self:
            return "(no time)"
        rows = [(one.name, duration(one.ns), f"{one.percent:.2f} %") for one in self]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            f"{name:<{widths[0]}}  {time:>{widths[1]}}  {share:>{widths[2]}}" for name, time, share in rows
        )

    def to_frame(self) -> pd.DataFrame:
        """Columns: category, label (or missing), ns (int64), seconds, percent. Needs pandas."""
        import pandas as pd

        names = ("category", "label", "ns", "seconds", "percent")
        return pd.DataFrame({name: [getattr(row, name) for row in self] for name in names})


@written(
    "at_risk_part",
    "kept progress after the last completed checkpoint, 0 after a clean end; null if the log has no saves",
    keys="steps ns",
    nulls=True,
)
@dataclass(frozen=True)
class AtRisk:
    """Kept progress after the last completed save, if the log has saves; none after a clean end (accounting §2)."""

    steps: Annotated[Amount, Json("whole")]
    """kept steps after the last completed checkpoint"""
    ns: Annotated[Count, Json("seconds")]
    """their time"""
    is_bound: bool = False
    """True if a later save may contain some of it: the log does not show whether that save is complete."""


@written("left_out")
@dataclass(frozen=True)
class RejectedRule:
    """A rule that the log contradicts."""

    event: str
    """the event that its lines seemed to report"""
    line: int | None
    """the line that contradicts it"""
    reason: str
    """why it was rejected"""


@written(
    "drafted_part",
    "rules inferred from the log because no format reads it; null if one does",
    keys="rules lines left_out mapping",
)
@dataclass(frozen=True)
class InferredRules:
    """Rules that were drafted from a log that no format reads, each proven on all of it."""

    rules: Count
    """number of rules"""
    lines: Count
    """lines that they were inferred from"""
    left_out: Sequence[RejectedRule]
    """rules that the log contradicts"""
    mapping: str
    """the rules as a mapping, to keep or edit"""
    doubts: tuple[str, ...] = ()
    """Warnings about the answer."""

    def sentence(self, asked: Sequence[str]) -> str:
        """Return the warning next to the headline. asked: the log, as it was given."""
        log = shlex.quote(asked[0]) if asked else "LOG"
        keep = f"to check or keep them, run `goodput check --suggest {log} > my.toml`"
        return f"read with {plural(self.rules, 'rule')} inferred from this log; {keep}"


@written("reference_part", "the checkpoint-step model and the resiliency calculator's table")
@dataclass(frozen=True)
class Reference:
    """The checkpoint-step model (accounting §6) and the resiliency calculator's table."""

    step_time_seconds: Amount | None
    """the reference step time"""  # None without one; the counts below are of the log in any case.
    origin: Literal["given", "auto"] | None
    """auto: taken from the log itself"""
    effective_computation_ns: Annotated[int | None, Json("seconds")]
    """kept steps x reference step time"""
    min_loaded_step: int | None
    """the lowest step that was loaded"""
    max_saved_step: int | None
    """the highest step that was saved"""
    step_difference: int | None
    """max_saved_step - min_loaded_step"""
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
    """Step times in seconds (accounting §8); all None if no step time was recorded."""

    count: Count
    """step times recorded"""
    ideal_seconds: Amount | None = None
    """mean of the step times up to median + 3 x MAD"""
    mean_seconds: Amount | None = None
    """mean of all step times"""
    median_seconds: Amount | None = None
    """median"""
    p90_seconds: Amount | None = None
    """90th percentile"""
    p99_seconds: Amount | None = None
    """99th percentile"""

    @property
    def known(self) -> dict[str, float]:
        """Seconds by name (`ideal`, `p99`), without those that are None."""
        names = [one.name for one in fields(self) if one.name != "count"]
        seconds = {name.removesuffix("_seconds"): getattr(self, name) for name in names}
        return {name: value for name, value in seconds.items() if value is not None}


@written(
    "saves_part",
    "checkpoints saved in the window; reports of several hosts about one step count once; null if the log has no saves",
    nulls=True,
)
@dataclass(frozen=True)
class Saves:
    """Checkpoints that were saved."""

    count: Count
    """saves that were completed"""
    interval_seconds: Amount | None
    """median time between the ends of two saves in a row of one attempt"""
    timed: Annotated[Count | None, Json(missing=None, later=True)] = None
    """saves whose blocking time is logged and not in lost training: the category divided by it is the time of a save;
    null for checkpoint logs"""


@written("elastic_part", "slice efficiency (accounting, section 9)", nulls=True)
@dataclass(frozen=True)
class SliceEfficiency:
    """Slice efficiency over the window (accounting §9), shares of 0 to 1; None if no slice counts are known."""

    stepping: Annotated[Amount | None, Json(key="stepping_slice_efficiency")]
    """time-weighted mean of active/total slices over the window, 0 to 1; null: no counts known"""
    available: Annotated[Amount | None, Json(key="available_slice_efficiency")]
    """the same of available/total slices"""
    unknown_ns: Annotated[Count | None, Json("seconds")]
    """time of the window left out because no count was known; null: no counts in the log"""
    goodput_percent: Annotated[Amount | None, Json(key="goodput_x_stepping_percent")]
    """goodput times stepping_slice_efficiency"""


NO_SLICE_COUNTS = SliceEfficiency(None, None, None, None)


@written("unproductive_stretch", "longest period of the window without productive time", keys="start_ns end_ns ns")
@dataclass(frozen=True)
class UnproductiveStretch(TimeSpan):
    """A part of the window without productive time or exclusions."""


_STRETCH = Json(
    made=lambda bounds: UnproductiveStretch(*bounds),
    kind=UnproductiveStretch,
    back=lambda stretch: (stretch.start_ns, stretch.end_ns),
)


@written(
    "reliability_part",
    "over the disruptions whose last activity is in the window; null if there is nothing to average",
    nulls=True,
    keys=(
        "failures mtbf_seconds mtbf_ci95_seconds mean_downtime_seconds mean_time_to_regain_seconds exposure_ns ettr "
        "longest_unproductive recoveries"
    ),
)
@dataclass(frozen=True)
class Reliability:
    """Reliability over the disruptions of one window; means are None if there is nothing to average."""

    disruptions: int
    """Number of disruptions."""
    failures: Annotated[int | None, Json(missing=None, optional=True)]
    """the disruptions, and the end of the last attempt if it is logged, was not planned and was not a cancellation"""
    exposure_ns: Annotated[Count, Json("seconds")]
    """time of the window in which attempts were up"""  # From the last start line of a burst to the last sign of life.
    mtbf_seconds: Amount | None
    """exposure_seconds / failures"""
    mtbf_ci95_seconds: Annotated[tuple[float | None, float | None], Json(missing=(None, None))]
    """95 % Poisson interval (chi-square, time-truncated); without failures only the lower bound is known"""
    mean_downtime_seconds: Amount | None
    """mean of downtime_seconds"""
    mean_time_to_regain_seconds: Amount | None
    """mean of regained_after_seconds, over those that were regained"""
    longest_unproductive: Annotated[tuple[int, int] | None, _STRETCH]
    """the longest period without kept training"""
    # [start, end) in ns; None if all time is productive or excluded.
    ettr: Amount | None
    """effective training time ratio: productive / window, 0..1; null: it cannot be judged"""
    recoveries: Annotated[Recoveries | None, Json(missing=None, optional=True)] = None
    """time to detect and to recover; left out without disruptions"""


@dataclass(frozen=True)
class WindowRow:
    """One window of `Rolling`: [start_ns, end_ns), cut to the job window."""

    window_ns: int
    """Requested length."""
    start_ns: int
    """ns since 1970 UTC."""
    end_ns: int
    """ns since 1970 UTC."""
    excluded_ns: int
    """Time in it that the user excluded."""
    productive_ns: int | None
    """Time that became progress; None if it is unknown, or only bounds are known."""
    percent: float | None
    """Goodput; None without counted time, if it is unknown, or if only bounds are known."""
    at_least_percent: float | None
    """The lowest goodput that the log allows; None without counted time, or if it allows any."""
    at_most_percent: float | None
    """The highest goodput that the log allows; None without counted time, or if it allows any."""
    badput: tuple[CategoryTime, ...]
    """Every category that is not zero, the largest first; one reading if only bounds are known."""
    stepping: float | None
    """Slice efficiency; None if unknown."""

    @property
    def is_bounded(self) -> bool:
        """Return True if only bounds of goodput are known."""
        return self.at_least_percent != self.at_most_percent


@dataclass(frozen=True, repr=False)
class Rolling:
    """Goodput of many windows (accounting §7), as columns of length n: `rows` makes them one by one."""

    window_ns: I64
    """Requested length of each row."""
    start_ns: I64
    """Start of each window, cut to the job window; ns since 1970 UTC."""
    end_ns: I64
    """End of each window, ns since 1970 UTC."""
    excluded_ns: I64
    """Time in each that the user excluded."""
    productive_ns: I64
    """Time in each that became progress."""
    categories: tuple[tuple[str, str | None], ...]
    """Pairs (category, label), k of them."""
    badput_ns: I64
    """int64[k, n]: the amounts; with `productive_ns` they add up to the window without `excluded_ns`."""
    stepping: F64
    """Slice efficiency, NaN if unknown."""
    every_ns: int
    """Time between two ends."""
    hindsight: bool
    """False if each window is as it was known at its end."""
    unknown: Mask
    """True for windows with unknown goodput (accounting §7)."""
    at_most_ns: I64
    """Maximum time of each that may have become progress: above `productive_ns` if only bounds are known."""

    def __len__(self) -> int:
        return len(self.window_ns)

    def __repr__(self) -> str:
        return f"<{plural(len(self), 'window')}; .to_frame() has one row per window>"

    def to_frame(self) -> pd.DataFrame:
        """Return a DataFrame with one row per window: start and end (UTC), lengths and productive time in ns, goodput
        in percent."""
        import pandas as pd

        counted = pd.Series(self.counted_ns)
        productive = pd.Series(self.productive_ns)
        if (self.unknown | self.bounded).any():
            productive = productive.astype("Int64").mask(self.unknown | self.bounded)
        return pd.DataFrame(
            {
                "start": pd.to_datetime(self.start_ns, unit="ns", utc=True),
                "end": pd.to_datetime(self.end_ns, unit="ns", utc=True),
                "window_ns": self.window_ns,
                "counted_ns": counted,
                "productive_ns": productive,
                "goodput_percent": self.percent,
                "at_least_percent": self.at_least_percent,
                "at_most_percent": self.at_most_percent,
            }
        )

    @property
    def bounded(self) -> Mask:
        """True for windows of which only bounds of goodput are known (accounting §7)."""
        bounded: Mask = self.at_most_ns != self.productive_ns
        return bounded

    @property
    def percent(self) -> F64:
        """Goodput of each; NaN without counted time, if it is unknown, or if only bounds are known."""
        import numpy as np

        return np.where(self.bounded, np.nan, self.at_least_percent)

    @property
    def at_least_percent(self) -> F64:
        """The lowest goodput of each that the log allows; NaN without counted time, or if it allows any."""
        return self._percent_of(self.productive_ns)

    @property
    def at_most_percent(self) -> F64:
        """The highest goodput of each that the log allows; NaN without counted time, or if it allows any."""
        return self._percent_of(self.at_most_ns)

    def _percent_of(self, ns: I64) -> F64:
        import numpy as np

        counted = self.counted_ns
        share = np.full(len(self), np.nan)
        np.divide(100 * ns, counted, out=share, where=(counted > 0) & ~self.unknown)
        return share

    @property
    def counted_ns(self) -> I64:
        """Length of each window without excluded time: the base of its percentages."""
        return self.end_ns - self.start_ns - self.excluded_ns

    def rows(self) -> Iterator[WindowRow]:
        """Yield the windows, ordered by length and then by time."""
        columns = (
            self.window_ns, self.start_ns, self.end_ns, self.excluded_ns, self.productive_ns, self.stepping,
            self.at_most_ns, self.unknown,
        )  # fmt: skip
        amounts = self.badput_ns.T.tolist()
        lists = (column.tolist() for column in columns)
        for window, start, end, excluded, least, stepping, most, unknown, badput in zip(*lists, amounts, strict=True):
            counted = end - start - excluded
            judged = counted > 0 and not unknown
            yield WindowRow(
                window_ns=window,
                start_ns=start,
                end_ns=end,
                excluded_ns=excluded,
                productive_ns=None if unknown or least != most else least,
                percent=100 * least / counted if judged and least == most else None,
                at_least_percent=100 * least / counted if judged else None,
                at_most_percent=100 * most / counted if judged else None,
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

"""`GoodputCalculator`: the results of `goodput analyze` in the form of ml-goodput-measurement.

It is the only part of the recorder that uses goodput-cli, when a method is called; the small wheel does not contain
goodput-cli.
"""

from __future__ import annotations

import datetime
import glob
import io
import json
import os

from ...of_recorder import TO_INSTALL, default_folder, in_path, known_project, split
from .goodput_utils import BadputType, GoodputType, IntervalMetricType, MetricType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Breakdown = dict[BadputType, float | dict[str, float]]

_ELASTIC = (BadputType.ELASTIC_SLICE_DOWN, BadputType.ELASTIC_SCALE_UP, BadputType.ELASTIC_REINITIALIZATION)


def analyze(sources: list[str], **options: Any) -> Any:
    """Call `goodput_cli.analyze`. Raises ImportError if goodput-cli is not installed, ValueError for logs without a
    result, as the original does."""
    try:
        import goodput_cli
    except ImportError:
        raise ImportError(f"GoodputCalculator requires goodput-cli in addition to the recorder: {TO_INSTALL}") from None
    try:
        return goodput_cli.analyze(sources, **options)
    except Exception as error:
        if type(error).__module__.startswith("goodput_cli"):
            raise ValueError(str(error)) from error
        raise


class GoodputCalculator:
    """Calculator for the lines of this job's recorder: its files, otherwise Cloud Logging. cloud_logger: an object with
    `read_cloud_logging_entries` that is read instead. Arguments about Pathways and caches are accepted and ignored."""

    _kinds: tuple[BadputType, ...] = tuple(kind for kind in BadputType if kind not in _ELASTIC)

    def __init__(
        self,
        job_name: str,
        logger_name: str,
        cloud_logger: Any = None,
        using_pathways: bool = False,
        max_logs_retention_period: datetime.timedelta | None = None,
        gcs_path: str | None = None,
        cache_dir: str = "/tmp",
    ) -> None:
        del gcs_path, cache_dir
        self.job_name = job_name
        self.using_pathways = using_pathways
        self._logger_name = logger_name
        self._cloud_logger = cloud_logger
        self._retention = max_logs_retention_period
        self._last: dict[str, Any] | None = None

    def sync_to_gcs(self) -> None:
        """Do nothing: there is no cache to sync."""

    def get_job_goodput(
        self, include_badput_breakdown: bool = False, configured_ideal_step_time: float | None = None
    ) -> tuple[float, Breakdown, int]:
        """Return goodput (percent), badput (percent by type; {} by default) and the last kept step, as of now. A job
        with an end line ends there. Raises ValueError."""
        analysis = self._analyze()
        self._last = self._details(analysis, configured_ideal_step_time)
        return analysis.goodput.percent, self._percents(analysis, include_badput_breakdown), _last_step(analysis)

    def get_job_goodput_interval(
        self, interval_start: datetime.datetime, interval_end: datetime.datetime
    ) -> tuple[float, Breakdown, int, float, int]:
        """Return goodput and badput of a window, the last kept step in it, its length (s) and its disruptions. Steps
        that were repeated after the window are wasted in it. Raises ValueError."""
        analysis = self._analyze(start=_aware(interval_start), end=_aware(interval_end))
        return (
            analysis.goodput.percent,
            self._percents(analysis, True),
            _last_step(analysis),
            analysis.window.ns / 1e9,
            analysis.job.disruptions,
        )

    def get_job_goodput_with_exclusions(
        self,
        exclusion_intervals: Sequence[tuple[datetime.datetime, datetime.datetime]],
        include_badput_breakdown: bool = False,
        configured_ideal_step_time: float | None = None,
    ) -> tuple[float, Breakdown, int, float]:
        """Return `get_job_goodput` without these windows; and their length (s). Raises ValueError."""
        windows = [f"{_aware(start).isoformat()}/{_aware(end).isoformat()}" for start, end in exclusion_intervals]
        analysis = self._analyze(exclude=windows)
        self._last = self._details(analysis, configured_ideal_step_time)
        percents = self._percents(analysis, include_badput_breakdown)
        return analysis.goodput.percent, percents, _last_step(analysis), analysis.window.excluded_ns / 1e9

    def get_step_deviation(self, configured_ideal_step_time: float | None = None) -> dict[int, float]:
        """Return the difference in seconds of each step from the ideal one."""
        return _deviations(self._analyze(), configured_ideal_step_time)

    def get_job_goodput_details(self) -> dict[str, Any]:
        """Return the seconds of the last `get_job_goodput`; all zeros before."""
        if self._last is not None:
            return self._last
        empty: dict[str, Any] = {kind.value: 0.0 for kind in MetricType}
        for kind in (MetricType.GOODPUT_TIME, MetricType.BADPUT_TIME, MetricType.STEP_TIME_DEVIATION):
            empty[kind.value] = {}
        return empty | {MetricType.MAX_PRODUCTIVE_STEP.value: 0, MetricType.DISRUPTION_COUNT.value: 0}

    def get_interval_metric_details(
        self, interval_start: datetime.datetime, interval_end: datetime.datetime
    ) -> dict[str, Any]:
        """Return goodput and badput (percent) of a window, and its length in whole seconds; empty if unknown."""
        goodput: dict[GoodputType, float] = {}
        badput: Breakdown = {}
        try:
            percent, badput, *_ = self.get_job_goodput_interval(interval_start, interval_end)
            goodput = {GoodputType.TOTAL: percent}
        except ValueError:
            pass  # as in the original
        return {
            IntervalMetricType.INTERVAL_GOODPUT.value: goodput,
            IntervalMetricType.INTERVAL_BADPUT.value: badput,
            IntervalMetricType.INTERVAL_SIZE.value: int((interval_end - interval_start).total_seconds()),
        }

    def _analyze(self, **options: Any) -> Any:
        """Analyze the log as of the moment of the call."""
        options["as_of"] = "now"
        if self._cloud_logger is not None:
            entries, _ = self._cloud_logger.read_cloud_logging_entries()
            lines = "".join(json.dumps(entry) + "\n" for entry in entries).encode()
            return analyze(["-"], stdin=io.BytesIO(lines), job_name=self.job_name, **options)
        days = None if self._retention is None else self._retention / datetime.timedelta(days=1)
        return analyze(self._sources(), job_name=self.job_name, lookback_days=days, **options)

    def _sources(self) -> list[str]:
        """Return the targets of this job's recorder."""
        sources = [source_of(str(target), self.job_name, self._logger_name) for target in split(None)]
        named = [source for source in sources if source]
        if named:
            return named
        stem = os.path.join(default_folder(), in_path(self.job_name))
        files = [
            path for path in (f"{stem}.jsonl", *glob.glob(f"{glob.escape(stem)}.*.r*.jsonl")) if os.path.exists(path)
        ]
        project = None if files else known_project()
        return files or ([f"{stem}.jsonl"] if project is None else [f"cloud-logging://{project}/{self._logger_name}"])

    def _percents(self, analysis: Any, wanted: bool) -> Breakdown:
        if not wanted:
            return {}
        return self._by_type([(time.category, time.label, time.percent) for time in _times(analysis)])

    def _by_type(self, amounts: Sequence[tuple[str, str | None, float]]) -> Breakdown:
        """Return amounts by type. Categories without a type in the original are OTHER."""
        custom: dict[str, float] = {}
        plain: dict[BadputType, float] = dict.fromkeys(self._kinds, 0.0)
        for category, label, amount in amounts:
            kind = getattr(BadputType, category.upper(), BadputType.OTHER)
            if kind is BadputType.CUSTOM_BADPUT_EVENTS:
                custom[label or "UNKNOWN"] = amount
            else:
                plain[kind] = plain.get(kind, 0.0) + amount
        return {**plain, BadputType.CUSTOM_BADPUT_EVENTS: custom}

    def _details(self, analysis: Any, ideal: float | None) -> dict[str, Any]:
        seconds = [(time.category, time.label, time.ns / 1e9) for time in _times(analysis)]
        return {
            MetricType.GOODPUT_TIME.value: {GoodputType.TOTAL: analysis.goodput.ns / 1e9},
            MetricType.BADPUT_TIME.value: self._by_type(seconds),
            MetricType.MAX_PRODUCTIVE_STEP.value: _last_step(analysis),
            MetricType.TOTAL_ELAPSED_TIME.value: analysis.window.counted_ns / 1e9,
            MetricType.DISRUPTION_COUNT.value: analysis.job.disruptions,
            MetricType.STEP_TIME_DEVIATION.value: _deviations(analysis, ideal),
            MetricType.IDEAL_STEP_TIME.value: ideal or analysis.steps.ideal_seconds or 0.0,
            MetricType.TOTAL_EXCLUDED_TIME.value: analysis.window.excluded_ns / 1e9,
        }


class ElasticGoodputCalculator(GoodputCalculator):
    """`GoodputCalculator` for elastic jobs, with their types of badput, and slice efficiencies (0 to 1) if counts are
    known."""

    _kinds = tuple(BadputType)

    def get_interval_metric_details(
        self, interval_start: datetime.datetime, interval_end: datetime.datetime
    ) -> dict[str, Any]:
        """Return the result for any job, and slice efficiencies of the window."""
        details = super().get_interval_metric_details(interval_start, interval_end)
        if details[IntervalMetricType.INTERVAL_GOODPUT.value]:
            analysis = self._analyze(start=_aware(interval_start), end=_aware(interval_end))
            details.update(_efficiencies(analysis))
        return details

    def _details(self, analysis: Any, ideal: float | None) -> dict[str, Any]:
        return {**super()._details(analysis, ideal), **_efficiencies(analysis)}


def _efficiencies(analysis: Any) -> dict[str, float]:
    if analysis.elastic.stepping is None:
        return {}
    return {
        "stepping_slice_efficiency": analysis.elastic.stepping,
        "available_slice_efficiency": analysis.elastic.available,
    }


def _times(analysis: Any) -> tuple[Any, ...]:
    return (*analysis.badput, *analysis.overlapped)


def _last_step(analysis: Any) -> int:
    return int(analysis.job.last_step or 0)


def _deviations(analysis: Any, ideal: float | None) -> dict[int, float]:
    """Return the time from each step's start to the next one's in the same attempt, minus the ideal time."""
    ideal = ideal or analysis.steps.ideal_seconds
    if not ideal:
        return {}
    events = analysis.events
    deviations: dict[int, float] = {}
    step: int | None = None
    begin = None
    for kind, number, time in zip(events["kind"], events["step"], events["time"], strict=True):
        if kind == "start":
            step = None
        elif kind == "step":
            if step is not None and number == step + 1:
                deviations[step] = abs((time - begin).total_seconds() - ideal)
            step, begin = int(number), time
    return deviations


def source_of(target: str, job_name: str, log_id: str) -> str:
    """Return the source to read for a target; "" if it cannot be read."""
    if target in ("-", "stdout:", "stderr:"):
        return ""
    if target.startswith("gs://"):
        return f"{target.rstrip('/')}/{in_path(job_name)}/"
    if target.startswith("cloud-logging:"):
        project, _, log = target.removeprefix("cloud-logging:").removeprefix("//").partition("/")
        return f"cloud-logging://{project}/{log or log_id}"
    return target


def _aware(moment: datetime.datetime) -> datetime.datetime:
    return moment if moment.tzinfo is not None else moment.astimezone()

"""OpenMetrics text that Prometheus' older text format reads as well, for a node-exporter's textfile collector, a push
gateway or GitLab's metrics report.

Gauges only, without timestamps: the collector refuses those. What is not recorded has no sample; a category that was
recorded and is zero has one, so that a series does not vanish when all is well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import get_args

from goodput_cli.analysis.results import Analysis, StepStatistics, Threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic, Severity
from goodput_cli.report.base import Page
from goodput_cli.vocabulary.categories import CATEGORIES
from goodput_cli.vocabulary.text import exact, finite, safe, seconds_text

Labels = dict[str, str]
_VERDICTS = ("failed", "warning", "passed", "not_recorded")
_UNITS = ("seconds", "ratio")
_NOT_IN_LEDGER = ("productive", "excluded")


@dataclass(frozen=True)
class Family:
    """A metric: samples are (labels beside the job's name, value as text)."""

    name: str
    meaning: str
    samples: list[tuple[Labels, str]]


def render(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The analysis as an exposition that ends with `# EOF`."""
    job = {"job_name": analysis.job.name}
    lines = [line for family in families(analysis) for line in _exposed(family, job)]
    return "\n".join([*lines, "# EOF"]) + "\n"


def families(analysis: Analysis) -> Iterator[Family]:
    """Every metric, also those without a sample; docs/ci.md describes each."""
    window, job = analysis.window, analysis.job
    yield _one("goodput_ratio", "Productive share of the window, 0 to 1.", _of(analysis.goodput_percent, 100))
    yield Family("goodput_category_seconds", "Time of the window by category.", list(_categories(analysis)))
    yield _one(
        "goodput_window_seconds", "Length of the window without what is excluded.", seconds_text(window.counted_ns)
    )
    yield _seconds("goodput_excluded_seconds", "Time taken out of the window.", window.excluded_ns)
    yield _one(
        "goodput_window_start_timestamp_seconds", "Start of the window, since 1970 UTC.", seconds_text(window.start_ns)
    )
    yield _one(
        "goodput_window_end_timestamp_seconds", "End of the window, since 1970 UTC.", seconds_text(window.end_ns)
    )
    yield Family("goodput_overlapped_seconds", "Time that overlaps training.", _overlapped(analysis))
    yield _one("goodput_attempts", "Attempts in the window.", str(job.attempts))
    yield _one("goodput_disruptions", "Disruptions in the window.", str(job.disruptions))
    yield _one("goodput_kept_steps", "Steps of the window that are part of the final progress.", _of(job.kept_steps))
    yield _one("goodput_last_step", "Last recorded step of the final progress.", _of(job.last_step))
    yield from _beside(analysis)
    yield Family("goodput_step_time_seconds", "Step times.", list(_step_times(analysis.steps)))
    yield from _thresholds(analysis.thresholds)
    yield Family("goodput_diagnostics", "Findings about the log.", list(_diagnostics(analysis.diagnostics)))


def _diagnostics(diagnostics: Iterable[Diagnostic]) -> Iterator[tuple[Labels, str]]:
    counts = Counter(dict.fromkeys(get_args(Severity), 0))
    for found in diagnostics:
        counts[found.severity] += found.count
    return (({"severity": severity}, str(count)) for severity, count in counts.items())


def _categories(analysis: Analysis) -> Iterator[tuple[Labels, str]]:
    """Goodput, every badput, and zero for what was recorded and did not occur. Labels that look the same once they are
    safe are one series: two would make the whole file invalid."""
    yield {"category": "productive", "label": ""}, seconds_text(analysis.goodput.ns)
    amounts: dict[tuple[str, str], int] = {}
    for row in analysis.badput:
        key = row.category, safe(row.label or "")
        amounts[key] = amounts.get(key, 0) + row.ns
    seen = {category for category, _ in amounts}
    for category in CATEGORIES:
        if category not in (*seen, *analysis.not_recorded, *_NOT_IN_LEDGER):
            amounts[category, ""] = 0
    yield from (({"category": category, "label": label}, seconds_text(ns)) for (category, label), ns in amounts.items())


def _overlapped(analysis: Analysis) -> list[tuple[Labels, str]]:
    return [({"category": row.category}, seconds_text(row.ns)) for row in analysis.overlapped]


def _beside(analysis: Analysis) -> Iterator[Family]:
    risk, found, elastic = analysis.at_risk, analysis.reliability, analysis.elastic
    if risk is not None:
        yield _one("goodput_at_risk_steps", "Kept steps after the last completed save.", _of(risk.steps))
        yield _seconds("goodput_at_risk_seconds", "Kept training after the last completed save.", risk.ns)
    if found is not None:
        yield _one("goodput_mtbf_seconds", "Mean time between disruptions.", _of(found.mtbf_seconds))
        yield _one("goodput_mean_downtime_seconds", "Mean downtime of a disruption.", _of(found.mean_downtime_seconds))
        regain = _of(found.mean_time_to_regain_seconds)
        yield _one("goodput_mean_time_to_regain_seconds", "Mean time until lost progress was regained.", regain)
    yield _one("goodput_stepping_slices_ratio", "Share of the slices that were stepping.", _of(elastic.stepping))
    yield _one("goodput_available_slices_ratio", "Share of the slices that were available.", _of(elastic.available))
    reference = _of(analysis.reference.step_time_seconds)
    yield _one("goodput_reference_step_time_seconds", "What a step should take.", reference)


def _step_times(steps: StepStatistics) -> Iterator[tuple[Labels, str]]:
    named = {
        "ideal": steps.ideal_seconds,
        "mean": steps.mean_seconds,
        "median": steps.median_seconds,
        "p90": steps.p90_seconds,
        "p99": steps.p99_seconds,
    }
    for name, value in named.items():
        text = _of(value)
        if text is not None:
            yield {"statistic": name}, text


def _thresholds(thresholds: tuple[Threshold, ...]) -> Iterator[Family]:
    """Value and limit in the unit of the label, and one sample a verdict, of which one is 1. An expression that was
    given twice is one series."""
    by_name = {(safe(one.expression), "fail" if one.fails else "warn"): one for one in thresholds}
    verdicts, values, limits = [], [], []
    for (expression, action), one in by_name.items():
        labels = {"expression": expression, "action": action}
        verdicts += [(labels | {"verdict": name}, str(int(one.verdict == name))) for name in _VERDICTS]
        measured = labels | {"unit": one.unit}
        limits.append((measured, exact(one.limit)))
        value = _of(one.value)
        if value is not None:
            values.append((measured, value))
    yield Family("goodput_threshold_verdict", "1 for the verdict on the expression, 0 for the others.", verdicts)
    yield Family("goodput_threshold_value", "What the expression was judged on, in its unit.", values)
    yield Family("goodput_threshold_limit", "The limit of the expression, in its unit.", limits)


def _exposed(family: Family, job: Labels) -> Iterator[str]:
    """The lines of a family; none without a sample."""
    if not family.samples:
        return
    yield f"# HELP {family.name} {family.meaning}"
    yield f"# TYPE {family.name} gauge"
    unit = family.name.rpartition("_")[2]
    if unit in _UNITS:
        yield f"# UNIT {family.name} {unit}"
    for labels, value in family.samples:
        pairs = ",".join(f'{name}="{_escaped(text)}"' for name, text in (job | labels).items())
        yield f"{family.name}{{{pairs}}} {value}"


def _escaped(text: str) -> str:
    """A label's value: what acts on a terminal is shown, then the escapes of the format."""
    return safe(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _one(name: str, meaning: str, value: str | None) -> Family:
    """A family of one sample, or of none."""
    return Family(name, meaning, [] if value is None else [({}, value)])


def _seconds(name: str, meaning: str, ns: int) -> Family:
    return _one(name, meaning, seconds_text(ns))


def _of(value: float | None, divisor: int = 1) -> str | None:
    known = finite(value)
    return None if known is None else exact(known / divisor)

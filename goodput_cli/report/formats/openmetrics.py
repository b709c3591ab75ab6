"""OpenMetrics text that Prometheus' older text format reads as well, for a node-exporter's textfile collector, a push
gateway or GitLab's metrics report.

Gauges only, without timestamps: the collector refuses those. What is not recorded has no sample; a category that was
recorded and is zero has one, so that a series does not vanish when all is well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from goodput_cli.analysis.measures import MEASURES, published_value
from goodput_cli.analysis.published import Family
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.summary import summary_of
from goodput_cli.analysis.threshold import VERDICTS, Threshold
from goodput_cli.diagnostics.codes import SEVERITIES
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.report.base import Page
from goodput_cli.vocabulary.categories import NOT_BADPUT, Category
from goodput_cli.vocabulary.text import exact, finite, safe, seconds_text

Labels = dict[str, str]
_UNITS = ("seconds", "ratio")
END = "# EOF\n"


def render(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The analysis as an exposition that ends with `# EOF`."""
    return exposition(families(analysis), {"job_name": analysis.job.name}) + END


def exposition(metrics: Iterable[Family], job: Labels) -> str:
    """The lines of metrics, without what ends a text of them. job: labels of every sample."""
    return "".join(f"{line}\n" for family in metrics for line in _exposed(family, job))


def families(analysis: Analysis) -> Iterator[Family]:
    """Every metric, also those without a sample; docs/ci.md describes each."""
    window, measured = analysis.window, _measured(analysis)
    yield measured.pop("goodput_ratio")
    yield Family("goodput_category_seconds", "Time of the window by category.", list(_categories(analysis)))
    yield measured.pop("goodput_window_seconds")
    yield _one("goodput_excluded_seconds", "Time taken out of the window.", seconds_text(window.excluded_ns))
    yield _one(
        "goodput_window_start_timestamp_seconds", "Start of the window, since 1970 UTC.", seconds_text(window.start_ns)
    )
    yield _one(
        "goodput_window_end_timestamp_seconds", "End of the window, since 1970 UTC.", seconds_text(window.end_ns)
    )
    yield Family("goodput_overlapped_seconds", "Time that overlaps training.", _overlapped(analysis))
    yield from (measured.pop(name) for name in ("goodput_attempts", "goodput_disruptions", "goodput_kept_steps"))
    yield _one("goodput_last_step", "Last recorded step of the final progress.", _of(analysis.job.last_step))
    step_times = measured.pop("goodput_step_time_seconds")
    yield from (measured.pop(name) for name in ("goodput_at_risk_steps", "goodput_at_risk_seconds"))
    yield from measured.values()
    reference = _of(analysis.reference.step_time_seconds)
    yield _one("goodput_reference_step_time_seconds", "What a step should take.", reference)
    yield step_times
    yield from threshold_families(analysis.thresholds, analysis.diagnostics)


def threshold_families(thresholds: Sequence[Threshold], diagnostics: Iterable[Diagnostic]) -> Iterator[Family]:
    """What every answer has: its thresholds, and how many findings there are."""
    yield from _thresholds(thresholds)
    yield Family("goodput_diagnostics", "Findings about the log.", list(_diagnostics(diagnostics)))


def _measured(analysis: Analysis) -> dict[str, Family]:
    """The measures that are published, by name, each with the samples that are recorded."""
    summary = summary_of(analysis)
    families: dict[str, Family] = {}
    for measure in MEASURES.values():
        if measure.metric is not None:
            family = families.setdefault(measure.metric, Family(measure.metric, measure.meaning, []))
            value = published_value(summary, measure)
            family.samples.extend([] if value is None else [(dict(measure.labels), _number(value))])
    return families


def _diagnostics(diagnostics: Iterable[Diagnostic]) -> Iterator[tuple[Labels, str]]:
    counts = Counter(dict.fromkeys(reversed(SEVERITIES), 0))
    for diagnostic in diagnostics:
        counts[diagnostic.severity] += diagnostic.count
    return (({"severity": severity}, str(count)) for severity, count in counts.items())


def _categories(analysis: Analysis) -> Iterator[tuple[Labels, str]]:
    """Goodput, every badput, and zero for what was recorded and did not occur. Labels that look the same once they are
    safe are one series: two would make the whole file invalid."""
    yield {"category": Category.PRODUCTIVE.id, "label": ""}, seconds_text(analysis.goodput.ns)
    amounts: dict[tuple[str, str], int] = {}
    for row in analysis.badput:
        key = row.category, safe(row.label or "")
        amounts[key] = amounts.get(key, 0) + row.ns
    seen = {category for category, _ in amounts}
    for category in Category:
        if category not in NOT_BADPUT and category.id not in (*seen, *analysis.not_recorded):
            amounts[category.id, ""] = 0
    yield from (({"category": category, "label": label}, seconds_text(ns)) for (category, label), ns in amounts.items())


def _overlapped(analysis: Analysis) -> list[tuple[Labels, str]]:
    return [({"category": row.category}, seconds_text(row.ns)) for row in analysis.overlapped]


def _thresholds(thresholds: Sequence[Threshold]) -> Iterator[Family]:
    """Value and limit in the unit of the label, and one sample a verdict, of which one is 1. An expression that was
    given twice is one series."""
    by_name = {
        (safe(threshold.expression), "fail" if threshold.fails else "warn"): threshold for threshold in thresholds
    }
    verdicts, values, limits = [], [], []
    for (expression, action), threshold in by_name.items():
        labels = {"expression": expression, "action": action}
        verdicts += [(labels | {"verdict": name}, str(int(threshold.verdict == name))) for name in VERDICTS]
        measured = labels | {"unit": threshold.unit}
        limits.append((measured, exact(threshold.limit)))
        value = _of(threshold.value)
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


def _number(value: Fraction) -> str:
    """Exact where it has no more digits than a time in ns has."""
    billionths = value * 10**9
    return seconds_text(int(billionths)) if billionths.denominator == 1 else exact(float(value))


def _of(value: float | None) -> str | None:
    known = finite(value)
    return None if known is None else exact(known)

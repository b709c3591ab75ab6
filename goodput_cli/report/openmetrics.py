"""OpenMetrics text that Prometheus reads in its older text format too, for the textfile collector of a node exporter, a
push gateway or GitLab's metrics report.

Gauges only, without timestamps, which the collector refuses. Unrecorded values have no sample; a recorded category with
zero has one, so that its series does not vanish.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from goodput_cli.accounting.options import RULES
from goodput_cli.analysis.document import Document
from goodput_cli.analysis.sheet import Family, Labels
from goodput_cli.analysis.threshold import VERDICTS, Threshold
from goodput_cli.diagnostics.diagnostic import SEVERITIES, Diagnostic
from goodput_cli.report.base import Page
from goodput_cli.vocabulary.text import exact, finite, safe

_UNITS = ("seconds", "ratio")
END = "# EOF\n"


def render(document: Document, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """Return the figures of an answer and its gates, as an exposition that ends with `# EOF`."""
    gates = document.gates()
    assert gates is not None  # `report.base` has checked that the command offers them
    return exposition(({"job_name": gates.job}, families(document))) + END


def families(document: Document) -> Iterator[Family]:
    """Yield every metric, including those without a sample; docs/ci.md describes each."""
    yield from document.figures()
    yield Family("goodput_rules", "Version of the rules used for these figures.", [({}, str(RULES))])
    gates = document.gates()
    if gates is not None:
        yield from _thresholds(gates.thresholds)
        yield Family("goodput_diagnostics", "Diagnostics of the log.", list(_diagnostics(gates.diagnostics)))


def exposition(*of_jobs: tuple[Labels, Iterable[Family]]) -> str:
    """Return the lines of the metrics of some jobs, each family once, without `# EOF`. of_jobs: for each job, labels of
    every sample and its families."""
    merged: dict[str, Family] = {}
    for job, metrics in of_jobs:
        for family in metrics:
            samples = merged.setdefault(family.name, replace(family, samples=[])).samples
            samples.extend((job | labels, value) for labels, value in family.samples)
    return "".join(f"{line}\n" for family in merged.values() for line in _exposed(family))


def _diagnostics(diagnostics: Iterable[Diagnostic]) -> Iterator[tuple[Labels, str]]:
    counts = Counter(dict.fromkeys(reversed(SEVERITIES), 0))
    for diagnostic in diagnostics:
        counts[diagnostic.severity] += diagnostic.count
    return (({"severity": severity}, str(count)) for severity, count in counts.items())


def _thresholds(thresholds: Sequence[Threshold]) -> Iterator[Family]:
    """Yield value and limit in the unit of the label, and one sample per verdict: 1 for the given verdict, else 0. A
    repeated expression is one series."""
    by_name = {
        (safe(threshold.expression), "fail" if threshold.fails else "warn"): threshold for threshold in thresholds
    }
    verdicts, values, limits = [], [], []
    for (expression, action), threshold in by_name.items():
        labels = {"expression": expression, "action": action}
        verdicts += [(labels | {"verdict": name}, str(int(threshold.verdict == name))) for name in VERDICTS]
        measured = labels | {"unit": threshold.unit}
        limits.append((measured, exact(threshold.limit)))
        value = finite(threshold.value)
        if value is not None:
            values.append((measured, exact(value)))
    yield Family("goodput_threshold_verdict", "1 for the verdict of the expression, 0 for other verdicts.", verdicts)
    yield Family("goodput_threshold_value", "Value that the expression compares, in its unit.", values)
    yield Family("goodput_threshold_limit", "The limit of the expression, in its unit.", limits)


def _exposed(family: Family) -> Iterator[str]:
    """Yield the lines of a family; none without a sample."""
    if not family.samples:
        return
    yield f"# HELP {family.name} {_escaped(family.meaning)}"
    yield f"# TYPE {family.name} gauge"
    unit = family.name.rpartition("_")[2]
    if unit in _UNITS:
        yield f"# UNIT {family.name} {unit}"
    for labels, value in family.samples:
        pairs = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        yield f"{family.name}{{{pairs}}} {value}"


def _escaped(text: str) -> str:
    """Return a label's value with control characters made visible, and then escaped for the format."""
    return safe(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

"""An analysis as metrics: what docs/ci.md lists, for OpenMetrics and whatever scrapes it.

What is not recorded has no sample; a category that was recorded and is zero has one, so that a series does not vanish
when all is well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from goodput_cli.analysis.document import Family, Labels
from goodput_cli.analysis.measures import MEASURES, published_value
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.summary import summary_of
from goodput_cli.vocabulary.categories import NOT_BADPUT, Category
from goodput_cli.vocabulary.causes import UNKNOWN_CAUSE, group_of
from goodput_cli.vocabulary.text import exact, finite, safe, seconds_text


def families(analysis: Analysis) -> Iterator[Family]:
    """Every metric of the job, also those without a sample."""
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
    yield from (measured.pop(name) for name in ("goodput_attempts", "goodput_disruptions"))
    yield Family("goodput_disruptions_by_cause", "Disruptions in the window by why they died.", list(_causes(analysis)))
    yield measured.pop("goodput_kept_steps")
    yield _one("goodput_last_step", "Last recorded step of the final progress.", _of(analysis.job.last_step))
    step_times = measured.pop("goodput_step_time_seconds")
    yield from (measured.pop(name) for name in ("goodput_at_risk_steps", "goodput_at_risk_seconds"))
    yield from measured.values()
    reference = _of(analysis.reference.step_time_seconds)
    yield _one("goodput_reference_step_time_seconds", "What a step should take.", reference)
    yield step_times


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


def _causes(analysis: Analysis) -> Iterator[tuple[Labels, str]]:
    """How many disruptions died of each cause, and of how many nobody says why: together `goodput_disruptions`. Nothing
    where no line says any: such a log cannot tell."""
    counts = Counter(why.code for why in analysis.disruptions.unplanned.why)
    if counts.keys() <= {UNKNOWN_CAUSE}:
        return
    counts.setdefault(UNKNOWN_CAUSE, 0)
    for code in sorted(counts):
        yield {"cause": code, "group": group_of(code)}, str(counts[code])


def _overlapped(analysis: Analysis) -> list[tuple[Labels, str]]:
    return [({"category": row.category}, seconds_text(row.ns)) for row in analysis.overlapped]


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

"""The figures of a report: each chart drawn for eyes, and said in a sentence for everybody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from goodput_cli.analysis.disruptions.rows import AT_LEAST
from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.picture.metric_lines import DRAWN
from goodput_cli.analysis.picture.picture import Picture, picture_of
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.steps.measured import measured, shown
from goodput_cli.analysis.steps.slow_regimes import Regime
from goodput_cli.analysis.steps.statistics import StepReport
from goodput_cli.report.html.charts import goodput_chart, main_chart, step_time_chart
from goodput_cli.report.html.columns import ChartColumns, chart_columns
from goodput_cli.report.html.drawing import Drawing, drawing
from goodput_cli.report.html.metric_chart import metric_chart
from goodput_cli.report.html.vegalite import Spec
from goodput_cli.vocabulary.text import as_typed, percent, plural, safe, shorten

STILL_COLUMNS = 600
"""Columns of dots of the pictures that are drawn here."""
_PROGRESS = "progress"
_LONGEST_TITLE = 80


@dataclass(frozen=True)
class Figure:
    """name: an id in the page. drawing: as an SVG element. words: what it shows, for those who do not see it."""

    name: str
    drawing: Drawing
    words: str
    spec: Spec


def progress_drawing(coarse: ChartColumns) -> Drawing:
    """The first of the figures, which takes longer to draw than the others together."""
    return drawing(main_chart(coarse), coarse, _PROGRESS)


def figures(
    analysis: Analysis,
    picture: Picture,
    steps: StepReport | None,
    fine: ChartColumns,
    coarse: ChartColumns,
    progress: Drawing,
) -> list[Figure]:
    """The charts that the analysis has something for. fine: what axes and scripts follow; coarse: what is drawn.
    progress: `progress_drawing`."""
    made = []
    windows = [as_typed(shares.window_ns) for shares in picture.rolling]
    made.append(("goodput-over-time", _goodput_words(analysis, picture), goodput_chart(fine, windows)))
    if steps is not None and steps.statistics.ideal_seconds is not None:
        slow = [_slow(regime, picture) for regime in steps.regimes]
        spec = step_time_chart(fine, steps.statistics.ideal_seconds, slow)
        made.append(("step-times", _step_words(analysis, steps), spec))
    if picture.metrics:
        slow = [] if steps is None else [_slow(regime, picture) for regime in steps.regimes]
        made.append(("metrics", _metric_words(analysis), metric_chart(fine, slow)))
    others = [Figure(name, drawing(spec, coarse, name), words, spec) for name, words, spec in made]
    return [Figure(_PROGRESS, progress, _progress_words(analysis), main_chart(fine)), *others]


def standing_alone(analysis: Analysis) -> tuple[ChartColumns, tuple[str, str]]:
    """What the main picture shows where it stands alone, with the lines above it."""
    share, amount = facts.headline(analysis)
    name = shorten(safe(analysis.job.name), _LONGEST_TITLE)
    columns = chart_columns(picture_of(analysis, STILL_COLUMNS))
    return columns, (f"{name}: goodput {share}", f"{amount}; {facts.window_text(analysis)}; {_counts(analysis)}")


def _counts(analysis: Analysis) -> str:
    return f"{facts.attempts_text(analysis)}, {plural(analysis.job.disruptions, 'disruption')}"


def _slow(regime: Regime, picture: Picture) -> tuple[float, float, str]:
    begin, end = ((time - picture.start_ns) / 1e6 for time in (regime.start_ns, regime.end_ns))
    return begin, end, f"{regime.factor:.2f} x"


def _progress_words(analysis: Analysis) -> str:
    """Step against wall clock in a sentence or two."""
    parts = [f"Step against wall clock: {facts.attempts_text(analysis)}, {facts.progress_text(analysis)}."]
    lost, bound = (analysis.disruptions.column(name) for name in ("steps_lost", "steps_lost_is"))
    if lost.any():
        least = "at least " if (bound[lost > 0] == AT_LEAST).any() else ""
        parts.append(f"Disruptions took back {least}{plural(int(lost.sum()), 'step')}.")
    parts.append("Below it one lane a category shows when the time went there. The tables hold every number.")
    return " ".join(parts)


def _goodput_words(analysis: Analysis, picture: Picture) -> str:
    return " ".join(_goodput_sentences(analysis, picture))


def _goodput_sentences(analysis: Analysis, picture: Picture) -> Iterator[str]:
    yield f"Goodput over time: cumulative, at the end {percent(analysis.goodput.percent)}."
    for shares in picture.rolling:
        whole = shares.percent[shares.time - picture.start_ns >= shares.window_ns]
        known = whole[whole == whole]  # without NaN
        if len(known):
            low, high = percent(float(known.min())), percent(float(known.max()))
            yield f"In windows of {as_typed(shares.window_ns)} between {low} and {high}."


def _step_words(analysis: Analysis, steps: StepReport) -> str:
    slow = plural(len(steps.regimes), "slow regime") if steps.regimes else "no slow regime"
    return f"Step times: {facts.step_text(analysis)}; {slow}."


def _metric_words(analysis: Analysis) -> str:
    rows = [row for row in shown(measured(analysis)) if row.name in DRAWN]
    medians = (f"{DRAWN[row.name]} median {row.median:g}, p10 {row.p10:g}, p90 {row.p90:g}" for row in rows)
    return f"Recorded by the program: {'; '.join(medians)}."

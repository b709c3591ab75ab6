"""The chart of what the program measured, below its step times."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from goodput_cli.analysis.picture.metric_lines import DRAWN
from goodput_cli.report.html.charts import panel, shades, time_axis
from goodput_cli.report.html.columns import ChartColumns
from goodput_cli.report.html.drawing import Spec, finished, left_axis
from goodput_cli.vocabulary.categories import Category

_HEIGHT = 90


def metric_chart(columns: ChartColumns, regimes: Sequence[tuple[float, float, str]]) -> Spec:
    """A panel a metric. regimes: slow ones, as in the chart of step times."""
    present = set(columns.tables["metrics"]["line"])
    panels = [_metric_panel(columns, line, regimes) for line in range(len(DRAWN)) if line in present]
    return finished(alt.vconcat(*panels, spacing=26, bounds="flush"))


def _metric_panel(columns: ChartColumns, line: int, regimes: Sequence[tuple[float, float, str]]) -> alt.LayerChart:
    zero = columns.start_ns / 1e6
    slow = [{"t": zero + begin, "u": zero + end, "text": text} for begin, end, text in regimes]
    title = list(DRAWN.values())[line]
    values = (
        alt.Chart(alt.NamedData("metrics"))
        .transform_filter(f"datum.line == {line}")
        .mark_line(strokeWidth=1.5, color=Category.TPU_INITIALIZATION.look.colour, clip=True)
        .encode(x=time_axis(columns), y=alt.Y("value:Q", axis=left_axis(title, tickCount=4, format="~r"),
                                              scale=alt.Scale(zero=False, nice=True)))
    )  # fmt: skip
    return panel(columns, [*shades(columns, slow), values], _HEIGHT)

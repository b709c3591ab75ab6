"""The chart of what the program measured, below its step times."""

from __future__ import annotations

from collections.abc import Sequence

from goodput_cli.analysis.picture.metric_lines import DRAWN
from goodput_cli.report.html.charts import panel, shades, time_axis
from goodput_cli.report.html.columns import ChartColumns
from goodput_cli.report.html.drawing import finished, left_axis
from goodput_cli.report.html.vegalite import Spec, field, marks, only
from goodput_cli.vocabulary.categories import Category

_HEIGHT = 90


def metric_chart(columns: ChartColumns, regimes: Sequence[tuple[float, float, str]]) -> Spec:
    """A panel a metric. regimes: slow ones, as in the chart of step times."""
    present = set(columns.tables["metrics"]["line"])
    panels = {f"metric-{line}": line for line in range(len(DRAWN)) if line in present}
    drawn = [_metric_panel(name, columns, line, regimes) for name, line in panels.items()]
    return finished({"vconcat": drawn, "spacing": 26, "bounds": "flush"}, list(panels))


def _metric_panel(name: str, columns: ChartColumns, line: int, regimes: Sequence[tuple[float, float, str]]) -> Spec:
    zero = columns.start_ns / 1e6
    slow = [{"t": zero + begin, "u": zero + end, "text": text} for begin, end, text in regimes]
    axis = left_axis(list(DRAWN.values())[line], tickCount=4, format="~r")
    look = {"strokeWidth": 1.5, "color": Category.TPU_INITIALIZATION.look.colour, "clip": True}
    y = field("value", axis=axis, scale={"zero": False, "nice": True})
    values = marks("metrics", "line", look, only(f"datum.line == {line}"), x=time_axis(columns), y=y)
    return panel(name, columns, [*shades(columns, slow), values], _HEIGHT)

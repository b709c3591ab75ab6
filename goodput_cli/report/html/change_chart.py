"""What made the difference between two runs. Which side a bar is on and its sign say what its colour says."""

from __future__ import annotations

from goodput_cli.analysis.compare.chart import ChangeChart
from goodput_cli.report.html.charts import KEPT_COLOUR, LOST_COLOUR, WIDTH
from goodput_cli.report.html.drawing import INK, finished, left_axis
from goodput_cli.report.html.vegalite import Spec, field, layered, marks, only, texts, title
from goodput_cli.vocabulary.text import points, safe, shorten

_ROW = 24
_LONGEST_NAME = 24
_LONGEST_TITLE = 90


def change_spec(chart: ChangeChart) -> Spec:
    """The picture, with its data."""
    values = [
        {"place": place + 0.5, "low": place + 0.15, "high": place + 0.85, "points": moved, "zero": 0,
         "text": points(moved), "better": int(moved > 0)}
        for place, (_, moved) in enumerate(chart.moved)
    ]  # fmt: skip
    names = [shorten(safe(name), _LONGEST_NAME, "...") for name, _ in chart.moved]
    count, most = len(values), max(abs(moved) for _, moved in chart.moved)
    axis = left_axis(
        values=[place + 0.5 for place in range(count)], labelExpr=f"{texts(names)}[floor(datum.value)]",
        grid=False, ticks=False, domain=False, labelOverlap=False,
    )  # fmt: skip
    x_axis = {"title": "worse \N{LEFTWARDS ARROW} points of goodput \N{RIGHTWARDS ARROW} better", "tickCount": 9}
    x: Spec = {"scale": {"domain": [-1.25 * most, 1.25 * most], "nice": False}, "axis": x_axis}
    y: Spec = {"scale": {"domain": [count, 0], "nice": False, "zero": False}, "axis": axis}
    colour = {"condition": {"test": "datum.better", "value": KEPT_COLOUR}, "value": LOST_COLOUR}
    bars = marks(
        values, "rect", {}, x=field("zero", **x), x2="points", y=field("low", **y), y2="high", color=colour
    )  # fmt: skip
    words = [
        marks(
            values, "text", {"align": align, "dx": dx, "fontSize": 12, "color": INK}, only(f"datum.better == {better}"),
            x=field("points", **x), y=field("place", **y), text=field("text", "N"),
        )
        for better, align, dx in ((1, "left", 5), (0, "right", -5))
    ]  # fmt: skip
    heading, verdict = (shorten(safe(text), _LONGEST_TITLE) for text in chart.title)
    above = title(heading, verdict, offset=16)
    return finished(layered(bars, *words, **above, width=WIDTH, height=_ROW * count))

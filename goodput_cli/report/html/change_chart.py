"""What made the difference between two runs. Which side a bar is on and its sign say what its colour says."""

from __future__ import annotations

import altair as alt

from goodput_cli.analysis.compare.chart import ChangeChart
from goodput_cli.report.html.charts import KEPT_COLOUR, LOST_COLOUR, WIDTH
from goodput_cli.report.html.drawing import INK, Spec, finished, left_axis
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
    labels = "[" + ",".join(f"'{_quoted(name)}'" for name in names) + "][floor(datum.value)]"
    axis = left_axis(
        values=[place + 0.5 for place in range(count)],
        labelExpr=labels,
        grid=False,
        ticks=False,
        domain=False,
        labelOverlap=False,
    )
    scale = alt.Scale(domain=[-1.25 * most, 1.25 * most], nice=False)
    x_axis = alt.Axis(title="points of goodput: worse to the left, better to the right", tickCount=9)
    y = {"scale": alt.Scale(domain=[count, 0], nice=False, zero=False)}
    base = alt.Chart(alt.Data(values=values))
    bars = base.mark_rect().encode(
        x=alt.X("zero:Q", scale=scale, axis=x_axis), x2="points:Q", y=alt.Y("low:Q", axis=axis, **y), y2="high:Q",
        color=alt.condition("datum.better", alt.value(KEPT_COLOUR), alt.value(LOST_COLOUR)),
    )  # fmt: skip
    texts = [
        base.transform_filter(f"datum.better == {better}")
        .mark_text(align=align, dx=dx, fontSize=12, color=INK)
        .encode(x=alt.X("points:Q", scale=scale), y=alt.Y("place:Q", **y), text="text:N")
        for better, align, dx in ((1, "left", 5), (0, "right", -5))
    ]
    title, verdict = (shorten(safe(text), _LONGEST_TITLE) for text in chart.title)
    picture = alt.layer(bars, *texts).properties(
        width=WIDTH, height=_ROW * count, title=alt.TitleParams(text=title, subtitle=[verdict], offset=16)
    )
    return finished(picture, zoom=False)


def _quoted(name: str) -> str:
    """Text of a log inside a string of Vega's expression language."""
    return "".join(f"\\u{ord(char):04x}" if not char.isalnum() and char not in " :_-." else char for char in name)

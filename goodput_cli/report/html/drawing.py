"""How every chart looks, and what draws it: Altair's specifications as SVG and PNG.

Why Vega-Altair: vl-convert draws SVG and PNG in this process, without a browser and without the network, so that a page
shows its charts also where scripts are off; the library that makes them move adds 0.9 MB to a page (plotly: 4.8 MB, and
its pictures need a browser); and it runs under a content security policy without `unsafe-eval`. Charts hold no text of
a log but for the title of a picture that stands alone.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import altair as alt
import vl_convert
from altair.utils import schemapi

from goodput_cli.report.html.columns import ChartColumns
from goodput_cli.report.html.library import library

LEFT = 148
"""Width of what stands at the left of a plot, in dots."""
INK = "currentColor"
"""The colour of text, of the page or of the picture."""
_FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
_CONFIG: dict[str, Any] = {
    "aria": False,
    "font": _FONT,
    "background": "transparent",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "gridColor": "#8a8a8a",
        "gridOpacity": 0.25,
        "domainColor": "#8a8a8a",
        "tickColor": "#8a8a8a",
    },
    "legend": {"labelColor": INK, "labelFontSize": 12, "titleColor": INK, "symbolStrokeWidth": 2.5},
    "title": {"color": INK, "subtitleColor": INK, "anchor": "start", "fontSize": 18, "subtitleFontSize": 13},
}
Spec = dict[str, Any]


def drawn(spec: Spec, columns: ChartColumns | None, background: str | None = None) -> str:
    """A chart as SVG text. columns: the data, of charts that name theirs. background: a colour; None for none."""
    filled = _filled(spec, columns, background)
    svg: str = vl_convert.vegalite_to_svg(filled, vl_version=_vl_version(), allowed_base_urls=[])
    return svg


def drawn_inside(spec: Spec, columns: ChartColumns | None, name: str) -> str:
    """A chart as an SVG element of a page. name: of the chart; ids in the element begin with it, and so are its own."""
    return _of_page(drawn(spec, columns), name)


def drawn_alone(chart: alt.TopLevelMixin, name: str) -> str:
    """A chart that holds its own data, as an SVG element of a page; name as in `drawn_inside`."""
    spec = {**chart.to_dict(), "config": _CONFIG}
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=_vl_version(), allowed_base_urls=[])
    return _of_page(svg, name)


def _of_page(svg: str, name: str) -> str:
    svg = re.sub(r"(\d\.\d\d)\d+", r"\1", svg)  # a hundredth of a dot is fine enough
    numbers: dict[str, str] = {}  # Vega counts on from chart to chart; a page should not depend on what came before

    def own(found: re.Match[str]) -> str:
        return f"{found[1]}{name}-clip{numbers.setdefault(found[2], str(len(numbers)))}"

    return re.sub(r'(\bid="|url\(#)clip(\d+)', own, svg)


def painted(spec: Spec, columns: ChartColumns | None) -> bytes:
    """A chart as PNG, two dots a unit, on white."""
    filled = _filled(spec, columns, "#ffffff")
    png: bytes = vl_convert.vegalite_to_png(filled, vl_version=_vl_version(), scale=2, allowed_base_urls=[])
    return png


def moving_library() -> str:
    """The JavaScript that the charts of a page need to move."""
    return library(_vl_version())


@contextmanager
def unchecked() -> Iterator[None]:
    """Charts are made without Altair's validation of each part, which takes a second; tests make them with it."""
    with schemapi.debug_mode(False):
        yield


def _vl_version() -> str:
    """The version of Vega-Lite that Altair writes for, as vl-convert names it."""
    major, minor, *_ = alt.SCHEMA_VERSION.removeprefix("v").split(".")
    return f"{major}.{minor}"


def _filled(spec: Spec, columns: ChartColumns | None, background: str | None) -> Spec:
    """The specification with its data."""
    named = {} if columns is None else {name: columns.rows(name) for name in columns.tables}
    datasets = {**spec.get("datasets", {}), **named}
    return {**spec, "datasets": datasets, **({"background": background, "padding": 16} if background else {})}


def finished(chart: alt.TopLevelMixin, *, zoom: bool = True) -> Spec:
    """The specification of a chart in our style. zoom: whether its time axis moves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # panels share one parameter, on purpose
        spec: Spec = (chart.add_params(_zoom()) if zoom else chart).to_dict(validate=schemapi.DEBUG_MODE)
    return {**spec, "config": _CONFIG}


def left_axis(title: str | None = None, **changes: Any) -> alt.Axis:
    """An axis at the left, as wide in all charts: instants stand above each other. Its title stands on top of it."""
    place = {"titleAngle": 0, "titleAlign": "right", "titleBaseline": "bottom", "titleX": -8, "titleY": -8}
    return alt.Axis(title=title, minExtent=LEFT, maxExtent=LEFT, **place, **changes)


def legend(offset: int = 8) -> alt.Legend:
    """Names above the chart. offset: dots between them."""
    return alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        symbolType="stroke",
        symbolSize=500,
        columnPadding=24,
        offset=offset,
    )


def _zoom() -> alt.Parameter:
    """What moves the time axis: drags, a wheel with Ctrl (alone it scrolls the page), and scripts, by the signal
    `zoom_t`."""
    wheel = "wheel![event.ctrlKey||event.metaKey]"
    return alt.selection_interval(name="zoom", bind="scales", encodings=["x"], zoom=wheel, clear=False)


def texts(texts: Sequence[str]) -> str:
    """Our own words as an array of Vega's expression language."""
    return "[" + ",".join(f"'{text}'" for text in texts) + "]"

"""Common style of all charts, the words of Vega-Lite that they use, and the functions that draw them as SVG and PNG.

Vega-Lite was chosen because vl-convert draws SVG and PNG without a browser or network, so that a page shows its charts
without scripts. The library for interactive charts adds 0.9 MB to a page (plotly: 4.8 MB, and its images need a
browser). It runs under a content security policy without `unsafe-eval`. The only log text in charts is the title of a
single chart.

Specifications are plain dictionaries. Altair would write and check them, but its import alone takes as long as the rest
of a report. Only the tests check them with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from markupsafe import escape

from goodput_cli.report.html.columns import ChartColumns
from goodput_cli.report.html.drawing_process import VERSION, NoEngineError, begin_to_draw

Spec = dict[str, Any]
_TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal", "T": "temporal"}
_SCHEMA = f"https://vega.github.io/schema/vega-lite/v{VERSION}.json"


def field(name: str, kind: str = "Q", **more: Any) -> Spec:
    """Return a column as a channel. kind: `Q`uantitative, `N`ominal, `O`rdinal or `T`emporal."""
    return {"field": name, "type": _TYPES[kind], **more}


def sum_of(name: str, **more: Any) -> Spec:
    """Return the sum of a column as a channel."""
    return {"aggregate": "sum", **field(name), **more}


def marks(
    data: str | Sequence[Mapping[str, Any]], kind: str, look: Mapping[str, Any], transform: Sequence[Spec] = (),
    **channels: Spec | str,
) -> Spec:  # fmt: skip
    """Return a layer. data: the name of a table, or rows. kind, look: of its marks. channels: a second end (`x2`, `y2`)
    is the name of a column."""
    return {
        "data": {"name": data} if isinstance(data, str) else {"values": list(data)},
        "mark": {"type": kind, **look},
        **({"transform": list(transform)} if transform else {}),
        "encoding": {name: {"field": one} if isinstance(one, str) else one for name, one in channels.items()},
    }


def calculated(**columns: str) -> list[Spec]:
    """Return the transform that adds columns made from expressions."""
    return [{"calculate": expression, "as": name} for name, expression in columns.items()]


def only(expression: str) -> list[Spec]:
    """Return the transform that keeps rows for which an expression is true."""
    return [{"filter": expression}]


def layered(*layers: Spec, **properties: Any) -> Spec:
    """Return layers on top of each other."""
    return {"layer": list(layers), **properties}


def independent(*channels: str) -> Spec:
    """Return the setting that gives each layer or panel its own channels."""
    return {"resolve": {"scale": dict.fromkeys(channels, "independent")}}


def title(text: str, *subtitle: str, offset: int) -> Spec:
    """Return the title of a single chart. offset: dots below it."""
    return {"title": {"text": text, "subtitle": list(subtitle), "offset": offset}}


def texts(words: Sequence[str]) -> str:
    """Return words as an array of Vega's expression language, escaped so that log text cannot end its string."""
    return "[" + ",".join(f"'{_quoted(text)}'" for text in words) + "]"


def _quoted(text: str) -> str:
    return "".join(char if char.isalnum() or char in " :_-." else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    """Return a character as UTF-16 units in the notation of JavaScript."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


_WHITE = "#ffffff"
LEFT = 148
"""Width left of a plot, in dots."""
INK = "currentColor"
"""The text color of the page or of the chart."""
_NARROW = {"width": 225, "minExtent": 108, "maxExtent": 108, "labelLimit": 104, "tickCount": 4, "columns": 2}
"""Maximum values on a phone."""
_CLIP = re.compile(r'clip(?:(?<=\bid="clip)|(?<=url\(#clip))(\d+)')
"""The id of a clipping path, and references to it. Its own letters are matched first, which is faster."""
_ROOM = {"left": 14, "right": 34, "top": 5, "bottom": 5}
"""Margin of charts with names at their edges: the reader's font may be wider than the one measured here."""
_FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
_CONFIG: Spec = {
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


def finished(chart: Spec, zoomed: Sequence[str] = ()) -> Spec:
    """Return the specification of a chart in the common style. zoomed: views with a movable time axis: by dragging with
    Shift, by the wheel with Ctrl (the wheel alone scrolls the page), and by scripts, with the signal `zoom_t`."""
    select = {
        "type": "interval", "encodings": ["x"], "clear": False, "zoom": "wheel![event.ctrlKey||event.metaKey]",
        "translate": "[pointerdown[event.shiftKey], window:pointerup] > window:pointermove!",
    }  # fmt: skip
    zoom = {"name": "zoom", "select": select, "bind": "scales", "views": list(zoomed)}
    return {"$schema": _SCHEMA, **chart, **({"params": [zoom]} if zoomed else {}), "config": _CONFIG}


@dataclass(frozen=True)
class Drawing:
    """A chart as an SVG element of a page. It is drawn in another process until a template shows it.

    svg: waits for the result of vl-convert. name: of the chart; prefix of all ids in the element. finish: the last
    change of the element.
    """

    svg: Callable[[], bytes]
    name: str
    finish: Callable[[str], str] = str

    def __html__(self) -> str:
        """Return the element for Jinja."""
        try:
            drawn_svg = self.svg().decode()
        except NoEngineError as error:  # a page without charts still has all numbers
            return f'<p class="note">{escape(str(error))}</p>'
        svg = re.sub(r"(?<=\.\d\d)\d+", "", drawn_svg)  # a hundredth of a dot is precise enough
        numbers: dict[str, str] = {}  # Vega counts ids across charts: renumber them

        def own(match: re.Match[str]) -> str:
            return f"{self.name}-clip{numbers.setdefault(match[1], str(len(numbers)))}"

        return shortened(self.finish(_CLIP.sub(own, svg)))


_EMPTY = re.compile(r'<path class="(?:background|foreground)" aria-hidden="true" d="(?:M0,0h0v0h0Z)?"[^>]*/>')
_MARKS = re.compile(r"<g ([^>]*)>((?:<(path|line|text)\b[^>]*(?:/>|>(?:[^<]|<title>[^<]*</title>)*</\3>))+)</g>")
_TAG = re.compile(r'<(?:path|line|text)((?: [\w:-]+="[^"]*")*)')
_LOOK = re.compile(r' (?:stroke(?:-width|-opacity|-dasharray)?|fill(?:-opacity)?|font-(?:family|size|weight))="[^"]*"')
"""Attributes that an element can inherit from its group."""


def shortened(svg: str) -> str:
    """Return an equal drawing in fewer bytes. Vega repeats the style of every line and writes empty backgrounds; the
    common style of all marks in a group is written once."""
    return _MARKS.sub(_with_look_of_all, _EMPTY.sub("", svg))


def _with_look_of_all(group: re.Match[str]) -> str:
    attributes, inner, _ = group.groups()
    inner = _TAG.sub(lambda tag: tag[0].replace(' opacity="1"', ""), inner)
    looks = [_LOOK.findall(tag[1]) for tag in _TAG.finditer(inner)]
    common = [look for look in dict.fromkeys(looks[0]) if all(look in other for other in looks)]
    if len(looks) < 2 or _LOOK.search(f" {attributes}"):
        return f"<g {attributes}>{inner}</g>"

    def without_common(tag: re.Match[str]) -> str:
        text = tag[0]
        for look in common:
            text = text.replace(look, "")
        return text

    return f"<g {attributes}{''.join(common)}>{_TAG.sub(without_common, inner)}</g>"


def drawing(spec: Spec, columns: ChartColumns | None, name: str, finish: Callable[[str], str] = str) -> Drawing:
    """Begin to draw a chart for a page. columns: the data of charts that refer to tables by name. Other arguments as in
    `Drawing`."""
    roomy = {"padding": _ROOM, **spec} if columns is None else spec
    return Drawing(begin_to_draw("svg", _filled(roomy, columns)), name, finish)


def left_to_script(name: str) -> Drawing:
    """Return a chart that the script of the page draws: drawing here takes longer than the rest of the page."""

    def undrawn() -> bytes:
        raise NoEngineError("This chart needs JavaScript, which does not run here.")

    return Drawing(undrawn, name)


def drawn(spec: Spec, columns: ChartColumns | None) -> str:
    """Return a single chart as SVG text on white."""
    return begin_to_draw("svg", _filled(spec, columns, _WHITE))().decode() + "\n"


def untitled(spec: Spec) -> Spec:
    """Return a chart for a page, which has its own title."""
    return {name: value for name, value in spec.items() if name != "title"}


def narrowed(spec: Spec) -> Spec:
    """Return a chart for a phone: narrow, with less room for names, without title. report.js does the same to
    interactive charts."""
    return {name: _narrow(name, value) for name, value in untitled(spec).items()}


def _narrow(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        in_columns = {"columns": _NARROW["columns"]} if value.get("direction") == "horizontal" else {}
        return {inner: _narrow(inner, one) for inner, one in (value | in_columns).items()}
    if isinstance(value, list):
        return [_narrow("", one) for one in value]
    most = _NARROW.get(name)
    return value if most is None or not isinstance(value, int) else min(value, most)


def painted(spec: Spec, columns: ChartColumns | None) -> bytes:
    """Return a chart as PNG on white, two dots per unit."""
    return begin_to_draw("png", _filled(spec, columns, _WHITE))()


def _filled(spec: Spec, columns: ChartColumns | None, background: str | None = None) -> str:
    """Return the specification with its data as JSON."""
    named = {} if columns is None else {name: columns.rows(name) for name in sorted({*_data(spec)} & {*columns.tables})}
    alone = {"background": background, "padding": 16} if background else {}
    return orjson.dumps({**spec, "datasets": named, **alone}, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def _data(part: Any) -> Iterator[str]:
    """Yield the names of the tables that a specification uses."""
    if isinstance(part, dict):
        if isinstance(data := part.get("data"), dict) and "name" in data:
            yield data["name"]
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _data(inner)


def left_axis(title: str | None = None, **changes: Any) -> Spec:
    """Return a left axis of the same width in all charts, so that timestamps are aligned. Its title is above it."""
    place = {"titleAngle": 0, "titleAlign": "right", "titleBaseline": "bottom", "titleX": -8, "titleY": -8}
    return {"title": title, "minExtent": LEFT, "maxExtent": LEFT, **place, **changes}


def legend() -> Spec:
    """Return a legend above the chart."""
    return {
        "title": None,
        "orient": "top",
        "direction": "horizontal",
        "symbolType": "stroke",
        "symbolSize": 500,
        "columnPadding": 24,
        "offset": 8,
    }

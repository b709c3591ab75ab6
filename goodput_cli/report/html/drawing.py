"""How every chart looks, the words of Vega-Lite that it is written with, and what draws it as SVG and PNG.

Why Vega-Lite: vl-convert draws SVG and PNG without a browser and without the network, so that a page shows its charts
also where scripts are off; the library that makes them move adds 0.9 MB to a page (plotly: 4.8 MB, and its pictures
need a browser); and it runs under a content security policy without `unsafe-eval`. Charts hold no text of a log but for
the title of a picture that stands alone.

Specifications are plain dictionaries. Altair would write them too, with a check of each word, but its import alone
takes as long as all else that a report needs: it checks them in the tests only.
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
    """A column as a channel. kind: `Q`uantitative, `N`ominal, `O`rdinal or `T`emporal."""
    return {"field": name, "type": _TYPES[kind], **more}


def sum_of(name: str, **more: Any) -> Spec:
    """The sum of a column as a channel."""
    return {"aggregate": "sum", **field(name), **more}


def marks(
    data: str | Sequence[Mapping[str, Any]], kind: str, look: Mapping[str, Any], transform: Sequence[Spec] = (),
    **channels: Spec | str,
) -> Spec:  # fmt: skip
    """A layer. data: the name of a table, or rows. kind, look: of its marks. channels: a second end (`x2`, `y2`) is
    the name of a column."""
    return {
        "data": {"name": data} if isinstance(data, str) else {"values": list(data)},
        "mark": {"type": kind, **look},
        **({"transform": list(transform)} if transform else {}),
        "encoding": {name: {"field": one} if isinstance(one, str) else one for name, one in channels.items()},
    }


def calculated(**columns: str) -> list[Spec]:
    """Columns made from expressions."""
    return [{"calculate": expression, "as": name} for name, expression in columns.items()]


def only(expression: str) -> list[Spec]:
    """Rows of which it is true."""
    return [{"filter": expression}]


def layered(*layers: Spec, **properties: Any) -> Spec:
    """Layers over each other."""
    return {"layer": list(layers), **properties}


def independent(*channels: str) -> Spec:
    """What layers or panels do not share."""
    return {"resolve": {"scale": dict.fromkeys(channels, "independent")}}


def title(text: str, *subtitle: str, offset: int) -> Spec:
    """Of a picture that stands alone. offset: dots below it."""
    return {"title": {"text": text, "subtitle": list(subtitle), "offset": offset}}


def texts(words: Sequence[str]) -> str:
    """Words as an array of Vega's expression language, in which no text of a log can end the string it is in."""
    return "[" + ",".join(f"'{_quoted(text)}'" for text in words) + "]"


def _quoted(text: str) -> str:
    return "".join(char if char.isalnum() or char in " :_-." else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    """A character as units of UTF-16, as JavaScript writes them."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


_WHITE = "#ffffff"
LEFT = 148
"""Width of what stands at the left of a plot, in dots."""
INK = "currentColor"
"""The colour of text, of the page or of the picture."""
_NARROW = {"width": 225, "minExtent": 108, "maxExtent": 108, "labelLimit": 104, "tickCount": 4, "columns": 2}
"""The most of each on a phone."""
_CLIP = re.compile(r'clip(?:(?<=\bid="clip)|(?<=url\(#clip))(\d+)')
"""The id of a clipping path, and what refers to it: found by its letters, which is quicker than by what is before."""
_ROOM = {"left": 14, "right": 34, "top": 5, "bottom": 5}
"""Around charts whose names stand at their edges: a reader's font may be wider than the one measured here."""
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
    """The specification of a chart in our style. zoomed: views whose time axis moves: by drags with Shift, by a wheel
    with Ctrl (alone it scrolls the page), and by scripts, with the signal `zoom_t`."""
    select = {
        "type": "interval", "encodings": ["x"], "clear": False, "zoom": "wheel![event.ctrlKey||event.metaKey]",
        "translate": "[pointerdown[event.shiftKey], window:pointerup] > window:pointermove!",
    }  # fmt: skip
    zoom = {"name": "zoom", "select": select, "bind": "scales", "views": list(zoomed)}
    return {"$schema": _SCHEMA, **chart, **({"params": [zoom]} if zoomed else {}), "config": _CONFIG}


@dataclass(frozen=True)
class Drawing:
    """A chart as an SVG element of a page: it is being drawn until a template shows it.

    svg: waits for what vl-convert drew. name: of the chart; ids in the element begin with it, and so are its own.
    finish: what is done to the element last.
    """

    svg: Callable[[], bytes]
    name: str
    finish: Callable[[str], str] = str

    def __html__(self) -> str:
        """The element, as Jinja shows it."""
        try:
            drawn_svg = self.svg().decode()
        except NoEngineError as error:  # a page without charts still has all numbers
            return f'<p class="note">{escape(str(error))}</p>'
        svg = re.sub(r"(?<=\.\d\d)\d+", "", drawn_svg)  # a hundredth of a dot is fine enough
        numbers: dict[str, str] = {}  # Vega counts on from chart to chart; a page should not depend on what came before

        def own(match: re.Match[str]) -> str:
            return f"{self.name}-clip{numbers.setdefault(match[1], str(len(numbers)))}"

        return shortened(self.finish(_CLIP.sub(own, svg)))


_EMPTY = re.compile(r'<path class="(?:background|foreground)" aria-hidden="true" d="(?:M0,0h0v0h0Z)?"[^>]*/>')
_MARKS = re.compile(r"<g ([^>]*)>((?:<(path|line|text)\b[^>]*(?:/>|>(?:[^<]|<title>[^<]*</title>)*</\3>))+)</g>")
_TAG = re.compile(r'<(?:path|line|text)((?: [\w:-]+="[^"]*")*)')
_LOOK = re.compile(r' (?:stroke(?:-width|-opacity|-dasharray)?|fill(?:-opacity)?|font-(?:family|size|weight))="[^"]*"')
"""What an element has of the group that it is in."""


def shortened(svg: str) -> str:
    """A drawing that looks the same, in fewer bytes: Vega writes the look of every line, and empty backgrounds; what
    all marks of a group have in common is written once."""
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
    """Begins to draw a chart for a page. columns: the data, of charts that name theirs. The others as in `Drawing`."""
    roomy = {"padding": _ROOM, **spec} if columns is None else spec
    return Drawing(begin_to_draw("svg", _filled(roomy, columns)), name, finish)


def left_to_script(name: str) -> Drawing:
    """A chart that the page's own script draws, and nobody before: drawing takes longer than all else of a page."""

    def undrawn() -> bytes:
        raise NoEngineError("This chart needs JavaScript, which does not run here.")

    return Drawing(undrawn, name)


def drawn(spec: Spec, columns: ChartColumns | None) -> str:
    """A chart that stands alone as SVG text, on white."""
    return begin_to_draw("svg", _filled(spec, columns, _WHITE))().decode() + "\n"


def untitled(spec: Spec) -> Spec:
    """A chart for a page, which has a title of its own."""
    return {name: value for name, value in spec.items() if name != "title"}


def narrowed(spec: Spec) -> Spec:
    """A chart for a phone: a narrow plot, less room for names, and no title. report.js does the same to charts that
    move."""
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
    """A chart as PNG, two dots a unit, on white."""
    return begin_to_draw("png", _filled(spec, columns, _WHITE))()


def _filled(spec: Spec, columns: ChartColumns | None, background: str | None = None) -> str:
    """The specification with its data, as JSON."""
    named = {} if columns is None else {name: columns.rows(name) for name in sorted({*_data(spec)} & {*columns.tables})}
    alone = {"background": background, "padding": 16} if background else {}
    return orjson.dumps({**spec, "datasets": named, **alone}, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def _data(part: Any) -> Iterator[str]:
    """The names of the tables that a specification shows."""
    if isinstance(part, dict):
        if isinstance(data := part.get("data"), dict) and "name" in data:
            yield data["name"]
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _data(inner)


def left_axis(title: str | None = None, **changes: Any) -> Spec:
    """An axis at the left, as wide in all charts: instants stand above each other. Its title stands on top of it."""
    place = {"titleAngle": 0, "titleAlign": "right", "titleBaseline": "bottom", "titleX": -8, "titleY": -8}
    return {"title": title, "minExtent": LEFT, "maxExtent": LEFT, **place, **changes}


def legend() -> Spec:
    """Names above the chart."""
    return {
        "title": None,
        "orient": "top",
        "direction": "horizontal",
        "symbolType": "stroke",
        "symbolSize": 500,
        "columnPadding": 24,
        "offset": 8,
    }

"""The words of Vega-Lite that our charts are written with: specifications as plain dictionaries.

Altair would write them too, with a check of each word. Its import alone takes as long as all else that a report needs,
so it checks them in the tests only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Spec = dict[str, Any]
VERSION = "6.4"
"""Of Vega-Lite, as vl-convert names it."""
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


def whole(chart: Spec, config: Spec, zoomed: Sequence[str] = ()) -> Spec:
    """A chart as a specification. config: its style. zoomed: views whose time axis moves: by drags, by a wheel with
    Ctrl (alone it scrolls the page), and by scripts, with the signal `zoom_t`."""
    select = {"type": "interval", "encodings": ["x"], "clear": False, "zoom": "wheel![event.ctrlKey||event.metaKey]"}
    zoom = {"name": "zoom", "select": select, "bind": "scales", "views": list(zoomed)}
    return {"$schema": _SCHEMA, **chart, **({"params": [zoom]} if zoomed else {}), "config": config}

"""The charts of a report as they stand in its page, drawn here: SVG made from the specification and the columns that
scripts draw the same charts from.

An engine of JavaScript takes half a second to start, and as long to draw them: that was half of what a page took. Known
here is the part of Vega-Lite that `charts.py` is written with: layers of marks over one time axis, panels below each
other, axes and legends of one kind. What is not known is a KeyError; a test holds each drawing against Vega's own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import F64, Mask
from goodput_cli.report.html.columns import ChartColumns
from goodput_cli.report.html.drawing import FONT, GRID, INK, LEFT, Spec

_EDGE = 5
"""Dots around all."""
_LEGEND, _TITLE, _TIME_LABELS = 27, 21, 18
"""Dots above a plot that a legend or the title of an axis takes, and below it the labels of the time axis."""
_LETTER, _ASCENT = 6.2, 9
"""How wide a letter is about, and how high: dots."""
_SYMBOL = 29
"""Dots of a legend's line, with the space behind it."""
_CONDITION = re.compile(r"datum\.(\w+) (==|!=) (\d+|'')")
_CHOICE = re.compile(r"(\[.*\])\[(?:datum\.(\w+)|(\d+))\]")
_WORDS = re.compile(r"(\[.*\])\[floor\(datum\.value\)\]")
_TIME_OF_DAY = re.compile(r":'([^']*)'\)$")

Values = NDArray[Any]
"""A column: float64, of which NaN is nothing, or texts."""
Scale = Callable[[F64], F64]
"""Values as dots."""


def still(spec: Spec, columns: ChartColumns, name: str) -> str:
    """A chart as an SVG element. name: ids in it begin with it."""
    panels = [_Panel.of(one, columns) for one in spec.get("vconcat", [spec])]
    width = LEFT + _EDGE + math.ceil(max(one.right for one in panels))
    inner, top = [], _EDGE + panels[0].head
    below = top
    for number, panel in enumerate(panels):
        clip = f"{name}-clip{number}"
        inner.append(f'<g transform="translate({LEFT + _EDGE},{below})">{"".join(panel.drawn(clip))}</g>')
        below += panel.height + spec.get("spacing", 0)
    height = below - spec.get("spacing", 0) + _TIME_LABELS + _EDGE
    look = f'font-family="{escape(FONT)}" font-size="12px" fill="none" stroke-miterlimit="10"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="marks" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><g {look}>{"".join(inner)}</g></svg>'
    )


@dataclass(frozen=True)
class _Layer:
    """Marks of one kind. look: of all; rows: their columns, by name; channels: which column is what."""

    look: Mapping[str, Any]
    rows: Mapping[str, Values]
    channels: Mapping[str, Any]

    @classmethod
    def of(cls, spec: Spec, columns: ChartColumns) -> _Layer:
        rows = _rows(spec["data"], columns)
        for step in spec.get("transform", ()):
            rows = _filtered(rows, step["filter"]) if "filter" in step else _with(rows, step["calculate"], step["as"])
        return cls(spec["mark"], rows, spec["encoding"])

    def column(self, channel: str) -> Values | None:
        """The values of a channel, None where no column is."""
        field = self.channels.get(channel, {}).get("field")
        return None if field is None else self.rows[field]


def _rows(data: Mapping[str, Any], columns: ChartColumns) -> dict[str, Values]:
    """The table of a layer; instants are ms since the start."""
    if "name" in data:
        return {name: _array(values) for name, values in columns.tables[data["name"]].items()}
    names = data["values"][0]
    zero = columns.start_ns / 1e6
    table = {name: _array([row[name] for row in data["values"]]) for name in names}
    return {name: values - zero if name in ("t", "u") else values for name, values in table.items()}


def _array(values: Sequence[Any]) -> Values:
    return np.array(values, dtype=object if values and isinstance(values[0], str) else np.float64)


def _filtered(rows: Mapping[str, Values], expression: str) -> dict[str, Values]:
    field, sign, value = _parts(_CONDITION, expression)
    same: Mask = rows[field] == ("" if value == "''" else float(value))
    return {name: column[same if sign == "==" else ~same] for name, column in rows.items()}


def _with(rows: Mapping[str, Values], expression: str, name: str) -> dict[str, Values]:
    """The table with a column more: a number, or words chosen by another column."""
    count = len(next(iter(rows.values())))
    if _CHOICE.fullmatch(expression) is None:
        return {**rows, name: np.full(count, float(expression))}
    words, field, place = _parts(_CHOICE, expression)
    chosen = rows[field].astype(int) if field else np.full(count, int(place))
    return {**rows, name: np.array(_words(words), dtype=object)[chosen]}


def _parts(pattern: re.Pattern[str], expression: str) -> tuple[str, ...]:
    match = pattern.fullmatch(expression)
    if match is None:
        raise KeyError(expression)
    return match.groups()


def _words(array: str) -> list[str]:
    """The words of an array as `drawing.texts` writes it."""
    words: list[str] = json.loads(array.replace("'", '"'))
    return words


_NOT_SCALED: Mapping[str, Any] = {"axis": {}, "scale": {"domain": (0, 1), "nice": False}}


@dataclass(frozen=True)
class _Panel:
    """Layers over one time axis. start, end: of it, ms since 1970. axis, domain: of what stands against time; as_log:
    whether on a logarithmic scale."""

    width: int
    height: int
    layers: Sequence[_Layer]
    start: float
    end: float
    time_axis: Mapping[str, Any]
    axis: Mapping[str, Any]
    domain: tuple[float, float]
    as_log: bool

    @classmethod
    def of(cls, spec: Spec, columns: ChartColumns) -> _Panel:
        layers = [_Layer.of(one, columns) for one in spec["layer"]]
        described = (one.channels["y"] for one in layers if "scale" in one.channels.get("y", {}))
        upwards = next(described, _NOT_SCALED)
        scale = upwards["scale"]
        low, high = map(float, scale.get("domain") or _extent(layers, zero=bool(scale["zero"])))
        return cls(
            spec["width"],
            spec["height"],
            layers,
            start=columns.start_ns / 1e6,
            end=columns.end_ns / 1e6,
            time_axis=next(one.channels["x"]["axis"] for one in layers if "axis" in one.channels.get("x", {})),
            axis=upwards["axis"],
            domain=_nice(low, high) if scale["nice"] else (low, high),
            as_log=scale.get("type") == "log",
        )

    @property
    def head(self) -> int:
        """Dots above the plot."""
        return _LEGEND if self._legend() else _TITLE if self.axis.get("title") else 0

    @property
    def right(self) -> float:
        """Dots from the left of the plot to where the panel ends: the label of a late instant stands out."""
        labels = (x + _LETTER * len(text) / 2 for x, text, anchor in self._instants() if anchor == "middle")
        return max(self.width + _EDGE, *labels, 0)

    def drawn(self, clip: str) -> Iterator[str]:
        """The elements of the panel: its plot begins at 0, 0."""
        yield f'<clipPath id="{clip}"><rect width="{self.width}" height="{self.height}"/></clipPath>'
        yield from self._drawn_time_axis()
        yield from self._drawn_axis()
        yield f'<g clip-path="url(#{clip})">'
        for layer in self.layers:
            if layer.look.get("opacity") != 0:
                yield from _MARKS[layer.look["type"]](_Marks(layer, self.across, self.up, self.width, self.height))
        yield "</g>"
        yield f'<g class="legend">{"".join(self._legend())}</g>'

    def across(self, ms: F64) -> F64:
        """Dots from the left of instants, ms since the start."""
        return ms * (self.width / ((self.end - self.start) or 1))

    def up(self, values: F64) -> F64:
        """Dots from the top."""
        (low, high), values = self.domain, values.astype(np.float64)
        if self.as_log:
            low, high, values = math.log(low), math.log(high), np.log(values)
        part = (values - low) / (high - low) if high != low else np.full(len(values), 0.5)
        return self.height * (1 - part)

    def _instants(self) -> list[tuple[float, str, str]]:
        """Ticks of the time axis, what is said there, and which part of it stands at the tick: at the ends of the plot
        it does not stand out."""
        ticks = _instants(self.start, self.end, self.time_axis["tickCount"])
        at = _sharp(self.across(np.array(ticks, dtype=np.float64) - self.start)).tolist()
        anchors = ("start" if x <= 1 else "end" if x >= self.width else "middle" for x in at)
        texts = (_instant(tick, self.time_axis["labelExpr"]) for tick in ticks)
        return list(zip(at, texts, anchors, strict=True))

    def _drawn_time_axis(self) -> Iterator[str]:
        ticks, bottom = self._instants(), self.height
        yield _path((f"M{x:g},0V{bottom}" for x, *_ in ticks), stroke=GRID, **{"stroke-opacity": 0.25})
        if self.time_axis.get("labels", True):
            yield _path((f"M{x:g},{bottom}v5" for x, *_ in ticks), stroke=GRID)
            for anchor in ("start", "middle", "end"):
                yield _texts([(f"{x:g}", bottom + 16, text) for x, text, own in ticks if own == anchor], anchor)
        yield _path([f"M0,{bottom + 0.5}h{self.width}"], stroke=GRID)

    def _drawn_axis(self) -> Iterator[str]:
        axis, (low, high) = self.axis, self.domain
        if not axis:
            return
        count = axis.get("tickCount") or math.ceil(self.height / 40)
        values = np.array(axis["values"] if "values" in axis else _ticks(low, high, count), dtype=np.float64)
        at = self.up(values)
        lines = _short(_sharp(at))
        if axis.get("grid", True):
            yield _path((f"M0,{y}h{self.width}" for y in lines), stroke=GRID, **{"stroke-opacity": 0.25})
        if axis.get("ticks", True):
            yield _path((f"M0,{y}h-5" for y in lines), stroke=GRID)
            yield _path([f"M0.5,0V{self.height}"], stroke=GRID)
        left = -7 if axis.get("ticks", True) else -2
        labels = _labels(values, axis, count, low, high)
        yield _texts([(left, y, text) for y, text in zip(_short(at + 4.5), labels, strict=True)], anchor="end")
        if axis.get("title"):
            yield _texts([(-8, -10, axis["title"])], anchor="end")

    def _legend(self) -> list[str]:
        """Names above the plot, each with its line."""
        coloured = [one.channels for one in self.layers if one.channels.get("color", {}).get("legend")]
        if not coloured:
            return []
        colours, dashes = (coloured[0][channel]["scale"] for channel in ("color", "strokeDash"))
        made, left = [], 0.0
        looks = zip(colours["domain"], colours["range"], dashes["range"], strict=True)
        for text, colour, dash in looks:
            line = {"stroke": colour, "stroke-width": 2.5, **_dashed(dash)}
            made.append(_path([f"M{left + 1.5:g},-14.5h22"], **line))
            made.append(_texts([(f"{left + _SYMBOL:g}", -10, text)]))
            left += math.ceil(_SYMBOL + _LETTER * len(text)) + coloured[0]["color"]["legend"]["columnPadding"]
        return made


def _extent(layers: Sequence[_Layer], *, zero: bool) -> tuple[float, float]:
    columns = [one.column(channel) for one in layers for channel in ("y", "y2")]
    values = np.concatenate([*(one for one in columns if one is not None), np.zeros(int(zero))])
    return float(np.nanmin(values)), float(np.nanmax(values))


def _labels(values: F64, axis: Mapping[str, Any], count: int, low: float, high: float) -> list[str]:
    if "labelExpr" in axis:
        words = _words(_parts(_WORDS, axis["labelExpr"])[0])
        return [words[int(value)] for value in values.tolist()]
    form = axis.get("format")
    if form == "~r":
        return [np.format_float_positional(float(f"{value:.6g}"), trim="-") for value in values.tolist()]
    if form == ",d":
        return [f"{math.floor(value + 0.5):,d}" for value in values.tolist()]
    digits = max(0, -math.floor(math.log10(_step(low, high, count))))
    return [f"{value:,.{digits}f}" for value in values.tolist()]


@dataclass(frozen=True)
class _Marks:
    """A layer to be drawn on a plot of a width and a height."""

    layer: _Layer
    across: Scale
    up: Scale
    width: int
    height: int

    def x(self, channel: str = "x") -> F64 | None:
        """Dots of the instants of a channel."""
        column = self.layer.column(channel)
        return None if column is None else self.across(column)

    def y(self, channel: str = "y") -> F64 | None:
        """Dots of the values of a channel."""
        column = self.layer.column(channel)
        return None if column is None else self.up(column)

    def groups(self) -> Iterator[tuple[Mask, dict[str, Any]]]:
        """The rows that look alike, and their colour and dashes."""
        look, channels = self.layer.look, self.layer.channels
        detail, kinds = self.layer.column("detail"), self.layer.column("color")
        if kinds is None:
            count = len(next(iter(self.layer.rows.values())))
            yield np.ones(count, dtype=np.bool_), {"colour": look["color"], **_dashed(look.get("strokeDash"))}
            return
        scale = channels["color"]["scale"]
        dashes = channels.get("strokeDash", {}).get("scale", {}).get("range", [None] * len(scale["range"]))
        for value, colour, dash in zip(scale["domain"], scale["range"], dashes, strict=True):
            same: Mask = kinds == value
            lines = [same] if detail is None else [same & (detail == one) for one in np.unique(detail[same])]
            yield from ((one, {"colour": colour, **_dashed(dash)}) for one in lines if one.any())


def _rules(marks: _Marks) -> Iterator[str]:
    x, y, end = marks.x(), marks.y(), marks.y("y2")
    for rows, look in marks.groups():
        if x is None or y is None:
            whole = [f"M0,{at}h{marks.width}" for at in _short(y[rows])] if y is not None else []
            yield _stroke(whole or (f"M{at},0v{marks.height}" for at in _short(_of(x)[rows])), marks, look)
            continue
        ends = zip(_short(x[rows]), _short(y[rows]), _short(_of(end)[rows]), strict=True)
        yield _stroke((f"M{at},{begin}V{stop}" for at, begin, stop in ends), marks, look)


def _lines(marks: _Marks) -> Iterator[str]:
    x, y = _of(marks.x()), _of(marks.y())
    for rows, look in marks.groups():
        yield _stroke(_runs(x[rows], y[rows]), marks, look)


def _areas(marks: _Marks) -> Iterator[str]:
    x, y = _of(marks.x()), _of(marks.y())
    for rows, look in marks.groups():
        closed = (f"{line}V{marks.height}H{line[1 : line.index(',')]}Z" for line in _runs(x[rows], y[rows]))
        yield _path(closed, fill=look["colour"], **_opacity(marks))


def _rects(marks: _Marks) -> Iterator[str]:
    x, right, y, low = marks.x(), marks.x("x2"), marks.y(), marks.y("y2")
    for rows, look in marks.groups():
        left, stop = _of(x)[rows], _of(right)[rows]
        top = np.zeros(len(left)) if y is None else y[rows]
        bottom = np.full(len(left), float(marks.height)) if low is None else low[rows]
        boxes = zip(*map(_short, (left, np.minimum(top, bottom), stop, np.maximum(top, bottom))), strict=True)
        outline = (
            {"stroke": look["colour"], "stroke-width": marks.layer.look["strokeWidth"]}
            if "stroke" in marks.layer.channels
            else {}
        )
        d = (f"M{one},{two}H{three}V{four}H{one}Z" for one, two, three, four in boxes)
        yield _path(d, fill=look["colour"], **outline, **_opacity(marks))


def _words_of(marks: _Marks) -> Iterator[str]:
    look, texts = marks.layer.look, _of(marks.layer.column("text"))
    at = _short(_of(marks.x()) + look["dx"])
    weight = {"font-weight": look["fontWeight"]} if "fontWeight" in look else {}
    yield _texts([(x, look["dy"] + _ASCENT, text) for x, text in zip(at, texts.tolist(), strict=True)], **weight)


_MARKS: Mapping[str, Callable[[_Marks], Iterator[str]]] = {
    "rule": _rules, "line": _lines, "area": _areas, "rect": _rects, "text": _words_of,
}  # fmt: skip


def _of(values: Values | None) -> Values:
    """A channel that marks of the kind must have."""
    if values is None:
        raise KeyError("a channel")
    return values


def _runs(x: F64, y: F64) -> list[str]:
    """Lines through points, each as a path: where there is none, one ends."""
    there = ~np.isnan(y)
    begins = np.flatnonzero(there & np.append(True, ~there[:-1]))
    ends = np.flatnonzero(there & np.append(~there[1:], True)) + 1
    points = [f"{a},{b}" for a, b in zip(_short(x), _short(y), strict=True)]
    runs = zip(begins.tolist(), ends.tolist(), strict=True)
    return ["M" + "L".join(points[begin:end]) for begin, end in runs]


def _stroke(lines: Any, marks: _Marks, look: Mapping[str, Any]) -> str:
    own = marks.layer.look
    ends = {f"stroke-line{part.lower()}": own[f"stroke{part}"] for part in ("Cap", "Join") if f"stroke{part}" in own}
    dashes = {name: value for name, value in look.items() if name != "colour"}
    return _path(
        lines, stroke=look["colour"], **{"stroke-width": own["strokeWidth"]}, **dashes, **ends, **_opacity(marks)
    )


def _opacity(marks: _Marks) -> dict[str, Any]:
    return {"opacity": marks.layer.look["opacity"]} if "opacity" in marks.layer.look else {}


def _dashed(dash: Sequence[int] | None) -> dict[str, Any]:
    return {"stroke-dasharray": ",".join(map(str, dash))} if dash and dash[1] else {}


def _path(lines: Any, **look: Any) -> str:
    d = "".join(lines)
    return f'<path d="{d}"{_attributes(look)}/>' if d else ""


def _texts(places: Sequence[tuple[Any, Any, str]], anchor: str = "start", **look: Any) -> str:
    """Words at their places."""
    words = "".join(f'<text x="{x}" y="{y}">{escape(text)}</text>' for x, y, text in places)
    return words and f'<g fill="{INK}" text-anchor="{anchor}"{_attributes(look)}>{words}</g>'


def _attributes(look: Mapping[str, Any]) -> str:
    return "".join(f' {name}="{value}"' for name, value in look.items())


def _sharp(dots: F64) -> F64:
    """Where a line of one dot's width fills one."""
    sharp: F64 = np.floor(dots + 0.5) + 0.5
    return sharp


def _short(values: F64) -> list[str]:
    """Dots, to a hundredth."""
    return [f"{value:.7g}" for value in np.round(values.astype(np.float64), 2).tolist()]


def _step(low: float, high: float, count: int) -> float:
    """The round distance of about so many ticks: 1, 2 or 5 times a power of ten."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    error = rough / power
    factor = 10 if error >= math.sqrt(50) else 5 if error >= math.sqrt(10) else 2 if error >= math.sqrt(2) else 1
    return factor * power


def _ticks(low: float, high: float, count: int) -> list[float]:
    if not high > low:
        return [low]
    step = _step(low, high, count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)]


def _nice(low: float, high: float) -> tuple[float, float]:
    """A domain that ends at ticks."""
    before = 0.0
    for _ in range(10):
        if not high > low or (step := _step(low, high, 10)) == before:
            break
        low, high, before = math.floor(low / step) * step, math.ceil(high / step) * step, step
    return low, high


_S, _M, _H, _D = 1000, 60_000, 3_600_000, 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIXED = (_S, 5 * _S, 15 * _S, 30 * _S, _M, 5 * _M, 15 * _M, 30 * _M, _H, 3 * _H, 6 * _H, 12 * _H, _D)
_BY_DATE: Sequence[tuple[int, Callable[[datetime], bool]]] = (
    (2 * _D, lambda day: day.day % 2 == 1),
    (7 * _D, lambda day: day.weekday() == 6),
    (30 * _D, lambda day: day.day == 1),
    (90 * _D, lambda day: day.day == 1 and day.month % 3 == 1),
    (365 * _D, lambda day: day.day == 1 and day.month == 1),
)
"""Steps of a time axis in ms, and which days are ticks."""


def _instants(start: float, end: float, count: int) -> list[float]:
    """Ticks of a time axis, ms since 1970: about so many."""
    target = max(end - start, 1e-3) / count
    steps = [*_FIXED, *(step for step, _ in _BY_DATE)]
    step = float(min(steps, key=lambda one: abs(math.log(one / target))))
    if target < _S:
        step = max(_step(start, end, count), 1.0)
    if step <= _D:
        first, last = math.ceil(start / step), math.floor(end / step)
        return [place * step for place in range(first, last + 1)]
    is_tick = dict(_BY_DATE)[int(step)]
    days = range(math.ceil(start / _D), math.floor(end / _D) + 1)
    return [float(day * _D) for day in days if is_tick(_EPOCH + timedelta(days=day))]


def _instant(ms: float, expression: str) -> str:
    """What stands at a tick: the date at midnight, else the time of day."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    match = _TIME_OF_DAY.search(expression)
    if match is None:
        raise KeyError(expression)
    if (moment.hour, moment.minute, moment.second) == (0, 0, 0):
        return f"{moment:%b %d}"
    return moment.strftime(match[1].replace("%L", f"{moment.microsecond // 1000:03d}"))

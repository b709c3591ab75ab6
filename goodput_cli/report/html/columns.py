"""Data of the charts: short columns of plain numbers, for drawing in the page and for its scripts.

Times are milliseconds since the start of the window, which takes few digits. NaN becomes None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import run_heads
from goodput_cli.analysis.picture import DRAWN, Shares, WindowPicture
from goodput_cli.vocabulary.categories import CATEGORIES, title

Table = Mapping[str, Sequence[Any]]
"""Columns by name, all of one length."""
_MS = 1_000_000
_DIGIT, _BETWEEN = 0.0085, 0.008
"""Width of a digit and of the space after a number, as share of the chart. Disruptions that are closer share a
label."""
_PHONE = 4.5
"""Factor of these widths on a phone."""
_DOTS = 12
"""Height in dots of a bar that fills its lane. Heights are rounded up to a dot, so that nothing is invisible."""
WHOLE, SAVES, DISRUPTIONS = "the whole job", "saves completed", "disruptions"


@dataclass(frozen=True)
class ChartColumns:
    """Tables by name. lanes: titles of the rows of the bands, from the top; rolling: window lengths (ns) by number."""

    start_ns: int
    end_ns: int
    tables: Mapping[str, Table]
    lanes: tuple[str, ...]

    def has_rows(self, name: object) -> bool:
        """Return True if a table has rows; unknown tables count as such."""
        return name not in self.tables or len(self.tables[str(name)]["t"]) > 0

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a table for Vega-Lite, with times in ms since 1970 UTC."""
        table = self.tables[name]
        zero = self.start_ns / _MS
        columns = [[zero + value for value in column] if key in ("t", "u") else column for key, column in table.items()]
        return [dict(zip(table, row, strict=True)) for row in zip(*columns, strict=True)]


def chart_columns(picture: WindowPicture) -> ChartColumns:
    """Return all tables of the charts. Columns: t, u: times (u is the end). The functions of the tables describe the
    others."""
    lanes, bands = _lanes(picture)
    return ChartColumns(
        start_ns=picture.start_ns,
        end_ns=picture.end_ns,
        lanes=lanes,
        tables={
            "window": {"t": _ms(picture, np.array([picture.start_ns, picture.end_ns]))},
            "curve": _curve(picture),
            "falls": _falls(picture),
            "strip": _strip(picture),
            "bands": bands,
            "saves": {"t": _ms(picture, picture.saves.time)},
            "disruptions": _disruptions(picture),
            "cumulative": _shares(picture, picture.cumulative),
            "rolling": _rolling(picture),
            "steps": _steps(picture),
            "metrics": _metrics(picture),
            **_busy(picture),
        },
    )


def _ms(picture: WindowPicture, time: NDArray[np.int64]) -> list[float]:
    """Return times in ms since the start: integers, unless the chart is so short that fractions are visible."""
    passed = (time - picture.start_ns) / _MS
    whole: list[float] = np.rint(passed).astype(np.int64).tolist()
    return whole if picture.bucket_ns >= 10 * _MS else list(map(_short, np.round(passed, 6).tolist()))


def _numbers(values: NDArray[np.floating[Any]], digits: int = 6) -> list[float | None]:
    """Return numbers with at most `digits` significant digits, in their shortest form."""
    written = (f"%.{digits}g " * len(values) % tuple(values.tolist())).split()  # one call: half the time
    return [None if math.isnan(value) else _short(value) for value in map(float, written)]


def _short(value: float) -> float:
    return int(value) if value.is_integer() else value


def _curve(picture: WindowPicture) -> Table:
    """Return the table of the curve. line: its number; step; lost: 0 or 1. A row without a step ends each line."""
    curve = picture.curve
    last = np.flatnonzero(curve.line[1:] != curve.line[:-1]) + 1
    return {
        "t": _broken(_ms(picture, curve.time), last, repeated=True),
        "step": _broken(_numbers(curve.step, 12), last),
        "line": _broken(curve.line.tolist(), last),
        "lost": _broken(curve.lost.astype(int).tolist(), last, repeated=True),
    }


def _broken(values: list[Any], places: NDArray[np.intp], *, repeated: bool = False) -> list[Any]:
    """Return a column with an additional row before some positions: None, or a copy of the row before it."""
    made: list[Any] = []
    for start, stop in zip((0, *places.tolist()), (*places.tolist(), len(values)), strict=True):
        made += values[start:stop]
        if stop < len(values):
            made.append(values[stop - 1] if repeated else None)
    return made


def _falls(picture: WindowPicture) -> Table:
    """Return lines from the end of one attempt to the beginning of the next: two rows, then one without a step."""
    curve = picture.curve
    last = np.flatnonzero((curve.line[1:] != curve.line[:-1]) & (curve.attempt[1:] != curve.attempt[:-1]))
    ends = np.column_stack((last, last + 1)).ravel()
    pairs = np.arange(2, len(ends), 2)
    return {
        "t": _broken(_ms(picture, curve.time[ends]), pairs, repeated=True),
        "step": _broken(_numbers(curve.step[ends], 12), pairs),
    }


def _lanes(picture: WindowPicture) -> tuple[tuple[str, ...], Table]:
    """Return the titles of the lanes, and their bars: low and high edge in lanes from the top; kind is the category's
    code."""
    bands = picture.bands
    kinds = [code for code in range(len(CATEGORIES)) if np.any(bands.category == code)]
    titles = (WHOLE, *(title(CATEGORIES[code]) for code in kinds), *([SAVES] if len(picture.saves) else []))
    titles += (DISRUPTIONS,) if picture.disruptions.worst is not None else ()
    lane = np.zeros(len(CATEGORIES), dtype=np.int64)
    lane[kinds] = np.arange(1, len(kinds) + 1)
    rows = np.lexsort((bands.start, bands.category))
    rows = rows[bands.ns[rows] > 0]  # a negative slowdown takes no time
    kind, start, end = bands.category[rows], bands.start[rows], bands.end[rows]
    height = np.ceil(np.minimum(bands.ns[rows] / (end - start), 1.0) * _DOTS).astype(np.int64)
    new = run_heads(kind) | run_heads(height)
    new[1:] |= start[1:] != end[:-1]
    head = np.flatnonzero(new)
    tail = np.append(head[1:], len(rows))[: len(head)] - 1
    low = lane[kind[head]] + 0.9
    return titles, {
        "t": _ms(picture, start[head]),
        "u": _ms(picture, end[tail]),
        "high": _numbers(low - 0.8 * height[head] / _DOTS, 5),
        "low": _numbers(low, 5),
        "kind": kind[head].tolist(),
    }


def _strip(picture: WindowPicture) -> Table:
    """Return the largest category (kind, its code) of each interval; equal neighbors are joined."""
    bands = picture.bands
    most = np.flatnonzero(bands.most)
    heads = most[run_heads(bands.category[most])]
    start = bands.start[heads]
    return {
        "t": _ms(picture, start),
        "u": _ms(picture, np.append(start[1:], picture.end_ns)),
        "kind": bands.category[heads].tolist(),
    }


def _disruptions(picture: WindowPicture) -> Table:
    """Return the table of disruptions. text: the number, or the range of numbers for disruptions close to each other;
    few: the same on a phone. If there are many, worst: True for the most costly ones; only these have numbers."""
    marks = picture.disruptions
    last = (marks.number + marks.count - 1).tolist()
    share = ((marks.time - picture.start_ns) / (picture.end_ns - picture.start_ns)).tolist()
    table = {"t": _ms(picture, marks.time), "number": marks.number.tolist()}
    if marks.worst is not None:
        texts = (_worst_labels(share, marks.number.tolist(), marks.worst.tolist(), larger) for larger in (1.0, _PHONE))
        return (
            table | dict(zip(("text", "few"), texts, strict=True)) | {"worst": (marks.worst > 0).astype(int).tolist()}
        )
    return {
        "t": table["t"],
        "text": _labels(share, marks.number.tolist(), last),
        "few": _labels(share, marks.number.tolist(), last, _PHONE),
        "number": table["number"],
    }


def _worst_labels(places: list[float], numbers: list[int], worst: list[int], larger: float) -> list[str]:
    """Return the numbers of the most costly disruptions. Labels that would overlap a more costly one or leave the chart
    are empty. larger: factor of widths compared with a wide chart."""
    texts = [""] * len(places)
    taken: list[tuple[float, float]] = []
    for _, row in sorted((rank, row) for row, rank in enumerate(worst) if rank):
        begin, end = places[row], places[row] + _room(str(numbers[row])) * larger
        if end <= 1 + _BETWEEN and all(end <= low or begin >= high for low, high in taken):
            texts[row] = str(numbers[row])
            taken.append((begin, end))
    return texts


def _labels(places: list[float], first: list[int], last: list[int], larger: float = 1) -> list[str]:
    """Return the label of each mark: `4` or `4-6`. A label that would overlap the next or leave the chart is empty; the
    one before covers its mark. larger: factor of widths compared with a wide chart."""
    texts = [""] * len(places)
    shown = 0
    for row, place in enumerate(places):
        own = _label(first[row], last[row])
        fits = place >= places[shown] + _room(texts[shown]) * larger and place + _room(own) * larger <= 1 + _BETWEEN
        shown = row if row == 0 or fits else shown
        texts[shown] = _label(first[shown], last[row])
    labelled = [row for row, text in enumerate(texts) if text]
    while len(labelled) > 1 and places[labelled[-1]] + _room(texts[labelled[-1]]) * larger > 1 + _BETWEEN:
        texts[labelled.pop()] = ""  # its range made it leave the chart
        texts[labelled[-1]] = _label(first[labelled[-1]], last[-1])
    return texts


def _label(first: int, last: int) -> str:
    return str(first) if last == first else f"{first}\N{EN DASH}{last}"


def _room(text: str) -> float:
    return len(text) * _DIGIT + _BETWEEN


def _shares(picture: WindowPicture, shares: Shares) -> Table:
    return {"t": _ms(picture, shares.time), "percent": _numbers(shares.percent)}


def _rolling(picture: WindowPicture) -> Table:
    """Return all rolling windows. line: the number of the window."""
    tables = [_shares(picture, shares) for shares in picture.rolling]
    return {
        "t": [value for table in tables for value in table["t"]],
        "percent": [value for table in tables for value in table["percent"]],
        "line": [line for line, table in enumerate(tables) for _ in table["t"]],
    }


def _steps(picture: WindowPicture) -> Table:
    """Return the table of step times. number: first step of each row; count: its number of steps; low, level, high:
    seconds."""
    times = picture.step_times
    return {
        "t": _ms(picture, times.time),
        "number": times.number.tolist(),
        "count": times.count.tolist(),
        "low": _numbers(times.low),
        "level": _numbers(times.level),
        "high": _numbers(times.high),
    }


def _busy(picture: WindowPicture) -> dict[str, Table]:
    """Return the utilization of accelerators in percent, if the log comes with samples."""
    if picture.busy is None:
        return {}
    return {"busy": {"t": _ms(picture, picture.busy.time), "percent": _numbers(picture.busy.value, 4)}}


def _metrics(picture: WindowPicture) -> Table:
    """Return all drawn metrics. line: the index in `DRAWN`."""
    names = list(DRAWN)
    return {
        "t": [time for line in picture.metrics for time in _ms(picture, line.time)],
        "value": [value for line in picture.metrics for value in _numbers(line.value)],
        "line": [names.index(line.name) for line in picture.metrics for _ in line.time],
    }

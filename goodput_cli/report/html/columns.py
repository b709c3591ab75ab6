"""A picture as the charts take it: small columns of plain numbers, for the drawing in the page and for its scripts.

Instants are milliseconds since the start of the window, so that a number takes few digits. NaN becomes None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import run_heads
from goodput_cli.analysis.picture import DRAWN, Picture, Shares
from goodput_cli.vocabulary.categories import CATEGORIES, title

Table = Mapping[str, Sequence[Any]]
"""Columns by name, all of one length."""
_MS = 1_000_000
_DIGIT, _BETWEEN = 0.0085, 0.008
"""How much of the width a digit takes, and the space behind a number; disruptions that are nearer share one."""
_PHONE = 4.5
"""How much more of it on a phone."""
_DOTS = 12
"""How many dots high a bar is that fills its lane. Heights are rounded up to a dot: what is there is seen."""
WHOLE, SAVES, DISRUPTIONS = "the whole job", "saves completed", "disruptions"


@dataclass(frozen=True)
class ChartColumns:
    """Tables by name, and what they hold: lanes are the rows of the bands, from the top; rolling the window lengths
    (ns) by number."""

    start_ns: int
    end_ns: int
    tables: Mapping[str, Table]
    lanes: tuple[str, ...]

    def has(self, name: object) -> bool:
        """Whether a table holds anything; what is no table of ours is taken to."""
        return name not in self.tables or len(self.tables[str(name)]["t"]) > 0

    def rows(self, name: str) -> list[dict[str, Any]]:
        """A table row by row, instants as ms since 1970 UTC: what Vega-Lite draws."""
        table = self.tables[name]
        zero = self.start_ns / _MS
        columns = [[zero + value for value in column] if key in ("t", "u") else column for key, column in table.items()]
        return [dict(zip(table, row, strict=True)) for row in zip(*columns, strict=True)]


def chart_columns(picture: Picture) -> ChartColumns:
    """All tables of the charts. Columns: t, u: instants (u the end). The others are named where they are drawn."""
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


def _ms(picture: Picture, time: NDArray[np.int64]) -> list[float]:
    """Instants in ms since the start; whole ones, unless the picture is so short that it shows less."""
    passed = (time - picture.start_ns) / _MS
    whole: list[float] = np.rint(passed).astype(np.int64).tolist()
    return whole if picture.bucket_ns >= 10 * _MS else list(map(_short, np.round(passed, 6).tolist()))


def _numbers(values: NDArray[np.floating[Any]], digits: int = 6) -> list[float | None]:
    """Numbers of at most some significant digits, as short as they can be written."""
    written = (f"%.{digits}g " * len(values) % tuple(values.tolist())).split()  # at once: half the time of one by one
    return [None if math.isnan(value) else _short(value) for value in map(float, written)]


def _short(value: float) -> float:
    return int(value) if value.is_integer() else value


def _curve(picture: Picture) -> Table:
    """line: which line; step; lost: 0 or 1. Behind each line a row without a step ends it."""
    curve = picture.curve
    last = np.flatnonzero(curve.line[1:] != curve.line[:-1]) + 1
    return {
        "t": _broken(_ms(picture, curve.time), last, repeated=True),
        "step": _broken(_numbers(curve.step, 12), last),
        "line": _broken(curve.line.tolist(), last),
        "lost": _broken(curve.lost.astype(int).tolist(), last, repeated=True),
    }


def _broken(values: list[Any], places: NDArray[np.intp], *, repeated: bool = False) -> list[Any]:
    """A column with a row more in front of some places: None, or what is before it once more."""
    made: list[Any] = []
    for start, stop in zip((0, *places.tolist()), (*places.tolist(), len(values)), strict=True):
        made += values[start:stop]
        if stop < len(values):
            made.append(values[stop - 1] if repeated else None)
    return made


def _falls(picture: Picture) -> Table:
    """From where one attempt ended to where the next one began: two rows, and one without a step behind them."""
    curve = picture.curve
    last = np.flatnonzero((curve.line[1:] != curve.line[:-1]) & (curve.attempt[1:] != curve.attempt[:-1]))
    ends = np.column_stack((last, last + 1)).ravel()
    pairs = np.arange(2, len(ends), 2)
    return {
        "t": _broken(_ms(picture, curve.time[ends]), pairs, repeated=True),
        "step": _broken(_numbers(curve.step[ends], 12), pairs),
    }


def _lanes(picture: Picture) -> tuple[tuple[str, ...], Table]:
    """Titles of the lanes, and the bars in them: low and high edge in lanes from the top, kind the category's code."""
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


def _strip(picture: Picture) -> Table:
    """Which category (kind, its code) has most of each interval; neighbours of one category are one."""
    bands = picture.bands
    most = np.flatnonzero(bands.most)
    heads = most[run_heads(bands.category[most])]
    start = bands.start[heads]
    return {
        "t": _ms(picture, start),
        "u": _ms(picture, np.append(start[1:], picture.end_ns)),
        "kind": bands.category[heads].tolist(),
    }


def _disruptions(picture: Picture) -> Table:
    """text: the number of the disruption, or of several that lie close together at the first of them; few: the same on
    a phone. Where there are many, worst: whether it is one of those that cost most, which alone have numbers."""
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
    """The numbers of those that cost most, the worst first: one that would run into another, or out of the picture, has
    none. larger: than in a wide picture."""
    texts = [""] * len(places)
    taken: list[tuple[float, float]] = []
    for _, row in sorted((rank, row) for row, rank in enumerate(worst) if rank):
        begin, end = places[row], places[row] + _room(str(numbers[row])) * larger
        if end <= 1 + _BETWEEN and all(end <= low or begin >= high for low, high in taken):
            texts[row] = str(numbers[row])
            taken.append((begin, end))
    return texts


def _labels(places: list[float], first: list[int], last: list[int], larger: float = 1) -> list[str]:
    """A label a mark, `4` or `4-6`; where it would run into the next mark's, or out of the picture, that one has none
    and is named by the one before. larger: than in a wide picture."""
    texts = [""] * len(places)
    shown = 0
    for row, place in enumerate(places):
        own = _label(first[row], last[row])
        fits = place >= places[shown] + _room(texts[shown]) * larger and place + _room(own) * larger <= 1 + _BETWEEN
        shown = row if row == 0 or fits else shown
        texts[shown] = _label(first[shown], last[row])
    labelled = [row for row, text in enumerate(texts) if text]
    while len(labelled) > 1 and places[labelled[-1]] + _room(texts[labelled[-1]]) * larger > 1 + _BETWEEN:
        texts[labelled.pop()] = ""  # it grew out of the picture
        texts[labelled[-1]] = _label(first[labelled[-1]], last[-1])
    return texts


def _label(first: int, last: int) -> str:
    return str(first) if last == first else f"{first}\N{EN DASH}{last}"


def _room(text: str) -> float:
    return len(text) * _DIGIT + _BETWEEN


def _shares(picture: Picture, shares: Shares) -> Table:
    return {"t": _ms(picture, shares.time), "percent": _numbers(shares.percent)}


def _rolling(picture: Picture) -> Table:
    """All rolling windows; line: which of them."""
    tables = [_shares(picture, shares) for shares in picture.rolling]
    return {
        "t": [value for table in tables for value in table["t"]],
        "percent": [value for table in tables for value in table["percent"]],
        "line": [line for line, table in enumerate(tables) for _ in table["t"]],
    }


def _steps(picture: Picture) -> Table:
    """number: the first step of each row; count: how many it stands for; low, level, high: seconds."""
    times = picture.step_times
    return {
        "t": _ms(picture, times.time),
        "number": times.number.tolist(),
        "count": times.count.tolist(),
        "low": _numbers(times.low),
        "level": _numbers(times.level),
        "high": _numbers(times.high),
    }


def _busy(picture: Picture) -> dict[str, Table]:
    """percent: how busy accelerators were, where samples of them lie beside the log."""
    if picture.busy is None:
        return {}
    return {"busy": {"t": _ms(picture, picture.busy.time), "percent": _numbers(picture.busy.value, 4)}}


def _metrics(picture: Picture) -> Table:
    """All metrics that are drawn; line: which of `DRAWN`."""
    names = list(DRAWN)
    return {
        "t": [time for line in picture.metrics for time in _ms(picture, line.time)],
        "value": [value for line in picture.metrics for value in _numbers(line.value)],
        "line": [names.index(line.name) for line in picture.metrics for _ in line.time],
    }

"""Rolling windows: as the rows of JSON, as a `Sheet`, and in a line for the report of `analyze`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from goodput_cli.analysis.results import Analysis, CategoryTime, Rolling, WindowRow
from goodput_cli.analysis.sheet import Cell, Column, Lazy, Sheet
from goodput_cli.vocabulary.text import as_typed, clock, duration, finite, iso, percent, period, plural, well_formed
from goodput_cli.vocabulary.titles import short_title

_EXCLUDED = "excluded"


def rolling_dicts(rolling: Rolling) -> Lazy[dict[str, Any]]:
    """The windows as JSON holds them, keys as in docs/schema.json."""
    return Lazy(len(rolling), lambda: map(_dict, rolling.rows()))


def rolling_sheet(analysis: Analysis) -> Sheet:
    """The rolling windows of an analysis; `Analysis.rolling` must be there."""
    rolling = analysis.rolling
    assert rolling is not None
    elastic = not bool(np.isnan(rolling.stepping).all())
    excluded = bool(rolling.excluded_ns.any())
    window = analysis.window
    return Sheet(
        title=f"Rolling goodput of {analysis.job.name}",
        summary=tuple(_summary(analysis, rolling)),
        columns=_columns(rolling, elastic=elastic, excluded=excluded),
        rows=Lazy(len(rolling), lambda: _rows(rolling, elastic=elastic, excluded=excluded)),
        notes=tuple(_notes(rolling, elastic)),
        data={
            "job": {"name": analysis.job.name, "start": iso(analysis.job.start_ns), "end": iso(analysis.job.end_ns)},
            "window": {"start": iso(window.start_ns), "end": iso(window.end_ns)},
            "every_seconds": rolling.every_ns / 1e9,
            "hindsight": rolling.hindsight,
            "rolling": rolling_dicts(rolling),
        },
    )


def _columns(rolling: Rolling, *, elastic: bool, excluded: bool) -> tuple[Column, ...]:
    several = len(set(rolling.window_ns.tolist())) > 1
    slices = (Column("slices", "percent", "eye"), Column("stepping_slice_efficiency", "number", "data"))
    names = [category if label is None else f"{category}:{label}" for category, label in rolling.categories]
    return (
        Column("window", "duration", "all" if several else "data"),
        Column("start", "instant", "data"),
        Column("end", "instant"),
        Column("goodput", "percent"),
        Column("", "share"),
        *(slices if elastic else ()),
        Column("most lost to", "text", "eye"),
        Column("share", "percent", "eye"),
        Column("productive", "duration", "data"),
        *(Column(name, "duration", "data") for name in names),
        *([Column(_EXCLUDED, "duration", "data")] if excluded else []),
    )


def _rows(rolling: Rolling, *, elastic: bool, excluded: bool) -> Iterator[tuple[Cell, ...]]:
    for row, amounts in zip(rolling.rows(), rolling.badput_ns.T.tolist(), strict=True):
        yield (*_cells(row, elastic), *amounts, *([row.excluded_ns] if excluded else []))


def rolling_lines(rolling: Rolling) -> Iterator[tuple[str, list[float | None], str, str]]:
    """Per window length: what it is, goodput in percent of every window, and the lowest and the last one in words."""
    shares = np.divide(
        100 * rolling.productive_ns, rolling.counted_ns, out=np.full(len(rolling), np.nan), where=rolling.counted_ns > 0
    )
    for length in dict.fromkeys(rolling.window_ns.tolist()):
        rows = np.flatnonzero(rolling.window_ns == length)
        head = f"{as_typed(length)} every {as_typed(rolling.every_ns)}, {plural(len(rows), 'window')}"
        known = rows[~np.isnan(shares[rows])]
        if len(known) == 0:
            yield head, [None] * len(rows), "nothing counts", ""
            continue
        lowest, last = int(known[np.argmin(shares[known])]), int(known[-1])
        span = _short_period(int(rolling.start_ns[lowest]), int(rolling.end_ns[lowest]))
        yield (
            head,
            [finite(share) for share in shares[rows].tolist()],
            f"lowest {percent(float(shares[lowest]))} ({span})",
            f"last {percent(float(shares[last]))}",
        )


def _short_period(start_ns: int, end_ns: int) -> str:
    (day, first), (last_day, last) = clock(start_ns), clock(end_ns)
    return f"{day[5:]} {first} - {last if day == last_day else f'{last_day[5:]} {last}'}"


def _dict(row: WindowRow) -> dict[str, Any]:
    stepping = row.stepping
    return {
        "window_seconds": row.window_ns / 1e9,
        "start": iso(row.start_ns),
        "end": iso(row.end_ns),
        "seconds": (row.end_ns - row.start_ns) / 1e9,
        "excluded_ns": row.excluded_ns,
        "goodput_ns": row.productive_ns,
        "goodput_percent": row.percent,
        "badput": [_amount(amount) for amount in row.badput],
        "stepping_slice_efficiency": stepping,
        "goodput_x_stepping_percent": None if stepping is None or row.percent is None else row.percent * stepping,
    }


def _amount(amount: CategoryTime) -> dict[str, Any]:
    return {
        "category": amount.category,
        "label": None if amount.label is None else well_formed(amount.label),
        "seconds": amount.seconds,
        "ns": amount.ns,
        "percent": finite(amount.percent),
    }


def _cells(row: WindowRow, elastic: bool) -> tuple[Cell, ...]:
    most = row.badput[0] if row.badput else None
    slices: tuple[Cell, ...] = (None if row.stepping is None else 100 * row.stepping, row.stepping) if elastic else ()
    return (
        row.window_ns,
        row.start_ns,
        row.end_ns,
        row.percent,
        None if row.percent is None else row.percent / 100,
        *slices,
        None if most is None else short_title(most.category, most.label),
        None if most is None else finite(most.percent),
        row.productive_ns,
    )


def _summary(analysis: Analysis, rolling: Rolling) -> Iterator[str]:
    window = analysis.window
    goodput = percent(analysis.goodput.percent)
    yield f"{period(window.start_ns, window.end_ns)} ({duration(window.ns)}), goodput {goodput}"
    for head, _, words, _ in rolling_lines(rolling):
        yield f"{head}: {words}"


def _notes(rolling: Rolling, elastic: bool) -> Iterator[str]:
    if (rolling.end_ns - rolling.start_ns < rolling.window_ns).any():
        yield "windows at the ends of the job are shorter: they are cut to it"
    if elastic:
        yield "slices: share of the job's slices that were stepping; goodput times it is in the JSON"
    if not rolling.hindsight:
        yield "each window as it was known at its end (--no-hindsight)"

"""Rolling windows: their columns, a `Sheet` of them, and a line for the report of `analyze`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.rolling.results import Rolling, WindowRow
from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.table import table_rows
from goodput_cli.arrays import I64, blocks
from goodput_cli.vocabulary.category_names import brief_name
from goodput_cli.vocabulary.text import as_typed, clock, duration, finite, percent, period, plural

if TYPE_CHECKING:
    from goodput_cli.analysis.answer import Answer

_AT_ONCE = 1024


def rolling_sheet(analysis: Analysis) -> Sheet:
    """The rolling windows of an analysis; `Analysis.rolling` must be there."""
    rolling = analysis.rolling
    assert rolling is not None
    columns = _columns(rolling)
    return Sheet(
        title=f"Rolling goodput of {analysis.job.name}",
        summary=tuple(_summary(analysis, rolling)),
        columns=columns,
        rows=table_rows(columns, len(rolling), lambda: parts(rolling)),
        notes=tuple(_notes(rolling)),
        answer=lambda: _answer(analysis, rolling),
    )


def _answer(analysis: Analysis, rolling: Rolling) -> Answer:
    from goodput_cli.analysis.rolling.answer import rolling_answer  # msgspec: only where JSON is written

    return rolling_answer(analysis, rolling)


@dataclass(frozen=True)
class _Windows:
    """Some of the windows: a part of the table."""

    rows: list[WindowRow]
    badput_ns: I64
    """As in `Rolling`, of these windows."""


def parts(rolling: Rolling) -> Iterator[_Windows]:
    """All windows, some at a time."""
    rows = rolling.rows()
    for start, stop in blocks(len(rolling), _AT_ONCE):
        yield _Windows(list(islice(rows, stop - start)), rolling.badput_ns[:, start:stop])


def _of(value: Callable[[WindowRow], Any]) -> Callable[[_Windows], list[Any]]:
    return lambda part: [value(row) for row in part.rows]


def _amounts(category: int) -> Callable[[_Windows], I64]:
    return lambda part: part.badput_ns[category]


def _badput(row: WindowRow) -> list[dict[str, Any]]:
    return [
        {
            "category": amount.category,
            "label": amount.label,
            "seconds": amount.seconds,
            "ns": amount.ns,
            "percent": finite(amount.percent),
        }
        for amount in row.badput
    ]


def _times_stepping(row: WindowRow) -> float | None:
    return None if row.stepping is None or row.percent is None else row.percent * row.stepping


COLUMNS = (
    Column("window", "duration", values=_of(lambda row: row.window_ns), words="the length asked for"),
    Column("start", "instant", Audience.PROGRAMS, _of(lambda row: row.start_ns), "start of the window, cut to the job"),
    Column(
        "end",
        "instant",
        values=_of(lambda row: row.end_ns),
        words="end of the window, cut to the job; without hindsight, to what it was then",
    ),
    Column(
        "seconds",
        "number",
        Audience.JSON,
        _of(lambda row: (row.end_ns - row.start_ns) / 1e9),
        "length of the window as cut, exclusions included",
    ),
    Column(
        "excluded_ns",
        "count",
        Audience.JSON,
        _of(lambda row: row.excluded_ns),
        "taken out by the user, in ns",
        least=0,
    ),
    Column(
        "goodput_ns",
        "count",
        Audience.JSON,
        _of(lambda row: row.productive_ns),
        "productive time; with all badput[].ns it adds up to the window without exclusions",
    ),
    Column(
        "goodput",
        "percent",
        values=_of(lambda row: row.percent),
        words="of the window without exclusions; null: nothing counts",
        nullable=True,
    ),
    Column(
        "badput",
        "text",
        Audience.JSON,
        _of(_badput),
        "every category that is not zero, the largest first",
        json={"type": "array", "items": {"$ref": "#/$defs/badput"}},
    ),
    Column("", "share", Audience.PEOPLE, _of(lambda row: None if row.percent is None else row.percent / 100)),
    Column("slices", "percent", Audience.PEOPLE, _of(lambda row: None if row.stepping is None else 100 * row.stepping)),
    Column(
        "stepping_slice_efficiency",
        "number",
        Audience.PROGRAMS,
        _of(lambda row: row.stepping),
        "time-weighted mean of active/total slices; null: unknown",
        nullable=True,
    ),
    Column(
        "goodput_x_stepping",
        "percent",
        Audience.JSON,
        _of(_times_stepping),
        "goodput times stepping_slice_efficiency",
        nullable=True,
    ),
    Column(
        "most lost to",
        "text",
        Audience.PEOPLE,
        _of(lambda row: row.badput[0].name if row.badput else None),
        brief=brief_name,
    ),
    Column("share", "percent", Audience.PEOPLE, _of(lambda row: finite(row.badput[0].percent) if row.badput else None)),
    Column("productive", "duration", Audience.TABLES, _of(lambda row: row.productive_ns)),
)
"""The columns of every answer; tables have one more for each category that there is."""
_EXCLUDED = Column("excluded", "duration", Audience.TABLES, _of(lambda row: row.excluded_ns))


def _columns(rolling: Rolling) -> tuple[Column, ...]:
    """What people and tables have: the lengths of windows where there are several, slices and exclusions where there
    are some, each category."""
    hidden = set() if _is_elastic(rolling) else {"slices", "stepping_slice_efficiency"}
    shown = [column for column in COLUMNS if column.name not in hidden and column.audience != Audience.JSON]
    if len(set(rolling.window_ns.tolist())) <= 1:
        shown = [replace(one, audience=Audience.PROGRAMS) if one.name == "window" else one for one in shown]
    names = [category if label is None else f"{category}:{label}" for category, label in rolling.categories]
    amounts = [Column(name, "duration", Audience.TABLES, _amounts(place)) for place, name in enumerate(names)]
    return (*shown, *amounts, *([_EXCLUDED] if rolling.excluded_ns.any() else []))


def _is_elastic(rolling: Rolling) -> bool:
    """Whether slice counts are known."""
    return not bool(np.isnan(rolling.stepping).all())


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


def _summary(analysis: Analysis, rolling: Rolling) -> Iterator[str]:
    window = analysis.window
    goodput = percent(analysis.goodput.percent)
    yield f"{period(window.start_ns, window.end_ns)} ({duration(window.ns)}), goodput {goodput}"
    for head, _, words, _ in rolling_lines(rolling):
        yield f"{head}: {words}"


def _notes(rolling: Rolling) -> Iterator[str]:
    if (rolling.end_ns - rolling.start_ns < rolling.window_ns).any():
        yield "windows at the ends of the job are shorter: they are cut to it"
    if _is_elastic(rolling):
        yield "slices: share of the job's slices that were stepping; goodput times it is in the JSON"
    if not rolling.hindsight:
        yield "each window as it was known at its end (--no-hindsight)"

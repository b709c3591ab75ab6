"""Rolling windows (`goodput rolling`, accounting §7): windows that move through the job, as rows, table and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Any

import numpy as np
from msgspec import Struct

from goodput_cli.accounting.build import Timeline, build_timeline
from goodput_cli.accounting.columns import distinct
from goodput_cli.accounting.segments import Key
from goodput_cli.analysis.analysis_data import NamedJob, named_job
from goodput_cli.analysis.goodput.analyse import slice_counts
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.phrases import goodput_text, window_text
from goodput_cli.analysis.json_fields import Instant, Json, written
from goodput_cli.analysis.results import Rolling, WindowRow
from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.table import FilledTable, TableDeclaration
from goodput_cli.arrays import I64, Mask, Rows, blocks
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.vocabulary.categories import CATEGORIES, Category, brief_name
from goodput_cli.vocabulary.text import as_typed, clock, finite, percent, plural
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_HOUR, NS_PER_MINUTE, NS_PER_SECOND

MAX_ROWS = 1_000_000
_ROUND = (
    *(n * NS_PER_SECOND for n in (1, 5, 10, 30)),
    *(n * NS_PER_MINUTE for n in (1, 5, 10, 15, 30)),
    *(n * NS_PER_HOUR for n in (1, 2, 4, 6, 12)),
    *(n * NS_PER_DAY for n in (1, 2, 7)),
)


def rolling(
    timeline: Timeline, start: int, end: int, windows: Sequence[int], every: int | None = None, hindsight: bool = True
) -> Rolling:
    """Return goodput and badput of windows that end in (start, end] (ns).

    windows: lengths in ns. every: ns between two ends, counted from `start` (default: the shortest window, so that it
    tiles the job); the last row ends at `end`. Windows look back beyond `start` and are cut only to the job window.
    hindsight: whether a step that is redone later is wasted in every window that contains it; otherwise each row is as
    it was known at its end. Raise `UsageError` for more than a million rows.
    """
    window, begins, ends = window_bounds(timeline, start, end, windows, every or min(windows))
    if hindsight:
        amounts, unknown = timeline.ledger.between(begins, ends), _has_unknown_goodput(timeline, begins, ends)
        undecided = timeline.undecided(begins, ends)
    else:
        ends, amounts, unknown, undecided = _as_known_then(timeline, begins, ends)
    nothing = np.zeros(len(ends), dtype=np.int64)
    productive = amounts.pop((Category.PRODUCTIVE, -1), nothing)
    excluded = amounts.pop((Category.EXCLUDED, -1), nothing)
    keys, labels = [key for key, amount in amounts.items() if amount.any()], timeline.table.labels
    return Rolling(
        window_ns=window,
        start_ns=begins,
        end_ns=ends,
        excluded_ns=excluded,
        productive_ns=productive,
        categories=tuple((CATEGORIES[category], labels[label] if label >= 0 else None) for category, label in keys),
        badput_ns=np.array([amounts[key] for key in keys], dtype=np.int64).reshape(len(keys), len(ends)),
        stepping=slice_counts(timeline.table).stepping.mean(begins, ends),
        every_ns=every or min(windows),
        hindsight=hindsight,
        unknown=unknown,
        at_most_ns=productive + undecided,
    )


def last_windows(timeline: Timeline, end: int, windows: Sequence[int]) -> Rolling:
    """Return the one window of each length (ns) that ends at `end` (ns)."""
    return replace(rolling(timeline, end - 1, end, windows, every=1), every_ns=min(windows))


def as_known_at(timeline: Timeline, as_of: int) -> Timeline:
    """Return the job as it was known at the time `as_of` (ns). Raise `NotEnoughData` if nothing was known."""
    if as_of >= timeline.end:
        return timeline
    then = build_timeline(timeline.ordered, timeline.rules, as_of)
    if then is None:
        raise NotEnoughData("the job has no events before the end of the window")
    return then


def default_window(length: int) -> int:
    """Return a round length (ns) that fits about ten times into `length` (ns)."""
    return next((size for size in _ROUND if 10 * size >= length), _ROUND[-1])


def window_bounds(timeline: Timeline, start: int, end: int, windows: Sequence[int], every: int) -> tuple[I64, I64, I64]:
    """Return requested length, start and end (ns) of every window, ordered by length and then by time."""
    rows = -(-(end - start) // every)
    if rows * len(windows) > MAX_ROWS:
        raise UsageError(f"{rows * len(windows)} windows are too many (limit {MAX_ROWS})", tip="use a longer --every")
    ends = start + every * np.arange(1, rows + 1, dtype=np.int64)
    window = np.repeat(np.array(windows, dtype=np.int64), rows)
    reached = np.tile(ends, len(windows))
    begins, cut = np.maximum(reached - window, timeline.start), np.minimum(reached, end)
    some = begins < cut
    return window[some], begins[some], cut[some]


def _as_known_then(timeline: Timeline, begins: I64, ends: I64) -> tuple[I64, dict[Key, I64], Mask, I64]:
    """Return ends and amounts of windows as they were known at each end.

    Also return for which of them goodput was unknown then, and how much more time may have been productive. A window
    ends where the job had ended by then. If that was before the window began, nothing of it counts.
    """
    cut, unknown = begins.copy(), np.zeros(len(ends), dtype=np.bool_)
    undecided = np.zeros(len(ends), dtype=np.int64)
    amounts: dict[Key, I64] = {}
    for known_at in distinct(ends).tolist():
        rows = np.flatnonzero(ends == known_at)
        then = build_timeline(timeline.ordered, timeline.rules, known_at)
        if then is not None:
            cut[rows] = np.maximum(np.minimum(ends[rows], then.end), begins[rows])
            for key, values in then.ledger.between(begins[rows], cut[rows]).items():
                amounts.setdefault(key, np.zeros(len(ends), dtype=np.int64))[rows] = values
            unknown[rows] = _has_unknown_goodput(then, begins[rows], cut[rows])
            undecided[rows] = then.undecided(begins[rows], cut[rows])
    return cut, dict(sorted(amounts.items())), unknown, undecided


def _has_unknown_goodput(timeline: Timeline, begins: I64, ends: I64) -> Mask:
    """Return True for each window whose goodput has no lower limit, or none at all (accounting §7)."""
    return timeline.unknown(begins, ends) | timeline.has_unknown_time(begins, ends)


_AT_ONCE = 1024


def rolling_sheet(analysis: Analysis) -> Sheet:
    """Return the rolling windows of an analysis; `Analysis.rolling` must not be None."""
    rolling = analysis.rolling
    assert rolling is not None
    columns = _columns(rolling)
    return Sheet(
        title=f"Rolling goodput of {analysis.job.name}",
        summary=tuple(_summary(analysis, rolling)),
        columns=columns,
        rows=filled(rolling).cells(columns),
        notes=tuple(_notes(rolling)),
        answer=lambda: rolling_answer(analysis, rolling),
    )


class _Windows(Struct, frozen=True):
    """Some of the windows: a part of the table."""

    rows: list[WindowRow]
    badput_ns: I64
    """As in `Rolling`, for these windows."""


def parts(rolling: Rolling) -> Iterator[_Windows]:
    """Yield all windows in parts."""
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


WINDOWS = TableDeclaration(
    "rolling_row",
    "one window",
    (
        Column("window", "duration", values=_of(lambda row: row.window_ns), words="requested length"),
        Column(
            "start", "instant", Audience.PROGRAMS, _of(lambda row: row.start_ns), "start of the window, cut to the job"
        ),
        Column(
            "end", "instant", values=_of(lambda row: row.end_ns),
            words="end of the window, cut to the job; without hindsight, to what it was then",
        ),
        Column(
            "seconds", "number", Audience.JSON, _of(lambda row: (row.end_ns - row.start_ns) / 1e9),
            "length of the window as cut, exclusions included",
        ),
        Column(
            "excluded_ns", "count", Audience.JSON, _of(lambda row: row.excluded_ns), "excluded by the user, in ns",
            least=0,
        ),
        Column(
            "goodput_ns",
            "count",
            Audience.JSON,
            _of(lambda row: row.productive_ns),
            "productive time; with all badput[].ns it adds up to the window without exclusions; null: unknown, "
            "or only bounds are known",
            nullable=True,
        ),
        Column(
            "goodput", "percent", values=_of(lambda row: row.percent),
            words="of the window without exclusions; null: nothing counts, unknown, or only bounds are known",
            nullable=True,
        ),
        Column(
            "at_least", "percent", Audience.ALL, _of(lambda row: row.at_least_percent),
            "the lowest goodput that the log allows: goodput where that is known", nullable=True, later=True,
            title="at least",
        ),
        Column(
            "at_most", "percent", Audience.ALL, _of(lambda row: row.at_most_percent),
            "the highest goodput that the log allows: goodput where that is known", nullable=True, later=True,
            title="at most",
        ),
        Column(
            "badput", "text", Audience.JSON, _of(_badput), "every category that is not zero, the largest first",
            json={"type": "array", "items": {"$ref": "#/$defs/badput"}},
        ),
        Column("", "share", Audience.PEOPLE, _of(lambda row: None if row.percent is None else row.percent / 100)),
        Column(
            "slices", "percent", Audience.PEOPLE, _of(lambda row: None if row.stepping is None else 100 * row.stepping)
        ),
        Column(
            "stepping_slice_efficiency", "number", Audience.PROGRAMS, _of(lambda row: row.stepping),
            "time-weighted mean of active/total slices; null: unknown", nullable=True,
        ),
        Column(
            "goodput_x_stepping", "percent", Audience.JSON,
            _of(lambda row: None if row.stepping is None or row.percent is None else row.percent * row.stepping),
            "goodput times stepping_slice_efficiency", nullable=True,
        ),
        Column(
            "most lost to", "text", Audience.PEOPLE, _of(lambda row: row.badput[0].name if row.badput else None),
            brief=brief_name,
        ),
        Column(
            "share", "percent", Audience.PEOPLE, _of(lambda row: finite(row.badput[0].percent) if row.badput else None)
        ),
        Column("productive", "duration", Audience.TABLES, _of(lambda row: row.productive_ns)),
    ),
)  # fmt: skip
"""Columns of every answer; tables have an additional one for each category that occurs."""
_EXCLUDED = Column("excluded", "duration", Audience.TABLES, _of(lambda row: row.excluded_ns))


def _columns(rolling: Rolling) -> tuple[Column, ...]:
    """Return the columns of people and tables: lengths of windows if there are several, slices and exclusions if there
    are any, and each category."""
    hidden = set() if _is_elastic(rolling) else {"slices", "stepping_slice_efficiency"}
    hidden |= set() if rolling.bounded.any() else {"at_least", "at_most"}
    without = ("window",) if len(set(rolling.window_ns.tolist())) <= 1 else ()
    shown = [one for one in WINDOWS.sheet_columns(without) if one.name not in hidden]
    names = [category if label is None else f"{category}:{label}" for category, label in rolling.categories]
    amounts = [Column(name, "duration", Audience.TABLES, _amounts(place)) for place, name in enumerate(names)]
    return (*shown, *amounts, *([_EXCLUDED] if rolling.excluded_ns.any() else []))


def filled(rolling: Rolling) -> FilledTable:
    """Return the table of the windows."""
    return WINDOWS.of(len(rolling), lambda: parts(rolling))


def _is_elastic(rolling: Rolling) -> bool:
    """Return True if slice counts are known."""
    return not bool(np.isnan(rolling.stepping).all())


def rolling_lines(rolling: Rolling) -> Iterator[tuple[str, list[float | None], str, str]]:
    """Yield, per window length, its description, goodput in percent of every window, and the lowest and the last one in
    words."""
    shares = rolling.percent
    for length in dict.fromkeys(rolling.window_ns.tolist()):
        rows = np.flatnonzero(rolling.window_ns == length)
        head = f"{as_typed(length)} every {as_typed(rolling.every_ns)}, {plural(len(rows), 'window')}"
        known = rows[~np.isnan(shares[rows])]
        if len(known) == 0:
            yield head, [None] * len(rows), _no_share_reason(rolling, rows), ""
            continue
        lowest, last = int(known[np.argmin(shares[known])]), int(known[-1])
        (day, begin), (last_day, end) = clock(int(rolling.start_ns[lowest])), clock(int(rolling.end_ns[lowest]))
        span = f"{day[5:]} {begin} - {end if day == last_day else f'{last_day[5:]} {end}'}"
        yield (
            head,
            [finite(share) for share in shares[rows].tolist()],
            f"lowest {percent(float(shares[lowest]))} ({span})",
            f"last {percent(float(shares[last]))}",
        )


def _no_share_reason(rolling: Rolling, rows: Rows) -> str:
    """Return why none of some windows has a goodput."""
    if rolling.bounded[rows].any():
        low, high = float(np.nanmin(rolling.at_least_percent[rows])), float(np.nanmax(rolling.at_most_percent[rows]))
        return f"only bounds are known, {percent(low)} to {percent(high)}"
    return "unknown" if rolling.unknown[rows].any() else "nothing counts"


def _summary(analysis: Analysis, rolling: Rolling) -> Iterator[str]:
    why = f": {analysis.unavailable_reason}" if analysis.goodput_unknown else ""
    yield f"{window_text(analysis)}, goodput {goodput_text(analysis)}{why}"
    rows = [(head, words) for head, _, words, _ in rolling_lines(rolling)]
    if len(rows) > 1:
        every = rows[0][0].partition(" ")[2].partition(",")[0]
        lowest = (f"{head.partition(' ')[0]}: {words.removeprefix('lowest ')}" for head, words in rows)
        yield f"lowest windows ({every}): {'; '.join(lowest)}"
    else:
        yield from (f"{head}: {words}" for head, words in rows)


def _notes(rolling: Rolling) -> Iterator[str]:
    if (rolling.end_ns - rolling.start_ns < rolling.window_ns).any():
        yield "windows at the start and end of the job are shorter, because they are cut to the job"
    if _is_elastic(rolling):
        yield "slices: share of the slices that were stepping; JSON has goodput times this share"
    if not rolling.hindsight:
        yield "each window uses only what was logged before its end (--no-hindsight)"


@written("rolling_span")
@dataclass(frozen=True)
class RollingSpan:
    """Range of the windows' ends."""

    start_ns: Instant
    """windows end after this instant"""
    end_ns: Instant
    """the last window ends here"""


@written("rolling_answer", "goodput rolling --format json", kind="rolling")
@dataclass(frozen=True, kw_only=True)
class RollingAnswer:
    """Windows that move through a job."""

    job: NamedJob
    window: RollingSpan
    every_ns: Annotated[int, Json("seconds")]
    """time between two window ends"""
    hindsight: bool
    """false: each window as it was known at its end"""
    rolling: Annotated[FilledTable, WINDOWS]


def rolling_answer(analysis: Analysis, rolling: Rolling) -> RollingAnswer:
    """Return the windows of an analysis."""
    return RollingAnswer(
        job=named_job(analysis),
        window=RollingSpan(analysis.window.start_ns, analysis.window.end_ns),
        every_ns=rolling.every_ns,
        hindsight=rolling.hindsight,
        rolling=filled(rolling),
    )

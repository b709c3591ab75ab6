"""Categories with more than their usual share of the window, and what the log leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from goodput_cli.accounting.columns import among, of_kind
from goodput_cli.analysis.insights.insight import About, Candidate
from goodput_cli.arrays import I64, Rows
from goodput_cli.diagnostics.codes import CODES
from goodput_cli.vocabulary.categories import BY_NAME, Category, is_eval
from goodput_cli.vocabulary.text import duration, number, plural

if TYPE_CHECKING:
    from goodput_cli.analysis.results import Analysis, CategoryTime

_MOST_ROWS = 5
_DEAD_NS = 600 * 10**9
_SHARES: dict[str, tuple[Category, ...]] = {
    "startups": (Category.PROGRAM_STARTUP, Category.TPU_INITIALIZATION, Category.TRAINING_PREP),
    "restores": (Category.RESTORE,),
    "planned_stops": (Category.STOPPED,),
    "queued": (Category.QUEUED,),
    "elastic": (Category.ELASTIC_DOWN, Category.ELASTIC_UP, Category.ELASTIC_REINIT),
    "undetermined": (Category.UNDETERMINED,),
}
_WORDS = {
    "startups": "start-up{s}{each}: initialisation, preparation and first steps",
    "restores": "checkpoint restore{s}{each}",
    "planned_stops": "planned stop{s}{each}",
    "queued": "wait{s} in the queue{each}",
    "elastic": "wait{s} for slices{each}",
    "undetermined": "disruption{s} that no line dates: lost training or downtime",
}
_OPTIONS: dict[str, tuple[str, ...]] = {"undetermined": (), "planned_stops": ("--exclude-stopped",)}
_ONCE_AN_ATTEMPT = ("startups", "elastic")


def find_shares(analysis: Analysis) -> Iterator[Candidate]:
    """All kinds that are the time of some categories."""
    for code, categories in _SHARES.items():
        rows = [row for row in analysis.badput if BY_NAME[row.category] in categories]
        if rows:
            yield _share(analysis, code, rows)
    for row in analysis.badput:
        if row.category == Category.CUSTOM.id and row.label is not None:
            yield _custom(analysis, row)


def _share(analysis: Analysis, code: str, rows: list[CategoryTime]) -> Candidate:
    segments = _segments(analysis, [BY_NAME[row.category] for row in rows])
    inferred = code == "restores" and analysis.timeline.records is None
    count = _how_many(analysis, segments, by_attempt=code in _ONCE_AN_ATTEMPT)
    ns = sum(row.ns for row in rows)
    text = f"{number(count)} {_WORDS[code].format(s='s' * (count > 1), each=_each(ns, count))}"
    options = _OPTIONS[code] if code in _OPTIONS else ("--category", max(rows, key=lambda row: row.ns).category)
    found = _found(analysis, code, ns, text + inferred * ", start-up included",
                   segments, rows, options, count)  # fmt: skip
    return replace(found, advice=_to_date_ends(analysis)) if code == "undetermined" else found


def _to_date_ends(analysis: Analysis) -> str:
    """What to log so that it is known when attempts end, which logs of each format say in their own way."""
    advice = CODES["undetermined_time"].advice_for(analysis.job.formats)
    return f"{advice[0].lower()}{advice[1:].rstrip('.')}"


def _custom(analysis: Analysis, row: CategoryTime) -> Candidate:
    assert row.label is not None
    segments = _segments(analysis, [Category.CUSTOM])
    labels = np.array(analysis.timeline.table.labels, dtype=object)
    segments = segments[labels[analysis.timeline.segments.label(segments)] == row.label]
    count = _how_many(analysis, segments)
    text = f"{row.label} held up training {_times(count)}{_each(row.ns, count)}"
    code = "evals" if is_eval(row.label) else "custom_events"
    options = () if code == "evals" else ("--category", f"custom:{row.label}")
    return _found(analysis, code, row.ns, text, segments, [row], options, count)


def find_unexplained(analysis: Analysis, explained: int) -> Iterator[Candidate]:
    """The end of a job that nobody heard of again, and other time in `other`; what the log does not record could be
    there. explained: time in `other` (ns) of which another insight tells."""
    timeline, window = analysis.timeline, analysis.window
    other = sum(row.ns for row in analysis.badput if row.category == Category.OTHER.id) - explained
    silence = _silence(analysis)
    dead = int(_lengths(analysis, silence).sum())
    if dead:
        begin = int(timeline.segments.start[silence[0]])
        text = f"no line for {duration(timeline.end - begin)} up to the end of the window: the job may be dead"
        last = int(np.argmax(timeline.table.end))
        yield Candidate("dead_job", dead, text, begin, timeline.end, 1, (last,),
                    About(categories=(Category.OTHER.id,)), ("--from", "-10m"))  # fmt: skip
    segments = _segments(analysis, [Category.OTHER])
    segments = segments[~among(segments, silence)]
    if len(segments) == 0:
        return
    missing = [name for name in analysis.not_recorded if BY_NAME.get(name) in _MAY_BE_THERE]
    text = f"no line explains this time, in {plural(len(segments), 'place')}"
    text += f"; not recorded: {', '.join(missing[:2])} and {len(missing) - 2} more" if len(missing) > 2 else ""
    longest = int(segments[np.argmax(_lengths(analysis, segments))])
    around = ("--category", Category.OTHER.id)
    yield Candidate("unexplained", other - dead, text, window.start_ns, window.end_ns, len(segments),
                _rows(analysis, np.array([longest])), About(categories=(Category.OTHER.id,)), around)  # fmt: skip


_MAY_BE_THERE = (
    Category.PROGRAM_STARTUP, Category.TPU_INITIALIZATION, Category.TRAINING_PREP, Category.DATA_LOADING_SYNC,
    Category.SAVE, Category.RESTORE, Category.CUSTOM,
)  # fmt: skip


def _silence(analysis: Analysis) -> Rows:
    """The segments of `other` behind the last line of a job that nothing ended, where no usual step is so long."""
    timeline = analysis.timeline
    heard = int(timeline.table.end.max())
    usual = timeline.usual_step.median
    known = usual[~np.isnan(usual)]
    patience = max(_DEAD_NS, timeline.rules.method.stall_factor * (float(known[-1]) if len(known) else 0.0))
    nothing = np.zeros(0, dtype=np.intp)
    if timeline.ended or timeline.end - heard <= patience:
        return nothing
    segments = _segments(analysis, [Category.OTHER])
    return segments[timeline.segments.start[segments] >= heard]


def _segments(analysis: Analysis, categories: list[Category]) -> Rows:
    """Those of some categories that reach into the window."""
    segments, window = analysis.timeline.segments, analysis.window
    first = int(np.searchsorted(segments.end, window.start_ns, side="right"))
    stop = int(np.searchsorted(segments.start, window.end_ns, side="left"))
    return np.flatnonzero(of_kind(segments.category[first:stop], categories)) + first


def _lengths(analysis: Analysis, rows: Rows) -> I64:
    """Of some segments, inside the window (ns)."""
    segments, window = analysis.timeline.segments, analysis.window
    return np.minimum(segments.end[rows], window.end_ns) - np.maximum(segments.start[rows], window.start_ns)


def _found(
    analysis: Analysis, code: str, ns: int, text: str, segments: Rows, badput: list[CategoryTime],
    options: tuple[str, ...], count: int,
) -> Candidate:  # fmt: skip
    """segments, badput: all that it is about."""
    window, edges = analysis.window, analysis.timeline.segments.edges
    start = max(int(edges[segments[0]]), window.start_ns) if len(segments) else window.start_ns
    end = min(int(edges[segments[-1] + 1]), window.end_ns) if len(segments) else window.end_ns
    return Candidate(code, ns, text, start, end, count, _rows(analysis, segments),
                 About(categories=tuple(row.name for row in badput)), options)  # fmt: skip


def _how_many(analysis: Analysis, segments: Rows, *, by_attempt: bool = False) -> int:
    """How many things some segments are of: one that others interrupt is one. by_attempt: those of an attempt are one,
    whatever parts it has."""
    of_all = analysis.timeline.segments
    return max(len(np.unique(of_all.attempt(segments) if by_attempt else of_all.holder[segments])), 1)


def _rows(analysis: Analysis, segments: Rows) -> tuple[int, ...]:
    """The line that begins each of the first segments."""
    rows, _ = analysis.timeline.segments.evidence(segments[:_MOST_ROWS])
    return tuple(row for row in rows.tolist() if row >= 0)


def _each(ns: int, count: int) -> str:
    """How long each of several things took."""
    return f", {duration(ns // count)} on average" if count > 1 else ""


def _times(count: int) -> str:
    return "once" if count == 1 else plural(count, "time")

"""An analysis for people and programs: its data, its insights, and its display in a session or a notebook."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.analysis_data import AnalysisData
from goodput_cli.analysis.disruptions.costs import costs_of, costs_of_attempts
from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.results import CategoryTimes
from goodput_cli.analysis.sheet import render_analysis
from goodput_cli.analysis.timeline.rows import EDGES, KINDS, evidence, segment_rows
from goodput_cli.errors import UsageError
from goodput_cli.events.schema import NO_STEP, EventTable
from goodput_cli.vocabulary.categories import CATEGORIES, Category, brief_name
from goodput_cli.vocabulary.text import duration, percent, safe, shorten

if TYPE_CHECKING:
    import pandas as pd

    from goodput_cli.analysis.accelerators.devices import Devices
    from goodput_cli.analysis.insights.kinds import Insight
    from goodput_cli.analysis.kept_work.sheet import Eta
    from goodput_cli.analysis.kept_work.work import KeptWork
    from goodput_cli.analysis.step_breakdown.breakdown import StepBreakdown

Frame = Literal["categories", "insights", "disruptions", "attempts", "segments", "events"]


@dataclass(frozen=True, repr=False, eq=False)
class Analysis(AnalysisData):
    """Time by category for a window. `goodput.ns` and all `badput` add up to `window.counted_ns` exactly."""

    def __repr__(self) -> str:
        return "\n".join(_lines(self))

    def _repr_html_(self) -> str:
        """Return the text of `repr` as HTML, with the categories. It has no style of its own and no script; text of the
        log is escaped."""
        share, amount = facts.headline(self)
        categories = [(brief_name(row.name), duration(row.ns), row.percent) for row in facts.category_rows(self)]
        insights = [(one.text, one.advice, duration(one.ns), percent(one.percent)) for one in self.insights[:_MOST]]
        parts = [
            f"<div><p><strong>{_text(_name(self))}: goodput {_text(share)}</strong>, {_text(amount)}<br>",
            f"{_text(_about(self))}</p>",
            *(f"<p>warning: {_text(one)}</p>" for one in facts.headline_warnings(self)),
            _table(("loss", "what to do", "time", "share"), insights) if insights else "",
            _table(("category", "time", "share"), categories),
            "</div>",
        ]
        return "".join(parts)

    def to_frame(self, of: Frame = "categories") -> pd.DataFrame:
        """Return rows of the answer as a DataFrame: `categories` (with goodput), `insights`, `disruptions`, `attempts`
        (with their costs), `segments` or `events`. Raises UsageError for anything else."""
        makers: dict[str, Callable[[], pd.DataFrame]] = {
            "categories": CategoryTimes((self.goodput, *self.badput)).to_frame,
            "insights": lambda: _insights(self),
            "disruptions": self.disruptions.to_frame,
            "attempts": lambda: costs_of_attempts(costs_of(self)).to_frame(),
            "segments": lambda: self.segments,
            "events": lambda: self.events,
        }
        if of not in makers:
            raise UsageError(f"unknown table {of!r}", tip=f"use one of {', '.join(makers)}")
        return makers[of]()

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as `--format json` writes it (docs/schema.json)."""
        answer: dict[str, Any] = json.loads(render_analysis(self, "json"))
        return answer

    def to_html(self) -> str:
        """Return the report: a single-file page that needs no network."""
        return render_analysis(self, "html")

    @cached_property
    def insights(self) -> tuple[Insight, ...]:
        """The largest losses with advice, the most costly first (docs/insights.md). Computed on first access."""
        from goodput_cli.analysis.insights.find import find_insights  # This loads all finders.

        return find_insights(self)

    @property
    def step_phases(self) -> tuple[StepBreakdown, ...]:
        """The step breakdown of each program of the job, the one with the most step time first.

        Empty if no phase is logged (docs/inside-steps.md). Computed on first access.
        """
        from goodput_cli.analysis.step_breakdown.breakdown import inside_of  # Few logs contain phases.

        return self.part(inside_of)

    @property
    def accelerators(self) -> Devices | None:
        """Activity of the accelerators; None without accelerator samples (docs/accelerators.md).

        Computed on first access.
        """
        from goodput_cli.analysis.accelerators.devices import devices_of  # Few logs contain any.

        return self.part(devices_of)

    @property
    def work(self) -> KeptWork | None:
        """Work of the kept steps in the window; None if not logged (docs/inside-steps.md).

        Computed on first access.
        """
        from goodput_cli.analysis.kept_work.work import work_of  # Few logs contain any.

        return self.part(work_of)

    @property
    def eta(self) -> Eta | None:
        """Expected end of the job; None if the last step is unknown. Computed on first access."""
        from goodput_cli.analysis.kept_work.sheet import eta_of  # Few logs contain the total.

        return self.part(eta_of)

    @cached_property
    def segments(self) -> pd.DataFrame:
        """Return the segments of the window as a DataFrame (needs pandas). They cover it without overlap.

        start, end: UTC timestamps, exact to the nanosecond. ns, seconds: length. category: id. label: of a custom
        event. attempt: from 1; missing without an attempt. first_step, last_step: missing if the segment is not about
        steps. slowdown_ns: the part that is `training_slowdown`, though the category is `productive`. evidence: the
        log lines that bound it.
        """
        return segment_frame(self.timeline, self.window.start_ns, self.window.end_ns)

    @cached_property
    def events(self) -> pd.DataFrame:
        """Return the job's events in time order as a DataFrame (needs pandas)."""
        return event_frame(self.table)


def _insights(analysis: Analysis) -> pd.DataFrame:
    """Return the columns code, text, advice, ns, seconds, percent, start, end, count, command. The most costly come
    first."""
    import pandas as pd

    insights = analysis.insights
    names = ("code", "text", "advice", "ns", "seconds", "percent", "count")
    columns: dict[str, Any] = {name: [getattr(one, name) for one in insights] for name in names}
    columns["start"] = pd.to_datetime([one.start_ns for one in insights], unit="ns", utc=True)
    columns["end"] = pd.to_datetime([one.end_ns for one in insights], unit="ns", utc=True)
    columns["command"] = [one.command_line() for one in insights]
    return pd.DataFrame(columns)


def segment_frame(timeline: Timeline, start: int, end: int) -> pd.DataFrame:
    """Return the segments of [start, end) (ns), with the columns of `Analysis.segments`."""
    import pandas as pd

    rows = segment_rows(timeline, start, end)
    steps = rows.first != NO_STEP
    return pd.DataFrame(
        {
            "start": pd.to_datetime(rows.start, unit="ns", utc=True),
            "end": pd.to_datetime(rows.end, unit="ns", utc=True),
            "ns": rows.end - rows.start,
            "seconds": (rows.end - rows.start) / 1e9,
            "category": _names(rows.category, CATEGORIES),
            "label": _labels(timeline.table, rows.label, rows.category == Category.CUSTOM),
            "attempt": _optional(rows.attempt + 1, rows.attempt >= 0),
            "first_step": _optional(rows.first, steps),
            "last_step": _optional(rows.stop - 1, steps),
            "slowdown_ns": rows.slowdown,
            "evidence": pd.Series(list(evidence(timeline.table, rows)), dtype=object),
        }
    )


def event_frame(table: EventTable) -> pd.DataFrame:
    """Return the job's events in time order, each once.

    Columns: time, end (UTC timestamps, ns), kind (lower case names of `Kind`), edge (point, begin, end, interval),
    step, rank, label (missing without one), source, line, evidence (`source:line`, or an entry's insertId).
    """
    import pandas as pd

    file, line = table.places()
    return pd.DataFrame(
        {
            "time": pd.to_datetime(table.time, unit="ns", utc=True),
            "end": pd.to_datetime(np.asarray(table.end), unit="ns", utc=True),
            "kind": _names(table.kind, KINDS),
            "edge": _names(table.edge, EDGES),
            "step": _optional(table.step, table.step != NO_STEP),
            "rank": _optional(table.rank, table.rank >= 0),
            "label": _labels(table, table.label, table.label >= 0),
            "source": _names(file, table.files),
            "line": line,
            "evidence": pd.Series(list(table.locations(np.arange(len(table)))), dtype=object),
        }
    )


def _names(codes: NDArray[np.signedinteger], names: Sequence[str]) -> pd.Categorical[str]:
    """Return the names of codes."""
    import pandas as pd

    return pd.Categorical.from_codes(codes.astype(np.int64), pd.Index(list(names), dtype=object))


def _optional(values: NDArray[np.signedinteger], known: NDArray[np.bool_]) -> pd.arrays.IntegerArray:
    """Return nullable integers."""
    import pandas as pd

    return pd.arrays.IntegerArray(np.where(known, values, 0).astype(np.int64), ~known)


def _labels(table: EventTable, label: NDArray[np.signedinteger], named: NDArray[np.bool_]) -> object:
    import pandas as pd

    pairs = zip(label.tolist(), named.tolist(), strict=True)
    return pd.array([table.labels[code] if has else None for code, has in pairs], dtype=object)


_MOST = 5
_LONGEST = 100
_MORE = ".insights, .to_frame(), .disruptions.to_frame(), .segments, .events, .to_dict(), .to_html()"


def _lines(analysis: Analysis) -> Iterator[str]:
    """Yield the answer, and the most costly insights."""
    share, amount = facts.headline(analysis)
    yield f"<Analysis of {_name(analysis)}: goodput {share}, {amount}"
    yield f" {_about(analysis)}"
    yield from (f" warning: {safe(one)}" for one in facts.headline_warnings(analysis))
    for insight in analysis.insights[:_MOST]:
        yield f" {percent(insight.percent):>8}  {duration(insight.ns):>11}  {safe(insight.text)}"
    yield f" more: {_MORE}>"


def _name(analysis: Analysis) -> str:
    return shorten(safe(analysis.job.name), _LONGEST, "...")


def _about(analysis: Analysis) -> str:
    return f"{facts.window_text(analysis)}, {facts.attempts_text(analysis)}, {facts.progress_text(analysis)}"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(words: str) -> str:
    from html import escape  # Only notebooks need it, and it loads a table of all entities.

    return escape(safe(words))

"""A comparison as a `Sheet`: the sides first, then the sources of the difference and the changes of each pair.

CSV has one row per figure (`kind`: goodput, category, fact, threshold); JSON has the pairs with all of theirs.

The difference between two runs as a chart: the time that the same work took, by category.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from goodput_cli.analysis.compare.phrases import (
    card,
    chart_line,
    contribution_name,
    fact_is_better,
    fact_words,
    float_or_none,
    length_line,
    less_or_more,
    limit_text,
    moved_lines,
    one_sided_lines,
    side_name,
    threshold_value,
    verdict,
    work_lines,
    work_rows,
)
from goodput_cli.analysis.compare.results import Change, ComparisonData, Contribution, Pair
from goodput_cli.analysis.compare.work import PRODUCTIVE, Moved, WorkComparison
from goodput_cli.analysis.goodput.phrases import DRAFTED, drafted_rules, threshold_verdict
from goodput_cli.analysis.measures import title_of
from goodput_cli.analysis.sheet import Audience, Cell, Chart, Column, Family, PublishedAnswer, Sheet, Tone
from goodput_cli.vocabulary.categories import short_title
from goodput_cli.vocabulary.text import exact, plural

_MOST = 20


@dataclass(frozen=True)
class ChangeChart(Chart):
    """Bars from a line in the middle: took more to the left, took less to the right."""

    title: tuple[str, str]
    """The two sides, and the verdict."""
    of_work: bool
    """True if the bars are of the same work, in percent of its time on the baseline; otherwise of points of goodput,
    which are not judged."""
    moved: tuple[tuple[str, float, Moved | None], ...]
    """Category, size and word, the largest change first."""


def change_chart(pair: Pair) -> ChangeChart | None:
    """None where no category that both sides record changed."""
    of_work = pair.same_work is not None
    moved: list[tuple[str, float, Moved | None]] = (
        [(name, percent, word) for name, _, percent, word in work_rows(pair) if percent]
        if of_work
        else [(contribution_name(one), float(one.points), None) for one in pair.contributions if one.points]
    )
    if not moved:
        return None
    what = "Change in time for the same work, in percent of the baseline's time"
    return ChangeChart(
        words=f"{what if of_work else 'Points of goodput by category'}, largest first. "
        "The tables below have the numbers.",
        title=(f"From {side_name(pair.baseline)} to {side_name(pair.side)}", chart_line(pair)),
        of_work=of_work,
        moved=tuple(sorted(moved, key=lambda one: (-abs(one[1]), one[0]))[:_MOST]),
    )


ONE_SIDED = "recorded on one side"
_MUST_SHOW = ("window", "attempts", "disruptions")
_PEOPLE = (
    Column("side", "text", Audience.PEOPLE),
    Column("start", "instant", Audience.PEOPLE, spare=True),
    Column("window", "duration", Audience.PEOPLE),
    Column("goodput", "percent", Audience.PEOPLE),
    Column("", "share", Audience.PEOPLE),
)
_TABLES = (
    Column("side", "text", Audience.TABLES),
    Column("kind", "text", Audience.TABLES),
    Column("name", "text", Audience.TABLES),
    Column("label", "text", Audience.TABLES),
    Column("unit", "text", Audience.TABLES),
    Column("baseline", "number", Audience.TABLES),
    Column("value", "number", Audience.TABLES),
    Column("change", "number", Audience.TABLES),
    Column("points", "number", Audience.TABLES),
    Column("limit", "number", Audience.TABLES),
    Column("verdict", "text", Audience.TABLES),
)


_TONES: dict[str, Tone] = {"better": "good", "worse": "bad", "FAILED": "bad", "passed": "good"}


def compare_sheet(comparison: ComparisonData, *, full: bool = False) -> Sheet:
    """Return the whole comparison. full: with the rows without a verdict, and goodput by category."""
    several = len(comparison.pairs) > 1
    against = f"against {side_name(comparison.baseline)}"
    said = tuple(_headline_lines(comparison))
    covered = 0 if several else len(comparison.doubts) + len(tuple(work_lines(comparison.pairs[0]))) + 1
    return Sheet(
        title=f"Goodput of {len(comparison.pairs)} sides {against}" if several else f"Goodput {against}",
        columns=(*_PEOPLE, *_TABLES),
        rows=tuple((*(None for _ in _PEOPLE), *cells) for cells in _all_rows(comparison)),
        grouped_rows=tuple((*cells, *(None for _ in _TABLES)) for cells in _overview(comparison)),
        summary=said,
        chart=change_chart(comparison.pairs[0]),
        card=replace(card(comparison), covers=said[:covered]),
        folded=True,
        sections=tuple(part for pair in comparison.pairs for part in _tables(pair, full=full)),
        published=lambda: _published(comparison),
    )


def _published(comparison: ComparisonData) -> PublishedAnswer:
    """The gates, those of each side by its name where there are several, and what moved as metrics."""
    several = len(comparison.pairs) > 1
    thresholds = [
        replace(one, expression=f"{one.expression} of {pair.side.name}") if several else one
        for pair in comparison.pairs
        for one in pair.thresholds
    ]
    return PublishedAnswer(
        job=comparison.baseline.summary.job,
        end_ns=max(side.summary.window.end_ns for side in comparison.sides),
        headline=f"against {comparison.baseline.name}",
        said=tuple(_headline_lines(comparison)),
        properties=tuple(_properties(comparison)),
        thresholds=tuple(thresholds),
        diagnostics=comparison.diagnostics,
        families=tuple(_families(comparison)),
    )


def _properties(comparison: ComparisonData) -> Iterator[tuple[str, str]]:
    """Yield the properties of each side, by its position."""
    yield "baseline.name", comparison.baseline.name
    yield "baseline.goodput.percent", exact(float(comparison.baseline.percent))
    for number, pair in enumerate(comparison.pairs, 1):
        yield f"side.{number}.name", pair.side.name
        yield f"side.{number}.goodput.percent", exact(float(pair.side.percent))
        yield f"side.{number}.goodput.points", exact(float(pair.points))
        if pair.work is not None and pair.work.unit is not None:
            yield f"side.{number}.work_time.percent", exact(pair.work.percent)


def _families(comparison: ComparisonData) -> Iterator[Family]:
    """Yield the changes, one sample per side; unknown ones are omitted."""
    points, work, clear = [], [], []
    for pair in comparison.pairs:
        labels = {"side": pair.side.name}
        points.append((labels, exact(float(pair.points) / 100)))
        if pair.work is not None and pair.work.unit is not None:
            work.append((labels, exact(pair.work.percent / 100)))
            clear.append((labels, str(int(pair.work.is_clear))))
    if comparison.drafted is not None:
        yield drafted_rules(comparison.drafted, [comparison.drafted_from])
    yield Family("goodput_compare_goodput_change_ratio", "Goodput of the side minus goodput of the baseline.", points)
    yield Family("goodput_compare_work_time_change_ratio", "How much longer the same work took (0.1 is 10 %).", work)
    yield Family("goodput_compare_work_time_clear", "1 if that is more than noise.", clear)


def _headline_lines(comparison: ComparisonData) -> Iterator[str]:
    """Yield the lines next to the headline."""
    yield from (f"warning: {one}" for one in comparison.doubts)
    yield from (line for pair in comparison.pairs for line in _summary(pair))


def _summary(pair: Pair) -> Iterator[str]:
    name = side_name(pair.side)
    yield from (f"{name}: {line}" for line in work_lines(pair))
    yield f"{name}: {verdict(pair)}"
    yield from moved_lines(pair)
    yield from length_line(pair)


def _overview(comparison: ComparisonData) -> Iterator[tuple[Cell, ...]]:
    for side in comparison.sides:
        window, share = side.summary.window, float(side.percent)
        yield side_name(side), window.start_ns, window.counted_ns, share, share / 100


def _time_table(pair: Pair, same: WorkComparison, *, full: bool) -> Sheet:
    """Return the change in time for the same work by category, in percent of the baseline's time, as in the
    headline."""
    rows = sorted(_time_rows(pair, same), key=lambda row: abs(row.percent), reverse=True)
    judged = rows if full else [row for row in rows if row.moved is not None]
    widest = max((abs(row.percent) for row in judged if row.moved is not None), default=1.0)
    cells: list[tuple[Cell, ...]] = [
        (row.name, less_or_more(row.percent), abs(round(row.ns)), *_bars(row, widest)) for row in judged
    ]
    rest = [row for row in rows if row not in judged]
    notes = ["change: time for the same work, in percent of the baseline's"]
    if rest:
        percent, ns = sum(row.percent for row in rest), sum(row.ns for row in rest)
        cells.append((f"{len(rest)} without a verdict", less_or_more(percent), abs(round(ns)), None, None))
        notes.append(f"{plural(len(rest), 'row')} without a verdict: --full")
    if judged and any(row.moved for row in judged):
        notes.append("worse, better: changes of more than noise")
    cells.append(("total", less_or_more(same.percent), abs(round(same.in_all_ns)), None, None))
    return Sheet(
        title=f"Time for the same work by category, from {side_name(pair.baseline)} to {side_name(pair.side)}",
        columns=(
            Column("category", "text"),
            Column("change", "text"),
            Column("time", "duration"),
            Column("worse", "share", tone=lambda _: "bad"),
            Column("better", "share", tone=lambda _: "good"),
        ),
        rows=cells,
        notes=(*notes, *one_sided_lines(pair)),
    )


@dataclass(frozen=True)
class _TimeRow:
    """A category: the time that the same work saved (+) or took more (-), in percent of the baseline's time and in ns;
    and whether that is more than noise."""

    name: str
    percent: float
    ns: Fraction
    moved: Moved | None


def _time_rows(pair: Pair, same: WorkComparison) -> Iterator[_TimeRow]:
    """Yield the changed categories, including productive time; those that only one side records as one sum."""
    keys = [(one.category, one.label) for one in pair.contributions if one.points is not None]
    for key in (*keys, PRODUCTIVE):
        if same.gained_ns(key):
            yield _TimeRow(short_title(*key), same.gained_percent(key), same.gained_ns(key), same.moved(key))
    one_sided = [(one.category, one.label) for one in pair.contributions if one.points is None]
    if one_sided and (ns := sum((same.gained_ns(key) for key in one_sided), Fraction(0))):
        yield _TimeRow(ONE_SIDED, sum(map(same.gained_percent, one_sided)), ns, None)


def _bars(row: _TimeRow, widest: float) -> tuple[float | None, float | None]:
    """Return the bars of what got worse and what got better; the longest is full."""
    if row.moved is None:
        return None, None
    share = abs(row.percent) / widest
    return (share, None) if row.moved == "worse" else (None, share)


def _goodput_table(pair: Pair) -> Sheet:
    """Return the change of goodput by category, in points that add up."""
    changed = sorted((one for one in pair.contributions if one.points), key=_most_points)
    cells: list[tuple[Cell, ...]] = [_goodput_row(one, float_or_none(one.points)) for one in changed]
    one_sided = [one for one in pair.contributions if one.points is None and (one.baseline_ns or one.ns)]
    if one_sided:
        cells.append((ONE_SIDED, None, None, float(pair.one_sided)))
    cells += [_goodput_row(one, None, "- ") for one in one_sided]
    cells.append(("goodput", float(pair.baseline.percent), float(pair.side.percent), float(pair.points)))
    notes = ["was, is: share of the window", "points: percentage points of goodput gained (+) or lost (-)"]
    if pair.same_work is None:
        notes.append("no better or worse is shown: the runs did different work, or one kept no steps")
    return Sheet(
        title=f"Goodput by category, from {side_name(pair.baseline)} to {side_name(pair.side)}",
        columns=(
            Column("category", "text"),
            Column("was", "percent"),
            Column("is", "percent"),
            Column("points", "points"),
        ),
        rows=cells,
        notes=(*notes, *(one_sided_lines(pair) if pair.same_work is None else ())),
    )


def _most_points(one: Contribution) -> Fraction:
    return -abs(one.points or Fraction(0))


def _goodput_row(one: Contribution, points: float | None, mark: str = "") -> tuple[Cell, ...]:
    shares = float_or_none(one.baseline_percent), float_or_none(one.percent)
    return (mark + contribution_name(one), *shares, points)


def _tables(pair: Pair, *, full: bool) -> Iterator[Sheet]:
    """Yield the tables of a pair; without `full`, rows without a verdict are one line."""
    if pair.same_work is not None:
        yield _time_table(pair, pair.same_work, full=full)
    if pair.same_work is None or full:
        yield _goodput_table(pair)
    yield _facts(pair, full=full)
    if pair.thresholds:
        yield _thresholds(pair)


def _facts(pair: Pair, *, full: bool) -> Sheet:
    """Return the other changes."""
    known = [one for one in pair.changes if _is_shown(one)]
    rows = [(title_of(one.measure), *fact_words(pair, one), fact_is_better(pair, one)) for one in known]
    shown = rows if full else [row for row in rows if row[-1]]
    notes = [f"{plural(len(rows) - len(shown), 'row')} without a verdict: --full"] if len(shown) < len(rows) else []
    if full:
        unknown = [one for one in pair.changes if one.baseline is None and one.value is None]
        names = [title_of(one.measure) for one in unknown if one not in known]
        notes += [f"not recorded on either side: {', '.join(names)}"] if names else []
    return Sheet(
        title=f"What else changed from {side_name(pair.baseline)} to {side_name(pair.side)}",
        columns=(
            Column("measure", "text"),
            Column("was", "text"),
            Column("is", "text"),
            Column("change", "text"),
            Column("verdict", "text", tone=lambda cell: _TONES.get(str(cell))),
        ),
        rows=tuple(shown),
        notes=tuple(notes),
    )


def _is_shown(one: Change) -> bool:
    """Return True for facts worth showing: neither 0 on both sides nor unknown on both."""
    if one.measure.name in _MUST_SHOW:
        return True
    if one.measure.name == "runs":
        return one.baseline != 1 or one.value != 1
    return bool(one.baseline or one.value) or (one.baseline is None) != (one.value is None)


def _thresholds(pair: Pair) -> Sheet:
    return Sheet(
        title=f"Thresholds for {side_name(pair.side)}",
        columns=(
            Column("threshold", "text"),
            Column("result", "text", tone=lambda cell: _TONES.get(str(cell))),
            Column("change", "text"),
            Column("limit", "text"),
        ),
        rows=tuple(
            (one.expression, threshold_verdict(one), threshold_value(one), limit_text(one)) for one in pair.thresholds
        ),
    )


def _all_rows(comparison: ComparisonData) -> Iterator[tuple[Cell, ...]]:
    """The figures of all pairs, and that rules were drafted."""
    for pair in comparison.pairs:
        yield from _data_rows(pair)
    if comparison.drafted is not None:
        yield None, DRAFTED, comparison.doubts[0], *(None for _ in _TABLES[3:])


def _data_rows(pair: Pair) -> Iterator[tuple[Cell, ...]]:
    """Every figure as a row of CSV; what is not recorded is empty."""
    name = pair.side.name
    ends = float(pair.baseline.percent), float(pair.side.percent)
    yield name, "goodput", "goodput", None, "%", *ends, float(pair.points), float(pair.points), None, None
    for one in pair.contributions:
        difference = None if one.baseline_ns is None or one.ns is None else one.ns - one.baseline_ns
        was, now, moved = map(_seconds, (one.baseline_ns, one.ns, difference))
        points = float_or_none(one.points)
        yield name, "category", one.category, one.label, "s", was, now, moved, points, None, one.moved
    yield name, "category", "one_sided", None, "s", None, None, None, float(pair.one_sided), None, None
    for fact in pair.changes:
        values = float_or_none(fact.baseline), float_or_none(fact.value), float_or_none(fact.change)
        yield name, "fact", fact.measure.name, None, fact.unit, *values, None, None, None
    for threshold in pair.thresholds:
        limits = threshold.value, None, threshold.limit, threshold.verdict
        yield name, "threshold", threshold.expression, None, threshold.unit, None, None, *limits


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9

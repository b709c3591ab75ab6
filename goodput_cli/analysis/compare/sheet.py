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
    contribution_name,
    fact_is_better,
    fact_words,
    float_or_none,
    goodput_line,
    length_line,
    limit_text,
    moved_lines,
    one_sided_lines,
    side_name,
    threshold_value,
    verdict,
    work_lines,
    work_rows,
)
from goodput_cli.analysis.compare.results import Change, ComparisonData, Pair
from goodput_cli.analysis.compare.same_work import PRODUCTIVE, Moved
from goodput_cli.analysis.goodput.phrases import DRAFTED, drafted_rules, threshold_verdict
from goodput_cli.analysis.sheet import Audience, Cell, Chart, Column, Family, PublishedAnswer, Sheet, Tone
from goodput_cli.vocabulary.categories import brief_name, full_name
from goodput_cli.vocabulary.text import duration, exact

_MOST = 20


@dataclass(frozen=True)
class ChangeChart(Chart):
    """Bars from a line in the middle: took more to the left, took less to the right."""

    title: tuple[str, str]
    """The two sides, and what became of goodput."""
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
    what = "Change for the same amount of work, in percent of the baseline's time"
    return ChangeChart(
        words=f"{what if of_work else 'Points of goodput by category'}, largest first. "
        "The tables below have the numbers.",
        title=(f"From {side_name(pair.baseline)} to {side_name(pair.side)}", goodput_line(pair)),
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
    Column("points", "points", Audience.PEOPLE),
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


def compare_sheet(comparison: ComparisonData) -> Sheet:
    """The whole comparison."""
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
        sections=tuple(
            part
            for pair in comparison.pairs
            for part in (_waterfall(pair), _facts(pair), *([_thresholds(pair)] if pair.thresholds else []))
        ),
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
        moved = None if side is comparison.baseline else float(side.percent - comparison.baseline.percent)
        yield side_name(side), window.start_ns, window.counted_ns, share, share / 100, moved


def _waterfall(pair: Pair) -> Sheet:
    """Return the time of the same work by category, and the steps from the baseline's goodput to this side's."""
    rows = _folded([*_waterfall_rows(pair)])
    widest = max((abs(row.ns) for row in rows if row.ns is not None and row.moved), default=Fraction(0))
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        time = None if row.ns is None else round(row.ns)
        bars = _bars(row, widest)
        cells.append((row.name, float_or_none(row.points), time, *bars, *map(float_or_none, row.shares)))
    ends = (float(pair.baseline.percent), float(pair.side.percent))
    cells.append(("goodput", float(pair.points), None, None, None, *ends))
    return Sheet(
        title=f"From {side_name(pair.baseline)} to {side_name(pair.side)}",
        columns=(
            Column("category", "text", brief=brief_name),
            Column("points", "points"),
            Column("time", "change"),
            Column("worse", "share", tone=lambda _: "bad"),
            Column("better", "share", tone=lambda _: "good"),
            Column("was", "percent"),
            Column("is", "percent"),
        ),
        rows=cells,
        notes=tuple(_waterfall_notes(pair)),
    )


@dataclass(frozen=True)
class _CategoryChange:
    """A category: its effect on goodput, the time that the same work saved in it (ns), whether that is more than noise,
    and its shares."""

    name: str
    points: Fraction | None
    ns: Fraction | None
    moved: Moved | None
    shares: tuple[Fraction | None, Fraction | None]


def _waterfall_rows(pair: Pair) -> Iterator[_CategoryChange]:
    """Yield the changed categories, by time of the same work or otherwise by points; the sum of the categories that
    only one side records, and then each of them."""
    yield from sorted(_changed(pair), key=_size, reverse=True)
    one_sided = [one for one in pair.contributions if one.points is None and (one.baseline_ns or one.ns)]
    if one_sided:
        yield _CategoryChange(ONE_SIDED, pair.one_sided, None, None, (None, None))
    for one in one_sided:
        yield _CategoryChange(
            f"- {full_name(one.category, one.label)}", None, None, None, (one.baseline_percent, one.percent)
        )


def _folded(rows: list[_CategoryChange]) -> list[_CategoryChange]:
    """Return the rows with those without a verdict as one sum, if other rows have a verdict; JSON has each."""
    rest = [row for row in rows if row.moved is None and row.name != ONE_SIDED and not row.name.startswith("- ")]
    if len(rest) < 2 or not any(row.moved for row in rows):
        return rows
    verdicts = [row for row in rows if row.moved is not None]
    shares = [sum((row.shares[at] or Fraction(0) for row in rest), Fraction(0)) for at in (0, 1)]
    total = _CategoryChange(
        f"{len(rest)} others",
        sum((row.points or Fraction(0) for row in rest), Fraction(0)),
        sum((row.ns or Fraction(0) for row in rest), Fraction(0)),
        None,
        (shares[0], shares[1]),
    )
    return [*verdicts, total, *(row for row in rows if row.moved is None and row not in rest)]


def _size(row: _CategoryChange) -> Fraction:
    return abs(row.points or Fraction(0)) if row.ns is None else abs(row.ns)


def _changed(pair: Pair) -> Iterator[_CategoryChange]:
    for one in pair.contributions:
        if one.points or (one.points is not None and one.work_seconds):
            ns = None if one.work_seconds is None else one.work_seconds * 10**9
            name = full_name(one.category, one.label)
            yield _CategoryChange(name, one.points, ns, one.moved, (one.baseline_percent, one.percent))
    same = pair.same_work
    if same is not None and same.gained_ns(PRODUCTIVE):
        moved = same.moved(PRODUCTIVE)
        yield _CategoryChange(full_name(*PRODUCTIVE), None, same.gained_ns(PRODUCTIVE), moved, (None, None))


def _bars(row: _CategoryChange, widest: Fraction) -> tuple[float | None, float | None]:
    """The bars of what got worse and what got better, the longest of them full."""
    if row.moved is None or row.ns is None:
        return None, None
    share = float(abs(row.ns) / widest)
    return (share, None) if row.moved == "worse" else (None, share)


def _waterfall_notes(pair: Pair) -> Iterator[str]:
    if not any(one.points for one in pair.contributions):
        yield "no category that both sides record changed its share"
    yield "points: change of the category's share of the window, in percentage points of goodput"
    same = pair.same_work
    if same is None:
        yield "no better or worse is shown: the runs did different work, or one kept no steps"
    else:
        took = same.in_all_ns
        total = f"{duration(abs(round(took)))} {'longer' if took > 0 else 'less'}" if round(took) else "the same"
        yield f"time: change for the same amount of work (+ = faster, in total {total})"
        if any(row.moved for row in _changed(pair)):
            yield "better, worse: changes of more than noise"
    yield from one_sided_lines(pair)


def _facts(pair: Pair) -> Sheet:
    """Return the other changes."""
    shown = [one for one in pair.changes if _is_shown(one)]
    unknown = [one.measure.name for one in pair.changes if one.baseline is None and one.value is None]
    unknown = [name for name in unknown if name not in {one.measure.name for one in shown}]
    return Sheet(
        title=f"What changed from {side_name(pair.baseline)} to {side_name(pair.side)}",
        columns=(
            Column("measure", "text"),
            Column("was", "text"),
            Column("is", "text"),
            Column("change", "text"),
            Column("", "text", tone=lambda cell: _TONES.get(str(cell))),
        ),
        rows=tuple((one.measure.name, *fact_words(pair, one), fact_is_better(pair, one)) for one in shown),
        notes=(f"not recorded on either side: {', '.join(unknown)}",) if unknown else (),
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

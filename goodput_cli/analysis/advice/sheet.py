"""Advice as a `Sheet`, as an answer, as a chart, and as gates and figures.

Advice in words, for every text format and for standard error.

The strings contain log output unchanged: renderers escape it, and the terminal renderer removes control characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from goodput_cli.analysis.advice.results import (
    ENOUGH_FAILURES,
    LEVER_TABLE,
    SHOWN,
    AdviceData,
    CurvePoint,
    How,
    Improvement,
    IntervalAdvice,
    RecordFacts,
    advice_answer,
    failed_attempts_text,
)
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.phrases import goodput_text, open_question, window_text
from goodput_cli.analysis.sheet import Audience, Card, Cell, Chart, Column, Family, PublishedAnswer, Sheet
from goodput_cli.analysis.table import attribute, each
from goodput_cli.vocabulary.text import (
    duration_of_seconds,
    exact,
    finite,
    percent,
    plural,
    points,
    safe,
)

_LEAST_POINTS = 0.005
_CERTAIN = 0.995
"""A probability above this would be shown as 100 %, which no draw can support."""


def _gained(value: float) -> str:
    return f"{points(value)} points"


def facts(analysis: Analysis, advice: AdviceData) -> Iterator[str]:
    """Yield the facts that the advice is based on."""
    record, saves = advice.record, advice.saves
    share = percent(advice.recorded.goodput_percent)
    yield f"{window_text(analysis)}, goodput {goodput_text(analysis) if analysis.is_bounded else share}"
    if analysis.is_bounded:
        yield f"percentages below use the reference step time ({share} today); {open_question(analysis)}"
    yield _failures(record)
    today = "" if saves.every_steps is None else f"today: a checkpoint every {plural(saves.every_steps, 'step')}"
    if saves.every_seconds is not None:
        today += f" ({duration_of_seconds(saves.every_seconds)} of training on average)"
    if saves.cost_seconds is not None:
        given = " (as given)" if saves.cost_origin == "given" else ""
        cost = duration_of_seconds(saves.cost_seconds)
        yield f"{today or 'today: interval unknown'}; saving blocks training for {cost}{given}"
    elif today:
        yield f"{today}; how long saving blocks training is not logged"
    if analysis.job.ending == "not_logged":
        yield "the end is not logged: the job may still be running, so its last attempt does not count as failed"


def _failures(record: RecordFacts) -> str:
    """Return all failures, as every command counts them, and those that ended training, the basis of the advice."""
    trained = duration_of_seconds(record.life_seconds)
    if not record.failures or record.mtbf_seconds is None:
        return f"no failure ({trained} of training)"
    all_ = f"{plural(record.failures, 'failure')}, MTBF {duration_of_seconds(record.mtbf_seconds)}"
    between = record.training_between_failures_seconds
    if not record.failed_lives or between is None:
        return f"{all_}; no failed attempt had finished a step ({trained} of training)"
    failed = record.failed_lives
    which = "" if failed == record.failures else f"{failed_attempts_text(failed, failed)}, "
    return f"{all_}; {which}mean training between failures {duration_of_seconds(between)} ({trained} in total)"


def verdict_lines(advice: AdviceData) -> Iterator[str]:
    """Yield the advised interval and its uncertainty; the verdict first."""
    interval = advice.interval
    yield _headline(advice)
    if _has_too_few_failures(advice):
        yield "--format json has the estimates for all intervals and improvements"
        return
    if interval.say is not None:
        yield interval.say
    if interval.luck_points is not None and interval.today_percent is not None and advice.saves.every_steps:
        yield (
            f"expected goodput is the average of many runs: {percent(interval.today_percent)} when saving every "
            f"{_every(advice.saves.every_steps)}. This run reached {percent(advice.recorded.goodput_percent)}; the "
            "difference is failure timing"
        )
    for one in interval.if_cost:
        good = f"equally good: {_range(*one.plateau_steps)}"
        yield f"if saving blocks for {duration_of_seconds(one.cost_seconds)}: every {_every(one.every_steps)} ({good})"
    yield from _sureness(interval, advice.record.failed_lives)
    yield from _formulas(interval)
    yield from _one_run(advice)
    yield from _replayed(interval)
    if advice.deaths:
        known = {name: value for name, value in asdict(advice.deaths).items() if value is not None}
        values = ", ".join(map(percent, known.values()))
        yield f"time of failure not logged: expected goodput {values} if it was {', '.join(known)}"


def _has_too_few_failures(advice: AdviceData) -> bool:
    """Return True if the failures are too few for estimates that people should read."""
    return advice.interval.reason == "few_failures"


def card(advice: AdviceData) -> Card:
    """The advice at a glance."""
    interval = advice.interval
    figure = {"refused": "no recommendation", "keep": "keep", "unclear": "inconclusive"}.get(interval.verdict)
    headline = _headline(advice)
    return Card(
        figure=figure or f"every {_every(interval.every_steps)}",
        words=(
            "Inconclusive" if _has_too_few_failures(advice) else headline[:1] + headline[1:].lower(),
            *([interval.say] if interval.say else []),
        ),
        facts=tuple(_card_facts(advice)),
        covers=(headline, *([interval.say] if interval.say else [])),
        tone="good" if interval.verdict in ("change", "keep") else None,
    )


def _card_facts(advice: AdviceData) -> Iterator[tuple[str, str]]:
    interval = advice.interval
    yield "goodput", percent(advice.recorded.goodput_percent)
    if advice.saves.every_steps is not None:
        yield "checkpoint today", f"every {_every(advice.saves.every_steps)}"
    if advice.saves.cost_seconds is not None:
        yield "saving blocks for", duration_of_seconds(advice.saves.cost_seconds)
    yield "failures", str(advice.record.failures)
    yield "failed attempts", str(advice.record.failed_lives)
    if interval.gain_ci95_points is not None and interval.verdict != "keep":
        yield "gain, 95 %", f"{interval.gain_ci95_points[0]:.2f} to {interval.gain_ci95_points[1]:.2f} points"
    if advice.levers:
        yield "largest improvement", f"{advice.levers[0].label}, {_gained(advice.levers[0].points)}"


def _headline(advice: AdviceData) -> str:
    interval, today = advice.interval, advice.saves.every_steps
    gain = ""
    if interval.gain_points is not None and interval.today_percent is not None and interval.goodput_percent is not None:
        gain = f"expected goodput {percent(interval.goodput_percent)}, {_gained(interval.gain_points)} against today"
    match interval.verdict:
        case "refused":
            return SHOWN["refused"]
        case "keep":
            return f"{SHOWN['keep']} {_every(today).upper()}"
        case "change":
            every = _every(interval.every_steps).upper()
            return (
                f"{SHOWN['change']} {every} ({duration_of_seconds(interval.every_seconds or 0)}){gain and f': {gain}'}"
            )
    if _has_too_few_failures(advice):
        return f"{SHOWN['unclear']}: {interval.say}"
    best = ""
    if _may_gain(interval):
        best = f": best estimate every {_every(interval.every_steps)}{gain and f', {gain}'}"
    return f"{SHOWN['unclear']}{best}"


def _may_gain(interval: IntervalAdvice) -> bool:
    """Return True if another interval gains more than 0.00 points."""
    return interval.every_steps is not None and (interval.gain_points or 0) >= _LEAST_POINTS


def _steps(low: int, high: int) -> str:
    return plural(low, "step") if low == high else f"{_range(low, high)} steps"


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _every(steps: int | None) -> str:
    return "step" if steps == 1 else f"{steps} steps"


def _sureness(interval: IntervalAdvice, of: int) -> Iterator[str]:
    """Yield the uncertainty. of: number of failed attempts."""
    parts = []
    if interval.plateau_steps is not None:
        parts.append(f"equally good: {_steps(*interval.plateau_steps)}")
    if interval.ci95_steps is not None:
        low, high = interval.ci95_steps
        parts.append("95 % range: " + (f"from {plural(low, 'step')}" if high is None else _steps(low, high)))
    if interval.gain_ci95_points is not None and interval.verdict != "keep":
        parts.append(f"gain {interval.gain_ci95_points[0]:+.2f} to {interval.gain_ci95_points[1]:+.2f} points")
    if parts:
        yield "; ".join(parts)
    if interval.probability is not None and interval.verdict != "keep":
        better = f"{100 * interval.probability:.0f} %" if interval.probability < _CERTAIN else "over 99 %"
        perhaps = interval.verdict != "unclear" or _may_gain(interval)
        which = "" if perhaps else f"every {_every(interval.every_steps)}: "
        seen = failed_attempts_text(interval.counted_lives, of)
        yield f"{which}probability of being better than today: {better} (from {seen})"


def _formulas(interval: IntervalAdvice) -> Iterator[str]:
    named = {"Young": interval.formulas.young_seconds, "Daly": interval.formulas.daly_seconds}
    shown = [f"{name} {duration_of_seconds(seconds)}" for name, seconds in named.items() if seconds is not None]
    if shown:
        yield f"for comparison, by formula: {', '.join(shown)}"


def _one_run(advice: AdviceData) -> Iterator[str]:
    """Yield the range of a single run, which is wider than that of an average."""
    interval, today = advice.interval, advice.saves.every_steps
    if interval.today_one_run_percent is None or today is None:
        return
    ranges = [f"{_percents(interval.today_one_run_percent)} saving every {_every(today)}"]
    if interval.one_run_percent is not None and interval.verdict != "keep" and interval.every_steps != today:
        ranges.append(f"{_percents(interval.one_run_percent)} saving every {_every(interval.every_steps)}")
    yield f"a single run (95 % range): {', '.join(ranges)}"


def _percents(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.0f} to {ends[1]:.0f} %"


def _replayed(interval: IntervalAdvice) -> Iterator[str]:
    done = interval.replayed
    if done is None or interval.every_steps is None or interval.verdict == "keep":
        return
    if done.saved_seconds is None:
        yield f"replayed with the same failures, saving every {_every(interval.every_steps)}: the job never ends"
        return
    longer = "longer" if done.saved_seconds < 0 else "shorter"
    yield (
        f"replayed with the same failures, saving every {_every(interval.every_steps)}: "
        f"{percent(done.goodput_percent)}, "
        f"{duration_of_seconds(abs(done.saved_seconds))} {longer}"
    )


@dataclass(frozen=True)
class IntervalChart(Chart):
    """Chart of goodput (percent) against intervals (steps); None for a missing point."""

    title: tuple[str, str]
    """The job, and the advice in a line."""
    points: tuple[CurvePoint, ...]
    """Points of the curve."""
    pace_seconds: float
    """s of training a step."""
    advised: tuple[float, float] | None
    """Interval and goodput."""
    today: tuple[float, float] | None
    """Today's interval, on average."""
    recorded: tuple[float, float] | None
    """Today's interval, as recorded."""
    plateau: tuple[int, int] | None
    """Intervals that are as good."""
    formulas: tuple[tuple[str, float], ...]
    """Young's and Daly's intervals, by name."""


def interval_chart(advice: AdviceData, title: tuple[str, str]) -> IntervalChart | None:
    """Return the chart; None without a curve."""
    points = worth_showing(advice.curve)
    if not points:
        return None
    interval, saves, pace = advice.interval, advice.saves, advice.record.pace_seconds
    young_and_daly = (("Young", interval.formulas.young_seconds), ("Daly", interval.formulas.daly_seconds))
    return IntervalChart(
        words=_words(advice, points),
        title=title,
        points=points,
        pace_seconds=pace,
        advised=_point(interval.every_steps, interval.goodput_percent),
        today=_point(saves.every_steps, interval.today_percent),
        recorded=_point(saves.every_steps, advice.recorded.goodput_percent),
        plateau=interval.plateau_steps,
        formulas=tuple((name, seconds / pace) for name, seconds in young_and_daly if seconds is not None and pace > 0),
    )


def worth_showing(curve: tuple[CurvePoint, ...]) -> tuple[CurvePoint, ...]:
    """Intervals with at least half the best goodput."""
    best = max((point.goodput_percent for point in curve), default=0.0)
    return tuple(point for point in curve if point.goodput_percent >= best / 2 and best > 0)


def _point(every: int | None, goodput: float | None) -> tuple[float, float] | None:
    return None if every is None or goodput is None else (float(every), goodput)


def _words(advice: AdviceData, points: tuple[CurvePoint, ...]) -> str:
    """The picture in a sentence or two."""
    best = max(points, key=lambda point: point.goodput_percent)
    said = [
        f"Expected goodput by checkpoint interval, {points[0].every_steps} to {points[-1].every_steps} steps: "
        f"highest at {best.every_steps} steps, with {percent(best.goodput_percent)}."
    ]
    if advice.interval.every_steps is not None and advice.interval.goodput_percent is not None:
        said.append(
            f"Recommended: {advice.interval.every_steps} steps, with {percent(advice.interval.goodput_percent)}."
        )
    if advice.interval.today_percent is not None and advice.saves.every_steps is not None:
        said.append(f"Today, at {advice.saves.every_steps} steps: {percent(advice.interval.today_percent)}.")
    said.append("The table below has the numbers.")
    return " ".join(said)


def published(analysis: Analysis, advice: AdviceData) -> PublishedAnswer:
    """Return the published figures. Unknown values have no sample and no property."""
    families = tuple(_families(advice))
    verdict, *more = verdict_lines(advice)
    return PublishedAnswer(
        job=analysis.job.name,
        end_ns=analysis.window.end_ns,
        headline=verdict,
        said=tuple(more),
        properties=(("advice.verdict", advice.interval.verdict), *_properties(families)),
        thresholds=advice.thresholds,
        diagnostics=(*analysis.diagnostics, *advice.diagnostics),
        families=families,
    )


def _families(advice: AdviceData) -> Iterator[Family]:
    interval = advice.interval
    gains = _bounds(interval.gain_points, interval.gain_ci95_points)
    yield _family(
        "goodput_advice_gain_points", "Points of goodput that the recommended interval gains.", "bound", gains
    )
    yield _family(
        "goodput_advice_interval_seconds",
        "Recommended training time between two checkpoints.",
        "bound",
        _intervals(interval),
    )
    levers = [*advice.levers, *([advice.bound] if advice.bound else [])]
    yield _family(
        "goodput_advice_lever_seconds", "Time that each improvement would have saved; improvements overlap.", "lever",
        {lever.name: lever.seconds for lever in levers},
    )  # fmt: skip
    yield _family(
        "goodput_advice_lever_points", "Points of goodput that each improvement would have gained; they overlap.",
        "lever",
        {lever.name: lever.points for lever in levers},
    )  # fmt: skip


def _bounds(best: float | None, interval: tuple[float | None, float | None] | None) -> dict[str, float | None]:
    """A figure on average, and the ends of its 95 % interval."""
    low, high = interval or (None, None)
    return {"best": best, "low": low, "high": high}


def _intervals(interval: IntervalAdvice) -> dict[str, float | None]:
    """Return intervals in seconds of training."""
    if interval.every_steps is None or interval.every_seconds is None:
        return {}
    pace = interval.every_seconds / interval.every_steps
    ends = interval.ci95_steps or (None, None)
    low, high = (None if steps is None else steps * pace for steps in ends)
    return _bounds(interval.every_seconds, (low, high))


def _family(name: str, meaning: str, label: str, values: dict[str, float | None] | dict[str, float]) -> Family:
    known = {key: finite(value) for key, value in values.items()}
    return Family(
        name, meaning, [({label: safe(key)}, exact(value)) for key, value in known.items() if value is not None]
    )


def _properties(families: tuple[Family, ...]) -> Iterator[tuple[str, str]]:
    """A property a sample: `advice.lever_seconds.restart`."""
    for family in families:
        name = family.name.replace("goodput_advice_", "advice.", 1)
        yield from ((".".join([name, *labels.values()]), value) for labels, value in family.samples)


_MOST_LEVERS = 10
_MOST_POINTS = 12


def improvements_sheet(advice: AdviceData) -> Sheet:
    """The advice alone."""
    people = tuple(_people(advice))
    bound = [advice.bound] if advice.bound else []
    columns = (*people, *LEVER_TABLE.table_columns())
    few = _has_too_few_failures(advice)
    return Sheet(
        title=f"Advice for {advice.job}",
        columns=columns,
        rows=_cells(columns, [*advice.levers, *bound]),
        grouped_rows=() if few else _cells(columns, [*advice.levers[:_MOST_LEVERS], *bound]),
        summary=tuple(verdict_lines(advice)),
        notes=() if few else tuple(_notes(advice)),
        sections=() if few else tuple(_curve(advice)),
    )


def advice_sheet(analysis: Analysis, advice: AdviceData) -> Sheet:
    """The whole advice, with the job that it is about."""
    alone = improvements_sheet(advice)
    return replace(
        alone,
        summary=(*facts(analysis, advice), *alone.summary),
        answer=lambda: advice_answer(analysis, advice),
        card=card(advice),
        chart=interval_chart(advice, (analysis.job.name, next(verdict_lines(advice)))),
        published=lambda: published(analysis, advice),
    )


def _cells(columns: Sequence[Column], rows: Sequence[Any]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(zip(*(column.values(rows) for column in columns if column.values is not None), strict=True))


def _people(advice: AdviceData) -> Iterator[Column]:
    people = Audience.PEOPLE
    yield Column("action", "text", people, each(lambda lever: _in_words(lever)[0]))
    yield Column("effect", "text", people, each(lambda lever: _in_words(lever)[1]), spare=True)
    yield Column("time gained", "duration", people, each(lambda lever: round(lever.seconds * 1e9)))
    yield Column("points", "points", people, attribute("points"))
    if not any(lever.cost is not None for lever in advice.levers):  # all do not fit in 80 columns
        yield Column("goodput", "percent", people, attribute("goodput_percent"))
    if any(lever.accelerator_hours is not None for lever in advice.levers):
        yield Column("accelerator h", "number", people, each(lambda lever: round(lever.accelerator_hours or 0, 2)))
    if any(lever.cost is not None for lever in advice.levers):
        yield Column("cost", "number", people, each(lambda lever: round(lever.cost or 0, 2)))
    yield Column("how", "text", people, attribute("how"))


_IN_WORDS = {
    "async_saves": ("save in background", "less blocking"),
    "newest_checkpoint": ("use newest checkpoint", "fewer lost steps"),
    "failures": ("prevent failures", "half as many"),
    "restart": ("speed up restarts", "half the time"),
    "restore": ("speed up restores", "half the time"),
    "downtime": ("recover sooner", "half the downtime"),
    "starts_that_hold": ("fix failing starts", "none fails"),
    "data_loading": ("speed up data loading", "no waiting"),
    "stalls": ("remove stalls", "no stalls"),
    "slow_steps": ("speed up slow steps", "the usual time"),
    "longest_outage": ("shorten worst outage", "to the median"),
    "checkpoint_bound": ("perfect checkpointing", "nothing lost"),
}
"""Action and effect of an improvement for people, by name."""
_HOW: dict[How, str] = {
    "exact": "from the times of this run", "replay": "this run again", "average": "expected over many runs",
    "bound": "upper limit",
}  # fmt: skip


def _in_words(lever: Improvement) -> tuple[str, str]:
    """Return the action and its effect, for a table that fits in 80 columns."""
    if lever.name == "interval":
        return lever.label, "best average"
    if lever.name == "spares":
        return "keep a spare node", lever.label.removeprefix("spare node ")
    half_as_many = "half as many "
    if lever.label.startswith(half_as_many) and lever.name != "failures":
        return f"reduce {lever.label.removeprefix(half_as_many)}", half_as_many.rstrip()
    return _IN_WORDS[lever.name]


def _notes(advice: AdviceData) -> Iterator[str]:
    assumed = ("async_saves", "newest_checkpoint")
    yield from (f"{lever.label}: {lever.assumption}" for lever in advice.levers if lever.name in assumed)
    today, recorded = advice.interval.today_percent, advice.recorded.goodput_percent
    averages = [lever.points for lever in advice.levers if lever.how == "average"]
    against = (
        f". Rows with 'average' compare with {today:.2f} % (expected goodput today), not {recorded:.2f} %"
        if today is not None and averages
        else ""
    )
    if advice.levers:
        yield f"improvements overlap: their gains do not add up{against}"
    how = {lever.how: _HOW[lever.how] for lever in (*advice.levers, *([advice.bound] if advice.bound else []))}
    if how:
        yield f"how: {', '.join(f'{name} = {words}' for name, words in how.items())}"
    if advice.bound is not None and max(averages, default=0) > advice.bound.points:
        yield "'perfect checkpointing' covers what this run lost; on average, such failures cost more"


def _chosen_by(point: CurvePoint) -> float:
    """Return the score that chooses an interval: below the average, unless the average chooses."""
    return point.goodput_percent if point.chosen_by_percent is None else point.chosen_by_percent


def _curve(advice: AdviceData) -> Iterator[Sheet]:
    """Intervals worth showing, evenly spread over the ratio."""
    good = worth_showing(advice.curve)
    points = good[:: -(-len(good) // _MOST_POINTS) or 1]
    if not points:
        return
    percents = [_chosen_by(point) for point in points]
    low, high = min(percents), max(percents)
    base = max(low - (high - low) / 10, 0.0)
    chosen = Column("chosen by", "percent", values=attribute("chosen_by_percent"))
    has_choice = points[0].chosen_by_percent is not None
    columns = (
        Column("every steps", "count", values=attribute("every_steps")),
        Column("every", "duration", values=each(lambda point: round(point.every_seconds * 1e9))),
        *([chosen] if has_choice else []),
        Column("average", "percent", values=attribute("goodput_percent")),
        Column("95 % from", "percent", values=each(lambda point: point.ci95_percent[0])),
        Column("95 % to", "percent", values=each(lambda point: point.ci95_percent[1])),
        Column("replayed", "percent", values=attribute("replayed_percent")),
        Column("", "share", values=each(lambda point: (_chosen_by(point) - base) / ((high - base) or 1))),
    )
    yield Sheet(
        title="Goodput by checkpoint interval",
        columns=columns,
        rows=_cells(columns, points),
        notes=(
            f"Bars start at {base:.1f} %. 'Replayed' repeats exactly the failures of this run.",
            *(
                [
                    "'Chosen by' is the average with half a failure added, because a short run may have had too few "
                    "by luck. The recommended interval has the highest value; bars and 'equally good' "
                    "also use it."
                ]
                if has_choice
                else []
            ),
            "A gain is more certain than the goodput values before and after, because both have the same failures.",
            "95 % ranges are for the average of many runs; a single run varies more.",
            *(
                ["'Average' assumes no lost steps, because no failure lost any."]
                if advice.interval.reason == "no_failure"
                else []
            ),
            *(
                [f"With fewer than {ENOUGH_FAILURES} failed attempts, these ranges are less reliable."]
                if advice.interval.counted_lives < ENOUGH_FAILURES
                else []
            ),
        ),
    )

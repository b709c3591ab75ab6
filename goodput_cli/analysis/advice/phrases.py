"""Advice in words, for every format that people read and for standard error.

The strings hold text of logs as it is: a renderer escapes them, and what goes to a terminal is made safe.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from goodput_cli.analysis.advice.results import IntervalAdvice, Scenario
from goodput_cli.analysis.sheet import Card
from goodput_cli.vocabulary.text import duration, duration_of_seconds, percent, period, plural, points

if TYPE_CHECKING:
    from goodput_cli.analysis.advice.advise import Advice, JobAdvice


def _gained(value: float) -> str:
    return f"{points(value)} points"


def facts(advised: JobAdvice) -> Iterator[str]:
    """What the advice rests on."""
    analysis, advice = advised.analysis, advised.advice
    window, record, saves = analysis.window, advice.record, advice.saves
    yield (
        f"{period(window.start_ns, window.end_ns)} ({duration(window.ns)}), goodput "
        f"{percent(advice.recorded.goodput_percent)}"
    )
    every = "" if record.mtbf_seconds is None else f": one in {duration_of_seconds(record.mtbf_seconds)}"
    ended = f"{record.failures} of {plural(record.disruptions, 'disruption')} ended training, in"
    ended = ended if record.disruptions else "no disruption ended training, in"
    yield f"{ended} {duration_of_seconds(record.life_seconds)} of it{every}"
    today = "" if saves.every_steps is None else f"today one every {plural(saves.every_steps, 'step')}"
    if saves.every_seconds is not None:
        today += f" ({duration_of_seconds(saves.every_seconds)})"
    if saves.cost_seconds is not None:
        given = " (as given)" if saves.cost_origin == "given" else ""
        yield f"a save blocks for {duration_of_seconds(saves.cost_seconds)}{given}; {today}"
    elif today:
        yield f"what a save blocks is not recorded; {today}"
    if analysis.job.ending == "not_logged":
        yield "the end was not logged: the job may still be running, and its last attempt counts as alive"


def verdict_lines(advice: Advice) -> Iterator[str]:
    """How often to save, and how sure that is; the verdict first."""
    interval = advice.interval
    yield _headline(advice)
    if interval.say is not None:
        yield interval.say
    for one in interval.if_cost:
        good = f"as good: {_range(*one.plateau_steps)}"
        yield f"if a save blocks for {duration_of_seconds(one.cost_seconds)}: every {_every(one.every_steps)} ({good})"
    yield from _sureness(interval)
    yield from _formulas(interval)
    if interval.luck_points is not None and interval.today_percent is not None and advice.saves.every_steps:
        yield (
            f"luck: saves every {advice.saves.every_steps} steps give {percent(interval.today_percent)} on average; "
            f"this one run had {percent(advice.recorded.goodput_percent)}"
        )
    yield from _replayed(interval)
    if advice.deaths:
        known = {name: value for name, value in asdict(advice.deaths).items() if value is not None}
        values = ", ".join(map(percent, known.values()))
        yield f"moment of death not logged: on average {values} for {', '.join(known)}"


def card(advised: JobAdvice) -> Card:
    """The advice at a glance."""
    advice, interval = advised.advice, advised.advice.interval
    figure = {"refused": "no advice", "keep": "keep", "unclear": "unclear"}.get(interval.verdict)
    sure = interval.verdict in ("change", "keep")
    return Card(
        figure=figure or f"every {_every(interval.every_steps)}",
        words=(_sentence(_headline(advice)), *([interval.say] if interval.say else [])),
        facts=tuple(_card_facts(advised)),
        tone="good" if sure else None,
    )


def _sentence(headline: str) -> str:
    return f"{headline[:1]}{headline[1:].lower()}"


def _card_facts(advised: JobAdvice) -> Iterator[tuple[str, str]]:
    advice, interval = advised.advice, advised.advice.interval
    yield "goodput", percent(advice.recorded.goodput_percent)
    if advice.saves.every_steps is not None:
        yield "a save today", f"every {_every(advice.saves.every_steps)}"
    if advice.saves.cost_seconds is not None:
        yield "a save blocks", duration_of_seconds(advice.saves.cost_seconds)
    yield "failures", str(advice.record.failures)
    if interval.gain_ci95_points is not None and interval.verdict != "keep":
        yield "gain, 95 %", f"{interval.gain_ci95_points[0]:.2f} to {interval.gain_ci95_points[1]:.2f} points"
    if advice.levers:
        yield "would buy most", f"{advice.levers[0].label}, {_gained(advice.levers[0].points)}"


def _headline(advice: Advice) -> str:
    interval, today = advice.interval, advice.saves.every_steps
    gain = ""
    if interval.gain_points is not None and interval.today_percent is not None and interval.goodput_percent is not None:
        gain = (
            f" on average {percent(interval.today_percent)} -> {percent(interval.goodput_percent)}: "
            f"{_gained(interval.gain_points)}"
        )
    match interval.verdict:
        case "refused":
            return "NO INTERVAL ADVISED"
        case "keep":
            return f"KEEP SAVING EVERY {_every(today).upper()}"
        case "change":
            every = _every(interval.every_steps).upper()
            return f"SAVE EVERY {every} ({duration_of_seconds(interval.every_seconds or 0)}){gain}"
    best = "" if interval.every_steps is None else f": perhaps every {_every(interval.every_steps)},{gain}"
    return f"NO CLEAR ADVICE{best}"


def _steps(low: int, high: int) -> str:
    return plural(low, "step") if low == high else f"{_range(low, high)} steps"


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _every(steps: int | None) -> str:
    return "step" if steps == 1 else f"{steps} steps"


def _sureness(interval: IntervalAdvice) -> Iterator[str]:
    parts = []
    if interval.plateau_steps is not None:
        parts.append(f"as good: {_steps(*interval.plateau_steps)}")
    if interval.ci95_steps is not None:
        low, high = interval.ci95_steps
        parts.append(f"95 %: from {plural(low, 'step')}" if high is None else f"95 %: {_steps(low, high)}")
    if interval.gain_ci95_points is not None and interval.verdict != "keep":
        parts.append(f"gain {interval.gain_ci95_points[0]:.2f} to {interval.gain_ci95_points[1]:.2f} points")
    if parts:
        yield "; ".join(parts)
    if interval.probability is not None and interval.verdict != "keep":
        better = f"{100 * interval.probability:.0f} %"
        yield f"better than today with a probability of {better}, from {plural(interval.failures, 'failure')}"


def _formulas(interval: IntervalAdvice) -> Iterator[str]:
    named = {"Young": interval.formulas.young_seconds, "Daly": interval.formulas.daly_seconds}
    shown = [f"{name} {duration_of_seconds(seconds)}" for name, seconds in named.items() if seconds is not None]
    if shown:
        yield ", ".join(shown)


def _replayed(interval: IntervalAdvice) -> Iterator[str]:
    done = interval.replayed
    if done is None or interval.every_steps is None or interval.verdict == "keep":
        return
    if done.saved_seconds is None:
        yield f"its own failures again, saving every {_every(interval.every_steps)}: the job never ends"
        return
    longer = "longer" if done.saved_seconds < 0 else "shorter"
    yield (
        f"its own failures again, saving every {_every(interval.every_steps)}: {percent(done.goodput_percent)}, "
        f"{duration_of_seconds(abs(done.saved_seconds))} {longer}"
    )


def scenario_lines(scenario: Scenario) -> Iterator[str]:
    """What if."""
    changes = ", ".join(scenario.changes)
    if scenario.seconds is None:
        yield f"what if {changes}: the job never ends ({scenario.how})"
        return
    moved = "shorter" if scenario.seconds >= 0 else "longer"
    yield (
        f"what if {changes}: goodput {percent(scenario.goodput_percent)}, {_gained(scenario.points)}, "
        f"{duration_of_seconds(abs(scenario.seconds))} {moved} ({scenario.how})"
    )

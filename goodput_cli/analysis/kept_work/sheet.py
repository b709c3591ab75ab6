"""Finished work and the expected end of the job, at the goodput of the window and without badput: as fields, a table
and sentences (docs/inside-steps.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from goodput_cli.analysis.accelerators.devices import energy_text
from goodput_cli.analysis.insights.patterns import hangs_now, silent_since
from goodput_cli.analysis.json_fields import Amount, FromOne, Instant, Json, written
from goodput_cli.analysis.kept_work.records import WorkRecords
from goodput_cli.analysis.kept_work.work import KeptWork, work_of
from goodput_cli.analysis.sheet import Cell, Column, Sheet
from goodput_cli.analysis.steps.regimes import PaceFinding, models_by_size, pace_finding
from goodput_cli.analysis.steps.times import TimedSteps, timed_steps, winsorised_mean
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.text import clock, duration, exact, percent

if TYPE_CHECKING:
    from goodput_cli.accounting.build import Timeline
    from goodput_cli.analysis.analysis_data import AnalysisData


LEAST_STEPS = 24
"""Minimum number of kept steps for a known pace."""
_MOST_SECONDS = 1e9
"""Upper limit of an estimate: 30 years."""
_TRAINED = frozenset({Category.PRODUCTIVE.id, Category.SLOWDOWN.id})
"""Kept training, without stalls in it."""


@written("eta", "when the job will be done if it continues as in the window; not used for any other number")
@dataclass(frozen=True, kw_only=True)
class Eta:
    """Expected end of a job that continues as in the window."""

    total_steps: FromOne
    """number of steps of the whole job"""
    total_from: str
    """source of total_steps: logged, or --total-steps"""
    steps_left: FromOne
    """steps left after the end of the window"""
    step_seconds: Amount
    """time per step: the mean of the last level"""
    seconds: Amount
    """from the end of the window until the job is done, at this goodput"""
    least_seconds: Amount
    """the same without any badput"""
    done_ns: Instant
    """when the job will be done, at this goodput"""
    pace: Annotated[PaceFinding | None, Json(optional=True)] = None
    """whether the level of the step time moved; inconclusive: step_seconds may mix several levels"""


def eta_of(analysis: AnalysisData) -> Eta | None:
    """Return when the job is done.

    None if the last step is unknown or reached, after the end of a job, for a job that hangs or may be dead, for
    checkpoint logs, and for fewer than 24 steps.
    """
    total, how = _total(analysis)
    kept = analysis.job.kept_range
    if total is None or kept is None or analysis.job.ending != "not_logged" or analysis.timeline.records is None:
        return None
    left = total - kept[1] - analysis.timeline.attempts.counts_from_0
    share = _trained(analysis) / analysis.window.counted_ns
    if left < 1 or (analysis.job.kept_steps or 0) < LEAST_STEPS or share <= 0:
        return None
    window = analysis.window
    hung, heard = hangs_now(analysis.timeline), silent_since(analysis.timeline)
    if (hung is not None and hung.heard <= window.end_ns) or (heard is not None and heard < window.end_ns):
        return None
    each, finding = _last_level(analysis.timeline, timed_steps(analysis.timeline, window.start_ns, window.end_ns))
    if each is None or left * each / share > _MOST_SECONDS:
        return None
    seconds = left * each / share
    return Eta(
        total_steps=total, total_from=how, steps_left=left, step_seconds=each, seconds=seconds,
        least_seconds=left * each, done_ns=window.end_ns + round(seconds * 1e9), pace=finding,
    )  # fmt: skip


def _total(analysis: AnalysisData) -> tuple[int | None, str]:
    """Return the last step of the job, and its source."""
    if analysis.work_options.total_steps is not None:
        return analysis.work_options.total_steps, "--total-steps"
    stated = WorkRecords.of(analysis).stated(("total_steps",))
    return None if stated is None else int(stated.value[-1]), "logged"


def _trained(analysis: AnalysisData) -> int:
    """Return the kept training of the window, with slow steps, in ns."""
    return sum(row.ns for row in (analysis.goodput, *analysis.badput) if row.category in _TRAINED)


def _last_level(timeline: Timeline, steps: TimedSteps) -> tuple[float | None, PaceFinding]:
    """Return the step time at the end (s), and the finding about its level. It is the mean of the last level of the
    steps of the last size."""
    if not len(steps) or int(steps.count.sum()) < LEAST_STEPS - 1:
        return None, PaceFinding("inconclusive")
    part, model = models_by_size(timeline, steps)[-1]
    finding = pace_finding([(part, model)]) if model.kind == "level" else PaceFinding("found")
    if model.line is not None:
        return model.line[1], finding
    last = int(model.cuts[-1]) if len(model.cuts) else 0
    return winsorised_mean(part.seconds[last:]), finding


TITLE = "Work"
_COLUMNS = (Column("work", "text"), Column("amount", "text"), Column("source", "text"))
_WHOLE_FROM = 100


def work_sheet(analysis: AnalysisData) -> Sheet | None:
    """The table of the work of kept steps; None where nothing is known of it."""
    work, eta = analysis.part(work_of), analysis.part(eta_of)
    if work is None and eta is None:
        return None
    rows: list[tuple[Cell, ...]] = [] if work is None else [*_rows(work)]
    notes = () if work is None else work.notes
    return Sheet(
        title=TITLE,
        summary=() if eta is None else (f"{eta_text(eta, analysis.window.end_ns)}; {_time_left_text(eta)}",),
        columns=_COLUMNS,
        rows=rows,
        notes=tuple(notes),
    )


def _rows(work: KeptWork) -> Iterator[tuple[Cell, ...]]:
    found: tuple[tuple[str, str | None, str | None], ...] = (
        ("tokens kept", _count(work.tokens), work.tokens_from),
        ("tokens per second of the window", _count(work.tokens_per_second), None),
        ("samples kept", _count(work.samples), work.samples_from),
        ("TFLOP kept", _count(work.tflop), work.tflop_from),
        ("accelerators", _count(work.accelerators), work.accelerators_from),
        ("peak TFLOP/s per accelerator", _count(work.peak_tflops), work.peak_from),
        ("MFU of kept steps", _percent(work.mfu_percent), None),
        ("effective MFU", _percent(work.effective_mfu_percent), None),
        ("cost per million tokens", money(work.cost_per_million_tokens), "--price-per-hour"),
        ("energy per million tokens", _energy(work), "power samples"),
    )
    yield from ((name, value, how) for name, value, how in found if value is not None)


def _energy(work: KeptWork) -> str | None:
    return None if work.kwh_per_million_tokens is None else energy_text(work.kwh_per_million_tokens)


def work_lines(analysis: AnalysisData) -> Iterator[str]:
    """Yield sentences about finished work and the estimated end."""
    if (work := analysis.part(work_of)) is not None:
        if parts := [*_parts(work)]:
            yield f"work: {', '.join(parts)}"
        yield from work.notes
    if (eta := analysis.part(eta_of)) is not None:
        yield f"{eta_text(eta, analysis.window.end_ns)}; {_time_left_text(eta)}"


def work_line(analysis: AnalysisData, room: int) -> str | None:
    """Return the same in one line of at most `room` characters, the most important first; None if nothing is known or
    fits."""
    work, eta = analysis.part(work_of), analysis.part(eta_of)
    parts = [] if work is None else [*_brief(work)]
    if eta is not None:
        parts.insert(1, f"ETA {duration(_ns(eta.seconds))} ({_end_time_text(eta, analysis.window.end_ns)})")
    line = ""
    for part in parts:
        longer = f"{line}, {part}" if line else part
        line = longer if len(longer) <= room else line
    return line or None


def work_facts(analysis: AnalysisData) -> Iterator[tuple[str, str]]:
    """Yield name and text of the facts next to a page's headline."""
    work, eta = analysis.part(work_of), analysis.part(eta_of)
    if work is not None and work.tokens is not None:
        yield "tokens kept", f"{_count(work.tokens)} ({_count(work.tokens_per_second)} per second)"
    if work is not None and work.effective_mfu_percent is not None:
        yield "effective MFU", percent(work.effective_mfu_percent)
    if work is not None and work.cost_per_million_tokens is not None:
        yield "cost per million tokens", str(money(work.cost_per_million_tokens))
    if eta is not None:
        yield "ETA", f"{duration(_ns(eta.seconds))} ({_end_time_text(eta, analysis.window.end_ns)})"


def _brief(work: KeptWork) -> Iterator[str]:
    if work.effective_mfu_percent is not None:
        yield f"effective MFU {percent(work.effective_mfu_percent)}"
    if work.tokens_per_second is not None:
        yield f"{_count(work.tokens_per_second)} tokens/s"
    if work.cost_per_million_tokens is not None:
        yield f"cost per million tokens {money(work.cost_per_million_tokens)}"


def _parts(work: KeptWork) -> Iterator[str]:
    if work.tokens is not None:
        rate = "" if work.tokens_per_second is None else f", {_count(work.tokens_per_second)} per second"
        yield f"{_count(work.tokens)} tokens kept ({work.tokens_from}){rate}"
    elif work.samples is not None:
        yield f"{_count(work.samples)} samples kept ({work.samples_from})"
    if work.effective_mfu_percent is not None:
        steps = "" if work.mfu_percent is None else f" ({percent(work.mfu_percent)} in kept steps)"
        yield f"effective MFU {percent(work.effective_mfu_percent)}{steps}"
    if work.cost_per_million_tokens is not None:
        yield f"cost per million tokens {money(work.cost_per_million_tokens)}"


def eta_text(eta: Eta, now_ns: int) -> str:
    """Return `ETA: 30 min 00 s at this goodput (14:10 UTC), at least 24 min 00 s`. now_ns: the end of the window."""
    seconds, least = duration(_ns(eta.seconds)), duration(_ns(eta.least_seconds))
    return f"ETA: {seconds} at this goodput ({_end_time_text(eta, now_ns)}), at least {least}"


def _time_left_text(eta: Eta) -> str:
    left = f"{eta.steps_left:,} of {eta.total_steps:,} steps left ({eta.total_from})"
    unsure = eta.pace is not None and eta.pace.result == "inconclusive"
    return f"{left}; changes of step time: inconclusive" if unsure else left


def _end_time_text(eta: Eta, now_ns: int) -> str:
    """The time of day, with the date where it is another day."""
    (day, time), (today, _) = clock(eta.done_ns), clock(now_ns)
    return f"{time[:5]} UTC" if day == today else f"{day} {time[:5]} UTC"


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _percent(value: float | None) -> str | None:
    return None if value is None else percent(value)


def money(value: float | None) -> str | None:
    """An amount of money, of three digits: in the currency of the price that was given."""
    return None if value is None else exact(float(f"{value:.3g}"))


def _count(value: float | None) -> str | None:
    """A number as people read it: whole from 100 on."""
    if value is None:
        return None
    return f"{value:,.0f}" if value >= _WHOLE_FROM or value == int(value) else f"{value:,.4g}"

"""Sentences of a fleet report, shared by the terminal, its page and all other formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from goodput_cli.analysis.accelerators.devices import IDLE, energy_text
from goodput_cli.analysis.results import recovery_words
from goodput_cli.diagnostics.diagnostic import problems
from goodput_cli.fleet.answer import Coverage, FleetData, FleetMpg
from goodput_cli.fleet.held import NOT_KNOWN, sentences, title_of, without_log
from goodput_cli.fleet.hosts import hosts_that_repeat
from goodput_cli.fleet.rows import FleetChange, RunLine, category_name, grouped, run_name
from goodput_cli.fleet.sums import LEAST_COVERAGE, PRODUCTIVE, FleetTotals, hours, percent, ratio
from goodput_cli.vocabulary.categories import brief_name
from goodput_cli.vocabulary.text import clock, plural, tenths
from goodput_cli.vocabulary.text import percent as percent_text

NOT_RECORDED = "not recorded"
NOT_KNOWN_HERE = "Not computed (missing input)"
"""The words before the list of `not_known`."""
_IDEAL = "--labels with ideal_step_seconds, or with flops_per_step and peak_flops"
_MOST_DOUBTS = 5
_HALF = Fraction(1, 2)


def title(report: FleetData) -> str:
    """Return `Fleet: 1962 of 2000 runs analyzed`."""
    if report.unlogged and report.allocations is not None:
        return title_of(report.allocations)
    coverage = report.coverage
    whole = coverage.runs + coverage.not_analysed
    left_out = Counter(one.what for one in report.not_analysed)
    parts = ", ".join(plural(count, what) for what, count in sorted(left_out.items()))
    analyzed = f"Fleet: {coverage.runs} of {plural(whole, 'run')} analyzed"
    return analyzed + (f" (not analyzed: {parts})" if parts else "")


def summary(report: FleetData) -> Iterator[str]:
    """Yield the lines above the tables."""
    if report.unlogged and report.allocations is not None:
        yield from (f"{name:<10} {words}" for name, words in sentences(report.allocations))
        return
    yield from measured(report)
    yield from headline(report)
    yield from device_usage_lines(report)
    if report.recoveries is not None and (words := recovery_words(report.recoveries)) is not None:
        yield words
    yield from scheduler_lines(report)
    yield from hosts_that_repeat(report.hosts, report.host_test)
    yield from reused_name_lines(report)
    yield from log_fact_lines(report.coverage)
    if warned := sum(bool(row.doubts) for row in report.runs):
        yield f"{plural(warned, 'run')} with warnings (listed below the tables)"
    if not report.complete:
        yield "incomplete: the totals leave out what could not be analyzed (listed below)"
    if lacking := list(not_known(report)):
        yield f"{NOT_KNOWN_HERE}: {', '.join(lacking)}"


def measured(report: FleetData) -> Iterator[str]:
    """Yield the time and the accelerator hours of the report, and for which part accelerators are known."""
    coverage, sums = report.coverage, report.sums
    (first, _), (last, _) = clock(report.window.start_ns), clock(report.window.end_ns - 1)
    runs = f"{plural(coverage.known_runs, 'run')} with known accelerators"
    held = f", {tenths(hours(sums.counted))} accelerator h in {runs}" if sums.known_time else ""
    yield f"{first} - {last}, {plural(len(report.weeks), 'week')}{held}"
    if sums.known_time and coverage.known_runs < coverage.runs:
        share = _percent(percent(coverage.known_time))
        known = f"{coverage.known_runs} of {plural(coverage.runs, 'run')}"
        yield f"accelerators known for {known} ({share} of the job time)"


def log_fact_lines(coverage: Coverage) -> Iterator[str]:
    """Yield for how many runs the logs contain facts that labels and options do not."""
    found = (("accelerators", coverage.accelerators_logged), ("ideal step times", coverage.program_logged))
    parts = [f"{what} of {plural(count, 'run')}" for what, count in found if count]
    if parts:
        yield f"{' and '.join(parts)} come from their logs; --labels and --accelerators override them"


def reused_name_lines(report: FleetData) -> Iterator[str]:
    """Yield a sentence about runs that use a name again whose earlier run has no logged end, if any."""
    again = sum(one.redone for one in report.runs)
    if again:
        jobs = plural(len({one.job for one in report.runs}), "job")
        runs = plural(len(report.runs), "run")
        yield f"{runs} of {jobs}: {again} restarted at the first step (--runs auto counts such runs as one job)"


def device_usage_lines(report: FleetData) -> Iterator[str]:
    """Yield a sentence about used and idle accelerators, if samples exist."""
    sums, of = report.sums, f"of {plural(report.coverage.runs, 'run')}"
    parts = []
    if sums.kwh is not None and sums.lost_kwh is not None:
        share = percent(ratio(sums.lost_kwh, sums.kwh)) or 0.0
        known = f"known for {sums.powered_runs} {of}"
        parts.append(f"{energy_text(float(sums.kwh))}, of it {percent_text(share, 0)} lost ({known})")
    if sums.idle_hours is not None:
        idle = f"{tenths(float(sums.idle_hours))} h of training below {IDLE:.0f} % utilization"
        parts.append(f"{idle} (known for {sums.watched_runs} {of})")
    if parts:
        yield f"accelerators: {'; '.join(parts)}"


def headline(report: FleetData) -> Iterator[str]:
    """Goodput, its cost, and MPG."""
    total = report.total
    if report.unlogged:
        yield f"GOODPUT {NOT_KNOWN}"
        return
    if total.goodput_percent is None:
        timed = _percent(total.time_goodput_percent)
        yield f"GOODPUT {timed}{trend(report)} by job time (by chip time: unknown, because accelerators are)"
    else:
        yield f"GOODPUT {percent_text(total.goodput_percent)}{trend(report)}; lost {_lost_and_allocated(report)}"
    yield from largest_losses(report)
    by_time = f"by job time, regardless of size: {_percent(total.time_goodput_percent)}"
    low, median, high = (total.quartile_low_percent, total.median_goodput_percent, total.quartile_high_percent)
    yield f"{by_time}; median run {_percent(median)} (middle half: {_percent(low)} to {_percent(high)})"
    yield from _mpg_and_factors(report.mpg)


def _mpg_and_factors(mpg: FleetMpg) -> Iterator[str]:
    """Yield MPG and its factors, as far as they are known: `not_known` has the rest."""
    if mpg.mpg is not None:
        covered = _percent(percent(mpg.coverage))
        yield f"MPG {_percent(percent(mpg.mpg))} (program goodput known for {covered} of the kept chip time)"
    shares = {f"{name} goodput": getattr(mpg, name) for name in ("scheduling", "runtime", "program")}
    shares["availability"] = mpg.availability
    known = [f"{name} {_percent(percent(value))}" for name, value in shares.items() if value is not None]
    if known:
        yield ", ".join(known) + (" (allocated time taken from the logs)" if mpg.allocated_from == "logs" else "")


def scheduler_lines(report: FleetData) -> Iterator[str]:
    """Yield the summary of a scheduler's tables, next to the logs of runs."""
    if report.allocations is not None:
        yield "; ".join(f"{name.lower()} {words}" for name, words in sentences(report.allocations) if name != "GOODPUT")
        yield from filter(None, [without_log(report.allocations)])


def _lost_and_allocated(report: FleetData) -> str:
    """Return `13,538.0 h = 32,366.42 USD`, with the allocated part if accelerators were not allocated all the time."""
    sums, cost = report.sums, report.total.cost
    amount = f"{lost_amount(sums, by_time=False)} h"
    if sums.lost == sums.lost_while_allocated:
        return amount if cost is None else f"{amount} = {grouped(cost)}"
    held = f"{amount}, {tenths(hours(sums.lost_while_allocated))} of them while accelerators were allocated"
    return held if cost is None else f"{held} ({grouped(cost)})"


def by_time(report: FleetData) -> bool:
    """Return True if every run counts by its time alone, because accelerators are unknown for half of it."""
    known = report.coverage.known_time
    return known is None or known < _HALF


def lost_words(report: FleetData, *, by_time: bool) -> str:
    """Return the loss and its largest part. by_time: every run counts by its time alone."""
    sums = report.sums
    amount = f"{lost_amount(sums, by_time=True)} job h" if by_time else _lost_and_allocated(report)
    worst = sums.worst(by_time=by_time)
    if worst is None:
        return amount
    return f"{amount}; most to {brief_name(category_name(worst[0]))} {_of(worst[1], _lost(sums, by_time=by_time))}"


def largest_losses(report: FleetData) -> Iterator[str]:
    """Yield a sentence with the largest loss, and the group and size that lost most, if anything was lost."""
    sums, timed = report.sums, by_time(report)
    lost, worst = _lost(sums, by_time=timed), sums.worst(by_time=timed)
    if worst is None or lost <= 0:
        return
    parts = [f"to {brief_name(category_name(worst[0]))} {_of(worst[1], lost, ' of what was lost')}"]
    for table in report.groups[:1]:
        rows = zip(table.rows, table.totals, strict=True)
        amounts = [(_lost(one.sums, by_time=timed), row.group) for row, one in rows]
        parts += _most(", ".join(table.dims), amounts, lost)
    sizes = [(_lost(report.size_sums[row.size], by_time=timed), row.size) for row in report.sizes]
    parts += _most("size", sizes, lost)
    yield f"most was lost {', '.join(parts)}{', by job time' if timed else ''}"


def lost_amount(sums: FleetTotals, *, by_time: bool) -> str:
    """Hours of jobs or of accelerators."""
    return tenths(hours(_lost(sums, by_time=by_time)))


def _lost(sums: FleetTotals, *, by_time: bool) -> int:
    return sums.time_counted - sums.time[PRODUCTIVE] if by_time else sums.lost


def _most(kind: str, amounts: Sequence[tuple[int, str]], lost: int) -> list[str]:
    """The one of several that lost most, the first of equals."""
    if len(amounts) < 2:
        return []
    amount, name = max(amounts, key=lambda one: one[0])
    return [f"in {kind} {name} {_of(amount, lost)}"]


def _of(amount: int, lost: int, words: str = "") -> str:
    return f"({tenths(hours(amount))} h, {_percent(percent(Fraction(amount, lost)))}{words})"


def not_known(report: FleetData) -> Iterator[str]:
    """Yield the unknown facts of the fleet, and the missing inputs."""
    if report.unlogged:
        return
    coverage, mpg = report.coverage, report.mpg
    lacking = coverage.runs - coverage.known_runs
    if lacking:
        runs = "all runs" if lacking == coverage.runs else f"{lacking} of {plural(coverage.runs, 'run')}"
        yield f"accelerators of {runs} (--labels, --allocations or --accelerators)"
    if mpg.scheduling is None:
        yield "scheduling goodput (--capacity)"
    if mpg.program is None:
        yield f"program goodput ({_IDEAL})"
    elif mpg.coverage is not None and mpg.coverage < LEAST_COVERAGE:
        known, least = _percent(percent(mpg.coverage)), percent_text(float(100 * LEAST_COVERAGE), 0)
        yield f"MPG (program goodput known for {known} of the kept chip time, {least} needed: {_IDEAL})"
    if mpg.availability is None and report.sums.known_time:
        yield "availability (queue events in the log, or --sacct)"


def warnings_of_runs(report: FleetData) -> tuple[str, ...]:
    """Return a sentence for each of the first runs with a warning next to goodput."""
    doubted = [row for row in runs_by_loss(report) if row.doubts]
    more = len(doubted) - _MOST_DOUBTS
    rest = (
        (f"{plural(more, 'more run')} {'has' if more == 1 else 'have'} warnings (`doubts` in the JSON output)",)
        if more > 0
        else ()
    )
    return *(f"warning: {run_name(row)}: {'; '.join(row.doubts)}" for row in doubted[:_MOST_DOUBTS]), *rest


def warnings_line(report: FleetData) -> str | None:
    """Return how many runs and logs have warnings; None if none has."""
    runs = sum(bool(row.doubts) for row in report.runs)
    of_logs = len(problems(report.diagnostics))
    parts = [f"{plural(runs, 'run')} with warnings"] if runs else []
    parts += [f"{plural(of_logs, 'warning')} about the logs"] if of_logs else []
    return ", ".join(parts) or None


def trend(report: FleetData) -> str:
    """Return ` (+1.20 points since 2026-W02)`: the change of the latest two weeks, as the headline weighs runs."""
    change = report.change
    if change is None or change.by_time != by_time(report):
        return ""
    return f" ({change.week}: {change.points:+.2f} points against {change.before})"


def runs_by_loss(report: FleetData) -> list[RunLine]:
    """The runs in order of accelerator hours lost, then of time lost."""
    return sorted(report.runs, key=lambda row: (-(row.lost_hours or 0), row.goodput_ns - row.ns, row.job, row.run))


def changed(change: FleetChange) -> str:
    """Return the week whose goodput changed, and by how much."""
    by_time = " by job time" if change.by_time else ""
    return (
        f"goodput{by_time} changed by {change.points:+.2f} points from {change.before} to {change.week}. The points "
        "of the categories add up to this change, and so do those of the runs"
    )


def _percent(value: float | None) -> str:
    return NOT_RECORDED if value is None else percent_text(value)

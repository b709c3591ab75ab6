"""What training itself lost: hangs, slow steps, waiting for data, what was given up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.insights.hangs import Hangs
from goodput_cli.analysis.insights.insight import About, Candidate
from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.steps.lost_in_regimes import lost_in_regimes
from goodput_cli.analysis.steps.slow_regimes import Regime, changes_level, slow_regimes
from goodput_cli.analysis.steps.timed import step_time_parts, timed_steps
from goodput_cli.analysis.timeline.around import STEP_PREFIX
from goodput_cli.vocabulary.categories import OVERLAPPED, Category
from goodput_cli.vocabulary.text import duration, duration_of_seconds, percent, plural

_MOST_ROWS = 5
_HALF = 0.5
_WITHIN = ", counted as goodput"
"""What is said of a cost that is no badput, since the training was kept."""


def find_hang(hangs: Hangs) -> Iterator[Candidate]:
    """Steps that hung."""
    count = len(hangs)
    if count == 0:
        return
    worst = int(np.argmax(hangs.ns))
    step, start = int(hangs.step[worst]), int(hangs.start[worst])
    took, usual = duration(int(hangs.end[worst]) - start), duration(int(hangs.usual[worst]))
    text = f"step {step} hung for {took}; a usual one takes {usual}"
    if count > 1:
        text = f"{count} steps hung, step {step} for {took}"
    largest = np.argsort(-hangs.ns, kind="stable")[:_MOST_ROWS]
    yield Candidate(
        "hang", int(hangs.ns.sum()), text, int(hangs.start[0]), int(hangs.end[-1]), count,
        tuple(hangs.row[largest].tolist()), About(steps=tuple(hangs.step[largest].tolist())),
        options=("--around", f"{STEP_PREFIX}{step}", "--events"),
    )  # fmt: skip


def find_slow_steps(analysis: Analysis) -> Iterator[Candidate]:
    """Slow regimes; with a reference what training took beyond it."""
    timeline, window = analysis.timeline, analysis.window
    if timeline.reference_ns is not None:
        slow = sum(row.ns for row in analysis.badput if row.category == Category.SLOWDOWN.id)
        took = 1 + slow / analysis.goodput.ns if analysis.goodput.ns else 0.0
        reference = duration(round(float(timeline.reference_ns)))
        text = f"steps took {took:.2f} x the reference step time of {reference}"
        command = "rolling" if timeline.records is None else None  # checkpoint logs show no single steps
        yield Candidate("slow_steps", slow, text, window.start_ns, window.end_ns, command=command,
                    about=About(categories=(Category.SLOWDOWN.id,)))  # fmt: skip
        return
    if not changes_level(step_time_parts(timeline, window.start_ns, window.end_ns), analysis.steps.count):
        return  # nearly always: spare the columns of all steps
    steps = timed_steps(timeline, window.start_ns, window.end_ns)
    regimes = slow_regimes(timeline, steps)
    if not regimes:
        return
    worst = max(regimes, key=lambda regime: regime.lost_seconds)
    usual = duration_of_seconds(worst.usual_seconds)
    text = f"steps {worst.first_step} to {worst.last_step} took {worst.factor:.2f} x the usual {usual}"
    if len(regimes) > 1:
        text = f"{text}, and {plural(len(regimes) - 1, 'more slow span')}"
    rows = [int(np.searchsorted(steps.time, regime.start_ns)) for regime in regimes]
    lost = lost_in_regimes(timeline, steps, regimes)
    loading = _more_loading(timeline, regimes)
    waits = loading > _HALF * lost
    text += _WITHIN + (f"; data was loaded for {duration(loading)} more than usual" if waits else "")
    yield Candidate(
        "slow_steps", lost, text, regimes[0].start_ns, regimes[-1].end_ns,
        len(regimes), tuple(int(steps.row[row]) for row in rows[:_MOST_ROWS]),
        About(steps=tuple(regime.first_step for regime in regimes[:_MOST_ROWS])), in_goodput_ns=lost,
        advice=BY_CODE["input_bound"].advice if waits else None,
    )  # fmt: skip


def _more_loading(timeline: Timeline, regimes: Sequence[Regime]) -> int:
    """How much longer (ns) data was loaded in slow regimes than it was in other time of the same length."""
    loads = timeline.loads
    long = timeline.end - timeline.start - sum(one.end_ns - one.start_ns for one in regimes)
    inside = [
        np.maximum(np.minimum(loads.end, one.end_ns) - np.maximum(loads.start, one.start_ns), 0).sum()
        for one in regimes
    ]
    loaded = int(sum(inside))
    elsewhere = int((loads.end - loads.start).sum()) - loaded
    return loaded - (elsewhere * (timeline.end - timeline.start - long) // long if long > 0 else 0)


def find_input_bound(analysis: Analysis) -> Iterator[Candidate]:
    """Waiting for data: outside steps for certain, inside them perhaps."""
    window = analysis.window
    outside = sum(row.ns for row in analysis.badput if row.category == Category.DATA_LOADING_SYNC.id)
    inside = sum(row.ns for row in analysis.overlapped if row.category == OVERLAPPED)
    training = analysis.goodput.ns
    if training and inside > _HALF * training:
        share = percent(100 * inside / training, 0)
        text = f"data was loaded during {share} of training, which may wait for it{_WITHIN}"
        yield Candidate("input_bound", outside + inside, text, window.start_ns, window.end_ns,
                    about=About(categories=(Category.DATA_LOADING_SYNC.id,)),
                    options=("--category", Category.DATA_LOADING_SYNC.id), in_goodput_ns=inside)  # fmt: skip
    elif outside:
        text = "no step was in flight while data was loaded"
        yield Candidate("input_bound", outside, text, window.start_ns, window.end_ns,
                    about=About(categories=(Category.DATA_LOADING_SYNC.id,)),
                    options=("--category", Category.DATA_LOADING_SYNC.id))  # fmt: skip


def find_given_up(analysis: Analysis, taken_back: int) -> Iterator[Candidate]:
    """Wasted training that no disruption took back. taken_back: what disruptions and hangs took (ns)."""
    timeline, window = analysis.timeline, analysis.window
    ns = sum(row.ns for row in analysis.badput if row.category == Category.WASTED.id) - taken_back
    runs = len(timeline.runs)
    text = "training was given up without a disruption"
    if runs > 1:
        text = f"the job name was used for {runs} runs: what the earlier ones trained does not count"
    options = ("--category", Category.WASTED.id)
    yield Candidate("given_up", ns, text, window.start_ns, window.end_ns, max(runs - 1, 1), _run_rows(timeline),
                About(categories=(Category.WASTED.id,)), options)  # fmt: skip


def _run_rows(timeline: Timeline) -> tuple[int, ...]:
    return tuple(int(row) for row in timeline.runs[1 : 1 + _MOST_ROWS])

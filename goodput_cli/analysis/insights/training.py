"""What training itself lost: hangs, slow steps, waiting for data, what was given up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.insights.hangs import HANG_NS, Hangs, ran_out_of_time
from goodput_cli.analysis.insights.insight import About, Candidate
from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.analysis.insights.patterns import LEAST_STEP_TIMES, WITHIN, find_drift, hangs_now
from goodput_cli.analysis.steps.slow_regimes import Regime, changes_level, lost_in_regimes, slow_regimes
from goodput_cli.analysis.steps.timed import step_time_parts, timed_steps
from goodput_cli.analysis.timeline.around import STEP_PREFIX
from goodput_cli.vocabulary.categories import OVERLAPPED, Category
from goodput_cli.vocabulary.text import duration, duration_of_seconds, percent, plural

if TYPE_CHECKING:
    from goodput_cli.analysis.results import Analysis

_MOST_ROWS = 5
_HALF = 0.5
_TENTH = 0.1
_WITHIN = WITHIN
_TIMEOUT = "others waited until their timeout: see which rank was gone and why, and shorten the timeout"
_NOW_AND_THEN = "see what these steps share: a host, their data, the network"
_SINCE_START = "compare hosts and data of these steps with those behind, if it was not meant (a warm-up, the batch)"


def find_hung_now(analysis: Analysis) -> Iterator[Candidate]:
    """The step in flight at the end of the window."""
    timeline, window = analysis.timeline, analysis.window
    hung = hangs_now(timeline)
    if hung is None or hung[2] > window.end_ns:
        return
    step, begun, heard = hung
    amounts = timeline.ledger.between(np.array([begun]), np.array([heard]), (Category.OTHER,))
    ns = int(amounts.get((Category.OTHER, -1), np.zeros(1))[0])
    text = f"step {step} hangs now: no step for {duration(heard - begun)}, and heartbeats go on"
    rows = np.flatnonzero(timeline.table.time == heard)
    yield Candidate("hung_now", ns, text, begun, heard, 1, tuple(rows[:1].tolist()), About(steps=(step,)),
                    options=("--around", f"{STEP_PREFIX}{step}", "--events"))  # fmt: skip


def find_hang(hangs: Hangs, timeline: Timeline) -> Iterator[Candidate]:
    """Steps that hung."""
    count = len(hangs)
    if count == 0:
        return
    worst = int(np.argmax(hangs.ns))
    step, start = int(hangs.step[worst]), int(hangs.start[worst])
    took, usual = duration(int(hangs.end[worst]) - start), duration(int(hangs.usual[worst]))
    hung, advice = "hung for", _TIMEOUT if _waits_for_a_watchdog(timeline, int(hangs.attempt[worst])) else None
    if hangs.ns[worst] < HANG_NS:
        hung, advice = "took", _NOW_AND_THEN
    several = int(hangs.upto[worst] - hangs.number[worst])
    text = f"step {step} {hung} {took}; a usual one takes {usual}"
    if several > 0:
        text = f"steps {step} to {step + several} took {took}; as many usually take {usual}"
    if count > 1 and advice != _NOW_AND_THEN:
        text = f"{count} steps hung, step {step} for {took}"
    elif count > 1:
        text = f"{count} steps took long now and then, step {step} {took}; a usual one takes {usual}"
    largest = np.argsort(-hangs.ns, kind="stable")[:_MOST_ROWS]
    yield Candidate(
        "hang", int(hangs.ns.sum()), text, int(hangs.start[0]), int(hangs.end[-1]), count,
        tuple(hangs.row[largest].tolist()), About(steps=tuple(hangs.step[largest].tolist())),
        options=("--around", f"{STEP_PREFIX}{step}", "--events"),
        advice=advice,
    )  # fmt: skip


def _waits_for_a_watchdog(timeline: Timeline, attempt: int) -> bool:
    """Whether a line says that an attempt ended when a wait ran out of time."""
    return bool(timeline.table.observed.rows) and ran_out_of_time(timeline.causes.why[attempt])


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
    if analysis.steps.count < LEAST_STEP_TIMES or not changes_level(
        step_time_parts(timeline, window.start_ns, window.end_ns), analysis.steps.count
    ):
        return  # nearly always: spare the columns of all steps
    steps = timed_steps(timeline, window.start_ns, window.end_ns)
    drift = list(find_drift(analysis, steps))
    if drift:
        yield from drift
        return
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
    first = int(steps.number[0])
    loading = _more_loading(timeline, regimes)
    waits = loading > _HALF * lost
    text += _WITHIN + (f"; data was loaded for {duration(loading)} more than usual" if waits else "")
    yield Candidate(
        "slow_steps", lost, text, regimes[0].start_ns, regimes[-1].end_ns,
        len(regimes), tuple(int(steps.row[row]) for row in rows[:_MOST_ROWS]),
        About(steps=tuple(regime.first_step for regime in regimes[:_MOST_ROWS])), in_goodput_ns=lost,
        advice=BY_CODE["input_bound"].advice if waits else _SINCE_START if worst.first_step == first else None,
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


def find_input_bound(analysis: Analysis, explained: int) -> Iterator[Candidate]:
    """Waiting for data: outside steps for certain, inside them perhaps. explained: loading (ns) of which another
    insight tells."""
    window = analysis.window
    outside = sum(row.ns for row in analysis.badput if row.category == Category.DATA_LOADING_SYNC.id)
    inside = max(sum(row.ns for row in analysis.overlapped if row.category == OVERLAPPED) - explained, 0)
    training = analysis.goodput.ns
    if training and inside > _TENTH * training:
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
    if any(row.category == Category.STOPPED.id for row in analysis.badput):
        text = "training that no save held was given up at a planned stop"
    if runs > 1:
        text = f"the job name was used for {runs} runs: what the earlier ones trained does not count"
    options = ("--category", Category.WASTED.id)
    yield Candidate("given_up", ns, text, window.start_ns, window.end_ns, max(runs - 1, 1), _run_rows(timeline),
                About(categories=(Category.WASTED.id,)), options)  # fmt: skip


def _run_rows(timeline: Timeline) -> tuple[int, ...]:
    return tuple(int(row) for row in timeline.runs[1 : 1 + _MOST_ROWS])

"""Improvements: changes that would have raised goodput, each with its computation and its assumptions (docs/advice.md).
They overlap, so they do not add up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from goodput_cli.analysis.advice.curve import Exposure, LossCurve, SaveCost, candidates
from goodput_cli.analysis.advice.interval import Interval, early_deaths, optimum
from goodput_cli.analysis.advice.record import FAILURES, RESTART, EndKind, JobRecord, half
from goodput_cli.analysis.advice.replay import RecordedSaves, replay
from goodput_cli.analysis.advice.results import How, Improvement
from goodput_cli.analysis.goodput.thresholds import LEVERS
from goodput_cli.analysis.question import Price, hours_and_money
from goodput_cli.vocabulary.categories import is_eval, label_title
from goodput_cli.vocabulary.text import duration_of_seconds

LEAST_SHARE = 0.0005
"""Share of the job's time; an improvement that gains less is omitted."""
_STILL_BLOCKS = 0.1
_LABEL_SHARE = 0.01
_OUTAGE_SHARE = 0.1


@dataclass(frozen=True)
class Estimate:
    """An improvement before it is compared with the whole job. ns: of exact ones; seconds and the two goodputs
    (percent) of averages. An amount of None means that the log does not show it."""

    name: str
    label: str
    text: str
    assumption: str
    how: How
    ns: int | None = None
    seconds: float | None = None
    before: float | None = None
    after: float | None = None
    settings: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class ImprovementInputs:
    """Inputs of the improvements. replays: whether the record replays as it was."""

    record: JobRecord
    exposure: Exposure
    interval: Interval
    replays: bool
    spare_ns: int


def find_improvements(inputs: ImprovementInputs, price: Price | None) -> tuple[Improvement, ...]:
    """Return all improvements with a gain, largest first."""
    made = [_made(estimate, inputs.record, price) for estimate in all_improvements(inputs)]
    some = [lever for lever in made if lever is not None and lever.percent_of_window >= 100 * LEAST_SHARE]
    return tuple(sorted(some, key=lambda lever: (-lever.seconds, lever.name)))


def judged_improvements(inputs: ImprovementInputs) -> frozenset[str]:
    """Return the names of the improvements that the record covers, even if they gain nothing."""
    amounts, record = inputs.record.amounts, inputs.record
    advised = inputs.interval.advice.verdict != "refused"
    known = {
        "interval": advised and inputs.interval.optimum is not None,
        "async_saves": advised and inputs.interval.optimum is not None,
        "newest_checkpoint": inputs.replays or not any(end.kind == EndKind.OLDER for end in record.ends),
        "data_loading": amounts.data is not None,
        "stalls": amounts.stalls is not None,
        "slow_steps": amounts.slow is not None,
    }
    labels = (f"custom:{label}" for label in amounts.custom)
    return frozenset(
        (*(name for name, always in LEVERS.items() if always), *labels, *(name for name, says in known.items() if says))
    )


def bound(inputs: ImprovementInputs, price: Price | None) -> Improvement | None:
    """Return the gain that no method of checkpointing can exceed."""
    amounts = inputs.record.amounts
    estimate = Estimate(
        "checkpoint_bound", "checkpointing at most", "saving never blocks and no step is trained twice",
        "an upper bound for any way of checkpointing", "bound", ns=amounts.saved + amounts.wasted,
    )  # fmt: skip
    return _made(estimate, inputs.record, price)


def points_of(record: JobRecord, seconds: float) -> tuple[float, float]:
    """Points of goodput, and the goodput (percent), of a job that is shorter by so much."""
    productive, window = record.productive / 1e9, record.window / 1e9
    goodput = 100 * productive / (window - seconds)
    return goodput - 100 * productive / window, goodput


def _made(estimate: Estimate, record: JobRecord, price: Price | None) -> Improvement | None:
    seconds = estimate.ns / 1e9 if estimate.ns is not None else estimate.seconds
    window = record.window / 1e9
    if seconds is None or seconds >= window:
        return None
    if estimate.before is not None and estimate.after is not None:
        points, goodput = estimate.after - estimate.before, estimate.after
    else:
        points, goodput = points_of(record, seconds)
    return Improvement(
        estimate.name, estimate.label, estimate.text, estimate.assumption, estimate.how, seconds, estimate.ns,
        100 * seconds / window, points, goodput, *hours_and_money(price, seconds * 1e9), estimate.settings,
    )  # fmt: skip


def all_improvements(inputs: ImprovementInputs) -> Iterator[Estimate]:
    """Yield every improvement that the record covers, small ones too."""
    for find in _FINDERS:
        yield from find(inputs)


def _interval(inputs: ImprovementInputs) -> Iterator[Estimate]:
    advice, exposure = inputs.interval.advice, inputs.exposure
    today, best = inputs.interval.today, inputs.interval.optimum
    if advice.verdict in ("keep", "refused") or today is None or best is None:
        return
    advised = LossCurve(exposure, [best.advised], today.saving)
    yield _average(
        inputs, advised, today, "interval", f"save every {best.advised} steps",
        f"save every {best.advised} steps instead of every {int(today.intervals[0])}",
        "saving costs the same; the same number and kind of failures", {"every_steps": best.advised},
    )  # fmt: skip


def _async_saves(inputs: ImprovementInputs) -> Iterator[Estimate]:
    record, exposure, today = inputs.record, inputs.exposure, inputs.interval.today
    if record.asynchronous or record.background or not record.cost or today is None or record.every is None:
        return
    saving = SaveCost(_STILL_BLOCKS * record.cost, (1 - _STILL_BLOCKS) * record.cost)
    if exposure.failures == 0 and exposure.mtbf_given is None:
        return
    best = optimum(LossCurve(exposure, candidates(exposure, record.kept_steps, record.every, saving), saving))
    if best is None:
        return
    yield _average(
        inputs, LossCurve(exposure, [best.advised], saving), today, "async_saves", "save in the background",
        f"save asynchronously every {best.advised} steps",
        f"a tenth of {duration_of_seconds(record.cost)} still blocks",
        {"every_steps": best.advised, "cost_seconds": saving.cost, "latency_seconds": saving.latency},
    )  # fmt: skip


def _average(
    inputs: ImprovementInputs, new: LossCurve, old: LossCurve, name: str, label: str, text: str, assumption: str,
    settings: Mapping[str, float | str],
) -> Estimate:  # fmt: skip
    after, before = float(new.average[0]), float(old.average[0])
    seconds = inputs.record.window / 1e9 * (1 - after / before)
    goodputs = [float(curve.goodput(curve.average)[0]) for curve in (old, new)]
    return Estimate(
        name, label, text, assumption, "average", seconds=seconds, before=goodputs[0], after=goodputs[1],
        settings=settings,
    )  # fmt: skip


def _newest_checkpoint(inputs: ImprovementInputs) -> Iterator[Estimate]:
    record = inputs.record
    if not inputs.replays or not any(end.kind == EndKind.OLDER for end in record.ends):
        return
    shorter = replay(record, RecordedSaves(record), newest=True).ns
    if shorter is not None:
        complete = "complete (not logged) and " * record.background
        yield Estimate(
            "newest_checkpoint", "use newest checkpoint", "the newest checkpoint is always restored",
            f"the newer checkpoints were {complete}readable, and older ones were not chosen on purpose", "replay",
            ns=record.window - shorter,
        )  # fmt: skip


def _disruptions(inputs: ImprovementInputs) -> Iterator[Estimate]:
    """Yield the improvements of fewer disruptions and of shorter ones."""
    amounts, spare = inputs.record.amounts, inputs.spare_ns
    yield Estimate(
        "failures", "half as many failures", "every second disruption does not happen", "each is equally likely to go",
        "exact", ns=half(amounts.lost), settings={"factor": 2},
    )  # fmt: skip
    yield Estimate(
        "restart", "restart twice as fast",
        "initialization, preparation, restore, loading and compilation take half the time",
        "after every disruption", "exact", ns=half(sum(sum(amounts.before[part]) for part in RESTART)),
        settings={"factor": 2},
    )  # fmt: skip
    yield Estimate(
        "restore", "restore twice as fast", "restoring a checkpoint takes half the time", "part of `restart`", "exact",
        ns=half(amounts.restore), settings={"factor": 2},
    )  # fmt: skip
    yield Estimate(
        "downtime", "half the downtime", "a failure is noticed and the job scheduled twice as fast",
        "after every disruption", "exact", ns=half(sum(amounts.before["down"])), settings={"factor": 2},
    )  # fmt: skip
    yield Estimate(
        "spares", f"spare node after {spare / 1e9:g} s", "a spare node takes over, and no time is spent in a queue",
        f"after {spare / 1e9:g} s; failed starts count as downtime", "exact",
        ns=sum(max(ns - spare, 0) for _, ns in amounts.outages) + sum(amounts.before["queued"]),
        settings={"spare_seconds": spare / 1e9},
    )  # fmt: skip


def _failed_starts_before(inputs: ImprovementInputs) -> Iterator[Estimate]:
    record, early = inputs.record, early_deaths(inputs.exposure)
    if early is None or not early.unusual or early.longest_seconds is None:
        return
    limit = round(early.longest_seconds * 1e9)
    short = [
        (life, gap)
        for life, end, gap in zip(record.lives, record.ends, record.gaps[1:], strict=False)
        if end.kind in FAILURES and life.budget <= limit
    ]
    saved = sum(life.startup + life.budget + life.hang + gap - life.kept for life, gap in short)
    held = {life.attempt + 1 for life, _ in short}
    alone = [
        ns
        for attempt, ns in record.amounts.failed_starts
        if max((life.attempt for life in record.lives if life.attempt < attempt), default=-1) + 1 not in held
    ]  # savings include failed starts in the gap after these attempts
    yield Estimate(
        "starts_that_hold", "no failed starts",
        f"no attempt fails within {duration_of_seconds(early.longest_seconds)} of training",
        f"{early.count} of {inputs.exposure.failures} attempts did; starts without a step count", "exact",
        ns=saved + sum(alone), settings={"lives": early.count, "within_seconds": early.longest_seconds},
    )  # fmt: skip


def _custom(inputs: ImprovementInputs) -> Iterator[Estimate]:
    custom, window = inputs.record.amounts.custom, inputs.record.window
    evals = sorted(label for label in custom if is_eval(label))
    groups = {"evals": evals} if evals else {}
    groups |= {f"custom:{label}": [label] for label in sorted(custom) if label not in evals}
    for name, labels in groups.items():
        total, label = sum(custom[one] for one in labels), f"half as many {', '.join(map(label_title, labels))}"
        if total > _LABEL_SHARE * window:
            yield Estimate(
                name, label, label, "each takes as long as before", "exact", ns=half(total), settings={"factor": 2},
            )  # fmt: skip


def _steady(inputs: ImprovementInputs) -> Iterator[Estimate]:
    amounts = inputs.record.amounts
    for name, label, text, ns in (
        ("data_loading", "no waiting for data", "data loading never delays a step", amounts.data),
        ("stalls", "no stalls", "no step takes much longer than usual", amounts.stalls),
        ("slow_steps", "no slow steps", "every step takes the usual time", amounts.slow),
    ):
        if ns is not None and ns > 0:
            yield Estimate(
                name,
                label,
                text,
                "with the same failures; a lower bound, because a shorter run has fewer",
                "exact",
                ns=ns,
            )


def _longest_outage(inputs: ImprovementInputs) -> Iterator[Estimate]:
    record = inputs.record
    gaps = [gap for gap, end in zip(record.gaps[1:], record.ends, strict=False) if end.kind in FAILURES]
    beyond = max(gaps) - round(median(gaps)) if gaps else 0
    if beyond > _OUTAGE_SHARE * record.window:
        yield Estimate(
            "longest_outage", "shorten longest outage", "the longest outage takes as long as the median one",
            "once",
            "exact", ns=beyond,
        )  # fmt: skip


_FINDERS: tuple[Callable[[ImprovementInputs], Iterator[Estimate]], ...] = (
    _interval, _async_saves, _newest_checkpoint, _disruptions, _failed_starts_before, _custom, _steady, _longest_outage,
)  # fmt: skip

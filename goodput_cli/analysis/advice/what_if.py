"""What if: one scenario of several changes, replayed together (docs/advice.md, *What if*)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from goodput_cli.analysis.advice.curve import Curve, Exposure, Saving
from goodput_cli.analysis.advice.levers import points_of
from goodput_cli.analysis.advice.record import RESTART, JobRecord
from goodput_cli.analysis.advice.replay import AsRecorded, Changes, Every, Policy, Replayed, replay
from goodput_cli.analysis.advice.results import How, ReplayFacts, Scenario
from goodput_cli.analysis.question import Price, hours_and_money
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.categories import is_eval
from goodput_cli.vocabulary.text import finite
from goodput_cli.vocabulary.when import parse_duration


@dataclass(frozen=True)
class Cut:
    """An amount divided by `factor` (at least 1), or each at most `most` ns."""

    factor: Fraction | None
    most: int

    def saved(self, amounts: Sequence[int]) -> list[int]:
        """What is saved (ns) of each amount; of all together as much as of their sum, rounded once."""
        if self.factor is None:
            return [max(amount - self.most, 0) for amount in amounts]
        left = 1 - 1 / self.factor
        total, before, saved = 0, 0, []
        for amount in amounts:
            total += amount
            upto = round(total * left)
            saved.append(upto - before)
            before = upto
        return saved


@dataclass(frozen=True)
class WhatIf:
    """Changes, parsed. every: steps, or ns of training. cost: of a save: ns, or divided. delay: ns, of asynchronous
    saves. cuts: by what they cut. spares: ns. failures: how many times rarer. newest: restart from the newest."""

    changes: tuple[str, ...] = ()
    every: int | None = None
    every_ns: int | None = None
    cost: Cut | None = None
    delay: int | None = None
    cuts: Mapping[str, Cut] | None = None
    spares: int | None = None
    failures: Fraction | None = None
    newest: bool = False


_CUTS = ("restore", "restart", "down", "queue", "startup", "data", "stalls", "evals")
_PARTS_OF: dict[str, tuple[str, ...]] = {
    "restore": ("restore",), "restart": RESTART, "down": ("down",), "queue": ("queued",), "data": ("load",)
}  # fmt: skip
NAMES = ("save-every", "save-cost", "async", *_CUTS, "spares", "failures", "restart-from")


def parse_plan(changes: Sequence[str]) -> WhatIf:
    """`NAME=VALUE` each. UsageError says what is wrong and what is accepted."""
    plan = WhatIf(tuple(changes), cuts={})
    for change in changes:
        name, equals, value = (part.strip() for part in change.partition("="))
        if not equals or name not in NAMES:
            raise UsageError(f"{change!r} is no change; write NAME=VALUE, NAME one of {', '.join(NAMES)}")
        plan = _with(plan, name, value)
    return plan


def _with(plan: WhatIf, name: str, value: str) -> WhatIf:
    """The plan with one change more."""
    match name:
        case "save-every" if value.isdecimal():
            if int(value) < 1:
                raise UsageError(f"{name}={value}: at least 1 step")
            return replace(plan, every=int(value), every_ns=None)
        case "save-every":
            return replace(plan, every=None, every_ns=_length(name, value))
        case "save-cost":
            return replace(plan, cost=_cut(name, value))
        case "async":
            blocking, comma, latency = value.partition(",")
            delay = _length(name, latency) if comma else 0
            return replace(plan, cost=Cut(None, _length(name, blocking)), delay=delay)
        case "spares":
            return replace(plan, spares=0 if value == "0" else _length(name, value))
        case "failures":
            return replace(plan, failures=_factor(name, value))
        case "restart-from":
            if value != "newest":
                raise UsageError(f"{name}={value}: only {name}=newest is known")
            return replace(plan, newest=True)
    return replace(plan, cuts={**(plan.cuts or {}), name: _cut(name, value)})


def _cut(name: str, value: str) -> Cut:
    if value.startswith("/"):
        return Cut(_factor(name, value), 0)
    return Cut(None, 0 if value == "0" else _length(name, value))


def _factor(name: str, value: str) -> Fraction:
    try:
        factor = Fraction(value.removeprefix("/"))
    except (ValueError, ZeroDivisionError, OverflowError):
        factor = Fraction(0)
    if factor < 1 or not value.startswith("/"):
        raise UsageError(f"{name}={value}: write /K with K at least 1, as in {name}=/2")
    return factor


def _length(name: str, value: str) -> int:
    return parse_duration(value, whole=f"{name}={value}")


@dataclass(frozen=True)
class _Shortened:
    """Gaps and start-ups (ns, by life) with what cuts leave of them, and what they take out of lives and stops."""

    gaps: list[int]
    startups: list[int]
    exact: int


def _shortened(record: JobRecord, plan: WhatIf) -> _Shortened:
    parts = {name: list(amounts) for name, amounts in record.amounts.before.items()}
    gaps, startups, exact = list(record.gaps), [life.startup for life in record.lives], 0
    rest = _rest(record)
    for name, cut in (plan.cuts or {}).items():
        if name == "startup":
            startups = [ns - saved for ns, saved in zip(startups, cut.saved(startups), strict=True)]
            continue
        flat = [(part, place) for part in _PARTS_OF.get(name, ()) for place in range(len(gaps))]
        saved = cut.saved([*(parts[part][place] for part, place in flat), rest.get(name, 0)])
        if cut.factor is None:
            saved = _capped(parts, _PARTS_OF.get(name, ()), len(gaps), cut.most) + saved[-1:]
        exact += saved[-1]
        for (part, place), ns in zip(flat, saved[:-1], strict=True):
            parts[part][place] -= ns
            target = startups if part == "startup" else gaps
            target[place] -= ns
    if plan.spares is not None:
        for place, down in record.amounts.outages:
            taken = min(max(down - plan.spares, 0), parts["down"][place])
            parts["down"][place] -= taken
            gaps[place] -= taken
        gaps = [gap - queued for gap, queued in zip(gaps, parts["queued"], strict=True)]
    return _Shortened(gaps, startups, exact)


def _capped(parts: Mapping[str, list[int]], names: Sequence[str], places: int, most: int) -> list[int]:
    """What is saved of each part where all of them in a gap together are at most `most` ns: the last ones first."""
    left = [most] * places
    saved: list[int] = []
    for part in names:
        for place in range(places):
            kept = min(parts[part][place], left[place])
            left[place] -= kept
            saved.append(parts[part][place] - kept)
    return saved


def _rest(record: JobRecord) -> dict[str, int]:
    """What a cut takes besides the gaps behind disruptions: sums of the ledger, lives being left as they are."""
    amounts = record.amounts
    in_gaps = {name: sum(amounts.before[part]) for name, part in (("restore", "restore"), ("data", "load"))}
    return {
        "restore": max(amounts.restore - in_gaps["restore"], 0),
        "data": max((amounts.data or 0) - in_gaps["data"], 0),
        "stalls": amounts.stalls or 0,
        "evals": sum(ns for label, ns in amounts.custom.items() if is_eval(label)),
    }


def scenario(
    record: JobRecord, exposure: Exposure, plan: WhatIf, price: Price | None, replays: bool
) -> Scenario | None:
    """The job with these changes; None if it can not be replayed. UsageError where a cost of a save is needed."""
    short = _shortened(record, plan)
    policy = _policy(record, exposure, plan)
    if plan.failures is not None:
        return _on_average(record, exposure, plan, price, short)
    if policy is None and not plan.newest:
        before = sum(record.gaps) + sum(life.startup for life in record.lives)
        ns = record.window - before + sum(short.gaps) + sum(short.startups) - short.exact
        return _scenario(record, plan, price, "exact", ns, None)
    if not replays:
        return None
    done = replay(record, policy or AsRecorded(record), Changes(short.gaps, short.startups, plan.newest))
    return _scenario(record, plan, price, "replay", None if done.ns is None else done.ns - short.exact, done)


def _policy(record: JobRecord, exposure: Exposure, plan: WhatIf) -> Policy | None:
    """None: as recorded."""
    every, cost = _every(exposure, plan), None
    if plan.cost is not None:
        cost = plan.cost.most
        if plan.cost.factor is not None:
            _need_cost(record, "save-cost")
            cost = round(record.cost_ns / plan.cost.factor)
    if every is None:
        return None if cost is None else AsRecorded(record, cost, plan.delay)
    if cost is None:
        _need_cost(record, "save-every")
    return Every(record, every, cost, plan.delay)


def _every(exposure: Exposure, plan: WhatIf) -> int | None:
    """The steps between two saves that are asked for."""
    if plan.every_ns is None:
        return plan.every
    return max(round(plan.every_ns / 1e9 / exposure.pace), 1) if exposure.pace else 1


def _need_cost(record: JobRecord, name: str) -> None:
    if record.cost is None:
        raise UsageError(f"{name}: no line says how long a save blocks; give --save-seconds, or a save-cost of its own")


def _scenario(
    record: JobRecord, plan: WhatIf, price: Price | None, how: How, ns: int | None, done: Replayed | None
) -> Scenario:  # fmt: skip
    if ns is None:
        facts = None if done is None else replay_facts(record, done)
        return Scenario(plan.changes, how, None, None, -100 * record.productive / record.window, 0.0, facts, None, None)
    saved = record.window - ns
    points, goodput = points_of(record, saved / 1e9)
    facts = None if done is None else replay_facts(record, replace(done, ns=ns))
    hours, cost = hours_and_money(price, saved)
    return Scenario(plan.changes, how, saved / 1e9, saved, points, goodput, facts, hours, cost)


def _on_average(
    record: JobRecord, exposure: Exposure, plan: WhatIf, price: Price | None, short: _Shortened
) -> Scenario:
    """By the curve: failures so many times rarer."""
    assert plan.failures is not None
    if record.every is None or (record.cost is None and plan.cost is None):
        raise UsageError("failures: an average needs the cost and the interval of saves; give --save-seconds")
    cost = record.cost or 0.0
    if plan.cost is not None:
        cost = cost / float(plan.cost.factor) if plan.cost.factor is not None else plan.cost.most / 1e9
    latency = record.latency if plan.delay is None else plan.delay
    today = Curve(exposure, [record.every], Saving(record.cost or 0.0, record.latency / 1e9))
    cut = (sum(record.gaps) - sum(short.gaps)) / 1e9
    rate = float(1 / plan.failures)
    rarer = replace(exposure, gaps=max(exposure.gaps - cut, 0.0), fixed=exposure.fixed - short.exact / 1e9)
    if plan.newest:
        rarer = replace(rarer, extra=0.0)
    curve = Curve(rarer, [_every(exposure, plan) or record.every], Saving(cost, latency / 1e9))
    length = curve.lengths(curve.lost.sum(axis=0) * rate * exposure.weight, rarer.gaps * rate * exposure.weight)
    before, after = float(today.average[0]), float(length[0])
    seconds = record.window / 1e9 * (1 - after / before)
    goodputs = [float(today.goodput(today.average)[0]), float(curve.goodput(length)[0])]
    return Scenario(
        plan.changes, "average", finite(seconds), None, goodputs[1] - goodputs[0], goodputs[1], None,
        *hours_and_money(price, seconds * 1e9),
    )  # fmt: skip


def replay_facts(record: JobRecord, done: Replayed) -> ReplayFacts:
    """A replay against the record."""
    if done.ns is None:
        return ReplayFacts(None, None, 0.0, done.saves, done.deaths, None)
    goodput = 100 * record.productive / done.ns
    return ReplayFacts(done.ns / 1e9, done.ns, goodput, done.saves, done.deaths, (record.window - done.ns) / 1e9)

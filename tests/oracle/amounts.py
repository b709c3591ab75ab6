"""Seconds per category from painted cells (accounting §4 startup, §6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist

from .attempts import median
from .canvas import RANK, Canvas, Claim, painted
from .claims import claims_outside_training
from .events import NS
from .job import Job
from .lineage import TrainingSpan, net, paces, sample, usual_for_last_step
from .risen_level import KeptSpan, open_slowdown
from .training import WASTED, Training, train


@dataclass(frozen=True)
class Answer:
    """Amounts in ns: category (or "custom_badput_events:LABEL") -> ns, "excluded" included; zeros are left out.

    [t0_ns, t1_ns): the job window. ending: clean, terminated, crashed or not_logged. reference_step_time: ns, exact;
    None without a reference.
    """

    ns: dict[str, int]
    attempts: int
    disruptions: int
    kept_steps: Fraction
    t0_ns: int
    t1_ns: int
    ending: str
    reference_step_time: Fraction | None = None
    judged: bool = True
    """True if goodput can be judged (accounting §7)."""
    open_slowdown: Fraction = Fraction(0)
    """Part of `training_slowdown` (ns) that is productive if a level that rose and stayed is by design (accounting
    §6)."""

    @property
    def seconds(self) -> dict[str, Fraction]:
        """Return the amounts in seconds, exact."""
        return {name: Fraction(amount, NS) for name, amount in self.ns.items()}


def settle(job: Job) -> Answer:
    """Return the sums of the painted cells."""
    training, canvas = painting(job)
    return Books(job, training).close(canvas.totals())


def painting(job: Job) -> tuple[Training, Canvas]:
    """Paint twice: once to measure net time, then again with the wasted ends of spans kept in part."""
    training = train(job)
    claims = list(claims_outside_training(job, training))
    for number, span in enumerate(training.spans):
        rank, owner = ("kept", number) if span.kept else ("wasted", WASTED)
        claims.append(Claim(RANK[rank], span.start, span.end, owner))
    if job.options.reference is None:
        spans = [span for span in training.spans if span.lost_lines]
        claims += [
            Claim(RANK["lost_lines"], max(begin, span.start), min(end, span.end), "other")
            for span in spans
            for begin, end in job.options.lost
            if begin < span.end and end > span.start
        ]
    measured = painted(claims, job.t0, job.t1, job.options.tick)
    totals = measured.totals()
    for number, span in enumerate(training.spans):
        span.net = totals.get(number, 0)
    claims += Books(job, training).wasted_ends(measured)
    return training, painted(claims, job.t0, job.t1, job.options.tick)


def alike_to(in_time: list[Fraction]) -> Fraction:
    """Return the factor up to which a pace counts as equal (§6): a tenth above, or three times the noise of
    neighbors."""
    logs = [math.log(pace) for pace in in_time if pace > 0]
    steps = sorted(abs(b - a) for a, b in pairwise(logs))
    noise = 0.0
    if len(logs) > 2:
        half = len(steps) // 2
        noise = steps[half] if len(steps) % 2 else (steps[half - 1] + steps[half]) / 2
    return (1 + max(Fraction(1, 10), Fraction(3 * noise / (NormalDist().inv_cdf(0.75) * math.sqrt(2))))) * (
        1 + Fraction(1, 10**9)
    )


class Books:
    """Splits the net time of kept spans into startup, productive, stall or slowdown, and other."""

    def __init__(self, job: Job, training: Training) -> None:
        self.job = job
        self.training = training
        self.spans = training.spans
        self.reference = self.reference_step_time()
        self.samples = [paces(sample(self.spans, i, last_step=False)) for i in range(len(job.attempts))]
        self.usual = [median(found) for found in self.samples]

    def reference_step_time(self) -> Fraction | None:
        """Return the reference in ns (§6): as given, or the usual pace of the fastest spans. Checkpoint logs always
        have one."""
        given = self.job.options.reference
        if given not in (None, "auto"):
            return Fraction(str(given)) * NS
        if given is None and self.job.is_step_log:
            return None
        in_time = self.paces_of_auto()
        found = sorted(in_time)
        if not found:
            return None
        place = Fraction(len(found) - 1, 10)
        low = int(place)
        pace = found[low] + (found[min(low + 1, len(found) - 1)] - found[low]) * (place - low)
        if not pace:
            return None  # chosen: a step time of 0 is no reference
        alike = alike_to(in_time)
        while True:
            like_it = [one for one in found if one <= pace * alike]
            higher = median(like_it)
            if higher is None or higher <= pace:
                return sum(like_it) / Fraction(len(like_it)) or None  # chosen: as above
            pace = higher

    def paces_of_auto(self) -> list[Fraction]:
        usable = [span for span in self.spans if span.is_sample]
        return paces([s for s in usable if not s.first] or usable)

    def open_slowdown(self) -> Fraction:
        """Return the open slowdown in ns (§6), for a reference of the log itself."""
        if self.reference is None or self.job.options.reference not in (None, "auto"):
            return Fraction(0)
        kept = sorted((span for span in self.spans if span.kept), key=lambda span: span.start)
        told = [
            KeptSpan(self.counted_steps(span), Fraction(self.split(span)[1]), span.is_sample and not span.first)
            for span in kept
        ]
        return open_slowdown(told, self.reference, alike_to(self.paces_of_auto()))

    def startup(self, span: TrainingSpan) -> int:
        """Return the `program_startup` of a span, ns: only of a first one, of an attempt whose start is in the log."""
        attempt = self.job.attempts[span.attempt]
        seen = attempt.has_start or (span.attempt > 0 and not attempt.rolled_back) or span.reinit
        usual = self.usual[span.attempt]
        if not (span.first and seen and self.training.infers_startup) or usual is None:
            return 0
        spread = median([abs(pace - usual) for pace in self.samples[span.attempt]])
        assert spread is not None
        slow = Fraction(span.net) / span.steps > usual + 3 * spread
        return span.net - round(usual * span.steps) if slow else 0

    def split(self, span: TrainingSpan) -> tuple[int, int]:
        """Return (startup, net time of the kept part), ns. The rest is wasted; for the job's last step it is
        `other`."""
        if span.role == "final":
            usual = usual_for_last_step(self.spans, span.attempt, net)
            return 0, span.net if usual is None else min(span.net, round(usual * span.steps))
        startup = self.startup(span)
        return startup, round((span.net - startup) * span.kept / span.steps)

    def counted_steps(self, span: TrainingSpan) -> Fraction:
        """Return the kept steps, in proportion if an exclusion or an early end cut the span (chosen: also without
        R)."""
        if span.role == "final":
            usual = usual_for_last_step(self.spans, span.attempt, net)
            if usual is None:
                return span.steps * (1 - Fraction(span.excluded, max(span.gross, 1)))
            full = usual * span.steps
            return span.steps if span.net >= full else span.steps * span.net / full
        return span.kept * (1 - Fraction(span.excluded, max(span.gross, 1)))

    def stall(self, span: TrainingSpan, kept_net: int) -> int:
        """Return the `step_stall`, ns: step logs without a reference."""
        usual, factor = self.usual[span.attempt], self.job.options.stall_factor
        if not self.job.is_step_log or span.role != "plain" or not factor or not usual:
            return 0
        stalled = kept_net > factor * usual * span.kept
        return kept_net - round(usual * span.kept) if stalled else 0

    def wasted_ends(self, measured: Canvas) -> list[Claim]:
        """Return the claims of wasted ends. Chosen: once its kept net time is used up, a span is wasted with all in
        it."""
        claims = []
        for number, span in enumerate(self.spans):
            if 0 < span.kept < span.steps:
                instant = max(measured.time_after(number, sum(self.split(span))), span.start)
                claims.append(Claim(RANK["wasted"], instant, span.end, WASTED))
        return claims

    def close(self, totals: dict[str | int, int]) -> Answer:
        """Return the final sums, which add up to the window."""
        job = self.job
        ns = {owner: amount for owner, amount in totals.items() if isinstance(owner, str)}
        kept = [(number, span) for number, span in enumerate(self.spans) if span.kept]
        for number, span in kept:
            for category, amount in self.parts(span, totals.get(number, 0)).items():
                ns[category] = ns.get(category, 0) + amount
        steps = sum((self.counted_steps(span) for _, span in kept), Fraction(0))
        if self.reference is not None:
            ns["training_slowdown"] = ns.get("productive", 0) - round(steps * self.reference)
            ns["productive"] = round(steps * self.reference)
        ns = {name: amount for name, amount in ns.items() if amount}
        assert sum(ns.values()) == job.t1 - job.t0, "the categories add up to the window"
        attempts = sum(not attempt.rolled_back for attempt in job.attempts)
        return Answer(
            ns, attempts, job.disruptions(), steps, job.t0, job.t1, job.ending(), self.reference, self.is_judged(ns),
            self.open_slowdown(),
        )  # fmt: skip

    def is_judged(self, ns: dict[str, int]) -> bool:
        """Return True if lines show where training was, or that there was none."""
        job = self.job
        numbers = {step.number for attempt in job.attempts for step in attempt.steps}
        if job.is_step_log and len(numbers) == 2:
            return max(numbers) - min(numbers) == 1
        if job.is_step_log and len(numbers) == 1:
            return not job.step_ends or max(numbers) <= 1
        if numbers if job.is_step_log else self.spans:
            return True
        may_be_training = (
            "other",
            "infrastructure_recovery_from_disruption",
            "disruption_undetermined",
            "custom_badput_events",
        )
        return job.ending() == "crashed" or not any(ns.get(name, 0) > 0 for name in may_be_training)

    def parts(self, span: TrainingSpan, held: int) -> dict[str, int]:
        """Return the categories of the `held` ns of a kept span; slowdown is separated only in the sum."""
        startup, kept_net = self.split(span)
        stall = self.stall(span, kept_net) if self.reference is None else 0
        other = held - startup - kept_net
        return {"program_startup": startup, "step_stall": stall, "productive": kept_net - stall, "other": other}

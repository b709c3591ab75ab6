"""From painted cells to seconds per category (accounting §4 startup, §6)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .attempts import median
from .canvas import RANK, Canvas, Claim, painted
from .claims import claims_beside_training
from .events import NS
from .job import Job
from .lineage import Stretch, net, paces, sample, usual_for_last_step
from .training import WASTED, Training, train


@dataclass(frozen=True)
class Answer:
    """ns: category (or "custom_badput_events:LABEL") -> ns, "excluded" included; zeros are left out.

    [t0_ns, t1_ns): the job window. ending: clean, terminated, crashed or not_logged.
    reference_step_time: ns, exact; None without a reference.
    """

    ns: dict[str, int]
    attempts: int
    disruptions: int
    kept_steps: Fraction
    t0_ns: int
    t1_ns: int
    ending: str
    reference_step_time: Fraction | None = None

    @property
    def seconds(self) -> dict[str, Fraction]:
        """The same in seconds, exact."""
        return {name: Fraction(amount, NS) for name, amount in self.ns.items()}


def settle(job: Job) -> Answer:
    """Paints twice: once to measure net time, then again with the wasted ends of stretches kept in part."""
    training = train(job)
    claims = list(claims_beside_training(job, training))
    for number, stretch in enumerate(training.stretches):
        rank, owner = ("kept", number) if stretch.kept else ("wasted", WASTED)
        claims.append(Claim(RANK[rank], stretch.start, stretch.end, owner))
    measured = painted(claims, job.t0, job.t1, job.options.tick)
    totals = measured.totals()
    for number, stretch in enumerate(training.stretches):
        stretch.net = totals.get(number, 0)
    books = Books(job, training)
    claims += books.wasted_ends(measured)
    return books.close(painted(claims, job.t0, job.t1, job.options.tick).totals())


class Books:
    """Splits the net time of kept stretches into startup, productive, stall or slowdown, and other."""

    def __init__(self, job: Job, training: Training) -> None:
        self.job = job
        self.training = training
        self.stretches = training.stretches
        self.reference = self.reference_step_time()
        self.samples = [paces(sample(self.stretches, i, last_step=False)) for i in range(len(job.attempts))]
        self.usual = [median(found) for found in self.samples]

    def reference_step_time(self) -> Fraction | None:
        """§6, ns: given; or the 10th percentile (linear), always so in checkpoint logs with no value given."""
        given = self.job.options.reference
        if given not in (None, "auto"):
            return Fraction(str(given)) * NS
        if given is None and self.job.is_step_log:
            return None
        usable = [stretch for stretch in self.stretches if stretch.is_sample]
        found = sorted(paces([s for s in usable if not s.first] or usable))
        if not found:
            return None
        place = Fraction(len(found) - 1, 10)
        low = int(place)
        # Chosen: a step time of 0 is none.
        return found[low] + (found[min(low + 1, len(found) - 1)] - found[low]) * (place - low) or None

    def startup(self, stretch: Stretch) -> int:
        """`program_startup` of a stretch, ns: only of a first one, of an attempt whose beginning was seen."""
        seen = self.job.attempts[stretch.attempt].has_start or stretch.attempt > 0 or stretch.reinit
        usual = self.usual[stretch.attempt]
        if not (stretch.first and seen and self.training.infers_startup) or usual is None:
            return 0
        spread = median([abs(pace - usual) for pace in self.samples[stretch.attempt]])
        assert spread is not None
        slow = Fraction(stretch.net) / stretch.steps > usual + 3 * spread
        return stretch.net - round(usual * stretch.steps) if slow else 0

    def split(self, stretch: Stretch) -> tuple[int, int]:
        """(startup, net time of the kept part), ns. What is left is wasted; of the job's last step, `other`."""
        if stretch.role == "final":
            usual = usual_for_last_step(self.stretches, stretch.attempt, net)
            return 0, stretch.net if usual is None else min(stretch.net, round(usual * stretch.steps))
        startup = self.startup(stretch)
        return startup, round((stretch.net - startup) * stretch.kept / stretch.steps)

    def counted_steps(self, stretch: Stretch) -> Fraction:
        """Kept steps, in proportion where an exclusion or an early end cut the stretch (chosen: also without R)."""
        if stretch.role == "final":
            usual = usual_for_last_step(self.stretches, stretch.attempt, net)
            if usual is None:
                return stretch.steps * (1 - Fraction(stretch.excluded, max(stretch.gross, 1)))
            full = usual * stretch.steps
            return stretch.steps if stretch.net >= full else stretch.steps * stretch.net / full
        return stretch.kept * (1 - Fraction(stretch.excluded, max(stretch.gross, 1)))

    def stall(self, stretch: Stretch, kept_net: int) -> int:
        """`step_stall`, ns: step logs without a reference."""
        usual, factor = self.usual[stretch.attempt], self.job.options.stall_factor
        if not self.job.is_step_log or stretch.role != "plain" or not factor or not usual:
            return 0
        stalled = kept_net > factor * usual * stretch.kept
        return kept_net - round(usual * stretch.kept) if stalled else 0

    def wasted_ends(self, measured: Canvas) -> list[Claim]:
        """Chosen: behind the instant at which its kept net time is used up, a stretch is wasted with all in it."""
        claims = []
        for number, stretch in enumerate(self.stretches):
            if 0 < stretch.kept < stretch.steps:
                instant = max(measured.instant_after(number, sum(self.split(stretch))), stretch.start)
                claims.append(Claim(RANK["wasted"], instant, stretch.end, WASTED))
        return claims

    def close(self, totals: dict[str | int, int]) -> Answer:
        """The final sums, which add up to the window."""
        job = self.job
        ns = {owner: amount for owner, amount in totals.items() if isinstance(owner, str)}
        kept = [(number, stretch) for number, stretch in enumerate(self.stretches) if stretch.kept]
        for number, stretch in kept:
            for category, amount in self.parts(stretch, totals.get(number, 0)).items():
                ns[category] = ns.get(category, 0) + amount
        steps = sum((self.counted_steps(stretch) for _, stretch in kept), Fraction(0))
        if self.reference is not None:
            ns["training_slowdown"] = ns.get("productive", 0) - round(steps * self.reference)
            ns["productive"] = round(steps * self.reference)
        ns = {name: amount for name, amount in ns.items() if amount}
        assert sum(ns.values()) == job.t1 - job.t0, "the categories add up to the window"
        return Answer(ns, len(job.attempts), job.disruptions(), steps, job.t0, job.t1, job.ending(), self.reference)

    def parts(self, stretch: Stretch, held: int) -> dict[str, int]:
        """Where the `held` ns of a kept stretch go; slowdown is told apart only in the sum."""
        startup, kept_net = self.split(stretch)
        stall = self.stall(stretch, kept_net) if self.reference is None else 0
        other = held - startup - kept_net
        return {"program_startup": startup, "step_stall": stall, "productive": kept_net - stall, "other": other}

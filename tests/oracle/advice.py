"""An oracle for advice: the attempts of a job in plain, slow Python, from the text of docs/advice.md alone.

Every step is separate: an attempt is a list of step times, and `advice_replay` walks over them one by one. It takes
attempts, spans and claims from the accounting oracle, and nothing from `goodput_cli`. It does not support exclusions,
given costs or chosen times of death.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

from .amounts import Books
from .attempts import median
from .canvas import RANK, Canvas, Claim, painted
from .claims import claims_outside_training
from .events import Event, read
from .job import Job, Options, job_from_events
from .life import Pairing, lost_end
from .lineage import TrainingSpan
from .lives import Record, Span, TrainedAttempt, covered, latest
from .training import WASTED, Training, train


def record(lines: Iterable[str]) -> Record | None:
    """Return the record of a job; None if no step was trained, or the log spans no time."""
    events = read(lines, "UTC")
    try:
        job = job_from_events(events, None, Options(None, (), False, False, Fraction(5), 10**9))
    except ValueError:
        return None
    return Reader(job).record() if job.t1 > job.t0 else None


class Reader:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.training: Training = train(job)
        self.measure()
        self.books = Books(job, self.training)
        self.behind = 1 if job.is_step_log else 0

    def measure(self) -> None:
        """Measure the net time of every span, of wasted ones as if they were kept."""
        claims = [claim for claim in claims_outside_training(self.job, self.training) if claim.owner != WASTED]
        for number, stretch in enumerate(self.training.spans):
            claims.append(Claim(RANK["kept"], stretch.start, stretch.end, number))
        totals = painted(claims, self.job.t0, self.job.t1, self.job.options.tick).totals()
        for number, stretch in enumerate(self.training.spans):
            stretch.net = totals.get(number, 0)

    def record(self) -> Record | None:
        if not self.job.is_step_log:
            return None
        lives = [life for index in range(len(self.job.attempts)) if (life := self.attempt_of(index)) is not None]
        if not lives:
            return None
        for life, following in pairwise(lives):
            life.resumed = following.first
            life.clean = self.job.clean[life.attempt] is not None or self.job.was_planned(life.attempt)
        self.end_position(lives)
        for life in lives:
            self.settle(life, lives)
        last, end = self.end_position(lives)
        failed = lives[-1].attempt == self.job.last and bool(lives[-1].times)
        failed = failed and self.job.ending() in ("terminated", "crashed")
        return Record(self.job, lives, end, last, self.shift(lives), failed)

    def stretches(self, index: int) -> list[TrainingSpan]:
        return [stretch for stretch in self.training.spans if stretch.attempt == index]

    def attempt_of(self, index: int) -> TrainedAttempt | None:
        """Return an attempt step by step; the time of a span with several steps is distributed evenly, rounded down per
        step."""
        steps = self.job.attempts[index].steps
        if not steps:
            return None
        life = TrainedAttempt(index, steps[0].number, steps[0].time)
        life.death = self.death(index)
        for stretch in self.stretches(index):
            if stretch.role == "plain":
                self.add(
                    life, self.saves_of(index, life.death), stretch, stretch.start, stretch.end, int(stretch.steps)
                )
        self.last_step(life, steps[-1])
        self.note_saves(life)
        return life

    def death(self, index: int) -> int:
        if index == self.job.last:
            return self.job.t1
        return min(self.training.last_activity(self.job, index), self.job.next_begin(index))

    def saves_of(self, index: int, death: int) -> dict[int, list[Span]]:
        """Return the completed saves of an attempt: step -> the time that each host's line covers."""
        found: dict[int, list[Span]] = {}
        broken = set()
        for event in self.job.attempts[index].events:
            if event.kind == "save":
                found.setdefault(event.number, []).append((event.time, event.end))
                if event.end > death:
                    broken.add(event.number)
        begin = self.job.attempts[index].steps[0].time
        first = self.job.attempts[index].steps[0].number
        whole = {step: spans for step, spans in found.items() if step not in broken and step >= first}
        return {step: [span for span in spans if span[0] >= begin] for step, spans in whole.items()}

    def own_saves(self, life: TrainedAttempt) -> dict[int, list[Span]]:
        """Return the saves of steps that it completed; earlier ones are needed before that is known."""
        return {s: spans for s, spans in self.saves_of(life.attempt, life.death).items() if spans and s < life.stop}

    def add(
        self,
        life: TrainedAttempt,
        saves: dict[int, list[Span]],
        stretch: TrainingSpan | None,
        start: int,
        end: int,
        count: int,
    ) -> None:
        """Add the steps of [start, end), without saves, start-up and evals, and add their evals."""
        saved = [span for step, spans in saves.items() if step <= self.highest(life.attempt) for span in spans]
        evals = covered(self.evals() + saved, start, end) - covered(saved, start, end)
        startup = 0
        if stretch is not None and stretch.first and not stretch.reinit and len(self.stretches(life.attempt)) > 0:
            startup = self.books.startup(stretch)
        if startup:
            life.startup = startup
        plain = end - start - covered(saved, start, end) - startup - evals
        for step in range(count):
            life.evals[life.stop] = evals * (step + 1) // count - evals * step // count
            life.times.append(plain * (step + 1) // count - plain * step // count)
        life.seen = end

    def highest(self, index: int) -> int:
        """Return the highest step whose end may be visible in an attempt."""
        steps = self.job.attempts[index].steps
        credited = [stretch for stretch in self.stretches(index) if stretch.role in ("credited", "final")]
        extra = int(sum(stretch.steps for stretch in credited)) if credited else 0
        return steps[-1].number + max(extra - 1, 0)

    def last_step(self, life: TrainedAttempt, step: Event) -> None:
        """Add the last step: complete if it was credited, if it is the job's last, or if its save shows its end."""
        index = life.attempt
        ends = {stretch.role: stretch for stretch in self.stretches(index)}
        saves = self.saves_of(index, life.death)
        if index == self.job.last:
            self.job_s_last_step(life, step, saves)
            return
        credited = ends.get("credited")
        resumed_at = self.training.credited_end.get(index)
        count = self.training.credited_count.get(index, 1)
        shown = [begin for begin, _ in saves.get(step.number + count - 1, []) if begin >= step.time]
        if resumed_at is None and not shown:
            life.complete, life.seen = False, step.time
            return
        end = min(shown) if shown else (credited.end if credited is not None else resumed_at or step.time)
        self.add(life, saves, None, step.time, end, count)

    def job_s_last_step(self, life: TrainedAttempt, step: Event, saves: dict[int, list[Span]]) -> None:
        final = next((s for s in self.stretches(life.attempt) if s.role == "final"), None)
        if final is None:
            self.add(life, saves, None, step.time, step.time, 1)
            return
        _, kept = self.books.split(final)
        claims = [c for c in claims_outside_training(self.job, self.training) if c.owner != WASTED]
        claims.append(Claim(RANK["kept"], final.start, final.end, 0))
        canvas: Canvas = painted(claims, self.job.t0, self.job.t1, 10**9)
        end = max(canvas.time_after(0, kept), final.start) if kept else final.start
        self.add(life, saves, None, final.start, end, int(final.steps))

    def note_saves(self, life: TrainedAttempt) -> None:
        """Add the blocking time of each save: overlapping time counts once, for the save that began first."""
        spans = sorted((b, e, step) for step, spans in self.own_saves(life).items() for b, e in spans)
        reach = 0
        for begin, end, step in spans:
            life.saves[step + 1] = life.saves.get(step + 1, 0) + max(end - max(begin, reach), 0)
            reach = max(reach, end)

    def evals(self) -> list[Span]:
        """Return all custom events of the job."""
        found = []
        for interval in Pairing().run(self.job.attempts):
            if interval.kind != "custom":
                continue
            end = interval.end
            if end is None:
                t1 = self.job.t1 if interval.owner == self.job.last else None
                end = lost_end(
                    interval,
                    self.job.attempts[interval.owner],
                    self.training.last_activity(self.job, interval.owner),
                    t1,
                )
            if end is not None and end > interval.start:
                found.append((interval.start, end))
        return found

    def settle(self, life: TrainedAttempt, lives: list[TrainedAttempt]) -> None:
        """Compute usual time, hang and budget."""
        middle = median([Fraction(time) for time in life.times[1:] or life.times])
        life.usual = (round(middle) if middle is not None else 0) or self.unit()
        saved = sum(life.saves.values())
        if life.resumed is None:
            open_ = 0 if life.complete else self.training.wasted_end.get(life.attempt, life.seen) - life.seen
            life.budget = life.gross + saved + open_
            return
        blocked = [span for spans in self.own_saves(life).values() for span in spans]
        behind = life.death - life.seen - covered(blocked, life.seen, life.death)
        if life.complete:
            life.hang = behind
        else:
            step = max(life.usual + latest(lives, life.stop), 1)
            life.hang = max(behind - (step - 1), 0)
        life.budget = life.death - life.begin - life.startup - life.hang

    def unit(self) -> int:
        """Return the usual step time of the job."""
        plain = [s for s in self.training.spans if s.is_sample]
        timed = [s for s in self.training.spans if s.role == "plain"]
        for chosen in ([s for s in plain if not s.first], plain, timed):
            paces = [Fraction(s.net) / s.steps for s in chosen]
            if paces:
                return max(round(median(paces) or 0), 1)
        return 1

    def end_position(self, lives: list[TrainedAttempt]) -> tuple[int, int]:
        """Return the attempt that came farthest, and the position after its last kept step."""
        last, end = len(lives) - 1, lives[-1].stop
        if not lives[-1].times:
            kept = [life for life in lives if any(s.kept for s in self.stretches(life.attempt))]
            if kept:
                last = lives.index(kept[-1])
                end = self.kept_stop(kept[-1])
        farthest = [life.stop for life in lives[:last]]
        if farthest and max(farthest) > end:
            end = max(farthest)
            last = max(index for index, stop in enumerate(farthest) if stop == end)
        return last, end

    def kept_stop(self, life: TrainedAttempt) -> int:
        position = life.first
        for stretch in self.stretches(life.attempt):
            credited = stretch.role == "credited"
            position += self.training.credited_count[life.attempt] if credited else int(stretch.kept)
        return position

    def shift(self, lives: list[TrainedAttempt]) -> int:
        """Return the shift from restores of saved steps: the most common one, of equals the smaller."""
        saved = {event.number for event in self.job.events if event.kind == "save" and event.step is not None}
        offsets = []
        for life in lives:
            restores = [
                event.number for event in self.job.attempts[life.attempt].events
                if event.kind == "restore" and event.step in saved and event.time <= life.begin
            ]  # fmt: skip
            if restores:
                offsets.append(life.first - restores[-1])
        return min(offsets, key=lambda one: (-offsets.count(one), one)) - 1 if offsets else 0

"""`python -m benchmarks.advice`: quality of advice, and speed of replays. Prints the tables."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from benchmarks.advice_jobs import BURSTS, Job, best_interval, goodput_of_run, record_of_job, true_goodput
from goodput_cli.analysis.advice.curve import LossCurve, SaveCost, exposure_of
from goodput_cli.analysis.advice.draws import one_run, spread
from goodput_cli.analysis.advice.interval import interval_advice
from goodput_cli.analysis.advice.replay import RecordedSaves, SaveEvery, replay

JOBS = 300


def honesty(job: Job, today: int, best: int, jobs: int = JOBS, seed: int = 1) -> dict[str, float]:
    """Return statistics of records of one job that saves every `today` steps. Shares (percent) of records with the
    advice to change and to keep, the mean and the worst true gain (points) of a change, and how often the 95 % range
    touches the true plateau."""
    random = np.random.default_rng(seed)
    told, kept, gains, touched = 0, 0, [], 0
    top, good = true_goodput(job, best), true_goodput(job, best, 4000) - 0.1
    plateau = [every for every in range(1, 6 * best) if true_goodput(job, every, 4000) >= good]
    before = true_goodput(job, today)
    for _ in range(jobs):
        record = record_of_job(replace(job, every=today), random)
        advice = interval_advice(record, exposure_of(record)).advice
        told += advice.verdict == "change"
        kept += advice.verdict == "keep"
        if advice.verdict == "change" and advice.every_steps is not None:
            gains.append(true_goodput(job, advice.every_steps) - before)
        if advice.ci95_steps is not None and advice.ci95_steps[1] is not None:
            touched += advice.ci95_steps[0] <= plateau[-1] and advice.ci95_steps[1] >= plateau[0]
    return {
        "change": 100 * told / jobs, "keep": 100 * kept / jobs, "touches": 100 * touched / jobs, "best": top,
        "gain": float(np.mean(gains)) if gains else 0.0, "worst": min(gains, default=0.0),
    }  # fmt: skip


def print_honesty() -> None:
    """Print the table of docs/advice.md."""
    print(f"{'lives':<14}{'failures':>9}{'today':>16}{'change':>9}{'keep':>9}{'gain':>8}{'worst':>8}{'touches':>9}")
    for shape, name in ((1.0, "exponential"), (0.6, "Weibull 0.6"), (0.4, "Weibull 0.4")):
        best = best_interval(Job(shape))
        for failures in (4, 10, 30):
            for factor, words in ((1.0, "already best"), (3.5, "3.5 x the best"), (0.2, "0.2 x the best")):
                today = max(round(best * factor), 1)
                row = honesty(Job(shape, failures=failures), today, best)
                print(
                    f"{name:<14}{failures:>9}{words:>16}{row['change']:>8.0f}%{row['keep']:>8.0f}%{row['gain']:>+8.2f}"
                    f"{row['worst']:>+8.2f}{row['touches']:>8.0f}%"
                )


def cover(job: Job, jobs: int = 400, seed: int = 5) -> float:
    """Return the share of records (percent) whose 95 % range of today's average contains the average of the job."""
    random, held = np.random.default_rng(seed), 0
    drawn = job.drawn(np.random.default_rng(99), 400_000)
    share = float(drawn.sum() / (np.floor(drawn / (job.every * job.step + job.cost)) * job.every * job.step).sum())
    gaps = len(drawn) * job.gap / float(drawn.sum())
    for _ in range(jobs):
        one = exposure_of(record_of_job(job, random))
        average = 100 * one.productive / (one.fixed + one.work * share * (1 + gaps))
        low, high = spread(LossCurve(one, [job.every], SaveCost(job.cost)), None, None).goodput[:, 0].tolist()
        held += low <= average <= high
    return 100 * held / jobs


def cover_of_runs(job: Job, jobs: int = 200, runs: int = 10, seed: int = 5) -> float:
    """Return the share of new runs (percent) whose goodput is in the range of one run. runs: per record."""
    random, chance, held = np.random.default_rng(seed), np.random.default_rng(seed + 1), 0
    for _ in range(jobs):
        exposure = exposure_of(record_of_job(job, random))
        ends = one_run(LossCurve(exposure, [job.every], SaveCost(job.cost)))
        assert ends is not None
        held += sum(ends[0] <= goodput_of_run(job, exposure, chance) <= ends[1] for _ in range(runs))
    return 100 * held / (jobs * runs)


def print_cover() -> None:
    """Print how often the 95 % range of the average contains it, and that of one run another run."""
    failures = (4, 10, 20, 30, 60)
    print(f"{'lives':<14}{'range':<9}" + "".join(f"{count:>6}" for count in failures) + "  failures")
    for name, job in (("exponential", Job(1.0)), ("Weibull 0.7", Job(0.7)), ("bursts", BURSTS)):
        jobs = [replace(job, failures=count) for count in failures]
        for kind, of_jobs in (("average", map(cover, jobs)), ("one run", map(cover_of_runs, jobs))):
            print(f"{name:<14}{kind:<9}" + "".join(f"{one:>5.0f}%" for one in of_jobs))


def print_speed(steps: int = 1_000_000, lives: int = 100) -> None:
    """Print the time of a hundred replays of a million steps."""
    step = 1.0
    job = Job(1.0, mean=steps * step / lives, cost=5.0, step=step, failures=lives, every=200)
    record = record_of_job(job, np.random.default_rng(3))
    begun = time.process_time()
    exact = replay(record, RecordedSaves(record)).ns == record.window
    intervals = sorted({round(1.1**power) for power in range(1, 130)})[:100]
    begun_all = time.process_time()
    for every in intervals:
        replay(record, SaveEvery(record, every))
    ended = time.process_time()
    print(f"{record.end} steps, {len(record.lives)} lives, exact: {exact}")
    print(f"the record {begun_all - begun:.3f} s of processor time, {len(intervals)} intervals", end=" ")
    print(f"{ended - begun_all:.2f} s (target 2 s)")


if __name__ == "__main__":
    print_cover()
    print_speed()
    print_honesty()

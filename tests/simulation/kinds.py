"""Kinds of jobs: their course, root cause and cost.

Each function simulates one job and returns the truth about it. The seed draws lengths, times and locations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.job import Job


@dataclass(frozen=True)
class Truth:
    """Known facts of a job."""

    says: str
    """A regular expression that the screen must match: the cause."""
    seconds: float | None
    """Its cost; None if the screen need not show an amount."""
    never: str = ""
    """A regular expression that the screen must not match: a false cause or advice."""
    healthy: bool = False
    """True if the screen must not report a problem."""


Kind = Callable[[Job], Truth]
_BLAME = "→"


def death_in_background_save(job: Job) -> Truth:
    """The newest save was not complete when the job died, so the restore of the previous one is right."""
    job.start()
    apart = int(job.random.integers(250, 350))
    for number in range(4):
        job.steps(apart)
        job.background_save(completes_after=90.0 if number < 3 else None)
    job.steps(5)
    lost = 5 * job.usual
    job.now += 180
    job.start()
    job.restore(3 * apart - 1)
    job.steps(2 * apart)
    job.end()
    return Truth("incomplete|never complete|unfinished", apart * job.usual + lost, "though .* saved|newest complete")


def saves_that_never_complete(job: Job) -> Truth:
    job.start()
    for number in range(8):
        job.steps(150)
        job.background_save(completes_after=40.0 if number < 2 else None)
    job.steps(40)
    job.now += 240
    job.start()
    job.restore(299)
    job.steps(900)
    job.end()
    return Truth("(never|not) complete", (900 + 40) * job.usual, "restore the newest|though .* saved")


def hang_until_interrupted(job: Job) -> Truth:
    job.start()
    job.steps(700, saves=100)
    hours = float(job.random.uniform(5, 9))
    job.begin_step()
    job.heartbeats(hours * 3600)
    job.now += 120
    job.start()
    job.restore(699)
    job.steps(900, saves=100)
    job.end()
    return Truth("step 700 hung", hours * 3600, "frequent enough|save (more|about)|undid training")


def watchdog_after_half_an_hour(job: Job) -> Truth:
    """Six times a collective waits for 30 min until its watchdog ends the job."""
    job.start()
    for _ in range(6):
        job.steps(int(job.random.integers(210, 290)), saves=50)
        reached = job.step_number
        job.begin_step()
        job.now += 1800
        job.crash("Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran "
                  "for 1800086 milliseconds before timing out.")  # fmt: skip
        job.now += 60
        job.start()
        job.restore(reached - reached % 50 - 1)
    job.steps(200, saves=50)
    job.end()
    return Truth("(waited|hung|watchdog|timeout).*30 min", 6 * 1800, "save a checkpoint|save more often")


def out_of_memory_in_one_step(job: Job) -> Truth:
    """The batch of one step does not fit; the seventh start skips it."""
    job.start()
    fatal = int(job.random.integers(1150, 1250))
    job.steps(fatal, saves=50)
    for _ in range(6):
        job.begin_step()
        job.now += 3
        job.crash("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
        job.now += 120
        job.start()
        job.restore(fatal - fatal % 50 - 1)
        job.steps(fatal % 50)
    job.steps(600, saves=50)
    job.end()
    lost = 6 * (120 + fatal % 50 * job.usual)  # downtime, and redone training; the start-up of each is a separate line
    return Truth(f"in step {fatal}", lost, "save a checkpoint|save more often")


def loads_of_each_epoch(job: Job) -> Truth:
    job.start()
    each = float(job.random.uniform(120, 180))
    for _ in range(14):
        job.steps(200)
        job.loading(each)
    job.steps(100)
    job.end()
    return Truth("(every|each) 200 steps", 14 * each, "hung|watchdog")


def steps_that_wait_for_data(job: Job) -> Truth:
    job.usual = 11.0
    job.start()
    for _ in range(1500):
        job.loading(3.0, inside=True)
        job.step()
    job.end()
    return Truth("(data|loading).*27|27.*(data|loading)", 4500)


def garbage_collection(job: Job) -> Truth:
    job.start()
    for number in range(2000):
        job.step(job.usual + (9.0 if number % 20 == 19 else 0.0))
    job.end()
    return Truth("every 20", 900)


def drift(job: Job) -> Truth:
    job.start()
    steps, lost = int(job.random.integers(7000, 9000)), 0.0
    for number in range(steps):
        lost += 1.6 * number / steps
        job.step(8.0 + 1.6 * number / steps)
        if job.step_number % 500 == 0:
            job.save()
    job.end()
    return Truth("(drift|slower|grew steadily).*(8\\.0|9\\.[56])", lost)


def saves_that_grow(job: Job) -> Truth:
    job.start()
    for number in range(40):
        job.steps(60)
        job.save(30 + 170 * number / 39)
    job.end()
    return Truth("saves? .*(grew|longer|from)", sum(170 * number / 39 for number in range(40)))


def one_save_of_forty_minutes(job: Job) -> Truth:
    job.start()
    for number in range(15):
        job.steps(100)
        job.save(2400 if number == 8 else 20)
    job.end()
    return Truth("save of step 899 took 40 min", 2380)


def planned_stop(job: Job) -> Truth:
    job.start()
    job.steps(800, saves=100)
    job.event("stopped", reason="maintenance of the cluster")
    job.now += 2700
    job.start()
    job.restore(799)
    job.steps(800, saves=100)
    job.end()
    return Truth("planned stop|stopped", 2700, "given up|sooner")


def hangs_now(job: Job) -> Truth:
    job.start()
    job.steps(600, saves=100)
    job.begin_step()
    job.heartbeats(2400)
    return Truth("(hangs|no step) .*(now|since|40 min)", 2400, "log start-up")


def longer_sequences_by_design(job: Job) -> Truth:
    job.start()
    job.steps(900, 8.0, saves=300)
    job.steps(900, 11.0, saves=300)
    job.end()
    return Truth("unknown whether slow or by design", 900 * 3.0)


def warm_up_that_becomes_faster(job: Job) -> Truth:
    job.start()
    job.steps(500, 11.0, saves=300)
    job.steps(1500, 8.0, saves=300)
    job.end()
    return Truth("unless the change was planned", 500 * 3.0, "those before")


def quick_restarts(job: Job) -> Truth:
    """Crashes that are logged and restarted at once: training was lost, with little downtime."""
    job.start()
    down = lost = 0.0
    for _ in range(5):
        job.steps(int(job.random.integers(380, 395)), saves=200)
        behind = job.step_number % 200
        job.crash("RuntimeError: CUDA error: unspecified launch failure")
        job.now += 90
        down, lost = down + 150, lost + behind * job.usual
        job.start()
        job.restore(job.step_number - behind - 1)
    job.steps(400, saves=200)
    job.end()
    return Truth("fail|disruption", lost, "detect failures sooner|restart automatically")


def older_checkpoint(job: Job) -> Truth:
    job.start()
    job.steps(1810, saves=200)
    job.now += 120
    job.start()
    job.restore(1199)
    job.steps(1500, saves=200)
    job.end()
    return Truth("restored step 1199, although .* complete", 600 * job.usual)


def kept_step_that_hangs(job: Job) -> Truth:
    job.start()
    long = float(job.random.uniform(1500, 3600))
    job.steps(700, saves=200)
    job.step(long)
    job.steps(700, saves=200)
    job.end()
    return Truth("step 700 hung", long - 8)


def starts_that_die(job: Job) -> Truth:
    """Half an hour in which no start reaches a step."""
    job.start()
    job.steps(500, saves=50)
    for _ in range(20):
        job.crash()
        job.now += 75
        job.write_line(job_start_time=job.now)
        job.now += 15
    job.now += 75
    job.start()
    job.restore(499)
    job.steps(600, saves=50)
    job.end()
    return Truth("starts failed", 20 * 90)


def long_outage(job: Job) -> Truth:
    job.start()
    hours = float(job.random.uniform(3, 6))
    for number in range(4):
        job.steps(300, saves=50)
        job.now += hours * 3600 if number == 2 else 300
        job.start()
        job.restore(job.step_number - 1)
    job.steps(300, saves=50)
    job.end()
    return Truth("nothing ran", hours * 3600)


def slow_stretch(job: Job) -> Truth:
    job.start()
    job.steps(800, saves=200)
    job.steps(500, 10.5, saves=200)
    job.steps(700, saves=200)
    job.end()
    return Truth("1\\.31 x", 500 * 2.5)


def saves_too_rare(job: Job) -> Truth:
    job.start()
    lost = 0.0
    for _ in range(6):
        job.steps(int(job.random.integers(480, 790)), saves=400, save=4.0)
        behind = job.step_number % 400
        job.now += 100
        lost += behind * job.usual
        job.start()
        job.restore(job.step_number - behind - 1)
    job.steps(500, saves=400, save=4.0)
    job.end()
    return Truth("lost the work since", lost)


def saves_too_frequent(job: Job) -> Truth:
    job.start()
    for _ in range(3):
        job.steps(800, saves=5, save=12.0)
        job.now += 100
        job.start()
        job.restore(job.step_number - 1)
    job.steps(800, saves=5, save=12.0)
    job.end()
    return Truth("saves of 12", 640 * 12.0)


def slow_starts(job: Job) -> Truth:
    job.start(1500)
    job.steps(700, saves=100)
    job.end()
    return Truth("start-up", 1500)


def much_evaluation(job: Job) -> Truth:
    job.start()
    for _ in range(20):
        job.steps(60)
        job.custom("EVAL", 90)
    job.end()
    return Truth("EVAL", 1800)


def two_populations_and_a_slow_node(job: Job) -> Truth:
    """Every other step takes twice as long; 500 of them become 1.2 s longer."""
    job.start()
    for number in range(2000):
        job.step((6.0 if number % 2 else 12.0) + (1.8 if 1000 <= number < 1500 else 0.0))
    job.end()
    return Truth("steps \\d+ to \\d+ took", 500 * 1.8)


def healthy(job: Job) -> Truth:
    job.start()
    job.steps(int(job.random.integers(1500, 2500)), saves=250)
    job.end()
    return Truth("", None, _BLAME, healthy=True)


def healthy_and_noisy(job: Job) -> Truth:
    job.noise = 0.15
    return healthy(job)


def healthy_with_heavy_tails(job: Job) -> Truth:
    """One step of eighty takes up to six times as long: an occasional network delay."""
    job.start()
    for _ in range(2500):
        odd = job.random.random() < 0.0125
        job.step(job.usual * float(job.random.uniform(1.5, 6)) if odd else None)
    job.end()
    return Truth("", None, _BLAME, healthy=True)


def healthy_with_two_populations(job: Job) -> Truth:
    job.start()
    for number in range(1800):
        job.step(6.0 if number % 2 else 9.0)
        if job.step_number % 300 == 0:
            job.save()
    job.end()
    return Truth("", None, _BLAME, healthy=True)


def healthy_and_restarted_once(job: Job) -> Truth:
    """One restart with a save on notice costs almost nothing in half a day."""
    job.start()
    job.steps(2500, saves=250)
    job.event("terminated", reason="preempted")
    job.now += 45
    job.start()
    job.restore(2499)
    job.steps(2500, saves=250)
    job.end()
    return Truth("", None, _BLAME, healthy=True)


def healthy_with_evaluations(job: Job) -> Truth:
    job.start()
    for _ in range(9):
        job.steps(220, saves=110)
        job.custom("EVAL", 60)
    job.end()
    return Truth("", None, _BLAME, healthy=True)


def healthy_and_still_running(job: Job) -> Truth:
    job.start()
    for _ in range(1500):
        job.step()
        if job.step_number % 10 == 0:
            job.event("heartbeat", step=job.step_number)
        if job.step_number % 250 == 0:
            job.save()
    return Truth("", None, _BLAME, healthy=True)


def two_steps(job: Job) -> Truth:
    job.start(30)
    job.steps(2)
    job.end()
    return Truth("too few steps", None, "hung|slow|watchdog|compare")


KINDS: tuple[Kind, ...] = (
    death_in_background_save, saves_that_never_complete, hang_until_interrupted, watchdog_after_half_an_hour,
    out_of_memory_in_one_step, loads_of_each_epoch, steps_that_wait_for_data, garbage_collection, drift,
    saves_that_grow, one_save_of_forty_minutes, planned_stop, hangs_now, longer_sequences_by_design,
    warm_up_that_becomes_faster, quick_restarts, older_checkpoint, kept_step_that_hangs, starts_that_die, long_outage,
    slow_stretch, saves_too_rare, saves_too_frequent, slow_starts, much_evaluation, two_populations_and_a_slow_node,
    healthy, healthy_and_noisy, healthy_with_heavy_tails, healthy_with_two_populations, healthy_and_restarted_once,
    healthy_with_evaluations,
    healthy_and_still_running, two_steps,
)  # fmt: skip

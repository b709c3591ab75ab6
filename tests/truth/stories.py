"""Stories: the events of a job, and the truth about it.

Each function runs one and returns its causes with their seconds; the seed draws lengths, positions and amounts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.truth.world import BATCH, EPOCH, World

OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of \
79.11 GiB of which 1.31 GiB is free."
DISK_FULL = "OSError: [Errno 28] No space left on device: '/ckpt/llm/tmp'"
WATCHDOG = "torch.distributed.DistBackendError: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4711, \
OpType=_ALLGATHER_BASE, NumelIn=26214400, NumelOut=209715200, Timeout(ms)=1800000) ran for 1800086 milliseconds \
before timing out."
SIGTERM = "received SIGTERM"
CAUSES = {SIGTERM: "killed", OUT_OF_MEMORY: "device_oom", DISK_FULL: "disk_full", WATCHDOG: "collective_timeout"}
"""The cause of a death, by its text."""


class Cause(NamedTuple):
    """A true cause: the codes of its insights, and its seconds."""

    codes: str
    seconds: float


class Truth(NamedTuple):
    """The truth of a story."""

    causes: tuple[Cause | tuple[Cause, ...], ...] = ()
    """Empty if healthy. Several in a tuple are alternative descriptions of one."""
    disruptions: int = 0
    also: str = ""
    """Codes of insights that are true too, and small."""
    may_be_silent: bool = False
    """True if no insight is also correct, because noise hides it or it is small."""
    attempts: int | None = None
    """None if a log need not show it."""


@dataclass(frozen=True)
class Story:
    """A kind of job."""

    live: Callable[[World], Truth]
    needs: frozenset[str]
    """Facts that a log must show for it."""
    noise: str
    """Kinds of noise that it runs with (`judge.NOISES`)."""

    @property
    def name(self) -> str:
        return self.live.__name__


STORIES: list[Story] = []
Live = Callable[[World], Truth]


def story(needs: str = "", noise: str = "calm") -> Callable[[Live], Live]:
    """Registers a story."""

    def registered(live: Live) -> Live:
        STORIES.append(Story(live, frozenset(needs.split()), noise))
        return live

    return registered


def _between(world: World, low: float, high: float) -> float:
    return float(world.random.uniform(low, high))


def _count(world: World, low: int, high: int) -> int:
    return int(world.random.integers(low, high))


def _undone(world: World) -> tuple[Cause, ...]:
    """Return the losses of failures and the downtime, as one or as two insights; a program that does not log its start
    shows that as downtime too."""
    wasted, down = world.wasted(), world.down
    ways = Cause("disruptions", wasted + down), Cause("rare_saves", wasted), Cause("disruptions", max(down, wasted))
    return *ways, Cause("disruptions", wasted + down + world.restarting)


# Failures and attempts


@story("deaths")
def died_for_good(world: World) -> Truth:
    """A crash without a restart: a failure, but not a disruption."""
    world.start()
    world.steps(_count(world, 1005, 1300), saves=50)
    world.save()
    world.steps(3)
    world.die(OUT_OF_MEMORY, follows=False)
    return Truth()


@story("causes starts")
def starts_that_die(world: World) -> Truth:
    """Starts that are dead before a step, again and again."""
    world.start()
    world.steps(500, saves=50)
    world.die(DISK_FULL)
    many = _count(world, 8, 14)
    begin = world.now
    for _ in range(many):
        world.now += _between(world, 60, 90)
        world.fail_to_start(DISK_FULL, _between(world, 25, 50))
    lost = world.now - begin
    world.again(75)
    world.steps(600, saves=50)
    world.finish()
    return Truth((Cause("failing_starts", lost),), many + 1, also="disruptions", attempts=many + 2)


@story("causes starts")
def starts_that_never_step(world: World) -> Truth:
    """Starts of the job that all end before a step."""
    many = _count(world, 4, 9)
    for number in range(many):
        world.fail_to_start(DISK_FULL, _between(world, 25, 50))
        world.now += _between(world, 60, 90) * (number < many - 1)
    ways = Cause("failing_starts disruptions", world.now), Cause("failing_starts disruptions", world.down)
    return Truth((ways,), many - 1, also="startups", attempts=many, may_be_silent=True)


@story("")
def killed_silently(world: World) -> Truth:
    """An end without a message, minutes before the next process prints a line."""
    world.start()
    for _ in range(3):
        world.steps(_count(world, 300, 500), saves=50)
        world.die()
        world.again(_between(world, 300, 700))
    world.steps(500, saves=50)
    world.finish()
    more = "rare_saves long_outage undetermined"
    return Truth((*_undone(world), Cause("undetermined", world.wasted() + world.down)), 3, more, True, attempts=4)


@story("process")
def rollback_of_a_loss_spike(world: World) -> Truth:
    """A process that returns to a checkpoint by itself and continues."""
    world.start()
    world.steps(_count(world, 900, 1100), saves=100)
    back = _count(world, 200, 400)
    world.restore(world.done - back, seconds=5)
    world.steps(1000, saves=100)
    world.finish()
    return Truth((Cause("given_up rolled_back", world.wasted()),), attempts=1)


@story("plans saves")
def planned_requeues(world: World) -> Truth:
    """The program saves and leaves by the clock; the queue starts it again."""
    world.start()
    waited = 0.0
    for _ in range(3):
        world.steps(_count(world, 400, 600), saves=100)
        world.save()
        world.stop()
        wait = _between(world, 300, 700)
        waited += wait
        world.again(wait)
    world.steps(500, saves=100)
    world.finish()
    return Truth((Cause("planned_stops", waited),), attempts=4)


@story("deaths")
def preempted_with_a_save(world: World) -> Truth:
    """SIGTERM, a save, and a start soon after: nothing much is lost."""
    lives = [_count(world, 500, 700) for _ in range(3)]
    return _saved_and_restarted(world, [*lives, 500], SIGTERM, 40)


def _saved_and_restarted(world: World, lives: Sequence[int], text: str, after: float) -> Truth:
    """Run attempts of these lengths in steps, each of which ends right after a save."""
    world.start()
    for steps in lives[:-1]:
        world.steps(steps, saves=100)
        if world.saved < world.done:
            world.save()
        world.die(text)
        world.again(after)
    world.steps(lives[-1], saves=100)
    world.finish()
    return Truth((_undone(world),), len(lives) - 1, may_be_silent=True, attempts=len(lives))


@story("finish", "any")
def two_runs_of_one_name(world: World) -> Truth:
    """A name used again from the start, after an end that is logged as finished: the last run is shown."""
    world.start()
    world.steps(600, saves=100)
    world.finish()
    world.now += 3600
    first_run, world.done, world.trained = world.now, 0, []
    world.start()
    world.steps(1200, saves=100)
    world.finish()
    world.counted_from = first_run
    return Truth()


@story("saves")
def older_checkpoint(world: World) -> Truth:
    """Newer saves were complete, and an older one was restored."""
    world.start()
    world.steps(1810, saves=200)
    world.die()
    world.again(120, step=1200)
    older = 600 * world.usual
    world.steps(1500, saves=200)
    world.finish()
    return Truth((Cause("older_checkpoint", older),), 1, also="disruptions", attempts=2)


@story("")
def long_outage(world: World) -> Truth:
    """Four restarts, one of them hours later."""
    world.start()
    hours = _between(world, 3, 6)
    for number in range(4):
        world.steps(300, saves=50)
        world.steps(4)
        world.die(OUT_OF_MEMORY)
        world.again(hours * 3600 if number == 2 else 200)
    world.steps(300, saves=50)
    world.finish()
    return Truth((Cause("long_outage", hours * 3600),), 4, also="disruptions rare_saves", attempts=5)


@story("")
def late_restart(world: World) -> Truth:
    """A single failure, and most of an hour until the restart."""
    world.start()
    world.steps(1502, saves=100)
    world.die(OUT_OF_MEMORY)
    minutes = _between(world, 35, 80)
    world.again(minutes * 60)
    world.steps(1500, saves=100)
    world.finish()
    ways = Cause("long_outage", minutes * 60), Cause("disruptions", minutes * 60)
    return Truth((ways,), 1, also="disruptions", attempts=2)


@story("each causes")
def dies_in_one_step(world: World) -> Truth:
    """The batch of one step does not fit; the last start leaves it out."""
    world.start()
    fatal, lost = _count(world, 1110, 1145), 0.0
    world.steps(fatal, saves=50)
    for _ in range(6):
        world.die(OUT_OF_MEMORY, after=3)
        world.again(120)
        lost += 120 + world.steps(fatal % 50) * 0 + fatal % 50 * world.usual
    world.steps(600, saves=50)
    world.finish()
    # a program that does not log its initialization shows that as downtime
    ways = Cause("same_step", lost), Cause("same_step", lost + world.restarting)
    return Truth((ways,), 6, also="startups disruptions", attempts=7)


@story("causes times steps")
def watchdog_after_half_an_hour(world: World) -> Truth:
    """A collective waits until its watchdog ends the job."""
    world.start()
    many = _count(world, 3, 7)
    for _ in range(many):
        world.steps(_count(world, 21, 29) * 10 - 1, saves=50)
        world.die(WATCHDOG, after=1800)
        world.again(60)
    world.steps(200, saves=50)
    world.finish()
    return Truth((Cause("hang", many * 1800),), many, also="disruptions rare_saves", attempts=many + 1)


# Saves and evaluations


@story("saves steps")
def saves_too_rare(world: World) -> Truth:
    """Six deaths, and saves nearly an hour apart."""
    world.start()
    for _ in range(6):
        world.steps(_count(world, 48, 79) * 10 - 2, saves=400, save=4)
        world.die(OUT_OF_MEMORY)
        world.again(100)
    world.steps(500, saves=400, save=4)
    world.finish()
    ways = Cause("rare_saves", world.wasted()), Cause("rare_saves disruptions", world.wasted() + world.down)
    return Truth((ways,), 6, also="disruptions", attempts=7)


@story("saves steps")
def saves_too_frequent(world: World) -> Truth:
    """Saves of 12 s every five to eight steps."""
    world.start()
    apart = _count(world, 5, 9)
    for _ in range(3):
        world.steps(apart * 100, saves=apart, save=12)
        world.die(OUT_OF_MEMORY)
        world.again(100)
    world.steps(apart * 100, saves=apart, save=12)
    world.finish()
    return Truth((Cause("frequent_saves", 400 * 12),), 3, also="disruptions", attempts=4)


@story("saves", "any")
def one_slow_save(world: World) -> Truth:
    """The storage had a bad hour."""
    world.start()
    slow = _between(world, 1500, 3000)
    for number in range(16):
        world.steps(100)
        world.save(slow if number == 8 else 20)
    world.finish()
    return Truth((Cause("slow_saves", slow - 20),), attempts=1)


@story("saves", "any")
def saves_that_grow(world: World) -> Truth:
    """Saves that grow from 30 to 200 s."""
    world.start()
    for number in range(40):
        world.steps(60)
        world.save(30 + 170 * number / 39)
    world.finish()
    return Truth((Cause("slow_saves", sum(170 * number / 39 for number in range(40))),), attempts=1)


@story("evals", "any")
def long_evaluations(world: World) -> Truth:
    """A sixth of the time and more."""
    world.start()
    each = _between(world, 170, 260)
    world.steps(1500, saves=300, evals=100, evaluation=each)
    world.steps(5)
    world.finish()
    return Truth((Cause("evals", 15 * each),), attempts=1)


# Work and pace


@story("batch steps")
def batch_that_triples(world: World) -> Truth:
    """A planned larger batch that is logged: not a slowdown."""
    world.start()
    world.steps(1000, saves=200)
    world.happens("batch", step=3 * BATCH)
    world.steps(1000, _between(world, 2.5, 2.95), saves=200)
    world.finish()
    return Truth(attempts=1)


@story("", "tellable")
def slow_stretch(world: World) -> Truth:
    """Steps are slower for a while."""
    world.start()
    world.steps(_count(world, 7, 10) * 100, saves=100)
    lost = world.steps(_count(world, 5, 8) * 100, _between(world, 1.3, 1.6), saves=100)
    world.steps(700, saves=100)
    world.finish()
    return Truth((Cause("slow_steps", lost),), attempts=1)


@story("", "tellable")
def slower_from_then_on(world: World) -> Truth:
    """A slow node joins and stays."""
    world.start()
    world.steps(_count(world, 8, 12) * 100, saves=100)
    lost = world.steps(_count(world, 5, 9) * 100, _between(world, 1.3, 1.6), saves=100)
    world.finish()
    return Truth((Cause("slow_steps", lost),), attempts=1)


@story("steps", "calm")
def stairs(world: World) -> Truth:
    """Slowdown in several stairs, up to 1.8 times."""
    world.start()
    many = _count(world, 3, 17)
    lost = sum(world.steps(2000 // many, 1 + 0.8 * stair / (many - 1), saves=100) for stair in range(many))
    world.finish()
    return Truth((Cause("slow_steps drift", lost),), attempts=1)


@story("steps", "calm")
def drift(world: World) -> Truth:
    """A little slower with each step."""
    world.start()
    rise, lost = _between(world, 0.25, 0.5), 0.0
    for number in range(2400):
        lost += world.step(1 + rise * number / 2400)
        if world.done % 100 == 0:
            world.save()
    world.finish()
    return Truth((Cause("drift slow_steps", lost),), attempts=1)


@story("each", "calm")
def every_twentieth_step(world: World) -> Truth:
    """Garbage is collected."""
    world.start()
    for number in range(2000):
        world.step(longer=9.0 if number % 20 == 19 else 0.0)
    world.finish()
    return Truth((Cause("periodic", 900.0),), attempts=1)


@story("loads", "any")
def data_between_epochs(world: World) -> Truth:
    """Training waits for data every 200 steps."""
    world.start()
    each = _between(world, 120, 180)
    for _ in range(10):
        world.steps(200)
        world.happens("load", each)
    world.steps(100)
    world.finish()
    return Truth((Cause("input_bound periodic", 10 * each),), attempts=1)


# Hangs


@story("steps", "any")
def kept_step_that_hangs(world: World) -> Truth:
    """It went on by itself."""
    world.start()
    world.steps(700, saves=100)
    lasts = _between(world, 1500, 3600)
    world.step(hang=lasts)
    world.steps(799, saves=100)
    world.finish()
    return Truth((Cause("hang", lasts),), attempts=1)


@story("beats")
def hangs_now(world: World) -> Truth:
    """A step began, and nothing but heartbeats came."""
    world.start()
    world.steps(600, saves=100)
    lasts = _between(world, 1500, 4000)
    world.hang_with_heartbeats(lasts)
    return Truth((Cause("hung_now", lasts),), attempts=1)


@story("beats")
def hang_until_restart(world: World) -> Truth:
    """Hours of heartbeats, then a restart."""
    world.start()
    world.steps(700, saves=100)
    lasts = _between(world, 3, 8) * 3600
    world.hang_with_heartbeats(lasts)
    world.die()
    world.again(120)
    world.steps(900, saves=100)
    world.finish()
    return Truth((Cause("hang", lasts),), 1, also="disruptions", attempts=2)


# Starts


@story("inits", "any")
def slow_starts(world: World) -> Truth:
    """Twenty-five minutes until the first step."""
    world.start(1500)
    world.steps(700, saves=100)
    world.finish()
    return Truth((Cause("startups", 1500),), attempts=1)


@story("restores", "calm")
def slow_restores(world: World) -> Truth:
    """Checkpoints are read for ten minutes."""
    world.start()
    each = _between(world, 400, 800)
    for _ in range(3):
        world.steps(400, saves=50)
        world.die(OUT_OF_MEMORY)
        world.now += 60
        world.start()
        world.restore(seconds=each)
    world.steps(400, saves=50)
    world.finish()
    return Truth((Cause("restores", 3 * each),), 3, also="disruptions", attempts=4)


# Several at once


@story("steps saves", "calm")
def hang_slow_steps_and_a_slow_save(world: World) -> Truth:
    """Three causes, each of which may be the largest."""
    world.start()
    world.steps(600, saves=100)
    hang = _between(world, 900, 3000)
    world.step(hang=hang)
    world.steps(499, saves=100)
    slow = world.steps(600, _between(world, 1.3, 1.6), saves=100)
    save = _between(world, 900, 3000)
    world.save(save)
    world.steps(700, saves=100)
    world.finish()
    return Truth((Cause("hang", hang), Cause("slow_steps", slow), Cause("slow_saves", save - 6)), attempts=1)


@story("saves evals", "calm")
def deaths_and_long_evaluations(world: World) -> Truth:
    """Two deaths with an outage of an hour, and evaluations."""
    world.start()
    each = _between(world, 150, 250)
    for wait in (_between(world, 2400, 4500), 150):
        world.steps(600, saves=50, evals=100, evaluation=each)
        world.steps(3)
        world.die(OUT_OF_MEMORY)
        world.again(wait)
    world.steps(600, saves=50, evals=100, evaluation=each)
    world.finish()
    ways = Cause("long_outage", world.down - 150), Cause("disruptions", world.down + world.wasted())
    return Truth((ways, Cause("evals", 18 * each)), 2, also="disruptions", attempts=3)


# Nothing to blame


@story("", "any")
def healthy(world: World) -> Truth:
    world.start()
    world.steps(_count(world, 15, 25) * 100, saves=100)
    world.finish()
    return Truth(attempts=1)


@story("", "heavy")
def healthy_with_heavy_tails(world: World) -> Truth:
    return healthy(world)


@story("", "shapes")
def healthy_with_two_shapes(world: World) -> Truth:
    return healthy(world)


@story("", "wandering")
def healthy_that_wanders(world: World) -> Truth:
    return healthy(world)


@story("evals", "any")
def healthy_with_evaluations(world: World) -> Truth:
    world.start()
    world.steps(1800, saves=100, evals=200, evaluation=_between(world, 30, 90))
    world.steps(5)
    world.finish()
    return Truth(attempts=1)


@story("", "any")
def healthy_and_restarted_once(world: World) -> Truth:
    """A failure right after a save, and a quick restart."""
    return _saved_and_restarted(world, (2000, 2000), OUT_OF_MEMORY, 45)


@story("", "any")
def healthy_and_still_running(world: World) -> Truth:
    world.start()
    world.steps(1503, saves=100)
    return Truth(attempts=1)


# At the ends of epochs


@story("epochs")
def dies_where_an_epoch_ends(world: World) -> Truth:
    """An end at the end of an epoch, after which no step is repeated."""
    world.start()
    for _ in range(3):
        world.steps(EPOCH * _count(world, 1, 3))
        world.save()
        world.die(OUT_OF_MEMORY)
        world.again(_between(world, 60, 90))
    world.steps(EPOCH + 150, saves=EPOCH)
    world.finish()
    return Truth((_undone(world),), 3, may_be_silent=True, attempts=4)

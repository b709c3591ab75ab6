"""Certainty of advice, draw by draw in plain Python, from the text of docs/advice.md alone: the 95 % ranges of the
goodput of one interval, on average and of one run. Without a known MTBF."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from .advice_replay import lost_at_end

MASK = 2**64 - 1
DRAWS = 1000


@dataclass
class JobFacts:
    """Facts of a job, in seconds, named by the letters of docs/advice.md."""

    lives: list[float]
    budgets: float
    work: float
    gaps: float
    fixed: float
    extra: float
    productive: float
    behind: list[float] = field(default_factory=list)


def numbers() -> Iterator[float]:
    """Yield SplitMix64 with state 1: in (0, 1]."""
    state = 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        mixed ^= mixed >> 31
        yield ((mixed >> 11) + 1) / 2**53


def goodput(job: JobFacts, training: float, cost: float, weights: list[float], half: float, rate: float) -> float:
    """Return percent, if each attempt counts `weights` times, and one as long as the record `half` times."""
    period = training + cost
    lost = sum(weight * lost_at_end(life, period) for weight, life in zip(weights, job.lives, strict=True))
    lost += half * lost_at_end(job.budgets, period)
    kept = training / period * (1 - lost / job.budgets) - job.extra / job.budgets
    if kept <= 0:
        return 0.0
    return 100 * job.productive / (job.fixed + job.work / kept * (1 + job.gaps * rate / job.budgets))


def block_length(lives: list[float]) -> int:
    """Return the block length by Politis and White (2004), as corrected in 2009, for circular blocks."""
    n = len(lives)
    if n < 10:
        return 2
    mean = sum(lives) / n
    apart = [life - mean for life in lives]
    near = max(5, math.ceil(math.sqrt(math.log10(n))))
    most = min(math.ceil(math.sqrt(n)) + near, n - 1)
    cov = [sum(apart[i] * apart[i + lag] for i in range(n - lag)) / n for lag in range(most + 1)]
    best = 0.0
    if cov[0] > 0:
        limit = 2 * math.sqrt(math.log10(n) / n)
        small = [abs(one / cov[0]) < limit for one in cov]
        end = next(m for m in range(most + 1) if all(small[m + 1 : m + near + 1]))
        width = min(2 * max(end, 1), most)
        flat = [min(1.0, 2 * (1 - lag / width)) for lag in range(width + 1)]
        level = cov[0] + 2 * sum(flat[lag] * cov[lag] for lag in range(1, width + 1))
        slope = 2 * sum(flat[lag] * lag * cov[lag] for lag in range(1, width + 1))
        best = (2 * slope**2 / (4 / 3 * level**2)) ** (1 / 3) * n ** (1 / 3) if level else 0.0
    root = next(k for k in range(1, n + 1) if k**3 >= n)
    return max(root, math.ceil(min(best, 3 * math.sqrt(n), n / 3)))


def widening(blocks: float) -> float:
    """Return the factor for Student's t instead of the normal distribution, and the variance without bias."""
    z, v = 1.959963984540054, blocks - 1
    t = z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    return t / z * math.sqrt(blocks / v)


def skewness(parts: list[float], length: int) -> float:
    """Return the skewness of the sum of all parts, from blocks of `length` neighbors."""
    n, mean = len(parts), sum(parts) / len(parts)
    blocks = [sum(parts[(first + step) % n] - mean for step in range(length)) for first in range(n)]
    size = max(math.sqrt(sum(block**2 for block in blocks) / n), 1e-100)
    return sum((block / size) ** 3 for block in blocks) / n * math.sqrt(length / n)


def draw_attempts(stream: Iterator[float], lives: list[float]) -> list[list[int]]:
    """Return for each draw as many attempts as there are, in blocks of neighbors."""
    n, length = len(lives), block_length(lives)
    draws = []
    for _ in range(DRAWS):
        drawn: list[int] = []
        while len(drawn) < n:
            start = min(int(next(stream) * n), n - 1)
            drawn += [(start + step) % n for step in range(length)]
        draws.append(drawn[:n])
    return draws


def ranges(job: JobFacts, training: float, cost: float) -> tuple[float, float]:
    """Return the wider of the two 95 % ranges of the average goodput (percent)."""
    stream, n = numbers(), len(job.lives)
    alone, together = [], []
    for _ in range(DRAWS):
        weights = [-math.log(next(stream)) for _ in job.lives]
        half = -math.log(next(stream)) * math.cos(2 * math.pi * next(stream)) ** 2
        alone.append(goodput(job, training, cost, weights, half, (sum(weights) + half) / n))
    low, high = sorted(alone)[24], sorted(alone)[974]
    if n < 2:
        return low, high
    length = block_length(job.lives)
    for drawn in draw_attempts(stream, job.lives):
        counts = [drawn.count(life) for life in range(n)]
        unended = job.budgets - sum(job.lives)
        scale = job.budgets / (unended + sum(job.lives[life] for life in drawn))
        together.append(goodput(job, training, cost, [scale * count for count in counts], 0.0, scale))
    ends = sorted(together)[24], sorted(together)[974]
    if n >= 10:
        usual, factor = 100 - goodput(job, training, cost, [1.0] * n, 0.0, 1.0), widening(n / length)
        each = [lost_at_end(life, training + cost) + job.gaps / n for life in job.lives]
        parts = [one / sum(each) - life / job.budgets for one, life in zip(each, job.lives, strict=True)]
        apart = [math.log((100 - end) / usual) for end in ends]
        moved = skewness(parts, length) * (apart[0] - apart[1]) / (2 * 1.959963984540054)
        wide = [100 - usual * math.exp(factor * (one + moved)) for one in apart]
        ends = min(max(wide[0], 0.0), 100.0), min(max(wide[1], 0.0), 100.0)
    return ends if ends[1] - ends[0] > high - low else (low, high)


def one_run(
    job: JobFacts, training: float, cost: float, latency: float, chance: Callable[[], Callable[[], float]]
) -> tuple[float, float]:
    """Return the 95 % range of the goodput (percent) of one run: the wider of two. chance: begins numbers in [0, 1)
    again."""
    stream, n, length = numbers(), len(job.lives), block_length(job.lives)
    alone: list[tuple[float, list[float]]] = []
    for _ in range(DRAWS):
        weights = [-math.log(next(stream)) for _ in job.lives]
        half = -math.log(next(stream)) * math.cos(2 * math.pi * next(stream)) ** 2
        alone.append((job.budgets / (sum(weights) + half), weights))
    orders = draw_attempts(stream, job.lives)
    off = [math.log(1 + (sum(job.lives[life] for life in order) - sum(job.lives)) / job.budgets) for order in orders]
    if n >= 10:
        moved = skewness(job.lives, length) * (sorted(off)[974] - sorted(off)[24]) / (2 * 1.959963984540054)
        off = [widening(n / length) * (one + moved) for one in off]
    place = [0] * DRAWS

    def of_weights(draw: int, number: int, random: Callable[[], float]) -> float:
        mean, weights = alone[draw]
        chosen = random() * sum(weights)
        life = min(sum(upto < chosen for upto in accumulate(weights)), n - 1)
        together = sum(weight * one for weight, one in zip(weights, job.lives, strict=True))
        return job.lives[life] * mean * sum(weights) / together

    def of_blocks(draw: int, number: int, random: Callable[[], float]) -> float:
        place[draw] = min(int(random() * n), n - 1) if number % length == 0 else (place[draw] + 1) % n
        mean = job.budgets / n * math.exp(off[draw])
        return job.lives[orders[draw][place[draw]]] * mean * n / sum(job.lives[life] for life in orders[draw])

    kinds = [of_weights, *([of_blocks] if n >= 2 else [])]
    ends = (simulate_runs(job, training, cost, latency, kind, chance()) for kind in kinds)
    return max(ends, key=lambda one: one[1] - one[0])


def simulate_runs(
    job: JobFacts, training: float, cost: float, latency: float,
    life_of: Callable[[int, int, Callable[[], float]], float],
    random: Callable[[], float],
) -> tuple[float, float]:  # fmt: skip
    """Simulate all runs in parallel, one attempt of each after the other."""
    period = training + cost
    clock, left, running = [job.fixed] * DRAWS, [job.work] * DRAWS, list(range(DRAWS))
    number = 0
    while running:
        lives = [life_of(draw, number, random) for draw in running]
        lives = [life * (0.5 + random()) for life in lives]
        going = []
        for draw, life in zip(running, lives, strict=True):
            needed = left[draw] * period / training
            if needed <= life:
                clock[draw] += needed
                continue
            whole, rest = divmod(life, period)
            whole -= whole > 0 and rest < latency
            left[draw] -= max(whole * training - job.extra * life / job.budgets, 0)
            clock[draw] += life
            going.append(draw)
        for draw, gap in zip(going, [random() for _ in going], strict=True):
            clock[draw] += job.behind[min(int(gap * len(job.behind)), len(job.behind) - 1)]
        running, number = going, number + 1
    goodput = sorted(100 * job.productive / time for time in clock)
    return goodput[24], goodput[974]

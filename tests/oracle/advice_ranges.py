"""How sure advice is, draw by draw in plain Python, from the text of docs/advice.md alone: the 95 % range of the
average goodput of one interval. Without a known MTBF."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from .advice_replay import lost_at_end

MASK = 2**64 - 1
DRAWS = 1000


@dataclass
class Known:
    """What is known of a job, in seconds; the letters of docs/advice.md."""

    lives: list[float]
    budgets: float
    work: float
    gaps: float
    fixed: float
    extra: float
    productive: float


def numbers() -> Iterator[float]:
    """SplitMix64 with state 1: in (0, 1]."""
    state = 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        mixed ^= mixed >> 31
        yield ((mixed >> 11) + 1) / 2**53


def goodput(job: Known, training: float, cost: float, weights: list[float], half: float, rate: float) -> float:
    """Percent, if each life counts `weights` times, one as long as the record `half` times."""
    period = training + cost
    lost = sum(weight * lost_at_end(life, period) for weight, life in zip(weights, job.lives, strict=True))
    lost += half * lost_at_end(job.budgets, period)
    kept = training / period * (1 - lost / job.budgets) - job.extra / job.budgets
    if kept <= 0:
        return 0.0
    return 100 * job.productive / (job.fixed + job.work / kept * (1 + job.gaps * rate / job.budgets))


def block_length(lives: list[float]) -> int:
    """Politis and White (2004), as corrected in 2009, for circular blocks."""
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
    """Student's t against the normal distribution, and the variance without bias."""
    z, v = 1.959963984540054, blocks - 1
    t = z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    return t / z * math.sqrt(blocks / v)


def ranges(job: Known, training: float, cost: float) -> tuple[float, float]:
    """The wider of the two 95 % ranges of the average goodput (percent)."""
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
    for _ in range(DRAWS):
        drawn: list[int] = []
        while len(drawn) < n:
            start = min(int(next(stream) * n), n - 1)
            drawn += [(start + step) % n for step in range(length)]
        counts = [drawn[:n].count(life) for life in range(n)]
        unended = job.budgets - sum(job.lives)
        scale = job.budgets / (unended + sum(job.lives[life] for life in drawn[:n]))
        together.append(goodput(job, training, cost, [scale * count for count in counts], 0.0, scale))
    ends = sorted(together)[24], sorted(together)[974]
    if n >= 10:
        usual, factor = 100 - goodput(job, training, cost, [1.0] * n, 0.0, 1.0), widening(n / length)
        wide = [100 - usual * ((100 - end) / usual) ** factor for end in ends]
        ends = min(max(wide[0], 0.0), 100.0), min(max(wide[1], 0.0), 100.0)
    return ends if ends[1] - ends[0] > high - low else (low, high)

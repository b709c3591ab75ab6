"""The formulas that people know, as a check beside the curve: training time between two saves (s) for a cost C of a
save and an MTBF M (s). All assume a constant hazard."""

from __future__ import annotations

import math
from dataclasses import dataclass

_NEWTON = 100
_YOUNG_HOLDS = 20


@dataclass(frozen=True)
class Formulas:
    """training between two saves at a constant rate of failures; null where one does not hold or nothing is known"""

    young_seconds: float | None
    """Young 1974"""
    daly_seconds: float | None
    """Daly 2006"""
    exact_seconds: float | None
    """where the mean time is least"""


def formulas(cost: float, mtbf: float | None) -> Formulas:
    """All of them. Young's is left out where C > M / 20: there it is far too long."""
    if mtbf is None or cost <= 0 or mtbf <= 0:
        return Formulas(None, None, None)
    shown = young(cost, mtbf) if cost <= mtbf / _YOUNG_HOLDS else None
    return Formulas(shown, daly(cost, mtbf), exact(cost, mtbf))


def young(cost: float, mtbf: float) -> float:
    """Young, CACM 17(9), 1974."""
    return math.sqrt(2 * cost * mtbf)


def daly(cost: float, mtbf: float) -> float:
    """Daly, FGCS 22, 2006."""
    if cost >= 2 * mtbf:
        return mtbf
    ratio = cost / (2 * mtbf)
    return math.sqrt(2 * cost * mtbf) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - cost


def exact(cost: float, mtbf: float) -> float:
    """Where the exact length of a job with exponential lives is least: M (1 + C/M + W0(-e^(-1 - C/M))) - C."""
    return mtbf * (1 + cost / mtbf + _lambert(-1 - cost / mtbf)) - cost


def _lambert(log: float) -> float:
    """W0(-e^log), log <= -1, by Newton: w with ln(-w) + w = log, -1 <= w < 0, in u = -w."""
    u = math.exp(log) if log < -2 else 1 - math.sqrt(max(2 * (-1 - log), 0.0)) * 0.9
    u = min(max(u, 1e-300), 1 - 1e-12)
    for _ in range(_NEWTON):
        step = (math.log(u) - u - log) / (1 / u - 1)
        moved = min(max(u - step, u / 10), (1 + u) / 2)
        if moved == u or abs(moved - u) <= 1e-16 * u:
            break
        u = moved
    return -u

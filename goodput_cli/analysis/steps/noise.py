"""Test of changes of the level of the step time against correlated noise (accounting §8): a pace that drifts, or a line
that rises.

1. The step times are cut into blocks of 8, or of as many more as make 500 blocks at most; a block counts by the
logarithm of its median; by the mean of its logarithms if those scatter far less, as with steps of two shapes. 2. Noise
has a drifting and an independent part: an autoregression of order 1 with correlation rho from block to block, and
independent noise whose variance is `q` times the drift's. The likelihood is maximal over a grid of both; the common
part of the blocks (a level, a line, levels) follows by least squares, for each rho and q. 3. Three models are scored by
log L - 1.5 m ln n, of n blocks and m changes: one level (m = 0), a line that rises (m = 1), and levels, with one change
after another dropped while that helps. Levels and a line are accepted if they score better than the one level by 2 (a
line) or 2.5 at least, which is odds of seven and twelve to one, and by 36/n more, because few blocks do not show the
correlation of the noise.

Changes of the mean of an autoregression by penalized likelihood: Chakar, Lebarbier, Levy-Leduc and Robin, "A robust
approach for estimating change-points in the mean of an AR(1) process", Bernoulli 2017; Shi, Gallagher, Lund and
Killick, "A comparison of single and multiple changepoint techniques for time series data", CSDA 2022. The independent
noise next to the drift (a local level: Durbin and Koopman, "Time Series Analysis by State Space Methods") is ours: an
autoregression alone mistakes a slow drift below noise for levels. Findings and error rates: `python -m
benchmarks.noise`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.analysis.json_fields import FromOne, written
from goodput_cli.arrays import F64

_LEAST_BLOCK = 8
_MOST_BLOCKS = 500
_RHO = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999)
_NOISE = (0, 0.1, 0.3, 1, 3, 10, 30)
"""Variance of the independent noise of a block, of the wander's."""
_PENALTY = 1.5
_GAIN_OF_LINE, _GAIN_OF_LEVELS, _FEW_BLOCKS = 2.0, 2.5, 36
"""Score by which a line and levels must exceed one level; and the addition if few blocks show the noise."""
_FAR_LESS = 0.6
"""Means of normal noise scatter 0.85 times as much as medians, those of two alternating shapes 0.4 times by chance."""
_LEAST_VARIANCE = 1e-8
"""Variance of the logarithm of a block: step times that agree to a ten thousandth are equal."""
_LEAST_LINE_STEPS = 150
_LEAST_RISE = math.log(1.05)
_LEAST_WANDER_STEPS = 24
"""Similarity over fewer steps is noise of single steps."""


@written("wander", "slow drift of step times: smaller changes cannot be distinguished from it")
@dataclass(frozen=True)
class StepTimeDrift:
    """Slow drift of step times, without the noise of single steps."""

    percent: float
    """twice the standard deviation of changes of the pace over this many steps"""
    steps: FromOne
    """for about so long what comes is like what was: (1 + rho) / (1 - rho) blocks, the integrated time of an
    autoregression; at most all of them"""


class PaceModel(Struct, frozen=True):
    """Model that describes a series of step times best."""

    kind: Literal["level", "line", "levels"]
    """One level, with noise that may drift; a line that rises; levels."""
    cuts: NDArray[np.intp]
    """Positions at which levels change, sorted; none of the other two."""
    line: tuple[float, float] | None = None
    """Step time (s) at the beginning and the end of the line."""
    wander: StepTimeDrift | None = None
    """Drift around one level, if there were candidates; None if neighbors are not similar for long."""
    unseen: str = ""
    """Reason why one level is not a finding: the series is too short or too noisy; "" if it would show a change."""


ONE_LEVEL = PaceModel("level", np.zeros(0, dtype=np.intp))


def best_model(seconds: F64, candidates: NDArray[np.intp]) -> PaceModel:
    """Return the model that describes step times (s) best. candidates: sorted positions at which their level may
    change."""
    size = max(_LEAST_BLOCK, -(-len(seconds) // _MOST_BLOCKS))
    count = len(seconds) // size
    if count < 2:
        return ONE_LEVEL
    logs = _log_blocks(seconds, size, candidates)
    places, kept = _boundary_blocks(candidates, size, count)
    fits = _Fits(logs, places)
    penalty = _PENALTY * math.log(count)
    alone, noise = fits.one_level()
    line, ends = fits.line() if len(seconds) >= _LEAST_LINE_STEPS else (-math.inf, (0.0, 0.0))
    of_line = line - penalty if ends[1] - ends[0] >= _LEAST_RISE else -math.inf
    of_levels, chosen = fits.levels(penalty)
    least = alone + _FEW_BLOCKS / count
    if of_line < least + _GAIN_OF_LINE and of_levels < least + _GAIN_OF_LEVELS:
        return PaceModel("level", ONE_LEVEL.cuts, wander=_wander(noise, size, count) if len(candidates) else None)
    if of_line >= of_levels:
        return PaceModel("line", ONE_LEVEL.cuts, line=(math.exp(ends[0]), math.exp(ends[1])))
    return PaceModel("levels", candidates[kept[chosen]])


def _log_blocks(seconds: F64, size: int, candidates: NDArray[np.intp]) -> F64:
    """Each whole block as a logarithm: its median, or the mean of its steps where that varies far less from block to
    block. A block in which the level may change is the median of its longer part."""
    whole = len(seconds) // size
    blocks = np.log(np.maximum(seconds[: whole * size], 1e-9)).reshape(whole, size)
    medians, means = np.median(blocks, axis=1), blocks.mean(axis=1)
    scatter, other = (float(np.abs(np.diff(logs)).sum()) for logs in (medians, means))
    logs = means if other < _FAR_LESS * scatter else medians
    for block, inside in zip(*(part.tolist() for part in np.divmod(candidates, size)), strict=True):
        if inside and block < whole:
            logs[block] = np.median(blocks[block, :inside] if 2 * inside >= size else blocks[block, inside:])
    return logs


def _boundary_blocks(candidates: NDArray[np.intp], size: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The blocks before which a level may change, each once, and the candidate that each is."""
    # a block is of the level that has more of it
    nearest = np.clip((candidates + size // 2) // size, 1, count - 1).astype(np.intp)
    places, kept = np.unique(nearest, return_index=True)
    return places, kept


class _Noise(Struct, frozen=True):
    """A wander with its independent noise."""

    rho: float
    """Correlation of the wander from block to block."""
    variance: float
    """Variance of the drift, in squares of logarithms."""


class _Fits:
    """Likelihoods of models of one series: the series and all that may explain it are whitened once for each point of
    the grid, and a model is least squares on some of these columns.

    `_gram` has a matrix a point of the grid: products of the columns series, 1, line, levels.
    """

    def __init__(self, logs: F64, places: NDArray[np.intp]) -> None:
        count = len(logs)
        place = np.arange(count)
        self._count = count
        self._middle = float(logs.mean())
        line = (place - (count - 1) / 2) / max(count - 1, 1)
        levels = (place[:, None] >= places).astype(float)
        columns = np.column_stack((logs - self._middle, np.ones(count), line, levels))
        self._rho, self._q = (grid.ravel() for grid in np.meshgrid(np.array(_RHO), np.array(_NOISE)))
        whitened, self._log_determinant = _whitened(columns, self._rho, self._q)
        self._gram = whitened.transpose(1, 2, 0) @ whitened.transpose(1, 0, 2)

    def one_level(self) -> tuple[float, _Noise]:
        """Log likelihood of one level, and its noise."""
        squares, _, _ = self._least_squares([1])
        likelihoods = self._likelihoods(squares)
        best = int(np.argmax(likelihoods))
        return float(likelihoods[best]), _Noise(float(self._rho[best]), float(squares[best]) / self._count)

    def line(self) -> tuple[float, tuple[float, float]]:
        """Log likelihood of a line, and its two ends (logarithms of s)."""
        squares, slopes, _ = self._least_squares([1, 2])
        likelihoods = self._likelihoods(squares)
        best = int(np.argmax(likelihoods))
        middle, slope = slopes[best].tolist()
        return float(likelihoods[best]), (self._middle + middle - slope / 2, self._middle + middle + slope / 2)

    def levels(self, penalty: float) -> tuple[float, NDArray[np.intp]]:
        """Return the score of levels, with changes dropped while that helps, and the remaining changes; -inf without
        one."""
        left = np.arange(self._gram.shape[1] - 3)
        squares, sizes, inverse = self._least_squares([1, *(3 + left).tolist()])
        score = float(self._likelihoods(squares).max()) - penalty * len(left)
        while len(left):
            diagonal = np.diagonal(inverse, axis1=1, axis2=2)[:, 1:]
            # increase of the squares without one column: its coefficient over its standard error, squared
            without = squares[:, None] + sizes[:, 1:] ** 2 / diagonal
            scores = self._likelihoods(without.T).max(axis=1) - penalty * (len(left) - 1)
            worst = int(np.argmax(scores))
            if scores[worst] < score:
                break
            score, squares = float(scores[worst]), without[:, worst]
            sizes, inverse = _without(worst + 1, sizes, inverse)
            left = np.delete(left, worst)
        return (score if len(left) else -math.inf), left

    def _least_squares(self, columns: list[int]) -> tuple[F64, F64, F64]:
        """Return, for each point of the grid, the sum of squares that some columns leave, their coefficients, and the
        inverse of their products."""
        inverse = np.asarray(np.linalg.inv(self._gram[:, columns][:, :, columns]), dtype=np.float64)
        of_series = self._gram[:, columns, 0]
        sizes = np.einsum("gij,gj->gi", inverse, of_series)
        return self._gram[:, 0, 0] - (sizes * of_series).sum(axis=1), sizes, inverse

    def _likelihoods(self, squares: F64) -> F64:
        """Log likelihoods, without their constant; the scale of the noise is the one that is most likely."""
        variance = np.maximum(squares / self._count, _LEAST_VARIANCE)
        return np.asarray(-0.5 * (self._count * np.log(variance) + self._log_determinant))


def _without(place: int, sizes: F64, inverse: F64) -> tuple[F64, F64]:
    """Coefficients and inverse without one column."""
    rest = np.delete(np.arange(sizes.shape[1]), place)
    column, own = inverse[:, rest, place], inverse[:, place, place]
    sizes = sizes[:, rest] - column * (sizes[:, place] / own)[:, None]
    inverse = inverse[:, rest][:, :, rest] - column[:, :, None] * column[:, None, :] / own[:, None, None]
    return sizes, inverse


def _whitened(columns: F64, rho: F64, q: F64) -> tuple[F64, F64]:
    """Columns (of length n) as independent innovations of variance 1, of shape (n, grid, columns), and the logarithm of
    the determinant of their covariance: the Kalman filter of a stationary autoregression of variance 1 under
    independent noise of variance q. With q = 0 it is the transformation of Prais and Winsten."""
    count, many = columns.shape
    whitened = np.empty((count, len(rho), many))
    expected = np.zeros((len(rho), many))
    variance, log_determinant = np.ones(len(rho)), np.zeros(len(rho))
    for block in range(count):
        seen = variance + q
        innovation = columns[block] - expected
        np.multiply(innovation, (1 / np.sqrt(seen))[:, None], out=whitened[block])
        log_determinant += np.log(seen)
        gain = variance / seen
        innovation *= gain[:, None]
        expected += innovation
        expected *= rho[:, None]
        variance = rho**2 * variance * (1 - gain) + (1 - rho**2)
    return whitened, log_determinant


def _wander(noise: _Noise, size: int, count: int) -> StepTimeDrift | None:
    blocks = min((1 + noise.rho) / (1 - noise.rho), count)
    if blocks * size < _LEAST_WANDER_STEPS:
        return None
    deviation = math.sqrt(2 * noise.variance * (1 - noise.rho**blocks))
    return StepTimeDrift(100 * math.expm1(2 * deviation), round(blocks * size))

"""Replacement of `ml_goodput_measurement.goodput`: the same names, signatures and lines."""

from __future__ import annotations

from .calculator import GoodputCalculator
from .goodput_utils import BadputType, GoodputType, IntervalMetricType, MetricType
from .recorder import GoodputRecorder

__all__ = [
    "BadputType",
    "GoodputCalculator",
    "GoodputRecorder",
    "GoodputType",
    "IntervalMetricType",
    "MetricType",
]

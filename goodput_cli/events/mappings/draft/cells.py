"""Texts of values as numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from goodput_cli.arrays import F64, I64
from goodput_cli.events.values import clock_seconds, decimal

_WHOLE = re.compile(r"\+?\d{1,15}(?:\.0+)?", re.ASCII)


class Texts:
    """Texts as numbers."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @property
    def texts(self) -> Sequence[str]:
        """Return all texts."""
        return self._texts

    @property
    def first(self) -> str:
        """Return the first text."""
        return self.texts[0]

    def take(self, rows: I64) -> Texts:
        """Return some of the texts."""
        return Texts([self.texts[row] for row in rows.tolist()])

    @cached_property
    def whole(self) -> I64 | None:
        """Return the texts as integers, int64[n]; None if some are not."""
        found = [text.replace(",", "") for text in self.texts]
        if not all(map(_WHOLE.fullmatch, found)):
            return None
        return np.array([int(float(text)) for text in found], dtype=np.int64)

    @cached_property
    def numbers(self) -> F64:
        """Return the texts as numbers, float64[n], a clock such as 1:02:03 in seconds; nan for other texts."""
        return np.array([_number(text) for text in self.texts], dtype=np.float64)

    @property
    def plain_numbers(self) -> F64 | None:
        """Return the texts as numbers, float64[n]; None if some are clocks or something else."""
        found = [decimal(text.replace(",", "")) for text in self.texts]
        return None if None in found else np.array(found, dtype=np.float64)


def _number(text: str) -> float:
    """Return the number that a text is, a clock in seconds; nan for other texts."""
    value = clock_seconds(text)
    value = decimal(text.replace(",", "")) if value is None else value
    return math.nan if value is None else value

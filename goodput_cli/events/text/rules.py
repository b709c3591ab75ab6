"""What a format of text consists of: rules that read its lines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from goodput_cli.events.text.marks import Said
from goodput_cli.events.values import round_to_us

MAX_STEP = 1 << 53


class Pattern(Protocol):
    """What `re` and `re2` compile."""

    def search(self, text: str, /) -> Any:
        """The first match, or None."""


class BadValueError(ValueError):
    """A line of a rule with a value that cannot be; args: a sentence."""


@dataclass(frozen=True, eq=False)
class Rule:
    """Reads one kind of line. Lines without the anchor are never looked at."""

    format: str
    anchor: str
    pattern: Pattern
    read: Callable[[Any], Said | None]
    """What a match says; None: nothing, though the line is known. Raises BadValueError."""
    name: str = ""
    also: bool = False
    """Whether further rules may read the same line."""
    split: bool = True
    """Whether it reads what a carriage return overwrote too."""


def whole(text: str) -> int:
    """A step. Raises BadValueError."""
    plain = text.replace(",", "")
    if not (plain.isascii() and plain.isdigit()) or int(plain) > MAX_STEP:
        raise BadValueError(f"{text[:40]} is no number of a step")
    return int(plain)


def duration(text: str, unit: float = 1.0) -> int:
    """Seconds (times `unit`) -> ns. Raises BadValueError."""
    try:
        seconds = float(text.replace(",", "")) * unit
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < 1e9:
        raise BadValueError(f"{text[:40]} is no duration")
    return round_to_us(seconds)


def pattern(text: str) -> re.Pattern[str]:
    """A pattern of ours: plain, read once."""
    return re.compile(text, re.ASCII)

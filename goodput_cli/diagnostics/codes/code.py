"""A diagnostic code: how grave it is, and the texts that explain it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The gravest first."""


@dataclass(frozen=True)
class Code:
    """What is known of a diagnostic before it occurs. The texts are sentences."""

    severity: Severity
    """`error` lost data, `warning` may change a number, `info` changes none."""
    meaning: str
    """What was noticed."""
    effect: str
    """What that does to the numbers."""
    advice: str
    """What to do about it."""
    mild: Severity | None = None
    """How grave its mild cases are, where it has some: the meaning says which."""

"""A diagnostic code: how grave it is, and the texts that explain it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
    of_formats: Mapping[str, str] = field(default_factory=dict)
    """What to do about it in logs of some formats, by a name or several with spaces between: the first that a job has
    counts."""

    @property
    def advices(self) -> tuple[str, ...]:
        """All advice, a sentence or more each."""
        of_formats = ((names.replace(" ", ", "), advice) for names, advice in self.of_formats.items())
        return self.advice, *(f"In logs of {names}: {advice}" for names, advice in of_formats)

    def advice_for(self, formats: Iterable[str]) -> str:
        """What to do about it, for a job whose log has these formats."""
        has = set(formats)
        return next((advice for names, advice in self.of_formats.items() if has & set(names.split())), self.advice)

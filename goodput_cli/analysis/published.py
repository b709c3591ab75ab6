"""What continuous integration and monitoring take of an answer: its figures as metrics, and its gates."""

from __future__ import annotations

from dataclasses import dataclass

from goodput_cli.analysis.threshold import Threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic


@dataclass(frozen=True)
class Family:
    """A metric."""

    name: str
    meaning: str
    """A sentence for people who read the metrics."""
    samples: list[tuple[dict[str, str], str]]
    """Labels beside the job's name, and the value as text; none where it is not recorded."""


@dataclass(frozen=True)
class Published:
    """An answer as gates and metrics."""

    job: str
    """The job's name, as in the log."""
    end_ns: int
    """End of the window, since 1970 UTC: when the answer holds."""
    headline: str
    """The answer in a line."""
    said: tuple[str, ...]
    """Further lines, above those of the thresholds."""
    properties: tuple[tuple[str, str], ...]
    """Names and values of every figure that is known."""
    thresholds: tuple[Threshold, ...]
    diagnostics: tuple[Diagnostic, ...]
    """What may be wrong with the log."""
    families: tuple[Family, ...] = ()
    """The figures as metrics, without those of thresholds and diagnostics, which every answer has."""

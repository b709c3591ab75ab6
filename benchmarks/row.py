"""Rows of the table that `make bench` prints, and the commands that are measured for it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Result
from benchmarks.setup import PEERS

GOODPUT = str(Path(sys.executable).with_name("goodput"))
OURS = "goodput"


@dataclass(frozen=True)
class Row:
    """A row of the table. value: compared with `target` (at most, or at least if `more`)."""

    work: str
    detail: str
    value: float
    target: float
    more: bool = False

    @property
    def met(self) -> bool:
        """True if the target is met."""
        return self.value >= self.target if self.more else self.value <= self.target


def analyze(path: Path) -> list[str]:
    """Return the whole command."""
    return [GOODPUT, "analyze", str(path), "--format", "json", "--no-progress"]


def peer(python: str, script: str, path: Path) -> list[str]:
    """Return a peer's script on a log."""
    return [python, str(PEERS / script), str(path)]


def shown(result: Result) -> str:
    """Return the figures of a command."""
    if result.failed:
        return result.failed
    taken = f"stopped after {result.seconds:.0f} s" if result.stopped else f"{result.seconds:.2f} s"
    return f"{taken} ({result.processor:.2f} s cpu, {result.peak_mb:.0f} MB)"


def against(work: str, ours: Result, theirs: Result, other: str) -> str:
    """Return ours and another's figures, for the same work."""
    return f"{work}: {OURS} {shown(ours)}, {other} {shown(theirs)}"

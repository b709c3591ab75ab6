"""Dumps of flight recorders."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Membership:
    """Members of a process group."""

    job: str
    group: str
    about: str
    ranks: tuple[int, ...]
    """Global ranks in the order of ranks in the group."""

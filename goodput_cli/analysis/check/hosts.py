"""Several hosts in one log: who writes, whose start is missing, and hosts that nobody can tell apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from goodput_cli.accounting.attempts.endings import End
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct
from goodput_cli.analysis.row_diagnostics import diagnostic_at
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.schema import NONE, NS_PER_SECOND, Kind

_AT_ONCE_NS = 10 * NS_PER_SECOND
"""Starts without a rank that follow each other within this time may be one start of several hosts."""


def check_hosts(timeline: Timeline) -> Iterator[Diagnostic]:
    """Findings about the hosts that write the log of one job."""
    table = timeline.table
    ranks = distinct(table.rank[table.rank != NONE])
    if len(ranks) > 1:
        message = f"{len(ranks)} ranks write, {ranks[0]} to {ranks[-1]}"
        yield Diagnostic.of("several_hosts", message, len(ranks))
    yield from _missing_ranks(timeline)
    yield from _starts_without_rank(timeline)


def _missing_ranks(timeline: Timeline) -> Iterator[Diagnostic]:
    table, attempts = timeline.table, timeline.attempts
    starts = np.flatnonzero((table.kind == Kind.START) & (table.rank != NONE) & (attempts.of_row >= 0))
    if len(starts) == 0:
        return
    seen = distinct((attempts.of_row[starts].astype(np.int64) << 32) | table.rank[starts])
    up = np.bincount(seen >> 32, minlength=len(attempts))
    fewer = np.flatnonzero((up > 0) & (up < up.max()))
    if len(fewer):
        message = f"attempts in which fewer than {up.max()} ranks started ({up[fewer].min()} at the least)"
        yield diagnostic_at("rank_missing", table, attempts.begin_row[fewer], message)


def _starts_without_rank(timeline: Timeline) -> Iterator[Diagnostic]:
    """Attempts that did nothing and ended without a word before another start came at once."""
    table, attempts = timeline.table, timeline.attempts
    before = np.arange(max(len(attempts) - 1, 0))
    row, next_row = attempts.begin_row[before], attempts.begin_row[before + 1]
    idle = (attempts.last_recorded[before] < 0) & (timeline.endings.how[before] == End.NOT_LOGGED)
    bare = attempts.started[before] & attempts.started[before + 1]
    bare &= (table.rank[row] == NONE) & (table.rank[next_row] == NONE)
    at_once = attempts.begin[before + 1] - attempts.begin[before] <= _AT_ONCE_NS
    chosen = np.flatnonzero(idle & bare & at_once)
    if len(chosen):
        rows = np.concatenate((row[chosen], next_row[chosen]))
        message = "start lines without a rank, directly followed by another one: one start of several hosts?"
        yield diagnostic_at("starts_without_rank", table, rows, message, len(chosen))

"""Several hosts in one log: who writes, whose start is missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct
from goodput_cli.analysis.row_diagnostics import diagnostic_at
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.schema import NONE, Kind


def check_hosts(timeline: Timeline) -> Iterator[Diagnostic]:
    """Findings about the hosts that write the log of one job."""
    table = timeline.table
    ranks = distinct(table.rank[table.rank != NONE])
    if len(ranks) > 1:
        message = f"{len(ranks)} ranks write, {ranks[0]} to {ranks[-1]}"
        yield Diagnostic.of("several_hosts", message, len(ranks))
    yield from _missing_ranks(timeline)


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

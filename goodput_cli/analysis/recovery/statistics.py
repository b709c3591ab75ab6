"""Times to detect outages and to recover from them, and who restarted the job: totals of an answer.

This module does not import NumPy: thresholds and saved answers are read without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from goodput_cli.analysis.json_fields import Amount, Count, written
from goodput_cli.vocabulary.text import duration, plural

Recovery = Literal["automatic", "by the scheduler", "by hand"]
"""Who restarted a job; None if that is not logged."""
RECOVERIES: tuple[Recovery, ...] = get_args(Recovery)
UNKNOWN_IN_VERSION_1 = "not said"
"""A recovery that is not logged in answers with `schema_version` 1, which are still read."""
MARK = "<="
"""Prefix of a time that is an upper limit."""


@written("recoveries_part", "over the unplanned disruptions of the window; null where there is nothing to average")
@dataclass(frozen=True)
class Recoveries:
    """Times to detect and to recover, over the unplanned disruptions of a window."""

    mttr_seconds: Amount | None
    """mean time to recover: from the failure until training resumed, queue included; over those that resumed"""
    p50_seconds: Amount | None
    """median"""
    p90_seconds: Amount | None
    """90th percentile"""
    at_most: bool
    """whether a failure is not logged: times then count from the last progress"""
    recovered: Count
    """how many the mean is over"""
    not_recovered: Count
    """how many more did not resume training before the next disruption"""
    mean_time_to_detect_seconds: Amount | None
    """from the failure to the line that reports it, over those that have one"""
    detected: Count
    """how many that is over"""
    detect_at_most: bool
    """whether at least one of these times counts from the last progress"""
    automatic: Count
    """restarted by a launcher or an agent"""
    by_scheduler: Count
    """restarted by the scheduler"""
    by_hand: Count
    """restarted by a person"""
    not_said: Count
    """the log does not report who restarted the job"""


def recovery_words(one: Recoveries) -> str | None:
    """Return `MTTR <=12 min 30 s (1 of 1), p50 ..., p90 ...; restarts: 1 automatic`; None without disruptions."""
    count = one.recovered + one.not_recovered
    if not count:
        return None
    who = [
        f"{number} {words}"
        for number, words in zip((one.automatic, one.by_scheduler, one.by_hand), RECOVERIES, strict=True)
        if number
    ]
    if who and one.not_said:
        who.append(f"{one.not_said} unknown")
    by = f"; restarts: {', '.join(who)}" if who else ""
    if one.mttr_seconds is None:
        return f"MTTR unknown: training did not resume after {plural(count, 'disruption')} before the next one{by}"
    mark = MARK if one.at_most else ""
    mean, p50, p90 = (
        mark + duration(round(1e9 * (ns or 0))) for ns in (one.mttr_seconds, one.p50_seconds, one.p90_seconds)
    )
    spread = f", p50 {p50}, p90 {p90}" if one.recovered > 1 else ""
    detect = ""
    if one.mean_time_to_detect_seconds is not None:
        mark = MARK if one.detect_at_most else ""
        mean_detect = mark + duration(round(1e9 * one.mean_time_to_detect_seconds))
        detect = f"; time to detect {mean_detect} ({one.detected} of {count})"
    return f"MTTR {mean} ({one.recovered} of {count}){spread}{detect}{by}"

"""How long outages took to be noticed and to be over, and who started the job again: what an answer says of them all.

No NumPy here: thresholds and saved answers are read without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from goodput_cli.analysis.json_fields import Amount, Count, written
from goodput_cli.vocabulary.text import duration, plural

Recovery = Literal["automatic", "by the scheduler", "by hand", "not said"]
"""Who started a job again, as far as a line says so."""
RECOVERIES: tuple[Recovery, ...] = get_args(Recovery)
MARK = "<="
"""Before a time that is at most so long."""


@written("recoveries_part", "over the unplanned disruptions of the window; null where there is nothing to average")
@dataclass(frozen=True)
class Recoveries:
    """How long it took to notice and to recover, over the unplanned disruptions of a window."""

    mttr_seconds: Amount | None
    """mean time to recover: from the failure to training again, the queue included; of those that trained again"""
    p50_seconds: Amount | None
    """half of them took less"""
    p90_seconds: Amount | None
    """a tenth of them took longer"""
    at_most: bool
    """whether a line says of none of them, or not of all, when it failed: then it is from the last progress"""
    recovered: Count
    """how many the mean is over"""
    not_recovered: Count
    """how many more did not train before the next disruption"""
    mean_time_to_detect_seconds: Amount | None
    """from the failure to the line that says that it was noticed, over those that have one"""
    detected: Count
    """how many that is over"""
    detect_at_most: bool
    """whether it is from the last progress, of one of them at least"""
    automatic: Count
    """started again by a launcher or an agent"""
    by_scheduler: Count
    """started again by the scheduler"""
    by_hand: Count
    """started again by a person"""
    not_said: Count
    """no line says by whom"""


def recovery_words(one: Recoveries) -> str | None:
    """`MTTR <=12 min 30 s (1 of 1), p50 ..., p90 ...; 1 automatic`; None where nothing was disrupted."""
    count = one.recovered + one.not_recovered
    if not count:
        return None
    who = [
        f"{number} {words}"
        for number, words in zip((one.automatic, one.by_scheduler, one.by_hand), RECOVERIES[:3], strict=True)
        if number
    ]
    if who and one.not_said:
        who.append(f"{one.not_said} not said")
    by = f"; {', '.join(who)}" if who else ""
    if one.mttr_seconds is None:
        return f"MTTR not known: none of {plural(count, 'disruption')} trained again before the next{by}"
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

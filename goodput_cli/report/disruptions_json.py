"""Disruptions and reliability as JSON holds them, in `analyze` and in `disruptions`: keys as in docs/schema.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from goodput_cli.report.text import finite, iso, well_formed

if TYPE_CHECKING:
    from goodput_cli.analysis.disruptions import Disruption
    from goodput_cli.analysis.reliability import Reliability


def disruption_dict(row: Disruption) -> dict[str, Any]:
    """One disruption; what is not known is null."""
    down = iso(row.last_sign_of_life_ns)
    return {
        "number": row.number,
        "attempt": row.attempt,
        "ended": row.ended,
        "last_step": row.last_step,
        "last_sign_of_life": down,
        "died_between": [down, iso(row.death_latest_ns)],
        "next_start": iso(row.next_start_ns),
        "next_up": iso(row.next_up_ns),
        "resumed_step": row.resumed_step,
        "steps_lost": row.steps_lost,
        "wasted_seconds": row.wasted_ns / 1e9,
        "downtime_seconds": row.downtime_ns / 1e9,
        "undetermined_seconds": row.undetermined_ns / 1e9,
        "queued_seconds": row.queued_ns / 1e9,
        "restart_seconds": row.restart_ns / 1e9,
        "lost_seconds": row.lost_ns / 1e9,
        "time_to_first_step_seconds": _seconds(row.time_to_first_step_ns),
        "regained_after_seconds": _seconds(row.regained_after_ns),
        "ranks_before": row.ranks_before,
        "ranks_after": row.ranks_after,
        "evidence": {name: place and well_formed(place) for name, place in vars(row.evidence).items()},
    }


def reliability_dict(found: Reliability | None) -> dict[str, Any]:
    """Every key is always there; null where there is nothing to average."""
    if found is None:
        return {
            "mtbf_seconds": None,
            "mtbf_ci95_seconds": [None, None],
            "mean_downtime_seconds": None,
            "mean_time_to_regain_seconds": None,
            "exposure_seconds": None,
            "ettr": None,
            "longest_unproductive": None,
        }
    longest = found.longest_unproductive
    return {
        "mtbf_seconds": finite(found.mtbf_seconds),
        "mtbf_ci95_seconds": [finite(bound) for bound in found.mtbf_ci95_seconds],
        "mean_downtime_seconds": finite(found.mean_downtime_seconds),
        "mean_time_to_regain_seconds": finite(found.mean_time_to_regain_seconds),
        "exposure_seconds": found.exposure_ns / 1e9,
        "ettr": finite(found.ettr),
        "longest_unproductive": longest
        and {"start": iso(longest[0]), "end": iso(longest[1]), "seconds": (longest[1] - longest[0]) / 1e9},
    }


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9

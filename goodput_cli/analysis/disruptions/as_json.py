"""Disruptions and reliability as JSON holds them, in `analyze` and in `disruptions`: keys as in docs/schema.json."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from goodput_cli.events.timestamp_text import isos
from goodput_cli.vocabulary.text import finite, iso

if TYPE_CHECKING:
    from goodput_cli.analysis.disruptions.reliability import Reliability
    from goodput_cli.analysis.disruptions.rows import DisruptionColumns, Disruptions


def disruption_dicts(rows: Disruptions) -> Iterator[dict[str, Any]]:
    """Each disruption; what is not known is null."""
    return chain.from_iterable(map(_dicts, rows.parts()))


def _dicts(some: DisruptionColumns) -> Iterator[dict[str, Any]]:
    down, death = isos(some.numbers["last_sign_of_life_ns"]), isos(some.numbers["death_latest_ns"])
    columns: dict[str, Sequence[Any]] = {
        "number": some.values("number"),
        "attempt": some.values("attempt"),
        "ended": some.values("ended"),
        "last_step": some.values("last_step"),
        "last_sign_of_life": down,
        "died_between": [list(bounds) for bounds in zip(down, death, strict=True)],
        "next_start": isos(some.numbers["next_start_ns"]),
        "next_up": isos(some.numbers["next_up_ns"]),
        "resumed_step": some.values("resumed_step"),
        "steps_lost": some.values("steps_lost"),
        "wasted_seconds": some.seconds("wasted_ns"),
        "downtime_seconds": some.seconds("downtime_ns"),
        "undetermined_seconds": some.seconds("undetermined_ns"),
        "queued_seconds": some.seconds("queued_ns"),
        "restart_seconds": some.seconds("restart_ns"),
        "lost_seconds": (some.lost_ns / 1e9).tolist(),
        "time_to_first_step_seconds": some.seconds("time_to_first_step_ns"),
        "regained_after_seconds": some.seconds("regained_after_ns"),
        "ranks_before": some.values("ranks_before"),
        "ranks_after": some.values("ranks_after"),
        "evidence": [dict(zip(some.evidence, row, strict=True)) for row in zip(*some.evidence.values(), strict=True)],
    }
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


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

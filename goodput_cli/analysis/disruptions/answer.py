"""Disruptions and reliability as JSON has them, in `analyze` and in `disruptions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from goodput_cli.analysis.answer import (
    Amount,
    Answer,
    Instant,
    MeasuredWindow,
    NamedJob,
    Part,
    Row,
    Rows,
    measured_window,
    named_job,
    row_of,
)
from goodput_cli.analysis.disruptions.cost import cost_columns
from goodput_cli.analysis.disruptions.reliability import Reliability
from goodput_cli.analysis.disruptions.rows import COLUMNS, Disruptions
from goodput_cli.analysis.price import Price
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.table import json_rows
from goodput_cli.vocabulary.text import iso

_WORDS = (
    "one passage to a next attempt that does not follow a believed clean end; amounts are whole, whatever the window"
)
_PRICED = (*COLUMNS, *cost_columns(None))
DisruptionRows = Sequence[Annotated[Row, row_of("disruption", _WORDS, COLUMNS)]]


class UnproductiveStretch(Part):
    """longest stretch of the window without productive time"""

    start: Instant
    """start"""
    end: Instant
    """end"""
    seconds: Amount
    """length"""


class ReliabilityPart(Part):
    """over the disruptions whose last sign of life lies in the window; null where there is nothing to average"""

    mtbf_seconds: Amount | None = None
    """exposure_seconds / disruptions"""
    mtbf_ci95_seconds: tuple[float | None, float | None] = (None, None)
    """95 % Poisson interval (chi-square, time-truncated); without disruptions only the lower bound is known"""
    mean_downtime_seconds: Amount | None = None
    """mean of downtime_seconds"""
    mean_time_to_regain_seconds: Amount | None = None
    """mean of regained_after_seconds, over those that were regained"""
    exposure_seconds: Amount | None = None
    """time of the window in which attempts were up"""
    ettr: Amount | None = None
    """effective training time ratio: productive / window, 0..1"""
    longest_unproductive: UnproductiveStretch | None = None


class DisruptionCost(Part):
    """of all of them; null without --accelerators"""

    accelerators: float
    """held by the job"""
    price_per_hour: float | None
    """of one accelerator"""
    lost_seconds: float
    """of all disruptions"""
    accelerator_hours: float
    """lost"""
    cost: float | None
    """null without --price-per-hour"""


class DisruptionsAnswer(Answer, kw_only=True):
    """goodput disruptions --format json: every disruption of the window and what they add up to"""

    kind: Literal["disruptions"] = "disruptions"
    job: NamedJob
    window: MeasuredWindow
    disruptions: Sequence[Annotated[Row, row_of("priced_disruption", "a disruption and what it cost", _PRICED)]]
    reliability: ReliabilityPart
    cost: DisruptionCost | None


def disruptions_answer(analysis: Analysis, price: Price | None) -> DisruptionsAnswer:
    """The disruptions of the window, and what they cost where the price is known."""
    rows = analysis.disruptions
    return DisruptionsAnswer(
        job=named_job(analysis),
        window=measured_window(analysis),
        disruptions=json_rows((*COLUMNS, *cost_columns(price)), len(rows), rows.parts),
        reliability=reliability_part(analysis.reliability),
        cost=None if price is None else _cost(rows, price),
    )


def disruption_rows(rows: Disruptions) -> Rows:
    """The disruptions alone."""
    return json_rows(COLUMNS, len(rows), rows.parts)


def reliability_part(reliability: Reliability | None) -> ReliabilityPart:
    """Every key is always there; null where there is nothing to average."""
    if reliability is None:
        return ReliabilityPart()
    longest = reliability.longest_unproductive
    return ReliabilityPart(
        mtbf_seconds=reliability.mtbf_seconds,
        mtbf_ci95_seconds=reliability.mtbf_ci95_seconds,
        mean_downtime_seconds=reliability.mean_downtime_seconds,
        mean_time_to_regain_seconds=reliability.mean_time_to_regain_seconds,
        exposure_seconds=reliability.exposure_ns / 1e9,
        ettr=reliability.ettr,
        longest_unproductive=longest
        and UnproductiveStretch(start=iso(longest[0]), end=iso(longest[1]), seconds=(longest[1] - longest[0]) / 1e9),
    )


def _cost(rows: Disruptions, price: Price) -> DisruptionCost:
    lost = int(rows.column("lost_ns").sum())
    return DisruptionCost(
        accelerators=price.accelerators,
        price_per_hour=price.per_hour,
        lost_seconds=lost / 1e9,
        accelerator_hours=price.hours(lost),
        cost=price.money(lost),
    )

"""An insight as JSON has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from goodput_cli.analysis.answer import Amount, Count, Instant, Part
from goodput_cli.analysis.insights.kinds import BY_CODE, Insight
from goodput_cli.vocabulary.text import iso


class InsightPart(Part):
    """what happened, what it cost and what to do; no second is in two insights"""

    code: Annotated[str, Meta(extra_json_schema={"enum": list(BY_CODE)})]
    title: str
    """its kind in a few words"""
    text: str
    """what happened"""
    advice: str
    """what to do"""
    seconds: Amount
    ns: Count
    seconds_in_goodput: Amount
    """of seconds: what counts as goodput all the same, since it is training that was kept, though slow"""
    percent: Amount
    """of the window without exclusions"""
    start: Instant
    end: Instant
    """from when to when it happened"""
    count: Count
    """how many things it is about"""
    evidence: Sequence[str]
    """file:line or insertId of the first lines that show it"""
    disruptions: Sequence[Count]
    """numbers of the disruptions that show it, at most 100"""
    steps: Sequence[int]
    """steps that show it: those that hung, or with which a slow regime began"""
    categories: Sequence[str]
    """rows of badput that it is about, a custom event as custom_badput_events:LABEL"""
    command: str
    """the command that shows more"""
    accelerator_hours: Amount | None = None
    """seconds x accelerators, in hours; null without --accelerators, and in the queue"""
    cost: Amount | None = None
    """accelerator_hours x price; null without --price-per-hour"""


def insight_part(insight: Insight) -> InsightPart:
    """An insight as JSON has it."""
    return InsightPart(
        code=insight.code,
        title=insight.kind.title,
        text=insight.text,
        advice=insight.advice,
        seconds=insight.seconds,
        ns=insight.ns,
        seconds_in_goodput=insight.in_goodput_ns / 1e9,
        percent=insight.percent,
        start=iso(insight.start_ns),
        end=iso(insight.end_ns),
        count=insight.count,
        evidence=insight.evidence,
        disruptions=insight.about.disruptions,
        steps=insight.about.steps,
        categories=insight.about.categories,
        command=insight.command_line(),
        accelerator_hours=insight.accelerator_hours,
        cost=insight.cost,
    )

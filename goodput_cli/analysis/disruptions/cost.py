"""What lost time costs in accelerator hours and money, and the columns that say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from goodput_cli.analysis.price import Price
from goodput_cli.analysis.sheet import Audience, Cell, Column

if TYPE_CHECKING:
    from goodput_cli.analysis.disruptions.rows import DisruptionColumns


def cost_columns(price: Price | None) -> tuple[Column, ...]:
    """What each disruption cost, for programs; None without a price."""
    return (
        Column(
            "accelerator_hours",
            "number",
            Audience.PROGRAMS,
            _of_lost(lambda ns: None if price is None else price.hours(ns)),
            "lost_seconds x accelerators, in hours; null without --accelerators",
            nullable=True,
        ),
        Column(
            "cost",
            "number",
            Audience.PROGRAMS,
            _of_lost(lambda ns: None if price is None else price.money(ns)),
            "accelerator_hours x price; null without --price-per-hour",
            nullable=True,
        ),
    )


def people_cost_columns(price: Price) -> dict[int, Column]:
    """The same for people, by place."""
    columns = {6: Column("accelerator h", "number", Audience.PEOPLE, _of_lost(lambda ns: round(price.hours(ns), 2)))}
    if price.per_hour is not None:
        money = _of_lost(lambda ns: round(price.money(ns) or 0.0, 2))
        columns[7] = Column("cost", "number", Audience.PEOPLE, money)
    return columns


def _of_lost(value: Callable[[int], Cell]) -> Callable[[DisruptionColumns], list[Cell]]:
    """The values of a column: something made of what each disruption lost (ns)."""
    return lambda part: [value(ns) for ns in part.numbers["lost_ns"].tolist()]

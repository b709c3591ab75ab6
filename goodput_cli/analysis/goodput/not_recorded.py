"""What a log could have shown: a category without evidence is "not recorded", which is not zero."""

from __future__ import annotations

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import codes_in
from goodput_cli.events.schema import Edge, Kind
from goodput_cli.vocabulary.categories import Category

_EVIDENCE = {category: frozenset(Kind[name] for name in category.row.evidence) for category in Category}
"""Kinds of events of which a log must hold one; empty where a category needs no line of its own."""


def not_recorded(timeline: Timeline) -> tuple[str, ...]:
    """Names of the categories that the job's events hold no evidence for, in the order of `Category`.

    A category whose lines the job never wrote is unknown. So is what could not be measured: startup without a usual
    step time, stalls where they are not looked for, slowdown without a reference.
    """
    kinds = {Kind(value) for value in codes_in(timeline.table.kind)} - _points(timeline)
    missing = {category for category, evidence in _EVIDENCE.items() if evidence and not kinds & evidence}
    missing -= _checkpointed(timeline)
    missing |= _not_measured(timeline)
    occurring = {category for category, _ in timeline.ledger.keys}
    return tuple(category.id for category in sorted(missing - occurring))


def _points(timeline: Timeline) -> set[Kind]:
    """Saves and restores of which no line says how long they took."""
    table = timeline.table
    return {kind for kind in (Kind.SAVE, Kind.RESTORE) if not np.any(table.edge[table.kind == kind] == Edge.INTERVAL)}


def _checkpointed(timeline: Timeline) -> set[Category]:
    """What checkpoint logs show without a line of its own: a save between a step's end and the line that says it is
    saved, a restore before a load."""
    progress = timeline.progress
    if progress is None:
        return set()
    shown = {Category.SAVE} if len(progress.saves) else set()
    return shown | ({Category.RESTORE} if np.any(progress.load_row >= 0) else set())


def _not_measured(timeline: Timeline) -> set[Category]:
    """What follows from the usual step time or a reference, where there is none."""
    missing: set[Category] = set()
    progress = timeline.progress
    asynchronous = progress is not None and progress.asynchronous
    if np.all(np.isnan(timeline.usual_step.median)) or asynchronous:
        missing.add(Category.PROGRAM_STARTUP)
    measured = timeline.records is not None and timeline.reference_ns is None and timeline.rules.method.stall_factor > 0
    if not measured or np.all(np.isnan(timeline.usual_step.median)):
        missing.add(Category.STALL)
    if timeline.reference_ns is None:
        missing.add(Category.SLOWDOWN)
    return missing

"""What a log could have shown: a category without evidence is "not recorded", which is not zero."""

from __future__ import annotations

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.events.schema import Kind
from goodput_cli.vocabulary.categories import CATEGORIES, Category

_BY_KIND: dict[Category, tuple[Kind, ...]] = {
    Category.TPU_INITIALIZATION: (Kind.TPU_INIT,),
    Category.TRAINING_PREP: (Kind.PREP,),
    Category.DATA_LOADING_SYNC: (Kind.DATA,),
    Category.CUSTOM: (Kind.CUSTOM,),
    Category.ELASTIC_DOWN: (Kind.ELASTIC_DOWN, Kind.SLICES),
    Category.ELASTIC_UP: (Kind.ELASTIC_UP, Kind.SLICES),
    Category.ELASTIC_REINIT: (Kind.ELASTIC_REINIT, Kind.SLICES),
    Category.QUEUED: (Kind.SCHEDULED,),
}


def not_recorded(timeline: Timeline) -> tuple[str, ...]:
    """Names of the categories that the job's events hold no evidence for, in the order of `CATEGORIES`.

    A category whose lines the job never wrote is unknown. So is what could not be measured: startup without a usual
    step time, stalls where they are not looked for, slowdown without a reference.
    """
    kinds = {Kind(value) for value in np.flatnonzero(np.bincount(timeline.table.kind)).tolist()}
    missing = {category for category, needed in _BY_KIND.items() if not kinds & set(needed)}
    missing |= _checkpoints(timeline, kinds) | _inferred(timeline)
    occurring = {category for category, _ in timeline.ledger.keys}
    return tuple(CATEGORIES[category] for category in sorted(missing - occurring))


def _checkpoints(timeline: Timeline, kinds: set[Kind]) -> set[Category]:
    """Saves and restores are seen as Orbax intervals; in checkpoint logs also a save between a step's end and the
    line that says it is saved, and a restore before a load."""
    progress = timeline.progress
    missing = set()
    if Kind.SAVE not in kinds and (progress is None or len(progress.saves) == 0):
        missing.add(Category.SAVE)
    if Kind.RESTORE not in kinds and (progress is None or not np.any(progress.load_row >= 0)):
        missing.add(Category.RESTORE)
    return missing


def _inferred(timeline: Timeline) -> set[Category]:
    """What follows from the usual step time or a reference."""
    missing: set[Category] = set()
    progress = timeline.progress
    asynchronous = progress is not None and progress.asynchronous
    if np.all(np.isnan(timeline.usual_step.median)) or asynchronous:
        missing.add(Category.PROGRAM_STARTUP)
    measured = timeline.records is not None and timeline.reference_ns is None and timeline.rules.stall_factor > 0
    if not measured or np.all(np.isnan(timeline.usual_step.median)):
        missing.add(Category.STALL)
    if timeline.reference_ns is None:
        missing.add(Category.SLOWDOWN)
    return missing

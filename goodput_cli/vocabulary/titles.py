"""Short titles of categories, made of the words of their names, for tables where a full name has no room."""

from __future__ import annotations

TITLES = {
    "program_startup": "program startup",
    "tpu_initialization": "tpu initialization",
    "training_prep": "training prep",
    "data_loading_sync": "data loading",
    "data_loading_async": "data loading in steps",
    "unproductive_checkpoint_save_time": "checkpoint save",
    "unproductive_checkpoint_restore_time": "checkpoint restore",
    "wasted_progress_from_disruption": "wasted progress",
    "infrastructure_recovery_from_disruption": "recovery",
    "custom_badput_events": "custom",
    "elastic_slice_down": "elastic slice down",
    "elastic_scale_up": "elastic scale-up",
    "elastic_reinitialization": "elastic reinit",
    "step_stall": "step stall",
    "training_slowdown": "training slowdown",
    "disruption_undetermined": "undetermined",
}
"""Vocabulary name -> title. A name without one is its own title."""

REMARKS = {
    "data_loading_async": "overlaps training, not badput",
}
"""What must be said about time beside the ledger."""


def title(category: str) -> str:
    """The short title of a category."""
    return TITLES.get(category, category)


def short_title(category: str, label: str | None) -> str:
    """The short title of a category; a labelled one as `custom:LABEL`, as it is asked for."""
    return title(category) if label is None else f"custom:{label}"

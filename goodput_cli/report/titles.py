"""What a category is called in plain words, beside the name that programs use."""

from __future__ import annotations

TITLES = {
    "productive": "Productive training",
    "program_startup": "Compilation and warm-up",
    "tpu_initialization": "Device initialisation",
    "training_prep": "Training preparation",
    "data_loading_sync": "Waiting for data",
    "data_loading_async": "Data loading inside steps",
    "unproductive_checkpoint_save_time": "Saving checkpoints",
    "unproductive_checkpoint_restore_time": "Loading checkpoints",
    "wasted_progress_from_disruption": "Progress lost",
    "infrastructure_recovery_from_disruption": "Down, restarting",
    "custom_badput_events": "Own blocking events",
    "elastic_slice_down": "Waiting: slice down",
    "elastic_scale_up": "Waiting: scale-up",
    "elastic_reinitialization": "Elastic re-initialisation",
    "step_stall": "Stalled inside a step",
    "training_slowdown": "Slower than the reference",
    "disruption_undetermined": "Lost or down, unlogged",
    "stopped": "Stopped on purpose",
    "queued": "Queued",
    "excluded": "Excluded",
    "other": "Unexplained",
}
"""Vocabulary name -> title. A name without one is its own title."""

REMARKS = {
    "data_loading_async": "overlaps training, not badput",
}
"""What must be said about time beside the ledger."""


def title(category: str) -> str:
    """The category in plain words."""
    return TITLES.get(category, category)

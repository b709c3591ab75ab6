"""The categories of accounting §2: where a second can be. The order is the order in which people are shown them."""

from __future__ import annotations

from enum import IntEnum


class Category(IntEnum):
    """Code of a category in the columns of the engine; `CATEGORIES[code]` is its name everywhere else."""

    PRODUCTIVE = 0
    PROGRAM_STARTUP = 1
    TPU_INITIALIZATION = 2
    TRAINING_PREP = 3
    DATA_LOADING_SYNC = 4
    SAVE = 5
    RESTORE = 6
    WASTED = 7
    RECOVERY = 8
    CUSTOM = 9
    ELASTIC_DOWN = 10
    ELASTIC_UP = 11
    ELASTIC_REINIT = 12
    STALL = 13
    SLOWDOWN = 14
    UNDETERMINED = 15
    STOPPED = 16
    QUEUED = 17
    EXCLUDED = 18
    OTHER = 19


CATEGORIES: tuple[str, ...] = (
    "productive",
    "program_startup",
    "tpu_initialization",
    "training_prep",
    "data_loading_sync",
    "unproductive_checkpoint_save_time",
    "unproductive_checkpoint_restore_time",
    "wasted_progress_from_disruption",
    "infrastructure_recovery_from_disruption",
    "custom_badput_events",
    "elastic_slice_down",
    "elastic_scale_up",
    "elastic_reinitialization",
    "step_stall",
    "training_slowdown",
    "disruption_undetermined",
    "stopped",
    "queued",
    "excluded",
    "other",
)
"""Names by code: `CATEGORIES[Category.WASTED] == "wasted_progress_from_disruption"`."""

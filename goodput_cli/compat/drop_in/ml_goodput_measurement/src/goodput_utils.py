"""Replacement of `ml_goodput_measurement.goodput_utils`: the names that programs use."""

from __future__ import annotations

import enum


class MetricType(enum.Enum):
    """Keys of `get_job_goodput_details`."""

    GOODPUT_TIME = "goodput_time"
    BADPUT_TIME = "badput_time"
    MAX_PRODUCTIVE_STEP = "max_productive_step"
    TOTAL_ELAPSED_TIME = "total_elapsed_time"
    DISRUPTION_COUNT = "disruption_count"
    STEP_TIME_DEVIATION = "step_time_deviation"
    IDEAL_STEP_TIME = "ideal_step_time"
    TOTAL_EXCLUDED_TIME = "total_excluded_time"


class IntervalMetricType(enum.Enum):
    """Keys of `get_interval_metric_details`."""

    INTERVAL_GOODPUT = "interval_goodput"
    INTERVAL_BADPUT = "interval_badput"
    INTERVAL_SIZE = "interval_size"


class GoodputType(enum.Enum):
    """The only type of goodput."""

    TOTAL = 1


class BadputType(enum.Enum):
    """Types of badput; the names are those of the categories of goodput-cli, in upper case."""

    TPU_INITIALIZATION = 1
    TRAINING_PREP = 2
    PROGRAM_STARTUP = 3
    DATA_LOADING_SYNC = 4
    DATA_LOADING_ASYNC = 5
    UNPRODUCTIVE_CHECKPOINT_SAVE_TIME = 6
    UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME = 7
    WASTED_PROGRESS_FROM_DISRUPTION = 8
    INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION = 9
    CUSTOM_BADPUT_EVENTS = 10
    OTHER = 11
    ELASTIC_SLICE_DOWN = 12
    ELASTIC_SCALE_UP = 13
    ELASTIC_REINITIALIZATION = 14


ACTIVITY_EXCLUSION_LIST = ["DATA_LOADING_ASYNC"]


def __getattr__(name: str) -> object:
    """Create `GCPOptions` on first use: importing `dataclasses` takes longer than importing the recorder."""
    if name != "GCPOptions":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .gcp_options import GCPOptions

    return GCPOptions

"""Event types with the names of `resiliency.goodput_measure.constant`; every type that goodput-cli reads has one."""

USER_SCHEDULED = "user_scheduled"
JOB_STARTED = "job_started"
CHECKPOINT_LOADED = "checkpoint_loaded"
STEP_FINISHED = "step_finished"
CHECKPOINT_SAVED = "checkpoint_saved"
JOB_TERMINATED = "job_terminated"
JOB_CRASHED = "job_crashed"
USER_TERMINATED = "user_terminated"
JOB_FINISHED = "job_finished"


def __getattr__(name: str) -> object:
    """Raise ImportError for `EVENT_TYPE_ORDER`, so that `from ... import` shows the reason."""
    if name == "EVENT_TYPE_ORDER":
        raise ImportError("the drop-in has no EVENT_TYPE_ORDER: goodput orders events by their timestamps")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

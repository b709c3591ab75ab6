"""Package with the modules of the original."""

_ABSENT = {
    "checkpoint_badput_calculator": "`goodput analyze` and `goodput steps` show saves and restores",
    "gcp_metrics": "`goodput monitor --publish gcm:PROJECT` and `GoodputMonitor` publish in Cloud Monitoring",
    "goodput_cache": "each call reads the log, so there is nothing to cache",
}
"""Modules of the original without a counterpart, and what to use instead."""


def __getattr__(name: str) -> object:
    """Raise ImportError for a module that only the original has, so that `from ... import` shows the reason."""
    if name in _ABSENT:
        raise ImportError(f"the drop-in has no {name}: {_ABSENT[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

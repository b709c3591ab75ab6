"""Replacement of `ml_goodput_measurement`."""

from . import src
from .src import goodput, goodput_elastic, goodput_utils

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .src import monitoring, monitoring_elastic

__all__ = ["goodput", "goodput_elastic", "goodput_utils", "monitoring", "monitoring_elastic"]


def __getattr__(name: str) -> object:
    """Import the monitors on first use: programs that only record do not need them."""
    if name not in ("monitoring", "monitoring_elastic"):
        return getattr(src, name)
    from importlib import import_module

    return import_module(f".src.{name}", __name__)

"""In the place of `ml_goodput_measurement`; its monitor is not here."""

from .src import goodput, goodput_elastic, goodput_utils

__all__ = ["goodput", "goodput_elastic", "goodput_utils"]

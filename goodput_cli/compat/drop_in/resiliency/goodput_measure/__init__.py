"""Replacement of `resiliency.goodput_measure`."""

from . import constant, logging

__all__ = ["constant", "logging"]

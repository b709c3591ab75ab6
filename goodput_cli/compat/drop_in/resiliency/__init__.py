"""Replacement of `resiliency`: the part that measures goodput."""

"""Samples of accelerators: their tables, clocks, names and jobs."""

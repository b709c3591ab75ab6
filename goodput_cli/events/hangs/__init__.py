"""Hangs: positions of ranks in the operations of process groups, and reports about ranks that others wait for."""

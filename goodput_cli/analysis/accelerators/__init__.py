"""Accelerators (docs/accelerators.md): how busy the devices of a job were, and their energy."""

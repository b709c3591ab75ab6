"""Training (accounting §4): steps, lineage, kept and wasted progress."""

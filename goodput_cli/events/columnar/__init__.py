"""JSON lines of learnt shapes, read as columns: the fast path of the reader."""

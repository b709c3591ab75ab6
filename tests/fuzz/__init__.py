"""Mutated inputs of every reader and of every file that is read back: `make fuzz`."""

"""Mutated inputs for every reader and for every file that is read back: `make fuzz`."""

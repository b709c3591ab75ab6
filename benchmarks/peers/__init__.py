"""Programs that others run for the same answer. Each is a script of its own and runs in the venv of the peers."""

"""Programs of other projects for the same answer. Each is a separate script and runs in the venv of the peers."""

"""What a person says beside the logs: labels, allocations, capacity."""

"""From the results of runs to the sums of a fleet, in exact numbers."""

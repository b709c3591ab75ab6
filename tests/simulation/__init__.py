"""Jobs with a known root cause and cost, to test the first screen."""

"""Where a monitor publishes: one module a kind of target."""

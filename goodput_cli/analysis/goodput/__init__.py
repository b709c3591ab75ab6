"""`goodput analyze`: the share of the window that became progress, and where the rest went."""

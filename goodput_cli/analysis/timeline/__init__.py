"""`goodput timeline`: the segments of a window and the lines that prove them."""

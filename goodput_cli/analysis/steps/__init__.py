"""`goodput steps`: how long steps took, when they were slow, and what the log measured beside them."""

"""Compatibility: the names of other libraries, and their accounts beside ours; nothing else of goodput needs it."""

"""Log formats: one module each, distinguished by the contents of their lines."""

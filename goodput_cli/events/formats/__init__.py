"""Log formats: one module each, told apart by the lines themselves."""

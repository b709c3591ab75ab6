"""Where lines go: one module a kind of sink."""

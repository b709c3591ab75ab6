"""Destinations of lines: one module per kind of sink."""

"""Hooks of training frameworks; each module is imported by name, and only then its framework."""

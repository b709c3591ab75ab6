"""Hooks of training frameworks. Each module is imported by name, and imports only its own framework."""

"""Where every second goes: docs/accounting.md as pure functions on NumPy columns."""

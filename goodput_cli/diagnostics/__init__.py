"""Diagnostics: what was noticed about a log, each with a code, a severity and what to do."""

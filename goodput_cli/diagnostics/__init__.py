"""Diagnostics: problems noticed in a log, each with a code, a severity and advice."""

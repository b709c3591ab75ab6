"""The record of lives that the accounting of a job gives."""

"""Time and memory of whole commands, compared with other tools on the same log (docs/performance.md)."""

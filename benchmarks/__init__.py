"""How long whole commands take, and how much memory, beside what others need for the same log (docs/performance.md)."""

"""HTML pages: self-contained files that need no network, and no script for reading the numbers."""

"""HTML: pages of one file each that need no network, and no script for what can be read."""

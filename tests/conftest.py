"""Set-up that all tests share."""

from __future__ import annotations

from hypothesis import settings

# Machines are shared and noisy: no test may fail because it took long.
settings.register_profile("goodput", deadline=None)
settings.load_profile("goodput")

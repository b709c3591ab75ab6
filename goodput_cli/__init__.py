"""goodput: where every second of a training job went.

import goodput_cli
analysis = goodput_cli.analyze("run.jsonl", reference_step_time=8)
print(analysis.goodput_percent, analysis.segments)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goodput_cli.api.analyze import analyze

__version__ = "0.1.0"
__all__ = ["__version__", "analyze"]


def __getattr__(name: str) -> Any:
    """Import the analysis when it is asked for: `goodput --help` needs none of it."""
    if name == "analyze":
        from goodput_cli.api.analyze import analyze

        return analyze
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

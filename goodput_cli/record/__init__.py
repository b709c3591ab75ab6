"""The recorder: writes the events of a training job, and never costs it a step.

    from goodput_cli.record import Recorder          # or, from the small wheel: from goodput_record import Recorder

    recorder = Recorder("llm-7b")
    with recorder.run():
        for step in recorder.steps(range(1000)):
            train(step)

Standard library only, and nothing else of goodput-cli: it is also built as the wheel `goodput-record`.
"""

from __future__ import annotations

from .names import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .recorder import Recorder

__all__ = ["Recorder", "__version__"]


def __getattr__(name: str) -> object:
    """Import the recorder on first use: readers of logs need only the table in `native`."""
    if name == "Recorder":
        from .recorder import Recorder

        return Recorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

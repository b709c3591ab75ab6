"""The reference library in this process: a process of its own imports it for seconds."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections.abc import Iterable

from goodput_cli.compat.library_worker import answer_to


def import_library() -> None:
    """Import the library, which warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ml_goodput_measurement.src.goodput_elastic  # noqa: F401


def run_here(lines: Iterable[str], timeout: float) -> str:
    """Return what the process of the library prints for these lines. Replaces `library._run`."""
    import_library()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return json.dumps(answer_to(lines))

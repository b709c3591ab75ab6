"""The process that runs the reference library: `python -m goodput_cli.compat.library_worker`.

It reads a line with the query and the entries (JSON, one per line) from standard input and writes one JSON object to
standard output. Output and logging of the library are kept separate.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

DISTRIBUTION = "ml_goodput_measurement"


def main() -> None:
    """Handle one query. An exception of the library is a result, too."""
    answer_stream = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(sys.stderr):
        answer = answer_to(sys.stdin)
    answer_stream.write(json.dumps(answer) + "\n")
    answer_stream.close()


def answer_to(lines: Iterable[str]) -> dict[str, Any]:
    """Return the answer to a query. lines: the query and the entries."""
    question, *entries = map(json.loads, lines)
    with tempfile.TemporaryDirectory() as folder:
        try:
            answer = compute(entries, question, folder)
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
    return {"version": version(DISTRIBUTION), **answer}


def compute(entries: list[dict[str, Any]], question: dict[str, Any], folder: str) -> dict[str, Any]:
    """Return the cumulative result of the library's calculator, in seconds.

    question: job; elastic: selects its calculator; asked_at: epoch seconds, the time of the query, because a job
    without an end is measured up to then. folder: for its cache.
    """
    from ml_goodput_measurement.src.goodput import GoodputCalculator
    from ml_goodput_measurement.src.goodput_elastic import ElasticGoodputCalculator

    base: Any = ElasticGoodputCalculator if question["elastic"] else GoodputCalculator
    asked_at = datetime.fromtimestamp(question["asked_at"], UTC)

    class Calculator(base):  # type: ignore[misc]
        """The library's calculator with a given current time."""

        def _get_total_job_time(self, query_time: datetime) -> Any:  # noqa: ARG002 - the library's signature
            return super()._get_total_job_time(asked_at)

    # The name is only used for cache files: a name from a log could lead out of the folder.
    calculator = Calculator("job", "log", cloud_logger=_EntryReader(entries), cache_dir=folder)
    goodput, _, last_step = calculator.get_job_goodput(include_badput_breakdown=True)
    info = calculator._goodput_cache.get_goodput_info()
    return {
        "goodput_percent": float(goodput),
        "last_step": int(last_step),
        "total_seconds": float(info.total_elapsed_time),
        "productive_seconds": float(info.total_productive_time),
        "badput_seconds": [[*name, float(seconds)] for name, seconds in _flat(info.total_unproductive_time)],
        "disruptions": int(info.number_of_disruptions),
    }


def _flat(amounts: dict[Any, Any]) -> list[tuple[tuple[str, str | None], float]]:
    """Return (category, label) and seconds of every type."""
    flat: list[tuple[tuple[str, str | None], float]] = []
    for kind, amount in amounts.items():
        if isinstance(amount, dict):
            flat += [((kind.name.lower(), label), seconds) for label, seconds in amount.items()]
        else:
            flat.append(((kind.name.lower(), None), amount))
    return flat


class _EntryReader:
    """Replacement of the library's Cloud Logging client."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self._found = entries
        first = next((entry["job_start_time"] for entry in entries if "job_start_time" in entry), 0.0)
        self.job_start_time = datetime.fromtimestamp(first, UTC)

    def read_cloud_logging_entries(self, *_: object, **__: object) -> tuple[list[dict[str, Any]], tuple[None, None]]:
        """Return all entries, in order of time, and no last one."""
        return self._found, (None, None)


if __name__ == "__main__":
    main()

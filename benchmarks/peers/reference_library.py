"""Goodput of a recorder log from `ml-goodput-measurement`, with a file instead of Cloud Logging.

The log is read with orjson, so that the library is not charged for fetching it.
"""

from __future__ import annotations

import datetime
import sys
import tempfile

import orjson
from ml_goodput_measurement.src.goodput import GoodputCalculator


class FileLogger:
    """Logger interface of the calculator."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as stream:
            self._entries = [orjson.loads(line) for line in stream]
        first = self._entries[0]
        self.job_start_time = datetime.datetime.fromtimestamp(first["job_start_time"], tz=datetime.UTC)

    def read_cloud_logging_entries(self, *_: object, **__: object) -> tuple[list[dict[str, object]], object]:
        """Return all entries, and no last one."""
        return self._entries, (None, None)


def main() -> None:
    """Print the goodput in percent and the last step."""
    with tempfile.TemporaryDirectory() as folder:
        logger = FileLogger(sys.argv[1])
        job = str(logger._entries[0]["job_name"])
        calculator = GoodputCalculator(job, "log", cloud_logger=logger, cache_dir=folder)  # type: ignore[arg-type]
        goodput, _, last_step = calculator.get_job_goodput()
    print(goodput, last_step)


main()

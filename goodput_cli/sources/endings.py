"""How files are named that hold logs."""

from __future__ import annotations

import re

LOG_ENDINGS = (".jsonl", ".json", ".log", ".ndjson", ".out", ".err", ".txt")
PACKED_ENDINGS = ("", ".gz", ".zst")
_ENDING, _PACKED = ("|".join(map(re.escape, endings)) for endings in (LOG_ENDINGS, PACKED_ENDINGS))
_LOG_NAME = re.compile(rf"(?:{_ENDING})(?:\.\d{{1,4}}|[-.]\d{{8}}(?:-\d+)?)?(?:{_PACKED})$")
"""What is read of a folder, files that were rotated (`train.log.1`, `train.log-20260301.gz`) among it."""
EVENT_FILE = "tfevents"
"""What stands in the names of TensorBoard's event files, which have no ending of their own."""
PARQUET_ENDING = ".parquet"
MANIFEST_ENDING = ".manifest"
"""Of a snapshot, and of what stands beside one (`sources.snapshot`)."""


def is_event_file(name: str) -> bool:
    """Whether a file is called as TensorBoard calls its event files."""
    return EVENT_FILE in name.replace("\\", "/").rpartition("/")[2]


def is_log_name(name: str) -> bool:
    """Whether a file is read where the folder that it is in was named."""
    return _LOG_NAME.search(name.lower()) is not None or is_event_file(name)

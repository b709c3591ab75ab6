"""How files are named that hold logs."""

from __future__ import annotations

LOG_ENDINGS = (".jsonl", ".json", ".log", ".ndjson", ".out", ".err", ".txt")
PACKED_ENDINGS = ("", ".gz", ".zst")
FOLDER_ENDINGS = tuple(ending + packed for ending in LOG_ENDINGS for packed in PACKED_ENDINGS)
"""What is read of a folder."""
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
    return name.lower().endswith(FOLDER_ENDINGS) or is_event_file(name)

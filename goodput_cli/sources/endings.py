"""How files are named that hold logs."""

from __future__ import annotations

LOG_ENDINGS = (".jsonl", ".json", ".log", ".ndjson", ".out", ".err", ".txt")
PACKED_ENDINGS = ("", ".gz", ".zst")
FOLDER_ENDINGS = tuple(ending + packed for ending in LOG_ENDINGS for packed in PACKED_ENDINGS)
"""What is read of a folder."""
PARQUET_ENDING = ".parquet"
MANIFEST_ENDING = ".manifest"
"""Of a snapshot, and of what stands beside one (`sources.snapshot`)."""

"""500 objects of 200 KB from a bucket on loopback, against the bare client that only downloads them.

    python -m benchmarks.buckets

Prints bytes per second of both, and their ratio, which is at least 0.6: `source` is the input of the reader (lines in
order, pinned, bounded in memory), `events` the whole way to the table of events. Exits with 1 if the ratio is lower.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

OBJECTS = 500
OBJECT_BYTES = 200_000
THREADS = 16
ROUNDS = 5
NEEDED = 0.6
URI = "gs://logs/many"


def main() -> int:
    """Run the benchmark and return the exit code."""
    with _server() as url:
        os.environ["STORAGE_EMULATOR_HOST"] = url
        total = _fill(url)
        _bare(), _source()  # warm up: imports, and the server's threads
        bare, source, events = [], [], []
        for _ in range(ROUNDS):  # alternate, so that a busy machine slows all three
            bare.append(_seconds(_bare, total))
            source.append(_seconds(_source, total))
            events.append(_seconds(_events, None))
    for name, seconds in (("bare client", min(bare)), ("source", min(source)), ("events", min(events))):
        print(f"{name:12} {seconds:6.2f} s  {total / seconds / 1e6:7.1f} MB/s  ratio {min(bare) / seconds:.2f}")
    ratio = min(bare) / min(source)
    print(f"buckets: source at {ratio:.2f} of the bare client's rate (at least {NEEDED})")
    return 0 if ratio >= NEEDED else 1


def _seconds(work: Callable[[], int], expected: int | None) -> float:
    started = time.perf_counter()
    done = work()
    seconds = time.perf_counter() - started
    assert expected in (None, done), f"{done} bytes instead of {expected}"
    return seconds


def _bare() -> int:
    """Run the client alone, with as many threads as ours."""
    from google.cloud.storage import Client

    client = Client(project="emulated")
    blobs = list(client.list_blobs("logs", prefix="many/"))
    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(lambda blob: len(blob.download_as_bytes()), blobs))


def _source() -> int:
    from goodput_cli.sources.base import RawBatch, ReadContext, source_for

    batches = source_for(URI).read(URI, ReadContext(lambda _: None))
    return sum(len(batch.data) for batch in batches if isinstance(batch, RawBatch))


def _events() -> int:
    from goodput_cli.events.read import read_events

    return len(read_events([URI]).table)


def _fill(url: str) -> int:
    """Upload the objects; return their total bytes."""
    total = 0
    line_at = 0
    for number in range(OBJECTS):
        lines = []
        size = 0
        while size < OBJECT_BYTES:
            record = {"job_name": "j", "step_count": line_at, "step_start_time": 1_767_225_600 + line_at * 2.5}
            lines.append(json.dumps(record).encode() + b"\n")
            size += len(lines[-1])
            line_at += 1
        address = f"{url}/control/object/logs/many/{number:04}.jsonl"
        request = urllib.request.Request(address, data=b"".join(lines), method="PUT")
        urllib.request.urlopen(request).close()
        total += size
    return total


@contextlib.contextmanager
def _server() -> Iterator[str]:
    program = Path(__file__).parent.parent / "tests" / "support" / "bucket_server.py"
    with subprocess.Popen([sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.communicate()


if __name__ == "__main__":
    sys.exit(main())

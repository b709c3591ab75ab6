"""50 000 entries from a Cloud Logging server on loopback, against a bare gRPC stub that only reads the pages.

    python -m benchmarks.cloud_logging

The server builds and serializes each page on request, as a real one does. Prints entries per second and the ratio to
the stub: `source` is the input of the reader (whole records), `events` the whole way to the table of events, `cache`
the first reading with the cache. Exits with 1 if the ratio of `source` is below 0.15; the quota of Cloud Logging allows
1000 entries per second.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from tests.support.servers import PROJECT, LoggingServer, steps

ENTRIES = 50_000
ROUNDS = 7
NEEDED = 0.15
URI = f"cloud-logging://{PROJECT}/goodput_j"
METHOD = "/google.logging.v2.LoggingServiceV2/ListLogEntries"


def main() -> int:
    """Run the benchmark and return the exit code."""
    with LoggingServer() as server, tempfile.TemporaryDirectory() as folder:
        os.environ["GOODPUT_LOGGING_ENDPOINT"] = server.endpoint
        os.environ["GOODPUT_CACHE_DIR"] = folder
        server.add(*steps(ENTRIES - 1))
        works: dict[str, Callable[[], int]] = {
            "bare stub": lambda: _bare(server.endpoint),
            "source": lambda: _source(use_cache=False),
            "events": _events,
        }
        for work in works.values():
            work()  # warm up: imports, and the server's lookup
        times: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(ROUNDS):  # alternate, so that a busy machine slows all of them
            for name, work in works.items():
                times[name].append(_seconds(work))
        best = {name: min(seconds) for name, seconds in times.items()}
        best["cache"] = _seconds(lambda: _source(use_cache=True))
    for name, seconds in best.items():
        rate, ratio = ENTRIES / seconds, best["bare stub"] / seconds
        print(f"{name:10} {seconds:6.3f} s  {rate:8.0f} entries/s  ratio {ratio:.2f}")
    ratio = best["bare stub"] / best["source"]
    print(f"cloud_logging: source at {ratio:.2f} of the bare stub's rate (at least {NEEDED})")
    return 0 if ratio >= NEEDED else 1


def _seconds(work: Callable[[], int]) -> float:
    gc.collect()
    gc.disable()  # as the reader does
    try:
        started = time.perf_counter()
        done = work()
        seconds = time.perf_counter() - started
    finally:
        gc.enable()
    assert done == ENTRIES, f"{done} entries instead of {ENTRIES}"
    return seconds


def _bare(endpoint: str) -> int:
    """Read every page without using it."""
    import grpc
    from google.cloud.logging_v2.types import ListLogEntriesRequest, ListLogEntriesResponse

    from goodput_cli.sources.cloud_logging_pages import LogQuery

    request: Any = ListLogEntriesRequest.pb()(
        resource_names=[f"projects/{PROJECT}"],
        filter=LogQuery(PROJECT, "goodput_j", "j").text(),
        order_by="timestamp asc",
        page_size=1000,
    )
    count = 0
    with grpc.insecure_channel(endpoint, [("grpc.max_receive_message_length", -1)]) as channel:
        stub = channel.unary_unary(
            METHOD,
            request_serializer=type(request).SerializeToString,
            response_deserializer=ListLogEntriesResponse.pb().FromString,
        )
        while True:
            page = stub(request)
            count += len(page.entries)
            request.page_token = page.next_page_token
            if not page.next_page_token:
                return count


def _source(*, use_cache: bool) -> int:
    from goodput_cli.sources.base import ReadContext, RecordBatch, SourceFilter, source_for

    context = ReadContext(lambda _: None, wanted=SourceFilter("j", use_cache=use_cache))
    batches = source_for(URI).read(URI, context)
    return sum(len(batch.records) for batch in batches if isinstance(batch, RecordBatch))


def _events() -> int:
    from goodput_cli.events.read import read_events
    from goodput_cli.sources.base import SourceFilter

    return len(read_events([URI], wanted=SourceFilter("j", use_cache=False)).table)


if __name__ == "__main__":
    sys.exit(main())

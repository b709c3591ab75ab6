"""Cost of one recorder in the interpreter that runs this: prints one JSON object. `benchmarks/record.py` compares.

    python record_cost.py ours|original FOLDER BACK_TO_BACK PACED

It imports only the measured package of the project: the original has a separate environment.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any


def resident() -> float:
    """Return resident memory, MB."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def percentiles(taken: list[int]) -> dict[str, float]:
    """Return percentiles of ns, in µs."""
    ordered = sorted(taken)
    return {name: ordered[min(len(ordered) - 1, int(len(ordered) * at))] / 1000 for name, at in PERCENTILES.items()}


PERCENTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def main() -> None:
    """Import, record steps back to back and 100 per second, and print the cost of each call."""
    which, folder, back_to_back, paced = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    modules, memory, begin = len(sys.modules), resident(), time.process_time()
    make = ours if which == "ours" else original
    record = make(folder)
    result: dict[str, Any] = {
        "import_ms": (time.process_time() - begin) * 1000,
        "import_mb": resident() - memory,
        "modules": len(sys.modules) - modules,
    }
    record(0)
    result["back_to_back"] = percentiles([timed(record, step) for step in range(back_to_back)])
    wall, processor = time.perf_counter(), time.process_time()
    for step in range(back_to_back):
        record(step)
    result["lines_per_second"] = back_to_back / (time.perf_counter() - wall)
    result["lines_per_processor_second"] = back_to_back / (time.process_time() - processor)
    begin_ns, spent = time.perf_counter_ns(), []
    for step in range(paced):
        time.sleep(max(0.0, (begin_ns + step * 10_000_000 - time.perf_counter_ns()) / 1e9))
        spent.append(timed(record, step))
    result["paced"] = percentiles(spent)
    result["threads"] = threading.active_count() - 1
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)


def timed(record: Any, step: int) -> int:
    """Return the time of a call, ns."""
    begin = time.perf_counter_ns()
    record(step)
    return time.perf_counter_ns() - begin


def ours(folder: str) -> Any:
    """Return a recorder of step lines to a local file."""
    sys.path.insert(0, os.environ["RECORD_ROOT"])
    from goodput_cli.record import Recorder

    return Recorder("bench", os.path.join(folder, "ours.jsonl"), heartbeat=0).begin_step


def original(_folder: str) -> Any:
    """Return ml-goodput-measurement with an API that answers at once: its own queue and thread, the request
    replaced."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import logging as cloud
    from google.cloud.logging_v2 import logger as entries
    from ml_goodput_measurement import goodput

    client = cloud.Client
    credentials: Any = AnonymousCredentials  # untyped
    cloud.Client = lambda: client(project="p", credentials=credentials())  # type: ignore[misc,assignment,no-untyped-call]
    entries.Batch.commit = lambda *_, **__: None  # type: ignore[method-assign]
    return goodput.GoodputRecorder("bench", "bench", True).record_step_start_time


main()

"""A calculator for checkpoint logs in the usual way: a dict per line, a datetime per timestamp, and lists of them.

Written for the comparison, after the published method: the step time is the 10th percentile over pairs of neighbors,
and goodput is (highest step saved - lowest step loaded) x step time over the time from the first to the last line.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from typing import Any

from dateutil import parser


def load(path: str) -> list[dict[str, Any]]:
    """Return every line as a dict with its time, each once, in order of time."""
    events: list[dict[str, Any]] = []
    seen: set[str] = set()
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            if line in seen:
                continue
            seen.add(line)
            event = json.loads(line)
            event["time"] = parser.parse(event["timestamp"])
            events.append(event)
    return sorted(events, key=lambda event: event["time"])


def step_times(events: list[dict[str, Any]]) -> list[float]:
    """Return seconds per step between checkpoint events of one attempt."""
    times: list[float] = []
    before: dict[str, Any] | None = None
    for event in events:
        if event["event_type"] == "job_started":
            before = None
        elif event["event_type"] in ("checkpoint_loaded", "step_finished", "checkpoint_saved"):
            if before is not None and event["step"] > before["step"]:
                steps = event["step"] - before["step"]
                times.append((event["time"] - before["time"]).total_seconds() / steps)
            before = event
    return sorted(times)


def main() -> None:
    """Print the goodput in percent and the count of each event."""
    events = load(sys.argv[1])
    counts: defaultdict[str, int] = defaultdict(int)
    for event in events:
        counts[event["event_type"]] += 1
    times = step_times(events)
    step_time = times[len(times) // 10]
    loaded = [event["step"] for event in events if event["event_type"] == "checkpoint_loaded"]
    saved = [event["step"] for event in events if event["event_type"] == "checkpoint_saved"]
    total = (events[-1]["time"] - events[0]["time"]).total_seconds()
    print(100 * (max(saved) - min(loaded, default=0)) * step_time / total, dict(counts))


main()

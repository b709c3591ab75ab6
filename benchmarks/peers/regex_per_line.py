"""The script that people write for one log: one regular expression per line, and lists of the numbers that it finds."""

from __future__ import annotations

import re
import sys
from datetime import datetime

PATTERNS = {
    "megatron": (
        r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+)\] iteration\s+(?P<step>\d+)/\s*\d+ \|.*?elapsed time per "
        r"iteration \(ms\): (?P<each>[\d.]+).*?TFLOP/s/GPU\): (?P<flops>[\d.]+)"
    ),
    "bars": r"\|\s*(?P<step>\d+)/\d+ \[(?P<each>[\d:]+)<",
    "own": (
        r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+) INFO \S+ step (?P<step>\d+) loss=\S+ lr=\S+ "
        r"(?P<each>[\d.]+) ms/step"
    ),
    "numbers": (
        r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+) INFO \S+ step (?P<step>\d+) "
        + " ".join(rf"m{each}=(?P<m{each}>\d+)" for each in range(10))
    ),
    "torchtitan": (
        r'"step": (?P<step>\d+), "relative_step": .*?"time_us": (?P<each>\d+), "log_type": "event", "log_type_name": '
        r'"\w+", "event_name": null, "value": (?P<value>[\d.]+)'
    ),
    "records": r'"ts": (?P<each>[\d.]+), "step": (?P<step>\d+), "loss": (?P<loss>[\d.]+)',
}


def main(kind: str, path: str) -> None:
    """Read a log, and print how many records it has."""
    pattern = re.compile(PATTERNS[kind])
    columns: dict[str, list[object]] = {name: [] for name in pattern.groupindex}
    with open(path, encoding="utf-8", newline=None) as stream:
        for line in stream:
            found = pattern.search(line)
            if found is None:
                continue
            for name, text in found.groupdict().items():
                columns[name].append(_value(name, text))
    print(len(columns["step"]))


def _value(name: str, text: str) -> object:
    if name == "time":
        return datetime.fromisoformat(text.replace(",", ".")).timestamp()
    return int(text) if name == "step" else text if ":" in text else float(text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

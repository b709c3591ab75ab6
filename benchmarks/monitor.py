"""Cost of updates of `goodput monitor` on a log that has grown by 100 lines: `python benchmarks/monitor.py LOG`.

Prints the processor time (s) of each of five updates, with metrics and JSON written, and the peak memory (MB).
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from goodput_cli.api.options import Plan
from goodput_cli.api.watch import WatchedLog
from goodput_cli.monitor.run import Monitor, Stop
from goodput_cli.monitor.targets.base import Health, MonitorContext, open_target, parse_target

UPDATES, NEW_LINES = 5, 100
_HOUR = 3600 * 10**9


def main() -> None:
    """Measure on a copy that grows."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        content = Path(sys.argv[1]).read_bytes()
        last = json.loads(content.rstrip(b"\n").rpartition(b"\n")[2])
        log.write_bytes(content)
        del content
        health = Health(60)
        addresses = [parse_target(f"{scheme}:{folder}/{scheme}") for scheme in ("prom", "json")]
        targets = [open_target(address, MonitorContext(health, 60)) for address in addresses]
        monitor = Monitor(
            lambda: WatchedLog(str(log), as_of="now"),
            (),
            Plan(windows=(_HOUR, 24 * _HOUR)),
            health=health,
            stop=Stop(),
            tell=lambda _: None,
            say=print,
        )
        begin = max(value for key, value in last.items() if "time" in key)
        for update in range(UPDATES + 1):
            started = time.process_time()
            update_of_jobs = monitor.snapshots(monitor.account())
            assert len(update_of_jobs) == 1
            for target in targets:
                target.publish(update_of_jobs, final=False)
            if update:  # the first one reads the whole log
                print(time.process_time() - started)
            lines = [
                {"job_name": last["job_name"], "step_count": 10**7 + NEW_LINES * update + line, "step_start_time": at}
                for line, at in enumerate(begin + 300 * (update + 1) + 2 * step for step in range(NEW_LINES))
            ]
            with log.open("a", encoding="utf-8") as stream:
                stream.writelines(json.dumps(line) + "\n" for line in lines)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()

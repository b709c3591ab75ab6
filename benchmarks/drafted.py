"""`python -m benchmarks.drafted [LINES]`: time and memory to read a log by rules inferred from it, compared with the
same log and a given mapping; each in a separate process. Prints the ratios."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Run, run_once

_BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def own_loop(path: Path, lines: int) -> None:
    """Write the log of a custom training loop: steps of 0.25 s, and a save of 1 s after each hundredth."""
    second = 0.0
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{_BEGIN:%Y-%m-%d %H:%M:%S},000 INFO Starting training\n")
        for step in range(1, lines + 1):
            second += 0.25
            saved = step % 100 == 0
            for text in (f"step {step}/{lines} loss 1.1", *(["Saved checkpoint (1.00 s)"] if saved else [])):
                second += text.startswith("Saved")
                at = _BEGIN + timedelta(seconds=second)
                file.write(f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d} INFO {text}\n")


def main(lines: int) -> None:
    """Print the table."""
    with TemporaryDirectory() as folder:
        log, own = Path(folder, "train.log"), Path(folder, "own.toml")
        own_loop(log, lines)
        command = [sys.executable, "-m", "goodput_cli"]
        suggested = subprocess.run([*command, "check", "--suggest", log], check=True, capture_output=True, text=True)
        own.write_text(suggested.stdout, encoding="utf-8")
        asked = {"drafted": [*command, str(log)], "with its mapping": [*command, str(log), "--mapping", str(own)]}
        found = {name: run_once(one, limit=3600) for name, one in asked.items()}
    runs = {name: run if isinstance(run, Run) else sys.exit(f"{name}: {run}") for name, run in found.items()}
    mapped = runs["with its mapping"]
    print(f"{lines:,} steps")
    for name, run in runs.items():
        times = f"{run.seconds:8.2f} s{run.seconds / mapped.seconds:8.2f} x"
        print(f"{name:<18}{times}{run.peak_mb:8.0f} MB{run.peak_mb / mapped.peak_mb:8.2f} x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)

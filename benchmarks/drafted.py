"""`python -m benchmarks.drafted [LINES]`: how long a log takes that is read by rules drafted from it, beside the same
log read by the mapping that was drafted. Prints the ratio."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from goodput_cli import analyze
from goodput_cli.api.check import draft_mapping

_BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def own_loop(path: Path, lines: int) -> None:
    """A log of a loop of one's own: steps of 0.25 s, and a save of 1 s behind each hundredth."""
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
        times = {}
        begin = perf_counter()
        drafted = analyze(log).drafted
        times["drafted"] = perf_counter() - begin
        if drafted is None:
            sys.exit("the log was read natively: nothing was drafted")
        own.write_text(draft_mapping(str(log)).text, encoding="utf-8")
        begin = perf_counter()
        analyze(log, mapping=(str(own),))
        times["with its mapping"] = perf_counter() - begin
    for name, seconds in times.items():
        print(f"{name:<18}{seconds:8.2f} s{seconds / times['with its mapping']:8.2f} x of {lines:,} steps")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)

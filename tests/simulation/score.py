"""Score of the first screen: how often it names the right cause and cost. `python -m tests.simulation.score [SEEDS]`.

A job is *right* if the first lines show the cause, with its cost within a tenth, and no false statement. It is
*misleading* if the screen shows a false statement, and *silent* if it shows neither cause nor cost.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass

import goodput_cli
from goodput_cli.report.base import Page
from goodput_cli.report.first_screen import first_screen
from tests.simulation.job import Job
from tests.simulation.kinds import KINDS, Kind, Truth

LINES = 24
_UNITS = {"d": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0}
_DURATION = re.compile(r"(?:(\d+) d )?(?:(\d+) h ?)?(?:(\d+) min ?)?(?:(\d+(?:\.\d+)?) s)?")
_WITHIN = 0.1


@dataclass(frozen=True)
class ScreenResult:
    """Screen of a job, and the truth about the job."""

    kind: str
    seed: int
    truth: Truth
    screen: str

    @property
    def verdict(self) -> str:
        """Rating: right, misleading, partly or silent."""
        truth = self.truth
        if truth.never and re.search(truth.never, self.screen):
            return "misleading"
        if not truth.says:
            return "right"
        cause = re.search(truth.says, self.screen) is not None
        cost = truth.seconds is None or any(
            abs(one - truth.seconds) <= _WITHIN * truth.seconds for one in self._costs()
        )
        return "right" if cause and cost else "partly" if cause or cost else "silent"

    def _costs(self) -> list[float]:
        """Every amount of time on the screen (s)."""
        costs = []
        for match in _DURATION.finditer(self.screen):
            days, hours, minutes, seconds = (float(one or 0) for one in match.groups())
            costs.append(86400 * days + 3600 * hours + 60 * minutes + seconds)
        return costs


def screen_of(lines: list[str]) -> str:
    """Return the first screen of a log in a terminal of 80 x 24, with one line for each paragraph."""
    analysis = goodput_cli.analyze(list(map(json.loads, lines)))
    shown = first_screen(analysis, Page(width=80))
    return " ".join(" ".join(shown.splitlines()[:LINES]).split())


def run_job(kind: Kind, seed: int) -> ScreenResult:
    """Return a job of a kind with its screen."""
    job = Job(seed)
    truth = kind(job)
    return ScreenResult(kind.__name__, seed, truth, screen_of(job.text))


def main(seeds: int, *, show: bool = False) -> None:
    """Print the score of all kinds."""
    total: Counter[str] = Counter()
    for kind in KINDS:
        all_seen = [run_job(kind, seed) for seed in range(seeds)]
        verdicts = Counter(one.verdict for one in all_seen)
        total += verdicts
        print(f"{kind.__name__:35} {' '.join(f'{count} {name}' for name, count in verdicts.items())}")
        if show and set(verdicts) != {"right"}:
            bad = next(one for one in all_seen if one.verdict != "right")
            print(f"      true: {bad.truth.says!r} {bad.truth.seconds} never {bad.truth.never!r}\n      {bad.screen}")
    print(dict(total), f"{100 * total['right'] / total.total():.0f} % right")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1, show="-v" in sys.argv)

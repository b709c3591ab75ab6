"""Shared helpers of the tests of `goodput check`: a log in the current folder, and the findings on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from goodput_cli.analysis.check import CheckFinding, CheckReport
from goodput_cli.analysis.jobs import check_log
from goodput_cli.analysis.question import make_question
from goodput_cli.events.read import read_events
from tests.support.story import end, prep, save, saved, start, started, steps, story_lines, terminated

FINE = story_lines(start(0.1), prep(0.5, 5.5), steps(0, 6, at=10.25), save(62.5, 2), steps(6, 6, at=70.25), end(130.5))


def written(*events: Any, name: str = "run.jsonl") -> str:
    """A file with the lines of a story, in the current folder."""
    Path(name).write_text("".join(f"{line}\n" for line in flat(events)), encoding="utf-8")
    return name


def flat(events: Any) -> list[str]:
    """The lines of stories within stories."""
    return [events] if isinstance(events, str) else [line for part in events for line in flat(part)]


def checked(*events: Any, more: tuple[str, ...] = (), job_name: str | None = None, **question: Any) -> CheckReport:
    """Return the check of a story; `more` are further files."""
    log = read_events([written(*events), *more])
    return check_log(log, make_question(**question), job_name=job_name)


def codes(report: CheckReport) -> set[str]:
    return {found.code for found in report.findings}


def the(report: CheckReport, code: str) -> CheckFinding:
    """The only finding of a code."""
    (found,) = [found for found in report.findings if found.code == code]
    return found


def lines_of(found: CheckFinding) -> list[int]:
    return sorted(int(place.rpartition(":")[2]) for place in found.where)


def renamed(lines: list[str], job: str) -> list[str]:
    return [json.dumps(json.loads(line) | {"job_name": job}) for line in lines]


def hosts(shift: float, *, count: int = 4) -> list[str]:
    """Ranks 0 and 1 start, save and end together; the clock of rank 1 is `shift` seconds off."""
    lines = [started(0.5, 0), started(0.5 + shift, 1)]
    for number in range(1, count + 1):
        lines += [saved(100 * number, 60 * number, 0), saved(100 * number, 60 * number + shift, 1)]
    return [*lines, terminated(60 * count + 20, 0), terminated(60 * count + 20 + shift, 1)]

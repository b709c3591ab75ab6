"""Small logs of real failures (`stories.toml`), each with the expected answer of an engineer who knows the story:
why the job died, on which rank and host, and what it lost.

`python -m tests.causes.stories` prints the verdict on each story.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

import goodput_cli
from goodput_cli.analysis.disruptions.rows import Disruption

STORIES = Path(__file__).parent / "stories.toml"
STARTS = 10
"""Log lines before the first record of an attempt."""
EARLY = 6
"""Number of records of the failing attempt after which the survived lines are inserted."""


@dataclass(frozen=True)
class Story:
    """A job's failure and its expected cause."""

    name: str
    truth: str
    """One sentence that describes the failure."""
    cause: tuple[str, ...]
    """Accepted causes, the best one first."""
    text: str = ""
    """Log lines after the last record of the job's log."""
    early: str = ""
    """Log lines between the job's steps."""
    start: str = ""
    """Log lines of an attempt without steps: the attempt that the story is about."""
    rank: int | None = None
    host: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    """Other files of the directory, by name."""


def stories() -> list[Story]:
    """Return all stories."""
    rows = tomllib.loads(STORIES.read_text("utf-8"))["story"]
    return msgspec.convert(rows, list[Story])


def attempt_lines(minute: int, first: int) -> Iterator[str]:
    """Return an attempt on node-03 and node-04 with eight ranks: its start lines at a minute after 10:00, then
    fifteen records of ten steps. The tenth is saved. The last record comes ten minutes and 45 s later."""
    yield "time to initialize megatron (seconds): 20.000"
    yield f"[after megatron is initialized] datetime: 2026-03-01 10:{minute:02d}:20.000000 "
    for local in range(4):
        yield f"node-03:{812 + local}:{812 + local} [{local}] NCCL INFO Bootstrap : Using eth0:10.0.0.3<0>"
        yield f"node-04:{912 + local}:{912 + local} [{local}] NCCL INFO Bootstrap : Using eth0:10.0.0.4<0>"
    for record in range(15):
        seconds = minute * 60 + 80 + 40 * record + 5 * (record == 14)
        at = f"2026-03-01 {10 + seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.000000"
        step = first + 10 * record
        yield f" [{at}] iteration {step:8d}/    1000 | elapsed time per iteration (ms): 4000.0 | loss scale: 1.0 |"
        if record == 9:
            yield f"[{at}] saving checkpoint at iteration {step:7d} to /ckpt/llm in torch_dist format"
            yield f"  [{at}] successfully saved checkpoint from iteration {step:7d} to /ckpt/llm [ t 1/8, p 1/4 ]"


def lines_of(story: Story) -> list[str]:
    """Return the lines of the job's log."""
    first = list(attempt_lines(0, 10))
    behind = STARTS + EARLY
    first[behind:behind] = story.early.strip("\n").split("\n") if story.early else []
    said = story.text.strip("\n").split("\n") if story.text else []
    restored = [" loading distributed checkpoint from /ckpt/llm at iteration 100"]
    start, *rest = attempt_lines(30, 110)
    again = [start, *rest[:1], *restored, *rest[1:]]
    if story.start:
        begun = [*list(attempt_lines(14, 110))[:STARTS], *restored, *story.start.strip("\n").split("\n")]
        return [*first, *said, *begun, *again]
    return [*first, *said, *again]


def written(story: Story, folder: Path) -> Path:
    """Write the files of a story and return their directory."""
    (folder / "train.log").write_text("\n".join(lines_of(story)) + "\n")
    for name, text in story.files.items():
        (folder / name).write_text(text.strip("\n") + "\n")
    return folder


def disruption_of(story: Story, folder: Path) -> Disruption:
    """Return the disruption that the story is about."""
    return goodput_cli.analyze(str(written(story, folder)), job_name="llm").disruptions[-1]


def verdict(story: Story, found: Disruption) -> str:
    """Return `right`, `not known`, or a description of the error."""
    if found.cause in (None, "unknown"):
        return "right" if "unknown" in story.cause else "not known"
    if found.cause not in story.cause:
        return "WRONG CAUSE"
    if found.first_rank not in (None, story.rank):
        return "WRONG RANK"
    if found.first_host and found.first_host != story.host:
        return "WRONG HOST"
    return "right"


def main(part: str = "") -> None:
    """Print the verdict on each story."""
    for story in (one for one in stories() if part in one.name):
        with tempfile.TemporaryDirectory() as folder:
            found = disruption_of(story, Path(folder))
        place = f"rank {found.first_rank} {found.first_host or '-'}"
        mark = "?" if found.cause_certainty == "likely" else ""
        print(f"{verdict(story, found):11} {story.name}: {found.cause}{mark} {place} (truth: {story.cause[0]} "
              f"rank {story.rank} {story.host or '-'}) {found.cause_text or ''}"[:230])  # fmt: skip

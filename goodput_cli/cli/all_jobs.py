"""What the commands about all jobs of a log share: the question, and a count of the jobs that are done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goodput_cli.api.analyze import Question

_ASKED = (
    "reference_step_time", "start", "end", "as_of", "exclude", "exclude_stopped", "timezone", "data_loading",
    "async_saves", "stall_factor", "run", "no_hindsight",
)  # fmt: skip
_SHOWN_EVERY = 25


def question_for_each(given: Mapping[str, Any]) -> Question:
    """What is asked of each job, from a session's question."""
    from goodput_cli.api.analyze import make_question

    return make_question(**{name: given[name] for name in _ASKED if name in given})


@contextmanager
def counting_progress(*, wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
    """What to tell about jobs done, and of how many; None where nobody would see it. The line goes away at the end."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("jobs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("jobs", total=None)

        def told(done: int, total: int) -> None:
            if done % _SHOWN_EVERY == 0 or done == total:
                bar.update(task, completed=done, total=total)

        yield told

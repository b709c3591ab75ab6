"""An oracle for the tests: the accounting rules in plain, slow Python, with nothing taken from `goodput_cli`.

It reads JSON lines itself, walks over the events with loops, and *paints* the job window: an array of cells, one per
tick, over which the ranks of accounting §5 are painted from the lowest to the highest. A claim that ends inside a
cell divides it, so results are exact to the nanosecond whatever the tick. Where the rules leave a choice open, a
comment that begins with "Chosen:" gives the choice. Suitable for logs of some thousand events of one job.

    account(lines).seconds  ->  {"productive": Fraction(60), "custom_badput_events:EVAL": Fraction(20), ...}

Modules follow the rules: events (§1), attempts and life (§3), lineage, checkpoints and training (§4), claims and
canvas (§5), amounts (§6), by_attempt (§10).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from .amounts import Answer, settle
from .by_attempt import Costs, costs
from .events import NS, iso_ns, read
from .job import Job, Options, job_from_events

__all__ = ["Answer", "Costs", "account", "account_path", "costs_by_attempt"]


def account(
    lines: Iterable[str],
    *,
    reference_step_time: str | float | None = None,
    as_of: str | int | None = None,
    exclude: Sequence[tuple[int, int]] = (),
    data_loading: str = "overlapped",
    async_saves: bool = False,
    stall_factor: float = 5.0,
    planned: str | None = None,
    timezone: str = "UTC",
    tick: int = NS,
) -> Answer:
    """Return the account of all time of the one job in `lines`.

    reference_step_time: seconds or "auto". as_of: ISO-8601 or ns. exclude: pairs of ns. timezone: of times without one.
    tick: ns, width of a cell; affects only the speed. Raises ValueError if the log contains no event.
    """
    return settle(
        _job(
            lines, reference_step_time, as_of, exclude, data_loading, async_saves, stall_factor, planned, timezone, tick
        )
    )


def costs_by_attempt(
    lines: Iterable[str],
    *,
    reference_step_time: str | float | None = None,
    as_of: str | int | None = None,
    exclude: Sequence[tuple[int, int]] = (),
    data_loading: str = "overlapped",
    async_saves: bool = False,
    stall_factor: float = 5.0,
    planned: str | None = None,
    timezone: str = "UTC",
    tick: int = NS,
) -> Costs:
    """Return the account by attempt, and the costs after each (§10)."""
    return costs(
        _job(
            lines, reference_step_time, as_of, exclude, data_loading, async_saves, stall_factor, planned, timezone, tick
        )
    )


def _job(
    lines: Iterable[str], reference: str | float | None, as_of: str | int | None, exclude: Sequence[tuple[int, int]],
    data_loading: str, async_saves: bool, stall_factor: float, planned: str | None, timezone: str, tick: int,
) -> Job:  # fmt: skip
    options = Options(
        reference=reference,
        exclude=tuple(exclude),
        blocking=data_loading == "blocking",
        async_saves=async_saves,
        stall_factor=Fraction(str(stall_factor)),
        tick=tick,
        planned=planned,
    )
    instant = iso_ns(as_of, timezone) if isinstance(as_of, str) else as_of
    return job_from_events(read(lines, timezone), instant, options)


def account_path(path: Path, *, exclude: Sequence[str] = (), **arguments: Any) -> Answer:
    """Return the `account` of a file. exclude: "START/END" in ISO-8601, as in the worked examples."""
    pairs = []
    for span in exclude:
        start, _, end = span.partition("/")
        pairs.append((iso_ns(start, "UTC"), iso_ns(end, "UTC")))
    return account(path.read_text(encoding="utf-8").splitlines(), exclude=pairs, **arguments)

"""What the user can choose about the accounting.

A new choice is a field of `Method`, and the place in the accounting that uses it: the command line, the keywords of the
library, settings, JSON and the reports follow from the field. No NumPy here, as `--help` reads this.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from goodput_cli.vocabulary.option import bounded, option
from goodput_cli.vocabulary.text import exact

RULES = 3
"""Which version of the rules (docs/accounting.md) makes an answer: a change that moves numbers raises it, and every
answer says it. Answers without it are of version 1."""
DataLoading = Literal["overlapped", "blocking"]
Planned = Literal["yes", "no"]
UnknownFalls = Literal["restarts", "rollbacks"]
HOW, WHEN = "Accounting", "Time"
"""Headings in `--help`."""
_read_factor = bounded(float, "is not a factor; write a number such as 5, or 0 to switch it off", least=0)


@dataclass(frozen=True)
class Method:
    """How the accounting is made, as far as the user chooses it, and whatever the job; the reference step time is in
    `reference`."""

    data_loading: DataLoading = option(
        "overlapped",
        HOW,
        "Whether loading data inside a step is badput.",
        about="'overlapped', or 'blocking': data loading inside a step claims its time.",
        choices=("overlapped", "blocking"),
        label="data loading",
        settings={"show_default": True},
    )
    async_saves: bool = option(
        False,
        HOW,
        "Checkpoints are saved in the background: no badput.",
        about="Saves of a checkpoint log claim nothing.",
        label="saves",
        phrase=lambda on: "asynchronous" if on else "block training",
    )
    stall_factor: float = option(
        5.0,
        HOW,
        "A step beyond X times the usual is a stall; 0 = off.  [default: 5]",
        about="A kept step is stalled for what it takes beyond so many usual step times; 0 = off.",
        metavar="X",
        read=_read_factor,
        label="stall factor",
        phrase=lambda factor: exact(factor) if factor else "off",
    )
    exclude_stopped: bool = option(
        False,
        HOW,
        "Take out the time between a clean end and a start.",
        about="Planned stops are taken out of the window too.",
        label="excluded",
        phrase=lambda on: "planned stops" if on else "",
    )
    planned: Planned | None = option(
        None,
        HOW,
        "Whether stops between attempts were planned, where only some of it shows.  [default: the rule decides]",
        about="'yes': a stop that a line tells of, and no crash, was planned, though steps were done again; 'no': the "
        "recorder's job end ends no attempt cleanly that another follows. None: accounting §3 decides.",
        choices=("yes", "no"),
        label="planned stops",
        phrase=lambda answer: {"yes": "all that a line tells of", "no": "none by a job end alone"}.get(answer, ""),
    )
    hindsight: bool = option(
        True,
        WHEN,
        "As it was known at the window's end; accounts for the job once more for every end.",
        about="A step that was redone after the window is wasted in it; false: all is as it was known at the "
        "window's end.",
        negative=True,
        follows="every",
        label="hindsight",
        phrase=lambda on: "a step redone later is wasted" if on else "as it was known at the end of the window",
    )


@dataclass(frozen=True)
class AccountingOptions:
    """What the accounting of one job goes by."""

    method: Method = Method()
    reference_ns: Fraction | Literal["auto"] | None = None
    """The reference step time in ns, exact. A checkpoint log takes "auto" for None (accounting §6)."""
    exclusions: tuple[tuple[int, int], ...] = ()
    """Windows [start, end) in ns that the user took out."""
    unknown_falls: UnknownFalls = "restarts"
    """What steps that went back are where the log does not show whether the process lived on (accounting §3)."""

"""Why an attempt died: the causes, in nine groups. One table of `causes.toml` each says all there is to say of it.

The order of the groups is the order in which they are believed where nothing else decides (docs/causes.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from goodput_cli.vocabulary.toml_rows import TomlRows

CauseGroup = Literal["hardware", "scheduler", "operator", "memory", "storage", "network", "data", "software", "unknown"]
GROUPS: tuple[CauseGroup, ...] = get_args(CauseGroup)
"""In the order in which they are believed."""

Role = Literal["root", "exit", "echo", "teardown", "context"]
"""`root` states a mechanism; `exit` how a process ended; `echo` that somebody else is gone; `teardown` is what
processes say while they are being killed; `context` ends nothing."""
ROLES: tuple[Role, ...] = get_args(Role)

Certainty = Literal["confirmed", "likely"]
CONFIRMED: Certainty = "confirmed"
CERTAINTIES: tuple[Certainty, ...] = get_args(Certainty)
CONFIRMED_IN_VERSION_1 = "said"
"""A confirmed cause in answers with `schema_version` 1, which are still read."""

CANCELLED = "cancelled"
UNKNOWN_CAUSE = "unknown"
"""Nobody says why."""
KILLED = "killed"
PEER_LOST = "peer_lost"
"""What an echo says of the others; it is no cause."""


@dataclass(frozen=True)
class Cause:
    """All that is declared of a cause: a table of `causes.toml`, whose name is the cause's in every answer."""

    group: CauseGroup
    says: str
    """What says so, for people."""
    advice: str
    """What to do about it, in a sentence."""
    advice_without_loss: str = ""
    """What to do instead where the end took no training back: no save would have gained a second. "": the same."""

    def advice_for(self, *, training_lost: bool) -> str:
        """Return the advice whose condition holds."""
        return self.advice if training_lost else self.advice_without_loss or self.advice


CAUSES: Mapping[str, Cause] = TomlRows(Path(__file__).with_name("causes.toml"), Cause)
"""By their names."""
OUT_OF_MEMORY = ("device_oom", "host_oom")
"""What thresholds call `oom`."""


def group_of(code: str) -> CauseGroup:
    """The group of a cause; of what is none: that of `unknown`."""
    row = CAUSES.get(code)
    return "unknown" if row is None else row.group


def cause_text(code: str, certainty: str | None) -> str:
    """Return a cause as tables show it: `device_oom`, `likely device_oom`."""
    return code if certainty == CONFIRMED else f"likely {code}"


def with_certainty(words: str, certainties: Iterable[str | None]) -> str:
    """Return a cause with how many of its disruptions have it only likely: `likely oom`, `oom (2 likely)`."""
    every = list(certainties)
    likely = every.count("likely")
    if not likely:
        return words
    return f"likely {words}" if likely == len(every) else f"{words} ({likely} likely)"

"""Causes of failures, in nine groups. Each is declared in a table of `causes.toml`.

The order of the groups is their precedence where nothing else decides (docs/causes.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from goodput_cli.vocabulary.toml_rows import TomlRows

CauseGroup = Literal["hardware", "scheduler", "operator", "memory", "storage", "network", "data", "software", "unknown"]
GROUPS: tuple[CauseGroup, ...] = get_args(CauseGroup)
"""In order of precedence."""

Role = Literal["root", "exit", "echo", "teardown", "context"]
"""`root` states a mechanism, `exit` how a process ended, `echo` that another process is gone. `teardown` is printed
while processes are being killed, and `context` ends nothing."""
ROLES: tuple[Role, ...] = get_args(Role)

Certainty = Literal["confirmed", "likely"]
CONFIRMED: Certainty = "confirmed"
CERTAINTIES: tuple[Certainty, ...] = get_args(Certainty)
CONFIRMED_IN_VERSION_1 = "said"
"""A confirmed cause in answers with `schema_version` 1, which are still read."""

CANCELLED = "cancelled"
UNKNOWN_CAUSE = "unknown"
"""The log does not contain the reason."""
KILLED = "killed"
PEER_LOST = "peer_lost"
"""Code of an echo: another process was lost. It is not a cause."""


@dataclass(frozen=True)
class Cause:
    """A table of `causes.toml`. Its name is the name of the cause in every result."""

    group: CauseGroup
    says: str
    """Evidence in the log, for people."""
    advice: str
    """Advice, in a sentence."""
    advice_without_loss: str = ""
    """Advice if no training was lost, so that saving more often gains nothing; "" for `advice`."""

    def advice_for(self, *, training_lost: bool) -> str:
        """Return the advice that applies."""
        return self.advice if training_lost else self.advice_without_loss or self.advice


CAUSES: Mapping[str, Cause] = TomlRows(Path(__file__).with_name("causes.toml"), Cause)
"""By name."""
OUT_OF_MEMORY = ("device_oom", "host_oom")
"""The causes that thresholds call `oom`."""


def group_of(code: str) -> CauseGroup:
    """Return the group of a cause; `unknown` for other words."""
    row = CAUSES.get(code)
    return "unknown" if row is None else row.group


def cause_text(code: str, certainty: str | None) -> str:
    """Return a cause as tables show it: `device_oom`, `likely device_oom`."""
    return code if certainty == CONFIRMED else f"likely {code}"


def with_certainty(words: str, certainties: Iterable[str | None]) -> str:
    """Return a cause with the number of disruptions for which it is only likely: `likely oom`, `oom (2 likely)`."""
    every = list(certainties)
    likely = every.count("likely")
    if not likely:
        return words
    return f"likely {words}" if likely == len(every) else f"{words} ({likely} likely)"

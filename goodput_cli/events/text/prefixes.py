"""What launchers and log collectors put before a line: colours, times, ranks, pods."""

from __future__ import annotations

import re
from typing import NamedTuple

from goodput_cli.events.text.stamps import DATED, Stamp, StampError, dated

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_MOST = 8
_PREFIX = re.compile(
    r"""\s*(?:
    (?P<collected>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))[ ]
    |\[(?:default|rank)?(?P<rank>\d+)\]:[ \t]?
    |(?P<srun>\d+):(?!\d\d:)[ \t]?
    |\[\d+,(?P<mpi>\d+)\]<std(?:out|err)>:?[ ]?
    |\[pod/(?P<pod>[^\]\s]+)\][ ]
    |(?P<replica>(?=[\w.-]*[A-Za-z])[\w.-]+/\d+)[ ](?=\[|[IWEFD]\d{4}[ ]|Training[ ]epoch|\d{4}-\d\d-\d\d)
    |(?P<compose>[\w.-]+)[ ]+\|[ ]
    |(?:stdout|stderr)[ ][FP][ ]
    )""",
    re.VERBOSE | re.ASCII,
)


class Bare(NamedTuple):
    """A line without what was put before it."""

    text: str
    stream: str
    """Ranks and pods that the prefixes name, joined by `/`."""
    collected: Stamp | None
    """When a collector took the line (`kubectl logs --timestamps`): exact."""


def bare(line: str) -> Bare:
    """Take off colours, what a carriage return overwrote, and prefixes in any order."""
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    if "\b" in line:  # progress bars that go back over themselves
        line = line.replace("\b", "")
    if "\r" in line:
        line = next((part for part in reversed(line.split("\r")) if part.strip()), "")
    streams: list[str] = []
    collected: Stamp | None = None
    place = 0
    for _ in range(_MOST):
        found = _PREFIX.match(line, place)
        if found is None:
            break
        if found["collected"]:
            if collected is not None:
                break
            collected = _stamp(found["collected"])
        name = found["rank"] or found["srun"] or found["mpi"] or found["pod"] or found["replica"] or found["compose"]
        if name:
            streams.append(name)
        place = found.end()
    return Bare(line[place:] if place else line, "/".join(streams), collected)


def _stamp(text: str) -> Stamp | None:
    found = DATED.fullmatch(text)
    try:
        return None if found is None else dated(found)
    except StampError:
        return None

"""Environment variables that look like options and are none: a gate that is misspelled there would never fail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from goodput_cli.vocabulary.likely import likeness
from goodput_cli.vocabulary.text import safe

_PREFIX = "GOODPUT_"
_GATES = ("FAIL_UNDER", "FAIL_IF", "WARN_IF", "STRICT")
_KUBERNETES = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT|_PORT$|_PORT_")
"""Of the names that Kubernetes gives every pod for a service: with one named goodput they begin as ours do."""
_NEAR = 0.75
_VERY_NEAR = 0.88
"""Where the name of the command is left out."""


def misread_variables(command: str, options: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """A warning for each variable that was probably meant for a command and is not read.

    options: the names of the variables that the command reads, such as `GOODPUT_ANALYZE_FAIL_UNDER`.
    """
    own = f"{_PREFIX}{command.upper().replace('-', '_')}_"
    gates = [name for name in options if name.removeprefix(own) in _GATES]
    for name in sorted(environment):
        if not name.startswith(_PREFIX) or name in options or _KUBERNETES.search(name):
            continue
        known, least = (options, _NEAR) if name.startswith(own) else (gates, _VERY_NEAR)
        meant = _nearest(name.removeprefix(own).removeprefix(_PREFIX), [one.removeprefix(own) for one in known], least)
        if meant:
            yield f"warning: the variable {safe(name)} is not read; {own}{meant} is"


def _nearest(name: str, known: Sequence[str], least: float) -> str | None:
    best = max(known, key=lambda one: likeness(name, one), default=None)
    return best if best is not None and likeness(name, best) >= least else None

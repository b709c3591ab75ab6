"""Environment variables that look like options and are none: a gate that is misspelled there would never fail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from goodput_cli.vocabulary.likely import likeness
from goodput_cli.vocabulary.text import safe

_PREFIX = "GOODPUT_"
_KUBERNETES = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT|_PORT$|_PORT_")
"""Of the names that Kubernetes gives every pod for a service: with one named goodput they begin as ours do."""
_NEAR = 0.75
_VERY_NEAR = 0.88
"""Where the name of the command is left out."""


def misread_variables(command: str, options: Mapping[str, bool], environment: Mapping[str, str]) -> Iterator[str]:
    """A warning for each variable that was probably meant for a command and is not read, or is a gate and empty.

    options: the names of the variables that the command reads, such as `GOODPUT_ANALYZE_FAIL_UNDER`, and whether each
    one is a gate.
    """
    own = f"{_PREFIX}{command.upper().replace('-', '_')}_"
    gates = [name for name, is_gate in options.items() if is_gate]
    for name in sorted(environment):
        if name in gates and not environment[name].strip():
            yield f"warning: the variable {name} is empty, which is no gate"
        if name in options or not name.upper().startswith(_PREFIX) or _KUBERNETES.search(name.upper()):
            continue
        meant = _meant(name.upper(), own, list(options), gates)
        if meant:
            yield f"warning: the variable {safe(name)} is not read; {meant} is"


def _meant(name: str, own: str, options: Sequence[str], gates: Sequence[str]) -> str | None:
    """The variable that is probably meant by another one. own: what those of the command begin with."""
    if name.startswith(own):
        return _nearest(name, options, own, _NEAR)
    without_command = _nearest(name, gates, own, _VERY_NEAR)
    if without_command is not None or likeness(name[: len(own)], own) < _VERY_NEAR:
        return without_command
    return max(gates, key=lambda one: likeness(name, one), default=None)  # the command is misspelled


def _nearest(name: str, known: Sequence[str], own: str, least: float) -> str | None:
    """That of some variables of a command whose own part is nearest."""
    part = name.removeprefix(own).removeprefix(_PREFIX)
    best = max(known, key=lambda one: likeness(part, one.removeprefix(own)), default=None)
    return best if best is not None and likeness(part, best.removeprefix(own)) >= least else None

"""Names of jobs that may mean one job."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from goodput_cli.diagnostics.diagnostic import Diagnostic

_SHOWN = 5
_LONGEST = 60
_NO_LETTER = re.compile(r"[\W_]+")


def check_names(names: Sequence[str]) -> Iterator[Diagnostic]:
    """`similar_job_names`: a finding for each group of names that differ only in case, spaces or punctuation."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[_NO_LETTER.sub("-", name.casefold()).strip("-")].append(name)
    for plain, group in groups.items():
        if plain and len(group) > 1:
            shown = ", ".join(repr(_short(name)) for name in sorted(group)[:_SHOWN])
            more = f" and {len(group) - _SHOWN} more" if len(group) > _SHOWN else ""
            message = f"jobs whose names are almost the same: {shown}{more}"
            yield Diagnostic.of("similar_job_names", message, len(group))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"

"""Suggestions for a mistyped name ("did you mean …?"): the most similar of the known names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_ALIKE = 0.6


def likeliest(name: str, known: Iterable[str], most: int = 2) -> list[str]:
    """At most `most` of the known names, the likeliest first: those that hold the name as words of theirs, then those
    that begin with it, then those that are spelled like it. Case, `-` and `_` make no difference."""
    names = {_plain(one): one for one in known}
    words = _plain(name)
    if not words:
        return []
    held = [one for one in names if f" {words} " in f" {one} "]
    begun = [one for one in names if one.startswith(words)]
    spelled = difflib.get_close_matches(words, names, n=most, cutoff=_ALIKE)
    alike = [one for one in spelled if one not in held]
    if alike and likeness(words, alike[0]) > _ALIKE + 0.2:  # a slip of the finger, rather than half a name
        held = [alike.pop(0), *held]
    return [names[one] for one in dict.fromkeys((*held, *begun, *alike))][:most]


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """`did you mean A or B?`; otherwise what is given."""
    close = likeliest(name, known)
    return f"did you mean {' or '.join(close)}?" if close else otherwise


def _plain(name: str) -> str:
    return " ".join(re.split(r"[\s_.:-]+", name.strip().lower()))


def likeness(one: str, other: str) -> float:
    """How alike two names are spelled, 0 to 1."""
    return difflib.SequenceMatcher(None, one, other).ratio()

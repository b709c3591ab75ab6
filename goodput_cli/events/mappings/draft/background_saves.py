"""Find checkpoint saves that continue while training goes on: lines with which they begin, and with which they are
complete."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from goodput_cli.events.mappings.draft.entries import Group
from goodput_cli.events.mappings.draft.guess import PhaseGuess, StepGuess
from goodput_cli.events.mappings.draft.phases import phase_contradiction
from goodput_cli.events.mappings.draft.proof import save_number
from goodput_cli.events.mappings.draft.steps import Steps
from goodput_cli.events.mappings.draft.words import BACKGROUND, EVAL, RESUME

_OF_A_SAVE = re.compile(r"\b(?:checkpoint\w*|ckpts?|snapshots?|sav(?:e|es|ed|ing)|uploads?|uploading|persist\w*)\b")
_IS_COMPLETE = re.compile(
    r"\b(?:complet(?:e|ed)|committed|commit success\w*|persisted|finali[sz]ed|finished|done|end(?:ed|s)?|durable"
    r"|uploaded|flushed)\b"
)
_IS_STAGED = re.compile(r"\b(?:stag(?:ed|ing)|scheduled|initiated|enqueued|queued|submitted|kicked off|snapshotted)\b")
_IS_SAVED = re.compile(r"\b(?:saved|written|wrote|stored|dumped)\b")
_FAILED = re.compile(r"\b(?:fail\w*|error|abort\w*|cancel\w*)\b")
_MOST_GROUPS = 400


class BackgroundSave(NamedTuple):
    """Lines about saves that continue in the background."""

    group: Group
    event: str
    """`save` for a line with which one begins, `saved` for one with which it is complete."""
    number: int | None
    """The column of the saved step; None: the line contains none."""
    took: tuple[int, str] | None
    """The column of the time for which it blocks training, and its unit; None: it does not, or not logged."""


def background_saves(groups: Sequence[Group], steps: Steps, guess: StepGuess) -> Iterator[BackgroundSave]:
    """Yield the lines about saves in the background: those whose words state it, and others between whose begin and
    completion training goes on. groups: lines that are no steps."""
    of_saves = [one for one in groups[:_MOST_GROUPS] if _is_of_a_save(one.about)]
    completions = [
        one for one in of_saves
        if (_IS_COMPLETE.search(one.about) or _is_saved(one)) and not _FAILED.search(one.about)
    ]  # fmt: skip
    begins = [one for one in of_saves if one not in completions and not _IS_COMPLETE.search(one.about)]
    for begin in begins:
        is_in_background = _is_in_background(begin)
        pair = [
            one for one in completions
            if (is_in_background or not _may_be_another(begin, one)) and _trains_between(begin, one, steps)
        ]  # fmt: skip
        if not pair and not is_in_background:
            continue
        yield BackgroundSave(begin, "save", save_number(begin, steps, guess), _blocking_time(begin, steps))
        for one in pair:
            completions.remove(one)
            yield BackgroundSave(one, "saved", save_number(one, steps, guess), None)


def _is_of_a_save(about: str) -> bool:
    return bool(_OF_A_SAVE.search(about)) and not re.search(RESUME, about) and not re.search(EVAL, about)


def _is_in_background(group: Group) -> bool:
    return bool(BACKGROUND.search(group.about) or _IS_STAGED.search(group.about))


def _is_saved(group: Group) -> bool:
    return bool(_IS_SAVED.search(group.about)) and not _is_in_background(group)


def _may_be_another(begin: Group, completion: Group) -> bool:
    """Return True if a completion may be about something else than the saves with a begin that block training: another
    file, or an upload of what is complete on its disk."""
    return _is_saved(completion) or ("upload" in completion.about and "upload" not in begin.about)


def _blocking_time(begin: Group, steps: Steps) -> tuple[int, str] | None:
    """Return the column of the time for which saves block training, and its unit; None if no duration fits."""
    phase = PhaseGuess("save", begin, "", (), True)
    timed = ((at, one.unit[0]) for at, one in enumerate(begin.columns) if one.unit is not None and one.counts)
    fitting = (took for took in timed if took[1] != "per_s" and phase_contradiction(phase, took, steps, {}) is None)
    return next(fitting, None)


def _trains_between(begin: Group, completion: Group, steps: Steps) -> bool:
    """Return True if most completions follow a begin of their own, and records of steps are between them."""
    opened = np.searchsorted(begin.places, completion.places)
    if not bool((opened > np.arange(len(opened))).all()) or len(completion) + 1 + len(steps.falls) < len(begin):
        return False
    since = np.searchsorted(steps.places, begin.places[opened - 1])
    return bool(2 * np.count_nonzero(np.searchsorted(steps.places, completion.places) > since) > len(completion))

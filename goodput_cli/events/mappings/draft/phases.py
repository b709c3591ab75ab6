"""Test rules for saves and evaluations: they are in gaps between step records, and fit them. Where nearly all records
have one between them, no usual step time shows the gaps."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from goodput_cli.arrays import Mask
from goodput_cli.events.mappings.draft.entries import NO_TIME, Group, Log, in_seconds, names_loss
from goodput_cli.events.mappings.draft.guess import PhaseGuess, StepGuess
from goodput_cli.events.mappings.draft.proof import Contradiction, step_seconds
from goodput_cli.events.mappings.draft.steps import Steps
from goodput_cli.events.mappings.draft.words import BEGINS, ENDS, EVAL, OF_AN_END, OF_TRAINING, reports_save
from goodput_cli.events.text.gaps import LEAST_PAIRS

_S = 10**9
_HALF, _MOSTLY = 0.5, 0.8
_OF_STEPS = 0.9
"""Share of the time since a record from which a duration may include the steps."""


def phase_contradiction(
    phase: PhaseGuess, took: tuple[int, str] | None, steps: Steps, others: Mapping[int, float]
) -> Contradiction | None:
    """F1 for a phase with a duration, F2 without: it is in gaps and fits them. others: seconds of other phases in the
    gap before a record."""
    word = {"eval": "evaluations"}.get(phase.event, f"{phase.event}s")
    after, group = steps.after(phase.group), phase.group
    if took is not None and are_between_all(steps, [phase]):
        return _length_contradiction(phase, word, took, steps)
    if phase.event in ("init", "prep"):
        inside = next((row for row, at in enumerate(after) if not steps.passages[at]), None)
        where = "" if inside is None else group.entry(inside).where
        return Contradiction("F1", "preparations: some are between steps", where) if where else None
    by_gap: defaultdict[int, float] = defaultdict(float)
    rows: dict[int, int] = {}
    fits_at_end = True
    lengths = np.zeros(len(group)) if took is None else in_seconds(group.columns[took[0]].numbers, took[1])
    for row, (length, ns, at) in enumerate(zip(lengths.tolist(), group.ns.tolist(), after, strict=True)):
        if at < len(steps) and not math.isnan(steps.gaps[at]):
            by_gap[at] += length
            rows.setdefault(at, row)
        elif at and took is not None:
            before = int(steps.stamps[at - 1])
            fits_at_end &= NO_TIME in (before, ns) or (ns - before) / _S >= 0.8 * length - 1
    if not by_gap and took is not None and steps.usual is None and _includes_steps(phase, took, steps):
        reason = f"{word}: they take as long as the steps before them and may include these"
        return Contradiction("F1", reason, group.first.where)
    if not by_gap:
        if fits_at_end and any(after) and (took is not None or steps.usual is None):
            return None
        return Contradiction("F0", f"{word}: none is between two steps", group.first.where)
    unfit = [
        at for at, length in by_gap.items()
        if not _fits(steps, at, length if took else None, others.get(at, 0.0))
        and not (took is None and phase.event == "eval" and _trains_after(steps, at, int(group.ns[rows[at]])))
    ]  # fmt: skip
    if len(unfit) > (1 - _MOSTLY) * len(by_gap):
        what = "durations do not fit" if took else "have no time"
        reason = f"{word}: {len(unfit)} of {len(by_gap)} {what} between the neighboring steps"
        return Contradiction("F1" if took else "F2", reason, group.entry(rows[unfit[0]]).where)
    return None


def has_others_before(group: Group, steps: Steps, log: Log) -> bool:
    """Return True if most save lines follow a timed line about something else, which follows the previous record. A
    line with which an evaluation begins does not show when that ends."""
    begins = [re.search(EVAL, one.about) is not None and _reports_begin(one) for one in log.groups]
    others = [not reports_save(one.about) and not is_begin for one, is_begin in zip(log.groups, begins, strict=True)]
    return _follow(np.array([*others, True]), group, steps, log)


def _includes_steps(phase: PhaseGuess, took: tuple[int, str], steps: Steps) -> bool:
    """Return True if a phase mostly takes as long as all steps since its previous line, according to the step times."""
    so_far = np.append(0.0, np.cumsum(step_seconds(steps)))[steps.after(phase.group)]
    since = np.diff(so_far, prepend=0.0)
    lengths = in_seconds(phase.group.columns[took[0]].numbers, took[1])
    return bool(np.mean(lengths >= 0.9 * since) > _MOSTLY and np.median(since) > 0)


def _fits(steps: Steps, at: int, length: float | None, others: float) -> bool:
    gap = float(steps.gaps[at])
    if length is None:
        return gap - others > min(0.5 * (steps.usual or 0.0) * int(steps.ahead[at]), steps.noise)
    tolerance = max(0.2 * length, 1.0)
    return abs(gap - length) <= tolerance or abs(gap - others - length) <= tolerance


def _trains_after(steps: Steps, at: int, ns: int) -> bool:
    """Return True if most of the time before a record, or the usual time of its steps, passes after a line, so that
    they are trained there. ns: time of the line."""
    record = int(steps.stamps[at])
    least = min(_HALF * float(steps.passed[at]), _MOSTLY * (steps.usual or math.inf) * int(steps.ahead[at]))
    return NO_TIME not in (record, ns) and (record - ns) / _S > least


def without_phases(steps: Steps, phases: Sequence[PhaseGuess]) -> Steps:
    """Return the steps with their usual time from records without a phase between them, if most have one."""
    marked = _records_after(steps, phases)
    inside = _inside(steps)
    clean = int((inside & ~marked).sum())
    if clean < LEAST_PAIRS or clean >= int((inside & marked).sum()):
        return steps
    return replace(steps, with_phases=marked)


def are_between_all(steps: Steps, phases: Sequence[PhaseGuess]) -> bool:
    """Return True if phases are between nearly all pairs of records, so that no usual step time is known: their lines
    do not state it either."""
    if steps.by_lines:
        return False
    marked, inside = _records_after(steps, phases), _inside(steps)
    return bool((inside & marked).any()) and int((inside & ~marked).sum()) < LEAST_PAIRS


def _inside(steps: Steps) -> Mask:
    """Return True for each record of the same process as the one before, with a known time between them, bool[n]."""
    return np.asarray((steps.ahead > 0) & ~steps.ended[:-1] & ~np.isnan(steps.passed))


def _records_after(steps: Steps, phases: Sequence[PhaseGuess]) -> Mask:
    found = np.zeros(len(steps) + 1, dtype=np.bool_)
    for one in phases:
        found[steps.after(one.group)] = True
    return found[:-1]


def _length_contradiction(phase: PhaseGuess, word: str, took: tuple[int, str], steps: Steps) -> Contradiction | None:
    """F1 without a usual step time: most durations fit between the line and the record before it, and are not those of
    the steps too."""
    group, after = phase.group, np.array(steps.after(phase.group))
    lengths = in_seconds(group.columns[took[0]].numbers, took[1])
    inside = (after > 0) & (after < len(steps)) & (group.ns != NO_TIME)
    inside[inside] = _inside(steps)[after[inside]]
    if not inside.any():
        return Contradiction("F0", f"{word}: none is between two steps", group.first.where)
    following, before = after[inside], after[inside] - 1
    since = (group.ns[inside] - steps.stamps[before]) / _S
    until = (steps.stamps[following] - group.ns[inside]) / _S
    lengths = lengths[inside]
    fits = lengths <= 1.05 * since + (1.0 if steps.coarse else 0.0)
    has_steps = (
        lengths.sum() > _OF_STEPS * since.sum() and until.sum() < (1 - _OF_STEPS) * steps.passed[following].sum()
    )
    if fits.mean() >= _MOSTLY and not has_steps:
        return None
    reason = f"{word}: durations do not fit between the neighboring steps, or include them"
    return Contradiction("F1", reason, group.first.where)


def since_of(phase: PhaseGuess, phases: Sequence[PhaseGuess], steps: Steps, guess: StepGuess, log: Log) -> str:
    """Return what a phase without a duration began after, in the words of a mapping: the `line` or the `step` before
    it; empty if that is unknown. phases: all saves and evaluations."""
    if _reports_begin(phase.group):
        return ""
    after = steps.after(phase.group)
    ends = np.array([_shows_end(one) or any(one is other.group for other in phases) for one in log.groups] + [False])
    if _follow(ends, phase.group, steps, log):
        return "line"
    # Its lines follow those of the epoch that they are about, from the first to the last epoch.
    return "step" if guess.is_epoch and names_loss(guess.group) and 0 not in after and len(steps) in after else ""


def _follow(wordings: Mask, group: Group, steps: Steps, log: Log) -> bool:
    """Return True if the last timed line before most lines of a group, after the last record, has one of some
    wordings."""
    entries, after = log.entries, np.array(steps.after(group))
    seen = np.flatnonzero(entries.timed | np.isin(entries.places, steps.read))
    last = np.searchsorted(seen, group.rows) - 1
    known = (after > 0) & (last >= 0)
    other = seen[last[known]]
    found = (entries.places[other] > steps.places[after[known] - 1]) & wordings[log.wordings[other]]
    return bool(len(found)) and bool(found.mean() > _MOSTLY)


def _reports_begin(group: Group) -> bool:
    return BEGINS.search(group.about) is not None and ENDS.search(group.about) is None


def _shows_end(group: Group) -> bool:
    """Return True for lines with which the training of an epoch ended."""
    return OF_AN_END.search(group.about) is not None and OF_TRAINING.search(group.about) is not None


def evaluation_in(guess: StepGuess) -> tuple[int | None, str] | None:
    """Return the column of step lines with the time of an evaluation, and its unit; no column if they contain only its
    result, a new one in most lines; None if they contain neither."""
    columns = [(at, one) for at, one in enumerate(guess.group.columns) if re.search(EVAL, one.name)]
    timed = [(at, one.unit[0]) for at, one in columns if one.unit is not None and one.unit[0] != "per_s"]
    if timed:
        return timed[0]
    results = (one for _, one in columns if one.unit is None and one.counts)
    return (None, "") if any(len(set(one.texts)) > _MOSTLY * len(guess.group) for one in results) else None


def moments(group: Group) -> list[tuple[int, int]]:
    """Return the index and time of each entry of a group."""
    return list(zip(group.places.tolist(), group.ns.tolist(), strict=True))

"""Cost of failures: older checkpoints, failing starts, long outages, all other disruptions, and rare saves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, structs

from goodput_cli.accounting.attempts.failure_cause import FailureCause
from goodput_cli.accounting.columns import last_of_each, of_kind, rows_of
from goodput_cli.analysis.disruptions.costs import OlderRestore
from goodput_cli.analysis.disruptions.find import disruptions_inside, last_failure
from goodput_cli.analysis.disruptions.losses import dying_starts, finished_a_step, first_and_last_steps
from goodput_cli.analysis.insights.hosts import HostsOfJob
from goodput_cli.analysis.insights.kinds import Candidate, InsightTarget
from goodput_cli.analysis.insights.patterns import SavePolicy, frequent_saves, lost_training, rare_saves, save_policy
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import NO_STEP, Kind
from goodput_cli.vocabulary.categories import CAUSES, ENDED, UNKNOWN_CAUSE, ended_words, with_certainty
from goodput_cli.vocabulary.text import clock, duration, plural

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData

_AGAIN = 3
_FAR_LONGER = 3
_MOST_NAMED = 3
_MOST_ROWS = 5
_MOST_ABOUT = 100
_OF_STEPS = frozenset({"python_error", "device_error", "not_finite", "native_crash", "device_oom", "data_loader"})
"""Causes that an error in a step can have."""
_LONG_DOWN, _MUCH = 50, 4
"""Minimum downtime for advice to restart sooner: a 50th of the window, and a quarter of the cost of failures."""
_HANGS = "the hangs that ended in {hung} of them are counted separately"
_RESTARTS = "detect failures sooner, and restart automatically"
_FIRST = "find the cause of each disruption"


class Failures(Struct, frozen=True):
    """Costs of a window's failures that no insight explains yet, by attempt that another one follows (ns).

    older, wasted and down do not overlap, and do not include time in which a step hung.
    """

    analysis: AnalysisData
    unplanned: Mask
    """True if it was a disruption that counts."""
    down: I64
    """Downtime."""
    older: I64
    """Training that a newer checkpoint would have kept."""
    wasted: I64
    """Other training that was lost."""
    starting: I64
    """Start-up time of the attempt, with that of failed starts."""
    unfinished: I64
    """Training that saves which never completed would have kept."""
    unknown: I64
    """Training that saves of unknown completion would have kept if they were complete."""
    olders: tuple[OlderRestore, ...]
    """Restores that skipped newer checkpoints."""
    failed: tuple[OlderRestore, ...]
    """Restores that had to skip saves which never completed."""
    unknowns: tuple[OlderRestore, ...]
    """Restores that skipped saves of unknown completion."""
    hung: Rows
    """Attempts that ended by the timeout of a hanging step: the hang has its own insight."""

    @property
    def left_aside(self) -> I64:
        """Return the training (ns) by attempt that skipped saves would have kept."""
        return self.older + self.unfinished + self.unknown

    @property
    def lost(self) -> I64:
        """Return the loss in disruptions that count, without the cost of older checkpoints."""
        return np.where(self.unplanned, self.wasted + self.down, 0)


def find_failures(failures: Failures, slow_saves: int = 0) -> Iterator[Candidate]:
    """Yield candidates of all kinds. Each second belongs to the first kind that explains it: a finder removes its time
    from the rest. slow_saves: time in saves (ns) that another insight reports."""
    between = _between_runs(failures)
    if between.any():
        yield _runs(failures, between)
        left = ~between
        failures = structs.replace(
            failures,
            unplanned=failures.unplanned & left,
            down=failures.down * left,
            older=failures.older * left,
            wasted=failures.wasted * left,
            unfinished=failures.unfinished * left,
            unknown=failures.unknown * left,
            olders=tuple(one for one in failures.olders if left[one.ended]),
        )
    yield from _older_checkpoints(failures)
    yield from _failed_saves(failures)
    yield from _unknown_saves(failures)
    rest = failures.unplanned.copy()
    yield from _failing_starts(failures, rest)
    yield from _repeating_hosts(failures, rest)
    yield from _same_step(failures, rest)
    trained = rest & finished_a_step(failures.analysis.timeline)[:-1]
    inside = _is_in_window(failures.analysis, len(rest))
    policy = save_policy(failures.analysis, int(np.count_nonzero(trained & inside)))
    wasted = np.where(rest, failures.wasted, 0)
    if policy is not None and policy.too_rare:
        undone = np.flatnonzero(np.where(trained, wasted, 0))
        lost = int(wasted[undone].sum())
        yield rare_saves(failures.analysis, policy, lost, len(undone), _about(failures, undone))
        wasted[undone] = 0
    elif policy is not None and policy.too_frequent:
        yield frequent_saves(failures.analysis, policy, slow_saves)
    yield from _long_outage(failures, rest, wasted)
    yield from _disruptions(failures, rest, wasted, policy)


def _between_runs(failures: Failures) -> Mask:
    """Return, for each attempt, True if it was the last of a run that another one follows, and its end cost
    something."""
    timeline = failures.analysis.timeline
    first = np.searchsorted(timeline.attempts.begin_row, timeline.runs[1:])
    last = np.zeros(len(failures.wasted), dtype=bool)
    last[first - 1] = True
    return np.asarray(last & failures.unplanned & (failures.lost + failures.left_aside > 0))


def _runs(failures: Failures, between: Mask) -> Candidate:
    timeline, which = failures.analysis.timeline, np.flatnonzero(between)
    down = int(failures.down[which].sum())
    lost = int((failures.wasted + failures.left_aside)[which].sum())
    parts = [f"{duration(down)} between runs"] * (down > 0) + [f"{duration(lost)} of training in earlier runs"] * (
        lost > 0
    )
    text = f"the log contains {plural(len(timeline.runs), 'run')} with this name: {', '.join(parts)}"
    return Candidate(
        "several_runs", down + lost, text, int(timeline.sign_of_life[which[0]]),
        int(timeline.attempts.up[which[-1] + 1]), len(timeline.runs), _ending_rows(failures, which[-1:]),
        _about(failures, which), options=("--run", "last"),
    )  # fmt: skip


def _costly(restores: Sequence[OlderRestore], lost: I64) -> tuple[list[OlderRestore], OlderRestore | None]:
    """Return the restores that cost something, in order of time, and the one that cost most. lost: ns by attempt."""
    costly = [one for one in restores if lost[one.ended] > 0]
    return costly, max(costly, key=lambda one: int(lost[one.ended]), default=None)


def _older_checkpoints(failures: Failures) -> Iterator[Candidate]:
    costly, worst = _costly(failures.olders, failures.older)
    if worst is None:
        return
    checkpoints, were = _checkpoints_of_steps(worst.newer)
    text = f"{_restart_of(worst)}, although {checkpoints} {were} complete"
    if len(costly) > 1:
        text += f"; {plural(len(costly), 'such restore')} in total"
    yield _restores(failures, "older_checkpoint", int(failures.older.sum()), text, costly, worst)


def _failed_saves(failures: Failures) -> Iterator[Candidate]:
    costly, worst = _costly(failures.failed, failures.unfinished)
    if worst is None:
        return
    count = sum(len(one.newer) for one in costly)
    if len(worst.newer) == 1:
        text = f"checkpoint {worst.newer[0]} was incomplete when the job failed"
        text += f"; training resumed from step {worst.began}"
    else:
        text = f"{len(worst.newer)} checkpoints after step {worst.began - 1} were never completed"
    text += f"; {plural(count - len(worst.newer), 'more incomplete checkpoint')}" if count > len(worst.newer) else ""
    advice = (
        "complete each save before the next one begins; no newer checkpoint was available to restore"
        if count == 1
        else None
    )
    yield _restores(failures, "failed_saves", int(failures.unfinished.sum()), text, costly, worst, advice, count)


def _unknown_saves(failures: Failures) -> Iterator[Candidate]:
    costly, worst = _costly(failures.unknowns, failures.unknown)
    if worst is None:
        return
    count = sum(len(one.newer) for one in costly)
    checkpoints, were = _checkpoints_of_steps(worst.newer)
    text = f"{_restart_of(worst)}; the log does not show that {checkpoints} {were} complete"
    text += f" (and {plural(count - len(worst.newer), 'more such checkpoint')})" if count > len(worst.newer) else ""
    yield _restores(failures, "unknown_saves", int(failures.unknown.sum()), text, costly, worst, None, count)


def _restart_of(one: OlderRestore) -> str:
    """Return words for a restart: `restored step 1400`."""
    return f"restarted at step {one.began}" if one.restored is None else f"restored step {one.restored}"


def _checkpoints_of_steps(steps: tuple[int, ...]) -> tuple[str, str]:
    """Return words for the newest of some checkpoints and the verb: `checkpoint 100` and `was`."""
    named = [str(step) for step in steps[-_MOST_NAMED:]]
    if len(named) == 1:
        return f"checkpoint {named[0]}", "was"
    return f"checkpoints {', '.join(named[:-1])} and {named[-1]}", "were"


def _restores(
    failures: Failures, code: str, ns: int, text: str, costly: list[OlderRestore], worst: OlderRestore,
    advice: str | None = None, count: int | None = None,
) -> Candidate:  # fmt: skip
    """Return the candidate about restores that skipped saves. Its lines are those of the worst restore, and of the
    newest save that it skipped."""
    table, attempts = failures.analysis.timeline.table, failures.analysis.timeline.attempts
    restores = np.flatnonzero((attempts.of_row == worst.resumed) & of_kind(table.kind, (Kind.RESTORE, Kind.LOAD)))
    saves = np.flatnonzero(of_kind(table.kind, (Kind.SAVE, Kind.SAVED)) & (table.step == worst.newer[-1]))
    saves = saves[saves < attempts.begin_row[worst.resumed]]
    return Candidate(
        code, ns, text, int(attempts.begin[costly[0].resumed]), int(attempts.begin[costly[-1].resumed]),
        len(costly) if count is None else count, (*restores[:1].tolist(), *saves[-1:].tolist()),
        InsightTarget(tuple(_number(failures.analysis, one.ended) for one in costly[:_MOST_ABOUT])), command="timeline",
        options=("--around", f"disruption:{_number(failures.analysis, worst.ended)}"), advice=advice,
    )  # fmt: skip


def _number(analysis: AnalysisData, attempt: int) -> int:
    """Return the number of the disruption that ended an attempt, or of the next one."""
    disruptions = analysis.timeline.disruptions
    return min(int(np.searchsorted(disruptions, attempt)), max(len(disruptions) - 1, 0)) + 1


def _about(failures: Failures, ended: Rows) -> InsightTarget:
    """Return the first disruptions that ended some attempts."""
    disruptions = failures.analysis.timeline.disruptions
    return InsightTarget(tuple((np.searchsorted(disruptions, ended[:_MOST_ABOUT]) + 1).tolist()))


def failing_starts(failures: Failures) -> Rows:
    """Return the attempts, three at least, that failed before a step finished, or within a minute: their work is
    lost."""
    lost = failures.unplanned & (failures.lost + failures.starting > 0)
    which = np.flatnonzero(lost & dying_starts(failures.analysis.timeline)[:-1] & ~_between_runs(failures))
    return which if len(which) >= _AGAIN else which[:0]


def _failing_starts(failures: Failures, rest: Mask) -> Iterator[Candidate]:
    """Yield disruptions that ended repeatedly failing starts, and remove them from the rest."""
    timeline = failures.analysis.timeline
    attempts, lived = timeline.attempts, timeline.sign_of_life - timeline.attempts.begin
    which = failing_starts(failures)
    if len(which) == 0:
        return
    rest[which] = False
    begin, end = int(attempts.begin[which[0]]), int(attempts.begin[which[-1] + 1])
    last = len(attempts) - 1  # No attempt follows it, so it has no cost.
    dead = np.append(which, last) if last_failure(timeline) and not finished_a_step(timeline)[last] else which
    words = f"{len(dead)} of {len(attempts)} starts failed within {duration(int(lived[dead].max()))}"
    lost = int((failures.lost + failures.starting)[which].sum())
    yield Candidate(
        "failing_starts", lost, f"{words}, {_between(begin, end)}", begin, end, len(which),
        _ending_rows(failures, which[:_MOST_ROWS]), _about(failures, which), command="timeline",
        options=("--around", f"disruption:{_number(failures.analysis, int(which[0]))}", "--events"),
    )  # fmt: skip


def _repeating_hosts(failures: Failures, rest: Mask) -> Iterator[Candidate]:
    """Yield hosts with more failures than chance explains, and remove the attempts that failed there from the rest."""
    job = HostsOfJob(failures.analysis.timeline, np.flatnonzero(failures.unplanned).tolist())
    for one in job.repeating():
        dead = np.array([at for at in job.attempts_on(one.host) if rest[at]], dtype=np.intp)
        if len(dead) == 0:
            continue
        rest[dead] = False
        codes = ", ".join(_codes(_causes_of_ends(failures.analysis, dead)))
        text = f"{one.runs} of {one.of} failures were on {one.host}, one of {one.hosts} hosts ({codes}"
        advice = f"drain {one.host} and test it"
        if job.is_separable(one.host):
            text += f"; probability by chance {one.p:.2g})"
        else:
            rank = job.rank_on(one.host)
            always = "the same ranks" if rank is None else f"rank {rank}"
            text += f"); {always} always ran on {one.host}, so either the rank or the host may be the cause"
            advice = f"start once without {one.host}"
        yield _deaths(failures, "repeat_host", text, dead, options=("--by", "host"), advice=advice)


def _deaths(failures: Failures, code: str, text: str, dead: Rows, **more: Any) -> Candidate:
    """Return a candidate about some failures, with their cost. more: further fields."""
    timeline = failures.analysis.timeline
    down, wasted = int(failures.down[dead].sum()), int(failures.wasted[dead].sum())
    return Candidate(
        code, down + wasted, f"{text}: {_down_and_wasted(down, wasted)}", int(timeline.sign_of_life[dead[0]]),
        int(timeline.attempts.up[dead[-1] + 1]), len(dead), _ending_rows(failures, dead[:_MOST_ROWS]),
        _about(failures, dead), **more,
    )  # fmt: skip


def _same_step(failures: Failures, rest: Mask) -> Iterator[Candidate]:
    """Yield three or more attempts that failed in the same step, and remove them from the rest.

    Each had finished earlier steps itself, did not fail at a save, and its cause can be an error in a step.
    """
    timeline = failures.analysis.timeline
    if timeline.records is None:
        return
    began, last = first_and_last_steps(timeline)
    which = np.flatnonzero(rest & (last[:-1] != NO_STEP) & (last[:-1] > began[:-1] + 1))
    why = timeline.causes.why
    which = np.array(
        [at for at in which.tolist() if not why[at].is_explained or why[at].code in _OF_STEPS], dtype=np.intp
    )
    steps, counts = np.unique(last[which], return_counts=True)
    if counts.max(initial=0) < _AGAIN:
        return
    dead = which[last[which] == steps[counts.argmax()]]
    saves = rows_of(timeline.table.kind, (Kind.SAVE, Kind.SAVED))
    last_save = last_of_each(saves, timeline.attempts.of_row[saves], len(last))
    dead = dead[last_save[dead] <= timeline.records.last_row[dead]]
    if len(dead) < _AGAIN:
        return
    rest[dead] = False
    step = int(last[dead[0]]) + int(timeline.attempts.step_ends)
    codes = _codes([why[at] for at in dead.tolist() if why[at].is_explained])
    named = f" ({', '.join(codes)})" if codes else ""
    yield _deaths(
        failures, "same_step", f"{len(dead)} attempts failed in step {step}{named}", dead, command="timeline",
        options=("--around", f"disruption:{_number(failures.analysis, int(dead[0]))}", "--events"),
    )  # fmt: skip


def _down_and_wasted(down: int, wasted: int) -> str:
    """`56.0 s of downtime, 3 min 24 s of wasted training`."""
    return ", ".join(
        [f"{duration(down)} of downtime"] * (down > 0) + [f"{duration(wasted)} of wasted training"] * bool(wasted)
    )


def _between(begin: int, end: int) -> str:
    (first_day, first), (last_day, last) = clock(begin), clock(end)
    if first_day == last_day:
        return f"{first[:5]} to {last[:5]} UTC"
    return f"{first_day[5:]} {first[:5]} to {last_day[5:]} {last[:5]} UTC"


def _ending_rows(failures: Failures, which: Rows) -> tuple[int, ...]:
    """Return the first line that ended each attempt, or the first line of the next attempt."""
    attempts = failures.analysis.timeline.attempts
    first = attempts.first_ending[which]
    return tuple(np.where(first >= 0, first, attempts.begin_row[which + 1]).tolist())


def _long_outage(failures: Failures, rest: Mask, wasted: I64) -> Iterator[Candidate]:
    """Yield the longest downtime if it is far longer than the median of the others, and remove it from the rest.

    wasted: training (ns) that disruptions took back, and that no other insight reports.
    """
    which = np.flatnonzero(rest & (failures.down > 0))
    if len(which) < 2:
        return
    ended = int(which[np.argmax(failures.down[which])])
    usual, down = float(np.median(failures.down[which[which != ended]])), int(failures.down[ended])
    if down <= _FAR_LONGER * usual or _LONG_DOWN * down < failures.analysis.window.counted_ns:
        return
    rest[ended] = False
    timeline, lost = failures.analysis.timeline, int(wasted[ended])
    begin, end = int(timeline.sign_of_life[ended]), int(timeline.attempts.up[ended + 1])
    disruption, why = _number(failures.analysis, ended), timeline.causes.why[ended]
    named = "" if why.certainty is None else f" ({next(_words_of_causes([why]))})"
    text = f"nothing ran for {duration(max(end - begin, 0))} after disruption {disruption}{named}, "
    text += _between(begin, end) + (f"; {duration(lost)} of training were lost with it" if lost else "")
    yield Candidate(
        "long_outage", down + lost, text, begin, end, 1, _ending_rows(failures, np.array([ended])),
        InsightTarget((disruption,)), options=("--around", f"disruption:{disruption}"), command="timeline",
    )  # fmt: skip


def _disruptions(failures: Failures, rest: Mask, wasted: I64, policy: SavePolicy | None) -> Iterator[Candidate]:
    """Yield the remaining disruptions. rest: disruptions that no other insight reports. wasted: by attempt, the
    training they took back (ns)."""
    analysis, timeline = failures.analysis, failures.analysis.timeline
    here = _is_in_window(analysis, len(rest))
    which = np.flatnonzero(rest & (here | (failures.down + wasted > 0)))
    if len(which) == 0:
        return
    amounts = failures.down[which] + wasted[which]
    worst = int(which[np.argmax(amounts)])
    down, lost = int(failures.down[which].sum()), int(wasted[which].sum())
    text = _disruptions_text(analysis, which, others=bool(np.any(failures.unplanned & ~rest)))
    if lost:
        text += f": {_down_and_wasted(down, lost)}"
    hung = int(np.isin(which, failures.hung).sum())
    if hung:
        text += "; the hang before it is counted separately" if len(which) == 1 else f"; {_HANGS.format(hung=hung)}"
    undone = int((failures.wasted + failures.left_aside).sum())
    long = down > lost and _LONG_DOWN * down >= analysis.window.counted_ns and _MUCH * down >= down + undone
    advice = _RESTARTS if long else _FIRST if down > lost else lost_training(analysis, policy)
    command: str | None = None if down > lost else "advise"
    options: tuple[str, ...] = ()
    lost_to: Counter[str] = Counter()
    for why, ns in zip(_causes_of_ends(analysis, which), amounts.tolist(), strict=True):
        if why.certainty is not None:
            lost_to[why.code] += ns
    if lost_to:
        costliest = max(sorted(lost_to), key=lambda code: lost_to[code])
        said = {
            why.advice_for(training_lost=lost > 0) for why in _causes_of_ends(analysis, which) if why.code == costliest
        }
        advice = next(iter(said)) if len(said) == 1 else CAUSES[costliest].advice_for(training_lost=lost > 0)
        advice = f"{_RESTARTS}; {advice}" if long else advice
        command, options = "disruptions", ("--by", "cause")
    yield Candidate(
        "disruptions", int(amounts.sum()), text, int(timeline.sign_of_life[which[0]]),
        int(timeline.attempts.up[which[-1] + 1]), len(which), _ending_rows(failures, np.array([worst])),
        _about(failures, which), advice=advice, command=command, options=options,
    )  # fmt: skip


def _causes_of_ends(analysis: AnalysisData, which: Rows) -> list[FailureCause]:
    """Return the causes of some attempts' ends (docs/causes.md)."""
    return [analysis.timeline.causes.why[attempt] for attempt in which.tolist()]


def _codes(why: list[FailureCause]) -> list[str]:
    """Return each cause once, with its certainty."""
    codes = sorted({one.code for one in why})
    return [with_certainty(code, [one.certainty for one in why if one.code == code]) for code in codes]


def _words_of_causes(why: list[FailureCause]) -> Iterator[str]:
    """Yield each cause with its count, and with its host if that is always the same; unknown causes last."""
    codes = Counter(one.code for one in why)
    for code, count in sorted(codes.items(), key=lambda pair: (pair[0] == UNKNOWN_CAUSE, -pair[1], pair[0])):
        hosts = {one.host for one in why if one.code == code}
        place = f" on {next(iter(hosts))}" if len(hosts) == 1 and "" not in hosts else ""
        certainties = [one.certainty for one in why if one.code == code]
        words = "unknown cause" if code == UNKNOWN_CAUSE else with_certainty(f"{code}{place}", certainties)
        yield f"{count} {words}" if len(why) > 1 else words


def _is_in_window(analysis: AnalysisData, attempts: int) -> Mask:
    """Return, for each attempt, True if it ended in a disruption inside the window."""
    timeline, window = analysis.timeline, analysis.window
    inside = np.zeros(attempts, dtype=bool)
    inside[timeline.disruptions[disruptions_inside(timeline, window.start_ns, window.end_ns)]] = True
    return inside


def _disruptions_text(analysis: AnalysisData, which: Rows, *, others: bool) -> str:
    """Return `4 disruptions (3 silent, 1 crashed), 1 of them before the window`. others: another insight reports the
    rest."""
    outside = which[~_is_in_window(analysis, len(analysis.timeline.attempts))[which]]
    before = int(np.count_nonzero(analysis.timeline.sign_of_life[outside] < analysis.window.start_ns))
    parts = {"before the window": before, "after the window": len(outside) - before}
    words = plural(len(which), "other disruption" if others else "disruption")
    everywhere = next((f" {place}" for place, count in parts.items() if count == len(which)), "")
    some = [f"{count} of them {place}" for place, count in parts.items() if 0 < count < len(which)]
    return ", ".join([f"{words}{everywhere} ({_causes(analysis, which)})", *some])


def _causes(analysis: AnalysisData, which: Rows) -> str:
    """Return `3 silent, 1 crashed`; with logged causes, `3 gpu_memory on node-07, 1 unknown cause`."""
    why = _causes_of_ends(analysis, which)
    if any(one.certainty for one in why):
        return ", ".join(_words_of_causes(why))
    codes = np.bincount(analysis.timeline.ends.how[which], minlength=len(ENDED)).tolist()
    counts = sorted(((count, how) for count, how in zip(codes, ENDED, strict=True) if count), reverse=True)
    return ", ".join(f"{count} {ended_words(how)}" if len(which) > 1 else ended_words(how) for count, how in counts)

"""What dumps of flight recorders show together (docs/hangs.md): positions of a rank in all of its groups, and their
members.

The `pg_status` of a dump has ids that each rank gives its groups, so an id is understood only from the entries of the
same rank, or from ranks with the same groups that agree on it. Dumps are compared if they are of one wait: a directory
may also contain those of an earlier one, or of a job that ran on between them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from goodput_cli.events.capability import CollectedInputs, job_of_source, jobs_of_sources
from goodput_cli.events.hangs.dump_files import Dump
from goodput_cli.events.hangs.positions import DEFAULT_GROUP, Position, kind_of, needs_all
from goodput_cli.vocabulary.when import NS_PER_MINUTE, NS_PER_MS

_USUAL_TIMEOUT_NS = 10 * NS_PER_MINUTE
"""The default of PyTorch."""
_SEVERAL_MOMENTS = (
    "dumps of different moments: a rank finished an operation that another one, which takes part in it, has not "
    "begun; ignored. Dump all ranks while the job hangs"
)


@dataclass(frozen=True)
class Membership:
    """Members of a process group."""

    job: str
    time: int | None
    """Time of the dumps, as in their positions."""
    group: str
    about: str
    ranks: tuple[int, ...]
    """Global ranks in the order of ranks in the group."""


@dataclass(frozen=True)
class Disagreement:
    """The first unfinished operation of a group at which its members differ."""

    job: str
    time: int | None
    group: str
    sequence: int
    kinds: tuple[tuple[int, str], ...]
    """What each rank runs."""
    usual: str = ""
    """What all other groups of its description run at this number; "" if they differ, or are fewer than two dumps."""


@dataclass(frozen=True)
class RankFunction:
    """The function in which a rank is."""

    job: str
    rank: int
    function: str
    """Untrusted."""


def rows_of(inputs: CollectedInputs) -> Iterator[Position | Membership | Disagreement | RankFunction]:
    """Yield the rows of all dumps, each with the job of the logs next to it."""
    if inputs.parts is None:
        return
    table, by_source, notes = inputs.table, jobs_of_sources(inputs.table), inputs.notes
    of_job: defaultdict[str, list[tuple[str, Dump]]] = defaultdict(list)
    for source, dump in inputs.parts.dumps.items():
        job = job_of_source(source, table.sources, by_source)
        if isinstance(dump, Dump) and dump.note:
            notes.add("unusable_dump", notes.bounded("unusable_dump", dump.note), source, [1])
        if isinstance(dump, Dump) and dump.is_refused:
            continue
        if job is None:
            notes.add("unusable_dump", "a dump next to logs of several jobs, or of none; ignored", source, [1])
        elif isinstance(dump, Dump):
            of_job[job].append((table.sources[source], dump))
        elif dump.function:
            yield RankFunction(job, dump.rank, dump.function)
    for job, dumps in of_job.items():
        yield from _rows_of_job(job, dumps, inputs)


def _rows_of_job(
    job: str, dumps: Sequence[tuple[str, Dump]], inputs: CollectedInputs
) -> Iterator[Position | Membership | Disagreement]:
    """Yield the rows of the waits of a job. Dumps have UTC times: if those of the log have no zone, only the last wait
    is known to be the job's last one."""
    waits = _waits(dumps)
    is_dated = not inputs.notes.has_code("naive_timestamps")
    for time, some in waits if is_dated else [(None, waits[-1][1])]:
        if _is_one_moment([dump for _, dump in some]):
            yield from _rows_of_wait(job, time, some)
        else:
            inputs.notes.add("unusable_dump", _SEVERAL_MOMENTS, inputs.table.sources.index(some[0][0]), [1])


def _waits(dumps: Sequence[tuple[str, Dump]]) -> list[tuple[int | None, list[tuple[str, Dump]]]]:
    """Return the dumps of each wait with its time, in order of time. Dumps whose last operations are further apart than
    a wait may last are of several waits. Those without times are of the last one."""
    times = [max((entry.created or 0 for entry in dump.entries), default=0) for _, dump in dumps]
    limits = [entry.timeout_ms or 0 for _, dump in dumps for entry in dump.entries[-1:]]
    limit = max(limits, default=0) * NS_PER_MS or _USUAL_TIMEOUT_NS
    found: list[tuple[int | None, list[tuple[str, Dump]]]] = []
    for time, one in sorted(zip(times, dumps, strict=True), key=lambda row: row[0]):
        if not time:
            continue
        if not found or time - (found[-1][0] or 0) > limit:
            found.append((time, []))
        found[-1][1].append(one)
        found[-1] = time, found[-1][1]
    undated = [one for time, one in zip(times, dumps, strict=True) if not time]
    if not found:
        return [(None, undated)]
    found[-1][1].extend(undated)
    return found


def _is_one_moment(dumps: Sequence[Dump]) -> bool:
    """Return True unless a rank finished an operation that another member of its group has not enqueued."""
    last: defaultdict[str, dict[int, int]] = defaultdict(dict)
    done: dict[str, int] = {}
    worlds = {ranks for dump in dumps for about, ranks in dump.groups.values() if about == DEFAULT_GROUP}
    for dump in dumps:
        for one in dump.entries:
            if one.is_p2p:
                continue
            last[one.group][dump.rank] = max(one.sequence, last[one.group].get(dump.rank, 0))
            if one.done and needs_all(one.operation):
                done[one.group] = max(one.sequence, done.get(one.group, 0))
    return len(worlds) < 2 and all(min(last[group].values()) >= number for group, number in done.items())


def _rows_of_wait(
    job: str, time: int | None, dumps: Sequence[tuple[str, Dump]]
) -> Iterator[Position | Membership | Disagreement]:
    groups: dict[str, tuple[str, tuple[int, ...]]] = {}
    unclear = set[str]()
    """Names of several groups, and groups of which `pg_status` also counts point-to-point operations."""
    with_p2p = {one.group for _, dump in dumps for one in dump.entries if one.is_p2p}
    for _, dump in dumps:
        for name, about_and_ranks in dump.groups.items():
            if groups.setdefault(name, about_and_ranks)[1] != about_and_ranks[1]:
                unclear.add(name)
    for name, (about, ranks) in groups.items():
        if ranks and name not in unclear:
            yield Membership(job, time, name, about, ranks)
    learned = [(set(dump.groups), _ids_of(dump)) for _, dump in dumps]
    last = max((one.created or 0 for _, dump in dumps for one in dump.entries), default=0)
    first = min((dump.written for _, dump in dumps if dump.written is not None), default=None)
    still = first - last if first is not None and last and first - last > -NS_PER_MINUTE else None
    for source, dump in dumps:
        ids = {local: name for local, name in _ids_from_peers(dump, learned).items() if name not in with_p2p}
        yield from (replace(one, time=time, still_ns=still) for one in _positions(job, source, dump, ids, unclear))
    yield from _disagreements(job, time, [dump for _, dump in dumps], unclear)


def _ids_of(dump: Dump) -> dict[int, str]:
    return {one.local: one.group for one in dump.entries if one.local is not None}


def _ids_from_peers(dump: Dump, learned: Sequence[tuple[set[str], dict[int, str]]]) -> dict[int, str]:
    """Return the group of each local id: from the dump's own entries, otherwise from the dumps that share most groups
    with it; ids on which these disagree are left out."""
    own = _ids_of(dump)
    left = [local for local in dump.status if local not in own]
    if not left:
        return own
    names = set(dump.groups)
    shared = [len(names & groups) for groups, ids in learned if ids]
    most = max(shared, default=0)
    peers = [ids for groups, ids in learned if ids and len(names & groups) == most] if most else []
    for local in left:
        named = Counter(ids[local] for ids in peers if local in ids)
        if len(named) == 1 and (name := next(iter(named))) in names and name not in own.values():
            own[local] = name
    return own


def _positions(job: str, source: str, dump: Dump, ids: Mapping[int, str], unclear: set[str]) -> Iterator[Position]:
    """Yield the position of a rank in each of its groups: it waits in its earliest pending operation. It names no group
    if that is a point-to-point operation."""
    pending = next((one for one in dump.entries if not one.done), None)
    last: dict[str, tuple[int | None, int | None]] = {}
    for one in dump.entries:
        if not one.is_p2p:
            enqueued, completed = last.get(one.group, (None, None))
            last[one.group] = one.sequence, one.sequence if one.done else completed
    for local, name in ids.items():
        if local in dump.status:
            enqueued, completed = dump.status[local]
            before = last.get(name, (None, None))
            last[name] = _largest(enqueued, before[0]), _largest(completed, before[1])
    if pending is not None and (pending.is_p2p or pending.group in unclear):
        yield Position(
            job, f"{source}:1", None, dump.rank, "", None, sequence=pending.sequence, operation=pending.operation,
            from_dump=True, phase=dump.frame or "",
        )  # fmt: skip
    for name, (enqueued, completed) in last.items():
        if name in unclear:
            continue
        about, ranks = dump.groups.get(name, ("", ()))
        inside = ranks.index(dump.rank) if dump.rank in ranks else dump.rank if about == DEFAULT_GROUP else None
        is_open = not dump.entries and (enqueued or 0) > (completed or 0)
        position = Position(
            job, f"{source}:1", None, dump.rank, "", name, about, inside, (completed or 0) + 1 if is_open else None,
            enqueued=enqueued, completed=completed, from_dump=True,
        )  # fmt: skip
        own = pending if pending is not None and pending.group == name and not pending.is_p2p else None
        yield position if own is None else replace(
            position, sequence=own.sequence, operation=own.operation, elements=own.elements, phase=dump.frame or "",
            timeout_ns=None if own.timeout_ms is None else own.timeout_ms * NS_PER_MS,
        )  # fmt: skip


def _largest(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _disagreements(job: str, time: int | None, dumps: Sequence[Dump], unclear: set[str]) -> Iterator[Disagreement]:
    """Yield the first unfinished operation of each group at which dumps differ."""
    about = {name: words for dump in dumps for name, (words, _) in dump.groups.items()}
    unfinished = {
        (one.group, one.sequence) for dump in dumps for one in dump.entries if not one.done and not one.is_p2p
    }
    places = {(about.get(group, ""), number) for group, number in unfinished}
    runs: defaultdict[tuple[str, int], dict[int, str]] = defaultdict(dict)
    for dump in dumps:
        for one in dump.entries:
            if (about.get(one.group, ""), one.sequence) in places and not one.is_p2p:
                operation, elements = kind_of(one.operation, one.elements)
                before = runs[one.group, one.sequence].get(dump.rank, "")  # Coalesced operations have one number.
                runs[one.group, one.sequence][dump.rank] = f"{before} {operation} {elements}"
    first: dict[str, int] = {}
    for group, number in sorted(unfinished):
        if group not in unclear and len({*runs[group, number].values()}) > 1:
            first.setdefault(group, number)
    for group, number in first.items():
        others = Counter(
            kind for (name, at), kinds in runs.items()
            if at == number and name != group and about.get(group) and about.get(name) == about[group]
            for kind in kinds.values()
        )  # fmt: skip
        usual = next(iter(others)) if len(others) == 1 and others.total() > 1 else ""
        yield Disagreement(job, time, group, number, tuple(sorted(runs[group, number].items())), usual)

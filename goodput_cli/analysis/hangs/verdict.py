"""Decide who held the job up at the end of an attempt. The rules are in docs/hangs.md, in their order.

A rank is named only by evidence about itself, and not because it is silent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from goodput_cli.analysis.hangs.groups import Member, WaitGroup, Waiting
from goodput_cli.events.hangs.positions import DEFAULT_GROUP, Position, kind_of, needs_all
from goodput_cli.events.hangs.reports import RankReport

Verdict = Literal["absent", "behind", "diverged", "busy", "all_joined", "unknown"]
Certainty = Literal["confirmed", "likely", "unknown"]
_Mappings = Mapping[str, tuple[WaitGroup, bool]]
_OF_ONE_GROUP = ("desync", "barrier", "ras")
"""Reports about one group: a rank that they name may wait in another one."""
_FEW = 3
"""A part of a group is named if the group has at least this many times as many members."""


@dataclass(frozen=True)
class Finding:
    """Who held the job up."""

    verdict: Verdict
    certainty: Certainty = "unknown"
    ranks: tuple[int, ...] = ()
    """Named global ranks."""
    group: str | None = None
    """Group in which the others wait for them."""
    evidence: tuple[str, ...] = ()
    """Locations of reports."""
    unmapped: tuple[int, ...] = ()
    """Named ranks of the group whose global ranks are unknown."""
    hosts: tuple[str, ...] = ()
    in_doubt: tuple[str, ...] = ()
    """Ranks that a report names and that may themselves wait for others: `rank 5`, `rank 1 of TP 37`."""


def judge(waiting: Waiting) -> Finding:
    """Return who held the job up."""
    roots, in_doubt = _of_reports(waiting)
    rules = (_absent, _behind, _diverged, _crossed, _all_joined, _only_one)
    found = _merged(roots) or next((one for rule in rules if (one := rule(waiting)) is not None), Finding("unknown"))
    return found if found.ranks or found.unmapped else replace(found, in_doubt=in_doubt)


# 1. reports


def _of_reports(waiting: Waiting) -> tuple[list[Finding], tuple[str, ...]]:
    """Return the ranks that reports name, without those that wait in another group, and those that may do so."""
    named: dict[tuple[str, str], list[tuple[RankReport, set[int], set[int]]]] = defaultdict(list)
    at, mappings = _reporters(waiting), _mappings(waiting.reports)
    reached = {rank for one in waiting.reports if one.kind == "barrier" for rank in one.reached}
    for one in waiting.reports:
        for group, ranks, unmapped in _named_by(waiting, one, at, reached, mappings):
            named[one.kind, group].append((one, ranks, unmapped))
    differ = _mismatched(waiting.reports)
    for one, odd in differ:
        if odd:
            named[one.kind, ""].append((one, *_mapped(waiting, one, odd, mappings)))
    roots: list[Finding] = []
    in_doubt: list[str] = []
    for (kind, group), found in named.items():
        reports = [one for one, _, _ in found]
        ranks = set.intersection(*(ranks for _, ranks, _ in found))
        # A device that waits for another group has not begun the operation, though its program enqueued it.
        ranks -= {rank for rank in ranks & waiting.waits_in.keys()
                  if waiting.has_subgroups or waiting.waits_in[rank] != group}  # fmt: skip
        unmapped = set.intersection(*(unmapped for _, _, unmapped in found))
        is_sure = kind != "ras" or bool(waiting.waits_in) or _stands_still(reports)
        if not (ranks or unmapped) or not (is_sure or reports[-1].is_apart):
            continue
        if kind in _OF_ONE_GROUP and waiting.has_subgroups and not _is_root(waiting, ranks, group or None):
            label = waiting.groups[group].label if group else "its group"
            in_doubt += [f"rank {rank}" for rank in sorted(ranks)] or [f"rank {one} of {label}" for one in unmapped]
            continue
        places = tuple(dict.fromkeys(one.where for one in reports))
        hosts = tuple(sorted({host for one in reports for host in one.hosts}))
        roots.append(
            Finding("diverged" if kind == "fingerprint" else "absent", "confirmed" if is_sure else "likely",
                    tuple(sorted(ranks)), group or None, places, tuple(sorted(unmapped)), hosts)
        )  # fmt: skip
    if differ and not roots and not waiting.waits_in:
        roots = [Finding("diverged", evidence=tuple(one.where for one, _ in differ))]
    return roots, tuple(dict.fromkeys(in_doubt))


def _stands_still(reports: Sequence[RankReport]) -> bool:
    """Return True if ranks were where they are in an earlier snapshot."""
    return len(reports) > 1 and reports[-1].running == reports[-2].running


def _merged(roots: Sequence[Finding]) -> Finding | None:
    """Return findings about several groups as one, if they name the same ranks."""
    is_one = len(roots) == 1 or (len({one.ranks for one in roots}) == 1 and bool(roots[0].ranks))
    return roots[0] if is_one else None


def _reporters(waiting: Waiting) -> dict[tuple[int | None, str], dict[str, set[int | None]]]:
    """Return, by number and operation, the groups in which ranks wait for it, with these ranks in the group."""
    found: defaultdict[tuple[int | None, str], defaultdict[str, set[int | None]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for group in waiting.groups.values():
        for one in group.waits.values():
            found[one.sequence, one.operation][group.name].add(one.group_rank)
    return {key: dict(groups) for key, groups in found.items()}


def _named_by(
    waiting: Waiting,
    one: RankReport,
    at: Mapping[tuple[int | None, str], Mapping[str, set[int | None]]],
    reached: set[int],
    mappings: _Mappings,
) -> Iterator[tuple[str, set[int], set[int]]]:
    """Yield the group of a report, the global ranks that it names, and those of its group that are not known."""
    if one.kind == "desync":
        waits = at.get((one.sequence, one.operation), {})
        groups = [
            waiting.groups[name] for name, ranks in waits.items() if one.reporter is None or one.reporter in ranks
        ]
        own = [
            group for group in groups if one.process is not None and group.global_of(one.reporter or 0) == one.process
        ]
        if not groups and one.process is not None:  # Its numbers are of another count than the watchdog's.
            groups = [one for one in [waiting.groups.get(waiting.waits_in.get(one.process, ""))] if one is not None]
        groups = own or groups
        if one.named and len(groups) <= 1:
            group = groups[0] if groups else None
            yield "" if group is None else group.name, *_global(one.named, None if group is None else group.global_of)
    elif one.kind == "tasks":
        yield "", set(one.named), set()
    elif named := set(one.named) - (reached if one.kind == "barrier" else set()):
        yield "", *_mapped(waiting, one, named, mappings)


def _mappings(reports: Iterable[RankReport]) -> _Mappings:
    """Return, by kind of reports, their unnamed group, and whether its ranks may be those of the job."""
    found: defaultdict[str, WaitGroup] = defaultdict(lambda: WaitGroup(""))
    for one in reports:
        group = found[one.kind]
        if one.reporter is not None and one.process is not None:
            group.is_mixed |= group.pairs.setdefault(one.reporter, one.process) != one.process
    for group in found.values():
        if group.is_mixed:  # They are of several groups.
            group.pairs.clear()
    return {
        kind: (group, not group.is_mixed and all(inside == rank for inside, rank in group.pairs.items()))
        for kind, group in found.items()
    }


def _mapped(waiting: Waiting, one: RankReport, named: Iterable[int], mappings: _Mappings) -> tuple[set[int], set[int]]:
    """Return the global ranks of ranks in the unnamed group of a report, and those that are not known. The group has
    all ranks if its size shows that, or if the log has no other groups."""
    group, is_same = mappings[one.kind]
    is_whole = not waiting.has_subgroups if one.size is None else one.size == waiting.size
    return _global(named, (lambda rank: rank) if is_whole and is_same else group.global_of)


def _global(named: Iterable[int], global_of: Callable[[int], int | None] | None) -> tuple[set[int], set[int]]:
    """Return the global ranks of ranks in a group, and the ranks in the group whose global rank is not known."""
    mapped = {rank: None if global_of is None else global_of(rank) for rank in named}
    return {rank for rank in mapped.values() if rank is not None}, {
        rank for rank, found in mapped.items() if found is None
    }


def _mismatched(reports: Iterable[RankReport]) -> list[tuple[RankReport, set[int]]]:
    """Return the first report about each number, and the ranks that run another collective than most, if any."""
    found: list[tuple[RankReport, set[int]]] = []
    by_number: defaultdict[int | None, list[RankReport]] = defaultdict(list)
    for one in reports:
        if one.kind == "fingerprint":
            by_number[one.sequence].append(one)
    for some in by_number.values():
        running = [each for one in some for each in one.running]
        operations: dict[Member, object] = {rank: operation for rank, operation, _ in running}
        shapes: dict[Member, object] = {rank: shape for rank, _, shape in running if shape}
        odd = _minority(operations if len({*operations.values()}) > 1 else shapes, None)
        found.append((some[0], {rank for rank in odd if isinstance(rank, int)}))
    return found


def _minority(values: Mapping[Member, object], size: int | None) -> list[Member]:
    """Return the members that differ from the others: at most a third, and more than half of the group agrees."""
    counts = Counter(values.values())
    if len(counts) < 2:
        return []
    common, most = counts.most_common(1)[0]
    odd = [member for member, value in values.items() if value != common]
    return odd if _FEW * len(odd) <= len(values) and 2 * most > max(size or 0, len(values)) else []


# 2. absent


def _absent(waiting: Waiting) -> Finding | None:
    """Return the ranks whose own numbers show that they did not join, and that wait nowhere."""
    named: dict[int, str] = {}
    for group in waiting.groups.values():
        furthest = max((one.sequence or 0 for one in group.waits.values()), default=None)
        for member, one in group.positions.items() if furthest is not None and not group.is_mixed else ():
            joined = one.enqueued is None or furthest is None or one.enqueued >= furthest
            if not joined and isinstance(member, int) and member not in waiting.waits_in:
                named[member] = group.name
    if waiting.has_dumps:  # A dump contains all groups of a rank.
        named = {rank: name for rank, name in named.items() if waiting.groups[name].positions[rank].from_dump}
    certainty: Certainty | None = "confirmed" if waiting.has_dumps else _certainty(waiting, named)
    if not named or certainty is None:
        return None
    groups = Counter(named.values())
    return Finding("absent", certainty, tuple(sorted(named)), groups.most_common(1)[0][0])


def _certainty(waiting: Waiting, named: Mapping[int, str]) -> Certainty | None:
    """Return how sure it is that ranks wait in no group that their lines do not show; None if they may."""
    if waiting.has_subgroups:
        return "likely" if _is_root(waiting, set(named)) else None
    seen = len(waiting.waits_in) + len(named)
    if waiting.has_unknown or seen < (waiting.size or len(waiting.alive)) or _FEW * len(named) > seen:
        return None
    return "confirmed" if len(named) == 1 and seen == waiting.size else "likely"


def _is_root(waiting: Waiting, ranks: set[int], reported: str | None = None) -> bool:
    """Return True if one rank may be the one for which all others wait, directly or for ranks that do: all others wait,
    and it alone is missing in a group. A rank whose watchdog has not timed out yet prints as little. Groups with
    unknown members may contain any rank.

    reported: the group in which a report shows that it did not join.
    """
    waits = {name: group for name, group in waiting.groups.items() if group.waits}
    seen = len({*waiting.waits_in} | ranks)
    if len(ranks) != 1 or waiting.has_unknown or seen < (waiting.size or len(waiting.alive)):
        return False
    missing = {name: group.known_members - group.waits.keys() for name, group in waits.items()}
    is_open = {name: not group.size_is_known or len(group.known_members) < (group.size or 0)
               for name, group in waits.items()}  # fmt: skip
    if reported in missing:
        missing[reported] |= ranks
    explained: set[Member] = {*ranks, *(member for member, name in waiting.waits_in.items() if not name)}
    left = set(missing)
    while ready := {name for name in left if is_open[name] or missing[name] & explained}:
        explained.update(*(waits[name].waits for name in ready))
        left -= ready
    return explained >= waiting.waits_in.keys() and any(
        (missing[name] == ranks or (is_open[name] and len(group.waits) + 1 == group.size))
        and reported in (None, name) and _is_one_operation(group)
        for name, group in waits.items()
    )  # fmt: skip


# 3. behind


def _behind(waiting: Waiting) -> Finding | None:
    """Return the ranks that did not finish an operation that others finished."""
    slow: dict[int, str] = {}
    for group in _compared(waiting):
        if any(one.from_dump for one in group.positions.values()) and not group.disagreement:
            slow |= dict.fromkeys(_unfinished(group.positions), group.name)
    if slow:
        return Finding("behind", "confirmed", tuple(sorted(slow)), min(slow.values()))
    for group in _compared(waiting):
        numbers = _numbers(group)
        late, top = _unfinished(group.positions), max(numbers.values(), default=0)
        if not late:
            low = _minority(numbers, group.size)
            late = [one for one in low if isinstance(one, int) and numbers[one] < top]
            late = late if len(late) == len(low) else []
        if late:
            return Finding("behind", "likely", tuple(sorted(late)), group.name)
    return None


def _numbers(group: WaitGroup) -> dict[Member, int]:
    """Return the number of the operation in which each member waits, by its lines. It is of a known operation, as only
    collective operations are counted together."""
    waits = group.waits.items()
    return {
        member: one.sequence for member, one in waits
        if one.sequence is not None and one.operation and not one.from_dump
    }  # fmt: skip


def _unfinished(positions: Mapping[Member, Position]) -> list[int]:
    """Return the ranks that enqueued an operation for all, and did not finish it, while others finished it. Lines do
    not show what those finished: the root of an operation, usually rank 0 of a group, may finish before all others."""
    done = max((one.completed or 0 for one in positions.values()), default=0)
    slow = [
        (member, one.sequence) for member, one in positions.items()
        if one.sequence is not None and one.sequence <= done and needs_all(one.operation) and isinstance(member, int)
    ]  # fmt: skip
    finished = [one for one in positions.values() if any((one.completed or 0) >= number for _, number in slow)]
    is_sure = any(one.from_dump or one.group_rank for one in finished) or _FEW * len(slow) <= len(positions)
    found = [member for member, _ in slow if isinstance(member, int)]
    return found if is_sure and len(found) < len(positions) else []


def _compared(waiting: Waiting) -> Iterator[WaitGroup]:
    return (group for group in waiting.groups.values() if not group.is_mixed and not group.is_queued)


# 4. diverged


def _diverged(waiting: Waiting) -> Finding | None:
    """Return the ranks that run another operation than the others at the same number."""
    tie: Finding | None = None
    for group in _compared(waiting):
        for number, kinds in _kinds(group):
            if len(set(kinds.values())) < 2:
                continue
            odd = _minority(kinds, group.size) or _odd_of_two(waiting, group, number, kinds)
            ranks = tuple(sorted(one for one in odd if isinstance(one, int)))
            if ranks and len(ranks) == len(odd):
                return Finding("diverged", "confirmed" if len(kinds) > 2 else "likely", ranks, group.name)
            tie = tie or Finding("diverged", "unknown", (), group.name)
            break
        odd = _minority(_numbers(group), group.size)
        if odd and all(isinstance(one, int) for one in odd):
            return Finding("diverged", "likely", tuple(sorted(one for one in odd if isinstance(one, int))), group.name)
    return tie


def _kinds(group: WaitGroup) -> Iterable[tuple[int, dict[Member, object]]]:
    """Return the operations and sizes of members by number: of dumps, the first that differ; of lines, the waits."""
    if group.disagreement is not None:
        return [group.disagreement]
    at: defaultdict[int, dict[Member, object]] = defaultdict(dict)
    for member, one in group.waits.items():
        if one.operation and one.sequence is not None and not one.from_dump:
            at[one.sequence][member] = kind_of(one.operation, one.elements)
    return sorted(at.items())


def _odd_of_two(waiting: Waiting, group: WaitGroup, number: int, kinds: Mapping[Member, object]) -> list[Member]:
    """Return the odd one of two, if other groups of the same description agree on what the other one runs."""
    if group.size != 2 or len(kinds) != 2 or not group.about:
        return []
    others = [group.usual] * 2 if group.usual is not None else [
        kind
        for other in _compared(waiting) if other is not group and other.about == group.about
        for at, of_others in _kinds(other) if at == number
        for kind in of_others.values()
    ]  # fmt: skip
    if len(others) < 2 or len({*others}) != 1:
        return []
    odd = [member for member, kind in kinds.items() if kind != others[0]]
    return odd if len(odd) == 1 else []


def _crossed(waiting: Waiting) -> Finding | None:
    """Return the few members of two groups that wait in one of them, while most wait in the other one. Such ranks run
    another program: each operation of one order is finished before the next one."""
    whole = next((one for one in _compared(waiting) if one.about == DEFAULT_GROUP and one.size_is_known), None)
    named: dict[tuple[int, ...], str] = {}
    for group in _compared(waiting):
        inside = _printed(waiting, group)
        elsewhere = Counter(waiting.waits_in.get(rank) for rank in group.known_members - inside)
        for name in elsewhere.keys() | ({whole.name} if whole is not None else set()):
            other = waiting.groups.get(name or "")
            if (
                other is None
                or other is group
                or other.is_mixed
                or other.is_queued
                or not inside <= other.known_members
            ):
                continue
            outside = group.known_members & _printed(waiting, other)
            for few, (most, where) in (
                (inside, (max(len(outside), _least_outside(waiting, group, other)), other)),
                (outside, (len(inside), group)),
            ):
                if few and most >= 2 * len(few) and _is_one_operation(where) and 2 * most > (group.size or 0):
                    named[tuple(sorted(one for one in few if isinstance(one, int)))] = where.name
    if len(named) != 1:
        return None
    ((ranks, where_name),) = named.items()
    return Finding("diverged", "likely", ranks, where_name)


def _printed(waiting: Waiting, group: WaitGroup) -> set[Member]:
    """Return the members that wait in a group by lines of its watchdog: a dump signal also counts operations that are
    queued behind one of another group."""
    return {
        member for member, one in group.waits.items()
        if waiting.waits_in.get(member) == group.name and not one.is_signal
    }  # fmt: skip


def _least_outside(waiting: Waiting, group: WaitGroup, other: WaitGroup) -> int:
    """Return how many members of a group wait in the group of all ranks, at least: all ranks but a few do."""
    if other.about != DEFAULT_GROUP or waiting.size is None:
        return 0
    anywhere = sum(name == other.name for name in waiting.waits_in.values())
    return (group.size or 0) - (waiting.size - anywhere)


def _is_one_operation(group: WaitGroup) -> bool:
    """Return True if all wait in one operation of one size, which no member finishes before the others join it."""
    found = {(one.sequence, *kind_of(one.operation, one.elements)) for one in group.waits.values()}
    return len(found) == 1 and needs_all(next(iter(found))[1])


# 6. all joined


def _all_joined(waiting: Waiting) -> Finding | None:
    """Return a group of known size in which every member waits for the same operation, and none finished it."""
    for group in _compared(waiting):
        waits = group.waits
        kinds = {(one.sequence or 0, one.operation and kind_of(one.operation, one.elements)) for one in waits.values()}
        here = [member for member in waits if waiting.waits_in.get(member) == group.name]
        if len(kinds) != 1 or not group.size_is_known or len(here) < max(group.size or 0, 2):
            continue
        ((number, kind),) = kinds
        if kind and all(one.completed is None or one.completed < number for one in waits.values()):
            return Finding("all_joined", "confirmed", (), group.name)
    return None


def _only_one(waiting: Waiting) -> Finding | None:
    """Return the only rank of the job that does not wait, if its own line shows that it was alive and without a wait.
    A tie was found before."""
    left = [rank for rank in waiting.alive if rank not in waiting.waits_in]
    if len(left) != 1 or not isinstance(left[0], int) or waiting.size is None or waiting.has_unknown or waiting.missing:
        return None
    rank = left[0]
    if waiting.has_dumps or (waiting.has_subgroups and not _is_root(waiting, {rank})):
        return None
    named = [name for name, group in waiting.groups.items() if group.waits and rank in group.known_members]
    return Finding("absent", "likely", (rank,), named[0] if named else None)

"""Positions of ranks in process groups, from lines of the watchdog of PyTorch (docs/hangs.md).

`[Rank N]` in a line is the rank in its group. The global rank is `[rankN]:` before it, the rank in the name of the
file, or the prefix of a launcher that numbers all processes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from goodput_cli.events.capability import InputLine
from goodput_cli.events.evidence import quoted
from goodput_cli.events.text.log_lines import CollectedRule, pattern
from goodput_cli.vocabulary.when import NS_PER_MINUTE, NS_PER_MS

DEFAULT_GROUP = "default_pg"
LOCAL_GROUP = "PG "
"""Begin of the name of a group of which a line has only the number that its process gives it."""
_APART_NS = 5 * NS_PER_MINUTE
"""Lines of one wait are closer."""
MOST_RANKS = 65_536
"""Larger numbers are no ranks."""
_MOST = 1 << 62
"""Larger numbers are unknown: programs print -1 as an unsigned number."""
_NUMBER = r"-?\d{1,20}"
_HEAD = (
    r"\[(?:PG (?:ID )?(?P<pg>\d{1,9}) )?(?:PG GUID (?P<guid>[^\s(\]]{1,64})(?:\((?P<about>[^)\]]{0,200})\))? )?"
    r"Rank (?P<rank>\d{1,8})\]"
)
_WATCHDOG = pattern(
    rf"{_HEAD} (?:Process group watchdog thread terminated with exception: \[Rank \d{{1,8}}\] )?"
    rf"Watchdog caught collective operation timeout: Work\w+\((?:SeqNum=(?P<work>\d{{1,20}}), )?"
    rf"OpType=(?P<operation>\w{{1,64}})"
    rf"(?:.{{0,200}}?NumelIn=(?P<elements>\d{{1,20}})(?:, NumelOut=(?P<out>\d{{1,20}}))?)?"
    rf"(?:.{{0,200}}?Timeout\(ms\)=(?P<timeout>\d{{1,15}}))?.{{0,200}}?\) ran for (?P<waited>\d{{1,15}}) milliseconds"
)
_STATUS = pattern(
    rf"{_HEAD} .{{0,200}}?(?:detected by watchdog at work(?: sequence id)?|Timeout at NCCL work): (?P<work>\d{{1,20}})"
    rf".{{0,20}}?last enqueued(?: NCCL)? work: (?P<enqueued>{_NUMBER})"
    rf"(?:, last started(?: NCCL)? work: {_NUMBER})?(?:, last completed(?: NCCL)? work: (?P<completed>{_NUMBER}))?"
)
_SIGNAL = pattern(
    rf"{_HEAD} Received a dump signal.{{0,400}}?[Ll]ast enqueued(?: NCCL)? work: (?P<enqueued>{_NUMBER}), last "
    rf"completed(?: NCCL)? work: (?P<completed>{_NUMBER})"
)
_NEEDS_ALL = re.compile("all_?reduce|all_?gather|reduce_?scatter|barrier", re.IGNORECASE)
_ONE_SIZE = re.compile(rf"{_NEEDS_ALL.pattern}|^_?(?:broadcast|reduce)(?:_oop)?$", re.IGNORECASE)
_OF_PAIRS = ("SEND", "RECV", "RECVANYSOURCE", "COALESCED", "UNKNOWN")
_GATHERS, _SCATTERS = ("_ALLGATHER_BASE", "ALLGATHER"), ("_REDUCE_SCATTER_BASE", "REDUCE_SCATTER")
_SIZES = re.compile(r"(?<![\w-])([a-z-]{1,40}-parallel) size: ?(\d{1,7})(?![\d.])")
WATCHDOG, STATUS, SIGNAL, SIZES = "watchdog wait", "group status", "dump signal", "group sizes"
LINES = (
    CollectedRule(name=WATCHDOG, anchors=("Watchdog caught collective operation timeout",), begins=_WATCHDOG),
    CollectedRule(
        name=STATUS, anchors=("detected by watchdog at work", "Timeout at NCCL work: "), begins=_STATUS
    ),
    CollectedRule(name=SIGNAL, anchors=("Received a dump signal",), begins=_SIGNAL),
    CollectedRule(name=SIZES, anchors=("-parallel size: ",), begins=pattern(r"-parallel size: \d")),
)  # fmt: skip
_PATTERNS = {WATCHDOG: _WATCHDOG, STATUS: _STATUS, SIGNAL: _SIGNAL}
_RANK = re.compile(r"\[rank(\d{1,8})\]:")
_RANK_IN_TEXT = re.compile(rf"[> |\t]{{0,8}}{_RANK.pattern}")
"""Other prefixes before it, such as those of quotes, are left in the text."""
_ALL_PROCESSES = re.compile(r"(?:^|\s)(\d{1,8}): |\[\d+,(?:mpirank:)?(\d{1,8})(?:,[\w.-]+)?\]<std")
_OF_FILE = re.compile(r"(?:^|[/_.-])rank[-_]?(\d{1,8})(?=[._-][^/]*$|$)")


@dataclass(frozen=True)
class Position:
    """Progress of a rank in a process group."""

    job: str
    where: str
    """Location of the line, or of the dump."""
    time: int | None
    """ns since 1970 UTC."""
    rank: int | None
    """Global rank; None if unknown."""
    process: str
    """Name of the process, if the rank is unknown."""
    group: str | None
    """Identity of the group; None if the line names none."""
    about: str = ""
    """Description of the group; untrusted."""
    group_rank: int | None = None
    sequence: int | None = None
    """Number of the operation in which it waits; None if it does not wait."""
    operation: str = ""
    elements: int | None = None
    enqueued: int | None = None
    """Number of the last operation that its program passed to its device."""
    completed: int | None = None
    waited_ns: int | None = None
    timeout_ns: int | None = None
    is_signal: bool = False
    """True if it shows only that the process is alive, and its numbers in the default group."""
    from_dump: bool = False
    still_ns: int | None = None
    """Time from the last operation that any rank enqueued to the first dump; None if unknown."""
    phase: str = ""
    """Function of the program in which it waits; untrusted."""
    host: str = ""
    members: int | None = None
    """Number of members of the group, by the sizes of input and output; None if they do not show it."""
    quote: str = ""
    """The line without prefixes and secrets."""


@dataclass(frozen=True)
class GroupSize:
    """Number of members of all groups of one kind, as the program printed it."""

    job: str
    kind: str
    """Description of the groups, as `kind_of_group` writes it."""
    size: int


def sizes_in(lines: Iterable[InputLine]) -> set[GroupSize]:
    """Return the sizes of groups in lines such as `tensor-model-parallel size: 8`."""
    return {
        GroupSize(one.job, kind, int(size))
        for one in lines if one.rule == SIZES for kind, size in _SIZES.findall(one.text)
    }  # fmt: skip


def kind_of_group(about: str) -> str:
    """Return `tensor-model-parallel` for `TENSOR_MODEL_PARALLEL_GROUP`."""
    return about.lower().removesuffix("_group").replace("_", "-")


def needs_all(operation: str) -> bool:
    """Return True if no member can finish an operation before all members take part in it. Others may end early for
    some: a broadcast for its root, an all-to-all for ranks that receive nothing from the last one."""
    return _NEEDS_ALL.search(operation) is not None


def may_be_of_pairs(operation: str) -> bool:
    """Return True for an operation of two ranks, or of several kinds: numbers of different members differ."""
    return operation in _OF_PAIRS


def kind_of(operation: str, elements: int | None) -> tuple[str, int | None]:
    """Return what all members must agree on. The sizes of a gather, a scatter or an all-to-all may differ."""
    return operation, elements if _ONE_SIZE.search(operation) else None


def positions_in(lines: Iterable[InputLine]) -> list[Position]:
    """Return the positions in lines: those of one wait, from a watchdog line and a status line, are one."""
    found: dict[tuple[object, ...], Position] = {}
    for one in lines:
        if one.rule not in _PATTERNS:
            continue
        match = _PATTERNS[one.rule].search(one.text)
        new = None if match is None else _position(one, match)
        if new is None or max(new.rank or 0, new.group_rank or 0) >= MOST_RANKS:
            continue
        key: tuple[object, ...] = (new.job, new.rank, new.process, new.sequence, new.is_signal)
        before = found.get(key)
        if before is not None and is_far(before, new):  # In another attempt.
            key = *key, new.where
            before = None
        # A second group of the same process may wait for an operation of the same number.
        if before is not None and before.group is not None and new.group not in (None, before.group):
            found[*key, new.group] = new
        else:
            found[key] = new if before is None else _joined(before, new)
            if before is not None and new.operation and _kind(before) not in (_kind(new), ("", None)):
                # Two groups wait for operations of one number, and their lines do not name the group.
                found[key] = replace(found[key], operation="", elements=None, members=None)
    return list(found.values())


def is_far(one: Position, other: Position) -> bool:
    """Return True if the lines of two positions cannot be of one wait."""
    return one.time is not None and other.time is not None and abs(one.time - other.time) > _APART_NS


def _kind(one: Position) -> tuple[str, int | None]:
    return one.operation, one.elements


def _joined(one: Position, other: Position) -> Position:
    """Return a position with the facts of two lines."""
    unknown = {each.name: getattr(other, each.name) for each in fields(one) if getattr(one, each.name) in (None, "")}
    return replace(one, **unknown)


def global_rank(line: InputLine) -> int | None:
    """Return the global rank of the process that printed a line; None if neither prefixes nor the file name it."""
    own = _RANK_IN_TEXT.match(line.text)
    named = [own[1]] if own is not None else _RANK.findall(line.prefix)
    if named:
        return int(named[-1])
    numbered = _ALL_PROCESSES.search(line.prefix)
    if numbered is not None:
        return int(numbered[1] or numbered[2])
    of_file = _OF_FILE.search(line.source.replace("\\", "/"))
    return None if of_file is None else int(of_file[1])


def _position(line: InputLine, match: Any) -> Position:
    fields = match.groupdict()
    group, about = fields["guid"], fields["about"] or ""
    if group is None and fields["pg"] is not None:
        group = f"{LOCAL_GROUP}{fields['pg']}"
    inside = int(fields["rank"])
    is_default = about == DEFAULT_GROUP or (group == "0" and not about)
    rank = inside if is_default else global_rank(line)
    waited = _number(fields.get("waited"))
    timeout = _number(fields.get("timeout"))
    enqueued, completed = _number(fields.get("enqueued")), _number(fields.get("completed"))
    return Position(
        line.job, line.where, line.time, rank,
        process="" if rank is not None else f"{line.source} {line.stream} {inside}",
        group=group, about=about, group_rank=inside,
        sequence=_number(fields.get("work")), operation=fields.get("operation") or "",
        elements=_number(fields.get("elements")), members=_members(fields), enqueued=enqueued, completed=completed,
        waited_ns=None if waited is None else waited * NS_PER_MS,
        timeout_ns=None if timeout is None else timeout * NS_PER_MS,
        is_signal=line.rule == SIGNAL, quote=quoted(line.text),
    )  # fmt: skip


def _members(fields: dict[str, str | None]) -> int | None:
    """Return the number of members of a group: an all-gather puts the inputs of all together."""
    small, large = _number(fields.get("elements")), _number(fields.get("out"))
    if small is None or large is None or fields["operation"] not in (*_GATHERS, *_SCATTERS):
        return None
    if fields["operation"] in _SCATTERS:
        small, large = large, small
    return large // small if small and large > small and large % small == 0 else None


def _number(text: str | None) -> int | None:
    """Return a number; None for one that means unknown."""
    value = None if text is None else int(text)
    return value if value is not None and 0 <= value < _MOST else None

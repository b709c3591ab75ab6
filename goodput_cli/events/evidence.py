"""Observations: recognised lines about deaths, a table beside the events, as metrics are.

They begin no attempt, are no sign of life, name no job, and move no bound of the job: the ledger does not know them.
What they mean for a disruption is judged in `accounting/attempts/failure_cause.py` (docs/causes.md).

Words of a log as they are quoted: a line, without what acts on a terminal and without secrets (docs/causes.md).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from goodput_cli.events.signs import Cycle, Sign
from goodput_cli.events.text.stamps import Stamp
from goodput_cli.vocabulary.causes import CANCELLED, Role, group_of
from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.when import NS_PER_SECOND

Speaker = Literal["process", "launcher", "scheduler", "pod", "kernel"]
"""Who says it. `kernel` and `pod` speak of hosts and pods, also of those of other jobs."""
TOLERANCE_NS = 5 * NS_PER_SECOND
"""How far the clocks of two processes may differ."""
EARLIEST, LATEST = -(1 << 62), 1 << 62


@dataclass(frozen=True, slots=True)
class FailureEvidence:
    """One recognised line or block. None and "" are "not said"."""

    code: str
    """Of a cause; `peer_lost`; `unknown`."""
    role: Role
    text: str
    """The line as it may be quoted."""
    row: str
    """The name of the row that read it."""
    speaker: Speaker
    source: str
    """The file, or whatever else it was read from."""
    line: int
    """From 1; 0 for what has none."""
    lo: int | None
    """ns UTC: not earlier. None: nobody knows when."""
    hi: int | None
    """ns UTC: not later."""
    stamped: bool = False
    """Whether the line itself says when."""
    stream: str = ""
    """The prefix of the process that wrote it."""
    rank: int | None = None
    local_rank: int | None = None
    host: str = ""
    device: str = ""
    pid: int | None = None
    exit: int | None = None
    """As launchers write it: -9 is SIGKILL."""
    peer: str = ""
    suspects: tuple[int, ...] = ()
    """Ranks that were waited for."""
    waited_ns: int | None = None
    """How long a wait that ran out of time had lasted."""
    ranks: tuple[tuple[int, int], ...] = ()
    """(rank, line) of all that said the same, the first line of each."""
    hosts: tuple[str, ...] = ()
    count: int = 1
    """How many lines said the same."""
    last_line: int = 0
    unhandled: bool = False
    """Whether the interpreter printed it on its way out."""
    garbled: bool = False
    """Whether lines of several processes were mixed in it."""
    raised: bool = False
    """Whether it ends a traceback that no logger printed: as far as its form says, nobody caught it."""
    doubted: bool = False
    """Whether such a line leaves open that it was that: it is never more than likely."""
    beside: bool = False
    """Whether it was raised beside the main thread, where it does not end the process."""
    ends: bool = False
    """Whether nothing ordinary stands behind it in its file, or before the next start there."""
    ordinary: int | None = None
    """The first ordinary line of the same process behind it."""
    late: int | None = None
    """ns: the last stamped ordinary line behind it in its file, before the next start there."""
    first: bool = False
    """Whether an agent names it as the failure that it saw first."""
    before_steps: str = ""
    """The code that counts in an attempt without a step; "": the same."""
    process: str = ""
    """The name of the program, where a kernel or a launcher names it."""
    own_life: str = ""
    """The attempt that the path of its file names."""
    job: str = ""
    """The job that its entry of Cloud Logging names."""
    identity: str = ""
    """The allocation or pod that it is about."""
    by_exit: bool = False
    """Whether only the pid, program and time of a logged exit show that a kernel's line is of the job."""

    @property
    def of_host(self) -> bool:
        """Whether it is about a host, and no process said it."""
        return self.speaker in ("kernel", "pod")

    @property
    def where(self) -> str:
        """`file:line`."""
        return f"{self.source}:{self.line}" if self.line > 0 else self.source


@dataclass(frozen=True)
class EvidenceOfLog:
    """All observations of a log."""

    rows: tuple[FailureEvidence, ...] = ()
    starts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By source of text, the lines at which a process of the job started."""
    read: frozenset[str] = frozenset()
    """The sources of which the words were read: text of processes, schedulers and hosts."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """By source, how many observations were left out."""
    hosts_of_job: tuple[str, ...] = ()
    """Patterns of hosts on which somebody says that the job ran, in lower case."""
    unread_steps: Mapping[str, str] = field(default_factory=dict)
    """By job, `file:line` of the first line that looks as if it were about a step, where no rule reads any; "" for
    files of no job."""
    run_names: Mapping[str, str] = field(default_factory=dict)
    """By job that is called by the id of a run, the name that its user gave the run."""
    draft_refused: bool = False
    """Whether rules were looked for that read steps of the log, and none could be proven."""
    scheduled_alone: bool = False
    """Whether nothing but a scheduler's table tells of the job that was picked."""
    quotes: bool = True
    """Whether the words of lines may be shown; what they mean is judged either way."""
    signs: tuple[Sign, ...] = ()
    """Moments of recoveries, of all jobs; in order of time."""
    cycles: tuple[Cycle, ...] = ()
    """Of all jobs that NVRx launched; in order of time."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.read or self.signs or self.cycles)

    @property
    def listed(self) -> Sequence[FailureEvidence]:
        """What people and programs see: all but what only names hosts."""
        rows = [one for one in self.rows if one.row not in FACTS]
        return rows if self.quotes else [replace(one, text="") for one in rows]


ALLOCATED = "allocated"
"""The row of what lists all hosts of an allocation."""
FACTS = frozenset({"workers started", "nccl bootstrap", "closing signal", "force terminated", ALLOCATED})
"""Rows that only tell where processes ran, or when they were told to end."""
SIGNALS = frozenset({"death signal", "signal to stop"})
"""Rows of a signal that asks a process to stop, whose sender no line names."""
NO_EVIDENCE = EvidenceOfLog()


def is_request(one: FailureEvidence) -> bool:
    """Return True for a request to stop that comes from outside of the program."""
    if one.row in SIGNALS:
        return True
    asked = group_of(one.code) == "scheduler" or one.code == CANCELLED
    by_own_clock = one.speaker == "process" and one.code == "time_limit"
    return asked and one.role in ("root", "exit") and not by_own_clock


_FEW_SILENT, _KNOWN_RANKS, _HEARD = 4, 8, 0.9
LONGEST_QUOTE = 200
"""Characters of a quoted line."""
_TOLD_APART, _BEFORE_WORDS = 40, 40
"""Words are found by so many characters, and shown behind so many others."""
_LOOKED_AT = 4096
"""More than is shown: a secret is known by what stands behind it too."""
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")


def quoted(text: str, words: str = "") -> str:
    """A line of a log as it may be shown: at most 200 characters, those around some words of it, without controls, ANSI
    and bidi marks, and with `***` in the place of secrets."""
    text = _ANSI.sub("", text[:_LOOKED_AT])
    if not (text.isascii() and text.isprintable()):
        text = "".join(" " if char in "\t\n\r" else char for char in text if char in "\t\n\r" or _is_seen(char))
    text = " ".join(text.split())
    text = without_secrets(text)
    if len(text) <= LONGEST_QUOTE:
        return text
    at = text.find(" ".join(words.split())[:_TOLD_APART]) if words else 0
    if at + min(len(words), LONGEST_QUOTE // 2) < LONGEST_QUOTE:  # they stand in the begin of it
        return text[: LONGEST_QUOTE - 1] + "…"
    text = f"…{text[at - _BEFORE_WORDS :]}"
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"


def _is_seen(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind[0] != "C" and kind not in ("Zl", "Zp")


def same_rank(root: FailureEvidence, one: FailureEvidence) -> bool:
    if root.pid is not None and one.pid is not None:
        return root.pid == one.pid
    if root.rank is not None and one.rank is not None:
        return root.rank == one.rank
    return False


def precedes(one: FailureEvidence, other: FailureEvidence) -> bool:
    if one.source == other.source and one.stream == other.stream and one.rank is not None and one.rank == other.rank:
        return one.line < other.line
    return latest(one) + TOLERANCE_NS < earliest(other)


def earliest(one: FailureEvidence) -> int:
    return EARLIEST if one.lo is None else one.lo


def latest(one: FailureEvidence) -> int:
    return LATEST if one.hi is None else one.hi


def same_host(one: str, other: str) -> bool:
    """Whether two names are of one host: in lower case, in full or the first label. `node1` is not `node10`."""
    one, other = one.lower(), other.lower()
    if not one or not other:
        return False
    return one == other or (("." not in one or "." not in other) and one.split(".")[0] == other.split(".")[0])


def names_it_goes_by(host: str) -> tuple[tuple[str, str], ...]:
    """What an index files a host under, so that `names_it_is_asked_by` finds it where `same_host` holds: its whole
    name, and its first label."""
    host = host.lower()
    return (("name", host), ("label", host.split(".")[0])) if host else ()


def names_it_is_asked_by(host: str) -> tuple[tuple[str, str], ...]:
    """What hosts that `same_host` calls the same are filed under: one without a domain is found by its label, another
    by its whole name, and under its label where that is all that is named."""
    host = host.lower()
    if "." not in host:
        return (("label", host),) if host else ()
    return ("name", host), ("name", host.split(".")[0])


def may_be_same_host(one: str, other: str) -> bool:
    return not one or not other or same_host(one, other)


@dataclass(slots=True)
class UntimedEvidence:
    """An observation before its time is known, put together line by line: `FailureEvidence` has its fields."""

    code: str
    role: Role
    text: str
    row: str
    speaker: Speaker
    line: int
    stream: str
    stamp: Stamp | None = None
    before: Stamp | None = None
    behind: Stamp | None = None
    rank: int | None = None
    local_rank: int | None = None
    host: str = ""
    device: str = ""
    pid: int | None = None
    exit: int | None = None
    peer: str = ""
    suspects: list[int] = field(default_factory=list)
    waited_ns: int | None = None
    ranks: dict[int, int] = field(default_factory=dict)
    hosts: dict[str, int] = field(default_factory=dict)
    count: int = 1
    last_line: int = 0
    unhandled: bool = False
    garbled: bool = False
    raised: bool = False
    doubted: bool = False
    words: str = ""
    """What its row matched: quotes are cut round it."""
    beside: bool = False
    ends: bool = False
    ordinary: int | None = None
    late: Stamp | None = None
    first: bool = False
    before_steps: str = ""
    process: str = ""
    own_life: str = ""
    job: str = ""
    identity: str = ""
    entry: int = -1


CHANGED_WITH_TIME = frozenset({"suspects", "ranks", "hosts", "late"})
"""Fields of both that an observation has in another form. All others that have one name are the same."""


def suspects_of(echoes: Iterable[FailureEvidence], ranks: set[int]) -> tuple[int, ...]:
    """The ranks that all who waited wait for; none if they are more than a tenth of all."""
    named = [set(one.suspects) for one in echoes if one.suspects]
    shared = set.intersection(*named) if named else set()
    known = max(len(ranks), max((max(one) + 1 for one in named), default=0))
    if len(shared) > 1 and 10 * len(shared) > known:
        return ()
    return tuple(sorted(shared))


def silent_ranks(seen: Iterable[FailureEvidence]) -> tuple[int, ...]:
    """The few ranks that said nothing where nearly all others said something."""
    heard = ranks_of(seen)
    if not heard:
        return ()
    known = max(heard) + 1
    missing = known - len(heard)
    if known < _KNOWN_RANKS or len(heard) < _HEARD * known or not 0 < missing <= _FEW_SILENT:
        return ()
    return tuple(sorted(set(range(known)) - heard))


def ranks_of(seen: Iterable[FailureEvidence]) -> set[int]:
    """The ranks of which processes or launchers say something."""
    found = {rank for one in seen for rank, _ in one.ranks if one.speaker in ("process", "launcher")}
    return found | {one.rank for one in seen if one.rank is not None and one.speaker in ("process", "launcher")}


def ends_by_exception(one: FailureEvidence, going_on: tuple[str, int]) -> bool:
    """Whether its process ended with an exception that nobody caught: a traceback that no logger printed, behind which
    the process says nothing ordinary. going_on: the source and the line at which the next attempt begins, whose lines
    are of another process."""
    if not one.raised or one.beside or one.speaker != "process":
        return False
    source, line = going_on
    return one.ends or (one.source == source and one.line < line and (one.ordinary is None or one.ordinary >= line))

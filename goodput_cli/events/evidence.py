"""Observations: recognized lines about failures, a table next to the events, like metrics.

They begin no attempt, prove no activity, name no job, and move no bound of the job: the ledger does not use them.
`accounting/attempts/failure_cause.py` derives the cause of a disruption from them (docs/causes.md).

Quoted log lines contain no terminal control sequences and no secrets (docs/causes.md).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from goodput_cli.events.signs import Cycle, RecoveryEvent
from goodput_cli.events.text.line_timestamps import Timestamp
from goodput_cli.vocabulary.categories import CANCELLED, Role, group_of
from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.text import file_line
from goodput_cli.vocabulary.when import NS_PER_SECOND

Speaker = Literal["process", "launcher", "scheduler", "pod", "kernel"]
"""The kind of program that logged the line. `kernel` and `pod` lines are about hosts and pods, also those of other
jobs."""
TOLERANCE_NS = 5 * NS_PER_SECOND
"""Maximum difference of the clocks of two processes."""
EARLIEST, LATEST = -(1 << 62), 1 << 62


@dataclass(frozen=True, slots=True)
class FailureEvidence:
    """One recognized line or block. None and "" are "unknown"."""

    code: str
    """The code of a cause; `peer_lost`; `unknown`."""
    role: Role
    text: str
    """The line, safe to quote."""
    row: str
    """The name of the rule that matched it."""
    speaker: Speaker
    source: str
    """The file, or another source that it was read from."""
    line: int
    """From 1; 0 if it has no line."""
    lo: int | None
    """Earliest time, ns UTC. None: unknown time."""
    hi: int | None
    """Latest time, ns UTC."""
    stamped: bool = False
    """True if the line has its own timestamp."""
    stream: str = ""
    """The prefix of the process that wrote it."""
    rank: int | None = None
    local_rank: int | None = None
    host: str = ""
    device: str = ""
    pid: int | None = None
    exit: int | None = None
    """Exit code as launchers write it: -9 is SIGKILL."""
    peer: str = ""
    suspects: tuple[int, ...] = ()
    """Ranks that the process waited for."""
    waited_ns: int | None = None
    """Duration of a wait that timed out."""
    ranks: tuple[tuple[int, int], ...] = ()
    """(rank, line) of all processes that logged the same, the first line of each."""
    hosts: tuple[str, ...] = ()
    count: int = 1
    """Number of lines with the same content."""
    last_line: int = 0
    unhandled: bool = False
    """True if the interpreter printed it while exiting."""
    garbled: bool = False
    """True if lines of several processes were mixed in it."""
    raised: bool = False
    """True if it ends a traceback that no logger printed: its form suggests an uncaught exception."""
    doubted: bool = False
    """True if such a line leaves the cause open: it is likely at most."""
    beside: bool = False
    """True if it was raised outside the main thread, so that it does not end the process."""
    ends: bool = False
    """True if no ordinary line follows it in its file, or before the next start there."""
    ordinary: int | None = None
    """The first ordinary line of the same process after it."""
    late: int | None = None
    """ns: the last ordinary line with a timestamp after it in its file, before the next start there."""
    first: bool = False
    """True if an agent names it as the first failure that it detected."""
    before_steps: str = ""
    """The code that replaces it in an attempt without a step; "": the same code."""
    process: str = ""
    """The name of the program, if a kernel or a launcher logs it."""
    own_life: str = ""
    """The attempt in the path of its file."""
    job: str = ""
    """The job in its entry of Cloud Logging."""
    identity: str = ""
    """The allocation or pod that it is about."""
    by_exit: bool = False
    """True if only the pid, program and time of a logged exit link a kernel's line to the job."""

    @property
    def of_host(self) -> bool:
        """Return True if it is about a host and was not logged by a process."""
        return self.speaker in ("kernel", "pod")

    @property
    def where(self) -> str:
        """Return `file:line`."""
        return file_line(self.source, self.line) if self.line > 0 else self.source


@dataclass(frozen=True)
class EvidenceOfLog:
    """All observations of a log."""

    rows: tuple[FailureEvidence, ...] = ()
    starts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By source of text, the lines at which a process of the job started."""
    read: frozenset[str] = frozenset()
    """Sources whose text was read: processes, schedulers and hosts."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """By source, the number of observations that were left out."""
    hosts_of_job: tuple[str, ...] = ()
    """Patterns of hosts on which the job ran, from the user, in lower case."""
    unread_steps: Mapping[str, str] = field(default_factory=dict)
    """By job, `file:line` of the first line that looks like a step but matches no rule; "" for files without a job."""
    several_runs: Mapping[str, str] = field(default_factory=dict)
    """By job, the reason why one file seems to contain several runs."""
    run_names: Mapping[str, str] = field(default_factory=dict)
    """By job with a run id as its name, the name that its user gave the run."""
    draft_refused: bool = False
    """True if rules for step lines were inferred from the log, and none was accepted."""
    scheduled_alone: bool = False
    """True if the selected job appears only in a scheduler table."""
    quotes: bool = True
    """True if log lines may be quoted; causes are derived either way."""
    signs: tuple[RecoveryEvent, ...] = ()
    """Recovery events of all jobs, in order of time."""
    cycles: tuple[Cycle, ...] = ()
    """Cycles of all jobs that NVRx launched, in order of time."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.read or self.signs or self.cycles)

    @property
    def listed(self) -> Sequence[FailureEvidence]:
        """Return the observations shown to users: all but those that only name hosts."""
        rows = [one for one in self.rows if one.row not in FACTS]
        return rows if self.quotes else [replace(one, text="") for one in rows]


ALLOCATED = "allocated"
"""The rule for lists of all hosts of an allocation."""
FACTS = frozenset({"workers started", "nccl bootstrap", "closing signal", "force terminated", ALLOCATED})
"""Rules for lines that only show where processes ran, or when they were asked to end."""
SIGNALS = frozenset({"death signal", "signal to stop"})
"""Rules for a signal that asks a process to stop, without its sender."""
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
"""Maximum number of characters of a quoted line."""
_TOLD_APART, _BEFORE_WORDS = 40, 40
"""Number of characters by which matched words are located, and number of characters quoted before them."""
_LOOKED_AT = 4096
"""More than is shown: a secret is recognized by the text after it, too."""
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")


def quoted(text: str, words: str = "") -> str:
    """Return a log line that is safe to show: at most 200 characters around `words`, without control, ANSI and bidi
    characters, and with `***` in place of secrets."""
    text = _ANSI.sub("", text[:_LOOKED_AT])
    if not (text.isascii() and text.isprintable()):
        text = "".join(" " if char in "\t\n\r" else char for char in text if char in "\t\n\r" or _is_seen(char))
    text = " ".join(text.split())
    text = without_secrets(text)
    if len(text) <= LONGEST_QUOTE:
        return text
    at = text.find(" ".join(words.split())[:_TOLD_APART]) if words else 0
    if at + min(len(words), LONGEST_QUOTE // 2) < LONGEST_QUOTE:  # the words are at the start of it
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


def earliest(one: FailureEvidence) -> int:
    return EARLIEST if one.lo is None else one.lo


def latest(one: FailureEvidence) -> int:
    return LATEST if one.hi is None else one.hi


def same_host(one: str, other: str) -> bool:
    """Return True if two names belong to one host: in lower case, in full or the first label. `node1` is not
    `node10`."""
    one, other = one.lower(), other.lower()
    if not one or not other:
        return False
    return one == other or (("." not in one or "." not in other) and one.split(".")[0] == other.split(".")[0])


def names_it_goes_by(host: str) -> tuple[tuple[str, str], ...]:
    """Return the keys of a host in an index, so that `names_it_is_asked_by` finds it if `same_host` is true: its whole
    name, and its first label."""
    host = host.lower()
    return (("name", host), ("label", host.split(".")[0])) if host else ()


def names_it_is_asked_by(host: str) -> tuple[tuple[str, str], ...]:
    """Return the keys of all hosts that `same_host` considers equal: a name without a domain is found by its label,
    another one by its whole name, and by its label if only the label was logged."""
    host = host.lower()
    if "." not in host:
        return (("label", host),) if host else ()
    return ("name", host), ("name", host.split(".")[0])


def may_be_same_host(one: str, other: str) -> bool:
    return not one or not other or same_host(one, other)


@dataclass(slots=True)
class UntimedEvidence:
    """An observation before its time is known, built line by line. `FailureEvidence` documents its fields."""

    code: str
    role: Role
    text: str
    row: str
    speaker: Speaker
    line: int
    stream: str
    stamp: Timestamp | None = None
    before: Timestamp | None = None
    behind: Timestamp | None = None
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
    """The words that its rule matched: quotes are cut around them."""
    beside: bool = False
    ends: bool = False
    ordinary: int | None = None
    late: Timestamp | None = None
    first: bool = False
    before_steps: str = ""
    process: str = ""
    own_life: str = ""
    job: str = ""
    identity: str = ""
    entry: int = -1

    @property
    def may_be_death(self) -> bool:
        """Return True if a process died at this line, unless it went on: it exited, or an exception ended it."""
        has_ended = self.role == "exit" or (self.speaker == "process" and (self.unhandled or self.raised))
        return has_ended and not self.beside


@dataclass(frozen=True)
class DeathsAtEnd:
    """What a document shows of deaths if it ends where it is read so far."""

    seen: Sequence[UntimedEvidence]
    """Further evidence."""
    last: Sequence[UntimedEvidence]
    """Evidence that was returned before, and that nothing follows: it ends the document."""


CHANGED_WITH_TIME = frozenset({"suspects", "ranks", "hosts", "late"})
"""Fields that have another form in `FailureEvidence`. All other fields of the same name are equal."""


_OF_SERVICES = frozenset({"barrier", "tasks unhealthy"})
"""Rows of a service that knows which tasks did not come."""


def suspects_of(echoes: Iterable[FailureEvidence], ranks: set[int]) -> tuple[int, ...]:
    """Return the ranks that all waiting ranks wait for; none if they are more than a tenth of all, unless a
    coordination service lists them."""
    naming = [one for one in echoes if one.suspects]
    named = [set(one.suspects) for one in naming]
    shared = set.intersection(*named) if named else set()
    known = max(len(ranks), max((max(one) + 1 for one in named), default=0))
    if len(shared) > 1 and 10 * len(shared) > known and not all(one.row in _OF_SERVICES for one in naming):
        return ()
    return tuple(sorted(shared))


def silent_ranks(seen: Iterable[FailureEvidence]) -> tuple[int, ...]:
    """Return the few ranks without an observation if nearly all others have one."""
    heard = ranks_of(seen)
    if not heard:
        return ()
    known = max(heard) + 1
    missing = known - len(heard)
    if known < _KNOWN_RANKS or len(heard) < _HEARD * known or not 0 < missing <= _FEW_SILENT:
        return ()
    return tuple(sorted(set(range(known)) - heard))


def ranks_of(seen: Iterable[FailureEvidence]) -> set[int]:
    """Return the ranks with observations of processes or launchers."""
    found = {rank for one in seen for rank, _ in one.ranks if one.speaker in ("process", "launcher")}
    return found | {one.rank for one in seen if one.rank is not None and one.speaker in ("process", "launcher")}


_REPORTS_OF_DEATHS = frozenset({"fatal python error", "job of a shell", "message of a shell", "core dumped"})
"""Rules for lines that report the end of a process whatever follows."""


def ends_by_exception(one: FailureEvidence, going_on: tuple[str, int]) -> bool:
    """Return True if the process ended with an uncaught exception or a fatal signal.

    A traceback that no logger printed, or a report of its interpreter or shell, shows it, without an ordinary line of
    the process after it. going_on: the source and the line at which the next attempt begins; its lines belong to
    another process."""
    if one.row in _REPORTS_OF_DEATHS:
        return not one.beside and (one.ordinary is None or (one.source == going_on[0] and one.ordinary >= going_on[1]))
    if not one.raised or one.beside or one.speaker != "process":
        return False
    source, line = going_on
    return one.ends or (one.source == source and one.line < line and (one.ordinary is None or one.ordinary >= line))

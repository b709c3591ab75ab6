"""Read failure evidence from lines, from blocks of lines, and from the lines after them.

A text document passes only the lines with an anchor and those that a block asks for; a collector passes each entry. The
memory per source is bounded.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import NamedTuple

from goodput_cli.events.evidence import FACTS, Speaker, UntimedEvidence, quoted
from goodput_cli.events.text.blocks import (
    CAUSED,
    LONGEST_TRACEBACK,
    ROOT_CAUSE,
    AgentBlock,
    Traceback,
    begins_traceback,
    cause_of_exception,
    chains,
    exception_in,
    is_survivable,
)
from goodput_cli.events.text.causes import AGENT, CauseMatch, CauseRows, ranks_in
from goodput_cli.events.text.following_lines import FOLLOWED_BY, goes_on, is_survived, of_actor, of_tasks
from goodput_cli.events.text.line_timestamps import kernel_timestamp, read_or_none, strip_prefixes
from goodput_cli.events.text.observed_line import Line, abort_reason
from goodput_cli.vocabulary.categories import UNKNOWN_CAUSE, Role
from goodput_cli.vocabulary.when import NS_PER_MINUTE, NS_PER_MS

MOST = 5_000
"""Number of observations kept from the beginning of a source, and again from its end."""
_FOLLOWING = 1024
"""Maximum number of lines after an echo that may list tasks."""
_SILENT = 1 << 16
"""Number of lines after which an unfinished traceback of a silent stream is dropped."""
_ALIKE = 300
"""Number of characters by which lines are compared."""
_OPEN_MESSAGE = 6
"""Number of lines after an exception with an open message that may complete it."""
_CHAIN = 6
"""Maximum distance, in lines, of the line that chains two tracebacks."""
_MESSAGE = 40
"""Maximum number of lines in an exception's message, as the hook for unhandled exceptions prints it."""
_DEVICE_BEFORE = re.compile(r"NVRM: The NVIDIA GPU (?P<device>[0-9a-fA-F:.]+)")
_RANK = re.compile(r"\[rank(\d+)\]:")
_MPI_RANK = re.compile(r"\[\d+,(?:mpirank:)?(\d+)(?:,[\w.-]+)?\]<std(?:out|err)>")
_OF_HOOK = re.compile(r"\[rank\d+\]: ")
_LOCAL = re.compile(r"\[(?:default)?(\d+)\]:")
_LAUNCHER_HOST = re.compile(r"\[\w+@([\w.-]+)\]")
_HEADED = re.compile(r"-+(?P<what>Begin|End) global rank (?P<rank>\d{1,8}) STD(?:OUT|ERR)-+$")
"""Lines around the output of one process, as a launcher shows it after the job failed."""
_DIGITS = re.compile(r"\d+")
_STAMPED = re.compile(
    r"^(?:\^C){0,4}(?:\[[WIEFV]\d{3,4} [\d:.]+ \S+:\d+\] |[IWEF]\d{4} [\d:.]+ +\d+ \S+:\d+\] "
    r"|\[?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\]?,? (?:\S+ kernel: )?"
    r"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}\] |\[ *\d+\.\d+\] "
    r"|(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8} )?\S+ kernel: )(?:\[ *\d+\.\d+\] )?"
)
"""Prefix of a line: its timestamp and the program that writes the log."""
_SYSLOG = re.compile(
    r"(?:<\d+>)?(?:\S*T[\d:.,+Z-]+|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<host>[\w.-]+) [\w/().-]+(?:\[\d+\])?: "
)
OF_PATH = re.compile(r"(?:^|/)attempt_(?P<life>\d+)/(?P<local>\d{1,8})/[^/]*$")
_RANK_OF_PATH = re.compile(r"(?:^|[/_.-])rank[-_]?(?P<rank>\d+)(?=[._-][^/]*$|$)")


class _LastRaised(NamedTuple):
    """The last exception of a stream."""

    line: int
    of: UntimedEvidence | None
    """Evidence of it, or of the first exception in its chain; None: no evidence."""
    chains: str = ""
    """Words that chain it to the next exception; empty if not seen."""
    kind: str = ""
    frames: Sequence[str] = ()
    """Innermost frames of its traceback."""

    @property
    def is_vague(self) -> bool:
        """Return True if it shows only that something failed, or that a peer is gone."""
        return self.of is not None and (self.of.role == "echo" or self.of.code == "python_error")

    def is_extended_by(self, found: CauseMatch) -> bool:
        """Return True if a further line of its message adds to what is known."""
        if self.is_vague:
            return found.role in ("root", "echo")
        return self.of is not None and self.of.doubted and found.role == "root" and not found.likely


@dataclass(slots=True)
class _Following:
    """Lines after an observation that may add to it."""

    of: UntimedEvidence
    read: Callable[[UntimedEvidence, str], bool]
    """Reads a line; returns True if more lines may follow."""
    begun: int = 0
    """Number of the line before them."""
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Repeatable:
    """Evidence whose repetitions are only counted."""

    of: UntimedEvidence
    epoch: int
    cleared: int


class Observer:
    """Reads evidence from the lines of one source, in their order."""

    def __init__(self, rows: CauseRows, source: str = "") -> None:
        self._rows = rows
        self._tracebacks: dict[str, Traceback] = {}
        self._agents: dict[str, AgentBlock] = {}
        self._following: dict[str, _Following] = {}
        self._raised: dict[str, _LastRaised] = {}  # By stream.
        self._messages: dict[str, tuple[int, bool]] = {}
        """By stream: the last line that may continue the message of the last exception, and True if the hook for
        unhandled exceptions prints it."""
        self._folded: dict[tuple[object, ...], UntimedEvidence] = {}
        self._cleared = 0
        self._fresh: list[UntimedEvidence] = []
        self._given = 0
        self._last: deque[UntimedEvidence] = deque(maxlen=MOST)
        self.dropped = 0
        self.epoch = 0
        """Number of steps and starts so far; equal lines of different epochs are separate evidence."""
        path = OF_PATH.search(source)
        named = _RANK_OF_PATH.search(source)
        self._life = path["life"] if path else ""
        self._local = int(path["local"]) if path and len(path["local"]) < 9 else None
        self._rank = int(named["rank"]) if named and len(named["rank"]) < 9 else None
        self._watchdog: UntimedEvidence | None = None
        self._shown: tuple[int, int] | None = None
        """Rank of the process whose output the launcher shows, and the epoch in which that began."""
        self._hosts: set[str] = set()
        """Hosts that rows named: only these are recognized in prefixes of lines."""

    @property
    def of_one_process(self) -> bool:
        """Return True if the path of the source names the process that writes it."""
        return self._local is not None or self._rank is not None

    @property
    def wants_more(self) -> bool:
        """Return True if the next lines may belong to the last one."""
        return bool(self._tracebacks or self._agents or self._following or self._messages)

    def take(self, line: Line, back: Callable[[int], Sequence[str]]) -> tuple[UntimedEvidence | None, bool]:
        """Read a line. Return its evidence and True if it is part of any.

        back: returns the last n lines before it.
        """
        follow = self._following.get(line.stream)
        if follow is not None:
            follow.seen += 1
            more = follow.read(follow.of, line.text)
            if not more or follow.seen >= _FOLLOWING:
                del self._following[line.stream]
            if more:
                return None, True
        self._give_up(line.number)
        return self._take(line, back)

    def _take(self, line: Line, back: Callable[[int], Sequence[str]]) -> tuple[UntimedEvidence | None, bool]:
        """Read a line that does not continue earlier evidence."""
        headed = _HEADED.match(line.text)
        if headed is not None:
            self._shown = (int(headed["rank"]), self.epoch) if headed["what"] == "Begin" else None
            return None, True
        agent = self._agents.get(line.stream)
        if line.stream not in self._tracebacks and begins_traceback(line.text):
            self._begin(line, agent is not None, back(2))
            return None, True
        block = self._tracebacks.get(line.stream)
        if block is not None:
            return self._in_traceback(block, line, agent)
        if agent is not None and self._in_agent(agent, line):
            return None, True
        if AGENT in line.text or ROOT_CAUSE in line.text:
            self._agents[line.stream] = AgentBlock(line.stream, first=ROOT_CAUSE in line.text)
            return None, True
        self._chain(line)
        of_message = self._continues_message(line)
        found = self._rows.read(line.text)
        if found is None or found.role == "exit":
            found = self._match_words(line, of_message) or found
        if found is None:
            return None, of_message
        if found.role in ("root", "exit") and is_survived(line.text, found):
            found = replace(found, role="context")
        if of_message and self._raised[line.stream].is_extended_by(found):
            self._replace_cause(line, self._raised[line.stream], found, line.text)
            return None, True
        return self._add_match(line, found, back), True

    def repeatable(self, seen: UntimedEvidence | None) -> Repeatable | None:
        """Return the evidence of the last line if its repetitions need only be counted, otherwise None."""
        return None if seen is None or self.wants_more else Repeatable(seen, self.epoch, self._cleared)

    def count_repetition(self, of: Repeatable | None, number: int) -> bool:
        """Count a repeated line; return False if it has to be read instead."""
        if of is None or self.wants_more or (of.epoch, of.cleared) != (self.epoch, self._cleared):
            return False
        if of.of.ordinary is not None:  # Its process continued in between.
            return False
        of.of.count += 1
        of.of.last_line = number
        if of.of.row == _WATCHDOG:
            self._watchdog = of.of
        return True

    def _give_up(self, number: int) -> None:
        """Stop waiting for lines of streams that are silent."""
        for stream, follow in list(self._following.items())[:1]:
            if number - follow.begun > _FOLLOWING:
                del self._following[stream]
        for stream, block in list(self._tracebacks.items())[:1]:
            if number - block.line > _SILENT:
                del self._tracebacks[stream]
        for stream, (last, _) in list(self._messages.items())[:1]:
            if number > last:
                del self._messages[stream]

    def _continues_message(self, line: Line) -> bool:
        """Return True if a line continues the message of an exception: the hook printed it, or the first line announces
        more."""
        last, by_hook = self._messages.get(line.stream, (-1, False))
        ours = line.number <= last and line.stamp is None and (not by_hook or bool(_OF_HOOK.search(line.raw)))
        of_message = ours and not goes_on(line.text)
        if last >= 0 and not of_message:
            del self._messages[line.stream]
        return of_message

    def _match_words(self, line: Line, of_message: bool) -> CauseMatch | None:
        """Match rows of exceptions with a line that continues a vague message or contains the reason for an abort."""
        last = self._raised.get(line.stream)
        if of_message and last is not None and last.is_vague:
            kind, what = exception_in(line.text.strip()) or (last.kind, line.text.strip())
            return self._rows.read_exception(f"{kind}: {what}", last.frames)
        why = abort_reason(line.text)
        found = self._rows.read_exception(f"RuntimeError: {why}", ()) if why else None
        meaning = cause_of_exception("RuntimeError", why, []) if why and found is None else None
        if meaning is not None and meaning.role == "echo":  # It aborts because a peer is gone.
            return CauseMatch(meaning.row, meaning.code, meaning.role, "process", {}, before_steps=meaning.before_steps)
        return None if found is None else replace(found, at=0)

    def drop_message(self, stream: str) -> None:
        """Ignore prefixes of the hook in a stream that writes all of its lines with them."""
        self._messages.pop(stream, None)

    def at_end(self) -> list[UntimedEvidence]:
        """Return the evidence that is left if the source ends here, without a change."""
        if not self._agents:
            return list(self._last)
        copy = deepcopy(self, {id(self._rows): self._rows})
        copy.finish()
        return copy.fresh(end=True)

    def finish(self) -> None:
        """Close all open blocks at the end of the source."""
        for stream in list(self._agents):
            self._close(stream)
        self._tracebacks.clear()
        self._following.clear()
        self._messages.clear()

    def fresh(self, *, end: bool = False) -> list[UntimedEvidence]:
        """Return the evidence since the last call. end: include the last evidence of a source that exceeds the
        limit."""
        found, self._fresh = self._fresh, []
        room = max(0, MOST - self._given)
        for one in found[room:]:
            self.dropped += len(self._last) == self._last.maxlen
            self._last.append(one)
        self._given += len(found[:room])
        return [*found[:room], *self._last] if end else found[:room]

    def _begin(self, line: Line, nested: bool, before: Sequence[str]) -> None:
        block = Traceback.begun(line.text, line.raw, line.number, nested)
        block.beside = is_survivable(
            one.text for one in (Line.of(raw, 0) for raw in before) if one.stream == line.stream
        )
        last = self._raised.get(line.stream)
        if last is not None and last.chains and line.number - last.line <= 2 * _CHAIN:
            block.chained, block.caused = True, last.chains == CAUSED and last.is_vague
        self._tracebacks[line.stream] = block

    def _chain(self, line: Line) -> None:
        last = self._raised.get(line.stream)
        if last is not None and line.number - last.line <= _CHAIN and (how := chains(line.text)):
            self._raised[line.stream] = last._replace(line=line.number, chains=how)

    def _in_traceback(
        self, block: Traceback, line: Line, agent: AgentBlock | None
    ) -> tuple[UntimedEvidence | None, bool]:
        if agent is not None and not line.text.startswith("  "):  # The block continues without the traceback.
            del self._tracebacks[line.stream]
            return (None, True) if self._in_agent(agent, line) else self.take(line, lambda _: ())
        exception = block.take(line.text)
        if exception is None:
            # These are frames of something else.
            if block.headless and line.text.strip() and not line.text[0].isspace():
                del self._tracebacks[line.stream]
                return self._take(line, lambda _: ())
            if block.seen >= LONGEST_TRACEBACK:
                del self._tracebacks[line.stream]
            return self._read_inside_traceback(block, line)
        del self._tracebacks[line.stream]
        if exception[0].endswith(AGENT):
            self._agents[line.stream] = AgentBlock(line.stream)
            return None, True
        one = self._exception(line, block, *exception)
        before = self._raised.get(line.stream)
        of = before.of if block.chained and before is not None else one
        self._raised[line.stream] = _LastRaised(line.number, of, kind=exception[0], frames=block.frame_texts)
        if one is not None and one.unhandled:
            self._messages[line.stream] = (line.number + _MESSAGE, True)
        elif one is not None and exception[1].strip()[-1:] in ("", ":", "(", "[", "{", ","):
            self._messages[line.stream] = (line.number + _OPEN_MESSAGE, False)
        follow = self._chain_reader(line.stream, line.number, FOLLOWED_BY.get(one.row) if one is not None else None)
        self._following[line.stream] = _Following(one or _NO_EVIDENCE, follow, line.number)
        return one, True

    def _chain_reader(
        self, stream: str, number: int, adds: Callable[[UntimedEvidence, str], bool] | None
    ) -> Callable[[UntimedEvidence, str], bool]:
        """Return a reader for the lines after an exception: additions to it, or a further exception in its chain."""

        def read(of: UntimedEvidence, text: str) -> bool:
            if adds is not None and adds(of, text):
                return True
            if how := chains(text):
                self._raised[stream] = self._raised[stream]._replace(line=number + _CHAIN, chains=how)
            return not text.strip()

        return read

    def _read_inside_traceback(self, block: Traceback, line: Line) -> tuple[UntimedEvidence | None, bool]:
        """Read a line of another program inside a traceback."""
        text = block.without_prefix(line.text)
        found = self._rows.read(text) if text and not text[0].isspace() else None
        return None if found is None else self._add_match(line, found, lambda _: ()), True

    def _exception(self, line: Line, block: Traceback, kind: str, what: str) -> UntimedEvidence | None:
        text = block.without_prefix(line.text).strip()
        found = self._rows.read(text)
        if found is None and (plain := exception_in(text)) is not None:
            found = self._rows.read(f"{plain[0]}: {plain[1]}")
        meaning = cause_of_exception(kind, what, block.frames)
        if meaning is not None and (found is None or found.role == "exit"):
            found = self._rows.read_exception(f"{kind}: {what}", block.frame_texts, meaning.is_vague) or found
        if block.chained:
            if block.caused and found is not None and found.role == "root":
                self._replace_cause(line, self._raised[line.stream], found, text)
            return None
        if found is not None and found.row not in FACTS and (meaning is None or not meaning.by_frames):
            one = self._match_evidence(line, found, text)
        elif meaning is not None:
            one = self._new_evidence(line, meaning.code, meaning.role, text, meaning.row)
            one.before_steps = meaning.before_steps
        else:
            return None
        of_host = block.prefix.removesuffix(": ") if block.prefix.endswith(": ") else ""
        of_host = of_host if of_host in self._hosts else ""
        one.host, one.pid = one.host or block.host or of_host, one.pid or block.pid
        one.rank = one.rank if block.rank is None else block.rank
        one.garbled, one.beside = block.garbled, block.beside
        one.doubted |= block.headless and not block.unhandled
        one.raised = (not block.prefix or bool(of_host)) and not block.beside
        one.unhandled = block.unhandled
        agent = self._agents.get(line.stream)
        if agent is not None and agent.entry is not None:
            entry = agent.entry
            one.rank, one.local_rank, one.host, one.pid = entry.rank, entry.local_rank, entry.host, entry.pid
            one.unhandled = True
        return self._fold(one)

    def _replace_cause(self, line: Line, last: _LastRaised, found: CauseMatch, text: str) -> None:
        """Replace the cause of a vague exception with that of a further line of its message."""
        assert last.of is not None
        one, more = last.of, self._match_evidence(line, found, text)
        one.code, one.role, one.row, one.before_steps = more.code, more.role, more.row, more.before_steps
        one.doubted, one.text = more.doubted, quoted(text, more.words)
        one.host, one.device = one.host or more.host, one.device or more.device
        one.rank = more.rank if one.rank is None else one.rank
        one.suspects += [rank for rank in more.suspects if rank not in one.suspects]

    def _new_evidence(
        self, line: Line, code: str, role: Role, text: str, row: str, speaker: Speaker = "process"
    ) -> UntimedEvidence:
        one = UntimedEvidence(code, role, text.strip(), row, speaker, line.number, line.stream, line.stamp)
        one.last_line = line.number
        one.own_life, one.entry, one.job = self._life, line.entry, line.job
        one.host, one.pid = line.host, line.pid
        rank = _RANK.search(line.raw) or _MPI_RANK.match(line.raw)
        local = _LOCAL.search(line.raw)
        shown = self._rank if self._shown is None or self._shown[1] != self.epoch else self._shown[0]
        one.rank = int(rank[1]) if rank and len(rank[1]) < 9 else shown
        one.local_rank = int(local[1]) if local and rank is None and len(local[1]) < 9 else self._local
        return one

    def _add_match(self, line: Line, found: CauseMatch, back: Callable[[int], Sequence[str]]) -> UntimedEvidence | None:
        one = self._match_evidence(line, found, line.text)
        if found.row == "desync" and self._watchdog is not None and line.number - self._watchdog.last_line <= 20:
            return None  # Its ranks are ranks in a group; see `events/hangs/reports.py`.
        if found.row == "gpu off the bus" and not one.device:
            named = next((at for at in map(_DEVICE_BEFORE.search, reversed(back(3))) if at), None)
            one.device = named["device"] if named else ""
        if found.row == "ray actor":
            of_actor(one, back(12))
        kept = self._fold(one)
        read = FOLLOWED_BY.get(found.row) or (of_tasks if "tasks are unhealthy" in line.text else None)
        if read is not None and not (found.row == "mpirun" and kept.exit is not None):
            self._following[line.stream] = _Following(kept, read, line.number)
        if found.row == _WATCHDOG:
            self._watchdog = kept
        return kept

    def _match_evidence(self, line: Line, found: CauseMatch, text: str) -> UntimedEvidence:
        one = self._new_evidence(line, found.code, found.role, text, found.row, found.speaker)
        fields = found.fields
        if "rank" in fields and not (found.row in _OF_GROUPS and (one.rank is not None or _GROUP.search(text))):
            one.rank = found.number("rank")
        one.local_rank = found.number("local_rank") if "local_rank" in fields else one.local_rank
        one.device = fields.get("device", "")
        one.pid = found.number("pid") if "pid" in fields else one.pid
        one.doubted, one.words, one.before_steps = found.likely, found.words, found.before_steps
        one.exit = found.number("exit") if found.number("signal") is None else -(found.number("signal") or 0)
        one.peer = fields.get("peer", "")
        one.process = fields.get("process", "")
        suspect = found.number("suspect")
        one.suspects = [suspect] if suspect is not None else list(ranks_in(fields.get("suspects", "")))
        waited = found.number("waited")
        one.waited_ns = None if waited is None else waited * NS_PER_MS
        for rank in ranks_in(fields.get("ranks", "")):
            one.ranks[rank] = line.number
            one.rank = rank if one.rank is None else one.rank
        one.identity = fields.get("allocation", "").partition(".")[0]
        launcher = _LAUNCHER_HOST.search(line.raw)
        one.host = fields.get("host", "") or (launcher[1] if launcher else "") or one.host
        if one.host and len(self._hosts) < _MOST_RANKS:
            self._hosts.add(one.host)
        if "time" in fields:
            one.stamp = read_or_none(fields["time"]) or one.stamp
        if found.speaker == "kernel":
            plain = strip_prefixes(line.raw).text if line.collected is None else line.text
            syslog = _SYSLOG.match(line.raw) or _SYSLOG.match(plain)
            one.host = one.host or (syslog["host"] if syslog and syslog["host"] != "kernel" else "")
            one.stamp = one.stamp or kernel_timestamp(line.raw)
            one.rank = one.local_rank = None
        return one

    def _in_agent(self, agent: AgentBlock, line: Line) -> bool:
        belongs = agent.take(line.text, line.number)
        if agent.over or (not belongs and (agent.failures or agent.seen > 8)):
            self._close(line.stream)
        return belongs

    def _close(self, stream: str) -> None:
        for one in self._agents.pop(stream).failures_with_causes():
            one.own_life = self._life
            self._fold(one)

    def _fold(self, one: UntimedEvidence) -> UntimedEvidence:
        """Return an observation, or the equal one since the last step, which then counts one more.

        Rank, host and process must match too, except for echoes: a thousand waiting ranks are one observation.
        """
        whose: tuple[object, ...] = () if one.role == "echo" else (one.rank, one.host, one.pid, one.stream)
        alike = _DIGITS.sub("0", one.text[:_ALIKE])
        # Kernel logs have no steps that would separate repetitions.
        if one.speaker == "kernel" and one.stamp is not None:
            whose = (*whose, one.stamp.ns // NS_PER_MINUTE)
        key = (one.row, one.code, one.role, alike, one.job, self.epoch, *whose)
        known = self._folded.get(key)
        if known is None or known.ordinary is not None:  # Its process continued in between, so this is a new failure.
            one.text = quoted(_STAMPED.sub("", one.text, count=1), one.words)
            if len(self._folded) > 4 * MOST:
                self._folded.clear()
                self._cleared += 1
            self._folded[key] = known = one
            self._fresh.append(one)
        else:
            known.count += 1
            known.last_line = one.line
            known.unhandled |= one.unhandled
            known.suspects += [rank for rank in one.suspects if rank not in known.suspects]
        if one.rank is not None and len(known.ranks) < _MOST_RANKS:
            known.ranks.setdefault(one.rank, one.line)
        if one.host and len(known.hosts) < _MOST_RANKS:
            known.hosts.setdefault(one.host, one.line)
        return known


_WATCHDOG = "watchdog"
_OF_GROUPS = (_WATCHDOG, "watchdog exception")
"""Rows whose rank is a rank in a process group: `[rankN]:` before the line is the rank of the job."""
_GROUP = re.compile(r"PG GUID (?!0\b)\S")
_MOST_RANKS = 65_536
_NO_EVIDENCE = UntimedEvidence(UNKNOWN_CAUSE, "context", "", "", "process", 0, "")

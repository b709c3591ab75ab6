"""Convert blocks of text to log lines, without reading lines that contain no literal of a rule.

One pass of a deterministic automaton (RE2) finds the literals of all rules; NumPy finds possible times of day. Between
two events, only the first and the last timestamp of each stream are read: they show how long its process was alive, and
bound the times of untimed lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple
from zlib import crc32

import numpy as np

from goodput_cli.arrays import I64, distinct, merged
from goodput_cli.events.evidence import DeathsAtEnd
from goodput_cli.events.formats.base import ParsedPart, without_records
from goodput_cli.events.json_documents import json_in
from goodput_cli.events.signs import UntimedRecoveryEvent
from goodput_cli.events.text.bar_columns import BarFinder, States
from goodput_cli.events.text.calm_bars import CalmBars
from goodput_cli.events.text.collector import TextPart
from goodput_cli.events.text.evidence_lines import BEGINS, DocumentObserver, LineKind, Storms, may_contain_evidence
from goodput_cli.events.text.interleaved_runs import REMEMBERED, Interleaved, InterleavedRunDetector, LineRun, loss_in
from goodput_cli.events.text.line_timestamps import (
    PlainLine,
    TimestampError,
    find_timestamp,
    is_kernel_log,
    strip_prefixes,
    timestamp_or_none,
)
from goodput_cli.events.text.lines import LIKE_A_STEP, LONGEST, OTHER_STEPS, Hit, LineRules, Lines, follows_frame
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine, ParsedEvent, asked_of, linear, timed
from goodput_cli.events.text.observed_line import LineCollector
from goodput_cli.events.text.programs.progress_bars import NAME, counted_bar, counted_step, thinned
from goodput_cli.events.text.sign_lines import signs_in
from goodput_cli.events.text.step_columns import StepFinder, StepRecords
from goodput_cli.events.text.stretches import EDGE, Inner, OtherCounters, inner_records, stretch_of
from goodput_cli.events.text.templates import LineReader, ReadLine
from goodput_cli.sources.base import RawBatch, Record

_BEGIN_OR_END = ENDS | {EventType.START, EventType.RESUME, EventType.RESTORE}
_NUMBERED = re.compile(
    r"-[a-z0-9]{5}(?=/|$)|\d+|(?<![a-z])(?:master|worker|chief|launcher|leader|head|node|host)s?(?![a-z])"
)
"""Parts in which the names of pods and containers of one job differ."""
_FOLLOWED = 64
"""Maximum number of streams and bars that are followed."""
_LOSSES = 16
"""Number of step lines whose loss is read, to distinguish runs started together from ranks of one."""
SNIFFED = 1 << 16
"""Number of bytes that decide if a document is text."""
_OBJECT = re.compile(rb"\s*(?:\{(?!')|\[\s*(?:\{|\]|\Z))")
_PREFIXED, _NAMED = 128, 64
"""Numbers of characters that contain the prefixes, and that distinguish those before a date."""
_SHAPES = 8
"""Number of kinds of lines with an unreadable timestamp between two events that do not hide a readable one."""
_LONGEST_COMPARED = 256
_CODE = b"    "
"""Indentation of code in a traceback."""
_DIGITS = re.compile(r"\d+")


@dataclass
class _Content:
    """Content of the lines of a block, by index of the line."""

    block: Lines
    first_line: int
    """Number of its first line in the document."""
    placed: list[tuple[int, LogLine]] = field(default_factory=list)
    said: dict[int, Sequence[ParsedEvent]] = field(default_factory=dict)
    bad: list[tuple[int, str]] = field(default_factory=list)
    """Number and error of invalid lines."""
    meant: list[int] = field(default_factory=list)
    """Lines that match a rule, ascending."""
    worth: list[int] = field(default_factory=list)
    """Lines that may report a death."""
    signs: list[UntimedRecoveryEvent] = field(default_factory=list)
    kinds: Mapping[int, LineKind] = field(default_factory=dict)
    is_compared: bool = False
    """True if its lines were compared by `kinds`."""
    losses: dict[int, float] = field(default_factory=dict)
    bars: CalmBars = field(default_factory=CalmBars)


class _Skipped(NamedTuple):
    """The inner records of a stretch."""

    records: StepRecords
    inner: Inner
    lines: I64
    """Lines of the block."""


class _Hits(NamedTuple):
    """The lines of a block on which rules are tried."""

    lines: I64
    """Without the inner records of stretches."""
    skipped: Mapping[int, _Skipped]
    """The inner records of each stretch, by the line before them."""
    states: Sequence[States]
    """States of bars in a row, in order of lines."""


class TextLines:
    """Reads a document of text (see `DocumentReader`)."""

    by_line = True
    reads_columns = True
    """True to read consecutive step records as columns. False only in tests."""

    def __init__(self, rules: LineRules, source: str = "") -> None:
        self._rules = rules
        self._asked = (*rules.rules, *rules.signs)
        self._reader = LineReader(rules)
        self._begin: tuple[int, PlainLine] | None = (
            None  # The first line of the block's last line with carriage returns.
        )
        self._last = b""  # The last line of the block before.
        self._observer = DocumentObserver(rules.causes, source)
        self._collector = LineCollector(rules.collected)
        self._storms = Storms(rules)
        self._worth = 0  # Number of lines read for evidence so far.
        self._by_host = False
        self._unread: dict[int, int] | None = {}  # Lines that look like steps; None once a rule reads a step.
        self._others = OtherCounters()
        self._lost = 0  # Number of step lines read for their loss.
        self._turns: dict[
            tuple[object, ...], InterleavedRunDetector
        ] = {}  # Writers of steps, by format, stream and bar.
        self._groups: dict[str, str] = {}  # The first of the streams whose names differ only in numbers.
        self._interleaved: Interleaved | None = None  # Result of streams that are no longer followed.
        self._steps = StepFinder(rules, self._reader) if self.reads_columns else None
        self._drawn = BarFinder(rules, self._reader) if self.reads_columns else None

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Return the content of the next lines."""
        data = batch.data.replace(b"\r\n", b"\n") if b"\r" in batch.data else batch.data
        block = Lines(data)
        self._begin = None
        read = _Content(block, batch.first_line)
        stamped = block.stamped()
        hits = self._hits(block, stamped[0])
        self._read_hits(read, hits)
        read.placed += self._clocks(block, stamped, np.array(read.meant, dtype=np.int64), batch.first_line)
        log_lines = [log_line for _, log_line in thinned(sorted(read.placed, key=itemgetter(0)))]
        unread = self._unread_steps(block, batch.first_line, read.said)
        others = self._others.feed(block, batch.first_line, read.said, read.meant)
        records, lines = _objects(block, batch.first_line)
        meant = len(distinct(np.sort(block.number[read.meant]))) if block.has_returns else len(read.meant)
        noise = block.count - meant - len(records)
        if read.worth or not self._observer.is_idle:
            for hit in block.hits(np.array(read.bars.skipped, dtype=np.int64)):
                self._read_skipped(read, hit)
        seen = self._observer.feed(block, batch.first_line, read.worth, read.said, stamped[0], read.kinds)
        if batch.first_line == 1:
            self._by_host = is_kernel_log(data[:SNIFFED].decode(errors="replace"))
        writers = (turns.found() for turns in self._turns.values())
        interleaved = self._interleaved or next((one for one in writers if one is not None), None)
        self._last = block.bytes_of(len(block) - 1, LONGEST) if len(block) else self._last
        part = TextPart(log_lines, read.bad, noise, batch.modified_ns, seen=seen, by_host=self._by_host,
                        losses=read.losses, unread_steps=unread, other_steps=others, signs=read.signs, blocks=1,
                        interleaved=interleaved,
                        collected=self._collector.feed(block, batch.first_line, hits.lines))  # fmt: skip
        return ParsedPart(records, np.array(lines, dtype=np.int64), text=part)

    def _hits(self, block: Lines, stamped: I64) -> _Hits:
        """Return the lines of a block on which rules are tried."""
        steps = [] if self._steps is None else self._steps.find(block)
        drawn = None if self._drawn is None else self._drawn.find(block)
        known = [*(one.lines[one.columns.good] for one in steps), *([] if drawn is None else [drawn.lines])]
        others = merged(*known) if known else None
        hits = block.short() if self._rules.reads_all else block.found(self._rules.anchors, others)
        if self._steps is not None:
            steps += self._steps.find_widened(block, hits if others is None else np.setdiff1d(hits, others))
        records = None if self._steps is None else self._steps.joined(steps)
        if others is not None:
            hits = merged(hits, others)
        skipped: dict[int, _Skipped] = {}
        kept = np.ones(len(hits), dtype=np.bool_)
        edge = EDGE + max(_LOSSES - self._lost, 0)
        for inner in [] if records is None else inner_records(records, hits, stamped, edge):
            assert records is not None
            lines = records.at[inner.begin : inner.end]
            begin = int(np.searchsorted(hits, lines[0]))
            kept[begin : begin + len(lines)] = False
            skipped[int(hits[begin - 1])] = _Skipped(records, inner, lines)
        return _Hits(hits[kept], skipped, [] if drawn is None else [*drawn.in_rows(block, hits)])

    def _read_hits(self, read: _Content, found: _Hits) -> None:
        """Read the lines of a block that contain a literal of a rule."""
        hits = found.lines
        done = 0
        for states in found.states:
            begin = int(np.searchsorted(hits, states.lines[0]))
            end = int(np.searchsorted(hits, states.lines[-1], side="right"))
            self._read_each(read, found, done, begin)
            self._read_states(read, found, states, begin)
            done = end
        self._read_each(read, found, done, len(hits))
        for hit in read.bars.waiting():
            read.placed += self._read_skipped(read, hit)

    def _read_states(self, read: _Content, found: _Hits, states: States, first: int) -> None:
        """Read states of a bar; only a few are read one by one. first: index of the first one."""
        at = 0
        while at < len(states.lines):
            ahead = self._skip_states(read, states, at)
            if not ahead:
                ahead = 1
                self._read_each(read, found, first + at, first + at + 1)
            at += ahead

    def _skip_states(self, read: _Content, states: States, at: int) -> int:
        """Skip states of a bar from an index on; return the number of skipped ones."""
        if self._lost < _LOSSES or read.kinds:
            return 0
        ahead = read.bars.next_states(states.fields, states.done[at:], states.elapsed[at:])
        if ahead is None:
            return 0
        bar, count = ahead
        last = int(states.lines[at + count - 1])
        if read.block.first[last] != last:
            begin = self._begin_of(read.block, int(read.block.first[last]))
            if begin.stream or begin.collected is not None:
                return 0
        turn = self._turn((NAME, "", "", (bar.name, bar.epoch, bar.total), False))
        count = turn.goes_on(states.done[at : at + count])
        if not count:
            return 0
        rows = slice(at, at + count)
        lines, done = states.lines[rows], states.done[rows]
        texts = read.block.texts(lines[-REMEMBERED:], 0)
        turn.take_run(LineRun(read.first_line + read.block.number[lines], done, texts))
        read.bars.skip(read.block.hits(lines[-1:]), lines, int(done[-1]), int(states.elapsed[rows][-1]))
        read.meant += lines.tolist()
        return count

    def _read_each(self, read: _Content, found: _Hits, begin: int, end: int) -> None:
        """Read the lines with a literal, from one index to another."""
        hits = found.lines
        for place, hit in enumerate(read.block.hits(hits[begin:end]), begin):
            if self._worth >= BEGINS and not read.is_compared:
                read.is_compared = True
                read.kinds = self._storms.kinds(read.block, hits[place:])
            kind = read.kinds.get(hit.at)
            if kind is not None and kind.quiet:
                read.worth.append(hit.at)
            elif kind is None and self._skips(read, hit):
                read.meant.append(hit.at)
            else:
                self._read_hit(read, hit, kind)
            skipped = found.skipped.get(hit.at)
            if skipped is not None and not self._keep_columns(read, skipped):
                for inner in read.block.hits(skipped.lines):
                    self._read_hit(read, inner, None)

    def _keep_columns(self, read: _Content, skipped: _Skipped) -> bool:
        """Add the inner records of a stretch to the log line before them, and follow their steps; return False if they
        have to be read one by one."""
        records, (begin, end, stride), lines = skipped
        kind = records.kind_of(begin)
        before = read.placed[-1][1] if read.placed else None
        if before is None or before.event is None or before.event.step is None:
            return False
        number = read.first_line + read.block.number[lines]
        next_line = int(read.first_line + read.block.number[records.at[end]])
        stretch = stretch_of(records, skipped.inner, number, next_line)
        follows = (before.stream, before.event.step) == (kind.stream, stretch.first - stride)
        if not follows or before.stamp != records.stamp(begin - 1):
            return False
        turns = [(self._turn((kind.event.format, kind.stream, "", None, False)), "")]
        group = _NUMBERED.sub("", kind.stream)
        if kind.stream and self._groups.setdefault(group, kind.stream) == kind.stream:
            turns.append((self._turn((kind.event.format, None)), f"{group} "))
        text = read.block.texts(lines[-REMEMBERED:], kind.cut)
        if any(turn.goes_on(stretch.steps[:2]) < min(len(stretch), 2) for turn, _ in turns):
            return False
        for turn, head in turns:
            turn.take_run(LineRun(number, stretch.steps, text, head))
        before.inner = stretch
        read.meant += lines.tolist()
        return True

    def _read_hit(self, read: _Content, hit: Hit, kind: LineKind | None) -> None:
        if _CODE in hit.raw and follows_frame(hit.raw, self._line_before(read.block, hit.at)):
            if self._rules.causes.may_read(hit.raw):
                read.worth.append(hit.at)
            return
        found, more, reason = self._read(read.block, hit, read.first_line, read.signs)
        said = read.said[hit.at] = [log_line.event for log_line in more if log_line.event is not None]
        if more:
            self._follow(found.line.text, more[0], read.losses)
        if may_contain_evidence(said, bool(more or reason)) and self._may_report(found, hit):
            read.worth.append(hit.at)
            self._worth += 1
            if kind is not None:
                kind.quiet = not (more or reason) and not any(asked_of(self._asked, read.block.text(hit.at)))
        earlier = read.bars.follow(hit, found.template, more)
        if earlier is not None:
            read.placed += self._read_skipped(read, earlier)
        if reason:
            read.bad.append((read.first_line + hit.number, reason))
        if more or reason:
            read.placed += [(hit.at, log_line) for log_line in more]
            read.meant.append(hit.at)

    def _line_before(self, block: Lines, at: int) -> bytes:
        return block.bytes_of(at - 1, LONGEST) if at else self._last

    @property
    def is_idle(self) -> bool:
        """Return True if no death is followed that later lines could explain."""
        return self._observer.is_idle

    def deaths_at_end(self) -> DeathsAtEnd:
        """Return the evidence if the document ends here."""
        return self._observer.at_end()

    def finish(self) -> ParsedPart:
        """Return the evidence that is left at the end of the document."""
        return without_records(TextPart(seen=self._observer.finish(), left_out=self._observer.dropped))

    def _unread_steps(self, block: Lines, first_line: int, said: dict[int, Sequence[ParsedEvent]]) -> dict[int, int]:
        """Return the next few lines that look like steps, before the first one that a rule reads."""
        if self._unread is None:
            return {}
        read = [at for at, some in said.items() if any(counted_step(one) is not None for one in some)]
        stop = min(read, default=len(block))
        more: dict[int, int] = {}
        like_a_step = linear().compile(LIKE_A_STEP)
        for at in block.each_found(like_a_step) if len(self._unread) < OTHER_STEPS else ():
            if at >= stop or len(self._unread) >= OTHER_STEPS:
                break
            step = like_a_step.search(block.bytes_of(at, LONGEST))
            if step is not None and int(step[1]) > max(self._unread.values(), default=-1):
                number = first_line + int(block.number[at])
                more[number] = self._unread[number] = int(step[1])
        if read:
            self._unread = None
        return more

    def _follow(self, text: str, log_line: LogLine, losses: dict[int, float]) -> None:
        """Record the loss of a step line without rank or node, and follow who prints steps."""
        said = log_line.event
        if said is None:
            return
        step = counted_step(said)
        if step is None:
            if said.type in _BEGIN_OR_END:
                for turns in self._turns.values():
                    turns.restart()
            return
        if self._lost < _LOSSES and not log_line.stream and not said.rank:
            self._lost += 1
            loss = loss_in(text)
            if loss is not None:
                losses.setdefault(step, loss)
        bar = counted_bar(said)
        rounded = said.type is not EventType.STEP and bar is None
        turn = self._turn((said.format, log_line.stream, said.rank, bar, rounded))
        turn.take(log_line.line, step, text, bar is not None, rounded)
        if log_line.stream:
            group = _NUMBERED.sub("", log_line.stream)
            if self._groups.setdefault(group, log_line.stream) == log_line.stream:
                self._turn((said.format, bar)).take(log_line.line, step, f"{group} {text}", bar is not None)

    def _turn(self, key: tuple[object, ...]) -> InterleavedRunDetector:
        turns = self._turns.get(key)
        if turns is None:
            if len(self._turns) >= _FOLLOWED:
                oldest = self._turns.pop(next(iter(self._turns)))
                self._interleaved = self._interleaved or oldest.found()
            turns = self._turns[key] = InterleavedRunDetector()
        return turns

    def _skips(self, read: _Content, hit: Hit) -> bool:
        """Return True for a state of a bar that need not be read; its step is followed."""
        if self._lost < _LOSSES:
            return False
        if hit.first != hit.at:
            begin = self._begin_of(read.block, hit.first)
            if begin.stream or begin.collected is not None:
                return False
        state = read.bars.skipped_state(hit, self._reader.template_of(hit))
        if state is None:
            return False
        bar, done = state
        turn = self._turn((NAME, "", "", (bar.name, bar.epoch, bar.total), False))
        turn.take(read.first_line + hit.number, done, hit.raw.decode(errors="replace"), bar=True)
        return True

    def _read_skipped(self, read: _Content, hit: Hit) -> Iterator[tuple[int, LogLine]]:
        """Read a state of a bar that was skipped at first; its step was followed."""
        _, more, _ = self._read(read.block, hit, read.first_line, [])
        read.said[hit.at] = [log_line.event for log_line in more if log_line.event is not None]
        return ((hit.at, log_line) for log_line in more)

    def _read(
        self, block: Lines, hit: Hit, first_line: int, signs: list[UntimedRecoveryEvent]
    ) -> tuple[ReadLine, list[LogLine], str]:
        """Return a line, its log lines, and its error. signs: receives the signs in it."""
        found = self._reader.read(hit)
        if not found.known and not found.moments:
            return found, [], ""
        begin = found.line if hit.first == hit.at else self._begin_of(block, hit.first)
        return found, *self._log_lines(found, hit.overwritten, begin, first_line + hit.number, signs)

    def _begin_of(self, block: Lines, first: int) -> PlainLine:
        """Return the first of the lines separated by carriage returns."""
        if self._begin is None or self._begin[0] != first:
            self._begin = first, strip_prefixes(block.text(first))
        return self._begin[1]

    def _may_report(self, found: ReadLine, hit: Hit) -> bool:
        """Return True if a line may report a death."""
        worth = None if found.template is None else found.template.worth
        return self._rules.causes.may_read(hit.raw) if worth is None else worth

    def _log_lines(
        self, found: ReadLine, overwritten: bool, first: PlainLine, number: int, signs: list[UntimedRecoveryEvent]
    ) -> tuple[list[LogLine], str]:
        """Return the log lines of a line, and its error. first: the first line before a carriage return. signs:
        receives the signs in it."""
        line, said, known, reason, moments, _ = found
        collected = None if overwritten else first.collected
        try:
            own = found.timestamp()
        except TimestampError as error:
            # A rule defines the format of its times.
            if collected is None and not (said and all(one.at for one in said)):
                return [], (reason or str(error)) if known else ""
            own = None
        glued = own is not None and _follows_bar(line.text, said)
        own, next_line = (None, own) if glued else (own, None)
        every = [LogLine(number, first.stream, own or one.at, one) for one in (*said, *moments)]
        if collected is not None:
            every = [timed(one, collected) for one in every]
        signs += signs_in(every)
        if next_line is None and not moments:
            return every, reason
        following = [LogLine(number, first.stream, next_line)] if next_line is not None else []
        return ([*every[: len(said)], *following], reason) if known else ([], "")

    def _clocks(
        self, block: Lines, stamped: tuple[I64, I64], hits: I64, first_line: int
    ) -> Iterator[tuple[int, LogLine]]:
        """Yield the first and last timestamped line of each stream between two events, separately for lines with and
        without a day."""
        lines, columns = stamped
        keep = ~np.isin(lines, hits, assume_unique=True)
        lines, columns = lines[keep], columns[keep]
        gaps = np.searchsorted(hits, lines)
        streams, names = self._streams_of(block, lines, columns)
        keys = 2 * (gaps * (len(names) + 1) + streams) + block.without_day(lines, columns)
        others = np.arange(len(lines))
        read: dict[int, LogLine] = {}
        ends = others
        for _ in range(_SHAPES):
            ends = others[_first_and_last(keys[others])]
            new = [at for at in ends.tolist() if at not in read]
            for at in new:
                read[at] = self._clock(block, int(lines[at]), first_line, names[int(streams[at])])
            unread = [at for at in new if read[at].stamp is None]
            if not unread:
                break
            # Another line of the gap shows the time: these, and those that differ from them in digits, show none.
            heads = np.full(len(others), _PREFIXED)
            kinds = block.hashes(lines[others], np.zeros_like(heads), heads, masked=True)
            others = others[~np.isin(kinds, kinds[np.searchsorted(others, unread)])]
        for at in ends.tolist():
            if read[at].stamp is not None:
                yield int(lines[at]), read[at]

    def _clock(self, block: Lines, row: int, first_line: int, stream: str) -> LogLine:
        """Return a line without an event, with its time if it has one."""
        line = strip_prefixes(block.text(row))
        clock = LogLine(
            first_line + int(block.number[row]), stream, timestamp_or_none(line.text), words=_words(line.text)
        )
        return timed(clock, line.collected)

    def _streams_of(self, block: Lines, lines: I64, columns: I64) -> tuple[I64, list[str]]:
        """Return the stream of each line, int64[n], as an index into the returned names.

        Prefixes before timestamps are mostly equal within a block, so that each is parsed once.
        """
        every = block.hashes(lines, *self._prefixes(block, lines, columns))
        heads = np.ones(len(every), dtype=np.bool_)
        heads[1:] = every[1:] != every[:-1]
        prefixes, kind = np.unique(every[heads], return_inverse=True)
        kind = kind.reshape(-1)[np.cumsum(heads) - 1]
        names: dict[str, int] = {}
        codes = np.zeros(len(prefixes), dtype=np.int64)
        _, examples = np.unique(kind, return_index=True)
        for at, example in enumerate(examples.tolist()):
            name = self._stream(block, int(lines[example]), int(columns[example]))
            codes[at] = names.setdefault(name, len(names))
        found: I64 = codes[kind] if len(prefixes) else codes
        return found, list(names)

    def _prefixes(self, block: Lines, lines: I64, columns: I64) -> tuple[I64, I64]:
        """Return the begin and the length of the prefixes of each line without a collector's timestamp before them.
        columns: of the dates."""
        begin, length = np.zeros(len(lines), dtype=np.int64), columns.clip(0, _NAMED)
        collected = np.flatnonzero(block.are_collected(lines, columns))
        if not len(collected):
            return begin, length
        # Lines that begin alike, digits aside, have prefixes of one length.
        heads = np.full(len(collected), _PREFIXED)
        kinds = block.hashes(lines[collected], np.zeros_like(heads), heads, masked=True)
        _, examples, kind = np.unique(kinds, return_index=True, return_inverse=True)
        spans = [_prefix_after_collected(block.text(at)) for at in lines[collected[examples]].tolist()]
        found = np.array(spans, dtype=np.int64)[kind.reshape(-1)]
        begin[collected], length[collected] = found[:, 0], found[:, 1]
        return begin, length

    def _stream(self, block: Lines, at: int, column: int) -> str:
        """Return the stream of a line whose date begins at a column."""
        if column > 1:
            return strip_prefixes(block.bytes_of(at, column).decode(errors="replace") + "2000-01-01").stream
        return strip_prefixes(block.text(at)[:_PREFIXED]).stream


def _first_and_last(keys: I64) -> I64:
    """Return the first and the last index of each key, int64[n], in order."""
    _, first = np.unique(keys, return_index=True)
    _, last = np.unique(keys[::-1], return_index=True)
    return merged(first, len(keys) - 1 - last)


def _prefix_after_collected(line: str) -> tuple[int, int]:
    """Return the begin and the length of the prefixes after a collector's timestamp."""
    cut = len(line) - len(strip_prefixes(line[:_PREFIXED]).text) - len(line[_PREFIXED:])
    end = min(line.find(" ") + 1, cut)
    return end, len(line[end:cut].encode(errors="replace"))


def _words(text: str) -> int:
    """Return a number that is the same for lines that differ only in numbers."""
    return crc32(_DIGITS.sub("", text[:_LONGEST_COMPARED]).encode(errors="replace"))


def _follows_bar(text: str, said: Sequence[ParsedEvent]) -> bool:
    """Return True if the timestamp follows a progress bar: a killed process does not end its line, and the output of
    the next one is appended to its bar."""
    if "%" not in text or not any(counted_bar(one) for one in said):
        return False
    found = find_timestamp(text)
    return found is not None and found[1][0] > text.find("%") >= 0


def _objects(block: Lines, first_line: int) -> tuple[list[Record], list[int]]:
    """Return the JSON objects in lines, also after prefixes: a program may print a native log among other text."""
    records: list[Record] = []
    lines: list[int] = []
    for at in block.braces().tolist():
        record = json_in(block.bytes_of(at, 1 << 24).decode(errors="surrogateescape"))
        if record is not None:
            records.append(record)
            lines.append(first_line + int(block.number[at]))
    return records, lines


def is_text(head: bytes, rules: LineRules) -> bool:
    """Return True if a document with this beginning is text rather than JSON: a rule matches, or fewer than half of its
    lines are objects."""
    head = head[:SNIFFED]
    lines = [line for line in head.split(b"\n") if line.strip()]
    if not lines:
        return False
    others = [line for line in lines if not _OBJECT.match(line)]
    if 2 * len(others) > len(lines):
        return True
    return rules.knows(b"\n".join(others))

"""Logs that consist of several files, such as the parts of a rotated log: which files are parts of one log, and its
lines.

Names suggest which files may be parts (`sources.parts`), and the first and last lines of each decide. The order is the
one in which times rise. Files whose times overlap are not parts. Names that are also usual for processes and attempts
(`train.log.0` without a `train.log`, `train-2026-03-01.log`) are those of parts only if steps and times continue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, starmap
from operator import itemgetter
from typing import TYPE_CHECKING

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.documents import Documents, JsonLinesWithDeaths, TableReader, document_reader
from goodput_cli.events.formats.base import DocumentReader
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.events.schema import NO_STEP, Kind
from goodput_cli.sources.base import Batch, RawBatch, ReadContext, SourceDocument, read_document, source_for
from goodput_cli.sources.parts import HasMembers, Member, PartCandidate, candidates, read_joined, unpacked
from goodput_cli.vocabulary.text import JoinedName, plural
from goodput_cli.vocabulary.when import NS_PER_DAY

if TYPE_CHECKING:
    from goodput_cli.events.text.line_timestamps import Zone


def read_sources(
    uris: Iterable[str | RawBatch], context: ReadContext, hints: ReadingOptions | None = None
) -> Iterator[Batch]:
    """Return the lines of some sources, document by document.

    Files that are parts of one log are one document, named like the whole log (`JoinedName`). A batch is lines in
    memory. Raises SourceError and UsageError as sources do."""
    members: list[Member | Iterator[Batch]] = []
    for uri in uris:
        if isinstance(uri, RawBatch):
            members.append(iter([uri]))
            continue
        source = source_for(uri)
        if isinstance(source, HasMembers):
            members += source.members(uri, context)
        else:
            members.append(source.read(uri, context))
    return chain.from_iterable(_joined(members, context, hints or ReadingOptions()))


def read_parts(documents: Sequence[SourceDocument], context: ReadContext, hints: ReadingOptions) -> Iterator[Batch]:
    """Return the lines of some documents, joined as by `read_sources`. Raises SourceError."""
    members: list[Member | Iterator[Batch]] = []
    for one in documents:
        source = source_for(one.uri)
        if isinstance(source, HasMembers) and one.version and one.problem is None:
            members.append(source.member(one, context))
        else:
            members.append(read_document(one, context))
    return chain.from_iterable(_joined(members, context, hints))


def _joined(
    members: Sequence[Member | Iterator[Batch]], context: ReadContext, hints: ReadingOptions
) -> Iterator[Iterator[Batch]]:
    """Return the lines of each document, a joined one at the place of its first part."""
    joined: dict[str, tuple[JoinedName, list[Member]]] = {}
    for document in documents_of([one for one in members if isinstance(one, Member)], context, hints):
        joined.update(dict.fromkeys((one.name for one in document[1]), document))
    return _in_order(members, joined)


def _in_order(
    members: Sequence[Member | Iterator[Batch]], joined: Mapping[str, tuple[JoinedName, list[Member]]]
) -> Iterator[Iterator[Batch]]:
    done: set[str] = set()
    for one in members:
        found = joined.get(one.name) if isinstance(one, Member) else None
        if found is None:
            yield one.read() if isinstance(one, Member) else one
        elif found[0] not in done:
            done.add(found[0])
            yield read_joined(*found)


def documents_of(
    members: Sequence[Member], context: ReadContext, hints: ReadingOptions
) -> list[tuple[JoinedName, list[Member]]]:
    """Return the documents that consist of several of these files, each with its files in order."""
    by_name = {one.name: one for one in members if one.ends is not None}
    found: list[tuple[JoinedName, list[Member]]] = []
    for candidate in candidates(list(by_name)):
        parts, problem = _parts(candidate, by_name, hints)
        names = tuple(one.name for one in parts) or candidate.orders[0]
        if problem:
            message = f"files are named like parts of one log, but {problem}; each is read as a log of its own"
            context.report(Diagnostic.of("parts_not_joined", message, len(names), names))
        elif parts:
            message = f"{plural(len(names), 'file')} are parts of one log and are read as one"
            context.report(Diagnostic.of("parts_joined", message, len(names), names))
            found.append((JoinedName(candidate.name), parts))
    return found


_KINDS = {
    "start": Kind.START,
    "scheduled": Kind.START,
    "step": Kind.STEP,
    "step_start": Kind.STEP,
    "step_finished": Kind.STEP,
}
"""Starts and steps, by the type of a line's event."""


@dataclass(frozen=True)
class _Lines:
    """What the first or last lines of a file show, in order."""

    times: Sequence[tuple[Zone, int]] = ()
    """Timestamps: what they leave open, and ns."""
    steps: Sequence[int] = ()
    begins: bool = False
    """True if a process starts before the first step."""


@dataclass(frozen=True)
class _Ends:
    """The first and last lines of a file."""

    member: Member
    head: bytes
    tail: bytes
    hints: ReadingOptions

    @cached_property
    def reader(self) -> DocumentReader:
        """Return the kind of document that the first lines show."""
        return document_reader(RawBatch(self.member.name, 1, self.head), None, self.hints)

    @property
    def may_continue(self) -> bool:
        """Return True if the file may begin within a document."""
        from goodput_cli.events.text.scan import TextLines  # imported late: few logs have parts

        return isinstance(self.reader, TextLines | JsonLinesWithDeaths)

    @property
    def may_begin(self) -> bool:
        """Return True if another file may continue the document."""
        return self.may_continue or isinstance(self.reader, TableReader)

    @cached_property
    def first(self) -> _Lines:
        """Return what the first lines show."""
        return self._lines(self.head)

    @cached_property
    def last(self) -> _Lines:
        """Return what the last lines show."""
        return self.first if self.tail == self.head else self._lines(self.tail)

    def _lines(self, data: bytes) -> _Lines:
        from goodput_cli.events.decode import Decoder
        from goodput_cli.events.text.line_timestamps import Zone

        decoder = Decoder("UTC", self.hints)
        for source, parsed in Documents(self.hints).read_all(iter([RawBatch(self.member.name, 1, data)])):
            decoder.add(source, parsed)
        found: list[tuple[int, int | None, Zone, Kind | None, Sequence[int]]] = []
        for one in decoder.text_lines():
            stamp = one.stamp
            steps: Sequence[int] = () if one.event is None or one.event.step is None else (one.event.step,)
            kind = None if one.event is None else _KINDS.get(one.event.type)
            steps = steps if one.inner is None else (*steps, one.inner.last)
            found.append((one.line, stamp and stamp.ns, stamp.zone if stamp else Zone.EXACT, kind, steps))
        rows = decoder.rows()
        columns = (rows[name].tolist() for name in ("line", "time", "kind", "step"))
        for line, ns, kind, step in zip(*columns, strict=True):
            found.append((line, ns, Zone.EXACT, Kind(kind), () if step == NO_STEP else (step,)))
        found.sort(key=itemgetter(0))
        kinds = [kind for _, _, _, kind, _ in found if kind in (Kind.START, Kind.STEP)]
        times = [(zone, ns) for _, ns, zone, _, _ in found if ns is not None]
        done = [step for _, _, _, kind, steps in found if kind is Kind.STEP for step in steps]
        return _Lines(times, done, kinds[:1] == [Kind.START])


def _parts(candidate: PartCandidate, members: Mapping[str, Member], hints: ReadingOptions) -> tuple[list[Member], str]:
    """Return the files that are parts of one log, in order, and the reason if they are not although named so."""
    ends: dict[str, _Ends] = {}
    for name in candidate.orders[0]:
        read = members[name].ends
        head, tail = (b"", b"") if read is None else read()
        if head.strip():
            ends[name] = _Ends(members[name], head, tail, hints)
    orders = [[ends[name] for name in order if name in ends] for order in candidate.orders]
    order = next((one for one in orders if all(starmap(_may_follow, pairwise(one)))), None)
    if len(ends) < 2 or not any(one[0].may_begin and all(e.may_continue for e in one[1:]) for one in orders):
        return [], ""
    if order is None:
        return [], "their times overlap" if candidate.is_certain else ""
    may_be_processes = len(candidate.orders) > 1 and candidate.name not in map(unpacked, candidate.orders[0])
    if may_be_processes and _begin_alike(order):
        return [], "they have no times and begin with the same line"
    if not candidate.is_certain:
        is_dated = len(candidate.orders) == 1
        continued = [(is_dated and _resumes(a, b)) or _continues(a, b) for a, b in pairwise(order)]
        if not all(continued):
            unlike = "a start or a pause separates them" if is_dated else ""
            return [], unlike if False in continued else "their contents do not show whether they are"
    return [one.member for one in order], ""


def _begin_alike(parts: Sequence[_Ends]) -> bool:
    """Return True if parts without times begin with the same line, as the files of several processes do."""
    first = {part.head.lstrip().partition(b"\n")[0] for part in parts}
    return len(first) == 1 and not any(part.first.times or part.last.times for part in parts)


def _may_follow(before: _Ends, after: _Ends) -> bool:
    """Return True unless a part begins before the end of the one before it.

    Lines of several processes are not quite in order: a part may begin a little earlier, nearer to the end of the part
    before than to its begin.
    """
    from goodput_cli.events.text.line_timestamps import Zone

    if not (before.first.times and before.last.times and after.first.times):
        return True
    (of_begin, begin), (of_end, end), (zone, following) = (
        before.first.times[0],
        before.last.times[-1],
        after.first.times[0],
    )
    if not of_begin == of_end == zone or following >= end:
        return True
    if zone is Zone.DAYLESS:
        return _apart(following, end) < _apart(following, begin)
    return end - following < following - begin


def _apart(one: int, other: int) -> int:
    """Return the distance of two times of day, ns."""
    distance = abs(one - other) % NS_PER_DAY
    return min(distance, NS_PER_DAY - distance)


def _resumes(before: _Ends, after: _Ends) -> bool | None:
    """Return True if the steps of a part go on near the last one of the part before, if not from the first one, after a
    start or a pause. Return None if a file contains no two steps."""
    end, begin = before.last.steps, after.first.steps
    stride = min((later - one for one, later in pairwise(begin) if later > one), default=0)
    return stride < begin[0] <= end[-1] + stride if stride and end else None


def _continues(before: _Ends, after: _Ends) -> bool | None:
    """Return True if a part goes on where the part before ends: in time with no longer a pause than others, or without
    times in steps. Return None if neither shows it."""
    end, begin = before.last, after.first
    if begin.begins:
        return False
    if end.times and begin.times and end.times[-1][0] == begin.times[0][0]:
        pauses = [later - one for times in (end.times, begin.times) for (_, one), (_, later) in pairwise(times)]
        return begin.times[0][1] - end.times[-1][1] <= max(pauses, default=0)
    return True if end.steps and begin.steps and begin.steps[0] > end.steps[-1] else None

"""`goodput_cli.watch(...)`: the analysis of a job while it runs.

import goodput_cli
for update in goodput_cli.watch("run.jsonl", interval=5):
    print(update.analysis.goodput_percent if update.analysis else update.waiting)

A log that is still being written: decoded as it grows, everything read once.
"""

from __future__ import annotations

import time
from collections.abc import Container, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

from goodput_cli.api.draft import GrowingDraft
from goodput_cli.api.options import (
    WATCH,
    FollowOptions,
    Source,
    addresses,
    command_line_of,
    parsed_options,
    split,
    takes,
)
from goodput_cli.arrays import garbage_collection_paused
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import NeedsMapping, NotEnoughData, SourceError
from goodput_cli.events.decode import Decoder
from goodput_cli.events.documents import Documents, is_known_table_or_text
from goodput_cli.events.joined_logs import documents_of
from goodput_cli.events.schema import EventLog
from goodput_cli.sources.base import Batch, RawBatch, ReadContext
from goodput_cli.sources.follow import FileFollower, Follower, follow

if TYPE_CHECKING:
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.analysis.threshold import Expression
    from goodput_cli.api.keywords import AnalyzeOptions, WatchOptions
    from goodput_cli.events.reading_options import ReadingOptions


_HEAD = 1 << 16
"""Number of bytes at the begin of a document that decide its type."""


class _WatchedContent:
    """Everything that was read, decoded.

    The type of a document depends on its first lines, so the first few batches are decoded again, as one, with each
    later one.
    """

    def __init__(self, timezone: str, hints: ReadingOptions) -> None:
        self._timezone, self._hints = timezone, hints
        self._first: list[RawBatch] | None = []
        """All batches, as long as they are few."""
        self._is_decoded = True
        self.size = 0
        """Number of bytes read."""
        self._restart()

    def _restart(self) -> None:
        self._decoder, self._documents = Decoder(self._timezone, self._hints), Documents(self._hints)

    def add(self, batch: Batch) -> None:
        """Add the next lines of a source."""
        if isinstance(batch, RawBatch):
            self.size += len(batch.data)
        if self._first is not None and isinstance(batch, RawBatch) and self.size <= _HEAD:
            self._first.append(batch)
            self._is_decoded = False
            return
        self._decode_first()
        self._first = None
        self._decode(batch)

    def finish(self, growing: Container[str]) -> EventLog:
        """Return all events so far. A source that is not growing ends there: its last lines may report a death."""
        self._decode_first()
        for source, parsed in self._documents.written():
            self._decoder.add(source, parsed)
        return self._decoder.finish(self._documents.deaths_at_end(growing))

    def _decode_first(self) -> None:
        """Decode the first batches, unless they were."""
        if self._first is None or self._is_decoded:
            return
        self._is_decoded = True
        self._restart()
        for batch in _joined(self._first):
            self._decode(batch)

    def _decode(self, batch: Batch) -> None:
        for parsed in self._documents.read(batch):
            self._decoder.add(batch.source, parsed)


def _joined(batches: Sequence[RawBatch]) -> list[RawBatch]:
    """Return the batches of each document as one, in order of their first lines."""
    found: list[RawBatch] = []
    last: dict[str, int] = {}
    for batch in batches:
        if batch.first_line > 1 and batch.source in last:
            before = found[last[batch.source]]
            modified_ns = batch.modified_ns or before.modified_ns
            found[last[batch.source]] = replace(before, data=before.data + batch.data, modified_ns=modified_ns)
        else:
            last[batch.source] = len(found)
            found.append(batch)
    return found


class WatchedLog:
    """A growing log and the question about it: `look` reads new lines, `log` returns everything so far, and `analysis`
    accounts for it.

    once: sources that are read a single time, such as the log of an earlier attempt of the job. They are tried at each
    look until one could be read. The others, and the errors, are those of `watch`.
    """

    def __init__(
        self, sources: Source | Sequence[Source], *, once: Sequence[str] = (), **options: Unpack[AnalyzeOptions]
    ) -> None:
        reading, self._question = split(options)
        self._job_name = reading.job_name
        self._asked = command_line_of(sources, reading, self._question)
        self._notices: dict[tuple[str, str], Diagnostic] = {}
        self._sources, self._read_once = addresses(sources), once
        self._rules = GrowingDraft(self._sources, reading, self._question.timezone)
        self._hints = reading.hints.checked().about(reading.job_name)
        self._context = ReadContext(
            self._report, wanted=reading.wanted, notice=reading.notice,
            is_log=lambda head: is_known_table_or_text(head, self._hints),
            parts_of=lambda files: documents_of(files, self._context, self._hints),
        )  # fmt: skip
        self._begin(self._hints)
        self._failing: set[str] = set()  # reported already
        self._looked = False
        self._blocks = 0  # number of blocks read
        self._inferred = 0  # blocks that rules were inferred from
        self._growing: set[str] = set()  # sources with new lines in the last look

    def _begin(self, hints: ReadingOptions) -> None:
        """Start to read from the beginning."""
        self._hints, self._content = hints, _WatchedContent(self._question.timezone, hints)
        self._followers = follow(self._sources, self._context)
        self._once = [follower for uri in self._read_once for follower in follow([uri], self._context)]

    def look(self) -> bool:
        """Read new lines. Return True if there were any.

        Raises SourceError if a source cannot be read and nothing was read of any. Otherwise the error is reported, and
        reading is tried again.
        """
        before = self._blocks
        self._growing.clear()
        failing: set[str] = set()
        needed: SourceError | None = None
        for follower in (*self._once, *self._followers):
            once = follower in self._once
            try:
                self._read(follower)
                if once:
                    self._once.remove(follower)
                    follower.close()
            except SourceError as error:
                failing.add(str(error))
                needed = needed or (None if once else error)
        if needed is not None and not self._looked and not self._blocks:
            raise needed
        for sentence in sorted(failing - self._failing):
            self._context.say(f"{sentence} (retrying)")
        self._failing, self._looked = failing, True
        return self._blocks > before

    @property
    def _is_complete(self) -> bool:
        """Return True if all that was read could be read again, with other rules."""
        return all(one.is_complete for one in self._followers if isinstance(one, FileFollower))

    @property
    def failing(self) -> bool:
        """Return True if the last look could not read a source."""
        return bool(self._failing)

    @garbage_collection_paused()
    def log(self) -> EventLog:
        """Return all events so far, with their diagnostics."""
        log = self._content.finish(self._growing)
        if self._blocks > self._inferred and (self._is_complete or not len(log.table)):
            self._inferred = self._blocks
            hints = self._rules.new_hints(log, self._content.size)
            if hints is not None:
                self.close()
                self._begin(hints.about(self._job_name))
                growing = set(self._growing)
                self.look()
                self._growing = growing
                self._inferred, log = self._blocks, self._content.finish(self._growing)
        return replace(log, diagnostics=(*self._notices.values(), *log.diagnostics))

    def close(self) -> None:
        """Close open files."""
        for follower in (*self._once, *self._followers):
            follower.close()

    @garbage_collection_paused()
    def _read(self, follower: Follower) -> None:
        """Decode new lines."""
        for batch in follower.look():
            self._blocks += 1
            self._growing.add(batch.source)
            self._content.add(batch)

    def _report(self, diagnostic: Diagnostic) -> None:
        self._notices[diagnostic.code, diagnostic.message] = diagnostic

    def analysis(self, now_ns: int | None, thresholds: Sequence[Expression] = ()) -> Analysis:
        """Return the analysis of everything read, as by `account`. The job is always the same, even if another one
        begins to write there. Raises NotEnoughData."""
        analysis = self.account(self.log(), self._job_name, now_ns, thresholds)
        self._job_name = analysis.job.name
        return analysis

    def account(
        self, log: EventLog, job: str | None, now_ns: int | None, thresholds: Sequence[Expression] = ()
    ) -> Analysis:
        """Return the analysis of a job of the log (None: the only one). `as_of="now"` is `now_ns` (since 1970 UTC);
        None: as of the last event. Raises NotEnoughData, and UsageError if the question does not fit the job."""
        from goodput_cli.analysis.account import analyze_log

        question = replace(self._question, as_of=None) if now_ns is None else replace(self._question, now_ns=now_ns)
        return self._rules.marked(analyze_log(log, question, job, thresholds, asked=self._asked))


@dataclass(frozen=True)
class Update:
    """The analysis at one time."""

    changed: bool
    """True if new lines were read since the previous update."""
    analysis: Analysis | None
    """None if the log does not contain enough yet."""
    waiting: str = ""
    """Why `analysis` is None."""


@takes(WATCH)
def watch(sources: Source | Sequence[Source], **options: Unpack[WatchOptions]) -> Generator[Update, None, None]:
    """Analyze growing sources repeatedly, without an end; the first update comes at once.

    sources: files, globs, folders, gs://, cloud-logging://. Only new lines are read. A source can be missing at first.
    as_of: the time of each update by default, so that time without log lines counts.
    notice: callback for status messages, such as a truncated file or a network error.
    The other arguments and the errors are those of `goodput_cli.analyze`. After the first update, errors that can pass
    are in `Update.waiting`. Rules for a log of an unknown format are inferred again whenever the log has doubled.

    Raises NeedsMapping if no rules can be inferred for the steps in the log.
    """
    following, of_job = parsed_options(FollowOptions, options)
    of_now: AnalyzeOptions = {"as_of": "now", **of_job}  # type: ignore[typeddict-item]
    with closing(WatchedLog(sources, **of_now)) as watched:
        while True:
            started = time.monotonic()
            changed = False
            try:
                changed = watched.look()
                update = Update(changed, watched.analysis(time.time_ns()))
            except NeedsMapping:
                raise
            except (NotEnoughData, SourceError) as error:
                update = Update(changed, None, str(error))
            yield update
            spent = time.monotonic() - started
            time.sleep(max(following.interval - spent, spent, 0.0))  # use at most half of one core

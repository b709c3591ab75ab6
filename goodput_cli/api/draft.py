"""Rules for logs in an unknown format: they are inferred from the log, checked on all of it, and used to read it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from goodput_cli.api.options import changed_at, is_local, names_of
from goodput_cli.errors import GoodputError, NotEnoughData, UsageError

if TYPE_CHECKING:
    from goodput_cli.analysis.compare.compare import Comparison
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.analysis.results import InferredRules
    from goodput_cli.analysis.threshold import Threshold
    from goodput_cli.api.options import Reading
    from goodput_cli.diagnostics.diagnostic import Diagnostic
    from goodput_cli.events.mappings.draft.expected import Draft, Whole
    from goodput_cli.events.mappings.draft.lines import LogLines
    from goodput_cli.events.reading_options import ReadingOptions
    from goodput_cli.events.schema import EventLog, EventTable

_STDIN = "-"
_KNOWN = frozenset({"bad_value", "rows_lost_at_kill", "tracker_runs_left_out"})
_MOST_KEPT, _IN_MEMORY = 256 << 20, 16 << 20
"""Maximum number of bytes of standard input kept for reading again, and the part of it kept in memory."""
_NO_STEPS = frozenset({"no_time_in_log", "cycles_alone"})
"""Diagnostics of logs in a known format that contain no steps."""
_FEW_UNREAD = 10
"""Minimum number of unread lines for a warning about missing steps."""
_NOT_CHECKED = "the rules were drafted; check them in and name them with --mapping"


@dataclass
class DraftedReading:
    """Reader of logs that infers rules if no format gives steps."""

    sources: Any
    reading: Reading
    timezone: str
    draft: Draft | None = None
    """The rules used to read the log; None if it needed none."""
    _plain: EventLog | None = None
    """The log as formats read it, before any rule was inferred, if no answer can be made of it."""
    _refused: bool = False
    """True if no rule could be inferred."""
    _read: list[EventLog] = field(default_factory=list)
    _taken: int = 0
    """Number of lines that rules were inferred from."""

    def log(self) -> EventLog:
        """Return the log. Raises NotEnoughData if it has no events and no rules can be inferred."""
        with self._kept():
            log = self._log()
        self.forget()
        return log

    def forget(self) -> None:
        """Drop the logs that were read, to free their memory."""
        self._plain = None
        self._read.clear()

    def checked_log(self) -> EventLog:
        """Return the log that `log` returns, or as formats read it if no answer can be made of it. Raises NotEnoughData
        if the sources are empty."""
        try:
            return self.log()
        except NotEnoughData as error:
            log = self._plain
            if log is None or not (len(log.table) or log.diagnostics or log.table.observed.listed):
                raise
            from goodput_cli.diagnostics.diagnostic import Diagnostic

            noticed = (Diagnostic.of("not_drafted", str(error)),) if self._refused else ()
            return replace(log, diagnostics=(*log.diagnostics, *noticed))

    def notice(self, asked: Sequence[str]) -> Diagnostic | None:
        """Return the warning that the log was read with inferred rules; None if it needed none."""
        return None if self.draft is None else _notice_of(_answer(self.draft), asked)

    def _log(self) -> EventLog:
        log = self._plain = self.reading.read(self.sources, self.timezone)
        names = names_of(self.sources)
        _refuse_others(log, names)
        noticed = {one.code for one in log.diagnostics}
        if not names or not all(map(self._can_be_read_again, names)):
            return log
        if _gives_steps(log) or not _KNOWN.isdisjoint(noticed):
            return _with_doubt(log, _saves_in_bars(log, names, self._from_its_begin))
        made = self._drafted(names, log)
        if not made.refused:
            self.draft = made
            return self._read.pop()
        if not _NO_STEPS.isdisjoint(noticed):
            return log
        if _gives_saves(log):
            return _with_doubt(log, _saves_in_bars(log, names, self._from_its_begin))
        self._refused = True
        return _not_drafted(log, names, self._taken, made.refused[0])

    def suggested(self) -> Draft:
        """Return a mapping to edit, or the reason why none can be inferred."""
        with self._kept():
            log, names = self.reading.read(self.sources, self.timezone), names_of(self.sources)
            reads_all = _gives_steps(log) and _saves_in_bars(log, names, self._from_its_begin) is None
            return _native(log) if reads_all else self._drafted(names, log)

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Keep the bytes read from standard input while the context is open."""
        stream = self.reading.stdin or getattr(sys.stdin, "buffer", None)
        if names_of(self.sources) != [_STDIN] or stream is None:
            yield
            return
        given = self.reading
        with SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
            self.reading = replace(given, stdin=cast(BinaryIO, _ReplayedStream(stream, cast(BinaryIO, file))))
            try:
                yield
            finally:
                self.reading = given

    def _can_be_read_again(self, name: str) -> bool:
        """Return True if rules may be inferred from a source without being asked: a small local source, or kept
        standard input."""
        stream = self.reading.stdin
        return stream.whole if isinstance(stream, _ReplayedStream) else is_local(name)

    def _from_its_begin(self) -> BinaryIO | None:
        """Return the stream of `-`, rewound if it was kept."""
        stream = self.reading.stdin
        if isinstance(stream, _ReplayedStream):
            stream.rewind()
        return stream

    def marked(self, analysis: Analysis) -> Analysis:
        """Return an analysis with its inferred rules and their warning. Failed gates become unjudged."""
        if self.draft is None:
            return analysis
        from goodput_cli.diagnostics.diagnostic import merge

        drafted = _answer(self.draft)
        noticed = merge((_notice_of(drafted, analysis.options), *analysis.diagnostics))
        return replace(
            analysis, inferred_rules=drafted, diagnostics=noticed, thresholds=_not_judged(analysis.thresholds)
        )

    def _drafted(self, names: Sequence[str], log: EventLog) -> Draft:
        from goodput_cli.api.contradicted import kind_of_other, lines_of_logs
        from goodput_cli.events.mappings.draft.write import draft
        from goodput_cli.sources.other_files import scheduler_table

        names = sorted(names)  # The order in which files are passed decides nothing.
        first = [lines_of_logs(names, self._from_its_begin())]
        self._taken, is_whole, head = len(first[0]), first[0].whole, first[0].head()
        other = "" if len(log.table) else kind_of_other(head)
        if other:
            raise NotEnoughData("nothing was read", cause=f"{names[0]} is {other}, not a text file")
        table = scheduler_table(head[:2]) if not len(log.table) else None
        if table:
            raise NotEnoughData.from_sentence(f"nothing was read: {names[0]} {table}")

        def read() -> LogLines:
            return first.pop() if first else lines_of_logs(names, self._from_its_begin())

        made = draft(read, _stem(names[0]), changed_at(names), self._account)
        part = () if is_whole else (f"its rules were checked on the first {self._taken:,} lines only",)
        return replace(made, doubts=(*made.doubts, *part))

    def _account(self, mapping: str) -> Whole | str:
        """Return the result of the accounting with a mapping, or the reason why there is none."""
        from goodput_cli.analysis.question import Question
        from goodput_cli.api.contradicted import most_trained, whole_of

        self._read.clear()
        reading = replace(self.reading, hints=self.reading.hints.with_draft(mapping), progress=None, notice=None)
        self._from_its_begin()
        try:
            log = reading.read(self.sources, self.timezone)
            job = reading.job_name or most_trained(log)
            whole = whole_of(log, Question(timezone=self.timezone), job)
        except (NotEnoughData, UsageError) as error:
            return str(error)
        self._read.append(log)
        plain = log.table if self._plain is None else self._plain.table
        groups, ends = _known_ends(plain)
        return replace(whole, groups=groups, ends=ends)


def _known_ends(table: EventTable) -> tuple[int, int]:
    """Return the number of groups of workers without a start line, and of bursts of ends, in lines of known formats."""
    import numpy as np

    from goodput_cli.events.schema import UNLOGGED_GROUP, Kind
    from goodput_cli.events.text.programs.launcher import DYING

    codes = [code for code, detail in enumerate(table.details) if detail == UNLOGGED_GROUP]
    ends = np.sort(table.time[np.isin(table.kind, (Kind.TERMINATED, Kind.CRASHED))])
    bursts = min(len(ends), 1) + int((np.diff(ends) > DYING).sum())
    return int(np.isin(table.detail, codes).sum()), bursts


def _notice_of(drafted: InferredRules, asked: Sequence[str]) -> Diagnostic:
    """Return the warning that a log was read with inferred rules."""
    from goodput_cli.diagnostics.diagnostic import Diagnostic

    return Diagnostic.of("drafted_mapping", f"the format of this log is unknown: {drafted.sentence(asked)}")


_AGAIN = 2
"""Rules are inferred again once the log is this many times as long."""


class GrowingDraft:
    """Rules that are inferred from logs while they grow."""

    def __init__(self, sources: Sequence[str], reading: Reading, timezone: str) -> None:
        self._read = DraftedReading(sources, replace(reading, progress=None, notice=None), timezone)
        self._tried = 0
        """Bytes of the logs when rules were last inferred."""

    def new_hints(self, log: EventLog, size: int) -> ReadingOptions | None:
        """Return how the logs are to be read from now on, if that changes. log: all that was read; size: its bytes."""
        if size < _AGAIN * self._tried or not all(map(is_local, self._read.sources)):
            return None
        if self._read.draft is None and _gives_steps(log):
            return None
        self._tried, before, self._read.draft = size, self._read.draft, None
        with suppress(NotEnoughData):
            self._read.log()
        self._read.forget()
        made, hints = self._read.draft, self._read.reading.hints
        if (made and made.text) == (before and before.text):
            return None
        return hints if made is None else hints.with_draft(made.text)

    def marked(self, analysis: Analysis) -> Analysis:
        """Return an analysis with what is known of its rules."""
        return self._read.marked(analysis)


def infer_rules(names: Sequence[str], reading: Reading, timezone: str) -> tuple[str, Diagnostic] | None:
    """Return rules for the files of a job that no format gives steps of, with the warning that they were inferred; None
    if there are none."""
    if not all(map(is_local, names)):
        return None
    read = DraftedReading(names, replace(reading, job_name=None, progress=None, notice=None), timezone)
    with suppress(GoodputError):
        read.log()
    return None if read.draft is None else (read.draft.text, _notice_of(_answer(read.draft), names))


@dataclass
class SharedDraft:
    """Rules inferred from the first of several logs in an unknown format, used for all of them."""

    draft: Draft | None = None
    source: str = ""
    """The log that the rules were inferred from."""

    def log(self, log: EventLog, source: str, reading: Reading, timezone: str) -> EventLog:
        """Return the log of a source as read, or read with the rules if no format gives steps. Raises NotEnoughData if
        no rule can be inferred or the log contradicts one."""
        if not is_local(source):
            return log
        if _gives_steps(log):
            return _with_doubt(log, _saves_in_bars(log, [source], lambda: None))
        if self.draft is None:
            own = DraftedReading([source], reading, timezone)
            log = own.log()
            self.draft, self.source = own.draft, source
            return log
        from goodput_cli.analysis.question import Question
        from goodput_cli.api.contradicted import contradicted

        hints = reading.hints.with_draft(self.draft.text).checked()
        read = replace(reading, hints=hints).read([source], timezone)
        wrong = next(contradicted([source], hints.mappings.named[-1:], read, Question(timezone=timezone)), None)
        if wrong is not None or not _gives_steps(read):
            said = "they match no step" if wrong is None else f"{wrong.message} ({', '.join(wrong.where)})"
            make = f"`goodput check --suggest {shlex.quote(source)} > my.toml`"
            raise NotEnoughData(
                f"the rules inferred from {self.source} do not fit this log",
                cause=said,
                tip=f"create a mapping with {make}, and pass one --mapping per log",
            )
        return read

    def marked(self, comparison: Comparison) -> Comparison:
        """Return a comparison with its inferred rules and their warning. Failed gates become unjudged."""
        if self.draft is None:
            return comparison
        drafted = _answer(self.draft)
        pairs = tuple(replace(one, thresholds=_not_judged(one.thresholds)) for one in comparison.pairs)
        return replace(
            comparison, pairs=pairs, drafted=drafted, drafted_from=self.source,
            diagnostics=(_notice_of(drafted, [self.source]), *comparison.diagnostics),
        )  # fmt: skip


class _ReplayedStream:
    """Stream that can be read again from its beginning after its end was reached, if it was not too long."""

    def __init__(self, stream: BinaryIO, file: BinaryIO) -> None:
        self.whole = True
        """True if all that was read is kept."""
        self._file = file
        self._look = getattr(stream, "read1", stream.read)
        self._rewound = False

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes: as many as a pipe gives at a time."""
        if self._rewound:
            return self._file.read(size)
        piece: bytes = self._look(size)
        if self.whole:
            self.whole = self._file.tell() + len(piece) <= _MOST_KEPT
            self._file.write(piece if self.whole else b"")
        return piece

    def rewind(self) -> None:
        """Restart from the kept beginning."""
        self._rewound = True
        self._file.seek(0)


def _refuse_others(log: EventLog, names: Sequence[str]) -> None:
    """Raise NotEnoughData if the log spans no time because the sources are programs, settings or images, which may
    contain a line that looks like one of a log. Cloud Logging entries printed as YAML are not settings."""
    table = log.table
    if len(table) and int(table.time.min()) < int(table.end.max()):
        return
    from goodput_cli.events.timestamps import PRINTED_AS_YAML

    if any(PRINTED_AS_YAML in one.message for one in log.diagnostics):
        return
    from goodput_cli.sources.other_files import describe_files_without_log
    from goodput_cli.sources.walk import files_in_folder

    files = [one for name in names for one in (files_in_folder(name).logs if Path(name).is_dir() else [name])]
    said = describe_files_without_log(files)
    if said is not None:
        raise NotEnoughData.from_sentence(f"nothing was read: {said}")


def _saves_in_bars(log: EventLog, names: Sequence[str], stdin: Callable[[], BinaryIO | None]) -> Diagnostic | None:
    """Return the warning that progress bars count saves as training; None for other logs."""
    import numpy as np

    from goodput_cli.events.schema import PROGRESS_BARS, Kind

    if not any(PROGRESS_BARS in formats for formats in log.format_names):
        return None
    if np.isin(log.table.kind, (Kind.SAVE, Kind.SAVED)).any():
        return None
    from goodput_cli.api.contradicted import saves_in_bars

    return saves_in_bars(names, stdin())


def _with_doubt(log: EventLog, doubt: Diagnostic | None) -> EventLog:
    return log if doubt is None else replace(log, diagnostics=(*log.diagnostics, doubt))


def _answer(draft: Draft) -> InferredRules:
    """Return the part of an answer that describes inferred rules."""
    from goodput_cli.analysis.results import InferredRules, RejectedRule

    left = tuple(RejectedRule(one.event, one.line, one.reason) for one in draft.left_out)
    return InferredRules(draft.rules, draft.lines, left, draft.text, draft.doubts)


def _not_judged(gates: Sequence[Threshold]) -> tuple[Threshold, ...]:
    """Return gates for an answer with inferred rules: those that fail become unjudged."""
    from goodput_cli.analysis.threshold import INCONCLUSIVE

    hint = f"{INCONCLUSIVE}{_NOT_CHECKED}"
    return tuple(replace(one, met=None, value=None, hint=hint) if one.fails else one for one in gates)


def _gives_steps(log: EventLog) -> bool:
    import numpy as np

    from goodput_cli.events.schema import TEXT_PROCESS, Kind

    table = log.table
    if np.isin(table.kind, (Kind.STEP, Kind.FINISHED)).any():
        return True
    # Text with saves alone is of a checkpoint library: the program around it logs its own steps.
    is_text = np.array([process.startswith(TEXT_PROCESS) for _, process in table.writers] + [False], dtype=bool)
    return not is_text[table.writer[table.kind == Kind.SAVED]].all()


def _gives_saves(log: EventLog) -> bool:
    from goodput_cli.events.schema import Kind

    return bool((log.table.kind == Kind.SAVED).any())


def _not_drafted(log: EventLog, names: Sequence[str], lines: int, reason: str) -> EventLog:
    """Return a log without steps with the warning that no rules could be inferred; unchanged if nearly all of its lines
    are read. lines: the number of its lines. Raises NotEnoughData if it spans no time."""
    from goodput_cli.accounting.build import cause_of_last_end
    from goodput_cli.accounting.order import in_order
    from goodput_cli.analysis.account import end_in_words, no_events
    from goodput_cli.diagnostics.diagnostic import Diagnostic
    from goodput_cli.vocabulary.text import plural

    table = log.table
    seen = table.observed.listed
    if len(table) == 0 and (lines == 0 or (seen and all(one.of_host for one in seen))):
        raise no_events(log.diagnostics, table.observed)
    found = end_in_words(cause_of_last_end(in_order(table).table)) if len(table.jobs) <= 1 else ""
    why = found and f" ({found})"
    if len(table) == 0:
        of = f"{names[0]}: " if len(names) == 1 else ""
        raise NotEnoughData(f"{of}nothing was read: 0 events in {plural(lines, 'line')}{why}", cause=reason)
    read = len(set(zip(table.source.tolist(), table.line.tolist(), strict=True)))
    if lines - read < _FEW_UNREAD and not table.observed.unread_steps:
        return log
    verb = "was" if read == 1 else "were"
    said = f"{read:,} of {plural(lines, 'line')} {verb} read, but none of them is a step{why}"
    if int(table.time.min()) == int(table.end.max()):
        raise NotEnoughData(said, cause=reason)
    observed = replace(table.observed, draft_refused=True)
    noticed = (*log.diagnostics, Diagnostic.of("not_drafted", f"{said}; {reason}"))
    return replace(log, table=replace(table, observed=observed), diagnostics=noticed)


def _native(log: EventLog) -> Draft:
    """Return the draft for a log that needs none: a comment."""
    import numpy as np

    from goodput_cli.events.mappings.draft.expected import Draft
    from goodput_cli.events.schema import Kind
    from goodput_cli.vocabulary.text import plural, safe

    steps = int(np.count_nonzero(np.isin(log.table.kind, (Kind.STEP, Kind.FINISHED))))
    formats = sorted({one for names in log.format_names for one in names})
    return Draft(f"# no mapping needed: steps are read as {safe(' and '.join(formats))} ({plural(steps, 'record')})\n")


def _stem(source: str) -> str:
    return "my-log" if source == _STDIN else source.rstrip("/").rpartition("/")[2].partition(".")[0]

"""A log that is still being written: decoded as it grows, everything read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import SourceError
from goodput_cli.events.decode import Decoder
from goodput_cli.events.documents import Documents, says_something
from goodput_cli.events.hints import Hints
from goodput_cli.events.schema import EventLog
from goodput_cli.sources.base import ReadContext, SourceFilter
from goodput_cli.sources.follow import Follower, follow
from goodput_cli.vocabulary.when import AUTO


class LiveLog:
    """Follows sources; `look` reads what is new, `log` is everything so far.

    once: sources that are read a single time, such as the log of an earlier life of the job; until one could be read it
        is tried again at each look.
    notice: takes sentences for the person who watches (a file that was truncated, a network that fails).
    Raises UsageError for sources that cannot be followed and for an unknown time zone.
    """

    def __init__(
        self,
        uris: Sequence[str],
        *,
        once: Sequence[str] = (),
        timezone: str = AUTO,
        wanted: SourceFilter | None = None,
        notice: Callable[[str], None] | None = None,
        hints: Hints | None = None,
    ) -> None:
        self._notices: dict[tuple[str, str], Diagnostic] = {}
        wanted = wanted or SourceFilter()
        hints = (hints or Hints()).about(wanted.job_name)
        self._context = ReadContext(
            self._report, wanted=wanted, notice=notice, is_log=lambda head: says_something(head, hints)
        )
        self._decoder = Decoder(timezone, hints)
        self._followers = follow(uris, self._context)
        self._once = [follower for uri in once for follower in follow([uri], self._context)]
        self._documents = Documents(hints)
        self._failing: set[str] = set()  # said already
        self._looked = False

    def look(self) -> bool:
        """Read what is new; whether there was anything.

        Raises SourceError if a source cannot be read in the first look. Later it is said, and tried again.
        """
        changed = False
        failing: set[str] = set()
        for follower in (*self._once, *self._followers):
            once = follower in self._once
            try:
                changed |= self._read(follower)
                if once:
                    self._once.remove(follower)
                    follower.close()
            except SourceError as error:
                if not self._looked and not once:
                    raise
                failing.add(str(error))
        for sentence in sorted(failing - self._failing):
            self._context.say(f"{sentence} (trying again)")
        self._failing, self._looked = failing, True
        return changed

    @property
    def failing(self) -> bool:
        """Whether a source could not be read in the last look."""
        return bool(self._failing)

    def log(self) -> EventLog:
        """All events so far, and what was noticed."""
        log = self._decoder.finish(more=True)
        return EventLog(log.table, log.formats, (*self._notices.values(), *log.diagnostics))

    def close(self) -> None:
        """Let go of files that are held open."""
        for follower in (*self._once, *self._followers):
            follower.close()

    def _read(self, follower: Follower) -> bool:
        """Decode what is new; whether there was anything."""
        changed = False
        for batch in follower.look():
            for parsed in self._documents.read(batch):
                self._decoder.add(batch.source, parsed)
            changed = True
        return changed

    def _report(self, diagnostic: Diagnostic) -> None:
        self._notices[diagnostic.code, diagnostic.message] = diagnostic

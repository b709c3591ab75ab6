"""One query from the first entry to the last: pages decoded, progress told, a lost place found again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from goodput_cli.sources.base import ReadContext, Record
from goodput_cli.sources.cloud_logging.entries import records_of
from goodput_cli.sources.cloud_logging.pages import LostPlaceError, PageReader
from goodput_cli.sources.cloud_logging.query import LogQuery

ENTRIES_A_MINUTE = 60_000
"""What the quota allows: 60 reads of 1000 entries a minute and project."""
_LONG_NS = 10 * 10**9


class Patient:
    """Says how it goes to the person who waits."""

    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._first_ns = self._newest_ns = 0
        self._entries = 0
        self._said = False

    def read(self, records: list[Record], size: int) -> None:
        """Records were read, `size` bytes of them."""
        self._context.advance(size)
        self._entries += len(records)
        if records:
            self._newest_ns = ns_of(records[-1]["timestamp"])
            self._first_ns = self._first_ns or ns_of(records[0]["timestamp"])

    def waiting(self, seconds: float) -> None:
        """The quota is used up: said the first time, and when a wait is long."""
        if self._said and seconds * 10**9 < _LONG_NS:
            return
        self._said = True
        self._context.say(
            f"Cloud Logging: the quota of 60 reads a minute is used up; waiting {seconds:.0f} s and going on. "
            f"{self._entries} entries so far, {self._rest()}. A log this big is read faster from its sink (gs://…)."
        )

    def _rest(self) -> str:
        """How long it will take, as if entries were spread evenly until now."""
        done, left = self._newest_ns - self._first_ns, time.time_ns() - self._newest_ns
        if done <= 0 or left < 0:
            return f"{ENTRIES_A_MINUTE} more a minute at the most"
        minutes = self._entries * left / done / ENTRIES_A_MINUTE
        return f"about {max(1, round(minutes))} min to go at {ENTRIES_A_MINUTE} entries a minute"


class LogReader:
    """Reads queries of one log."""

    def __init__(self, pages: PageReader, patient: Patient) -> None:
        self._pages = pages
        self._patient = patient

    def read(self, query: LogQuery) -> Iterator[list[Record]]:
        """The records of a query, oldest first, a list per page that has some."""
        last: list[Record] = []
        while True:
            try:
                for records in self._read_once(query, last):
                    last = records
                    yield records
                return
            except LostPlaceError:  # ask again from the newest entry on, without the ones that are known
                if last:
                    query = replace(query, since_ns=ns_of(last[-1]["timestamp"]))

    def _read_once(self, query: LogQuery, before: list[Record]) -> Iterator[list[Record]]:
        known = {(record["timestamp"], record["insertId"]) for record in before}
        for page in self._pages.pages(query):
            records = records_of(page.entries)
            if known:
                records = [one for one in records if (one["timestamp"], one["insertId"]) not in known]
            self._patient.read(records, page.ByteSize())
            if records:
                yield records


def ns_of(timestamp: str) -> int:
    """ns since 1970 UTC of a timestamp with nine digits."""
    seconds = round(datetime.fromisoformat(timestamp[:19] + "+00:00").timestamp())
    return seconds * 10**9 + int(timestamp[20:29])

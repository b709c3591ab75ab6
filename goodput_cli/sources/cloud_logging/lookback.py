"""Whether the beginning of the job is in what was read: a look-back that is cut short is said, never silent."""

from __future__ import annotations

from dataclasses import replace

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.sources.base import ReadContext, Record
from goodput_cli.sources.cloud_logging.pages import PageReader
from goodput_cli.sources.cloud_logging.query import LogQuery, rfc3339
from goodput_cli.sources.cloud_logging.reading import ns_of

_STARTS = ("user_scheduled", "job_started")
_SOON_NS = 600 * 10**9


class Beginning:
    """Looks for the start of the job among the oldest entries."""

    def __init__(self) -> None:
        self.oldest: Record | None = None
        self._start_ns: int | None = None

    def look(self, records: list[Record]) -> None:
        """Look at some of the entries, the oldest first."""
        first = records[0]
        if self.oldest is None or first["timestamp"] < self.oldest["timestamp"]:
            self.oldest = first
        if self._start_ns is None and ns_of(first["timestamp"]) - ns_of(self.oldest["timestamp"]) <= _SOON_NS:
            start = next((one for one in records if _is_start(one.get("jsonPayload", {}))), None)
            self._start_ns = ns_of(start["timestamp"]) if start else None

    def is_known(self) -> bool:
        """Whether a start of the job was written at about the time of the oldest entry."""
        if self.oldest is None or self._start_ns is None:
            return False
        return self._start_ns - ns_of(self.oldest["timestamp"]) <= _SOON_NS


def _is_start(payload: Record) -> bool:
    return "job_start_time" in payload or payload.get("event_type") in _STARTS


def report_cut(pages: PageReader, query: LogQuery, beginning: Beginning, context: ReadContext) -> None:
    """Report `lookback_truncated` where the log has, or may have had, older entries of the job."""
    if beginning.oldest is None or query.job_name is None:
        return
    where = (beginning.oldest["insertId"],)
    if query.since_ns is not None:
        if pages.any_entry(replace(query, since_ns=None, before_ns=query.since_ns)):
            message = (
                f"--lookback reaches back to {rfc3339(query.since_ns)[:19]}Z and {query.log_id} has older entries of "
                "the job: what was before is not counted; a longer --lookback, or none, reads it"
            )
            context.report(Diagnostic.of("lookback_truncated", message, 1, where))
    elif not beginning.is_known():
        message = (
            f"the oldest entry of the job in {query.log_id}, of {beginning.oldest['timestamp'][:19]}Z, is not its "
            "start: older ones may have expired (logs are kept for 30 days by default) and are not counted"
        )
        context.report(Diagnostic.of("lookback_truncated", message, 1, where))

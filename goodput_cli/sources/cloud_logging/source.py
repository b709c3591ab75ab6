"""The source behind `cloud-logging://PROJECT/LOG_ID`, and behind a job name with no source at all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from goodput_cli.errors import SourceError, UsageError
from goodput_cli.sources.base import Batch, ReadContext, RecordBatch
from goodput_cli.sources.cloud_logging.cached import read_cached
from goodput_cli.sources.cloud_logging.credentials import Connection, connect
from goodput_cli.sources.cloud_logging.lookback import Beginning, report_cut
from goodput_cli.sources.cloud_logging.pages import PageReader
from goodput_cli.sources.cloud_logging.query import LogQuery, log_ids, rfc3339
from goodput_cli.sources.cloud_logging.reading import LogReader, Patient
from goodput_cli.vocabulary.units import NS_PER_DAY

SCHEME = "cloud-logging"


class CloudLoggingSource:
    """Reads `cloud-logging://PROJECT/LOG_ID`; an empty PROJECT is that of the credentials. With an empty LOG_ID the
    job's log is looked for under the names that libraries give it by convention."""

    def read(self, uri: str, context: ReadContext) -> Iterator[Batch]:
        """See `Source.read`. Entries of the job that the context wants, all entries of the log if it wants none."""
        project, log_id = _parse(uri, context)
        connection = connect()
        queries = _queries(connection, project, log_id, context)
        queries = [query for query in queries if _first_time(query, context)]
        return _read_all(connection, queries, context)


def _parse(uri: str, context: ReadContext) -> tuple[str, str]:
    project, _, log_id = uri.partition("://")[2].partition("/")
    wanted = context.wanted
    if not (log_id or wanted.log_name or wanted.job_name):
        raise UsageError(f"{uri}: which log? write cloud-logging://PROJECT/LOG_ID, or name the job with --job-name")
    return unquote(project), unquote(log_id)


def _queries(connection: Connection, project: str, log_id: str, context: ReadContext) -> list[LogQuery]:
    project = project or connection.project or ""
    if not project:
        hint = "write cloud-logging://PROJECT/LOG_ID, or set GOOGLE_CLOUD_PROJECT"
        raise SourceError(f"Cloud Logging: the credentials name no project; {hint}")
    wanted = context.wanted
    since = None if wanted.lookback_days is None else time.time_ns() - round(wanted.lookback_days * NS_PER_DAY)
    ids = log_ids(wanted.job_name, log_id, wanted.log_name)
    return [LogQuery(project, one, wanted.job_name, since, heartbeats=wanted.heartbeats) for one in ids]


def _first_time(query: LogQuery, context: ReadContext) -> bool:
    identity = (SCHEME, query.log_name, query.job_name)
    if identity in context.seen:
        return False
    context.seen.add(identity)
    return True


@dataclass
class _Count:
    entries: int = 0


def _read_all(connection: Connection, queries: list[LogQuery], context: ReadContext) -> Iterator[Batch]:
    count = _Count()
    try:
        for query in queries:
            yield from _read_one(connection, query, context, count)
    finally:
        connection.close()
    if not count.entries and queries:
        logs = " and ".join(query.log_id for query in queries)
        job = f" of job {queries[0].job_name}" if queries[0].job_name is not None else ""
        since = f" since {rfc3339(queries[0].since_ns)[:19]}Z (--lookback)" if queries[0].since_ns is not None else ""
        context.say(f"Cloud Logging, project {queries[0].project}: no entries{job} in {logs}{since}.")


def _read_one(connection: Connection, query: LogQuery, context: ReadContext, count: _Count) -> Iterator[Batch]:
    patient = Patient(context)
    pages = PageReader(connection.list_entries, patient.waiting, context.wait)
    beginning = Beginning()
    try:
        for records in read_cached(LogReader(pages, patient), query, context):
            count.entries += len(records)
            beginning.look(records)
            yield RecordBatch(f"{SCHEME}://{query.project}/{query.log_id}", records)
        if context.wanted.since_ns is None:
            report_cut(pages, query, beginning, context)
    finally:
        pages.close()

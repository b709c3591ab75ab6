"""What a failed request means: try again, or a sentence for a person."""

from __future__ import annotations

from enum import Enum
from typing import Any

from goodput_cli.errors import GoodputError, SourceError
from goodput_cli.sources.cloud_logging.query import LogQuery


class Fault(Enum):
    """What to do about a failed request."""

    QUOTA = "wait: too many reads"
    PASSING = "try again"
    LOST_PLACE = "the page token is not known any more"
    FINAL = "give up"


class RefusedError(SourceError):
    """The server does not take the query."""


_BY_CODE = {
    "RESOURCE_EXHAUSTED": Fault.QUOTA,
    "UNAVAILABLE": Fault.PASSING,
    "DEADLINE_EXCEEDED": Fault.PASSING,
    "INTERNAL": Fault.PASSING,
    "ABORTED": Fault.PASSING,
    "UNKNOWN": Fault.PASSING,
    "DATA_LOSS": Fault.PASSING,
    "CANCELLED": Fault.PASSING,
}
_API_OFF = ("SERVICE_DISABLED", "has not been used", "is disabled")


def kind_of(error: Any, with_token: bool) -> Fault:
    """What to do about a gRPC error; with_token: of a request that went on from a page token."""
    code = error.code().name
    if code == "INVALID_ARGUMENT" and with_token:
        return Fault.LOST_PLACE
    return _BY_CODE.get(code, Fault.FINAL)


def sentence(error: Any, query: LogQuery) -> GoodputError:
    """A gRPC error that stays, as the error that a person sees."""
    code, details = error.code().name, str(error.details() or "")
    where = f"Cloud Logging, project {query.project}"
    if code == "PERMISSION_DENIED" and any(mark in details for mark in _API_OFF):
        command = f"gcloud services enable logging.googleapis.com --project {query.project}"
        return SourceError(f"{where}: the Cloud Logging API is off; switch it on with `{command}`")
    if code == "PERMISSION_DENIED":
        return SourceError(f"{where}: no permission to read log entries; ask for the role roles/logging.viewer")
    if code == "UNAUTHENTICATED":
        hint = "run `gcloud auth application-default login`"
        return SourceError(f"{where}: the credentials are not accepted; {hint}")
    if code == "NOT_FOUND":
        return SourceError(f"{where}: there is no such project or log; check cloud-logging://PROJECT/LOG_ID")
    if code == "INVALID_ARGUMENT":
        return RefusedError(f"{where}: the project or log name is not accepted: {_short(details)}")
    if code == "RESOURCE_EXHAUSTED":
        hint = "try again later, or read the log's sink in a bucket (gs://…)"
        return SourceError(f"{where}: the read quota stays used up (60 reads a minute); {hint}")
    return SourceError(f"{where}: gave up after several tries: {code}: {_short(details)}; what was read is kept")


def _short(details: str) -> str:
    return details if len(details) <= 300 else details[:300] + "…"

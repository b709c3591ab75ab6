"""The connection to Cloud Logging, or to a server that a test stands in its place."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from goodput_cli.sources.google_credentials import find_credentials

ENDPOINT_VARIABLE = "GOODPUT_LOGGING_ENDPOINT"
"""HOST:PORT of a server to read from without encryption and credentials, for tests."""
PROJECT_VARIABLES = ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
TEST_PROJECT = "test-project"
SCOPES = ("https://www.googleapis.com/auth/logging.read", "https://www.googleapis.com/auth/cloud-platform.read-only")
_UNLIMITED = [("grpc.max_receive_message_length", -1)]


@dataclass(frozen=True)
class Connection:
    """A way to ask for pages, and the project that the credentials belong to (None: they name none).

    list_entries: gRPC's callable for ListLogEntries, from a request to a ListLogEntriesResponse.
    """

    list_entries: Any
    project: str | None
    close: Callable[[], None]


def connect() -> Connection:
    """Connect as the environment says. Raises SourceError where there are no credentials that work."""
    endpoint = os.environ.get(ENDPOINT_VARIABLE)
    if endpoint:
        import grpc

        return _connection(_project_of_environment() or TEST_PROJECT, grpc.insecure_channel(endpoint, _UNLIMITED))
    credentials, project = find_credentials("Cloud Logging", SCOPES)
    return _connection(_project_of_environment() or project, None, credentials)


def _connection(project: str | None, channel: Any, credentials: Any = None) -> Connection:
    from google.cloud.logging_v2.services.logging_service_v2.transports import LoggingServiceV2GrpcTransport
    from google.cloud.logging_v2.types import ListLogEntriesRequest, ListLogEntriesResponse

    transport = LoggingServiceV2GrpcTransport(channel=channel, credentials=credentials)
    list_entries = transport.grpc_channel.unary_unary(
        "/google.logging.v2.LoggingServiceV2/ListLogEntries",
        request_serializer=ListLogEntriesRequest.serialize,
        response_deserializer=ListLogEntriesResponse.pb().FromString,
    )
    return Connection(list_entries, project, transport.close)


def _project_of_environment() -> str | None:
    return next((os.environ[name] for name in PROJECT_VARIABLES if os.environ.get(name)), None)

"""The connection to Cloud Logging: credentials found once, up front, within seconds even where nobody answers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from goodput_cli.errors import SourceError
from goodput_cli.sources.cloud_logging.wire import page_class

ENDPOINT_VARIABLE = "GOODPUT_LOGGING_ENDPOINT"
"""HOST:PORT of a server to read from without encryption and credentials, for tests."""
PROJECT_VARIABLES = ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
TEST_PROJECT = "test-project"
FIND_SECONDS = 3.0
"""How long credentials may be looked for. The metadata server of a real VM answers within milliseconds."""
TOKEN_SECONDS = 15.0
SCOPES = ("https://www.googleapis.com/auth/logging.read", "https://www.googleapis.com/auth/cloud-platform.read-only")
_LOG_IN = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file"
_HURRY = {"GCE_METADATA_TIMEOUT": "1", "GCE_METADATA_DETECT_RETRIES": "1"}
_UNLIMITED = [("grpc.max_receive_message_length", -1)]

T = TypeVar("T")


@dataclass(frozen=True)
class Connection:
    """A way to ask for pages, and the project that the credentials belong to (None: they name none).

    list_entries: gRPC's callable for ListLogEntries. Its pages hold their entries as bytes (`wire.page_class`).
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
    credentials, project = _credentials()
    return _connection(_project_of_environment() or project, None, credentials)


def _connection(project: str | None, channel: Any, credentials: Any = None) -> Connection:
    from google.cloud.logging_v2.services.logging_service_v2.transports import LoggingServiceV2GrpcTransport
    from google.cloud.logging_v2.types import ListLogEntriesRequest

    transport = LoggingServiceV2GrpcTransport(channel=channel, credentials=credentials)
    list_entries = transport.grpc_channel.unary_unary(
        "/google.logging.v2.LoggingServiceV2/ListLogEntries",
        request_serializer=ListLogEntriesRequest.serialize,
        response_deserializer=page_class().FromString,
    )
    return Connection(list_entries, project, transport.close)


def _project_of_environment() -> str | None:
    return next((os.environ[name] for name in PROJECT_VARIABLES if os.environ.get(name)), None)


def _credentials() -> tuple[Any, str | None]:
    """Credentials with a token that was just made: a login that has ended is found here, not in the first read."""
    import google.auth.exceptions as failures

    try:
        credentials, project = _within(FIND_SECONDS, _find)
        on_a_vm = "compute_engine" in type(credentials).__module__
        _within(FIND_SECONDS if on_a_vm else TOKEN_SECONDS, lambda: _make_token(credentials))
    except failures.DefaultCredentialsError as error:
        raise SourceError(f"Cloud Logging: no Google Cloud credentials found; {_LOG_IN}") from error
    except failures.RefreshError as error:
        raise SourceError(f"Cloud Logging: the credentials are not accepted any more; {_LOG_IN}") from error
    except (failures.TransportError, TimeoutError) as error:
        message = "Cloud Logging: no credentials: the server that gives them does not answer; check the network, or"
        raise SourceError(f"{message} {_LOG_IN}") from error
    except (failures.GoogleAuthError, OSError, ValueError) as error:
        raise SourceError(f"Cloud Logging: the credentials cannot be used ({error}); {_LOG_IN}") from error
    return credentials, project


def _find() -> tuple[Any, str | None]:
    import google.auth

    added = [name for name in _HURRY if name not in os.environ]
    os.environ.update({name: _HURRY[name] for name in added})  # read when the library looks for a metadata server
    try:
        credentials, project = google.auth.default(scopes=SCOPES)
        return credentials, project
    finally:
        for name in added:
            os.environ.pop(name, None)


def _make_token(credentials: Any) -> None:
    from google.auth.transport.requests import Request

    if not credentials.valid:
        credentials.refresh(Request())


def _within(seconds: float, work: Callable[[], T]) -> T:
    """The result of `work`; TimeoutError if it takes longer. What goes on then never keeps the process alive."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return results[0]

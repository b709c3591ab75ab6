"""Credentials for Google Cloud: looked up once, before any reading, with a time limit of seconds in case the metadata
server never answers.

Also the connection to Cloud Logging, or to a test server.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Any, TypeVar

from goodput_cli.errors import SourceError

FIND_SECONDS = 3.0
"""Time limit of the search for credentials. The metadata server of a real VM answers within milliseconds."""
TOKEN_SECONDS = 15.0
"""Time limit of a sign-in over the network."""
_PATIENCE = {"GCE_METADATA_TIMEOUT": "1", "GCE_METADATA_DETECT_RETRIES": "1"}
"""Variables that limit the library's search for a metadata server: 12 s become 1."""
KEY_FILE_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
_SIGN_IN = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file"

Result = TypeVar("Result")


def find_credentials(place: str, scopes: Sequence[str]) -> tuple[Any, str | None]:
    """Return the credentials of this environment, with a token, and their project (None: unknown).

    Raises SourceError, with `place` in front, if there are none, they are rejected, or no server answers in time.
    """
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, RefreshError

    _check_key_file(place)
    try:
        credentials, project = within(FIND_SECONDS, lambda: _ask_library(scopes))
        on_a_vm = "compute_engine" in type(credentials).__module__
        within(FIND_SECONDS if on_a_vm else TOKEN_SECONDS, lambda: _make_token(credentials))
    except DefaultCredentialsError as error:
        raise SourceError(f"{place}: no Google Cloud credentials found", tip=_SIGN_IN) from error
    except RefreshError as error:
        raise SourceError(f"{place}: the credentials are no longer accepted", tip=_SIGN_IN) from error
    except (GoogleAuthError, TimeoutError) as error:
        hint = "the credentials server does not answer; check the network, or"
        raise SourceError(f"{place}: {hint} {_SIGN_IN}") from error
    except (OSError, ValueError) as error:
        raise SourceError(f"{place}: the credentials cannot be used ({error})", tip=_SIGN_IN) from error
    return credentials, project


def _check_key_file(place: str) -> None:
    """Check the key file in the environment variable. Raises SourceError with its path and the problem."""
    path = os.environ.get(KEY_FILE_VARIABLE)
    if not path:
        return
    named = f"{place}: {KEY_FILE_VARIABLE} names {path}, which"
    try:
        with open(path, encoding="utf-8") as file:
            key = json.load(file)
    except FileNotFoundError:
        raise SourceError(f"{named} does not exist", tip="fix the path, or unset the variable") from None
    except OSError as error:
        raise SourceError(f"{named} cannot be read: {error.strerror}", tip="fix it, or unset the variable") from None
    except (ValueError, RecursionError):
        raise SourceError(f"{named} is not JSON", tip="use the downloaded key file") from None
    if not isinstance(key, dict) or "type" not in key:
        raise SourceError(f"{named} is not a key file: it has no `type`", tip="use the downloaded key file")


def _ask_library(scopes: Sequence[str]) -> tuple[Any, str | None]:
    import google.auth

    added = [name for name in _PATIENCE if name not in os.environ]
    os.environ.update({name: _PATIENCE[name] for name in added})
    credentials: Any
    try:
        credentials, project = google.auth.default(scopes=scopes)
    finally:
        for name in added:
            os.environ.pop(name, None)
    return credentials, project


def _make_token(credentials: Any) -> None:
    """Create a token, so that an expired login is detected here, not in the first read."""
    from google.auth.transport.requests import Request

    if not credentials.valid:
        credentials.refresh(Request())


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """Return the result of `work`; raise TimeoutError if it takes longer. A running call never keeps the process
    alive."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return results[0]


ENDPOINT_VARIABLE = "GOODPUT_LOGGING_ENDPOINT"
"""HOST:PORT of a server to read from without encryption and credentials, for tests."""
PROJECT_VARIABLES = ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
TEST_PROJECT = "test-project"
SCOPES = ("https://www.googleapis.com/auth/logging.read", "https://www.googleapis.com/auth/cloud-platform.read-only")
_UNLIMITED = [("grpc.max_receive_message_length", -1)]


@dataclass(frozen=True)
class Connection:
    """The callable that requests pages, and the project of the credentials (None: unknown).

    list_entries: gRPC's callable for ListLogEntries, from a request to a ListLogEntriesResponse.
    """

    list_entries: Any
    project: str | None
    close: Callable[[], None]


def connect() -> Connection:
    """Connect with the credentials of the environment. Raises SourceError without valid credentials."""
    endpoint = os.environ.get(ENDPOINT_VARIABLE)
    named = next((os.environ[name] for name in PROJECT_VARIABLES if os.environ.get(name)), None)
    if endpoint:
        import grpc

        return _connection(named or TEST_PROJECT, grpc.insecure_channel(endpoint, _UNLIMITED))
    credentials, project = find_credentials("Cloud Logging", SCOPES)
    return _connection(named or project, None, credentials)


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

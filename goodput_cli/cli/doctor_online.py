"""What answers over the network: the credentials for Google Cloud and Amazon, and Cloud Logging. Bounded by seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from goodput_cli.cli.doctor import AMAZON, GOOGLE, Finding, amazon, google
from goodput_cli.errors import GoodputError, SourceError
from goodput_cli.sources.google_credentials import within
from goodput_cli.vocabulary.units import NS_PER_DAY

LOGGING = "Cloud Logging"
_SECONDS = 10.0
"""How long one of the questions may take, looking for credentials included."""
_ANSWER_SECONDS = 5.0
_NETWORK = "check the network, or the proxy"


def online_findings() -> Iterator[Finding]:
    """Credentials tried, and one entry of the last day asked of Cloud Logging where there is a project."""
    from goodput_cli.sources.cloud_logging.credentials import ENDPOINT_VARIABLE

    at_home = google()  # a key file that is named and is not there: nothing else is tried
    endpoint = os.environ.get(ENDPOINT_VARIABLE)
    if at_home.state == "broken":
        yield at_home
    elif endpoint:
        yield _tried(LOGGING, lambda: f"{_ask_logging()}, at {endpoint} ({ENDPOINT_VARIABLE})")
    else:
        yield from _google()
    yield _amazon()


def _google() -> Iterator[Finding]:
    yield (tried := _tried(GOOGLE, _ask_google))
    yield (
        _tried(LOGGING, _ask_logging) if tried.state == "ok" else Finding("none", LOGGING, "not asked: no credentials")
    )


def _amazon() -> Finding:
    at_home = amazon()
    return at_home if "extra s3" in at_home.detail else _tried(AMAZON, _ask_amazon)


def _tried(what: str, ask: Callable[[], str]) -> Finding:
    try:
        return Finding("ok", what, within(_SECONDS, ask))
    except NotThereError as error:
        return Finding("none", what, str(error))
    except TimeoutError:
        return Finding("broken", what, f"no answer within {_SECONDS:g} s: {_NETWORK}")
    except GoodputError as error:
        return Finding("broken", what, str(error))


class NotThereError(SourceError):
    """There are no credentials, which may be as it should be."""


def _ask_google() -> str:
    from google.auth.exceptions import DefaultCredentialsError

    from goodput_cli.sources.cloud_logging.credentials import SCOPES
    from goodput_cli.sources.google_credentials import find_credentials

    try:
        _, project = find_credentials("Google Cloud", SCOPES)
    except SourceError as error:
        if isinstance(error.__cause__, DefaultCredentialsError):
            raise NotThereError("none found; gcloud auth application-default login makes them") from error
        raise
    return f"accepted; project {project or 'not named: set GOOGLE_CLOUD_PROJECT'}"


def _ask_logging() -> str:
    import grpc

    from goodput_cli.sources.cloud_logging.credentials import connect
    from goodput_cli.sources.cloud_logging.faults import Fault, kind_of, sentence
    from goodput_cli.sources.cloud_logging.query import LogQuery, rfc3339

    connection = connect()
    try:
        if connection.project is None:
            raise NotThereError("not asked: no project is named; set GOOGLE_CLOUD_PROJECT")
        since = rfc3339(time.time_ns() - NS_PER_DAY)
        connection.list_entries(_first_entry(connection.project, since), timeout=_ANSWER_SECONDS)
    except grpc.RpcError as error:
        query = LogQuery(connection.project or "", "")
        if kind_of(error, with_token=False) is not Fault.PASSING:
            raise sentence(error, query) from error
        raise SourceError(f"project {query.project}: no answer ({error.code().name}): {_NETWORK}") from error
    finally:
        connection.close()
    return f"project {connection.project} can be read"


def _first_entry(project: str, since: str) -> object:
    from google.cloud.logging_v2.types import ListLogEntriesRequest

    return ListLogEntriesRequest(
        resource_names=[f"projects/{project}"],
        filter=f'timestamp>="{since}"',
        order_by="timestamp asc",
        page_size=1,
    )


def _ask_amazon() -> str:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError
    from botocore.exceptions import ConnectionError as NotConnectedError

    config = Config(connect_timeout=_ANSWER_SECONDS, read_timeout=_ANSWER_SECONDS, retries={"total_max_attempts": 1})
    try:
        return f"accepted; {boto3.client('sts', config=config).get_caller_identity()['Arn']}"
    except NoCredentialsError as error:
        raise NotThereError("none found; `aws configure` makes them") from error
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "refused")
        raise SourceError(f"not accepted ({code}); run `aws sso login` or `aws configure`") from error
    except (NotConnectedError, HTTPClientError) as error:
        raise SourceError(f"no answer ({_one_line(error)}): {_NETWORK}") from error
    except (BotoCoreError, ValueError) as error:
        raise SourceError(f"cannot be used ({_one_line(error)}); see `aws configure`") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]

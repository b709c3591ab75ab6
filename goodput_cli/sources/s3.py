"""Amazon S3 and compatible stores, with boto3. `AWS_ENDPOINT_URL_S3` selects another server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

from goodput_cli.errors import SourceError, to_install
from goodput_cli.sources.object_store import (
    CONNECT_SECONDS,
    CONNECTIONS,
    READ_SECONDS,
    TRANSIENT_STATUS,
    DeniedError,
    MissingError,
    StoredObject,
    StoreRefusedError,
    check_address,
    within_limits,
)
from goodput_cli.sources.remote import TransientError

try:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        ConnectTimeoutError,
        EndpointConnectionError,
        HTTPClientError,
        NoCredentialsError,
    )
except ImportError as error:
    raise SourceError("s3:// needs the extra s3", tip=f"install it with {to_install('s3')}") from error

Result = TypeVar("Result")

_CHUNK = 1 << 20
_GONE = (404, 412)
_DENIED = (401, 403)


class AmazonStore:
    """Amazon S3 as an `ObjectStore`. A version is an ETag: equal for equal content."""

    list_permission = "s3:ListBucket"
    get_permission = "s3:GetObject"

    def __init__(self) -> None:
        check_address("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": 1},  # retries are the same for all stores
            max_pool_connections=CONNECTIONS,
        )
        try:
            self._client: Any = boto3.client("s3", config=config)
        except (BotoCoreError, ValueError) as error:
            raise SourceError(f"s3://: the AWS settings are not usable ({error})", tip="see `aws configure`") from error

    def list_page(self, bucket: str, prefix: str, token: str | None) -> tuple[list[StoredObject], str | None]:
        """List one page (see `ObjectStore.list_page`)."""
        place = {"ContinuationToken": token} if token else {}
        answer = _request(lambda: self._client.list_objects_v2(Bucket=bucket, Prefix=prefix, **place))
        objects = [StoredObject(one["Key"], one["Size"], one["ETag"]) for one in answer.get("Contents", ())]
        return objects, answer.get("NextContinuationToken")

    def newest(self, bucket: str, name: str) -> StoredObject | None:
        """Return the newest version (see `ObjectStore.newest`)."""
        try:
            answer = _request(lambda: self._client.head_object(Bucket=bucket, Key=name))
        except MissingError:
            return None
        return StoredObject(name, answer["ContentLength"], answer["ETag"])

    def get(self, bucket: str, wanted: StoredObject, start: int, end: int) -> bytes:
        """Return bytes (see `ObjectStore.get`)."""
        part = {} if start == 0 and end == wanted.size else {"Range": f"bytes={start}-{end - 1}"}

        def request() -> bytes:
            answer = self._client.get_object(Bucket=bucket, Key=wanted.name, IfMatch=wanted.version, **part)
            with closing(answer["Body"]) as body:
                return b"".join(within_limits(body.iter_chunks(_CHUNK)))

        return _request(request)


def _request(request: Callable[[], Result]) -> Result:
    """Return the response to a request, with errors converted to those of `ObjectStore`."""
    try:
        return request()
    except ClientError as error:
        raise _refused(error) from error
    except NoCredentialsError as error:
        raise SourceError(
            "s3://: no AWS credentials found", tip="run `aws configure`, or set AWS_ACCESS_KEY_ID"
        ) from error
    # or a time limit, or a truncated body
    except (EndpointConnectionError, ConnectTimeoutError, HTTPClientError) as error:
        raise TransientError(_one_line(error)) from error
    except BotoCoreError as error:
        if type(error).__name__ != "IncompleteReadError":
            raise StoreRefusedError(_one_line(error)) from error
        raise TransientError(_one_line(error)) from error


def _refused(error: Any) -> Exception:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status in _GONE:
        return MissingError(_one_line(error))
    if status in TRANSIENT_STATUS or error.response.get("Error", {}).get("Code") == "SlowDown":
        return TransientError(_one_line(error))
    return DeniedError(_one_line(error)) if status in _DENIED else StoreRefusedError(_one_line(error))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]

"""Google Cloud Storage, with its official client. `STORAGE_EMULATOR_HOST` (tests) selects another server."""

from __future__ import annotations

import http.client
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from google.api_core.exceptions import Forbidden, GoogleAPICallError, NotFound, PreconditionFailed, Unauthorized
from google.auth.exceptions import GoogleAuthError, InvalidOperation
from google.cloud.storage import Client
from google.cloud.storage.exceptions import DataCorruption

from goodput_cli.sources.google_credentials import find_credentials
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

Result = TypeVar("Result")

TIMEOUT = (CONNECT_SECONDS, READ_SECONDS)
_LIST_FIELDS = "items(name,size,generation),nextPageToken"
_SCOPES = ("https://www.googleapis.com/auth/devstorage.read_only",)
_CHUNK = 1 << 20
EMULATOR = "STORAGE_EMULATOR_HOST"


class GoogleStore:
    """Google Cloud Storage as an `ObjectStore`. A version is a generation."""

    list_permission = "storage.objects.list"
    get_permission = "storage.objects.get"

    def __init__(self) -> None:
        check_address(EMULATOR)
        if os.environ.get(EMULATOR):
            self._client = Client(project="emulated")
        else:
            credentials, _project = find_credentials("gs://", _SCOPES)
            self._client = Client(project="-", credentials=credentials)  # reading needs no project
        session: Any = self._client._http
        # a connection per thread: the default pool of ten would discard and reopen connections
        for scheme in ("https://", "http://"):
            adapter = type(session.get_adapter(scheme))
            session.mount(scheme, adapter(pool_connections=2, pool_maxsize=CONNECTIONS))
        # Disable requests for traces: since 3.13, threads of the client look up each bucket's project and location.
        # They retry for two minutes without an answer, and need a permission that reading does not.
        self._client._bucket_metadata_cache = None
        session.hooks["response"].append(_check_response)

    def list_page(self, bucket: str, prefix: str, token: str | None) -> tuple[list[StoredObject], str | None]:
        """List one page (see `ObjectStore.list_page`)."""

        def request() -> tuple[list[StoredObject], str | None]:
            listing = self._client.list_blobs(
                bucket, prefix=prefix, page_token=token, fields=_LIST_FIELDS, timeout=TIMEOUT, retry=None
            )
            objects = [_stored(blob) for blob in next(listing.pages, ())]
            return objects, listing.next_page_token

        return _request(request)

    def newest(self, bucket: str, name: str) -> StoredObject | None:
        """Return the newest version (see `ObjectStore.newest`)."""
        holder = self._client.bucket(bucket)
        blob = _request(lambda: holder.get_blob(name, timeout=TIMEOUT, retry=None))
        return None if blob is None else _stored(blob)

    def get(self, bucket: str, wanted: StoredObject, start: int, end: int) -> bytes:
        """Return bytes (see `ObjectStore.get`). A whole object is checked against its checksum."""
        blob = self._client.bucket(bucket).blob(wanted.name, generation=int(wanted.version))
        whole = start == 0 and end == wanted.size
        part: dict[str, int] = {} if whole else {"start": start, "end": end - 1}
        options: dict[str, Any] = {"raw_download": True, "single_shot_download": True}
        data: bytes = _request(lambda: blob.download_as_bytes(**part, **options, timeout=TIMEOUT, retry=None))
        return data


def _stored(blob: Any) -> StoredObject:
    return StoredObject(blob.name, int(blob.size or 0), str(blob.generation))


def _check_response(response: Any, **_: Any) -> Any:
    """Check a response before it is read: limit its body, and reject redirects."""
    if response.is_redirect:
        from goodput_cli.record.sinks.http import host_of, may_follow, moved_to

        place = moved_to(response.url, response.headers["Location"])
        if not may_follow(response.url, place):
            response.close()
            raise StoreRefusedError(f"HTTP {response.status_code}: a redirect to {host_of(place)}")
    raw = response.raw
    read, stream = raw.read, raw.stream

    def limited(*some: Any, **named: Any) -> Iterator[bytes]:
        try:
            yield from within_limits(stream(*some, **named))
        except Exception:
            response.close()
            raise

    def read_limited(amt: int | None = None, **named: Any) -> Any:
        return b"".join(limited(_CHUNK, **named)) if amt is None else read(amt, **named)

    raw.stream, raw.read = limited, read_limited
    return response


def _request(request: Callable[[], Result]) -> Result:
    """Return the response to a request, with errors converted to those of `ObjectStore`."""
    try:
        return request()
    except (NotFound, PreconditionFailed) as error:
        raise MissingError(_reason(error)) from error
    except (Forbidden, Unauthorized, InvalidOperation) as error:
        raise DeniedError(_reason(error)) from error
    except Exception as error:
        if _is_transient(error):
            raise TransientError(_reason(error), _asked_pause(error)) from error
        if isinstance(error, GoogleAPICallError | GoogleAuthError | ValueError):
            raise StoreRefusedError(_reason(error)) from error
        raise


def _is_transient(error: Exception) -> bool:
    if isinstance(error, GoogleAPICallError):
        return error.code in TRANSIENT_STATUS
    if isinstance(error, GoogleAuthError):
        return bool(getattr(error, "retryable", False))
    from_network = isinstance(error, OSError | http.client.HTTPException | DataCorruption)
    # errors inside a body have types of a library that is not one of our dependencies
    return from_network or type(error).__module__.partition(".")[0] == "urllib3"


def _asked_pause(error: Exception) -> float | None:
    response = getattr(error, "response", None)
    text = getattr(response, "headers", {}).get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def _reason(error: Exception) -> str:
    """Return one short line about an error of the client."""
    text = getattr(error, "message", None) or str(error)
    code = f"HTTP {error.code}: " if isinstance(error, GoogleAPICallError) and error.code else ""
    return code + " ".join(str(text).split())[:300]

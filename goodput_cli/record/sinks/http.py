"""HTTP requests with `urllib`, shared by all of goodput, and credentials for Google Cloud.

A response is limited in bytes and in time. A redirect never takes a request or its credentials to another host: only a
GET is redirected, from http to https of the same host. Imported with the first request, because `urllib.request`
imports a hundred modules.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from base64 import b64encode
from functools import lru_cache
from http.client import HTTPException
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from ..queues import UnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_SECONDS = 10.0
"""Maximum time between two bytes, and by default for the whole response."""
MOST_BYTES = 1 << 16
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_METADATA = "http://{}/computeMetadata/v1/{}"
_LASTING = frozenset((400, 401, 403, 404))
_MOVED = frozenset((301, 302, 303, 307, 308))


class RequestRefusedError(UnavailableError):
    """Raised for a response that is not successful."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"the server answers {status}", lasting=status in _LASTING)
        self.status = status
        self.body = body


class HttpResponse:
    """A response of a server. whole: False if `data` was cut at the limits."""

    def __init__(self, status: int, headers: Any, data: bytes, whole: bool) -> None:
        self.status = status
        self.headers = headers
        self.data = data
        self.whole = whole


class _RawResponseHandler(urllib.request.HTTPErrorProcessor):
    """Handler that returns error and redirect responses instead of raising."""

    def http_response(self, request: Any, response: Any) -> Any:  # noqa: ARG002 - the signature of its base
        """Return the response unchanged."""
        return response

    https_response = http_response


def ask(
    url: str,
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    method: str | None = None,
    *,
    seconds: float = TIMEOUT_SECONDS,
    most: int = MOST_BYTES,
    proxies: bool = True,
) -> HttpResponse:
    """Return the response to a request, with any status except a redirect. An account in the URL becomes basic
    authentication.

    seconds: between two bytes, and for the body. most: maximum bytes of the body. Raises Unavailable if there is no
    response, or a redirect that is not followed; the message contains the new host.
    """
    try:
        request = _request(url, data, headers or {}, method)
        with _opener(proxies).open(request, timeout=seconds) as found:
            answer = HttpResponse(found.status, found.headers, *_read(found, most, time.monotonic() + seconds))
        if answer.status not in _MOVED:
            return answer
        place = moved_to(request.full_url, answer.headers.get("Location", ""))
        followed = request.get_method() in ("GET", "HEAD") and may_follow(request.full_url, place)
    except (OSError, ValueError, HTTPException) as error:
        raise UnavailableError(_reason(error)) from None
    if not followed:
        raise UnavailableError(f"the server answers {answer.status} (redirect to {host_of(place)})", lasting=True)
    return ask(place, None, headers, method, seconds=seconds, most=most, proxies=proxies)


@lru_cache
def _opener(proxies: bool) -> urllib.request.OpenerDirector:
    """Return the opener of connections, cached because it reads the machine's certificates."""
    others = () if proxies else (urllib.request.ProxyHandler({}),)
    return urllib.request.build_opener(_RawResponseHandler, *others)


def _request(url: str, data: bytes | None, headers: Mapping[str, str], method: str | None) -> urllib.request.Request:
    parts = urlsplit(url)
    account, at, host = parts.netloc.rpartition("@")
    named = {**headers}
    if at and "authorization" not in map(str.lower, named):
        name, _, password = account.partition(":")
        named["Authorization"] = basic(unquote(name), unquote(password))
    return urllib.request.Request(parts._replace(netloc=host).geturl(), data=data, headers=named, method=method)


def basic(name: str, password: str) -> str:
    """Return the `Authorization` header of an account."""
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


def _read(answer: Any, most: int, until: float) -> tuple[bytes, bool]:
    """Return the body until the deadline (monotonic, s), and True if it is complete."""
    data, length = bytearray(), answer.length
    while len(data) != length:
        if len(data) >= most or time.monotonic() >= until:
            return bytes(data), False
        room = (most if length is None else min(most, length)) - len(data)
        part = answer.read1(min(room, 1 << 16))  # the available bytes: a slow server cannot block the read
        if not part:
            return bytes(data), length is None
        data += part
    return bytes(data), True


def moved_to(url: str, location: str) -> str:
    """Return the target of a redirect from a URL. Raises ValueError."""
    place = urljoin(url, location)
    urlsplit(place)
    return place


def may_follow(url: str, place: str) -> bool:
    """Return True if a redirect goes to https of the same host."""
    here, there = urlsplit(url), urlsplit(place)
    return (here.scheme, there.scheme) == ("http", "https") and here.hostname == there.hostname


def host_of(url: str) -> str:
    """Return the scheme, host and port of a URL for display, because the rest may contain secrets; "" if it has
    none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    shown = "".join(one if one.isprintable() else "?" for one in host[:253])
    return f"{parts.scheme}://{f'[{shown}]' if ':' in shown else shown}{'' if port is None else f':{port}'}"


def post(url: str, body: bytes, content_type: str, token: str, more: Mapping[str, str] | None = None) -> bytes:
    """Return the body of a successful response. more: further headers. Raises Refused, and Unavailable without a
    response in time."""
    headers = {**(more or {}), "Content-Type": content_type}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return _successful(ask(url, body, headers))


def _successful(answer: HttpResponse) -> bytes:
    if not 200 <= answer.status < 300:
        raise RequestRefusedError(answer.status, answer.data)
    return answer.data


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    return f"no answer ({getattr(reason, 'strerror', None) or type(reason).__name__})"


class Identity:
    """A token, from google-auth if installed, otherwise from the machine's metadata server; cached until it expires."""

    def __init__(self) -> None:
        self._credentials: Any = None
        self._project = ""
        self._token = ""
        self._until = 0.0

    def token(self) -> str:
        """Return a valid token. Raises Unavailable."""
        if time.monotonic() >= self._until:
            self._renew()
        return self._token

    def project(self) -> str:
        """Return the project of the environment. Raises Unavailable."""
        if not self._project:
            self.token()
        if not self._project:
            self._project = metadata("project/project-id").decode()
        return self._project

    def forget(self) -> None:
        """Forget a token that was rejected."""
        self._until = 0.0

    def _renew(self) -> None:
        try:
            import google.auth
        except ImportError:
            answer = json.loads(metadata("instance/service-accounts/default/token"))
            self._token = answer["access_token"]
            self._until = time.monotonic() + max(0, answer.get("expires_in", 0) - 60)
        else:
            self._from_library(google.auth)

    def _from_library(self, auth: Any) -> None:
        try:
            if self._credentials is None:
                self._credentials, project = auth.default(scopes=_SCOPES)
                self._project = self._project or project or ""
            self._credentials.refresh(_transport)
        except Exception as error:  # exceptions of google-auth and its dependencies
            raise UnavailableError(f"no Google Cloud credentials ({type(error).__name__})", lasting=True) from None
        self._token = self._credentials.token
        self._until = time.monotonic() + 300


def _transport(
    url: str, method: str = "GET", body: Any = None, headers: Any = None, timeout: float | None = None, **_: Any
) -> HttpResponse:
    """Send a request for google-auth, so that it needs no other library for that."""
    data = body.encode() if isinstance(body, str) else body
    return ask(url, data, headers, method, seconds=timeout or TIMEOUT_SECONDS)


def metadata(path: str, seconds: float = 3) -> bytes:
    """Return a value from the metadata server of the machine. Raises Unavailable."""
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    url = _METADATA.format(host, path)
    try:
        return _successful(ask(url, None, {"Metadata-Flavor": "Google"}, seconds=seconds, proxies=False))
    except UnavailableError as error:
        raise UnavailableError(f"no Google Cloud credentials ({error})", lasting=True) from None

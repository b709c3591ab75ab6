"""Asking over HTTP by `urllib`: one way for all of goodput that asks by itself, and who we are at Google Cloud.

An answer is read up to a limit of bytes and of time. No redirect takes a request, or who we are, anywhere else: only
from http to https of the same host, and only a GET. Imported with the first request: `urllib.request` brings a hundred
modules.
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

from ..queues import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_SECONDS = 10.0
"""Between two bytes, and for all of an answer where nothing else is said."""
MOST_BYTES = 1 << 16
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_METADATA = "http://{}/computeMetadata/v1/{}"
_LASTING = frozenset((400, 401, 403, 404))
_MOVED = frozenset((301, 302, 303, 307, 308))


class Refused(Unavailable):
    """The server answered, and not with success."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"the server answers {status}", lasting=status in _LASTING)
        self.status = status
        self.body = body


class Answer:
    """What a server answered. whole: whether `data` is all of it, and not what came within the limits."""

    def __init__(self, status: int, headers: Any, data: bytes, whole: bool) -> None:
        self.status = status
        self.headers = headers
        self.data = data
        self.whole = whole


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Leaves errors and redirects to us."""

    def http_response(self, request: Any, response: Any) -> Any:  # noqa: ARG002 - the signature of its base
        """The answer as it came."""
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
) -> Answer:
    """The answer to a request, of whatever status but a redirect. An account in the URL becomes basic authentication.

    seconds: between two bytes, and for the body. most: bytes of the body that are read. Raises Unavailable: nobody
    answers, or the answer is a redirect that is not followed; it names the new host.
    """
    try:
        request = _request(url, data, headers or {}, method)
        with _opener(proxies).open(request, timeout=seconds) as found:
            answer = Answer(found.status, found.headers, *_read(found, most, time.monotonic() + seconds))
        if answer.status not in _MOVED:
            return answer
        place = moved_to(request.full_url, answer.headers.get("Location", ""))
        followed = request.get_method() in ("GET", "HEAD") and may_follow(request.full_url, place)
    except (OSError, ValueError, HTTPException) as error:
        raise Unavailable(_said(error)) from None
    if not followed:
        raise Unavailable(f"the server answers {answer.status} (redirect to {host_of(place)})", lasting=True)
    return ask(place, None, headers, method, seconds=seconds, most=most, proxies=proxies)


@lru_cache
def _opener(proxies: bool) -> urllib.request.OpenerDirector:
    """What opens connections; kept, for it reads the machine's certificates."""
    others = () if proxies else (urllib.request.ProxyHandler({}),)
    return urllib.request.build_opener(_AnyStatus, *others)


def _request(url: str, data: bytes | None, headers: Mapping[str, str], method: str | None) -> urllib.request.Request:
    parts = urlsplit(url)
    account, at, host = parts.netloc.rpartition("@")
    named = {**headers}
    if at and "authorization" not in map(str.lower, named):
        name, _, password = account.partition(":")
        named["Authorization"] = basic(unquote(name), unquote(password))
    return urllib.request.Request(parts._replace(netloc=host).geturl(), data=data, headers=named, method=method)


def basic(name: str, password: str) -> str:
    """The header `Authorization` of an account."""
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


def _read(answer: Any, most: int, until: float) -> tuple[bytes, bool]:
    """The body as far as it comes until then (monotonic, s), and whether that is all of it."""
    data, length = bytearray(), answer.length
    while len(data) != length:
        if len(data) >= most or time.monotonic() >= until:
            return bytes(data), False
        room = (most if length is None else min(most, length)) - len(data)
        part = answer.read1(min(room, 1 << 16))  # what is there: bytes that come one by one do not hold us
        if not part:
            return bytes(data), length is None
        data += part
    return bytes(data), True


def moved_to(url: str, location: str) -> str:
    """Where a redirect leads from a URL. Raises ValueError."""
    place = urljoin(url, location)
    urlsplit(place)
    return place


def may_follow(url: str, place: str) -> bool:
    """Whether a redirect stays where we meant to ask: from http to https of the same host."""
    here, there = urlsplit(url), urlsplit(place)
    return (here.scheme, there.scheme) == ("http", "https") and here.hostname == there.hostname


def host_of(url: str) -> str:
    """What people see of a URL, which may hold secrets: its scheme, host and port. "" for none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    shown = "".join(one if one.isprintable() else "?" for one in host[:253])
    return f"{parts.scheme}://{f'[{shown}]' if ':' in shown else shown}{'' if port is None else f':{port}'}"


def post(url: str, body: bytes, content_type: str, token: str, more: Mapping[str, str] | None = None) -> bytes:
    """The body of a successful answer. more: further headers. Raises Refused, and Unavailable where nobody answers in
    time."""
    headers = {**(more or {}), "Content-Type": content_type}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return _successful(ask(url, body, headers))


def _successful(answer: Answer) -> bytes:
    if not 200 <= answer.status < 300:
        raise Refused(answer.status, answer.data)
    return answer.data


def _said(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    return f"no answer ({getattr(reason, 'strerror', None) or type(reason).__name__})"


class Identity:
    """A token, from google-auth where it is installed, else from the machine's metadata server; kept until it ends."""

    def __init__(self) -> None:
        self._credentials: Any = None
        self._project = ""
        self._token = ""
        self._until = 0.0

    def token(self) -> str:
        """A valid token. Raises Unavailable."""
        if time.monotonic() >= self._until:
            self._renew()
        return self._token

    def project(self) -> str:
        """The project of the environment. Raises Unavailable."""
        if not self._project:
            self.token()
        if not self._project:
            self._project = metadata("project/project-id").decode()
        return self._project

    def forget(self) -> None:
        """The token was refused."""
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
        except Exception as error:  # google-auth's own, and those of what it stands on
            raise Unavailable(f"no Google Cloud credentials ({type(error).__name__})", lasting=True) from None
        self._token = self._credentials.token
        self._until = time.monotonic() + 300


def _transport(
    url: str, method: str = "GET", body: Any = None, headers: Any = None, timeout: float | None = None, **_: Any
) -> Answer:
    """google-auth's way out, so that it needs no other library for that."""
    data = body.encode() if isinstance(body, str) else body
    return ask(url, data, headers, method, seconds=timeout or TIMEOUT_SECONDS)


def metadata(path: str, seconds: float = 3) -> bytes:
    """What the metadata server of the machine says. Raises Unavailable."""
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    url = _METADATA.format(host, path)
    try:
        return _successful(ask(url, None, {"Metadata-Flavor": "Google"}, seconds=seconds, proxies=False))
    except Unavailable as error:
        raise Unavailable(f"no Google Cloud credentials ({error})", lasting=True) from None

"""Requests to Google Cloud by `urllib`, and who we are there. Only background threads come here.

Imported with the first request: `urllib.request` brings a hundred modules.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any

from ..queues import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_SECONDS = 10.0
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_METADATA = "http://{}/computeMetadata/v1/{}"
_LASTING = frozenset((400, 401, 403, 404))


class Refused(Unavailable):
    """The server answered, and not with success."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"the server answers {status}", lasting=status in _LASTING)
        self.status = status
        self.body = body


def post(url: str, body: bytes, content_type: str, token: str, more: Mapping[str, str] | None = None) -> bytes:
    """The body of a successful answer. more: further headers. Raises Refused, and Unavailable where nobody answers in
    time."""
    headers = {**(more or {}), "Content-Type": content_type}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        request = urllib.request.Request(url, data=body, headers=headers, method="POST")
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except urllib.error.HTTPError as error:
        with error:
            raise Refused(error.code, error.read()) from None
    except (OSError, ValueError, HTTPException) as error:
        raise Unavailable(_said(error)) from None


def _said(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return "no answer in time" if isinstance(reason, TimeoutError) else f"no answer ({type(reason).__name__})"


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
            self._from_metadata()
        else:
            self._from_library(google.auth)

    def _from_metadata(self) -> None:
        answer = json.loads(metadata("instance/service-accounts/default/token"))
        self._token = answer["access_token"]
        self._until = time.monotonic() + max(0, answer.get("expires_in", 0) - 60)

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


class _Answer:
    """An answer as google-auth wants it."""

    def __init__(self, status: int, headers: Any, data: bytes) -> None:
        self.status = status
        self.headers = headers
        self.data = data


def _transport(
    url: str, method: str = "GET", body: Any = None, headers: Any = None, timeout: float | None = None, **_: Any
) -> _Answer:
    """google-auth's way out, so that it needs no other library for that."""
    data = body.encode() if isinstance(body, str) else body
    request = urllib.request.Request(url, data=data, headers=headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout or TIMEOUT_SECONDS) as answer:
            return _Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return _Answer(error.code, error.headers, error.read())


def metadata(path: str, seconds: float = 3) -> bytes:
    """What the metadata server of the machine says. Raises Unavailable."""
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    request = urllib.request.Request(_METADATA.format(host, path), headers={"Metadata-Flavor": "Google"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=seconds) as answer:
            content: bytes = answer.read()
            return content
    except (OSError, ValueError, HTTPException) as error:
        raise Unavailable(f"no Google Cloud credentials ({_said(error)})", lasting=True) from None

"""The interface of an object store, and its errors.

To add one, write a class with the methods of `ObjectStore` that raises only the errors below, and add its scheme in
`bucket.py`. Waiting, retries, reading ahead and finding objects are shared and not part of it.

Also the objects of a name: an object, a folder, a prefix or a glob, by the same rules as for files.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from goodput_cli.errors import SourceError
from goodput_cli.sources.blocks import LOG_ENDINGS, is_log_name
from goodput_cli.sources.layouts import DEVICE_TABLES, is_cycle_file, is_of_tracker, logs_and_runs
from goodput_cli.sources.remote import TransientError

CONNECT_SECONDS = 5.0
READ_SECONDS = 20.0
"""Seconds to wait for a connection, and between bytes."""
CONNECTIONS = 32
"""Connections in the pool: at least one for each thread."""
ANSWER_BYTES = 32 << 20
"""Maximum size of one response: a page of a listing or a part of an object has a few MB."""
ANSWER_SECONDS = 300.0
"""Time limit for the body of one response."""
TRANSIENT_STATUS = (408, 429, 500, 502, 503, 504)
"""HTTP status codes after which the same request may succeed."""


def check_address(*variables: str) -> None:
    """Raise SourceError if an environment variable for another server contains an address without a scheme: clients
    would retry without success, or fail with unclear messages."""
    for variable in variables:
        address = os.environ.get(variable, "")
        if address and not address.startswith(("http://", "https://")):
            raise SourceError(f"{variable}={address}: the address has no scheme", tip=f"use http://{address}")


@dataclass(frozen=True)
class StoredObject:
    """One version of one object. size: bytes as stored; version: pins reads to this content."""

    name: str
    size: int
    version: str


class StoreError(Exception):
    """Raised when a request to a store failed; args: the reason, for people."""


class MissingError(StoreError):
    """Raised for a missing bucket or object, or a version that was replaced."""


class DeniedError(StoreError):
    """Raised if the store denies access, or does not know the account."""


class StoreRefusedError(StoreError):
    """Raised for a request that is invalid for the store (no bucket can have such a name), or that lacks
    information."""


def within_limits(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a response. Raises StoreRefusedError if they exceed the size limit, TransientError if they
    exceed the time limit."""
    size, until = 0, time.monotonic() + ANSWER_SECONDS
    for piece in pieces:
        size += len(piece)
        if size > ANSWER_BYTES:
            raise StoreRefusedError(f"the answer is longer than {ANSWER_BYTES >> 20} MiB")
        if time.monotonic() > until:
            raise TransientError(f"the answer takes longer than {ANSWER_SECONDS:g} s")
        yield piece


class ObjectStore(Protocol):
    """One kind of store. Methods make one request, are called from several threads, and raise `StoreError`s or
    `remote.TransientError`.

    list_permission, get_permission: the required permissions, under their names at the provider.
    """

    @property
    def list_permission(self) -> str:
        """Return the permission for listing."""

    @property
    def get_permission(self) -> str:
        """Return the permission for reading an object."""

    def list_page(self, bucket: str, prefix: str, token: str | None, /) -> tuple[list[StoredObject], str | None]:
        """Return some objects whose names begin with `prefix`, from `token` on, and the token of the next page; None
        after the last."""

    def newest(self, bucket: str, name: str, /) -> StoredObject | None:
        """Return the current version of an object; None if it does not exist."""

    def get(self, bucket: str, wanted: StoredObject, start: int, end: int, /) -> bytes:
        """Return bytes `start` up to `end` (exclusive) of exactly that version, as stored, without unpacking.

        Raises MissingError if the version was replaced. The caller repeats requests with a response of another length.
        """


_MAGIC = re.compile(r"[*?\[]")


def has_magic(path: str) -> bool:
    """Return True if a path contains glob characters."""
    return _MAGIC.search(path) is not None


def fixed_part(path: str) -> str:
    """Return the common prefix of all objects of the path: all of it, or the part before the first glob character."""
    match = _MAGIC.search(path)
    return path[: match.start()] if match else path


Samples = Callable[[list[StoredObject]], set[str]]
"""Returns the names of those objects that contain only samples of accelerators, by their first bytes."""


def choose(uri: str, path: str, listed: Iterable[StoredObject], samples: Samples) -> list[StoredObject]:
    """Return the objects of `path` among those that begin with its fixed part, sorted by name.

    An object of exactly this name has priority; then a glob (only `**` crosses folders; a glob that matches only
    folders selects the logs in them), a folder, and names that begin like this. In folders and prefixes only logs are
    selected, by their endings, and `samples` next to them. Raises SourceError if nothing is left.
    """
    objects = sorted(listed, key=lambda one: one.name)
    exact = [one for one in objects if one.name == path and not path.endswith("/")]
    if exact:
        return exact
    return (_matches if has_magic(path) else _beneath)(uri, path, objects, samples)


def _matches(uri: str, path: str, objects: list[StoredObject], samples: Samples) -> list[StoredObject]:
    pattern = _glob_pattern(path.rstrip("/"))
    whole, inside = re.compile(pattern), re.compile(pattern + "/.*")
    if not path.endswith("/"):
        chosen = [one for one in objects if whole.fullmatch(one.name) and not one.name.endswith("/")]
        if chosen:
            return chosen
    chosen = _read_of([one for one in objects if inside.fullmatch(one.name)], samples)
    if not chosen:
        raise SourceError(f"{uri}: the glob matches no object", tip="check the spelling (** also matches /)")
    return chosen


def _beneath(uri: str, path: str, objects: list[StoredObject], samples: Samples) -> list[StoredObject]:
    folder = path.rstrip("/") + "/"
    inside = [one for one in objects if one.name.startswith(folder)] if path else objects
    chosen = _read_of(inside or objects, samples)
    if chosen:
        return chosen
    if not objects:
        raise SourceError(f"{uri}: no object has this name or prefix", tip="check the bucket and the spelling")
    endings = " ".join(f"*{ending}" for ending in LOG_ENDINGS)
    raise SourceError(
        f"{uri}: no logs among these objects ({endings}, also .gz and .zst)", tip="pass the objects by name"
    )


def _read_of(objects: list[StoredObject], samples: Samples) -> list[StoredObject]:
    """Return the objects to read in a folder: logs, otherwise files of experiment trackers; and samples of
    accelerators."""
    files = logs_and_runs(
        one.name
        for one in objects
        if is_log_name(one.name) or is_of_tracker(one.name, in_bucket=True) or is_cycle_file(one.name)
    )
    asked = {*files.logs} if files.tracked else set()
    of_devices = samples(
        [one for one in objects if one.name in asked or one.name.lower().endswith(DEVICE_TABLES)]
    ).difference(files.tracked)
    names = {*([one for one in files.logs if one not in of_devices] or files.tracked), *of_devices}
    return [one for one in objects if one.name in names]


def _glob_pattern(path: str) -> str:
    pattern = ""
    at = 0
    while at < len(path):
        piece, at = _next_piece(path, at)
        pattern += piece
    return f"(?s:{pattern})"


def _next_piece(path: str, at: int) -> tuple[str, int]:
    """Return the expression of the next part of a glob, and where the part after it begins."""
    begins_part = at == 0 or path[at - 1] == "/"
    if begins_part and path.startswith("**/", at):
        return "(?:[^/]+/)*", at + 3
    if begins_part and path[at:] == "**":
        return ".*", at + 2
    if path[at] == "*":
        end = at + 1
        while path.startswith("*", end):
            end += 1
        return "[^/]*", end
    if path[at] == "?":
        return "[^/]", at + 1
    if path[at] == "[":
        return _character_set(path, at)
    return re.escape(path[at]), at + 1


def _character_set(path: str, at: int) -> tuple[str, int]:
    negated = path.startswith("!", at + 1)
    first = at + 1 + negated
    end = path.find("]", first + 1)  # a bracket in the first position is literal
    if end < 0:
        return re.escape("["), at + 1
    content = re.sub(r"([\\\]\[&~|^])", r"\\\1", path[first:end])
    return f"(?!/)[{'^' if negated else ''}{content}]", end + 1

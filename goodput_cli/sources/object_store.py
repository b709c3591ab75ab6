"""What a store of objects has to offer, and the ways in which it can fail.

To add one: a class with the methods of `ObjectStore` that raises nothing but the errors below, and its scheme in
`bucket.py`. Waiting, trying again, reading ahead and finding objects are the same for all and not its business.

Which objects a name stands for: an object, a folder, a prefix or a glob, by the rules for files where they exist.
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
"""How long to wait for a connection, and between bytes."""
CONNECTIONS = 32
"""Connections that are kept: at least one for each thread."""
ANSWER_BYTES = 32 << 20
"""Of one answer: a page of a listing or a part of an object is of a few MB."""
ANSWER_SECONDS = 300.0
"""For the body of one answer."""
TRANSIENT_STATUS = (408, 429, 500, 502, 503, 504)
"""HTTP answers after which the same request may succeed."""


def check_address(*variables: str) -> None:
    """SourceError if an environment variable that points a client at another server holds an address without a
    scheme: clients would ask nobody, again and again, or fail in words of their own."""
    for variable in variables:
        address = os.environ.get(variable, "")
        if address and not address.startswith(("http://", "https://")):
            raise SourceError(f"{variable}={address}: the address has no scheme; use http://{address}")


@dataclass(frozen=True)
class StoredObject:
    """One version of one object. size: bytes as stored; version: what pins reads to this content."""

    name: str
    size: int
    version: str


class StoreError(Exception):
    """A request to a store failed; args: the reason, for people."""


class MissingError(StoreError):
    """There is no such bucket or object, or not in this version any more."""


class DeniedError(StoreError):
    """The store knows who asks and refuses, or does not know who asks."""


class RefusedError(StoreError):
    """The request makes no sense to the store (no bucket has such a name), or needs what nobody gave."""


def within_limits(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces of an answer. Raises RefusedError where they are too many bytes, TransientError where they take too
    long."""
    size, until = 0, time.monotonic() + ANSWER_SECONDS
    for piece in pieces:
        size += len(piece)
        if size > ANSWER_BYTES:
            raise RefusedError(f"the answer is longer than {ANSWER_BYTES >> 20} MiB")
        if time.monotonic() > until:
            raise TransientError(f"the answer takes longer than {ANSWER_SECONDS:g} s")
        yield piece


class ObjectStore(Protocol):
    """One kind of store. Methods make one request, are called from several threads, and raise `StoreError`s or
    `remote.TransientError`.

    list_permission, get_permission: what it takes to be answered, as people who grant it call it.
    """

    @property
    def list_permission(self) -> str:
        """What listing needs."""

    @property
    def get_permission(self) -> str:
        """What reading an object needs."""

    def list_page(self, bucket: str, prefix: str, token: str | None, /) -> tuple[list[StoredObject], str | None]:
        """Some objects whose names begin with `prefix`, from `token` on, and where the next page begins; None after the
        last."""

    def newest(self, bucket: str, name: str, /) -> StoredObject | None:
        """The version of an object that a reader would get now; None if there is none."""

    def get(self, bucket: str, wanted: StoredObject, start: int, end: int, /) -> bytes:
        """Bytes `start` up to `end` (exclusive) of exactly that version, as stored: nothing is unpacked on the way.

        Raises MissingError if the version is gone. An answer of another length is asked for again by whoever calls.
        """


_MAGIC = re.compile(r"[*?\[]")


def has_magic(path: str) -> bool:
    """Whether a path holds what makes it a glob."""
    return _MAGIC.search(path) is not None


def fixed_part(path: str) -> str:
    """What every object that the path stands for begins with: all of it, or up to the first sign of a glob."""
    match = _MAGIC.search(path)
    return path[: match.start()] if match else path


Samples = Callable[[list[StoredObject]], set[str]]
"""The names of those objects that hold samples of accelerators alone, as their first bytes show."""


def choose(uri: str, path: str, listed: Iterable[StoredObject], samples: Samples) -> list[StoredObject]:
    """The objects that `path` stands for among those that begin with its fixed part, sorted by name.

    An object of exactly this name wins; then a glob (`**` crosses folders, all else does not; a glob that matches
    folders only stands for the logs in them), a folder, and names that begin like this. Of folders and prefixes only
    logs are taken, by their endings, and `samples` beside them. Raises SourceError if nothing is left.
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
        raise SourceError(f"{uri}: the glob matches no object; check the spelling (** also matches /)")
    return chosen


def _beneath(uri: str, path: str, objects: list[StoredObject], samples: Samples) -> list[StoredObject]:
    folder = path.rstrip("/") + "/"
    inside = [one for one in objects if one.name.startswith(folder)] if path else objects
    chosen = _read_of(inside or objects, samples)
    if chosen:
        return chosen
    if not objects:
        raise SourceError(f"{uri}: no object has this name or prefix; check the bucket and the spelling")
    endings = " ".join(f"*{ending}" for ending in LOG_ENDINGS)
    raise SourceError(f"{uri}: no logs among these objects ({endings}, also .gz and .zst); pass the objects by name")


def _read_of(objects: list[StoredObject], samples: Samples) -> list[StoredObject]:
    """What is read of a folder: logs, and where there are none what experiment trackers wrote; and samples of
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
    """The expression for the next sign of a glob, and where the one after it begins."""
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
    end = path.find("]", first + 1)  # a bracket that comes first stands for itself
    if end < 0:
        return re.escape("["), at + 1
    content = re.sub(r"([\\\]\[&~|^])", r"\\\1", path[first:end])
    return f"(?!/)[{'^' if negated else ''}{content}]", end + 1

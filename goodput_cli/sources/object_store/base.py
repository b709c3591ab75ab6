"""What a store of objects has to offer, and the ways in which it can fail.

To add one: a class with the methods of `ObjectStore` that raises nothing but the errors below, and its scheme in
`bucket.py`. Waiting, trying again, reading ahead and finding objects are the same for all and not its business.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol

from goodput_cli.errors import SourceError

CONNECT_SECONDS = 5.0
READ_SECONDS = 20.0
"""How long to wait for a connection, and between bytes."""
CONNECTIONS = 32
"""Connections that are kept: at least one for each thread."""
TRANSIENT_STATUS = (408, 429, 500, 502, 503, 504)
"""HTTP answers after which the same request may succeed."""


def check_address(*variables: str) -> None:
    """SourceError if an environment variable that points a client at another server holds an address without a
    scheme: clients would ask nobody, again and again, or fail in words of their own."""
    for variable in variables:
        address = os.environ.get(variable, "")
        if address and not address.startswith(("http://", "https://")):
            raise SourceError(f"{variable}={address}: an address needs its scheme; write http://{address}")


@dataclass(frozen=True)
class StoredObject:
    """One version of one object. size: bytes as stored; version: what pins reads to this content."""

    name: str
    size: int
    version: str


@dataclass(frozen=True)
class ListPage:
    """Some objects of a listing; next_token: where the next page begins, None after the last."""

    objects: tuple[StoredObject, ...]
    next_token: str | None


class StoreError(Exception):
    """A request to a store failed; args: the reason, for people."""


class MissingError(StoreError):
    """There is no such bucket or object, or not in this version any more."""


class DeniedError(StoreError):
    """The store knows who asks and refuses, or does not know who asks."""


class RefusedError(StoreError):
    """The request makes no sense to the store (no bucket has such a name), or needs what nobody gave."""


class ObjectStore(Protocol):
    """One kind of store. Methods make one request, are called from several threads, and raise `StoreError`s or
    `retry.TransientError`.

    list_permission, get_permission: what it takes to be answered, as people who grant it call it.
    """

    @property
    def list_permission(self) -> str:
        """What listing needs."""

    @property
    def get_permission(self) -> str:
        """What reading an object needs."""

    def list_page(self, bucket: str, prefix: str, token: str | None, /) -> ListPage:
        """The objects whose names begin with `prefix`, from `token` on."""

    def newest(self, bucket: str, name: str, /) -> StoredObject | None:
        """The version of an object that a reader would get now; None if there is none."""

    def get(self, bucket: str, wanted: StoredObject, start: int, end: int, /) -> bytes:
        """Bytes `start` up to `end` (exclusive) of exactly that version, as stored: nothing is unpacked on the way.

        Raises MissingError if the version is gone.
        """

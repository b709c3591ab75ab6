"""Fixtures of the tests of documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import WarmCommand


@pytest.fixture(scope="session")
def programs() -> Iterator[Path]:
    """Return a directory with the programs `goodput` and `python`. `goodput` starts at once."""
    with WarmCommand() as command:
        yield command.bin

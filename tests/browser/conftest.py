"""The browser of all tests: one process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.tabs import launched


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start the system's chromium."""
    with launched() as one:
        yield one

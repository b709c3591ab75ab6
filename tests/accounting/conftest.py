"""Fixtures for tests of the accounting."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from goodput_cli.events.formats import registry
from tests.support.formats import AsynchronousSaves, StepEndLines


@pytest.fixture(scope="module")
def step_end_lines() -> Iterator[None]:
    """Provide the format of the tests that counts finished steps."""
    yield from _with_format(StepEndLines)


@pytest.fixture(scope="module")
def asynchronous_saves() -> Iterator[None]:
    """Provide the format of the tests that marks saves as asynchronous."""
    yield from _with_format(AsynchronousSaves)


def _with_format(log_format: type) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "BUILT_IN", (log_format, *registry.BUILT_IN))
        yield

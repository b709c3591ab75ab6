"""What tests of the accounting share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from goodput_cli.events.formats import registry
from tests.support.asynchronous_saves import AsynchronousSaves
from tests.support.step_end_lines import StepEndLines


@pytest.fixture(scope="module")
def step_end_lines() -> Iterator[None]:
    """The format of the tests that says how many steps were done."""
    yield from _beside_ours(StepEndLines)


@pytest.fixture(scope="module")
def asynchronous_saves() -> Iterator[None]:
    """The format of the tests that says that a save was asynchronous."""
    yield from _beside_ours(AsynchronousSaves)


def _beside_ours(log_format: type) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "BUILT_IN", (log_format, *registry.BUILT_IN))
        yield

"""What tests of the accounting share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from goodput_cli.events.formats import registry
from tests.support.step_end_lines import StepEndLines


@pytest.fixture(scope="module")
def step_end_lines() -> Iterator[None]:
    """The format of the tests that says how many steps were done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "BUILT_IN", (StepEndLines, *registry.BUILT_IN))
        yield

"""Commands write the same output as before: quick cases of the freeze, by a digest of each output.

For an intended difference: inspect it (`python -m tests.freeze write DIR` before, `compare DIR` after the change), then
run `python -m tests.freeze digest`.
"""

from __future__ import annotations

import json

import pytest

from tests.freeze.cases import quick_cases
from tests.freeze.run import DIGESTS, digest_of


@pytest.mark.parametrize(("name", "arguments"), [pytest.param(*case, id=case[0]) for case in quick_cases()])
def test_command_output_is_unchanged(name: str, arguments: tuple[str, ...]) -> None:
    assert digest_of(arguments) == json.loads(DIGESTS.read_text()).get(name)

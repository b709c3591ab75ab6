"""Other wordings: what many programs print when they die is named, and ordinary words in their place are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.causes import wordings
from tests.causes.wordings import Wording

FAILURES = wordings.wordings("failures")
ORDINARY = wordings.wordings("ordinary")


@pytest.mark.parametrize("one", FAILURES, ids=lambda one: one.name)
def test_last_words_are_named(one: Wording, tmp_path: Path) -> None:
    found = wordings.judged(one, tmp_path)
    assert wordings.verdict(one, found) == "named", (found.cause, found.cause_text)


@pytest.mark.parametrize("where", ["middle", "end"])
@pytest.mark.parametrize("one", ORDINARY, ids=lambda one: one.name)
def test_ordinary_words_are_no_cause(one: Wording, where: str, tmp_path: Path) -> None:
    found = wordings.beside(one, where, tmp_path)
    assert (found.cause, found.cause_text) == ("unknown", None)


@pytest.mark.parametrize("one", ORDINARY, ids=lambda one: one.name)
def test_ordinary_words_do_not_hide_the_cause(one: Wording, tmp_path: Path) -> None:
    found = wordings.beside(one, "other", tmp_path)
    assert (found.cause, found.first_rank) == ("disk_full", 5)

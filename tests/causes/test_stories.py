"""Stories of failures, told before there were rows for them: what is said is what somebody says who knows all of it, or
that nobody says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.causes import stories
from tests.causes.stories import Story

ALL = stories.stories()


@pytest.mark.parametrize("story", ALL, ids=lambda story: story.name)
def test_the_first_cause_is_named_where_it_began(story: Story, tmp_path: Path) -> None:
    found = stories.told(story, tmp_path)
    assert stories.verdict(story, found) == "right", (found.cause, found.first_rank, found.first_host, found.cause_text)


@pytest.mark.parametrize("story", [one for one in ALL if not one.start], ids=lambda story: story.name)
def test_what_it_lost_is_what_was_not_saved(story: Story, tmp_path: Path) -> None:
    found = stories.told(story, tmp_path)
    assert (found.last_step, found.resumed_step, found.steps_lost) == (150, 100, 50)

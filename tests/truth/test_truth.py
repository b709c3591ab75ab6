"""Stories with a known answer, as ten programs print them. `make test-truth` draws more of each, and continuous
integration all cases of these seeds (`.ci/run`)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.truth.judge import NOISES, cases, wrongs
from tests.truth.programs import PROGRAMS
from tests.truth.stories import STORIES, Story
from tests.truth.world import USUAL, World

SEEDS = range(1, 3)
FEW = 3
"""Number of cases of a story that are judged here, spread over its programs; all if they are not twice as many."""


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_report_of_a_story_is_correct(story: Story) -> None:
    drawn = [case for case in cases(SEEDS) if case.story == story]
    first, apart = STORIES.index(story), len(drawn) // FEW
    chosen = [drawn[(first + at * apart) % len(drawn)] for at in range(FEW)] if len(drawn) > 2 * FEW else drawn
    wrong = {str(case): reasons for case in chosen if (reasons := wrongs(case))}
    assert len(wrong) <= (len(chosen) + 1) // 4, wrong


def test_each_story_has_a_program_and_programs_have_many() -> None:
    all_cases = list(cases(range(1)))
    assert {case.story for case in all_cases} == set(STORIES)
    assert all(sum(case.program == program for case in all_cases) >= 16 for program in PROGRAMS)


def test_a_world_knows_which_steps_it_kept() -> None:
    """Ten steps, back to the sixth, two more: eight kept, four wasted."""
    world = World(1, NOISES["calm"]["white 5 %"])
    world.start()
    world.steps(10)
    world.restore(6)
    world.steps(2)
    assert [one.number for one in world.kept()] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert world.wasted() == pytest.approx(4 * USUAL, rel=0.2)
    assert world.happenings[-1].end == world.now


def test_the_mean_of_a_step_without_a_fault_is_the_usual_one() -> None:
    world = World(2, NOISES["heavy"]["lognormal 40 %"])
    world.steps(2000)
    assert np.mean([one.undisturbed for one in world.trained]) == pytest.approx(USUAL, rel=0.05)

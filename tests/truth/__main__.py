"""Share of correct reports, by story and by program: `python -m tests.truth [FIRST] [LAST] [-v] [STORY]`."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

from tests.truth.judge import Case, cases, wrongs
from tests.truth.programs import PROGRAMS
from tests.truth.stories import STORIES

LEAST, LEAST_OF_A_KIND = 97.0, 90.0
"""Percent of right answers: of all, and of each story and program."""


def judged(all_cases: Iterable[Case]) -> dict[Case, list[str]]:
    """Return the errors of each case, on two processes."""
    chosen = list(all_cases)
    keys = [(STORIES.index(one.story), PROGRAMS.index(one.program), one.seed) for one in chosen]
    with ProcessPoolExecutor(2) as pool:
        return dict(zip(chosen, pool.map(_judged, keys, chunksize=16), strict=True))


def _judged(key: tuple[int, int, int]) -> list[str]:
    return wrongs(Case(STORIES[key[0]], PROGRAMS[key[1]], key[2]))


def shares(found: dict[Case, list[str]]) -> dict[str, tuple[int, int]]:
    """Return the number of correct cases and of all: in total, by story, by program."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for case, wrong in found.items():
        for name in ("all", case.story.name, case.program.name):
            counts[name][0] += not wrong
            counts[name][1] += 1
    return {name: (right, of) for name, (right, of) in counts.items()}


def table(found: dict[Case, list[str]]) -> Iterable[str]:
    """A row a story, a column a program."""
    total = shares(found)
    names = [program.name for program in PROGRAMS]
    yield f"{'':34}" + "".join(f"{name:>14}" for name in [*names, "all"])
    for story in [*STORIES, None]:
        of_story = {case: wrong for case, wrong in found.items() if story in (None, case.story)}
        cells = []
        for program in PROGRAMS:
            rights = [not wrong for case, wrong in of_story.items() if case.program == program]
            cells.append(f"{sum(rights)}/{len(rights)}" if rights else "-")
        right, of = total.get("all" if story is None else story.name, (0, 0))
        if of:
            cells.append(f"{right}/{of}")
            yield f"{'all' if story is None else story.name:34}" + "".join(f"{cell:>14}" for cell in cells)


def failing(found: dict[Case, list[str]]) -> list[str]:
    """Return the shares below the required ones. With few cases, one more may be wrong by chance."""
    return [
        f"{name}: {right} of {of} right"
        for name, (right, of) in shares(found).items()
        if 100 * (right + 1) / of < (LEAST if name == "all" else LEAST_OF_A_KIND)
    ]


def main(words: list[str]) -> int:
    """Prints the table; 1 where something is below what is asked for."""
    numbers = [int(word) for word in words if word.isdigit()]
    first, last = (numbers + [6, 30][len(numbers) :])[:2]
    parts = [word for word in words if not word.isdigit() and not word.startswith("-")]
    chosen = [one for one in cases(range(first, last + 1)) if all(part in str(one) for part in parts)]
    found = judged(chosen)
    for case, wrong in found.items():
        if wrong and "-v" in words:
            print(f"{case} ({case.noise()}):", *wrong, sep="\n    ")
    print("\n".join(table(found)))
    right, of = shares(found)["all"]
    print(f"{100 * right / of:.1f} % right of {of}")
    below = failing(found)
    print(*below, sep="\n")
    return bool(below)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

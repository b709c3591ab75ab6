"""Each check of a draft, on a log that fails only this check, and on the same log without the flaw."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from goodput_cli.api.check import draft_mapping
from goodput_cli.events.mappings.draft.expected import Draft
from tests.mappings.drafting import drafted, pytorch
from tests.text.support import seconds

Lines = Iterable[tuple[float, str]]
HOUR, WEEKEND = 3600.0, 54 * 3600.0


def steps(first: int, last: int, begin: float = 0.0, each: float = 10.0, text: str = "step {} loss 1.1") -> Lines:
    """Return steps of some seconds each; the first ends some seconds after a begin."""
    return [(begin + each * (n - first + 1), text.format(n)) for n in range(first, last + 1)]


def log(*parts: Lines) -> str:
    """Return timestamped lines of a program, in order of time."""
    return "".join(pytorch(second, text) for second, text in sorted(line for part in parts for line in part))


def strip_prefixes(*parts: Lines) -> str:
    """Return the same with step lines without timestamps."""
    lines = sorted(line for part in parts for line in part)
    return "".join(f"{text}\n" if text.startswith("step") else pytorch(second, text) for second, text in lines)


def made(tmp_path: Path, text: str) -> Draft:
    (tmp_path / "train.log").write_text(text, encoding="utf-8")
    return draft_mapping(str(tmp_path / "train.log"))


def saves(gap: float, text: str, of: int = 4) -> Lines:
    """Return a save line after every tenth of 10 x `of` steps of 10 s, with some seconds before the next step."""
    told = [(n * (100 + gap), text) for n in range(1, of)]
    return [*told, *(line for n in range(of) for line in steps(10 * n + 1, 10 * n + 10, n * (100 + gap)))]


def attempts(count: int, pause: float) -> Lines:
    """Return attempts of ten steps of 10 s, which restart the count, with a pause between them."""
    starts = [(n * (100 + pause), "Starting training") for n in range(count)]
    return [*starts, *(line for n in range(count) for line in steps(1, 10, n * (100 + pause)))]


REFUSED: dict[str, tuple[str, str]] = {
    "S1": (
        log((10.0 * n, f"batch {n % 7 + 1} loss 0.1") for n in range(120)),
        log((10.0 * n, f"epoch {n // 7 + 1} batch {n % 7 + 1}/7 loss 0.1") for n in range(120)),
    ),
    "S2": (
        log([(0, "Preparing"), (HOUR, "Bye")], steps(1, 12, 60, 0.5, "item {} loss 1.1")),
        log([(0, "Preparing"), (HOUR, "Bye")], steps(1, 12, 60, 250, "item {} loss 1.1")),
    ),
    "S3": (log(steps(500, 511, text="item {} loss 1.1")), log(steps(1, 12, text="item {} loss 1.1"))),
    "S6": (log(steps(1, 40, text="request {} served")), log(steps(1, 40, text="request {} served, loss 1.1"))),
    "C2": ("".join(f"step {n} loss 0.1\n" for n in range(1, 31)), log(steps(1, 30))),
    "C3": (
        strip_prefixes([(0, "Preparing"), (400, "Bye")], steps(1, 30, text="step {} dt 90.0s")),
        strip_prefixes([(0, "Preparing"), (400, "Bye")], steps(1, 30, text="step {} dt 9.0s")),
    ),
    "W1": (log(attempts(60, 20)), log(attempts(6, 20))),
    "W2": (log(steps(1, 60, text="step {}/40 loss 1.1")), log(steps(1, 60, text="step {}/400 loss 1.1"))),
    "W3": (log(attempts(2, WEEKEND)), log(attempts(2, 60))),
}  # fmt: skip
"""By check: a log whose draft it refuses, and one without the flaw."""
LEFT_OUT: dict[tuple[str, str], tuple[str, str]] = {
    ("C2", "each"): (
        log((10.0 * n, f"step {n} loss 1.1 dt {50.0 if n % 3 == 0 else 10.0}s") for n in range(1, 60)),
        log((10.0 * n, f"step {n} loss 1.1 dt 10.0s") for n in range(1, 60)),
    ),
    ("A1", "start"): (
        log([(0, "Starting training"), (155, "Starting training")], steps(1, 40)),
        log([(0, "Starting training")], steps(1, 40)),
    ),
    ("R1", "resume"): (
        log(steps(1, 35), [(390, "Resuming from checkpoint at step 12")], steps(31, 60, 400)),
        log(steps(1, 35), [(390, "Resuming from checkpoint at step 30")], steps(31, 60, 400)),
    ),
    ("E1", "finished"): (
        log(steps(1, 40), [(155, "Training finished")]),
        log(steps(1, 40), [(401, "Training finished")]),
    ),
    ("F1", "save"): (log(saves(1, "Saved checkpoint (5.0 s)")), log(saves(5, "Saved checkpoint (5.0 s)"))),
    ("F2", "save"): (log(saves(0.1, "Saved checkpoint")), log(saves(20, "Saved checkpoint"))),
}  # fmt: skip
"""By check and event: a log for which it drops a rule, and one without the flaw."""
OTHERWISE: dict[str, tuple[str, str, Callable[[Draft], bool]]] = {
    "S4": (
        log((n, f"Iteration {n}, Testing net (#0)") for n in range(0, 401, 100))
        + log((500 + n, f"Iteration {n}, loss = 1.1") for n in range(0, 401, 20)),
        log((n, f"Iteration {n}, loss = 1.1") for n in range(0, 401, 20)),
        lambda draft: "line = 'Iteration {step:int}, loss" in draft.text,
    ),
    "S5": (
        log(steps(1, 40, text="Beginning step {}")),
        log(steps(1, 40, text="Beginning step {}"), steps(1, 40, 9, text="step {} loss 1.1")),
        lambda draft: 'event = "step_start"' in draft.text,
    ),
    "A2": (
        log([(one, "host a says hello") for one in (0, 155, 490)], steps(1, 40), steps(31, 60, 500)),
        log([(one, "host a says hello") for one in (0, 490)], steps(1, 40), steps(31, 60, 500)),
        lambda draft: 'event = "start"' not in draft.text,
    ),
    "W4": (
        log(*(steps(8 * n + 1, 8 * n + 8, 130 * n) for n in range(6))),
        log(*(steps(8 * n + 1, 8 * n + 8, 80 * n) for n in range(6))),
        lambda draft: any("unexplained" in doubt for doubt in draft.doubts),
    ),
    "C1": (
        log(steps(1, 40)) + log([(-HOUR, "evaluating")]) + log(steps(41, 80, 400)),
        log(steps(1, 40)) + log([(400, "evaluating")]) + log(steps(41, 80, 400)),
        lambda draft: any("timestamps jump back" in doubt for doubt in draft.doubts),
    ),
}  # fmt: skip
"""By check: a log for which it changes the draft, one without the flaw, and a test for the change."""


@pytest.mark.parametrize("test", REFUSED)
def test_draft_is_refused_by_its_check(test: str, tmp_path: Path) -> None:
    flawed, sound = REFUSED[test]
    draft = made(tmp_path, flawed)
    assert (draft.refused_by, len(draft.refused)) == (test, 1), draft.refused
    assert not made(tmp_path, sound).refused


@pytest.mark.parametrize(("test", "event"), LEFT_OUT)
def test_rule_is_dropped_by_its_check(test: str, event: str, tmp_path: Path) -> None:
    flawed, sound = LEFT_OUT[test, event]
    draft = made(tmp_path, flawed)
    assert not draft.refused
    assert [(one.test, one.event) for one in draft.left_out] == [(test, event)], draft.text
    assert made(tmp_path, sound).left_out == ()


@pytest.mark.parametrize("test", OTHERWISE)
def test_draft_is_changed_by_its_check(test: str, tmp_path: Path) -> None:
    flawed, sound, differs = OTHERWISE[test]
    drafts = [made(tmp_path, text) for text in (flawed, sound)]
    assert not any(draft.refused for draft in drafts), drafts
    assert [differs(draft) for draft in drafts] == [True, False], drafts


def test_unfinished_save_takes_no_later_time(tmp_path: Path) -> None:
    """F3: `Saving` is the last line of a process that died in the save, 3 h before the next start: only the six
    completed saves of 8 s count."""

    def attempt(first: int, begin: float) -> Lines:
        yield begin, "Starting training"
        for n in range(4):
            yield from steps(first + 10 * n, first + 10 * n + 9, begin + 110 * n)
        for n in (1, 2, 3):
            yield from ((begin + 110 * n, "Saving checkpoint"), (begin + 110 * n + 8, "Saved checkpoint"))

    for last in ([], [(440, "Saving checkpoint")]):
        found = seconds(drafted(tmp_path, log(attempt(1, 0), last, attempt(41, 3 * HOUR))))
        assert found["unproductive_checkpoint_save_time"] == pytest.approx(48, abs=2)

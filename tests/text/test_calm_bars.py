"""Skipped states of progress bars do not change the content of a log."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from goodput_cli.events.text.calm_bars import CalmBars
from goodput_cli.events.text.templates import LineReader
from tests.text.test_templates import BLOCKS, parts

_OTHERS = (
    "\n2026-03-01 10:00:00 INFO saved\n",
    "\n{'loss': 2.5, 'epoch': 0.5}\n",
    '\nTraceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: no\n',
    "\nRuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n",
    "\n***** Running training *****\n",
    "\n[rank1]: 10:00:00 hello\n",
    "\n",
)


@dataclass
class Drawn:
    """The state of a bar."""

    name: str
    total: int
    done: int = 0
    second: int = 0

    def state(self, end: str = "") -> str:
        percent = 100 * self.done // self.total
        clock = f"{self.second // 60:02d}:{self.second % 60:02d}"
        drawn = f"{self.name}{percent:3d}%|{'#' * (percent // 10):10s}| {self.done}/{self.total}"
        return f"\r{drawn} [{clock}<10:00,  1.50it/s{end}]"

    def go_on(self, random: Random) -> None:
        """Take a step, restart, fall back, stop, or set the clock back."""
        chance = random.random()
        if chance < 0.01:
            self.done = self.second = 0
        elif chance < 0.02:
            self.done = max(self.done - 5, 0)
        elif chance < 0.05:
            self.second += random.choice((0, 0, 30))
        else:
            ahead = -1 if chance < 0.07 else random.choice((0, 1, 1, 2))
            self.done, self.second = min(self.done + 1, self.total), max(self.second + ahead, 0)


def drawn(random: Random, states: int) -> str:
    """Return a log of bars that are redrawn, restart, alternate, and appear between other lines."""
    bars = [Drawn("", 500), Drawn("Epoch 1: ", 300), Drawn("", 40), Drawn("Epoch 2: ", 300)]
    text, bar = "***** Running training *****\n", bars[0]
    for _ in range(states):
        if random.random() < 0.03:
            bar = random.choice(bars)
        bar.go_on(random)
        text += bar.state(random.choice(("", "", "", ", loss=2.5")))
        if random.random() < 0.02:
            text += random.choice(_OTHERS)
    return text + "\n"


@pytest.mark.parametrize("seed", range(4))
def test_skipped_states_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = drawn(Random(seed), 700)
    found = [parts(text, size) for size in BLOCKS]
    monkeypatch.setattr(LineReader, "_template", lambda *_: None)
    assert found == [parts(text, size) for size in BLOCKS]


def test_most_states_of_a_long_bar_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[CalmBars] = []
    skip = CalmBars.__init__

    def noted(self: CalmBars) -> None:
        skip(self)
        made.append(self)

    monkeypatch.setattr(CalmBars, "__init__", noted)
    parts("".join(Drawn("", 9999, done, done // 2).state() for done in range(1000)) + "\n", 1 << 20)
    assert sum(len(one.skipped) for one in made) > 900

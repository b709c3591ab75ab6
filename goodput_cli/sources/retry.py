"""Trying again, a bounded number of times, with growing pauses that differ from client to client."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Patience:
    """How long to keep trying. Pauses double from one try to the next, each shortened at random by up to a half."""

    first: float
    """The first pause, s."""
    longest: float
    """The longest pause, s; a server that asks for more gets no more."""
    tries: int
    """How often the same request may be made, those not counted that fail because of a quota."""
    altogether: float = math.inf
    """How long to pause for one request in all, s."""


@dataclass(frozen=True)
class Wait:
    """A pause before a request is made again. seconds: how long; try_, of: which try comes then, of how many."""

    seconds: float
    try_: int
    of: int

    def __str__(self) -> str:
        return f"no answer, try {self.try_} of {self.of} in {max(round(self.seconds), 1)} s"


class TransientError(Exception):
    """It may work the next time: too many requests, a server in trouble, a connection that broke."""

    def __init__(self, reason: str, pause: float | None = None, *, counts: bool = True) -> None:
        super().__init__(reason)
        self.pause = pause
        """Seconds that the server asks to wait, if it does."""
        self.counts = counts
        """Whether it is one of the tries that are allowed; waiting for a quota is not."""


class GaveUpError(Exception):
    """It failed too often in ways that might have passed; args: the reason, for people."""

    def __init__(self, reason: str, last: TransientError) -> None:
        super().__init__(reason)
        self.last = last
        """What it failed with in the end."""


def try_again(
    work: Callable[[], Result],
    patience: Patience,
    stop: Event,
    before_pause: Callable[[TransientError, Wait], None] | None = None,
) -> Result:
    """The result of `work`, called again after each TransientError.

    before_pause: called with the error and the wait before the next try. Raises GaveUpError when patience ends,
    or once `stop` is set.
    """
    failures, usual, paused = 0, patience.first, 0.0
    while True:
        try:
            return work()
        except TransientError as error:
            failures += error.counts
            if failures >= patience.tries or paused >= patience.altogether:
                raise GaveUpError(f"gave up after {failures} tries: {error}", error) from error
            pause = min(max(usual * random.uniform(0.5, 1.0), error.pause or 0.0), patience.longest)
            if before_pause is not None:
                before_pause(error, Wait(pause, failures + 1, patience.tries))
            if stop.wait(pause):
                raise GaveUpError("stopped", error) from error
        paused += pause
        usual = min(2 * usual, patience.longest)

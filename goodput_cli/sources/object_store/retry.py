"""Trying again, a bounded number of times, with growing pauses that differ from client to client."""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Event
from typing import TypeVar

from goodput_cli.sources.object_store.base import TransientError

Result = TypeVar("Result")

TRIES = 5
FIRST_PAUSE = 0.5
"""Seconds before the second try; each further pause is twice as long, all shortened at random by up to a half."""
LONGEST_PAUSE = 30.0
"""Seconds; a store that asks for more gets no more."""


class GaveUpError(Exception):
    """It failed `TRIES` times in ways that might have passed; args: the last reason, for people."""


def try_again(work: Callable[[], Result], stop: Event) -> Result:
    """The result of `work`, called again after each TransientError. Raises GaveUpError after the last try, or once
    `stop` is set."""
    for pause in (FIRST_PAUSE * 2**number for number in range(TRIES - 1)):
        try:
            return work()
        except TransientError as error:
            if stop.wait(_pause(pause, error.pause)):
                raise GaveUpError("stopped") from error
    try:
        return work()
    except TransientError as error:
        raise GaveUpError(f"gave up after {TRIES} tries: {error}") from error


def _pause(usual: float, asked: float | None) -> float:
    jittered = usual * random.uniform(0.5, 1.0)
    return min(max(jittered, asked or 0.0), LONGEST_PAUSE)

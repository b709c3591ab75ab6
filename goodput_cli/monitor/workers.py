"""A thread for each target: one that hangs or fails delays neither the look at the log nor another target."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from goodput_cli.errors import GoodputError
from goodput_cli.monitor.snapshot import Snapshot
from goodput_cli.monitor.targets.base import Health, Target, TargetFailed

RETRY_SECONDS = (1.0, 60.0)
"""First and longest wait between two tries."""
LASTING_SECONDS = 300.0
"""Wait where trying again soon is of no use."""
HURRY_SECONDS = 0.5
"""Longest wait for the last update."""
SAY_AGAIN_SECONDS = 600.0


class TargetWorker:
    """A target and the newest update that it has not taken. Older ones are let go: values are of the whole job."""

    def __init__(self, name: str, target: Target, health: Health, say: Callable[[str], None]) -> None:
        self.name = name
        self._target = target
        self._health = health
        self._say = say
        self._change = threading.Condition()
        self._waiting: Snapshot | None = None
        self._final = False
        self._delivered = self._closed = False
        self._failures = 0
        self._retry_at = 0.0
        self._said_at = float("-inf")
        health.expect(name)
        threading.Thread(target=self._run, name=f"publish {name}", daemon=True).start()

    def offer(self, snapshot: Snapshot, *, final: bool = False) -> None:
        """Publish this update as soon as the target can take it; `final`: it is the last one."""
        with self._change:
            self._waiting, self._final = snapshot, final
            if final:
                self._retry_at = 0.0
            self._change.notify_all()

    def finish(self, deadline: float) -> bool:
        """Wait until the last update was taken; False if it was not before `deadline` (monotonic, s)."""
        with self._change:
            self._change.wait_for(lambda: self._delivered, max(0.0, deadline - time.monotonic()))
            return self._delivered

    def _run(self) -> None:
        while not (self._delivered or self._closed):
            self._try()  # in a call of its own: no update is held while the next one is waited for

    def _try(self) -> None:
        """Publish the newest update, once it is time for it."""
        snapshot, final = self._next()
        if snapshot is None:
            return
        failure = self._publish(snapshot, final)
        with self._change:
            if failure is not None:
                self._health.failed(self.name)
                self._failed(failure)
                return
            self._health.published(self.name)
            self._failures = 0
            if self._waiting is snapshot:
                self._waiting = None
                self._delivered = final
                self._change.notify_all()

    def _next(self) -> tuple[Snapshot | None, bool]:
        """The newest update, once it is time for it; None once this is closed."""
        with self._change:
            while not self._closed and (self._waiting is None or time.monotonic() < self._retry_at):
                self._change.wait(None if self._waiting is None else self._retry_at - time.monotonic())
            return None if self._closed else self._waiting, self._final

    def _publish(self, snapshot: Snapshot, final: bool) -> TargetFailed | None:
        try:
            self._target.publish(snapshot, final)
            return None
        except TargetFailed as failure:
            return failure
        except GoodputError as error:
            return TargetFailed(str(error), lasting=True)
        except Exception as error:  # no target may end the others
            return TargetFailed(f"{type(error).__name__}: {error}")

    def _failed(self, failure: TargetFailed) -> None:
        first, longest = RETRY_SECONDS
        wait = LASTING_SECONDS if failure.lasting else min(longest, first * 2 ** min(self._failures, 16))
        wait = max(wait, failure.wait or 0.0)
        self._failures += 1
        self._retry_at = time.monotonic() + (min(wait, HURRY_SECONDS) if self._final else wait)
        if time.monotonic() >= self._said_at + SAY_AGAIN_SECONDS:
            self._said_at = time.monotonic()
            self._say(f"{self.name}: {failure} (trying again)")

    def close(self) -> None:
        """Close the target, unless a delivery is still hanging in it: then it ends with the process."""
        with self._change:
            idle = self._delivered or self._waiting is None
            self._closed = True
            self._change.notify_all()
        if idle:
            self._target.close()


def finish_all(workers: Sequence[TargetWorker], snapshot: Snapshot, grace: float) -> list[str]:
    """Give every target the last update, all at once; the names of those that did not take it within `grace` s."""
    for worker in workers:
        worker.offer(snapshot, final=True)
    deadline = time.monotonic() + grace
    return [worker.name for worker in workers if not worker.finish(deadline)]

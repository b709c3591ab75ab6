"""Orbax: `manager = monitored(CheckpointManager(...), recorder)`. It imports nothing.

If Orbax itself logs to the same target (its cloud logger), its lines are enough: use one of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..recorder import Recorder


class monitored:  # noqa: N801  # people call it like a function
    """A `CheckpointManager` that records saves and restores. It is otherwise unchanged.

    An asynchronous save is recorded for as long as it blocks, and as complete once the manager has waited for it.
    """

    def __init__(self, manager: Any, recorder: Recorder) -> None:
        self._manager = manager
        self._recorder = recorder
        self._unfinished: int | None = None

    def save(self, step: int, *args: Any, **named: Any) -> Any:
        """Save as the manager does. A step that it chooses not to save is not recorded."""
        span = self._recorder.checkpoint_save(step, self._directory(), synchronous=False)
        span.__enter__()
        try:
            saved = self._manager.save(step, *args, **named)
        except BaseException as error:
            span.__exit__(type(error), error, None)
            raise
        if saved is False:
            return saved
        self._finished()  # the manager has waited for the previous save
        span.__exit__(None, None, None)
        self._unfinished = step
        goes_on = getattr(self._manager, "is_saving_in_progress", None)  # it continues in the background
        if not (callable(goes_on) and goes_on()):
            self._finished()
        return saved

    def restore(self, step: int | None = None, *args: Any, **named: Any) -> Any:
        """Restore as the manager does."""
        newest = self._manager.latest_step() if step is None else step
        with self._recorder.checkpoint_restore(newest or 0, self._directory()):
            return self._manager.restore(step, *args, **named)

    def wait_until_finished(self, *args: Any, **named: Any) -> Any:
        """Wait as the manager does."""
        done = self._manager.wait_until_finished(*args, **named)
        self._finished()
        return done

    def close(self) -> Any:
        """Close as the manager does: it waits first."""
        done = self._manager.close()
        self._finished()
        return done

    def __enter__(self) -> monitored:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    def _finished(self) -> None:
        step, self._unfinished = self._unfinished, None
        if step is not None:
            self._recorder.checkpoint_saved(step)

    def _directory(self) -> str:
        return str(getattr(self._manager, "directory", ""))

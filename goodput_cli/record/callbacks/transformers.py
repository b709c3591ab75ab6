# ruff: noqa: ARG002  # a hook has the signature that the framework calls
"""Transformers: `Trainer(callbacks=[GoodputCallback(recorder)])`."""

from __future__ import annotations

import os
from functools import wraps
from typing import TYPE_CHECKING, Any

try:
    import transformers
    from transformers import TrainerCallback
except ImportError:
    raise ImportError("goodput's Transformers callback requires transformers: pip install transformers") from None

if TYPE_CHECKING:
    from ..recorder import Recorder
    from ..spans import Checkpoint, Phase, RecordedRun


class GoodputCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]  # the framework's, typed where it is there
    """Callback that records the run from the creation of the trainer: its preparation, steps, evaluations, saves and
    restores.

    The trainer reports the end of an evaluation or a save, but only announces its begin: an evaluation begins at the
    end of the step, a save after that or after the evaluation. It reports no restore. Reads of a checkpoint (model,
    optimizer) are recorded around the trainer's methods.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._run: RecordedRun | None = None
        self._prep: Phase | None = None
        self._eval: Phase | None = None
        self._save: Checkpoint | None = None
        self._will_save = False
        self._restored = False

    def on_init_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begin the run: the trainer has been created."""
        self._begin(args)
        self._prep = self._recorder.phase("training_prep")
        self._prep.__enter__()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """End the preparation."""
        self._begin(args)
        if state.global_step and not self._restored:
            self._recorder.checkpoint_loaded(state.global_step)
        self._end_prep()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begin a step."""
        self._recorder.begin_step(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begin an announced evaluation or save."""
        self._will_save = control.should_save
        if control.should_evaluate:
            self._eval = self._recorder.phase("eval")
            self._eval.__enter__()
        elif control.should_save:
            self._begin_save(args, state)

    on_epoch_end = on_step_end

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """End an evaluation; begin an announced save."""
        phase, self._eval = self._eval, None
        if phase is not None:
            phase.__exit__()
        if self._will_save:
            self._begin_save(args, state)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """End a save."""
        save, self._save = self._save, None
        if save is not None:
            save.__exit__(None, None, None)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """End the run."""
        self._end_prep()
        run, self._run = self._run, None
        if run is not None:
            run.__exit__(None, None, None)

    def restoring(self, checkpoint: Any) -> Checkpoint:
        """Return a span for reading a checkpoint, a folder that is named after its step."""
        self._restored = True
        step = str(checkpoint).rstrip("/\\").rpartition("-")[2]
        return self._recorder.checkpoint_restore(int(step) if step.isdecimal() else 0, checkpoint)

    def _begin(self, args: Any) -> None:
        if self._run is None:
            self._recorder.assume_rank(args.process_index, args.world_size)
            self._run = self._recorder.run()
            self._run.__enter__()

    def _begin_save(self, args: Any, state: Any) -> None:
        self._will_save = False
        directory = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        self._save = self._recorder.checkpoint_save(state.global_step, directory)
        self._save.__enter__()

    def _end_prep(self) -> None:
        prep, self._prep = self._prep, None
        if prep is not None:
            prep.__exit__()


_READING = ("_load_from_checkpoint", "_load_optimizer_and_scheduler")


def _watch(trainer: Any) -> None:
    """Record checkpoint reads of trainers with the callback. trainer: the class."""
    for name in _READING:
        method = getattr(trainer, name, None)
        if method is not None and not hasattr(method, "__wrapped__"):
            setattr(trainer, name, _recorded(method))


def _recorded(method: Any) -> Any:
    @wraps(method)
    def recorded(self: Any, checkpoint: Any, *args: Any, **named: Any) -> Any:
        callbacks = [one for one in self.callback_handler.callbacks if isinstance(one, GoodputCallback)]
        if checkpoint is None or not callbacks:
            return method(self, checkpoint, *args, **named)
        with callbacks[0].restoring(checkpoint):
            return method(self, checkpoint, *args, **named)

    return recorded


_watch(getattr(transformers, "Trainer", None))

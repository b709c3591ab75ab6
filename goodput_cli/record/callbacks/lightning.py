# ruff: noqa: ARG002  # a hook has the signature that the framework calls
"""Lightning: `Trainer(callbacks=[GoodputCallback(recorder)])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from lightning.pytorch import Callback
except ImportError:
    try:
        from pytorch_lightning import Callback
    except ImportError:
        raise ImportError("goodput's Lightning callback requires lightning: pip install lightning") from None

if TYPE_CHECKING:
    from ..recorder import Recorder
    from ..spans import Phase, RecordedRun


class GoodputCallback(Callback):  # type: ignore[misc,unused-ignore]  # the framework's, typed only where it is there
    """Callback that records the run of `fit`, its steps, evaluations, saves and restores.

    A save is recorded around `trainer.save_checkpoint`, because `on_save_checkpoint` is called before the file exists.
    With an asynchronous `CheckpointIO` that is the blocking part, and the completion of the checkpoint is unknown. A
    restore is recorded around the strategy's `load_checkpoint`; the time after it, up to the first step, is
    preparation.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._run: RecordedRun | None = None
        self._prep: Phase | None = None
        self._phase: Phase | None = None
        self._step: int | None = None
        self._save: Any = None
        self._load: Any = None
        self._loaded = False

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin the run and its preparation."""
        if stage != "fit" or self._run is not None:
            return
        self._recorder.assume_rank(trainer.global_rank, trainer.world_size)
        self._run = self._recorder.run()
        self._run.__enter__()
        self._prep = self._recorder.phase("training_prep")
        self._prep.__enter__()
        self._step, self._loaded = None, False
        self._wrap(trainer)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """End the preparation."""
        self._end_prep()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Begin a step; with accumulated gradients, several batches are one step."""
        if trainer.global_step != self._step:
            self._step = trainer.global_step
            self._recorder.begin_step(self._step)

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin the sanity check: Lightning tries a few batches of validation before training."""
        self._begin("sanity_check")

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        """End the sanity check."""
        self._end()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin an evaluation."""
        if self._run is not None and not trainer.sanity_checking:
            self._begin("eval")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """End an evaluation."""
        if not trainer.sanity_checking:
            self._end()

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """Record a restored checkpoint, if reading it was not recorded."""
        if self._run is not None and not self._loaded:
            self._recorder.checkpoint_loaded(checkpoint.get("global_step", 0))

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """End the run with an exception."""
        self._finish(exception)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """End the run."""
        self._finish(None)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Restore the trainer's own `save_checkpoint`, and the strategy's `load_checkpoint`."""
        if self._save is not None:
            trainer.save_checkpoint = self._save
            self._save = None
        if self._load is not None:
            trainer.strategy.load_checkpoint = self._load
            self._load = None

    def _wrap(self, trainer: Any) -> None:
        save = self._save = trainer.save_checkpoint

        def recorded(filepath: Any, *args: Any, **named: Any) -> Any:
            synchronous = "Async" not in type(trainer.strategy.checkpoint_io).__name__
            with self._recorder.checkpoint_save(trainer.global_step, filepath, synchronous):
                return save(filepath, *args, **named)

        trainer.save_checkpoint = recorded
        load = self._load = getattr(trainer.strategy, "load_checkpoint", None)
        if load is None:
            return

        def restored(checkpoint_path: Any, *args: Any, **named: Any) -> Any:
            restore = self._recorder.checkpoint_restore(0, checkpoint_path)
            with restore:
                checkpoint = load(checkpoint_path, *args, **named)
                restore.step = checkpoint.get("global_step", 0)
            self._loaded = True
            return checkpoint

        trainer.strategy.load_checkpoint = restored

    def _begin(self, name: str) -> None:
        self._end()
        self._phase = self._recorder.phase(name)
        self._phase.__enter__()

    def _end(self) -> None:
        phase, self._phase = self._phase, None
        if phase is not None:
            phase.__exit__()

    def _end_prep(self) -> None:
        prep, self._prep = self._prep, None
        if prep is not None:
            prep.__exit__()

    def _finish(self, exception: BaseException | None) -> None:
        self._end()
        self._end_prep()
        run, self._run = self._run, None
        if run is not None:
            run.__exit__(None if exception is None else type(exception), exception, None)

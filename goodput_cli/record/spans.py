"""The results of `with recorder.….:`: spans with a begin and an end."""

from __future__ import annotations

from functools import wraps

from .lines import LOADING, VITAL, epoch_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, TypeVar

    from .attempt import RecordedAttempt
    from .step_times import OpenSpan, StepTimeSums

    class SpanRecorder(Protocol):
        """Interface of the recorder for spans: see the class of this name."""

        times: StepTimeSums

        def attempt(self, at: object = None, /) -> RecordedAttempt | None: ...

        def begin_step(self, number: Any, at: object = None, /) -> None: ...

        def begin_run(self, at: object, /) -> bool: ...

        def end_run(self, kind: type[BaseException] | None, error: BaseException | None, at: object, /) -> None: ...

    Function = TypeVar("Function", bound=Callable[..., Any])


class Step:
    """A step: a line when it begins, none when it ends (with asynchronous dispatch it ends long after). Created once
    per recorder and reused for every step."""

    __slots__ = ("_recorder", "at", "number")

    def __init__(self, recorder: SpanRecorder) -> None:
        self._recorder = recorder
        self.number: Any = 0
        self.at: object = None

    def __enter__(self) -> Step:
        self._recorder.begin_step(self.number, self.at)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        times = self._recorder.times
        times.end() if kind is None else times.give_up()
        attempt = self._recorder.attempt()
        if attempt is None:
            return
        attempt.between_steps = True
        if kind is not None:
            attempt.failed_step = self.number


class Phase:
    """A phase: a line when it begins and one when it ends, also by an exception. As a decorator: one phase per call.

    stem: the prefix of the keys of its two lines. label: the key and the name of its type, if it has one.
    """

    __slots__ = ("_at", "_kind", "_label", "_recorder", "_span", "_stem", "_until")

    def __init__(
        self, recorder: SpanRecorder, stem: str, label: tuple[str, str] | None, kind: int, at: object, until: object
    ) -> None:
        self._recorder = recorder
        self._stem = stem
        self._label = label
        self._kind = kind
        self._at = at
        self._until = until
        self._span: OpenSpan | None = None

    def __enter__(self) -> Phase:
        times = self._recorder.times
        self._span = times.enter_data(self._at) if self._kind == LOADING else times.enter_claimed(self._at)
        self._record_edge("start", self._at)
        return self

    def __exit__(self, *_: object) -> None:
        self._recorder.times.leave(self._span, self._until)
        self._record_edge("end", self._until)

    def _record_edge(self, edge: str, at: object) -> None:
        attempt = self._recorder.attempt(at)
        if attempt is not None:
            attempt.edge(f"{self._stem}_{edge}_time", self._label, self._kind, at)

    def __call__(self, function: Function) -> Function:
        @wraps(function)
        def phased(*args: Any, **named: Any) -> Any:
            with Phase(self._recorder, self._stem, self._label, self._kind, self._at, self._until):
                return function(*args, **named)

        return phased  # type: ignore[return-value]  # the same signature


class Checkpoint:
    """A save or a restore: when it ends, one full line as Orbax logs it, and `done` without an exception.

    step: may be set until it ends. fields: returns the line. done: the event that marks it complete; None if that is
    recorded later.
    """

    __slots__ = (
        "_at", "_begin_us", "_directory", "_done", "_fields", "_recorder", "_span", "_synchronous", "_until", "step",
    )  # fmt: skip

    def __init__(
        self,
        recorder: SpanRecorder,
        fields: Callable[[int, str, int, int, bool], dict[str, object]],
        step: Any,
        directory: str,
        synchronous: bool,
        done: str | None,
        at: object,
        until: object,
    ) -> None:
        self._recorder = recorder
        self._fields = fields
        self.step = step
        self._directory = directory
        self._synchronous = synchronous
        self._done = done
        self._at = at
        self._until = until
        self._begin_us = 0
        self._span: OpenSpan | None = None

    def __enter__(self) -> Checkpoint:
        self._span = self._recorder.times.enter_claimed(self._at)
        attempt = self._recorder.attempt(self._at)
        if attempt is not None:
            self._begin_us = attempt.time_us(self._at)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self._recorder.times.leave(self._span, self._until)
        attempt = self._recorder.attempt()
        if attempt is None or attempt.side:
            return
        step = attempt.whole(self.step)
        if step is None:
            return
        end_us = max(self._begin_us, attempt.time_us(self._until))
        attempt.record(self._fields(step, self._directory, self._begin_us, end_us, self._synchronous), VITAL, end_us)
        if kind is None and self._done is not None:
            attempt.native(self._done, end_us, step=step)


def save_fields(step: int, directory: str, begin_us: int, end_us: int, synchronous: bool) -> dict[str, object]:
    """Return Orbax' line of a save that blocked from `begin_us` to `end_us`.

    It has all keys: with fewer, ml-goodput-measurement raises KeyError and reports no goodput at all.
    """
    begin, end, took, none = epoch_seconds(begin_us), epoch_seconds(end_us), epoch_seconds(end_us - begin_us), b"0.0"
    return {
        "event_type": "save",
        "step": step,
        "directory": directory,
        "synchronous": synchronous,
        "wait_for_prev_start_time": begin,
        "wait_for_prev_duration_secs": none,
        "checkpointer_blocking_start_time": begin,
        "checkpointer_blocking_duration_secs": took,
        "get_old_steps_start_time": end,
        "get_old_steps_duration_secs": none,
        "checkpoint_manager_blocking_start_time": begin,
        "checkpoint_manager_blocking_duration_secs": took,
    }


def restore_fields(step: int, directory: str, begin_us: int, end_us: int, _synchronous: bool) -> dict[str, object]:
    """Return Orbax' line of a restore."""
    begin, took = epoch_seconds(begin_us), epoch_seconds(end_us - begin_us)
    return {
        "event_type": "restore",
        "step": step,
        "directory": directory,
        "checkpointer_start_time": begin,
        "checkpointer_duration_secs": took,
        "checkpoint_manager_start_time": begin,
        "checkpoint_manager_duration_secs": took,
    }


class RecordedRun:
    """The run of the job in this process, from its start to its end; the way it is left determines the recorded end. A
    nested one has no effect."""

    __slots__ = ("_at", "_outermost", "_recorder", "_until")

    def __init__(self, recorder: SpanRecorder, at: object, until: object) -> None:
        self._recorder = recorder
        self._at = at
        self._until = until
        self._outermost = False

    def __enter__(self) -> RecordedRun:
        self._outermost = self._recorder.begin_run(self._at)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._outermost:
            self._outermost = False
            self._recorder.end_run(kind, error, self._until)

"""From what a user names (a path, a URI, an object, or a list of them) to sinks, and what every sink is told about the
attempt that writes to it."""

from __future__ import annotations

import os

from ..names import default_folder, in_path, own_file, process_file, variable
from ..queues import Unavailable, Worker
from .files import FSYNC, FileSink, is_file, is_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from ..queues import Delivery, Drops, Item

    class Sink(Protocol):
        """Takes lines in the thread of the program; no method raises.

        write: a line, its kind, and its time (µs). lost: a line that cannot be written at all. flush, close: until a
        deadline (`time.monotonic`); close returns what was lost and could not be said.
        """

        name: str

        def write(self, line: bytes, kind: int, us: int) -> None: ...

        def lost(self, kind: int, us: int, reason: str) -> None: ...

        def flush(self, deadline: float, /) -> bool: ...

        def close(self, deadline: float, /) -> Drops: ...

    class Writable(Protocol):
        """Takes a line, with its line break; called in the background. It may block and raise."""

        def write(self, line: bytes, /) -> object: ...

    class Context(Protocol):
        """The attempt (a `Writer`): whose lines they are, and how much may wait.

        say_dropped, say_second: make the lines that say it. warn: takes sentences for the person who runs the program.
        inline: write files in the caller's thread (None: where the file system is local). batch_lines, latency: when
        Cloud Logging has company enough. log_id: its log, where the target names none; "" for `goodput_<job>`.
        """

        job_name: str
        run_id: str
        rank: int
        inline: bool | None
        fsync: str
        queue_lines: int
        queue_bytes: int
        batch_lines: int
        latency: float
        log_id: str

        def say_dropped(self, drops: Drops, sink: str, /) -> bytes: ...

        def say_second(self, beside: int, /) -> bytes: ...

        def warn(self, sentence: str, /) -> None: ...

    Target = str | os.PathLike[str] | Writable
    Targets = Target | list[Target] | tuple[Target, ...] | None

_CLOUD_LOGGING, _STORAGE, _FILE = "cloud-logging:", "gs://", "file://"
_STANDARD = {"-": 1, "stdout:": 1, "stderr:": 2}


def split(to: Targets) -> list[Target]:
    """The targets, one by one; those of GOODPUT_RECORDER_TO (commas between) where nothing is given."""
    if to is None:
        return [part.strip() for part in variable("TO").split(",") if part.strip()]
    if isinstance(to, list | tuple):
        return [*to]
    return [to]


def beside(targets: Sequence[Target], run_id: str, rank: int) -> list[Target]:
    """The targets of another rank, where only rank 0 writes to those that are named: a file has one beside it."""
    return [own_file(os.fspath(one), run_id, rank) if _is_path(one) else one for one in targets]  # type: ignore[arg-type]


def _is_path(target: Target) -> bool:
    """Whether it is the path of a file, as far as its name tells: no folder, stream, bucket or object."""
    if not isinstance(target, str | os.PathLike):
        return False
    text = os.fspath(target)
    if text in _STANDARD or text.startswith((_CLOUD_LOGGING, _STORAGE)):
        return False
    path = text.removeprefix(_FILE)
    return not path.endswith(os.sep) and not os.path.isdir(path)


def open_targets(targets: Sequence[Target], context: Context) -> list[Sink]:
    """A sink a target, local files first; a file in the default folder where there are none.

    Raises ValueError for a target that is no target: nothing is opened before the first line.
    """
    if not targets:
        return [default_file(context)]
    sinks = [open_target(target, context) for target in targets]
    return sorted(sinks, key=lambda sink: not isinstance(sink, FileSink))


def check(target: Target) -> None:
    """Raises ValueError if the target is none."""
    if isinstance(target, str | os.PathLike):
        text = os.fspath(target)
        if not text:
            raise ValueError("cannot record to an empty path")
        scheme, colon, _ = text.partition("://")
        if colon and f"{scheme}:" not in (_CLOUD_LOGGING, "gs:", "file:"):
            raise ValueError(f"cannot record to {scheme}://; use a path, gs://, cloud-logging: or an object")
    elif not callable(getattr(target, "write", None)):
        raise ValueError(f"cannot record to {type(target).__name__}: it has no method `write`")


def open_target(target: Target, context: Context) -> Sink:
    """The sink of one target."""
    if not isinstance(target, str | os.PathLike):
        return behind_queue(UserSink(target), context)
    check(target)
    text = os.fspath(target)
    if text in _STANDARD:
        return _file(text, context, descriptor=_STANDARD[text])
    if text.startswith(_STORAGE):
        from .google import CloudStorage

        bucket, _, prefix = text.removeprefix(_STORAGE).partition("/")
        folder = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        stem = f"{folder}{in_path(context.job_name)}/{context.run_id}.r{context.rank}"
        return behind_queue(CloudStorage(bucket, stem), context)
    if text.startswith(_CLOUD_LOGGING):
        from .google import CloudLogging

        project, _, log_id = text.removeprefix(_CLOUD_LOGGING).removeprefix("//").partition("/")
        log_id = log_id or context.log_id or f"goodput_{context.job_name}"
        prefix = f"{context.run_id}-{context.rank}-"
        return behind_queue(CloudLogging(project, log_id, prefix, context.batch_lines, context.latency), context)
    path = text.removeprefix(_FILE)
    if path.endswith(os.sep) or os.path.isdir(path):
        path = os.path.join(path, process_file(context.job_name, context.run_id, context.rank))
    return _file(path, context)


def default_file(context: Context) -> Sink:
    """The job's file in the default folder; one of its own for each process where appending together is not safe."""
    folder = default_folder()
    plain = os.path.join(folder, f"{in_path(context.job_name)}.jsonl")
    if context.rank or not is_local(plain):
        plain = os.path.join(folder, process_file(context.job_name, context.run_id, context.rank))
    return _file(plain, context, follow=False)


def behind_queue(delivery: Delivery, context: Context) -> Worker:
    """A sink that may block, made one that does not."""
    return Worker(
        delivery,
        queue_lines=context.queue_lines,
        queue_bytes=context.queue_bytes,
        say_dropped=context.say_dropped,
        warn=context.warn,
    )


def _file(path: str, context: Context, *, follow: bool = True, descriptor: int | None = None) -> Sink:
    if context.fsync not in FSYNC:
        raise ValueError(f"fsync must be one of {', '.join(FSYNC)}, not {context.fsync!r}")
    sink = FileSink(
        path,
        say_dropped=context.say_dropped,
        warn=context.warn,
        fsync=context.fsync,
        follow=follow,
        descriptor=descriptor,
        second=context.say_second,
    )
    inline = context.inline
    if inline is None:
        inline = is_local(path) if descriptor is None else is_file(descriptor)
    return sink if inline else behind_queue(sink, context)


class UserSink:
    """See `Delivery`: each line is written, in order; one that raises is tried again."""

    batch_lines = 1
    most_lines = 1000
    most_bytes = 1 << 20

    def __init__(self, target: Writable) -> None:
        self.name = type(target).__name__
        self._target = target

    def latency(self) -> float:
        """Seconds that a line waits for company."""
        return 0.0

    def send(self, items: Sequence[Item]) -> Sequence[Item]:
        """Write lines; raises Unavailable at the first that fails, with those before it done."""
        for at, item in enumerate(items):
            try:
                self._target.write(item[3])
            except BaseException as error:
                raise Unavailable.of(error, at) from None
        return ()

    def close(self) -> None:
        """It is the user's."""

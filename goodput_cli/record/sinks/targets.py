"""Conversion of the user's targets (a path, a URI, an object, or a list of them) to sinks, with the context of the
attempt that writes to them."""

from __future__ import annotations

import os

from ..names import default_folder, in_path, own_file, process_file, variable
from ..queues import UnavailableError, Worker
from .files import FSYNC, FileSink, is_file, is_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from ..queues import Delivery, Drops, Item

    class Sink(Protocol):
        """Destination that takes lines in the thread of the program; no method raises.

        write: a line, its kind, and its time (µs). lost: a line that cannot be written at all. flush, close: until a
        deadline (`time.monotonic`); close returns the lost lines that could not be reported.
        """

        name: str

        def write(self, line: bytes, kind: int, us: int) -> None: ...

        def lost(self, kind: int, us: int, reason: str) -> None: ...

        def flush(self, deadline: float, /) -> bool: ...

        def close(self, deadline: float, /) -> Drops: ...

    class WritableTarget(Protocol):
        """An object that takes a line with its line break, called in the background. It may block and raise."""

        def write(self, line: bytes, /) -> object: ...

    class Context(Protocol):
        """Properties of the attempt (a `Writer`): the owner of the lines, and the limits of waiting lines.

        dropped_line, second_writer_line: return the lines of such reports. warn: called with messages for the user of
        the program. inline: True to write files in the caller's thread (None: for a local file system). batch_lines,
        latency: limits of a batch for Cloud Logging. log_id: its log, if the target contains none; "" for
        `goodput_<job>`.
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

        def dropped_line(self, drops: Drops, sink: str, /) -> bytes: ...

        def second_writer_line(self, beside: int, /) -> bytes: ...

        def warn(self, sentence: str, /) -> None: ...

    Target = str | os.PathLike[str] | WritableTarget
    Targets = Target | list[Target] | tuple[Target, ...] | None

_CLOUD_LOGGING, _STORAGE, _FILE = "cloud-logging:", "gs://", "file://"
_STANDARD = {"-": 1, "stdout:": 1, "stderr:": 2}


def split(to: Targets) -> list[Target]:
    """Return the targets as a list; by default those of GOODPUT_RECORDER_TO (separated by commas)."""
    if to is None:
        return [part.strip() for part in variable("TO").split(",") if part.strip()]
    if isinstance(to, list | tuple):
        return [*to]
    return [to]


def targets_of_rank(targets: Sequence[Target], run_id: str, rank: int) -> list[Target]:
    """Return the targets of another rank if only rank 0 writes to the given ones: the file next to each file."""
    return [own_file(os.fspath(one), run_id, rank) if _is_path(one) else one for one in targets]  # type: ignore[arg-type]


def _is_path(target: Target) -> bool:
    """Return True if the name is that of a file, not of a folder, stream, bucket or object."""
    if not isinstance(target, str | os.PathLike):
        return False
    text = os.fspath(target)
    if text in _STANDARD or text.startswith((_CLOUD_LOGGING, _STORAGE)):
        return False
    path = text.removeprefix(_FILE)
    return not path.endswith(os.sep) and not os.path.isdir(path)


def open_targets(targets: Sequence[Target], context: Context) -> list[Sink]:
    """Return a sink per target, local files first; a file in the default folder without targets.

    Raises ValueError for an invalid target: nothing is opened before the first line.
    """
    if not targets:
        return [default_file(context)]
    sinks = [open_target(target, context) for target in targets]
    return sorted(sinks, key=lambda sink: not isinstance(sink, FileSink))


def check(target: Target) -> None:
    """Raise ValueError for an invalid target."""
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
    """Return the sink of one target."""
    if not isinstance(target, str | os.PathLike):
        return with_queue(UserSink(target), context)
    check(target)
    text = os.fspath(target)
    if text in _STANDARD:
        return _file(text, context, descriptor=_STANDARD[text])
    if text.startswith(_STORAGE):
        from .google import CloudStorage

        bucket, _, prefix = text.removeprefix(_STORAGE).partition("/")
        folder = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        stem = f"{folder}{in_path(context.job_name)}/{context.run_id}.r{context.rank}"
        return with_queue(CloudStorage(bucket, stem), context)
    if text.startswith(_CLOUD_LOGGING):
        from .google import CloudLogging

        project, _, log_id = text.removeprefix(_CLOUD_LOGGING).removeprefix("//").partition("/")
        log_id = log_id or context.log_id or f"goodput_{context.job_name}"
        prefix = f"{context.run_id}-{context.rank}-"
        return with_queue(CloudLogging(project, log_id, prefix, context.batch_lines, context.latency), context)
    path = text.removeprefix(_FILE)
    if path.endswith(os.sep) or os.path.isdir(path):
        path = os.path.join(path, process_file(context.job_name, context.run_id, context.rank))
    return _file(path, context)


def default_file(context: Context) -> Sink:
    """Return the job's file in the default folder; a separate one for each process if appending together is not
    safe."""
    folder = default_folder()
    plain = os.path.join(folder, f"{in_path(context.job_name)}.jsonl")
    if context.rank or not is_local(plain):
        plain = os.path.join(folder, process_file(context.job_name, context.run_id, context.rank))
    return _file(plain, context, follow=False)


def with_queue(delivery: Delivery, context: Context) -> Worker:
    """Return a sink that does not block, for one that may."""
    return Worker(
        delivery,
        queue_lines=context.queue_lines,
        queue_bytes=context.queue_bytes,
        dropped_line=context.dropped_line,
        warn=context.warn,
    )


def _file(path: str, context: Context, *, follow: bool = True, descriptor: int | None = None) -> Sink:
    if context.fsync not in FSYNC:
        raise ValueError(f"fsync must be one of {', '.join(FSYNC)}, not {context.fsync!r}")
    sink = FileSink(
        path,
        dropped_line=context.dropped_line,
        warn=context.warn,
        fsync=context.fsync,
        follow=follow,
        descriptor=descriptor,
        second=context.second_writer_line,
    )
    inline = context.inline
    if inline is None:
        inline = is_local(path) if descriptor is None else is_file(descriptor)
    return sink if inline else with_queue(sink, context)


class UserSink:
    """A user's object as a sink; see `Delivery`. Each line is written, in order; one that raises is retried."""

    batch_lines = 1
    most_lines = 1000
    most_bytes = 1 << 20

    def __init__(self, target: WritableTarget) -> None:
        self.name = type(target).__name__
        self._target = target

    def latency(self) -> float:
        """Return the seconds that a line waits for a batch."""
        return 0.0

    def send(self, items: Sequence[Item]) -> Sequence[Item]:
        """Write lines. Raises Unavailable at the first that fails, with the number of those before it."""
        for at, item in enumerate(items):
            try:
                self._target.write(item[3])
            except BaseException as error:
                raise UnavailableError.of(error, at) from None
        return ()

    def close(self) -> None:
        """Do nothing: the object belongs to the user."""

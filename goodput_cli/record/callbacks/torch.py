"""PyTorch: `for batch in timed_loader(loader, recorder):`. It imports nothing and accepts any iterable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..recorder import Recorder

Batch = TypeVar("Batch")


class timed_loader(Generic[Batch]):  # noqa: N801  # people call it like a function
    """A loader that records the wait for each batch as data loading. It is otherwise unchanged."""

    def __init__(self, loader: Iterable[Batch], recorder: Recorder) -> None:
        self._loader = loader
        self._recorder = recorder

    def __iter__(self) -> Iterator[Batch]:
        batches = iter(self._loader)
        while True:
            with self._recorder.data_loading():
                batch = next(batches, _END)
            if batch is _END:
                return
            yield batch

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]  # where the loader has a length

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


_END: Any = object()

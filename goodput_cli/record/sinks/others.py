"""The sink that passes lines to a user's own object: anything with `write(line)`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from ..queues import Item

    class Writable(Protocol):
        """Takes a line, with its line break; called in the background. It may block and raise."""

        def write(self, line: bytes, /) -> object: ...


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
        from ..workers import Unavailable

        for at, item in enumerate(items):
            try:
                self._target.write(item[3])
            except Exception as error:
                raise Unavailable(type(error).__name__, done=at) from None
        return ()

    def close(self) -> None:
        """It is the user's."""

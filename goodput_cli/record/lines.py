"""Serialization of lines of a log, and their importance if not all can be kept."""

from __future__ import annotations

import math
from json import JSONEncoder

from .native import EVENT, JOB_NAME, RUN_ID, TIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Lines with the smallest kind are dropped first when a queue is full.
SPARE, LOADING, STEP, PHASE, VITAL = range(5)
"""SPARE: heartbeats and metrics. LOADING: data loading. PHASE: phases. VITAL: starts, ends, checkpoints."""

MOST_BYTES = 64 << 10
"""A longer line is not written."""
LOADING_BEGINS = "data_loading_start_time"
LOADING_START = b'"%s"' % LOADING_BEGINS.encode()
BETWEEN_STEPS = "between_steps"
"""The key of data loading between two steps, which training waits for."""
SECOND = 10**6
"""Microseconds."""

_quote = JSONEncoder(ensure_ascii=True, allow_nan=False).encode


def quote(text: str) -> bytes:
    """Return a JSON string in ASCII; invalid text (half of a surrogate pair) becomes U+FFFD."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _quote(text).encode()


def epoch_seconds(us: int) -> bytes:
    """Return epoch seconds with six decimals, from microseconds: unlike `repr(float)`, every language reads the same
    value."""
    return b"%d.%06d" % divmod(us, SECOND)


def value(given: object) -> bytes:
    """Return a JSON value; bytes are JSON already. Raises ValueError for a number that is not finite."""
    if isinstance(given, bytes):
        return given
    if isinstance(given, str):
        return quote(given)
    if given is None or isinstance(given, bool | int):
        return _quote(given).encode()
    number = float(given)  # type: ignore[arg-type]  # what is no number raises TypeError
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return _quote(number).encode()


class LineSerializer:
    """Serializer of the lines of one job. Keys keep their order after `job_name`.

    run_id: of the attempt, in each line if several processes write one file.
    """

    def __init__(self, job_name: str, run_id: str = "") -> None:
        self._head = b'{"%s": %s' % (JOB_NAME.encode(), quote(job_name))
        self._run_id = run_id
        if run_id:
            self._head += b', "%s": %s' % (RUN_ID.encode(), quote(run_id))
        self._step = self._head + b', "step_count": '

    def step(self, number: int, us: int) -> bytes:
        """Return the line of the start of a step, the most frequent line of a job."""
        return b'%s%d, "step_start_time": %d.%06d}\n' % (self._step, number, us // SECOND, us % SECOND)

    def fact(self, key: str, us: int) -> bytes:
        """Return a line with only a time."""
        return b'%s, "%s": %s}\n' % (self._head, key.encode(), epoch_seconds(us))

    def record(self, fields: Mapping[str, object]) -> bytes:
        """Return a line with any keys; a value may be bytes, which are JSON already. Raises TypeError and ValueError
        for values that JSON cannot represent."""
        parts = [b", %s: %s" % (quote(key), value(given)) for key, given in fields.items()]
        return b"%s%s}\n" % (self._head, b"".join(parts))

    def native(self, event: str, us: int, fields: Mapping[str, object]) -> bytes:
        """Return a line of the native format, without fields that are None."""
        said = RUN_ID if self._run_id else None
        known = {key: given for key, given in fields.items() if given is not None and key != said}
        return self.record({EVENT: event, TIME: epoch_seconds(us), **known})

"""How much memory a document or a job takes while it is accounted for, by what was measured (docs/fleet.md)."""

from __future__ import annotations

from goodput_cli.fleet.passes.pieces import SharedJob, Split
from goodput_cli.sources.base import Document
from goodput_cli.sources.endings import PACKED_ENDINGS

_BASE = 140 << 20
"""Of a process with its modules, and the results of a task."""
_OF_A_BYTE, _OF_A_PACKED_BYTE, _OF_AN_EVENT = 1.6, 16.0, 160
_SAFE = 0.9
"""Of its limit: dask ends a worker that takes more than 0.95."""
LEAST = int(_BASE / _SAFE)
"""Below such a limit (bytes) nothing fits."""


Item = Document | Split | SharedJob


def needed(item: Item) -> int:
    """What a process needs for one item (bytes), as far as its size shows it."""
    if isinstance(item, SharedJob):
        return _BASE + item.events * _OF_AN_EVENT
    packed = name_of(item).lower().endswith(tuple(ending for ending in PACKED_ENDINGS if ending))
    return _BASE + int((item.size or 0) * (_OF_A_PACKED_BYTE if packed else _OF_A_BYTE))


def fits(item: Item, limit: int | None) -> bool:
    """Whether an item can be done by a process with this limit (bytes); None: there is none."""
    return limit is None or needed(item) <= _SAFE * limit


def name_of(item: Item) -> str:
    """The name that people see."""
    return item.job if isinstance(item, SharedJob) else item.document.name if isinstance(item, Split) else item.name


def of_this_machine() -> int:
    """The memory that this process may have (bytes): that of the machine, or less where a container or a limit says so.
    Asked only where dask is."""
    from distributed.system import MEMORY_LIMIT

    return int(MEMORY_LIMIT)

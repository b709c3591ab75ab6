"""Which process of the job this is, found without importing any framework."""

from __future__ import annotations

import os
import sys

from .names import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JAX_PROCESS_ID")
_SIZES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "JAX_NUM_PROCESSES")


def find_rank(rank: int | None = None, world_size: int | None = None) -> tuple[int, int | None]:
    """(rank, number of processes or None). The first that answers: what is given, GOODPUT_RECORDER_RANK, a framework
    that is imported and initialised already, the launcher's variables; else 0."""
    if rank is None:
        rank = _number(VARIABLE + "RANK")
    for ask in (_torch, _jax, _launcher):
        if rank is not None and world_size is not None:
            break
        found, size = ask()
        rank = found if rank is None else rank
        world_size = size if world_size is None else world_size
    return rank or 0, world_size


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _torch() -> tuple[int | None, int | None]:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None:
        return None, None
    return _ask(
        lambda: distributed.is_available() and distributed.is_initialized(),
        lambda: (distributed.get_rank(), distributed.get_world_size()),
    )


def _jax() -> tuple[int | None, int | None]:
    """`jax.process_index` initialises the backend: it is only called where that has happened already."""
    jax = sys.modules.get("jax")
    if jax is None:
        return None, None
    return _ask(lambda: jax.distributed.is_initialized(), lambda: (jax.process_index(), jax.process_count()))


def _ask(ready: Callable[[], object], answer: Callable[[], tuple[int, int]]) -> tuple[int | None, int | None]:
    try:
        if ready():
            rank, size = answer()
            return int(rank), int(size)
    except Exception:  # another version of the framework, or one that is half imported
        pass
    return None, None


def _launcher() -> tuple[int | None, int | None]:
    for rank_name, size_name in zip(_RANKS, _SIZES, strict=True):
        rank = _number(rank_name)
        if rank is not None:
            return rank, _number(size_name)
    return None, None

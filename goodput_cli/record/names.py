"""Names of the job, the recorder and this process, found without importing any framework. All of them come from the
caller and are untrusted. Also their form in paths."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__version__ = "0.2.0"
"""The version of the recorder, which it sends to APIs."""
VARIABLE = "GOODPUT_RECORDER_"
"""Prefix of the variables of the recorder: _TO, _DIR, _RANK, _EXTRA, _JOB_NAME."""
FOLDER = "goodput-logs"
TO_INSTALL = "pip install 'goodput-cli @ URL' with its URL"
"""How to install the reader of the logs: it is not on a package index yet."""
_JOB_VARIABLES = (VARIABLE + "JOB_NAME", "JOB_IDENTIFIER", "SLURM_JOB_NAME", "JOBSET_NAME")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_MOST_BYTES = 120
_HASH = 12


def variable(name: str) -> str:
    """Return a variable of the recorder; "" if it is not set."""
    return os.environ.get(VARIABLE + name, "")


def default_job_name() -> str:
    """Return the job name from the scheduler, otherwise that of the program."""
    for name in _JOB_VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    program = os.path.basename(sys.argv[0] if sys.argv else "")
    return os.path.splitext(program)[0] or "training-job"


def in_path(name: str) -> str:
    """Return a name as one component of a path or an object name: percent-encoded, no leading dot, at most 120
    bytes."""
    text = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in name.encode("utf-8", "replace"))
    if text.startswith("."):
        text = "%2E" + text[1:]
    if len(text) > _MOST_BYTES:
        import hashlib  # imported late: it loads OpenSSL, which few names need

        digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_HASH]
        text = f"{text[: _MOST_BYTES - _HASH - 1]}-{digest}"
    return text or "_"


def default_folder() -> str:
    """Return the default folder of logs."""
    return variable("DIR") or os.path.join(".", FOLDER)


def process_file(job_name: str, run_id: str, rank: int) -> str:
    """Return a name that is unique to this process and attempt."""
    return f"{in_path(job_name)}.{run_id}.r{rank}.jsonl"


def own_file(path: str, run_id: str, rank: int) -> str:
    """Return the file of another rank next to that of rank 0: `run.jsonl` is `run.RUN_ID.r3.jsonl` for rank 3."""
    stem, ending = os.path.splitext(path)
    return f"{stem}.{run_id}.r{rank}{ending}"


def host_name() -> str | None:
    """Return the host name of this machine."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME")


def shown(text: str) -> str:
    """Return untrusted text in a form that is safe for a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def one_of(name: str, given: str, known: tuple[str, ...]) -> None:
    """Raise ValueError for an argument that is not one of the known values."""
    if given not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {given!r}")


_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JAX_PROCESS_ID")
_SIZES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "JAX_NUM_PROCESSES")


def find_rank(rank: int | None = None, world_size: int | None = None) -> tuple[int, int | None]:
    """Return (rank, number of processes or None) from the first available source: the arguments, GOODPUT_RECORDER_RANK,
    a framework that is imported and initialized already, the launcher's variables; otherwise 0."""
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
    """Return rank and number of processes in JAX. `jax.process_index` initializes the backend, so it is called only
    after that."""
    jax = sys.modules.get("jax")
    if jax is None:
        return None, None
    return _ask(lambda: jax.distributed.is_initialized(), lambda: (jax.process_index(), jax.process_count()))


def find_accelerators() -> int | None:
    """Return the number of accelerators of the job if one process drives several, as in JAX; None if unknown."""
    jax = sys.modules.get("jax")
    if jax is None:
        return None
    return _ask(lambda: jax.distributed.is_initialized(), lambda: (int(jax.device_count()), 0))[0]


def _ask(ready: Callable[[], object], answer: Callable[[], tuple[int, int]]) -> tuple[int | None, int | None]:
    try:
        if ready():
            rank, size = answer()
            return int(rank), int(size)
    except Exception:  # another version of the framework, or a partially imported one
        pass
    return None, None


def _launcher() -> tuple[int | None, int | None]:
    for rank_name, size_name in zip(_RANKS, _SIZES, strict=True):
        rank = _number(rank_name)
        if rank is not None:
            return rank, _number(size_name)
    return None, None

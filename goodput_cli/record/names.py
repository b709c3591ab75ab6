"""What the job is called, and how that name looks in a path. Everything here is the caller's: none of it is trusted.
Also what the recorder is called, and which process of the job this is, found without importing any framework.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__version__ = "0.2.0"
"""Of the recorder: what it sends to an API names it."""
VARIABLE = "GOODPUT_RECORDER_"
"""Variables of the recorder begin with this: _TO, _DIR, _RANK, _EXTRA, _JOB_NAME."""
FOLDER = "goodput-logs"
TO_INSTALL = "pip install 'goodput-cli @ URL' with its URL"
"""How to get what reads the logs: it is on no package index yet."""
_JOB_VARIABLES = (VARIABLE + "JOB_NAME", "JOB_IDENTIFIER", "SLURM_JOB_NAME", "JOBSET_NAME")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_MOST_BYTES = 120
_HASH = 12


def variable(name: str) -> str:
    """A variable of the recorder; "" where it is not set."""
    return os.environ.get(VARIABLE + name, "")


def default_job_name() -> str:
    """The name that the scheduler gave the job, else that of the program."""
    for name in _JOB_VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    program = os.path.basename(sys.argv[0] if sys.argv else "")
    return os.path.splitext(program)[0] or "training-job"


def in_path(name: str) -> str:
    """A name as one component of a path or an object name: percent-encoded, no leading dot, at most 120 bytes."""
    text = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in name.encode("utf-8", "replace"))
    if text.startswith("."):
        text = "%2E" + text[1:]
    if len(text) > _MOST_BYTES:
        import hashlib  # brings OpenSSL: only for a name that needs it

        digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_HASH]
        text = f"{text[: _MOST_BYTES - _HASH - 1]}-{digest}"
    return text or "_"


def default_folder() -> str:
    """Where logs go when nothing else is said."""
    return variable("DIR") or os.path.join(".", FOLDER)


def process_file(job_name: str, run_id: str, rank: int) -> str:
    """A name that no other process and no other attempt has."""
    return f"{in_path(job_name)}.{run_id}.r{rank}.jsonl"


def own_file(path: str, run_id: str, rank: int) -> str:
    """The file of another rank beside that of rank 0: `run.jsonl` is `run.RUN_ID.r3.jsonl` of rank 3."""
    stem, ending = os.path.splitext(path)
    return f"{stem}.{run_id}.r{rank}{ending}"


def host_name() -> str | None:
    """What this machine is called."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME")


def shown(text: str) -> str:
    """Text from outside, fit for a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def one_of(name: str, given: str, known: tuple[str, ...]) -> None:
    """Raises ValueError where an argument is none of those that are known."""
    if given not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {given!r}")


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


def find_accelerators() -> int | None:
    """Return how many accelerators the job has where one process drives several, as in JAX; None where unknown."""
    jax = sys.modules.get("jax")
    if jax is None:
        return None
    return _ask(lambda: jax.distributed.is_initialized(), lambda: (int(jax.device_count()), 0))[0]


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

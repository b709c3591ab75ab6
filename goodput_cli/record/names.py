"""What the job is called, and how that name looks in a path. Everything here is the caller's: none of it is trusted."""

from __future__ import annotations

import os
import sys

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


def new_run_id() -> str:
    """Twelve random hexadecimal digits."""
    return os.urandom(6).hex()


def shown(text: str) -> str:
    """Text from outside, fit for a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def one_of(name: str, given: str, known: tuple[str, ...]) -> None:
    """Raises ValueError where an argument is none of those that are known."""
    if given not in known:
        raise ValueError(f"{name} is one of {', '.join(known)}, not {given!r}")

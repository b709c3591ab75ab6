"""What recorders and schedulers say of a death in records: the reason that a recorder wrote, and the state in which an
allocation ended. They make observations beside the events that the same records are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodput_cli.events.observations import quoted
from goodput_cli.events.text.blocks import raised
from goodput_cli.events.text.causes import by_exit, shipped_rows
from goodput_cli.events.text.observer import Sighting
from goodput_cli.events.text.stamps import Stamp, Zone
from goodput_cli.vocabulary.causes import CAUSES, KILLED, UNKNOWN_CAUSE, Role

RECORDED = "recorded reason"
ALLOCATION = "sacct"
_MEMORY = "OutOfMemoryError"
_CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
_KILLS = ("SIGKILL", "SIGTERM")
_STATES: Mapping[str, str] = {
    "TIMEOUT": "time_limit",
    "DEADLINE": "time_limit",
    "PREEMPTED": "preempted",
    "NODE_FAIL": "node_failure",
    "BOOT_FAIL": "node_failure",
    "OUT_OF_MEMORY": "host_oom",
    "CANCELLED": "cancelled",
}


def recorded(reason: str, line: int, ns: int, rank: int | None, host: str, job: str) -> Sighting | None:
    """What the reason of a recorder says: the class of an exception, a signal, or a word that somebody typed."""
    if not reason:
        return None
    code, role, before = _meaning(reason)
    one = Sighting(code, role, quoted(reason), RECORDED, "process", line, "", Stamp(ns, Zone.EXACT, False))
    one.rank, one.host, one.job = rank, host, job
    one.before_steps, one.last_line, one.unhandled = before, line, True
    return one


def _meaning(reason: str) -> tuple[str, Role, str]:
    word = reason.strip()
    if word.lower() in CAUSES:
        return word.lower(), "root", ""
    if word in _CRASHES:
        return "native_crash", "exit", ""
    if word in _KILLS:
        return KILLED, "exit", ""
    name, _, what = word.partition(":")
    if name.rpartition(".")[2] == _MEMORY:
        return "device_oom", "root", ""
    found = shipped_rows().read(word)
    if found is not None:
        return found.code, found.role, ""
    last = name.rpartition(".")[2]
    if last.isidentifier() and last.endswith(("Error", "Exception", "Interrupt", "Exit", "Timeout")):
        meaning = raised(last, what, [])
        if meaning is not None:
            return meaning.code, meaning.role, meaning.before_steps
    return UNKNOWN_CAUSE, "exit", ""


def of_allocation(record: Mapping[str, Any], line: int, ended: Stamp | None) -> Sighting | None:
    """Why an allocation of Slurm ended: its state, else the signal of its exit code."""
    state = str(record.get("State", "")).upper()
    code = _STATES.get(state.split(" ", 1)[0].rstrip("+"))
    if code is not None:
        one = Sighting(code, "root", quoted(state), ALLOCATION, "scheduler", line, "", ended)
    else:
        signal = str(record.get("ExitCode", "")).partition(":")[2]
        said = by_exit(-int(signal)) if signal.isdigit() and signal != "0" and len(signal) < 4 else None
        if said is None:
            return None
        one = Sighting(*said, quoted(f"{state} {record.get('ExitCode')}"), ALLOCATION, "scheduler", line, "", ended)
        one.exit = -int(signal)
    one.identity, one.last_line = str(record.get("JobID", "")), line
    return one

"""Lines next to an error: those that complete its evidence with hosts, processes, exit codes and times, and those
that show that it ended nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from goodput_cli.events.evidence import UntimedEvidence, quoted
from goodput_cli.events.text.causes import CauseMatch, by_exit
from goodput_cli.events.text.line_timestamps import described_timestamp
from goodput_cli.vocabulary.categories import group_of

_TASK = re.compile(r"\s*/job:\w+/replica:\d+/task:(\d+)\s*$")
_RAY_NODE = re.compile(r"Memory on the node \(IP: (?P<host>[\w.:-]+),.{0,1000}?pid=(?P<pid>\d{1,9})")
_EXIT_CODE = re.compile(r"\s*Exit code:\s+(-?\d{1,3})\s*$")
_HYDRA = re.compile(r"=\s+(?:KILLED BY SIGNAL: (\d{1,3})\b|EXIT(?:ED WITH)? (?:STATUS|CODE): +(-?\d{1,3})\b)")
_SIGNALS_OF_HYDRA = (4, 6, 7, 8, 9, 11, 15)
"""Exit codes that are signals in MPICH's Hydra."""
_OFI_POLL = re.compile(r"MPIDI_OFI_handle_cq_error\(\d+\): OFI poll failed")
_RAYLET_NODE = re.compile(r"node \(ID: \w+, IP: (?P<host>[\w.:-]+)\)")
_SIGNAL = re.compile(r"signal (\d{1,3})\b")
_ACTOR = re.compile(r"\s+(?P<key>pid|ip): (?P<value>\S+)\s*$")


def of_tasks(one: UntimedEvidence, text: str) -> bool:
    """Add the missing tasks, one per line."""
    task = _TASK.match(text)
    if task is not None and len(task[1]) < 9 and int(task[1]) not in one.suspects:
        one.suspects.append(int(task[1]))
    return task is not None


def _of_state(one: UntimedEvidence, text: str) -> bool:
    """Add the end time in a container's state, from the lines after its reason in `kubectl describe`."""
    key, _, value = text.strip().partition(":")
    if key == "Finished":
        one.stamp = described_timestamp(value.strip())
    return key in ("Exit Code", "Started", "Message", "Signal")


def _of_ray(one: UntimedEvidence, text: str) -> bool:
    node = _RAY_NODE.search(text)
    if node is not None:
        one.host, one.pid = node["host"], int(node["pid"])
    return not text.strip()


def _of_signal(one: UntimedEvidence, text: str) -> bool:
    """Add the signal in the line after `exited on`."""
    signal = _SIGNAL.match(text)
    said = None if signal is None else by_exit(-int(signal[1]))
    if signal is not None and said is not None:
        one.exit, (one.code, one.role) = -int(signal[1]), said
    return False


def _of_mpi_process(one: UntimedEvidence, text: str) -> bool:
    """Add the exit code in the line after the process that an MPI launcher saw fail first."""
    code = _EXIT_CODE.match(text)
    said = None if code is None else by_exit(int(code[1]))
    if code is not None and said is not None:
        one.exit, (one.code, one.role) = int(code[1]), said
    return code is not None


def _of_hydra(one: UntimedEvidence, text: str) -> bool:
    """Add how a process ended, from the lines after the one that Hydra saw fail."""
    ended = _HYDRA.match(text)
    code = 0 if ended is None else -int(ended[1]) if ended[1] else int(ended[2])
    code = -code if code in _SIGNALS_OF_HYDRA else code
    said = by_exit(code)
    if said is not None:
        one.exit, (one.code, one.role) = code, said
    return ended is not None


def _of_abort(one: UntimedEvidence, text: str) -> bool:
    """Change the cause to the network if the line after an MPI abort shows that a peer was not reached."""
    if _OFI_POLL.match(text):
        one.code, one.role, one.row, one.doubted, one.text = "network", "root", "provider of MPICH", True, quoted(text)
    return not one.doubted and text.startswith("MPI")


def _of_raylet(one: UntimedEvidence, text: str) -> bool:
    """Add the host from the rest of a raylet line that a terminal wrapped."""
    node = _RAYLET_NODE.search(text)
    if node is not None:
        one.host = one.host or node["host"]
    return node is not None


def _of_state_dict(one: UntimedEvidence, text: str) -> bool:
    """Change the cause if a loader lists a weight of another size: the checkpoint is of another configuration."""
    if text.lstrip().startswith("size mismatch for ") and one.row == "missing keys":
        one.code, one.row, one.text = "checkpoint_mismatch", "size mismatch", quoted(text)
    return text[:1] in "\t " and bool(text.strip())


FOLLOWED_BY = {
    "mpi process": _of_mpi_process,
    "abort of MPI": _of_abort,
    "process of hydra": _of_hydra,
    "raylet out of memory": _of_raylet,
    "missing keys": _of_state_dict,
    "ray out of memory": _of_ray,
    "mpirun": _of_signal,
    **dict.fromkeys(("pod out of memory", "pod evicted"), _of_state),
    **dict.fromkeys(("tasks unhealthy", "barrier"), of_tasks),
}
"""Reader of the following lines, by row."""


def of_actor(one: UntimedEvidence, before: Sequence[str]) -> None:
    """Add host and process of a dead actor from the lines before."""
    for line in before:
        match = _ACTOR.match(line)
        if match is not None and match["key"] == "ip":
            one.host = match["value"]
        elif match is not None and match["value"].isdecimal() and len(match["value"]) < 10:
            one.pid = int(match["value"])


_SURVIVED = re.compile(
    r"(?i)\b(?:will (?:retry|be retried)|retrying|trying again|(?:last|previous|earlier) (?:failure|error|crash)\b(?!:)"
    r"|skipping (?:this |the |bad )?(?:batch|sample|update|step|shard|file|example)|recovered|falling back to)\b"
)
"""Text about an error that ends nothing: it is retried, or belongs to an earlier failure."""
_GIVEN_UP = re.compile(
    r"(?i)\b(?:giving up|gave up|all (?:\d+ )?(?:retry )?(?:attempts|tries|retries) failed"
    r"|retries (?:are |were )?exhausted)\b"
)
"""Text about a failed retry."""
_GOES_ON = re.compile(r"(?i)\b(?:going on|continu(?:e|es|ing)|resum(?:e|es|ing))\b")
_OF_LEVEL = re.compile(
    r"\.py:\d+: \w*Warning: |^[WI]\d{4} [\d:.]+ |(?:^|[\s\[|:(-])(?:(?i:warning)|WARN|INFO|DEBUG)(?:[\]\s|:)-]|$)"
)
"""Log level before the message: warning or below."""
_TALK = re.compile(r"\b(?:I\s|[Mm]y|[Yy]ou|[Yy]our|says|said|asked)\b|<\|im_start|\?\s")
"""Speech before the message: it is quoted text."""
_LISTED = re.compile(r"[\[{,] ?['\"]$")
"""List syntax before the message: it is a list item."""
_GNU_QUOTES = re.compile(r"`[^`'\s]{0,60}'")
"""Closed quotes of older GNU programs: `python'."""
_NOT_ORDINARY = re.compile(
    r"^\s|^$|^frame #|^Exception raised from|^#\d|^[=\-*_~]{4,}|^(?:CUDA|HIP) kernel errors|^For debugging consider"
    r"|^Compile with|^Search for `cuda|^Last error:|^nccl\w+Error: "
    r"|^Device-side assert|^During handling|^The above exception|^Stack trace|^wandb: |^srun: "
    r"|^slurmstepd: "
    r"|^\[[WIEFV]\d{3,4} [\d:.]+ \S+:\d+\]"
    r"|^[IWEF]\d{4} [\d:.]+ +\d+ \S*(?:elastic|ProcessGroupNCCL|TCPStore|coordination)"
    r"|torch\.distributed\.elastic|torch/distributed/elastic|ProcessGroupNCCL|resource_tracker|Exception ignored in"
    r"|NCCL (?:WARN|INFO)|TCPStore|Traceback \(most recent|^RPC: |^The tasks have crashed|^Error in atexit|^Killed$"
    r"|^\*\*\* |terminate called|sys:1: |^Aborted|^Segmentation fault|FAILED$|^Failures:|^Root Cause"
    r"|^Set the environment variable HYDRA_FULL_ERROR"
)  # fmt: skip
"""Lines that a dying process, its launcher and its libraries print in addition."""


def goes_on(text: str) -> bool:
    """Return True if a line reports that an error was survived, or that the program continues."""
    return not _GIVEN_UP.search(text) and bool(_SURVIVED.search(text) or _GOES_ON.search(text))


def is_survived(text: str, found: CauseMatch) -> bool:
    """Return True if a line only warns of its error, quotes it, or reports that it was survived (docs/causes.md). A
    scheduler's reason counts at any log level."""
    before = text[: found.at]
    if found.speaker not in ("kernel", "pod") and _is_quoted(before):
        return True
    if found.speaker != "process":
        return False
    if _TALK.search(before):
        return True
    if found.role != "root":
        return False
    if _SURVIVED.search(text) and not _GIVEN_UP.search(text):
        return True
    return group_of(found.code) != "scheduler" and "NCCL WARN" not in text and bool(_OF_LEVEL.search(before))


def _is_quoted(before: str) -> bool:
    """Return True if a backquote or quotation mark is open before the message, unless the mark belongs to a field."""
    if _GNU_QUOTES.sub("", before).count("`") % 2:
        return True
    if _LISTED.search(before):
        return True
    head = before.rpartition('"')[0].rstrip()
    if head.endswith("ErrorMessage"):  # A launcher quotes the error of its process.
        return False
    return before.count('"') % 2 == 1 and head != "" and head[-1] not in ":=,([{"


def is_ordinary(text: str) -> bool:
    """Return True if a line without evidence shows that its process continued: not a stack frame or another line of a
    dying process."""
    return not _NOT_ORDINARY.search(text)

"""Recognize lines of errors that ended nothing, and ordinary lines, which show that a process continued."""

from __future__ import annotations

import re

from goodput_cli.events.text.causes import CauseMatch
from goodput_cli.vocabulary.causes import group_of

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

"""Words by which a line says that what it names ended nothing, and lines that show that a process went on."""

from __future__ import annotations

import re

from goodput_cli.events.text.causes import Found
from goodput_cli.vocabulary.causes import group_of

_SURVIVED = re.compile(
    r"(?i)\b(?:will (?:retry|be retried)|retrying|trying again|(?:last|previous|earlier) (?:failure|error|crash)\b(?!:)"
    r"|skipping (?:this |the |bad )?(?:batch|sample|update|step|shard|file|example)|recovered|falling back to)\b"
)
"""What is said of an error that ends nothing: it is tried again, or it was another one's."""
_GIVEN_UP = re.compile(
    r"(?i)\b(?:giving up|gave up|all (?:\d+ )?(?:retry )?(?:attempts|tries|retries) failed"
    r"|retries (?:are |were )?exhausted)\b"
)
"""Words that say that it was tried again in vain."""
_GOES_ON = re.compile(r"(?i)\b(?:going on|continu(?:e|es|ing)|resum(?:e|es|ing))\b")
_OF_LEVEL = re.compile(
    r"\.py:\d+: \w*Warning: |^[WI]\d{4} [\d:.]+ |(?:^|[\s\[|:(-])(?:(?i:warning)|WARN|INFO|DEBUG)(?:[\]\s|:)-]|$)"
)
"""Before what a line says: that it is a warning, or less."""
_TALK = re.compile(r"\b(?:I\s|[Mm]y|[Yy]ou|[Yy]our|says|said|asked)\b|<\|im_start|\?\s")
"""Before words that somebody tells of."""
_LISTED = re.compile(r"[\[{,] ?['\"]$")
"""Before words that are one of a list."""
_GNU_QUOTES = re.compile(r"`[^`'\s]{0,60}'")
"""Marks of the GNU's older programs, which close: `python'."""
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
"""What a process that dies, its launcher and its libraries say besides."""


def goes_on(text: str) -> bool:
    """Whether words say that an error was survived, or that the program goes on."""
    return not _GIVEN_UP.search(text) and bool(_SURVIVED.search(text) or _GOES_ON.search(text))


def ends_nothing(text: str, found: Found) -> bool:
    """Whether a line says of what it names that it was survived, warns of it, or quotes it (docs/causes.md): the reason
    of a scheduler may be told at any level."""
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
    """Whether a mark before words is open: a backquote, or a quotation mark that is not of a field."""
    if _GNU_QUOTES.sub("", before).count("`") % 2:
        return True
    if _LISTED.search(before):
        return True
    head = before.rpartition('"')[0].rstrip()
    if head.endswith("ErrorMessage"):  # of a launcher, which tells what its process said
        return False
    return before.count('"') % 2 == 1 and head != "" and head[-1] not in ":=,([{"


def is_ordinary(text: str) -> bool:
    """Whether a line that no row reads shows that its process went on: no frame, and nothing that is said in dying."""
    return not _NOT_ORDINARY.search(text)

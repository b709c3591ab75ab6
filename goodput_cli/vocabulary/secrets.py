"""Words of a log as they are quoted: a line, without what acts on a terminal and without secrets (docs/causes.md)."""

from __future__ import annotations

import re
import unicodedata

MOST = 200
"""Characters of a quoted line."""
HIDDEN = "***"
_LOOKED_AT = 4 * MOST
_KEY = r"(?:token|secret|password|passwd|api[_-]?key|authorization|bearer)"
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
_SECRETS = (
    (re.compile(r"(://)[^/\s@]*:[^/\s@]*@"), rf"\1{HIDDEN}@"),
    (re.compile(rf"(?i)({_KEY}[\"']?\s*[=:]\s*[\"']?(?:bearer\s+|basic\s+)?)([^\s\"',;&<>)}}\]]+)"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)\b(bearer\s+)([^\s\"',;]+)"), rf"\1{HIDDEN}"),
    (re.compile(rf"(?i)({_KEY}\s+)(?=\S{{20}}|\S*\d\S*[A-Za-z]|\S*[A-Za-z]\S*\d)(\S{{6,}})"), rf"\1{HIDDEN}"),
    (re.compile(r"\b(?:hf_|gh[opsu]_|github_pat_|sk-|xox[abp]-)[A-Za-z0-9_-]{8,}"), HIDDEN),
    (re.compile(r"\bAKIA[0-9A-Z]{12,}"), HIDDEN),
)  # fmt: skip
"""What is known to be a secret by its name or by its shape. Not more: who hides too much hides the evidence."""


def quoted(text: str) -> str:
    """A line of a log as it may be shown: at most 200 characters, without controls, ANSI and bidi marks, and with
    `***` in the place of secrets."""
    text = _ANSI.sub("", text[:_LOOKED_AT])
    if not (text.isascii() and text.isprintable()):
        text = "".join(" " if char in "\t\n\r" else char for char in text if char in "\t\n\r" or _is_seen(char))
    text = " ".join(text.split())
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text if len(text) <= MOST else text[: MOST - 1] + "…"


def _is_seen(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind[0] != "C" and kind not in ("Zl", "Zp")

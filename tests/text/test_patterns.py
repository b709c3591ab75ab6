"""Patterns of text: Python's engine finds the same as RE2, and no input makes a pattern slow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goodput_cli.events.text.causes import shipped_rows
from goodput_cli.events.text.entries import nodes_in
from goodput_cli.events.text.log_lines import linear
from goodput_cli.events.text.programs import launcher, megatron, mllog, progress_bars, runs

ROOT = Path(__file__).parents[2]
ROWS = shipped_rows().rows
RULES = [rule for module in (launcher, megatron, mllog, progress_bars, runs) for rule in module.RULES]
PATTERNS = {rule.pattern.pattern: rule.pattern for rule in RULES}
NOT_IN_RE2 = re.compile(r"\(\?<?[=!]|\(\?>|[*+?}]\+")
"""Look-arounds and possessive repeats."""
ATTACKS = (" ", "1", "a", "a ", "1:", "[", "(", "/", "=", "- ", "1%|", "a=1, ", "[a] ")


def lines() -> list[str]:
    """Return lines of real logs, and of evidence."""
    folders = ("tests/text/samples", "tests/causes/examples", "sample_logs", "tests/real")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*"))]
    texts = [path.read_text(errors="replace") for path in files if path.suffix in (".log", ".out", ".txt")]
    found = [line for text in texts for line in text.splitlines()[:60] if line.isascii()]
    return list(dict.fromkeys([*(row.sample for row in ROWS), *found]))


def test_evidence_is_read_by_re2() -> None:
    """RE2 reads a text once, whatever the pattern."""
    assert not any(isinstance(row.pattern, re.Pattern) for row in ROWS)


def test_re2_finds_what_python_finds() -> None:
    options = linear().Options()
    options.log_errors = False
    texts, checked = lines(), 0
    for pattern in PATTERNS.values():
        if NOT_IN_RE2.search(pattern.pattern):
            continue
        letters = "".join(letter for letter, flag in (("i", re.I), ("s", re.S)) if pattern.flags & flag)
        other = linear().compile(f"(?{letters}){pattern.pattern}" if letters else pattern.pattern, options)
        for text in texts:
            mine, theirs = pattern.search(text), other.search(text)
            assert (mine and mine.span()) == (theirs and theirs.span()), (pattern.pattern, text)
        checked += 1
    assert checked > 0.9 * len(PATTERNS)


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_pattern_backtracks_in_a_line(attack: str) -> None:
    """A pattern that reads a line again for each of its characters takes minutes for these."""
    for rule in RULES:
        for begin in ("", rule.anchor):
            rule.pattern.search(begin + attack * (10_000 // len(attack)) + "\x00")
            rule.pattern.search((begin + attack) * (10_000 // len(begin + attack)))


def test_invalid_slurm_host_lists_are_rejected_fast() -> None:
    assert nodes_in("a" * 300_000 + "!") == ()
    assert nodes_in("node[01-02]x,big") == ("node01x", "node02x", "big")

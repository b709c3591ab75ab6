"""Marks of a viewer or a quote before each line of a pasted text."""

from __future__ import annotations

import pytest

from goodput_cli.sources.blocks import without_marks

QUOTED = b"> step 1\n> step 2\n>\n> step 3\n"
NUMBERED = b"[8] step 1\n[9]\n[10] step 2\n"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (QUOTED, b"  step 1\n  step 2\n \n  step 3\n"),
        (NUMBERED, b"    step 1\n   \n     step 2\n"),
        (b"  8\tstep 1\n  9\t\n 10\tstep 2\n", b"   \tstep 1\n   \t\n   \tstep 2\n"),
    ],
)
def test_marks_of_each_line_become_blanks(text: bytes, plain: bytes) -> None:
    assert b"".join(without_marks([text])) == plain


@pytest.mark.parametrize("size", [16, 20, 27])
def test_marks_across_chunks_become_blanks(size: int) -> None:
    text = QUOTED * 3
    chunks = [text[:27], *(text[at : at + size] for at in range(27, len(text), size))]
    assert b"".join(without_marks(chunks)) == b"  step 1\n  step 2\n \n  step 3\n" * 3


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"> building the index\nstep 1\nstep 2\n",
        b"> step 1\n> step 2\n",
        b"[8] loss 2.5\n[9] loss 2.4\n[10] loss 2.3\n[11] loss 2.2\n",
        b"8: step 1\n10:\n11: step 2\n",
    ],
)
def test_other_text_stays(text: bytes) -> None:
    assert b"".join(without_marks([text])) == text


def test_long_line_is_not_kept() -> None:
    """The rest of a line is passed on as it comes: only its begin may contain a mark."""
    line = [b"x" * 1000] * 50
    found = list(without_marks([QUOTED, b"> ", *line, b"\n> step 4\n"]))
    assert max(map(len, found)) <= 1100
    assert b"".join(found) == b"  step 1\n  step 2\n \n  step 3\n  " + b"x" * 50_000 + b"\n  step 4\n"

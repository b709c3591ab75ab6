"""Numbers of similar lines get equally many digits, and keep their values."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import goodput_cli
from goodput_cli.errors import GoodputError
from goodput_cli.events.text import equal_widths
from goodput_cli.events.text.equal_widths import with_equal_widths
from goodput_cli.events.text.lines import Lines

CASES = {
    "whole": (("step 7 of 1000", "step 12 of 1000"), ("step 07 of 1000", "step 12 of 1000")),
    "fractions": (("loss 1.5", "loss 12.25"), ("loss 01.50", "loss 12.25")),
    "without-whole": (("lr .5", "lr .25"), ("lr .50", "lr .25")),
    "exponent": (("lr 1e-5", "lr 1e-15"), ("lr 1e-05", "lr 1e-15")),
    "names": (("rank7 ok", "rank12 ok"), ("rank07 ok", "rank12 ok")),
    "addresses": (("at 10.0.0.1", "at 10.0.0.10"), ("at 10.0.0.01", "at 10.0.0.10")),
    "layers": (("layer.1 x", "layer.10 x"), ("layer.01 x", "layer.10 x")),
    "thousands": (("t 1,234", "t 12,345"), ("t 01,234", "t 12,345")),
    "lists": (("t 1,2", "t 1,345"), ()),
    "others": (("step 7", "stop 7"), ()),
    "too-long": (("x 1234567890123456789012", "x 1"), ()),
    "all-too-long": (("x 1234567890123456789012", "x 1234567890123456789013"), ()),
    "letters": (("é 7 →", "é 12 →"), ("é 07 →", "é 12 →")),
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_widths, "FEWEST", 2)
    monkeypatch.setattr(equal_widths, "FEWEST_ALIKE", 2)


@pytest.mark.parametrize("case", CASES)
def test_numbers_get_equal_widths(case: str) -> None:
    texts, expected = CASES[case]
    block = Lines("".join(f"{text}\n" for text in texts).encode())
    found = with_equal_widths(block, np.arange(len(block)))
    assert tuple([] if found is None else map(found.lines.text, range(len(found.lines)))) == expected


def test_values_are_kept_whatever_the_order() -> None:
    texts = [f"a {n} b {n % 7}.{n:b} c" if n % 3 else f"other {n}" for n in range(1, 400)]
    block = Lines("\n".join(texts).encode())
    found = with_equal_widths(block, np.arange(len(block)))
    assert found is not None
    assert sorted(found.rows.tolist()) == list(range(len(texts)))
    for at, row in enumerate(found.rows.tolist()):
        numbers = [[float(one) for one in re.findall(r"[\d.]+", text)] for text in (found.lines.text(at), texts[row])]
        assert numbers[0] == numbers[1]


def test_a_quoted_line_is_as_written(tmp_path: Path) -> None:
    lines = [f"batch {n} took part and saw {7 ** (n % 19)} so far" for n in range(1, 70)]
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(GoodputError) as refused:
        goodput_cli.analyze(str(path))
    assert any(f'"{line}"' in str(refused.value) for line in lines)

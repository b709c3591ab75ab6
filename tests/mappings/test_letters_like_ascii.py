"""Letters that match ASCII letters when case is ignored, and digits without a numeric value, are ordinary text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from goodput_cli.events.mappings.draft.words import unit_of, unit_of_key
from goodput_cli.events.text.causes import ranks_in

TRAINERS = Path(__file__).parent.parent.parent / "sample_logs" / "trainers"
ALIKE = [char for char in map(chr, range(128, 0x20000)) if re.fullmatch("[a-z]", char, re.IGNORECASE)]
"""Letters that Python folds to ASCII: dotted and dotless i, the long s, and the kelvin sign."""
UNITS = ("ms", "msecs", "milliseconds", "us", "ns", "s", "seconds", "minutes", "min")
Output = pytest.CaptureFixture[str]


def replaced(text: str, letter: str) -> str:
    plain = "s" if letter == "\u017f" else "k" if letter == "\u212a" else "i"
    return re.sub(plain, letter, text, flags=re.IGNORECASE)


def test_there_are_four_such_letters() -> None:
    assert ALIKE == ["\u0130", "\u0131", "\u017f", "\u212a"]


@pytest.mark.parametrize("letter", ALIKE[1:])
@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_is_ascii(letter: str, unit: str) -> None:
    odd = replaced(unit, letter)
    read = [unit_of("x ", f" {odd}"), unit_of(f"x ({odd}): ", ""), unit_of(f"{odd} per step: ", ""), unit_of_key(odd)]
    assert odd == unit or read == [None] * 4


@pytest.mark.parametrize(
    "lines",
    [
        ["x 5\u017f", "x 6\u017f"],
        [
            "9\u017f (x4 over 94\u017f)",
            *(f"[2026-01-05 10:0{n}:00] \u017ftep 5{n} lo\u017f\u017f 1.0" for n in range(3)),
        ],
        ["[2026-01-05 10:00:00] step \u00b2", "[2026-01-05 10:00:05] step \u00b3"],
    ],
)
def test_log_with_special_letters_is_refused_with_a_reason(lines: list[str], tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "run.log"
    path.write_text("\n".join([*lines, ""]))
    assert run([str(path)]) in (1, 4)
    assert "This is a bug" not in capsys.readouterr().err


@pytest.mark.parametrize("letter", ALIKE)
def test_sample_log_with_special_letters_ends_without_traceback(letter: str, tmp_path: Path, capsys: Output) -> None:
    for source in (TRAINERS / "own-loop.log", *TRAINERS.glob("*/*.out"), TRAINERS / "nemo-ft_launcher.log"):
        path = tmp_path / source.name
        path.write_text(replaced("".join(source.read_text().splitlines(keepends=True)[:60]), letter))
        run([str(path)])
        assert "This is a bug" not in capsys.readouterr().err


@pytest.mark.parametrize("odd", ["\u00b2", "1-\u00b2", "\u2460"])
def test_digit_without_a_value_is_not_a_rank(odd: str) -> None:
    assert ranks_in(odd) == ()

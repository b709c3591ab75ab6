"""Test many lines at once against a learnt line shape, eight characters (one 64-bit word) at a time."""

from __future__ import annotations

import numpy as np

from goodput_cli.arrays import Mask, Words
from goodput_cli.events.columnar.eight_digits import DIGITS
from goodput_cli.events.columnar.line_shapes import Slot

_SIX, _TOP, _ALL = 0x06, 0xF0, (1 << 64) - 1


def words_of(characters: int) -> int:
    """How many words hold so many characters."""
    return -(-characters // DIGITS)


class Checks:
    """Masks that test whether texts have the shape of a learnt one.

    ahead: how many characters of the first word stand before the text.
    """

    def __init__(self, text: bytes, slots: list[Slot], ahead: int) -> None:
        size = words_of(ahead + len(text))
        self._want, self._literal, self._sixes, self._tops = ([0] * size for _ in range(4))
        free, digits = _free_places(text, slots)
        for at, character in enumerate(text):
            word, shift = (at + ahead) // DIGITS, 8 * ((at + ahead) % DIGITS)
            if at in digits:
                self._want[word] |= 0x30 << shift
                self._sixes[word] |= _SIX << shift
                self._tops[word] |= _TOP << shift
            elif at not in free:
                self._want[word] |= character << shift
                self._literal[word] |= 0xFF << shift

    def fits(self, grid: Words) -> Mask:
        """bool[n]: which texts, uint64[n, words], are alike; further words do not matter."""
        wrong = np.zeros(len(grid), dtype=np.uint64)
        for at, (want, literal, tops) in enumerate(zip(self._want, self._literal, self._tops, strict=True)):
            values = grid[:, at] ^ np.uint64(want)
            if tops:  # no byte from 10 on, which six more, or none, would show in its upper half
                digits = values & np.uint64(tops | tops >> 4)
                above = digits + np.uint64(self._sixes[at])
                above |= digits
                above &= np.uint64(tops)
                wrong |= above
            if literal != _ALL:
                values &= np.uint64(literal)
            wrong |= values
        return np.asarray(wrong == 0)


def _free_places(text: bytes, slots: list[Slot]) -> tuple[set[int], set[int]]:
    """The places of a text where any letter may stand, and those where any digit may."""
    free: set[int] = set()
    digits: set[int] = set()
    for slot in slots:
        places = range(slot.start, slot.stop) if slot.stop > 0 else range(len(text) + slot.start, len(text) + slot.stop)
        if slot.letters:
            free.update(places)
        else:
            digits.update(at for at in places if 0x30 <= text[at] <= 0x39)
    return free, digits

"""Eight digits at a time: the text of a column of numbers lies in 64-bit words, and a few operations read them all.

This is known as SWAR, "SIMD within a register": each byte of a word is a lane, and no operation carries into the next.

Words are little endian: the first character is the lowest byte.
"""

from __future__ import annotations

import numpy as np

from goodput_cli.arrays import I64, Words

DIGITS = 8
"""How many characters a word holds."""
ZEROS = 0x3030303030303030
"""Eight characters 0."""
WORD = np.dtype("<u8")
_TENS, _BYTE = np.uint64(10), np.uint64(8)
_PAIRS, _TWO_BYTES = np.uint64(0x000000FF000000FF), np.uint64(16)
_HIGH_WEIGHTS, _LOW_WEIGHTS = np.uint64(100 + (1_000_000 << 32)), np.uint64(1 + (10_000 << 32))
_FOUR_BYTES = np.uint64(32)
_SIXES, _TOPS = np.uint64(0x0606060606060606), np.uint64(0xF0F0F0F0F0F0F0F0)


def mask_of(start: int, stop: int) -> int:
    """A word with all bits set in the characters start <= i < stop."""
    return sum(0xFF << (8 * at) for at in range(start, stop))


KEEP_FIRST = np.array([mask_of(0, count) for count in range(DIGITS + 1)], dtype=WORD)
"""By count: a mask of the first so many characters."""


def digit_values(words: Words, kept: Words | np.uint64) -> Words:
    """The value of each character, a byte each, 0 where it is not kept; what is no digit is no byte below 10."""
    return (words ^ np.uint64(ZEROS)) & kept


def not_digits(values: Words) -> Words:
    """Above 0 where a byte of `digit_values` is none of 0 to 9."""
    return (values | (values & ~_TOPS) + _SIXES) & _TOPS


def number(values: Words) -> I64:
    """The numbers that eight bytes of 0 to 9 each spell, the first one worth most."""
    pairs = values * _TENS + (values >> _BYTE)
    high = (pairs & _PAIRS) * _HIGH_WEIGHTS
    low = ((pairs >> _TWO_BYTES) & _PAIRS) * _LOW_WEIGHTS
    return ((high + low) >> _FOUR_BYTES).astype(np.int64)

"""Times of rows whose steps are mostly of one length, so that their median is it."""

from __future__ import annotations


def spread(first: int, last: int, count: int, usual: float) -> list[int]:
    """`count` times from first to last (ms): steps of the usual length, and the rest in a tenth of them."""
    low = int(usual)
    lengths = [low if place % 2 else low + (usual > low) for place in range(count - 1)]
    rest = last - first - sum(lengths)
    lengths[len(lengths) // 2] += rest
    times = [first]
    for length in lengths:
        times.append(times[-1] + length)
    assert times[-1] == last
    return times

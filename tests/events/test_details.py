"""Details are numbered once each, and returned unchanged, in every internal representation."""

from __future__ import annotations

import pickle

from goodput_cli.events.rows import DetailCollector, DetailList

KEYS = ("event_type", "seconds", "synchronous", "step")


def test_details_are_returned_unchanged() -> None:
    details = DetailCollector()
    first, second = ("save", 1.5, False, 5), ("save", 0.1 + 0.2, True, None)
    odd, large = ("\ud800", 1.5, False, 5), ("save", 1.5, False, 1 << 70)  # neither can be written as JSON
    assert details.codes_of_pairs(KEYS, [first, second, first, odd, large]).tolist() == [0, 1, 0, 2, 3]
    assert details.code((3, 4, None)) == 4
    assert details.codes_of_pairs(KEYS[:1], [("save",)]).tolist() == [5]
    pairs = [tuple(zip(KEYS, values, strict=True)) for values in (first, second, odd, large)]
    assert list(details.values()) == [*pairs, (3, 4, None), (("event_type", "save"),)]
    assert details.values()[1][2][1] is True
    assert list(details.values()[1:3]) == pairs[1:3]


def test_details_are_found_and_pickled() -> None:
    details = DetailCollector()
    details.codes_of_pairs(KEYS[:2], [("save", 1.5), ("save", 2.5)])
    made = details.values()
    assert isinstance(made, DetailList)
    assert (("event_type", "save"), ("seconds", 2.5)) in made
    assert list(pickle.loads(pickle.dumps(made))) == list(made)

"""Changes to a log that must not change the answer: the same facts, written differently.

Each strategy takes the lines of a log (without envelopes) and returns lines.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

Record = dict[str, Any]
Lines = list[str]

_JUNK = (
    "", "null", "[]", "42", '"text"', "not json", '{"job_name": "j", "step_cou', '{"message": "loss 2.3"}',
    "{}", '{"job_name": "j", "step_count": "x", "step_start_time": "y"}', "}{", "\u2028", "[1, 2, {}]",
)  # fmt: skip


def move(record: Record, seconds: int) -> Record:
    """Return the record, moved by some seconds."""
    return {key: _moved(key, value, seconds) for key, value in record.items()}


def _moved(key: str, value: Any, seconds: int) -> Any:
    if key == "timestamp":
        return (datetime.fromisoformat(value) + timedelta(seconds=seconds)).isoformat()
    if key.endswith("_time") or key in ("elastic_slice_counts_timestamp", "from", "to"):
        return value + seconds
    return value


def shifted(lines: Lines, seconds: int) -> Lines:
    """Return all times later by `seconds`; the answer's times move with them."""
    return [json.dumps(move(json.loads(line), seconds)) for line in lines]


def shuffled(lines: Lines) -> st.SearchStrategy[Lines]:
    """Return the lines in another order."""
    return st.permutations(lines).map(list)


@st.composite
def doubled(draw: st.DrawFn, lines: Lines) -> Lines:
    """Return the lines with some, or all, written again at the end."""
    if draw(st.booleans()):
        return lines + lines
    return lines + draw(st.lists(st.sampled_from(lines), max_size=8))


@st.composite
def split(draw: st.DrawFn, lines: Lines) -> list[Lines]:
    """Return the lines split into a few files, each in the old order; a file may be empty."""
    count = draw(st.integers(1, 5))
    deal = draw(st.lists(st.integers(0, count - 1), min_size=len(lines), max_size=len(lines)))
    return [[line for line, file in zip(lines, deal, strict=True) if file == wanted] for wanted in range(count)]


@st.composite
def with_junk(draw: st.DrawFn, lines: Lines) -> Lines:
    """Return the lines with others between them that contain no event."""
    mixed = list(lines)
    for place, junk in draw(st.lists(st.tuples(st.integers(0, len(lines)), st.sampled_from(_JUNK)), max_size=8)):
        mixed.insert(place, junk)
    return mixed


@st.composite
def respelled(draw: st.DrawFn, lines: Lines) -> Lines:
    """Return numbers as int, float or digits in a string; keys in another order; nulls and unknown keys in between."""
    spelling = st.sampled_from((int, float, str, "float string"))
    ways = draw(st.lists(spelling, min_size=5, max_size=5))
    backwards, padded = draw(st.booleans()), draw(st.booleans())
    spelled: Lines = []
    for place, line in enumerate(lines):
        record = json.loads(line)
        items = [(key, _spelled(value, ways[(place + n) % 5])) for n, (key, value) in enumerate(record.items())]
        if padded:
            items += [("node_zone", None), ("build", 7)]
        spelled.append(json.dumps(dict(items[::-1] if backwards else items)))
    return spelled


def _spelled(value: Any, way: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return str(float(value)) if way == "float string" else way(value)


@st.composite
def enveloped(draw: st.DrawFn, lines: Lines) -> Lines:
    """Return each line, or only some, as a Cloud Logging entry."""
    some = draw(st.booleans())
    return [
        line if some and place % 3 == 0 else json.dumps(_entry(json.loads(line), place))
        for place, line in enumerate(lines)
    ]


def _entry(payload: Record, place: int) -> Record:
    # The same fact sent twice has two insertIds. The event is still one, because its fields are equal.
    return {
        "insertId": f"id{place}", "jsonPayload": payload, "logName": "projects/p/logs/goodput_j", "severity": "INFO",
        "timestamp": f"2026-02-01T00:00:{place % 60:02d}.{place:06d}Z", "labels": {"zone": "z"},
        "resource": {"type": "global", "labels": {"project_id": "p"}},
    }  # fmt: skip


def as_array(lines: Lines) -> str:
    """Return the lines as one JSON array, as `gcloud logging read --format=json` prints entries."""
    return json.dumps([json.loads(line) for line in lines], indent=2)


@st.composite
def unchanged_answers(draw: st.DrawFn, lines: Lines) -> list[Lines]:
    """Return the log after some of these changes, with its times unchanged; the last change splits it into files."""
    changed = lines
    for change in (respelled, enveloped, shuffled, doubled, with_junk):
        if draw(st.booleans()):
            changed = draw(change(changed))
    return draw(split(changed))

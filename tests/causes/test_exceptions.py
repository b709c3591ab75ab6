"""The cause of an uncaught exception depends on its type, its message and where it was raised."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from goodput_cli.events.text.causes import shipped_rows
from goodput_cli.events.text.evidence_reader import Observer
from goodput_cli.events.text.observed_line import Line
from tests.causes import wordings

WHERE: list[dict[str, Any]] = tomllib.loads((wordings.HERE / "exceptions.toml").read_text("utf-8"))["where"]


@pytest.mark.parametrize(
    ("where", "words", "may_be"),
    [pytest.param(one, words, may_be, id=words[:60]) for one in WHERE for words, *may_be in one["said"]],
)
def test_uncaught_exception_has_its_cause(where: dict[str, Any], words: str, may_be: list[str]) -> None:
    file, function, code = where["frame"]
    frame = f'  File "{file}", line 8, in {function}'
    lines = ("Traceback (most recent call last):", frame, f"    {code}", words)
    observer = Observer(shipped_rows())
    for number, line in enumerate(lines):
        observer.take(Line.of(line, number), lambda _: ())
    (said,) = observer.fresh()
    assert said.raised
    assert ((where.get("start", False) and said.before_steps) or said.code) in may_be, said.row

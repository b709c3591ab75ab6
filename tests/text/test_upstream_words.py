"""Output of programs, from the words in their sources: shipped rules read it, or it is listed as ignored."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from goodput_cli.events.mappings.registry import load_mappings, read_files
from goodput_cli.events.text.log_lines import LineRule, line_readings
from goodput_cli.events.text.programs import megatron

SHIPPED = Path("goodput_cli/events/mappings/shipped")
WORDS = tomllib.loads(Path("tests/text/upstream_words.toml").read_text())["word"]


@pytest.fixture(scope="module")
def rules() -> list[LineRule]:
    named = load_mappings(read_files(sorted(map(str, SHIPPED.glob("*.toml")))), samples=False).named
    return [*megatron.RULES, *(rule for mapping in named for rule in mapping.lines)]


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word["literal"][:40])
def test_upstream_words_are_read_or_ignored(word: dict[str, str], rules: list[LineRule]) -> None:
    found = [(one.rule.format, one.event.type) for one in line_readings(rules, word["line"]) if one.event is not None]
    assert found == ([] if "ignored" in word else [(word["format"], word["event"])])

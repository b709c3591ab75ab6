"""A user's own rows of evidence, in a mapping: read first, checked with their samples, refused with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.disruptions.rows import Disruption
from goodput_cli.api.check import explain_line
from goodput_cli.errors import UsageError
from tests.causes.wordings import life

SAID = "[2026-03-01 10:10:46] ObjectStoreError: read timeout after 30 s, rank=7"
OWN = r"""
name = "acme"

[[cause]]
code = "storage_error"
regex = 'ObjectStoreError: \w+ (?:timeout|refused) .*rank=(?P<rank>\d+)'

[[sample]]
line = "ObjectStoreError: read timeout after 30 s, rank=7"
gives = { cause = "storage_error", rank = 7 }
"""


def died(folder: Path, mapping: str, said: str = SAID) -> Disruption:
    (folder / "acme.toml").write_text(mapping)
    (folder / "train.log").write_text("\n".join([*life(0, 10), said, *life(30, 160)]) + "\n")
    (found,) = goodput_cli.analyze(str(folder / "train.log"), mapping=(str(folder / "acme.toml"),)).disruptions
    return found


def test_a_row_of_a_mapping_names_a_cause(tmp_path: Path) -> None:
    found = died(tmp_path, OWN)
    assert (found.cause, found.first_rank) == ("storage_error", 7)
    assert found.cause_text == "ObjectStoreError: read timeout after 30 s, rank=7"
    assert goodput_cli.analyze(str(tmp_path / "train.log")).disruptions[0].cause == "unknown"


def test_its_rows_are_asked_before_those_that_are_shipped(tmp_path: Path) -> None:
    own = 'name = "acme"\n[[cause]]\ncode = "network"\nline = "No space left on device{_:rest}"\n'
    said = "OSError: [Errno 28] No space left on device"
    assert died(tmp_path, own.replace("{_:rest}", ""), said).cause == "network"


def test_a_line_may_be_written_as_a_template(tmp_path: Path) -> None:
    own = 'name = "acme"\n[[cause]]\ncode = "data_loader"\nline = "shard server gone, rank {rank:int}"\n'
    assert died(tmp_path, own, "shard server gone, rank 5").first_rank == 5


def test_explain_names_the_row(tmp_path: Path) -> None:
    died(tmp_path, OWN)
    said = explain_line(f"{tmp_path / 'train.log'}:19", mapping=(str(tmp_path / "acme.toml"),))
    assert "evidence: row 'acme:1', code storage_error, role root, said by: process" in said


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("rank = 7", "rank = 8", "9:1", "sample failed: `rank` is 8 in `gives`, and the row `acme:1` gives"),
        ("read timeout after", "read delay after", "9:1", "sample failed: no row of evidence reads this line"),
        ('"storage_error"\nregex', '"storage_eror"\nregex', "5:1", "unknown cause `storage_eror`; did you mean"),
        ("code =", "role = 'boot'\ncode =", "5:1", "`role` is root, exit, echo, teardown or context"),
    ],
)
def test_a_mistake_is_said_with_its_place(old: str, new: str, place: str, words: str, tmp_path: Path) -> None:
    assert old in OWN
    with pytest.raises(UsageError) as refused:
        died(tmp_path, OWN.replace(old, new, 1))
    assert f"acme.toml:{place}: " in str(refused.value)
    assert words in str(refused.value)


def test_a_row_needs_words_that_every_line_has(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no text of"):
        died(tmp_path, 'name = "acme"\n[[cause]]\ncode = "killed"\nregex = "\\\\w+: \\\\d+"\n')


def test_a_word_of_healthy_logs_is_no_row(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="stands in too many healthy lines"):
        died(tmp_path, 'name = "acme"\n[[cause]]\ncode = "killed"\nline = "Killed"\n')

"""Rows of evidence in a user's mapping: read first, checked with their samples, rejected with their location."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.disruptions.rows import Disruption
from goodput_cli.api.check import explain_line
from goodput_cli.errors import UsageError
from tests.causes.wordings import attempt_lines

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


def read_failure(folder: Path, mapping: str, said: str = SAID) -> Disruption:
    (folder / "acme.toml").write_text(mapping)
    (folder / "train.log").write_text("\n".join([*attempt_lines(0, 10), said, *attempt_lines(30, 160)]) + "\n")
    (found,) = goodput_cli.analyze(str(folder / "train.log"), mapping=(str(folder / "acme.toml"),)).disruptions
    return found


def test_mapping_row_names_a_cause(tmp_path: Path) -> None:
    found = read_failure(tmp_path, OWN)
    assert (found.cause, found.first_rank) == ("storage_error", 7)
    assert found.cause_text == "ObjectStoreError: read timeout after 30 s, rank=7"
    assert goodput_cli.analyze(str(tmp_path / "train.log")).disruptions[0].cause == "unknown"


def test_mapping_rows_precede_shipped_rows(tmp_path: Path) -> None:
    own = 'name = "acme"\n[[cause]]\ncode = "network"\nline = "No space left on device{_:rest}"\n'
    said = "OSError: [Errno 28] No space left on device"
    assert read_failure(tmp_path, own.replace("{_:rest}", ""), said).cause == "network"


def test_row_can_be_a_template(tmp_path: Path) -> None:
    own = 'name = "acme"\n[[cause]]\ncode = "data_loader"\nline = "shard server gone, rank {rank:int}"\n'
    assert read_failure(tmp_path, own, "shard server gone, rank 5").first_rank == 5


BY = r"""
name = "acme"

[[cause]]
regex = 'shard server says (?P<status>\d+) to rank (?P<rank>\d+)'
by = "status"
values = { "3" = "storage_error", "7" = "network", "9" = ["killed", "exit"], "0" = ["unknown", "context"] }

[[sample]]
line = "shard server says 7 to rank 2"
gives = { cause = "network", role = "root", rank = 2 }
"""


@pytest.mark.parametrize(("status", "cause"), [(3, "storage_error"), (7, "network"), (9, "killed"), (0, "unknown")])
def test_field_can_set_code_and_role(status: int, cause: str, tmp_path: Path) -> None:
    assert read_failure(tmp_path, BY, f"shard server says {status} to rank 2").cause == cause


def test_unlisted_value_is_ignored_without_a_default(tmp_path: Path) -> None:
    said = "shard server says 8 to rank 2"
    assert read_failure(tmp_path, BY, said).cause == "unknown"
    assert read_failure(tmp_path, BY.replace('"0" =', 'other = "data_loader", "0" ='), said).cause == "data_loader"


def test_exit_codes_need_no_values(tmp_path: Path) -> None:
    own = 'name = "acme"\n[[cause]]\nby = "exit"\nline = "worker {rank:int} left with {exit:int}"\n'
    assert read_failure(tmp_path, own, "worker 3 left with 139").cause == "native_crash"
    assert read_failure(tmp_path, own, "worker 3 left with 0").cause == "unknown"


def test_row_without_a_literal_is_tried_on_every_line(tmp_path: Path) -> None:
    own = 'name = "acme"\n[[cause]]\ncode = "network"\nslow = true\nregex = "^E(?:17|18) @(?P<rank>[0-9]+)$"\n'
    found = read_failure(tmp_path, own, "E18 @5")
    assert (found.cause, found.first_rank) == ("network", 5)


def test_explain_names_the_row(tmp_path: Path) -> None:
    read_failure(tmp_path, OWN)
    said = explain_line(f"{tmp_path / 'train.log'}:19", mapping=(str(tmp_path / "acme.toml"),))
    assert "evidence: row 'acme:1', code storage_error, role root, printed by: process" in said


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("rank = 7", "rank = 8", "9:1", "sample failed: `gives` has `rank` = 8, but the row `acme:1` gives"),
        ("read timeout after", "read delay after", "9:1", "sample failed: no row of evidence matches this line"),
        ('"storage_error"\nregex', '"storage_eror"\nregex', "5:1", "unknown cause `storage_eror`; did you mean"),
        ("code =", "role = 'boot'\ncode =", "5:1", "`role` is root, exit, echo, teardown or context"),
    ],
)
def test_error_in_a_row_has_its_location(old: str, new: str, place: str, words: str, tmp_path: Path) -> None:
    assert old in OWN
    with pytest.raises(UsageError) as refused:
        read_failure(tmp_path, OWN.replace(old, new, 1))
    assert f"acme.toml:{place}: " in str(refused.value)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ('by = "status"', 'by = "state"', "6:1", "the row has no field `state`; did you mean status"),
        ('"network"', '"netwrk"', "7:35", "unknown cause `netwrk`; did you mean"),
        ('"exit"]', '"exits"]', "7:52", "`values` is a table such as"),
        ('by = "status"', 'by = "status"\ncode = "network"', "4:1", "a cause needs a `code`"),
        ('by = "status"\n', 'code = "network"\n', "7:1", "`values` belong to the field in `by`"),
        ('values = { "3"', 'valuse = { "3"', "7:1", "did you mean values"),
    ],
)
def test_error_in_values_has_its_location(old: str, new: str, place: str, words: str, tmp_path: Path) -> None:
    assert old in BY
    with pytest.raises(UsageError) as refused:
        read_failure(tmp_path, BY.replace(old, new, 1))
    assert f"acme.toml:{place}: " in str(refused.value)
    assert words in str(refused.value)


def test_field_without_values_is_ignored(tmp_path: Path) -> None:
    own = 'name = "acme"\n[[cause]]\nby = "status"\nline = "shard server says {status:int}"\n'
    with pytest.raises(UsageError, match="`by` needs `values`"):
        read_failure(tmp_path, own)


def test_row_needs_words_common_to_all_its_lines(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no text of"):
        read_failure(tmp_path, 'name = "acme"\n[[cause]]\ncode = "killed"\nregex = "\\\\w+: \\\\d+"\n')


def test_row_of_a_healthy_word_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="appears in too many healthy lines"):
        read_failure(tmp_path, 'name = "acme"\n[[cause]]\ncode = "killed"\nline = "Killed"\n')

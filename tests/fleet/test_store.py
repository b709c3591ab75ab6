"""The store of `goodput fleet`: what is in it is not done again, and what is wrong with it is mended."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from goodput_cli.accounting.options import RULES
from goodput_cli.cli.main import run
from goodput_cli.fleet import store as store_module
from tests.support.fleets import fleet, put, training

Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("folder")


def test_stored_documents_are_not_read_again(logs: Path, read: list[str]) -> None:
    shutil.copytree(logs, "copy")
    plain = fleet("copy")
    assert fleet("copy", "--store", "store") == plain
    read.clear()
    assert fleet("copy", "--store", "store") == plain
    assert read == []
    with open("copy/job-0003.jsonl", "a") as file:
        file.write(json.dumps({"job_name": "job-0003", "job_end_time": 1.78e9}) + "\n")
    changed = fleet("copy", "--store", "store")
    assert read == ["copy/job-0003.jsonl"]
    assert changed != plain
    assert changed == fleet("copy")
    assert fleet("copy", "--store", "store", "--accelerators", "8")["totals"]["known_runs"] > 0


def test_other_options_read_again_and_keep_old_results(logs: Path, read: list[str]) -> None:
    answers = [fleet(str(logs), "--store", "store", *more) for more in ((), ("--stall-factor", "0"))]
    assert answers[0] != answers[1]
    read.clear()
    assert fleet(str(logs), "--store", "store") == answers[0]
    assert read == []


def test_damaged_part_of_the_store_is_rebuilt(logs: Path, read: list[str]) -> None:
    plain = fleet(str(logs), "--store", "store")
    part = min(Path("store/results").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    (Path("store") / "tmp-left-behind").write_bytes(b"half")
    again = fleet(str(logs), "--store", "store")
    assert "damaged_store_part" in {one["code"] for one in again["diagnostics"]}
    assert {**again, "diagnostics": None} == {**plain, "diagnostics": None}


@pytest.mark.parametrize("length", [0, 9000])
def test_full_disk_is_reported_and_store_stays_intact(logs: Path, length: int) -> None:
    """A limit on the length of a file simulates the disk: at the first byte, and in results."""
    plain = fleet(str(logs))
    done = subprocess.run(
        [sys.executable, "-m", "goodput_cli", "fleet", str(logs), "-q", "--store", "store", "--workers", "1"],
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (length, length)),
    )  # fmt: skip
    assert done.returncode == 1
    assert re.fullmatch(
        r"error: \S*store/\S+: cannot be written: File too large\ntip: raise `ulimit -f`\n", done.stderr
    )
    assert not list(Path("store").glob("tmp-*"))
    assert fleet(str(logs), "--store", "store") == plain


def test_a_store_of_another_version_is_refused(capsys: Output) -> None:
    put(Path("a.jsonl"), training("a", 1, 0.5))
    Path("store").mkdir()
    Path("store/format.json").write_text('{"format": 99}')
    assert run(["fleet", "a.jsonl", "--store", "store"]) == 1
    assert "another version" in capsys.readouterr().err


def test_results_spilled_to_disk_are_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("two").mkdir()
    for name in ("a", "b"):
        put(Path(f"two/{name}.jsonl"), training(name, 1, 0.5))
    plain = fleet("two", "--workers", "1")
    written: list[str] = []
    write = store_module.write_results

    def noted(folder: Path, rows: Sequence[store_module.Row], *, lasting: bool) -> None:
        written.extend(result.job for _, result in rows)
        write(folder, rows, lasting=lasting)

    monkeypatch.setattr(store_module, "write_results", noted)
    monkeypatch.setattr(store_module, "_MOST_HELD", 0)
    assert fleet("two", "--workers", "1") == plain
    assert written == ["a", "b"]


def test_store_among_the_logs_is_not_a_log() -> None:
    put(Path("logs/a.jsonl"), training("a", 1, 0.5))
    plain = fleet("logs")
    assert [fleet("logs", "--store", "logs/store") for _ in range(2)] == [plain, plain]


def test_undecodable_name_is_equal_from_memory_and_store() -> None:
    Path("named").mkdir()
    put(Path(os.fsdecode(b"named/a\xff.jsonl")), training("a", 1, 0.5))
    assert fleet("named", "--workers", "1") == fleet("named", "--workers", "1", "--store", "store")


def test_each_instant_has_its_own_results() -> None:
    put(Path("a.jsonl"), training("a", 10, 6)[:-1])
    asked = [("--as-of", f"2026-01-01T{hour}:00:00") for hour in (12, 14)]
    plain = [fleet("a.jsonl", *more) for more in asked]
    assert plain[0] != plain[1]
    assert [fleet("a.jsonl", *more, "--store", "store") for more in asked] == plain


def test_file_changed_in_the_same_tick_is_read_again(read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size and time are then no proof that it is the same."""
    monkeypatch.setattr("goodput_cli.fleet.store._RACY_NS", 60 * 10**9)
    path = put(Path("a.jsonl"), training("a", 10, 6))
    for _ in range(2):
        fleet("a.jsonl", "--store", "store")
    assert read == ["a.jsonl", "a.jsonl"]
    os.utime(path, (1e9, 1e9))
    for _ in range(2):
        fleet("a.jsonl", "--store", "store")
    assert read == ["a.jsonl"] * 3


DAMAGES = 40


def damaged(data: bytes, dice: random.Random) -> bytes:
    """The file with one bit flipped, some bytes overwritten, or its end cut off."""
    place = dice.randrange(len(data))
    match dice.randrange(3):
        case 0:
            return data[:place]
        case 1:
            return data[:place] + bytes([data[place] ^ 1 << dice.randrange(8)]) + data[place + 1 :]
        case _:
            return data[:place] + dice.randbytes(40) + data[place + 40 :]


def test_damage_is_reported_and_changes_no_figure() -> None:
    """At several positions in each file: each answer is that of the whole store, and the damaged file is named."""
    for number in range(3):
        put(Path(f"logs/{number}.jsonl"), training(f"job-{number}", 10 + number, 6))
    plain = fleet("logs", "--store", "store")
    dice = random.Random(29)
    files = sorted(path.relative_to("store") for path in Path("store").rglob("*.*"))
    assert {path.parts[0] for path in files} == {"format.json", "documents", "results"}
    for path in files:
        for _ in range(DAMAGES // len(files)):
            shutil.copytree("store", "hurt")
            (Path("hurt") / path).write_bytes(damaged((Path("store") / path).read_bytes(), dice))
            answer = fleet("logs", "--store", "hurt")
            said = [one["where"] for one in answer["diagnostics"] if one["code"] == "damaged_store_part"]
            assert {**answer, "diagnostics": None} == {**plain, "diagnostics": None}
            assert said == [[path.as_posix()]]
            if dice.random() < 0.1:
                assert fleet("logs", "--store", "hurt") == plain, "what was damaged is there again, and is said once"
            shutil.rmtree("hurt")


def test_part_lost_during_use_is_one_sentence(logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    fleet(str(logs), "--store", "store")
    extents = store_module.Store.extents

    def lost(store: store_module.Store, keys: Mapping[str, Any]) -> object:
        found = extents(store, keys)
        for part in Path("store/results").glob("*.parquet"):
            part.unlink()
        return found

    monkeypatch.setattr(store_module.Store, "extents", lost)
    assert run(["fleet", str(logs), "--store", "store", "--workers", "1", "-q"]) == 1
    assert "disappeared from the store" in capsys.readouterr().err


def _made_by_other_rules(store: Path, rules: int | None) -> None:
    """Turn results into those of other code, made by other rules; None: by a goodput that did not write which."""
    for part in (store / "results").glob("*.parquet"):
        table = pq.read_table(part).drop_columns(["key"] if rules is not None else ["key", "rules"])
        if rules is not None:
            table = table.set_column(table.schema.get_field_index("rules"), "rules", pa.array([rules] * len(table)))
        table = table.append_column("key", pa.array([f"{number:032x}" for number in range(len(table))]))
        pq.write_table(table, part)
        part.rename(part.with_stem(blake2b(part.read_bytes(), digest_size=16).hexdigest()))


@pytest.mark.parametrize(("rules", "version"), [(None, 1), (RULES + 1, RULES + 1)])
def test_results_of_other_rules_are_rebuilt_and_reported_once(rules: int | None, version: int) -> None:
    for name in ("a", "b"):
        put(Path(f"logs/{name}.jsonl"), training(name, 1, 0.5))
    plain = fleet("logs", "--store", "store", "--job-name", "a")
    _made_by_other_rules(Path("store"), rules)
    for one in Path("store/documents").glob("*"):
        one.unlink()
    asked = ("logs", "--store", "store")
    anew, again, whole = fleet(*asked, "--job-name", "a"), fleet(*asked, "--job-name", "a"), fleet(*asked)
    (said,) = (one for one in anew["diagnostics"] if one["code"] == "rules_differ")
    assert said["message"] == (
        f"earlier reports from this store used rules of version {version} for 1 job; this one uses version "
        f"{RULES}. Figures may differ for that reason alone"
    )
    assert said["where"] == ["a"]
    assert {**anew, "diagnostics": plain["diagnostics"]} == plain == again
    assert not [one for one in whole["diagnostics"] if one["code"] == "rules_differ"]


def test_each_result_contains_its_rules_version() -> None:
    put(Path("a.jsonl"), training("a", 1, 0.5))
    fleet("a.jsonl", "--store", "store")
    (part,) = Path("store/results").glob("*.parquet")
    assert pq.read_table(part)["rules"].to_pylist() == [RULES]

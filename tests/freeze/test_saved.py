"""Files of version 0.2.0 stay readable: saved answers, snapshots, recordings, a store, and JSON of programs.

The files in `saved/` are never generated again. `saved/expected.json` has their answers on the day they were made. An
answer may have more keys today, other sentences, the version of its schema, and the values that this version changed;
nothing else.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.analysis.sheet import SCHEMA_VERSION
from tests.freeze.run import ROOT, output_of
from tests.support.answers import check_any_answer

SAVED = "tests/freeze/saved"
EXPECTED = ROOT / SAVED / "expected.json"
LOGS = "tests/freeze/logs"
BASELINES = [part for at in (1, 2, 3) for part in ("--baseline", f"{SAVED}/baseline-{at}.json")]
LINES = {
    "one baseline": ("compare", f"{LOGS}/rollbacks.jsonl", *BASELINES[:2], "--fail-if", "goodput:-1pp"),
    "three baselines": ("compare", f"{LOGS}/rollbacks.jsonl", *BASELINES),
    "saved answers alone": ("compare", f"{SAVED}/baseline-2.json", f"{SAVED}/baseline-3.json"),
    "snapshot": ("analyze", f"{SAVED}/snapshot.jsonl.gz"),
    "snapshot as a table": ("analyze", f"{SAVED}/snapshot.parquet"),
    "recording": ("analyze", f"{SAVED}/recorded.jsonl"),
    "attempts of a recording": ("disruptions", f"{SAVED}/recorded.jsonl", "--by", "attempt"),
}
SENTENCES = ("title", "text", "advice", "message", "doubts", "command")
CHANGED_VALUES: dict[str, dict[Any, Any]] = {"cause_certainty": {"said": "confirmed"}, "recovery": {"not said": None}}
ANSWERS = sorted((ROOT / SAVED / "answers").iterdir()) + sorted((ROOT / SAVED).glob("baseline-*.json"))


def answer(*line: str) -> dict[str, Any]:
    """Return the exit code and the answer of a command as JSON."""
    code, _, rest = output_of((*line, "--format", "json")).partition("\n")
    return {"exit": code, **json.loads(rest.partition("\n--- standard error")[0])}


def within(before: Any, now: Any) -> bool:
    """Return True if an answer still has all old values. Lists of items with names or codes may be longer."""
    if isinstance(before, dict):
        kept = {
            key: CHANGED_VALUES[key].get(value, value) if key in CHANGED_VALUES else value
            for key, value in before.items()
            if key not in SENTENCES
        }
        return isinstance(now, dict) and all(key in now and within(value, now[key]) for key, value in kept.items())
    if isinstance(before, list):
        for name in ("name", "code"):
            named = {one[name]: one for one in now if isinstance(one, dict) and name in one} if now else {}
            if len(named) == len(now) > len(before) and all(name in one for one in before):
                now = [named.get(one[name]) for one in before]
        return isinstance(now, list) and len(before) == len(now) and all(map(within, before, now))
    if isinstance(before, float) and isinstance(now, float):
        return math.isclose(before, now, rel_tol=1e-8)  # `output_of` rounds
    return bool(before == now)


@pytest.mark.parametrize("name", LINES)
def test_saved_file_gives_the_same_answer(name: str) -> None:
    expected = {**json.loads(EXPECTED.read_text())[name], "schema_version": SCHEMA_VERSION}
    assert within(expected, answer(*LINES[name]))


def test_old_store_gives_the_same_answer(tmp_path: Path) -> None:
    shutil.copytree(ROOT / SAVED / "store", tmp_path / "store")
    line = ("fleet", f"{LOGS}/fleet")
    plain = answer(*line)
    first, second = (answer(*line, "--store", str(tmp_path / "store")) for _ in range(2))
    told = [one for one in first["diagnostics"] if one["code"] == "rules_differ"]
    assert [one["count"] for one in told] == [plain["coverage"]["runs"]]  # it was left by rules of version 1
    assert [{**first, "diagnostics": plain["diagnostics"]}, second] == [plain, plain]


def test_old_snapshot_can_be_updated(tmp_path: Path) -> None:
    for ending in ("jsonl.gz", "parquet"):
        for name in (f"snapshot.{ending}", f"snapshot.{ending}.manifest"):
            shutil.copy(ROOT / SAVED / name, tmp_path / name)
        update = output_of(("fetch", "--update", "-o", str(tmp_path / f"snapshot.{ending}")))
        assert update.startswith("exit 0\n")
        assert answer("analyze", str(tmp_path / f"snapshot.{ending}"))["goodput"]["percent"] == pytest.approx(26.625)


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.name)
def test_old_json_answer_matches_the_schema(path: Path) -> None:
    check_any_answer(json.loads(path.read_text()))

"""Files next to the logs in a folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from tests.support.story import end, start, steps, story_lines


def folder_of(path: Path, **files: str) -> Path:
    log = story_lines(start(0), steps(0, 5, at=10), end(60))
    (path / "run.jsonl").write_text("".join(f"{line}\n" for line in log), encoding="utf-8")
    for name, text in files.items():
        stem, _, ending = name.rpartition("_")
        (path / f"{stem}.{ending}").write_text(text, encoding="utf-8")
    return path


def locations_by_code(analysis: Analysis) -> dict[str, tuple[str, ...]]:
    return {one.code: one.where for one in analysis.diagnostics}


def test_settings_of_a_model_are_reported_in_one_line(tmp_path: Path) -> None:
    settings = json.dumps({"architectures": ["a"], "hidden_size": 4096}, indent=2)
    diagnostics = locations_by_code(
        goodput_cli.analyze(folder_of(tmp_path, config_json=settings, notes_log="hello\nworld\n"))
    )
    assert [Path(place).name for place in diagnostics["not_a_log"]] == ["config.json", "notes.log"]
    assert "malformed_lines" not in diagnostics
    assert "unrecognised_lines" not in diagnostics


def test_damaged_log_is_not_skipped(tmp_path: Path) -> None:
    diagnostics = locations_by_code(goodput_cli.analyze(folder_of(tmp_path, other_jsonl="no line of JSON\n")))
    assert "unrecognised_lines" in diagnostics


def test_named_file_is_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, notes_log="hello\nworld\n")
    diagnostics = locations_by_code(goodput_cli.analyze([folder / "run.jsonl", folder / "notes.log"]))
    assert "unrecognised_lines" in diagnostics


def test_events_in_one_multiline_value_are_a_log(tmp_path: Path) -> None:
    events = json.dumps([json.loads(line) for line in story_lines(start(100), steps(5, 3, at=110))], indent=1)
    analysis = goodput_cli.analyze(folder_of(tmp_path, more_json=events))
    assert "not_a_log" not in locations_by_code(analysis)
    assert analysis.job.attempts == 2


def test_folder_with_only_a_timeless_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "version_0").mkdir()
    (tmp_path / "version_0" / "metrics.csv").write_text("epoch,step,loss\n0,9,1.0\n")
    with pytest.raises(
        goodput_cli.GoodputError, match=r"version_0/metrics\.csv contains no timestamps; `goodput help formats`"
    ):
        goodput_cli.analyze(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("train.py", "is a Python program, not its output; run `python "),
        ("train.ipynb", "is a notebook"),
        ("run.sbatch", "is a job script"),
        ("model.safetensors", "is a checkpoint or weights"),
        ("llama.yaml", "is a settings file"),
        ("requirements.txt", "is a list of packages"),
        ("README.md", "is a document"),
        ("loss.png", "is a picture"),
    ],
)
def test_other_files_are_described(tmp_path: Path, name: str, said: str) -> None:
    """Also if a line looks like one of a log: a program contains `iteration 5/ 100` in its own text."""
    (tmp_path / name).write_text('print(f"[2026-03-01 10:00:00] iteration {s}/ 100 | elapsed time: 1.0 |")\n')
    with pytest.raises(goodput_cli.GoodputError, match=f"nothing was read: .*{re.escape(name)} {said}"):
        goodput_cli.analyze(tmp_path / name)


def test_log_with_such_a_name_is_read(tmp_path: Path) -> None:
    (folder_of(tmp_path) / "run.jsonl").rename(tmp_path / "run.py")
    assert goodput_cli.analyze(tmp_path / "run.py").job.attempts == 1


def test_folder_without_log_lists_its_contents(tmp_path: Path) -> None:
    with pytest.raises(goodput_cli.GoodputError, match=r"no log in this folder .* it is empty"):
        goodput_cli.analyze(tmp_path)
    for name in ("1.png", "2.png", "notes.doc", "LICENSE"):
        (tmp_path / name).touch()
    with pytest.raises(
        goodput_cli.GoodputError, match=r"it contains 2 \*\.png, 1 \*\.doc, 1 without an extension; pass"
    ):
        goodput_cli.analyze(tmp_path)

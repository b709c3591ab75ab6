"""What helps to write a mapping: a draft, what its rules read, and everything about one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from tests.text.support import analysed, seconds

Printed = Callable[..., str]
LOG = """\
Initializing a new model from scratch
iter 0: loss 10.9, time 30000.00ms, mfu -100.00%
iter 1: loss 10.5, time 250.00ms, mfu 17.00%
iter 2: loss 10.1, time 250.00ms, mfu 17.10%
iter 3: loss 9.9, time 250.00ms, mfu 17.10%
saving checkpoint to out
iter x: loss 9.9, time 250.00ms, mfu 17.10%
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text(LOG, encoding="utf-8")
    return path


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    def run_and_print(*arguments: str) -> str:
        run(arguments)
        return capsys.readouterr().out

    return run_and_print


def test_a_draft_reads_the_log_that_it_was_made_of(log: Path, tmp_path: Path, printed: Printed) -> None:
    draft = tmp_path / "my.toml"
    draft.write_text(printed("check", "--suggest", str(log)), encoding="utf-8")
    assert "line = 'iter {step:int}: loss {_}, time {each:float}ms'" in draft.read_text("utf-8")
    found = seconds(analysed(log, mapping=str(draft)))
    assert found == {"program_startup": 29.75, "productive": 1}


def test_a_check_with_a_mapping_shows_what_each_rule_reads(log: Path, tmp_path: Path, printed: Printed) -> None:
    draft = tmp_path / "my.toml"
    draft.write_text(printed("check", "--suggest", str(log)), encoding="utf-8")
    text = printed("check", "--mapping", str(draft), str(log))
    assert "Mapping train" in text
    assert "lines that no rule reads" in text
    assert "iter x: loss #.#" in text


def test_one_line_is_explained(log: Path, tmp_path: Path, printed: Printed) -> None:
    draft = tmp_path / "my.toml"
    draft.write_text(printed("check", "--suggest", str(log)), encoding="utf-8")
    text = printed("check", "--mapping", str(draft), "--explain", f"{log}:3")
    assert "read by: train" in text
    assert "step: 2" in text
    assert "read by: no rule" in printed("check", "--mapping", str(draft), "--explain", f"{log}:7")


def test_a_log_without_numbers_that_rise_gets_a_draft_to_fill_in(tmp_path: Path, printed: Printed) -> None:
    path = tmp_path / "words.log"
    path.write_text("one\ntwo words\n" * 20, encoding="utf-8")
    assert "say what a step looks like" in printed("check", "--suggest", str(path))


@pytest.mark.parametrize(("name", "above"), [("pyproject.toml", "tool.goodput.mapping"), ("goodput.toml", "mapping")])
def test_the_settings_of_a_project_declare_mappings(
    log: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch, name: str, above: str
) -> None:
    (log.parent / name).write_text(
        f'[{above}.nanogpt]\nsteps = "index"\n\n[[{above}.nanogpt.rule]]\nevent = "step"\n'
        'line = \'iter {step:int}: loss {_}, time {each:float}ms\'\neach = { unit = "ms" }\ntime = "cursor"\n',
        encoding="utf-8",
    )
    monkeypatch.chdir(log.parent)
    assert "log: nanogpt" in printed("analyze", "train.log")
    broken = (log.parent / name).read_text("utf-8").replace('event = "step"', 'event = "stop"')
    (log.parent / name).write_text(broken, encoding="utf-8")
    assert run(["analyze", "train.log"]) == 2

"""Tools for writing a mapping: a draft, matches of rules, and all about one line."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from tests.text.support import analysed, seconds

Printed = Callable[..., str]
LOG = """\
Initializing a new model from scratch
iter 0: cost 10.9, time 30000.00ms, mfu -100.00%
iter 1: cost 10.5, time 250.00ms, mfu 17.00%
iter 2: cost 10.1, time 250.00ms, mfu 17.10%
iter 3: cost 9.9, time 250.00ms, mfu 17.10%
saving checkpoint to out
iter x: cost 9.9, time 250.00ms, mfu 17.10%
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


def test_draft_reads_its_own_log(log: Path, tmp_path: Path, printed: Printed) -> None:
    draft = tmp_path / "my.toml"
    draft.write_text(printed("check", "--suggest", str(log)), encoding="utf-8")
    assert "line = 'iter {step:int}: cost {_} time {each:float}ms'" in draft.read_text("utf-8")
    found = seconds(analysed(log, mapping=str(draft)))
    assert found == {"program_startup": 29.75, "productive": 1}


def test_check_with_a_mapping_shows_matches_of_each_rule(log: Path, tmp_path: Path, printed: Printed) -> None:
    draft = tmp_path / "my.toml"
    assert printed("check", "--suggest", str(log), "-o", str(draft)) == ""
    assert run(["check", "--suggest", "no-such.log", "-o", str(draft)]) == 2  # The check precedes reading.
    text = printed("check", "--mapping", str(draft), str(log))
    assert "Mapping train" in text
    assert "lines that no rule reads" in text
    assert "iter x: cost 9.9" in text


def test_matches_in_a_stream_are_shown(
    log: Path, tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = tmp_path / "my.toml"
    draft.write_text(printed("check", "--suggest", str(log)), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LOG.encode())))
    text = printed("check", "--mapping", str(draft), "-")
    assert "checked " in text
    assert "Mapping train" in text
    assert "stdin:2" in text


def test_one_line_is_explained(log: Path, tmp_path: Path, printed: Printed) -> None:
    draft = tmp_path / "my.toml"
    draft.write_text(printed("check", "--suggest", str(log)), encoding="utf-8")
    text = printed("check", "--mapping", str(draft), "--explain", f"{log}:3")
    assert "read by: train" in text
    assert "step: 2" in text
    assert "read by: no rule" in printed("check", "--mapping", str(draft), "--explain", f"{log}:7")


def test_log_without_rising_numbers_gets_a_draft_to_fill_in(tmp_path: Path, printed: Printed) -> None:
    path = tmp_path / "words.log"
    path.write_text("one\ntwo words\n" * 20, encoding="utf-8")
    assert "pass --mapping my.toml" in printed("check", "--suggest", str(path))


@pytest.mark.parametrize(("name", "above"), [("pyproject.toml", "tool.goodput.mapping"), ("goodput.toml", "mapping")])
def test_project_settings_declare_mappings(
    log: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch, name: str, above: str
) -> None:
    (log.parent / name).write_text(
        f'[{above}.nanogpt]\nsteps = "index"\n\n[[{above}.nanogpt.rule]]\nevent = "step"\n'
        'line = \'iter {step:int}: cost {_}, time {each:float}ms\'\neach = { unit = "ms" }\ntime = "cursor"\n',
        encoding="utf-8",
    )
    monkeypatch.chdir(log.parent)
    assert "format: nanogpt" in printed("analyze", "train.log")
    broken = (log.parent / name).read_text("utf-8").replace('event = "step"', 'event = "stop"')
    (log.parent / name).write_text(broken, encoding="utf-8")
    assert run(["analyze", "train.log"]) == 2


SAYS = "[[rule]]\nevent = 'step'\nline = 'iter {step:int}: cost {_}, time {each:float}ms'\n"
SAYS += "each = { unit = 'ms' }\ntime = 'cursor'\n"


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a user's mapping directory."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "goodput" / "mappings"
    folder.mkdir(parents=True)
    return folder


def test_user_mappings_are_always_on(log: Path, person: Path, printed: Printed) -> None:
    (person / "own.toml").write_text(f"name = 'own'\n{SAYS}", encoding="utf-8")
    assert "format: own" in printed("analyze", str(log))
    assert "Mapping own" in printed("check", str(log))
    assert run(["analyze", str(log), "--no-config", "--no-draft"]) == 4


def test_explicit_mapping_precedes_project_and_user_mappings(
    log: Path, person: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them count; of two with the same name, the one on the command line."""
    monkeypatch.chdir(log.parent)
    (person / "a.toml").write_text(f"name = 'a'\nsteps = 'index'\n{SAYS}", encoding="utf-8")
    (log.parent / "goodput.toml").write_text(
        "[[mapping.b.rule]]\nevent = 'start'\nline = 'Initializing a new model'\n", encoding="utf-8"
    )
    assert "format: a + b" in printed("analyze", "train.log")
    more = "name = 'c'\n[[rule]]\nevent = 'save'\nline = 'saving checkpoint'\n"
    more += "[[rule]]\nevent = 'start'\nline = 'nothing so'\n"
    (log.parent / "c.toml").write_text(more, encoding="utf-8")
    assert "format: a + b + c" in printed("analyze", "train.log", "--mapping", "c.toml")
    (log.parent / "d.toml").write_text(f"name = 'a'\n{SAYS}", encoding="utf-8")
    assert "3 steps kept (1 to 3)" in printed("analyze", "train.log", "--mapping", "d.toml")


def test_failed_sample_fails_a_check_and_shows_matches(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.toml"
    sample = "[[sample]]\nline = 'iter 7: cost 1, time 250ms'\ngives = { event = 'step', step = 8 }\n"
    own.write_text(f"name = 'own'\n{SAYS}{sample}{sample.replace('8', '9')}", encoding="utf-8")
    assert run(["analyze", str(log), "--mapping", str(own)]) == 2
    capsys.readouterr()
    assert run(["check", str(log), "--mapping", str(own)]) == 5
    said = capsys.readouterr()
    assert "line 2  step       4" in said.out
    assert f"{own}:8:1: sample failed: `gives` has `step` = 8" in said.err
    assert f"{own}:11:1: sample failed: `gives` has `step` = 9" in said.err


def test_mapping_without_steps_fails_a_check_with_5(log: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("name = 'own'\n[[rule]]\nevent = 'step'\nline = 'stride {step:int}'\n", encoding="utf-8")
    assert run(["check", str(log), "--mapping", str(own)]) == 5
    assert run(["check", str(log)]) == 5  # With inferred rules, which are a warning.


def test_rejected_lines_are_written_as_a_table(log: Path, tmp_path: Path, printed: Printed) -> None:
    """An invalid value, and a line that almost matches a rule; no cell is a formula."""
    own, table = tmp_path / "own.toml", tmp_path / "refused.csv"
    own.write_text(f"name = 'own'\n{SAYS}".replace("step:int", "step:word"), encoding="utf-8")
    with log.open("a", encoding="utf-8") as file:
        file.write("=1+iter 4: cost, time 250s\n")
    assert run(["check", str(log), "--rejects", str(table)]) == 2
    printed("check", str(log), "--mapping", str(own), "--rejects", str(table))
    head, refused, near = table.read_text("utf-8").splitlines()
    assert head == "source,line,rule,field,reason,text"
    assert f"{log},7," in refused
    assert ",step,x is not a step number," in refused
    assert near.endswith('"\'=1+iter 4: cost, time 250s"')
    assert run(["check", str(log), "--mapping", str(own), "--rejects", str(table)]) == 2  # It exists.


def test_records_are_shown_and_explained_like_lines(tmp_path: Path, printed: Printed) -> None:
    own, table = tmp_path / "own.toml", tmp_path / "run.csv"
    table.write_text("iteration,when\n1,1772359200\n2,1772359210\nx,1772359220\n", encoding="utf-8")
    own.write_text("name = 'own'\ncsv = true\n[[rule]]\nevent = 'step'\n"
                   "keys = { step = 'iteration', time = 'when' }\n", encoding="utf-8")  # fmt: skip
    text = printed("check", str(table), "--mapping", str(own))
    assert "line 3  step       2        1  " in text
    assert "refused:xisnotastepnumber" in "".join(text.split())  # A long path is wrapped anywhere.
    explained = printed("check", "--mapping", str(own), "--explain", f"{table}:3")
    assert "read by: own, rule 'step: iteration, time: when'" in explained
    assert "step: 2" in explained
    assert run(["check", "--mapping", str(own), "--explain", f"{table}:1"]) == 2


def test_lines_have_their_numbers_in_their_files(
    tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of several files, and after the first megabytes of one."""
    monkeypatch.chdir(tmp_path)  # Long file names leave no room for the last column.
    own = tmp_path / "own.toml"
    own.write_text(f"name = 'own'\n{SAYS}", encoding="utf-8")
    folder = tmp_path / "logs"
    folder.mkdir()
    line = "iter 0: cost 10.9, time 30000.00ms, mfu -100.00%\n"
    (folder / "a.log").write_text(line + ("noise that fills a line" * 4_000 + "\n") * 50 + line.replace("0:", "1:"))
    (folder / "b.log").write_text("noise\n" + line)
    text = printed("check", "logs", "--mapping", str(own))
    assert "a.log:1 " in text
    assert "b.log:2" in text
    assert "step: 1" in printed("check", "--mapping", str(own), "--explain", f"{folder / 'a.log'}:52")

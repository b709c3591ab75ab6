"""`goodput check` as a command: exit codes, all formats, and hostile names."""

from __future__ import annotations

import csv
import io
import json

import pytest

from goodput_cli.cli.main import run
from tests.support.answers import HOSTILE, check_answer
from tests.support.logs import FINE, flat, renamed, written
from tests.support.story import start, steps

Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("folder")


def test_findings_exit_with_5_and_none_with_0(capsys: Output) -> None:
    assert run(["check", written(FINE)]) == 0
    assert "No warnings" in capsys.readouterr().out
    assert run(["check", written(FINE, "{broken")]) == 5
    out, err = capsys.readouterr()
    assert "malformed_lines" in out
    assert "effect: " in out
    assert "advice: " in out
    assert err == ""


def test_info_fails_only_with_strict(capsys: Output) -> None:
    path = written(FINE[:-1])
    assert run(["check", path]) == 0
    assert "end_not_logged" in capsys.readouterr().out
    assert run(["check", path, "--strict"]) == 5


def test_log_without_events_is_reported(capsys: Output) -> None:
    ms = [line.replace("17", "17000", 1) for line in flat((start(0), steps(0, 5, at=10)))]
    assert run(["check", written(ms)]) == 4
    out, err = capsys.readouterr()
    assert "it looks like milliseconds" in " ".join(out.split())
    assert err == (
        "error: no events found (6 x bad_value)\n"
        "cause: run.jsonl:2: `step_start_time` is not a time between 1970 and 2255 in epoch seconds: it looks like "
        "milliseconds; dropped\n"
        "tip: run `goodput help bad_value` for what to do, and `goodput check` with the same log for all findings\n"
    )
    assert run(["analyze", "run.jsonl"]) == 4
    assert capsys.readouterr().err == err
    assert run(["check", written([])]) == 4
    assert capsys.readouterr().err == (
        "error: no events found\ncause: the sources are empty\ntip: check whether the job has written its log yet\n"
    )


def test_json_agrees_with_the_schema(capsys: Output) -> None:
    assert run(["check", written(FINE, "{broken", renamed([start(3)], "one")), "--format", "json"]) == 5
    answer = json.loads(capsys.readouterr().out)
    check_answer(answer, "check")
    assert answer["findings"][0]["code"] == "malformed_lines"
    assert (answer["jobs"], answer["runs"]) == (2, 2)


def test_csv_has_every_finding_and_markdown_the_table(capsys: Output) -> None:
    path = written(FINE[:-1], renamed(FINE[:-1], "k"))
    run(["check", path, "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["code"], row["job"]) for row in rows] == [("end_not_logged", "j"), ("end_not_logged", "k")]
    assert rows[0]["where"] == "run.jsonl:16"
    run(["check", path, "--format", "markdown"])
    assert "| info | end\\_not\\_logged | 2 | 2 |" in capsys.readouterr().out


def test_verbose_lists_every_location(capsys: Output) -> None:
    path = written(FINE, *["{broken"] * 5)
    run(["check", path])
    assert "run.jsonl:22" not in capsys.readouterr().out
    run(["check", path, "-v"])
    assert "run.jsonl:22" in " ".join(capsys.readouterr().out.split())


def test_hostile_names_are_harmless(capsys: Output) -> None:
    lines = renamed(FINE[:-1], HOSTILE)
    path = written(lines, renamed(lines, HOSTILE.upper()), renamed(FINE, "=SUM(1)"))
    for name in ("table", "markdown", "csv", "json"):
        run(["check", path, "--format", name])
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "<img" not in out or name in ("csv", "json", "table")


def test_log_without_readable_lines_is_not_clean(capsys: Output) -> None:
    log = written("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n", name="train.log")
    assert run(["check", log]) == 4
    said = capsys.readouterr().out
    assert "No events read" in said
    assert "No warnings" not in said

"""Files of the user that are nested too deep, or that contain numbers with thousands of digits, are rejected with
name and key. Ctrl-C stays Ctrl-C, whatever exception Python wraps around it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from goodput_cli.errors import UsageError
from goodput_cli.events.mappings.toml import TomlFile
from tests.support.fleets import put, training

DIGITS = "7" * 6000
Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("folder")


def rule(lines: str) -> str:
    return f'name = "own"\n[[rule]]\nevent = "step"\n{lines}\n'


def nested(groups: int) -> str:
    return f"regex = 'step {'(' * groups}a{')' * groups} (?P<step>\\d+)'"


MAPPINGS = {
    "1500 groups": (rule(nested(1500)), "own.toml:4:1: invalid regular expression: its groups are nested too deep"),
    "500 groups of a cause": (
        f'name = "own"\n[[cause]]\ncode = "python_error"\nregex = \'fatal: {"(?:" * 500}a{")" * 500}\'\n',
        "own.toml:4:1: invalid regular expression",
    ),
    "arrays in arrays": (f"x = {'[' * 3000}{']' * 3000}", "own.toml:1:6005: invalid TOML: nested too deep"),
    "a number": (rule(f"line = 'step {{step:int}}'\nepoch = {{ first = {DIGITS} }}"),
                 "own.toml:5:19: invalid TOML: `epoch` has a number of 6,000 digits"),
    "a number with marks": (f"x = {'7_' * 6000}7", "own.toml:1:5: invalid TOML: `x` has a number of 6,001 digits"),
    "a number in an array": (f"x = [\n1,\n{DIGITS}]", "own.toml:3:1: invalid TOML: a number of 6,000 digits"),
}  # fmt: skip


@pytest.mark.parametrize("case", MAPPINGS)
def test_invalid_mapping_is_rejected_with_its_location(case: str, capsys: Output) -> None:
    text, said = MAPPINGS[case]
    put(Path("run.jsonl"), training("a", 2, 1))
    Path("own.toml").write_text(text)
    assert run(["run.jsonl", "--mapping", "own.toml"]) == 2
    assert f"error: {said}" in capsys.readouterr().err


@pytest.mark.parametrize("groups", [150, 200, 250, 275, 300])
def test_deeply_nested_groups_are_not_a_bug(groups: int, capsys: Output) -> None:
    put(Path("run.jsonl"), training("a", 2, 1))
    Path("own.toml").write_text(rule(nested(groups)))
    run(["run.jsonl", "--mapping", "own.toml", "-q"])
    assert "This is a bug" not in capsys.readouterr().err


@pytest.mark.parametrize("line", ["reference-step-time", "[job.a]\nreference-step-time", "[mapping]\nx"])
def test_invalid_settings_are_rejected_with_their_key(line: str, capsys: Output) -> None:
    put(Path("run.jsonl"), training("a", 2, 1))
    Path("goodput.toml").write_text(f"{line} = {DIGITS}\n")
    assert run(["run.jsonl"]) == 2
    key = line.rpartition("\n")[2]
    assert f"goodput.toml: is not TOML: `{key}` has a number of 6,000 digits (at line" in capsys.readouterr().err


TABLES = {
    "labels.csv": f"job,team,accelerators\na,b,{DIGITS}\n",
    "labels.json": f'[{{"job": "a", "accelerators": {DIGITS}}}]',
    "deep.json": "[" * 5000 + "]" * 5000,
    "sacct.txt": "JobName|Start|End|AllocTRES|NodeList\n"
    f"a|2026-01-01T00:00:00|2026-01-01T01:00:00|gres/gpu={DIGITS}|n[{DIGITS}-{DIGITS}]\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_invalid_fleet_table_is_not_a_bug(name: str, capsys: Output) -> None:
    put(Path("run.jsonl"), training("a", 2, 1))
    Path(name).write_text(TABLES[name])
    option = "--sacct" if name == "sacct.txt" else "--labels"
    run(["fleet", "run.jsonl", "--workers", "1", option, name, "-q"])
    assert "This is a bug" not in capsys.readouterr().err


POD = {"kind": "Pod", "metadata": {"name": "a-0", "annotations": {"batch.kubernetes.io/job-completion-index": DIGITS}},
       "status": {"containerStatuses": [{"restartCount": DIGITS}]}}  # fmt: skip
LINES = {
    "step": [f"2026-01-01 10:0{n}:00 step {n}{DIGITS if n == 5 else ''} loss 2.0" for n in range(10)],
    "megatron": [f"[2026-01-01 10:0{n}:00.1] iteration {n if n != 5 else DIGITS}/ 100 | consumed samples: {n} | "
                 "elapsed time per iteration (ms): 100.0 | learning rate: 1.0E-04 |" for n in range(10)],
    "bar": [f"Epoch {n if n != 5 else DIGITS}:  10%|# | {n}/{DIGITS} [{DIGITS}:00<00:10, 1.0it/s]" for n in range(10)],
    "agent": ["Root Cause (first observed failure):", "[0]:", "  time      : 2026-01-01_10:00:00",
              f"  rank      : {DIGITS} (local_rank: {DIGITS})", f"  exitcode  : {DIGITS} (pid: {DIGITS})"],
    "ray": [f"Memory on the node (IP: 10.0.0.7, ID: a) was used; pid={DIGITS}"],
    "sacct": ["JobID|JobName|State|Start|End|NNodes|NodeList|ExitCode",
              f"{DIGITS}|x|FAILED|2026-01-01T00:00:00|2026-01-01T01:00:00|{DIGITS}|n[{DIGITS}-{DIGITS}]|0:{DIGITS}"],
    "pod": [json.dumps({"kind": "PodList", "items": [POD]})],
    "error.json": [json.dumps({"message": {"message": "boom", "extraInfo": {"timestamp": DIGITS}}})],
}  # fmt: skip


@pytest.mark.parametrize("kind", LINES)
def test_log_with_thousands_of_digits_is_not_a_bug(kind: str, capsys: Output) -> None:
    Path("train.log").write_text("\n".join([*LINES["step"][:5], *LINES[kind], ""]))
    run(["train.log", "-q"])
    run(["check", "train.log"])
    assert "This is a bug" not in capsys.readouterr().err


@pytest.mark.parametrize("wrapped", [RuntimeError, ImportError, OSError])
@pytest.mark.parametrize("named", [True, False])
def test_interrupted_import_is_an_interrupt(
    wrapped: type[Exception], named: bool, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """Python 3.11 raises RuntimeError instead of the exception from `__set_name__`."""

    class Interrupting:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "goodput_cli.api.analyze":
                try:
                    raise KeyboardInterrupt
                except KeyboardInterrupt as error:
                    if named:
                        raise wrapped("Error calling __set_name__") from error
                    raise wrapped("while it was handled")  # noqa: B904

    put(Path("run.jsonl"), training("a", 2, 1))
    monkeypatch.delitem(sys.modules, "goodput_cli.api.analyze", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert run(["run.jsonl"]) == 130
    assert "Interrupted" in capsys.readouterr().err


def test_long_number_allowed_by_toml_is_read() -> None:
    assert TomlFile("own.toml", f"x = {'7' * 4000}").content["x"] > 0
    with pytest.raises(UsageError, match="6,000 digits"):
        TomlFile("own.toml", f"y = 1\nx = {DIGITS}")

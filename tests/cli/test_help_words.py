"""`goodput help WORD`: the meaning of every word in answers, how it is found, and the next command."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import get_args

import click
import pytest
from click.testing import CliRunner

from goodput_cli.accounting.attempts.endings import END_NAMES
from goodput_cli.analysis.advice.results import How
from goodput_cli.analysis.goodput.thresholds import LEVERS
from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.cli.explained import explain
from goodput_cli.cli.main import COMMANDS, goodput, run
from goodput_cli.diagnostics.diagnostic import CODES
from goodput_cli.vocabulary.categories import CAUSES, CERTAINTIES, ENDED, GROUPS, NAMES, ROLES
from goodput_cli.vocabulary.programs import PROGRAMS, words

DECLARED: dict[str, Iterable[str]] = {
    "diagnostics": CODES, "insights": BY_CODE, "categories": NAMES, "causes": CAUSES, "groups": GROUPS, "roles": ROLES,
    "certainties": (*CERTAINTIES, "?"), "endings": (*ENDED, *END_NAMES), "levers": LEVERS, "how": get_args(How),
    "formats": {name for program in PROGRAMS for name in program.formats}, "words": words(),
    "measures": ("goodput", "badput", "ETTR", "MTBF", "MTTF", "MPG", "n_eff"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DECLARED)
def test_each_declared_word_has_help(kind: str) -> None:
    assert [word for word in DECLARED[kind] if not explain(word)] == []


def test_help_fits_a_terminal() -> None:
    every = (explain(word) or "" for words_of_kind in DECLARED.values() for word in words_of_kind)
    assert max(len(line) for text in every for line in text.splitlines()) <= 100  # A name cannot be broken.


def test_help_on_a_cause_lists_its_patterns() -> None:
    text = " ".join((explain("disk_full") or "").split())
    assert "Patterns (process): `No space left on device`," in text
    assert "`iostream error` ?" in text
    assert "`No space left on device`" not in " ".join((explain("unknown") or "").split())


def test_next_command_of_each_word_works() -> None:
    for word, row in words().items():
        for name, rest in re.findall(r"^goodput (\w+)(.*)$", row.next):
            command = COMMANDS[name].load(name)
            options = {option for one in command.params if isinstance(one, click.Option) for option in one.opts}
            assert set(re.findall(r"--[a-z-]+", rest)) <= options, word


def test_case_blanks_and_dashes_do_not_matter() -> None:
    assert explain("mtbf") == explain("MTBF")
    assert explain("Clean-End") == explain("clean_end") == explain("clean end")
    assert "likely" in (explain("?") or "")


def test_misspelled_word_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "device_om"]) == 2
    assert "tip: did you mean device_oom" in capsys.readouterr().err


def test_help_words_lists_words_by_kind() -> None:
    text = CliRunner().invoke(goodput, ["help", "words"]).output
    assert {line.split(":")[0] for line in text.splitlines() if not line.startswith(" ")} >= {
        "commands", "categories", "insights", "diagnostics", "causes", "formats", "topics", "words",
    }  # fmt: skip
    assert all(len(line) <= 80 for line in text.splitlines())
    listed = set(re.split(r", |: ", " ".join(text.split())))
    assert {"analyze", "MTBF", "gpu_memory", "silent_death"} <= listed


def test_word_instead_of_a_command_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["formts"]) == 2
    assert (
        "no such command, file or folder: 'formts'\ntip: did you mean formats? `goodput help WORD` explains a word"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["as", "good"], "as good: (advice)"),
        (["stuck"], "hung: (step or job)"),
        (["fail-if"], "Gates: options that"),
        (["exit", "codes"], "Exit codes:"),
        (["caught", "up"], "point: (outage)"),
        (["down", "since"], "column down since: "),
        (["insights"], "insights: several_runs, "),
    ],
)
def test_screen_words_have_help_by_alias_and_heading(asked: list[str], said: str) -> None:
    result = CliRunner().invoke(goodput, ["help", *asked])
    assert (result.exit_code, result.output[: len(said)]) == (0, said)


def test_each_heading_of_a_table_has_help() -> None:
    """Check `disruptions`, `steps` and a fleet's table, at any width."""
    from goodput_cli.analysis.disruptions.rows import DISRUPTIONS
    from goodput_cli.analysis.step_breakdown.breakdown import PHASES, RANKS
    from goodput_cli.analysis.steps.sheet import SLOW_STEPS
    from goodput_cli.fleet.rows import GROUP_TABLE, RUN_TABLE

    tables = (DISRUPTIONS, PHASES, RANKS, SLOW_STEPS, GROUP_TABLE, RUN_TABLE)
    assert [one.heading for table in tables for one in table.columns if one.words and not explain(one.heading)] == []

"""`goodput help formats` lists every format with a command to type."""

from __future__ import annotations

from click.testing import CliRunner

from goodput_cli.cli.main import goodput
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.formats.registry import all_formats
from goodput_cli.events.mappings.registry import RESERVED, SHIPPED, SHIPPED_OF_RECORDS
from goodput_cli.vocabulary.programs import PROGRAMS


def test_every_format_is_listed() -> None:
    listed = {name for program in PROGRAMS for name in program.formats}
    read = {one.name for one in all_formats(DiagnosticCollector())} | {*RESERVED, *SHIPPED, *SHIPPED_OF_RECORDS}
    assert read - listed - {"timeless", "prometheus", "rollback", "stages"} == set()  # None is a log by itself.


def test_each_format_has_a_command_that_works() -> None:
    text = CliRunner().invoke(goodput, ["help", "formats"]).output
    for program in PROGRAMS:
        assert f"{program.name}:\n    {program.command}\n" in text
        assert program.command.startswith("goodput ")
    assert max(map(len, text.splitlines())) <= 100
    assert "trainer_state.json of Hugging Face" in text

"""The registry of output formats: declarations of a plug-in, read from real entry points of a package."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from goodput_cli.analysis.sheet import Sheet
from goodput_cli.cli.main import run
from goodput_cli.errors import UsageError
from goodput_cli.report import base
from goodput_cli.report.base import Page, format_names, format_of, is_binary, load_renderer, load_sheet_renderer
from tests.support.answers import primer

SAMPLE = Path(__file__).parent.parent.parent / "sample_logs" / "llm-pretrain.jsonl"
PLUG_IN = """
from goodput_cli.report.base import OutputFormat

def bare(analysis):
    return f"bare {analysis.job.name}\\n"

def paged(analysis, page):
    return f"{page.width} {analysis.job.name}\\n"

def sheet(sheet, page):
    return b"\\x00" + sheet.title.encode()

full = OutputFormat(analysis=paged, sheet=sheet, endings=("heat", "heat.bin"), binary=True)
late = OutputFormat(sheet="late_module:render", endings=("late",))
nonsense = 7
"""
ENTRY_POINTS = """
[goodput_cli.renderers]
bare = shown:bare
paged = shown:paged
full = shown:full
late = shown:late
broken = no_such_module:render
nonsense = shown:nonsense
"""


@pytest.fixture(autouse=True)
def plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Return a package with entry points on the path of this process."""
    (tmp_path / "shown.py").write_text(PLUG_IN)
    (tmp_path / "shown-1.dist-info").mkdir()
    (tmp_path / "shown-1.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "shown-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: shown\nVersion: 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    yield
    forget()
    sys.modules.pop("shown", None)


def forget() -> None:
    base._plug_ins.cache_clear()
    base._loaded_plug_in.cache_clear()


def test_own_formats_come_first_and_all_are_listed() -> None:
    assert format_names()[:4] == ["table", "json", "csv", "markdown"]
    assert format_names()[-6:] == ["bare", "broken", "full", "late", "nonsense", "paged"]


def test_bare_function_writes_an_analysis() -> None:
    assert load_renderer("bare")(primer(), Page()) == f"bare {primer().job.name}\n"
    assert load_renderer("paged")(primer(), Page(width=99)) == f"99 {primer().job.name}\n"
    assert not is_binary("bare")
    assert format_of("x.bare") == "bare"
    with pytest.raises(UsageError, match="not available for this command"):
        load_sheet_renderer("bare")


def test_format_declares_suffixes_and_bytes() -> None:
    assert [format_of(f"x.{ending}") for ending in ("heat", "HEAT.bin", "late", "full", "json")] == [
        "full", "full", "late", "full", "json",
    ]  # fmt: skip
    assert is_binary("full")
    assert not is_binary("late")


def test_plugin_writes_the_answer_of_every_command(tmp_path: Path) -> None:
    for command in ("disruptions", "steps", "jobs", "timeline", "check"):
        out = tmp_path / f"{command}.heat"
        assert run([command, str(SAMPLE), "-o", str(out), "--quiet"]) == (5 if command == "check" else 0)
        assert out.read_bytes().startswith(b"\x00")
    assert run(["analyze", str(SAMPLE), "-o", str(tmp_path / "x.bare"), "--quiet"]) == 0


def test_renderer_can_be_imported_late(tmp_path: Path) -> None:
    assert is_binary("late") is False
    with pytest.raises(UsageError, match="late_module"):
        load_sheet_renderer("late")
    (tmp_path / "late_module.py").write_text("def render(sheet, page):\n    return sheet.title\n")
    made = load_sheet_renderer("late")(Sheet(title="T", columns=(), rows=()), Page())
    assert made == "T"
    with pytest.raises(UsageError, match="is not available for analyze"):
        load_renderer("late")


@pytest.mark.parametrize(("name", "words"), [("broken", "no_such_module"), ("nonsense", "neither an OutputFormat")])
def test_broken_plugin_is_reported_and_others_work(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_renderer(name)
    assert format_of("x.heat") == "full"
    assert format_of("x.json") == "json"


def test_own_format_loads_no_plugin() -> None:
    format_of("x.json")
    load_renderer("json")
    assert "shown" not in sys.modules


def test_entry_points_are_read_once_per_process(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import importlib.metadata as metadata, sys\n"
        "asked = []\n"
        "ask = metadata.entry_points\n"
        "metadata.entry_points = lambda **given: (asked.append(given), ask(**given))[1]\n"
        "from goodput_cli.report.base import format_of, is_format, format_names\n"
        "format_of('a.json'), format_of('b.csv'), is_format('nope'), format_names()\n"
        "sys.exit(len(asked) != 1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""`import goodput_cli`: the functions of the commands, with the same options, and names documented earlier."""

from __future__ import annotations

import ast
import inspect
import io
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli import plugins
from goodput_cli.accounting.options import Method
from goodput_cli.analysis.question import Question, make_question
from goodput_cli.api.options import Reading
from goodput_cli.errors import UsageError
from goodput_cli.fleet.question import Grouping
from goodput_cli.report.base import Page
from goodput_cli.sources.base import RawBatch
from goodput_cli.vocabulary.option import declared
from goodput_cli.vocabulary.text import safe

ROOT = Path(__file__).parents[2]
PRIMER = ROOT / "sample_logs" / "primer-50-percent.jsonl"
OF_A_JOB = ("analyze", "compare", "jobs", "check", "reconcile", "watch")


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_every_name_exists_for_people_and_editors() -> None:
    source = ast.parse(Path(goodput_cli.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in source.body if isinstance(node, ast.If))
    for_editors = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert {*goodput_cli.__all__} == {*for_editors, "__version__"} == {*goodput_cli._PLACES, "__version__"}
    assert {*goodput_cli.__all__} <= {*dir(goodput_cli)}
    for name in goodput_cli.__all__:
        assert getattr(goodput_cli, name) is not None
    with pytest.raises(AttributeError, match="anything"):
        goodput_cli.anything  # noqa: B018 - what is not there says so


def test_heavy_modules_are_imported_on_demand() -> None:
    code = "import sys, goodput_cli; dir(goodput_cli); print(goodput_cli.GoodputError, 'numpy' in sys.modules)"
    assert python(code).split()[-1] == "False"


@pytest.mark.parametrize("name", [*OF_A_JOB, "fleet_report"])
def test_all_functions_take_the_same_options(name: str) -> None:
    function = getattr(goodput_cli, name)
    parameters = inspect.signature(function).parameters
    shared = {one.keyword for place in (Question, Reading) for one in declared(place)} - {"window", "every"}
    own = {one.keyword for one in declared(Grouping)} if name == "fleet_report" else {"job_name", "run"}
    assert shared - {"job_name", "run"} | own <= {*parameters}
    assert "options" not in parameters
    assert parameters["stall_factor"].default == 5.0
    assert "stall_factor" in pydoc.plain(pydoc.render_doc(function))


def test_report_names_every_choice_of_method() -> None:
    assert all(one.option.label for one in declared(Method)), "the method section of a report names it"


def test_arguments_are_checked_before_reading() -> None:
    with pytest.raises(TypeError, match="stal_factor"):
        goodput_cli.analyze("no-such-log", stal_factor=3)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="not a factor"):
        goodput_cli.jobs("no-such-log", stall_factor=-1.0)
    with pytest.raises(UsageError, match="overlapped or blocking"):
        goodput_cli.check("no-such-log", data_loading="sometimes")  # type: ignore[arg-type]
    assert make_question(start=None, run=None).method == Method()


def test_each_function_answers_from_sources() -> None:
    analysis = goodput_cli.analyze(PRIMER, reference_step_time=120, window="1h")
    assert isinstance(analysis, goodput_cli.Analysis)
    assert (analysis.goodput_percent, analysis.rolling is not None) == (50.0, True)
    comparison = goodput_cli.compare([PRIMER, PRIMER], reference_step_time=120, changes=["goodput:-1pp"])
    assert isinstance(comparison, goodput_cli.Comparison)
    assert [float(pair.points) for pair in comparison.pairs] == [0.0]
    done: list[tuple[int, int]] = []
    job_list = goodput_cli.jobs(PRIMER, reference_step_time=120, jobs_done=lambda *count: done.append(count))
    assert isinstance(job_list, goodput_cli.JobList)
    assert ([job.goodput_percent for job in job_list.jobs], done) == ([50.0], [(1, 1)])
    report = goodput_cli.check([PRIMER], job_name="goodput-primer")
    assert isinstance(report, goodput_cli.CheckReport)
    assert report.jobs == 1
    both = goodput_cli.reconcile(PRIMER, reference_step_time=120)
    assert isinstance(both, goodput_cli.CheckpointReconciliation)
    update = next(goodput_cli.watch(PRIMER, as_of="2025-01-01T02:00"))
    assert isinstance(update, goodput_cli.Update)


def test_fetch_takes_one_source_or_several(tmp_path: Path) -> None:
    manifest = goodput_cli.fetch(PRIMER, tmp_path / "one.jsonl")
    assert isinstance(manifest, goodput_cli.Manifest)
    assert manifest.lines == len(PRIMER.read_text(encoding="utf-8").splitlines())
    stdin = io.BytesIO(PRIMER.read_bytes())
    assert goodput_cli.fetch(["-"], tmp_path / "two.jsonl", stdin=stdin).lines == manifest.lines


def test_plugin_names_are_the_internal_ones() -> None:
    assert (plugins.RawBatch, plugins.Page, plugins.safe) == (RawBatch, Page, safe)
    assert all(hasattr(plugins, name) for name in plugins.__all__)


def test_badput_is_a_tuple_that_pandas_can_show() -> None:
    analysis = goodput_cli.analyze("sample_logs/primer-50-percent.jsonl", reference_step_time=120)
    frame = analysis.badput.to_frame()
    assert list(frame.category) == [row.category for row in analysis.badput]
    assert frame.percent.sum() == 50.0 == analysis.goodput_percent
    assert analysis.to_frame().category[0] == "productive"
    training = analysis.segments[analysis.segments.category == "productive"]  # README.md has these figures.
    assert (training.seconds.sum(), training.slowdown_ns.sum(), analysis.goodput.seconds) == (7500, 1500 * 10**9, 6000)

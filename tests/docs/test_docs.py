"""The documents are true: examples are run, links have targets, and everything is documented.

`UPDATE_DOCS=1 pytest tests/docs/test_docs.py` writes outputs and generated parts again; read the difference then.
"""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import pytest

import goodput_cli
from goodput_cli.analysis.advice.interval import VERDICTS
from goodput_cli.analysis.advice.results import SHOWN, Reason, Verdict
from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.analysis.measures import MEASURES
from goodput_cli.cli.console import INTERRUPTED
from goodput_cli.diagnostics.diagnostic import CODES
from goodput_cli.errors import GoodputError
from goodput_cli.events.formats import registry
from goodput_cli.events.formats.native import NativeFormat
from goodput_cli.events.formats.orbax import Orbax
from goodput_cli.events.formats.recorder import RecorderFormat
from goodput_cli.events.formats.resiliency import Resiliency
from goodput_cli.report.base import Page
from goodput_cli.sources.base import ReadContext
from goodput_cli.vocabulary.categories import CATEGORIES
from tests.support.documents import (
    DOCUMENTS,
    PROMPT,
    ROOT,
    Block,
    anchors,
    blocks,
    links,
    names_in_first_column,
    playground,
    prose,
    read,
    replace_generated,
    rewrite,
    run_console,
    section,
    shows,
    updating,
)
from tests.support.generated_docs import (
    PACKAGE,
    capability_lists,
    category_table,
    cause_table,
    cli_reference,
    code_sections,
    command_list,
    commands,
    folders,
    insight_sections,
    pass_tables,
    verdict_table,
    word_table,
)

DOCS = ROOT / "docs"
RUN_WHOLE = DOCS / "recipes.md"
"""Document whose blocks depend on each other, in any language: tests/docs/test_recipes.py."""
CONSOLE = [
    block
    for path in DOCUMENTS
    if path != RUN_WHOLE
    for block in blocks(path, "console", "bash")
    if PROMPT in block.text
]
WITH_PYTHON = [path for path in DOCUMENTS if path != RUN_WHOLE and blocks(path, "python")]
LONGEST_LINE = 120


def relative_path(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("block", CONSOLE, ids=str)
def test_example_prints_the_documented_output(block: Block, tmp_path: Path, programs: Path) -> None:
    actual = run_console(block, playground(tmp_path), programs)
    if shows(block.text, actual):
        return
    if updating() and "\n...\n" not in block.text:
        rewrite(block, actual)
        return
    assert actual == block.text, f"{block} shows something else: UPDATE_DOCS=1 pytest tests/docs/test_docs.py"


@pytest.mark.parametrize("path", WITH_PYTHON, ids=relative_path)
def test_python_in_documents_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a document run one after the other, as a reader would run them."""
    monkeypatch.chdir(playground(tmp_path))
    names: dict[str, Any] = {"__name__": "__docs__"}
    for block in blocks(path, "python"):
        if block.text.startswith(">>> "):
            run_session(block, names)
        else:
            exec(compile("\n" * (block.line - 1) + block.text, str(path), "exec"), names)


def test_plugins_of_the_architecture_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    for block in blocks(DOCS / "architecture.md", "python"):
        if not block.text.startswith(">>> "):
            exec(block.text, names)
    monkeypatch.setattr(registry, "all_formats", lambda _: (names["StepLog"](),))
    line = '{"job_name": "x", "trainer_step": %d, "started": %d}\n'
    log = tmp_path / "x.jsonl"
    log.write_text("".join(line % (step, 10 * step) for step in range(4)))
    analysis = goodput_cli.analyze(log)
    assert analysis.job.formats == ("trainer",)
    assert analysis.goodput.seconds == 30
    (batch,) = names["Echo"]().read("echo://{}", ReadContext(report=print))
    assert batch.data == b"{}\n"
    assert names["render"](analysis, Page()) == "x: 100.00 %\n"


def run_session(block: Block, names: dict[str, Any]) -> None:
    """Run a block with `>>>` prompts and compare its output too."""
    session = doctest.DocTestParser().get_doctest(block.text, names, str(block), str(block.path), block.line - 1)
    session.globs = names
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=said.append, clear_globs=False)
    assert not said, "".join(said)


def test_command_reference_is_up_to_date() -> None:
    replace_generated(DOCS / "cli.md", "commands", cli_reference())


def test_causes_agree_with_the_code() -> None:
    replace_generated(DOCS / "causes.md", "causes", cause_table())


def test_verdicts_of_advice_agree_with_the_code() -> None:
    replace_generated(DOCS / "advice.md", "verdicts", verdict_table())
    assert {rule.reason for rule in VERDICTS} == {*get_args(Reason), None}
    assert {rule.verdict for rule in VERDICTS} == set(get_args(Verdict)) == set(SHOWN)


def test_list_of_commands_is_up_to_date() -> None:
    replace_generated(DOCS / "cli.md", "command list", command_list())


def test_folders_of_the_architecture_are_the_import_contract() -> None:
    replace_generated(DOCS / "architecture.md", "folders", folders())


def test_capabilities_of_the_architecture_are_those_of_the_code() -> None:
    replace_generated(DOCS / "architecture.md", "capabilities", capability_lists())


def test_passes_over_text_are_those_of_the_code() -> None:
    replace_generated(DOCS / "text-engine.md", "passes", pass_tables())


def test_glossary_has_each_term_once_and_in_order() -> None:
    terms = re.findall(r"^- \*(.+?)\*:", section(DOCS / "glossary.md", "Words"), re.MULTILINE)
    assert terms == sorted(set(terms), key=str.casefold)
    assert len(terms) > 50


@pytest.mark.parametrize("path", [*DOCS.glob("*.md"), ROOT / "CONTRIBUTING.md"], ids=relative_path)
def test_every_named_module_exists(path: Path) -> None:
    modules = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", read(path)))
    ours = {name for name in modules if not name.startswith("maxtext/")}
    assert not {name for name in ours if not (ROOT / name).exists() and not (PACKAGE / name).exists()}


def test_every_option_of_every_command_is_described_once() -> None:
    shared = described_options("Shared options")
    own = {name: described_options(name) for name, _, _ in commands()}
    for name, command, _ in commands():
        options = {max(param.opts, key=len) for param in command.params if is_documented(param)}
        described = [option for group in own[name].values() for option in group]
        referenced = set(referenced_options(name, shared, own))
        assert {*described} | referenced == options, name
        assert len({*described}) == len(described), name


def is_documented(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and not param.hidden and "-h" not in param.opts


def described_options(heading: str) -> dict[str, list[str]]:
    """Return the options of each group in the block below a heading of docs/cli.md."""
    (text, *_) = [*re.findall(r"^```text\n(.*?)^```$", section(DOCS / "cli.md", heading), re.M | re.S), ""]
    groups: dict[str, list[str]] = {}
    for line in text.splitlines():
        if title := re.fullmatch(r"(\w[\w ]*):", line):
            groups[title[1]] = []
        elif option := re.match(r"  (?:-\w, )?(--[\w-]+)", line):
            groups[list(groups)[-1]].append(option[1])
    return groups


def referenced_options(
    heading: str, shared: dict[str, list[str]], own: dict[str, dict[str, list[str]]]
) -> Iterator[str]:
    """Return the options that the last line of a section of docs/cli.md refers to."""
    match = re.search(r"^Shared: (.*)\.$", section(DOCS / "cli.md", heading), re.M | re.S)
    line = " ".join(match[1].split()) if match else ""
    line, *others = re.split(r"; also ", line)
    if line.startswith("all"):
        missing = {option for part in line.split(", ") for option in named_options(part, shared)}
        yield from {option for options in shared.values() for option in options} - missing
    else:
        yield from (option for part in line.split("; ") for option in named_options(part, shared))
    for part in others:
        options, _, command = part.rpartition(" of ")
        described = {option for group in own[command.strip("`")].values() for option in group}
        yield from described & set(re.findall(r"--[\w-]+", options))


def named_options(part: str, shared: dict[str, list[str]]) -> set[str]:
    """Return the shared options of a group, in asterisks, without the options after it; otherwise the options."""
    names = set(re.findall(r"--[\w-]+", part))
    group = re.search(r"\*(.+?)\*", part)
    return set(shared[group[1]]) - names if group else names


def test_every_key_of_every_format_is_described() -> None:
    text = read(DOCS / "formats.md")
    for log_format in (RecorderFormat(), Orbax(), Resiliency(), NativeFormat()):
        for key in log_format.keys:
            part = re.sub("_(start_time|duration_secs)$", "_*", key)
            assert f"`{key}`" in text or f"`{part}`" in text, f"{log_format.name}: {key}"


def test_every_name_of_a_threshold_is_described() -> None:
    named_there = names_in_first_column(section(DOCS / "cli.md", "Thresholds"))
    others = {"evaluation", "custom:LABEL", "insight:CODE", "phase:PHASE"}
    assert sorted({*named_there, *CATEGORIES} - others) == sorted(MEASURES)


def test_every_exit_code_is_described() -> None:
    codes = {kind.exit_code for kind in GoodputError.__subclasses__()} | {0, INTERRUPTED}
    assert [int(code) for code in re.findall(r"^- (\d+): ", read(DOCS / "cli.md"), re.MULTILINE)] == sorted(codes)


def test_every_command_has_an_example() -> None:
    for name, command, _ in commands():
        assert re.search(rf"^ +{name}\b", command.epilog or "", re.MULTILINE), name


def test_list_of_diagnostics_is_up_to_date() -> None:
    replace_generated(DOCS / "diagnostics.md", "codes", code_sections())


def test_list_of_insights_is_up_to_date() -> None:
    replace_generated(DOCS / "insights.md", "kinds", insight_sections())


def test_diagnostics_of_the_code_are_those_of_the_table() -> None:
    """A misspelled code in the code or in the table would never be reported, or would have no description."""
    modules = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    assert [code for code in CODES if f'"{code}"' not in modules] == []
    noticed = set(re.findall(r'(?:Diagnostic\.of|\breport|diagnostics\.add)\(\s*"(\w+)"', modules))
    assert len(noticed) > 40
    assert noticed - set(CODES) == set()


def test_each_insight_has_a_finder_and_each_finder_an_insight() -> None:
    paths = {*(PACKAGE / "analysis" / "insights").glob("*.py"), *(PACKAGE / "analysis").glob("*/insights.py")}
    finders = "".join(path.read_text(encoding="utf-8") for path in paths)
    assert [code for code in BY_CODE if f'"{code}"' not in finders] == []
    found = set(re.findall(r'Candidate\(\s*(?:code=)?"(\w+)"', finders))
    assert len(found) > 10
    assert found - set(BY_CODE) == set()


def test_glossary_of_words_is_up_to_date() -> None:
    replace_generated(DOCS / "glossary.md", "words", word_table())


def test_glossary_of_categories_is_up_to_date() -> None:
    replace_generated(DOCS / "glossary.md", "categories", category_table())


def test_categories_of_the_rules_agree_with_the_code() -> None:
    rules = section(DOCS / "accounting.md", "2. Categories")
    assert sorted(names_in_first_column(rules)) == sorted(CATEGORIES)


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative_path)
def test_links_have_targets(path: Path) -> None:
    for target in links(path):
        file, _, fragment = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), f"{path.name} links to {target}"
        assert ROOT in found.parents, f"{path.name} links to {target}, which is not of this project"
        if fragment:
            assert fragment in anchors(found), f"{path.name} links to {target}: no such heading"


@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=relative_path)
def test_documented_make_targets_exist(path: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE)
    for block in blocks(path, "sh"):
        for target in re.findall(r"^make ([\w-]+)", block.text, re.MULTILINE):
            assert target in targets, f"{block}: make {target}"


def test_every_document_is_linked_from_the_readme() -> None:
    linked = {target.partition("#")[0] for target in links(ROOT / "README.md")}
    for path in [*(path for path in DOCS.iterdir() if path.is_file()), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        assert relative_path(path) in linked, f"README.md does not link to {relative_path(path)}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative_path)
def test_pictures_exist_and_have_a_description(path: Path) -> None:
    for words, target in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", read(path)):
        assert len(words) > 20
        assert 1000 < (path.parent / target).stat().st_size < 300_000


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative_path)
def test_files_named_in_documents_exist(path: Path) -> None:
    folders = "goodput_cli|tests|docs|sample_logs|loggen|benchmarks"
    for name in re.findall(rf"`((?:{folders})/[\w./-]*)`", prose(path)):
        assert (ROOT / name).exists(), f"{path.name} names {name}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative_path)
def test_documents_are_readable_as_plain_text(path: Path) -> None:
    """Tables and generated parts may be wide; prose may not."""
    for number, line in enumerate(read(path).splitlines(), 1):
        assert len(line) <= LONGEST_LINE or line.startswith(("|", "Environment: ", "read by: ")), (
            f"{path.name}:{number}"
        )
        assert "\t" not in line, f"{path.name}:{number}"

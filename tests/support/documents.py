"""The project's documents for tests: fenced blocks, headings and links, the shell that runs the examples, and the
queries of docs/dashboards and docs/monitoring.md.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
PROMPT = "$ "
ELISION = "..."
"""A line of an example's output that matches any number of lines."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_MARK = "goodput-docs-end-of-output"


@dataclass(frozen=True)
class Block:
    """A fenced block. line: number of its first line, from 1. text: without the fences, each line with its end."""

    path: Path
    language: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}"


def updating() -> bool:
    """Return True if documents are rewritten instead of compared."""
    return bool(os.environ.get("UPDATE_DOCS"))


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(path: Path, *languages: str) -> list[Block]:
    """The fenced blocks of a document in the given languages, in order."""
    text = read(path)
    return [
        Block(path, match[1], text[: match.start(2)].count("\n") + 1, match[2])
        for match in _FENCE.finditer(text)
        if match[1] in languages
    ]


def prose(path: Path) -> str:
    """A document without its fenced blocks."""
    return _FENCE.sub("", read(path))


def anchors(path: Path) -> set[str]:
    """The fragments that GitHub gives to the headings of a document."""
    seen: dict[str, int] = {}
    found = set()
    for heading in _HEADING.findall(prose(path)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def links(path: Path) -> list[str]:
    """The targets of all links, web addresses left out."""
    return [target for target in _LINK.findall(prose(path)) if not re.match(r"[a-z]+:", target)]


def section(path: Path, heading: str) -> str:
    """Return the text below a heading, up to the next one of any level."""
    match = re.search(rf"^#+ {re.escape(heading)} *\n(.*?)(?=^#|\Z)", read(path), re.DOTALL | re.MULTILINE)
    assert match is not None, f"{path.name} has no heading {heading!r}"
    return match[1]


def names_in_first_column(table: str) -> list[str]:
    """Return each `name` in the first column of tables, otherwise before the colons of list items, in order."""
    cells = re.findall(r"^\|([^|]*)\|", table, re.MULTILINE) or re.findall(r"^- (.*?):\s", table, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def replace_generated(path: Path, name: str, text: str) -> None:
    """Compare the part between the markers `<!-- NAME: generated -->` and `<!-- NAME: end -->`, or write it."""
    before, head, rest = read(path).partition(f"<!-- {name}: generated -->\n")
    old, tail, after = rest.partition(f"<!-- {name}: end -->")
    assert head, f"{path.name} has lost its marker for {name}"
    assert tail, f"{path.name} has lost its marker for the end of {name}"
    if updating():
        path.write_text(before + head + text + tail + after, encoding="utf-8", newline="\n")
        return
    assert old == text, f"{path.name} is out of date: UPDATE_DOCS=1 pytest tests/docs/test_docs.py writes it anew"


def playground(folder: Path) -> Path:
    """A folder that looks like the root of the repository, for examples that write files."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith("."):
            (folder / entry.name).symlink_to(entry)
    return folder


def run_console(block: Block, folder: Path, programs: Path) -> str:
    """The block as a terminal of 80 columns would show it: each command after its prompt, then what it printed.

    programs: the directory of `goodput`.
    """
    commands = _commands(block)
    script = "".join(f"{command}\n__code=$?; echo {_MARK}; (exit $__code)\n" for command in commands)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=_environment(programs),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
        check=False,
    )
    outputs = done.stdout.decode().split(f"{_MARK}\n")
    assert len(outputs) == len(commands) + 1, f"{block}: the examples broke off:\n{done.stdout.decode()}"
    return "".join(
        PROMPT + command.replace("\n", "\n> ") + "\n" + output
        for command, output in zip(commands, outputs, strict=False)
    )


def shows(expected: str, actual: str) -> bool:
    """Return True if an example matches the output; a line `...` matches any number of lines."""
    parts = re.split(rf"^{re.escape(ELISION)}\n", expected, flags=re.MULTILINE)
    return re.fullmatch("(?:.*\n)*?".join(re.escape(part) for part in parts), actual) is not None


def rewrite(block: Block, text: str) -> None:
    """Replace a block's text with `text`."""
    old, new = (f"```{block.language}\n{body}```" for body in (block.text, text))
    document = read(block.path)
    assert document.count(old) == 1, f"{block}: two examples are the same, or the document has changed meanwhile"
    block.path.write_text(document.replace(old, new), encoding="utf-8", newline="\n")


def run_session(block: Block, names: dict[str, Any]) -> str:
    """Run a block with `>>>` prompts, and return what a person would see: the prompts, and what each printed."""
    shown = []
    for example in doctest.DocTestParser().get_examples(block.text, str(block)):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example.source, str(block), "single"), names)
        first, *more = example.source.splitlines()
        shown.append("".join([f">>> {first}\n", *(f"... {line}\n" for line in more), printed.getvalue()]))
    return "".join(shown)


def _commands(block: Block) -> list[str]:
    """The commands after prompts; `> ` goes on with one."""
    commands: list[str] = []
    continues = False
    for line in block.text.splitlines():
        if line.startswith(PROMPT):
            commands.append(line.removeprefix(PROMPT))
        elif continues and line.startswith("> "):
            commands[-1] += "\n" + line.removeprefix("> ")
        continues = bool(commands) and line.endswith("\\")
    return commands


def _environment(programs: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), kept.get("PATH", "")])
    return {**kept, "PATH": path, "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}


# --- Queries of dashboards.

DASHBOARDS = ROOT / "docs" / "dashboards"
MONITORING = ROOT / "docs" / "monitoring.md"


def dashboard_queries() -> list[str]:
    """Return the queries of the panels of the Grafana dashboard, for all jobs."""
    dashboard = json.loads((DASHBOARDS / "grafana.json").read_text(encoding="utf-8"))
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    return [target["expr"].replace("$job", ".+") for target in targets]


def alert_rules() -> list[dict[str, Any]]:
    """The alert rules."""
    (group,) = yaml.safe_load((DASHBOARDS / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def documented_queries() -> list[str]:
    """Return the queries of the blocks ```promql in the document."""
    blocks = re.findall(r"^```promql\n(.*?)^```", MONITORING.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line and not line.startswith("#")]


def metrics_of(query: str) -> set[str]:
    """The metrics of ours that a query names."""
    return set(re.findall(r"\bgoodput_\w+", re.sub(r'"[^"]*"', "", query)))


def labels_of(query: str) -> set[str]:
    """The labels that its selectors and matchings name."""
    inside = re.findall(r"\{([^}]*)\}", query)
    named = {name for part in inside for name in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', part)}
    grouped = re.findall(r"\b(?:by|on|ignoring|without|group_left)\s*\(([^)]*)\)", query)
    return named | {name.strip() for part in grouped for name in part.split(",") if name.strip()}

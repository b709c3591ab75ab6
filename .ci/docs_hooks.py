"""The documents as a site: files beside docs/ become pages, and links that GitHub follows lead to those pages.

What is linked and is no part of the site (a module, a log) stays as its text: the site is complete in itself.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
BESIDE = {
    "README.md": "index.md",
    "docs/README.md": "begin.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "sample_logs/README.md": "sample-logs.md",
}
"""Files of the repository by the pages that they become; of docs/ every other file keeps its name."""
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds what stands beside docs/, and a page for the schema."""
    for own in [file for file in files if file.src_uri == "README.md"]:
        files.remove(own)
    for path, page in BESIDE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text(encoding="utf-8")))
    files.append(File.generated(config, "schema.md", content=_schema_page()))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Links lead to pages of the site; fenced blocks stay as they are."""
    origin = next((path for path, name in BESIDE.items() if name == page.file.src_uri), f"docs/{page.file.src_uri}")
    known = {file.src_uri for file in files}
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _relinked(part, origin, known) for part in parts)


def _relinked(text: str, origin: str, known: set[str]) -> str:
    def link(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        path, _, fragment = target.partition("#")
        if not path or "://" in target or target.startswith("mailto:"):
            return match[0]
        place = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        page = "schema.md" if place == "docs/schema.json" else BESIDE.get(place, place.removeprefix("docs/"))
        if page not in known:
            return "" if picture else words
        return f"{picture}[{words}]({page}{'#' + fragment if fragment else ''})"

    return _LINK.sub(link, text)


def _schema_page() -> str:
    """Every definition of schema.json as a table of its fields."""
    schema = json.loads((ROOT / "docs" / "schema.json").read_text(encoding="utf-8"))
    lines = ["# JSON schema", "", "What `--format json` writes, from [schema.json](schema.json) (JSON Schema).", ""]
    for name, part in sorted(schema.get("$defs", {}).items()):
        fields = part.get("properties")
        if not fields:
            continue
        lines += [f"## {name}", "", part.get("description", ""), "", "| field | type | |", "| --- | --- | --- |"]
        lines += [
            f"| `{key}` | {_type(field)} | {_words(field)} |"
            for key, field in fields.items()
            if isinstance(field, dict)
        ]
        lines.append("")
    return "\n".join(lines)


def _type(field: dict[str, Any] | bool) -> str:
    if isinstance(field, bool):
        return "any"
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"`{name}`"
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"])
    named = field.get("type", "any")
    kinds = [named] if isinstance(named, str) else named
    if "array" in kinds and "items" in field:
        return f"list of {_type(field['items'])}"
    return " or ".join(f"`{kind}`" for kind in kinds)


def _words(field: dict[str, Any]) -> str:
    return " ".join(str(field.get("description", "")).split()).replace("|", "\\|")

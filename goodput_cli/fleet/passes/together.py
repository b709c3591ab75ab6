"""Files of text of one folder: they name no job and share what they say, so that they are read as one document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from goodput_cli.events.text.jobs import beside
from goodput_cli.fleet.passes.work import DocumentRow, Origin
from goodput_cli.sources.base import Document


def together(documents: Sequence[Document], rows: Mapping[str, DocumentRow]) -> list[Document]:
    """The documents in their order, those of text of one folder as one. rows: by URI, what each holds. What nobody can
    read twice stays alone."""
    folders: defaultdict[str, list[Document]] = defaultdict(list)
    for one in documents:
        if one.version and rows[one.uri].has_text:
            folders[beside(one.name)].append(one)
    groups = {found[0].uri: _one_of(found, folder) for folder, found in folders.items() if len(found) > 1}
    inside = {part.uri for group in groups.values() for part in group.parts}
    return [groups.get(one.uri, one) for one in documents if one.uri in groups or one.uri not in inside]


def origin_of(job: str, holders: Sequence[DocumentRow]) -> Origin:
    """What the events of a job are from. holders: of the documents that hold some of it."""
    return tuple(one for row in holders for part in row.jobs if part.job == job for one in row.origin(part))


def _one_of(parts: Sequence[Document], folder: str) -> Document:
    version = blake2b(repr([(one.uri, one.version) for one in parts]).encode("utf-8", "backslashreplace"))
    written = [one.written_ns for one in parts if one.written_ns is not None]
    return Document(
        f"{parts[0].uri}\0{len(parts)}",
        f"{folder or '.'}/ ({len(parts)} files of text)",
        sum(one.size or 0 for one in parts),
        version.hexdigest(),
        max(written, default=None),
        apart=all(one.apart for one in parts),
        parts=tuple(parts),
    )

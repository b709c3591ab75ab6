"""Which objects a name stands for: an object, a folder, a prefix or a glob, by the rules for files where they exist."""

from __future__ import annotations

import re
from collections.abc import Iterable

from goodput_cli.errors import SourceError
from goodput_cli.sources.endings import LOG_ENDINGS, is_log_name
from goodput_cli.sources.object_store.base import StoredObject

_MAGIC = re.compile(r"[*?\[]")


def has_magic(path: str) -> bool:
    """Whether a path holds what makes it a glob."""
    return _MAGIC.search(path) is not None


def fixed_part(path: str) -> str:
    """What every object that the path stands for begins with: all of it, or up to the first sign of a glob."""
    match = _MAGIC.search(path)
    return path[: match.start()] if match else path


def choose(uri: str, path: str, listed: Iterable[StoredObject]) -> list[StoredObject]:
    """The objects that `path` stands for among those that begin with its fixed part, sorted by name.

    An object of exactly this name wins; then a glob (`**` crosses folders, all else does not; a glob that matches
    folders only stands for the logs in them), a folder, and names that begin like this. Of folders and prefixes only
    logs are taken, by their endings. Raises SourceError if nothing is left.
    """
    objects = sorted(listed, key=lambda one: one.name)
    exact = [one for one in objects if one.name == path and not path.endswith("/")]
    if exact:
        return exact
    return _matches(uri, path, objects) if has_magic(path) else _beneath(uri, path, objects)


def _matches(uri: str, path: str, objects: list[StoredObject]) -> list[StoredObject]:
    pattern = _glob_pattern(path.rstrip("/"))
    whole, inside = re.compile(pattern), re.compile(pattern + "/.*")
    if not path.endswith("/"):
        chosen = [one for one in objects if whole.fullmatch(one.name) and not one.name.endswith("/")]
        if chosen:
            return chosen
    chosen = [one for one in objects if is_log(one.name) and inside.fullmatch(one.name)]
    if not chosen:
        raise SourceError(f"{uri}: the glob matches no object; check the spelling (* stays in a folder, ** does not)")
    return chosen


def _beneath(uri: str, path: str, objects: list[StoredObject]) -> list[StoredObject]:
    folder = path.rstrip("/") + "/"
    inside = [one for one in objects if one.name.startswith(folder)] if path else objects
    chosen = [one for one in inside or objects if is_log(one.name)]
    if chosen:
        return chosen
    if not objects:
        raise SourceError(f"{uri}: no object begins with this name; check the bucket and the spelling")
    endings = " ".join(f"*{ending}" for ending in LOG_ENDINGS)
    raise SourceError(f"{uri}: no log among these objects ({endings}, also .gz and .zst); name the objects")


def is_log(name: str) -> bool:
    """Whether a name ends like a log."""
    return is_log_name(name)


def _glob_pattern(path: str) -> str:
    pattern = ""
    at = 0
    while at < len(path):
        piece, at = _next_piece(path, at)
        pattern += piece
    return f"(?s:{pattern})"


def _next_piece(path: str, at: int) -> tuple[str, int]:
    """The expression for the next sign of a glob, and where the one after it begins."""
    begins_part = at == 0 or path[at - 1] == "/"
    if begins_part and path.startswith("**/", at):
        return "(?:[^/]+/)*", at + 3
    if begins_part and path[at:] == "**":
        return ".*", at + 2
    if path[at] == "*":
        end = at + 1
        while path.startswith("*", end):
            end += 1
        return "[^/]*", end
    if path[at] == "?":
        return "[^/]", at + 1
    if path[at] == "[":
        return _character_set(path, at)
    return re.escape(path[at]), at + 1


def _character_set(path: str, at: int) -> tuple[str, int]:
    negated = path.startswith("!", at + 1)
    first = at + 1 + negated
    end = path.find("]", first + 1)  # a bracket that comes first stands for itself
    if end < 0:
        return re.escape("["), at + 1
    content = re.sub(r"([\\\]\[&~|^])", r"\\\1", path[first:end])
    return f"(?!/)[{'^' if negated else ''}{content}]", end + 1

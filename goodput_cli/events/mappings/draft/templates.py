"""Make templates of lines: text that differs between lines, or may differ, is skipped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from goodput_cli.events.mappings.draft.entries import Entry, Group
from goodput_cli.vocabulary.secrets import HIDDEN, without_secrets

SKIPPED = "{_}"
_FIELD = re.compile(r"(\{\w+(?::\w+)?\})")
_PLAIN = re.compile(r"[(\[]?[A-Za-z]+(?:'[a-z]+)?[)\].,:;!]*[(\[]?|[-|,:;=>()/\[\]*#&+]{1,12}|\"[A-Za-z_][\w./-]*\":")
_PAIR = re.compile(r"[\w./ -]{1,40}[=:]")
_WORD_BEFORE = re.compile(r"(?<!\S)[A-Za-z_]\S*\s$")
_MOST_WORDS, _LEAST = 6, 4


def template(group: Group, names: Mapping[int, str], more: int = 0) -> str:
    """Return a template for the lines of a group. names: of its tokens, such as `step:int`, or `=` with a constant
    value. more: number of words after the last of them in the template."""
    example, tokens = group.first, group.tokens
    if not names:
        return _safe(_phrase(example, tokens))
    last = max(names)
    parts: list[str] = []
    after = -1
    for begin, end in _words(example.text, example.begin):
        if after >= more:
            break
        inside = [(at, one) for at, one in enumerate(tokens) if one.start() < end and begin < one.end()]
        parts.append(_word(example.text, begin, end, inside, names, last if not more else len(tokens)))
        after += after >= 0
        if any(at == last for at, _ in inside):
            after = 0
            if not more:
                parts += _unit_after(example.text, end)
    return _safe(_joined(parts))


def _safe(said: str) -> str:
    """Return a template with possible secrets skipped, but with unchanged fields."""
    parts = _FIELD.split(said)
    parts[::2] = [
        part if (hidden := without_secrets(part)) == part else hidden.replace(HIDDEN, SKIPPED) for part in parts[::2]
    ]
    return _joined(["".join(parts)])


def _phrase(one: Entry, tokens: Sequence[re.Match[str]]) -> str:
    """Return the first words of a message up to one that may differ between lines; later words if these are too few."""
    text = one.text
    runs: list[list[str]] = [[]]
    whole = True
    for begin, end in _words(text, one.begin):
        differs = any(token.start() < end and begin < token.end() for token in tokens)
        if differs or len(runs[-1]) == _MOST_WORDS or not _PLAIN.fullmatch(text[begin:end]):
            whole = False
            runs.append([])
        else:
            runs[-1].append(text[begin:end])
    said = " ".join(runs[0])
    said = said if whole and len(runs) == 1 else said.rstrip(" .,:;=-|([")
    if not (whole and len(runs) == 1) and not _is_distinctive(said):
        for run in runs[1:]:
            later = " ".join(run)
            if len(re.findall("[A-Za-z]", later)) >= 3 * _LEAST and len(re.findall("[A-Za-z]{2,}", later)) > 1:
                lead = re.search(r"[A-Za-z]", later)
                return literal(later[lead.start() if lead else 0 :].rstrip(" .,:;=-|(["))
    letters = len(re.findall("[A-Za-z]", said))
    if letters < _LEAST or (len(said.split()) == 1 and letters < 2 * _LEAST):  # One short word is in many lines.
        ahead = _WORD_BEFORE.search(text, 0, one.begin)
        before = ahead[0] if ahead else text[max(0, one.begin - 3) : one.begin].lstrip()
        said = f"{before}{said}" if said and before else said
    return literal(said.strip())


def _is_distinctive(said: str) -> bool:
    """Return True if few other lines contain these words."""
    letters = len(re.findall("[A-Za-z]", said))
    return letters >= 2 * _LEAST or (letters >= _LEAST and len(said.split()) > 1)


def _words(text: str, begin: int) -> list[tuple[int, int]]:
    return [found.span() for found in re.compile(r"\S+").finditer(text, begin)]


def _word(
    text: str, begin: int, end: int, inside: Sequence[tuple[int, re.Match[str]]], names: Mapping[int, str], last: int
) -> str:  # fmt: skip
    """Return the pattern of one word of a line with its tokens."""
    if not any(at in names for at, _ in inside):
        pair = _PAIR.match(text, begin, end)
        if len(inside) == 1 and pair is not None and pair.end() == inside[0][1].start():
            return literal(pair[0]) + SKIPPED + literal(text[min(end, inside[0][1].end()) : end].strip("0123456789"))
        return literal(text[begin:end]) if not inside and _PLAIN.fullmatch(text[begin:end]) else SKIPPED
    parts: list[str] = []
    place = begin
    for at, token in inside:
        parts.append(_near(text[place : max(place, token.start())]))
        name = names.get(at, "")
        parts.append(name[1:] if name.startswith("=") else "{" + name + "}" if name else SKIPPED)
        place = max(place, token.end())
        if at == last:
            break
    if not any(at == last for at, _ in inside):
        return "".join(parts) + literal(text[place:end])
    rest = re.match(r"[A-Za-z/%]{1,12}|\)|\]|<", text[place:end])
    return "".join(parts) + (literal(rest[0]) if rest is not None else "")


def _near(text: str) -> str:
    """Return the text right before a token in its word; of a path, the last part."""
    cut = max(text.rfind("/", 0, -1), text.rfind("\\"))
    return SKIPPED + literal(text[cut + 1 :]) if cut > 0 else literal(text)


def _unit_after(text: str, end: int) -> list[str]:
    """Return the word after the last token if it is its unit."""
    found = re.match(r"\s(\(?(?:ms|us|s|sec|secs|seconds?|min|minutes?|it)\b(?:/\w+)?)", text[end:])
    of = re.match(r"\s(/|of)\s\d", text[end:])
    return [literal(one[1]) for one in (found, of) if one is not None]


def literal(text: str) -> str:
    """Return literal text of a template; characters with a special meaning are skipped."""
    plain = re.sub(r"[{}]+|\[\?|\?\]", SKIPPED, text)
    return re.sub(r"[█▏▎▍▌▋▊▉━╸╺]+|[=.#>-]{4,}", SKIPPED, plain)


def _joined(parts: Sequence[str]) -> str:
    whole = " ".join(part for part in parts if part)
    whole = re.sub(r"(?:\{_\}\s*){2,}", "{_} ", whole)
    whole = re.sub(r"\{_\} (?=[|,;)\]])", SKIPPED, whole)  # A full progress bar has no blank there.
    whole = re.sub(r"([\[(]) (?=\{(?!_)\w+:)", rf"\1{SKIPPED}", whole)  # These blanks pad a number.
    whole = re.sub(r"([\[(]) (?=\{_\})", r"\1", whole)
    return re.sub(r"^(?:\{_\}\s*)+", "", whole).strip()

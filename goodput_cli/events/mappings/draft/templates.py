"""Templates of lines that are drafted: what differs from line to line is skipped, and so is what might."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from goodput_cli.events.mappings.draft.shapes import Shape, Token

_SKIPPED = "{_}"
_PLAIN = re.compile(r"[(\[]?[A-Za-z]+(?:'[a-z]+)?[)\].,:;!]*|[-|,:;=>()/\[\]*#&+]{1,12}")
_PAIR = re.compile(r"[\w./ -]{1,40}[=:]")
_WORD_BEFORE = re.compile(r"(?<!\S)[A-Za-z_]\S*\s$")
_MOST_WORDS = 6
_LEAST = 4


def template(shape: Shape, names: Mapping[int, str]) -> str:
    """A template of the lines of a shape; names: what its tokens are called, such as `step:int`."""
    if not names:
        return phrase(shape)
    text, tokens = shape.example.text, shape.tokens
    last = max(names)
    parts: list[str] = []
    for begin, end in _words(text, shape.example.begin):
        inside = [(at, one) for at, one in enumerate(tokens) if one.begin < end and begin < one.end]
        parts.append(_word(text, begin, end, inside, names, last))
        if any(at == last for at, _ in inside):
            parts += _unit_behind(text, end)
            break
    return _joined(parts)


def phrase(shape: Shape) -> str:
    """The words with which a message begins, up to the first that may differ from line to line."""
    text, tokens = shape.example.text, shape.tokens
    found: list[str] = []
    whole = True
    for begin, end in _words(text, shape.example.begin):
        word = text[begin:end]
        if len(found) == _MOST_WORDS or any(one.begin < end and begin < one.end for one in tokens):
            whole = False
            break
        if not _PLAIN.fullmatch(word):
            whole = False
            break
        found.append(word)
    said = " ".join(found)
    said = said if whole else said.rstrip(" .,:;=-|([")
    while found and not re.search("[A-Za-z]", found[0]):
        said = said.removeprefix(found.pop(0)).lstrip()
    letters = len(re.findall("[A-Za-z]", said))
    if letters < _LEAST or (len(said.split()) == 1 and letters < 2 * _LEAST):  # one short word is in many lines
        ahead = _WORD_BEFORE.search(text, 0, shape.example.begin)
        before = ahead[0] if ahead else text[max(0, shape.example.begin - 3) : shape.example.begin].lstrip()
        said = f"{before}{said}" if said and before else said
    return _literal(said.strip())


def _words(text: str, begin: int) -> list[tuple[int, int]]:
    return [found.span() for found in re.compile(r"\S+").finditer(text, begin)]


def _word(
    text: str, begin: int, end: int, inside: Sequence[tuple[int, Token]], names: Mapping[int, str], last: int
) -> str:
    """One word of a line, with the tokens inside of it."""
    if not any(at in names for at, _ in inside):
        pair = _PAIR.match(text, begin, end)
        if len(inside) == 1 and pair is not None and pair.end() == inside[0][1].begin:
            return _literal(pair[0]) + _SKIPPED + _literal(text[min(end, inside[0][1].end) : end].strip("0123456789"))
        return _literal(text[begin:end]) if not inside and _PLAIN.fullmatch(text[begin:end]) else _SKIPPED
    parts: list[str] = []
    place = begin
    for at, token in inside:
        parts.append(_near(text[place : max(place, token.begin)]))
        parts.append("{" + names[at] + "}" if at in names else _SKIPPED)
        place = max(place, token.end)
        if at == last:
            break
    if not any(at == last for at, _ in inside):
        return "".join(parts) + _literal(text[place:end])
    rest = re.match(r"[A-Za-z/%]{1,12}|\)|\]|<", text[place:end])
    return "".join(parts) + (_literal(rest[0]) if rest is not None else "")


def _near(text: str) -> str:
    """What stands directly before a token in its word: of a path its last part, of a bar nothing."""
    bar = re.search(r"[█▏▎▍▌▋▊▉━╸╺=.>#-]{4,}", text)
    cut = max(text.rfind("/", 0, -1), text.rfind("\\"), bar.end() - 1 if bar else -1)
    return (_SKIPPED if cut > 0 else "") + _literal(text[cut + 1 :] if cut > 0 else text)


def _unit_behind(text: str, end: int) -> list[str]:
    """The word behind the last token, if it is the unit of it."""
    found = re.match(r"\s(\(?(?:ms|us|s|sec|secs|seconds?|min|minutes?|it)\b(?:/\w+)?)", text[end:])
    return [_literal(found[1])] if found is not None else []


def _literal(text: str) -> str:
    """Literal text of a template: what means something there is skipped."""
    plain = re.sub(r"[{}]+|\[\?|\?\]", _SKIPPED, text)
    return re.sub(r"[█▏▎▍▌▋▊▉━╸╺]+|[=.#>-]{4,}", _SKIPPED, plain)


def _joined(parts: Sequence[str]) -> str:
    whole = " ".join(part for part in parts if part)
    whole = re.sub(r"(?:\{_\}\s*){2,}", "{_} ", whole)
    whole = re.sub(r"\{_\} (?=[|,;)\]])", _SKIPPED, whole)  # a full progress bar has no blank there
    whole = re.sub(r"([\[(]) (?=\{(?!_)\w+:)", rf"\1{_SKIPPED}", whole)  # blanks that fill a number up
    whole = re.sub(r"([\[(]) (?=\{_\})", r"\1", whole)
    return re.sub(r"^(?:\{_\}\s*)+", "", whole).strip()

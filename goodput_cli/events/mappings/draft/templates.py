"""Find the values in which similar texts differ, and make templates of lines: text that differs between lines, or may
differ, is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from goodput_cli.events.mappings.draft.entries import Entry, Group, Texts, ValueColumn
from goodput_cli.events.mappings.draft.words import EPOCH, STEP, unit_of
from goodput_cli.events.text.line_timestamps import DATED
from goodput_cli.vocabulary.secrets import HIDDEN, without_secrets

TOKEN = re.compile(
    rf"(?P<stamp>{re.sub(r'[?]P<[a-z]+>', '?:', DATED.pattern)})"
    r"|(?P<quoted>(?<!\w)\"(?![-+.\d]+\")[^\"]{0,200}\"(?!:)|'[^']{0,200}')"
    r"|(?P<hex>0x[0-9a-fA-F]+|(?<![\w])(?=[0-9a-f]{7})(?=[0-9a-f-]{0,64}\d)(?=[0-9a-f-]{0,64}[a-f])"
    r"[0-9a-f]{7,}(?:-[0-9a-f]{4,})*(?!\w))"
    r"|(?P<clock>(?<![\w:])(?:(?:\d+:)?\d{1,2}:\d\d(?:\.\d+)?"
    r"|\d{1,4}d \d{1,2}h(?: \d{1,2}m(?: \d{1,2}s)?)?|\d{1,4}h \d{1,2}m(?: \d{1,2}s)?|\d{1,4}m \d{1,2}s)(?![\w:]))"
    r"|(?P<number>(?:(?<![\w.)\]])[+-](?=\d)|(?<![A-Za-z.])|(?<=step)|(?<=iter)|(?<=epoch)|(?<=ckpt))"
    r"(?:\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\d.]*\.\d)|nan\b|inf\b))",
    re.ASCII,
)
"""Pattern of values that differ between lines."""
OF_DIGITS = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T ]|\dx", re.ASCII)
"""Texts that are a token only with some digits: possible dates and hexadecimal numbers."""
_COUNTED = re.compile(r"\s?(epoch|batch|iter|step|it)s?\b(?!/s)")
"""A word right after a number that defines it, as in `3epoch`, if no word before it does."""
_OF = re.compile(r"(?:it|iter|step|batch)?s? ?(?:/|of) {0,9}")
_FILLING = re.compile(r"[\s.=#█▏▎▍▌▋▊▉━╸╺>-]+")
"""Characters that fill a line or progress bar."""
_JOINED_BEHIND = re.compile(r"[A-Za-z]{1,2}\b|_|-(?=\w)|\.\w|/\w")
_NAMED = re.compile(r"(?:step|iter|iteration|epoch|ckpt|checkpoint)[-_=]?0*$", re.IGNORECASE)


def shape(text: str, begin: int) -> tuple[str, list[tuple[int, int]]]:
    """Return the common part of all texts that differ only in their values, and the positions of these. begin: position
    of the message."""
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    place = begin
    for match in TOKEN.finditer(text, begin):
        parts += text[place : match.start()], "\0", match.lastgroup or "", "\0"
        place = match.end()
        spans.append(match.span())
    parts.append(text[place:])
    filled = _FILLING.sub(" ", "".join(parts))
    return filled.replace("[ \0", "[\0").replace("( \0", "(\0"), spans  # a number may be filled up with blanks


def column_of(one: Entry, tokens: Sequence[re.Match[str]], at: int, values: Texts) -> ValueColumn:
    """Return the column of values at a position, described by the text around the first one."""
    token, text = tokens[at], one.text
    before = text[tokens[at - 1].end() if at else one.begin : token.start()]
    after = text[token.end() : tokens[at + 1].start() if at + 1 < len(tokens) else len(text)]
    is_number, is_total = token.lastgroup == "number", before.strip() in ("/", "of")
    is_of = at + 1 < len(tokens) and _OF.fullmatch(after) is not None
    label = _label(one, tokens, at)
    said = _COUNTED.match(after) if is_number and not (STEP.search(label) or EPOCH.search(label)) else None
    head = text[: token.start()].rpartition(" ")[2]
    joined = head.endswith("/") or (head.endswith(("-", "_")) and _ends_in_a_name(head[:-1]))
    joined = joined or bool(_JOINED_BEHIND.match(after) and not said)
    return ValueColumn(
        "total" if is_total else said[1] if said is not None else label,
        values,
        unit_of(before, after) if is_number and not is_total else None,
        of=at + 1 if is_number and is_of else None,
        counts=is_number and not after.startswith("%"),
        is_elapsed=token.lastgroup == "clock" and (after.startswith("<") or "elapsed" in before.lower()),
        joined=is_number and joined and not (is_total or is_of) and not ("/" not in head and _NAMED.search(head)),
    )


def _ends_in_a_name(text: str) -> bool:
    """Return True if the word at the end of a text has a letter."""
    return any(map(str.isalpha, re.split(r"[^\w.-]", text)[-1]))


def _label(one: Entry, tokens: Sequence[re.Match[str]], at: int) -> str:
    """Return the words before a token that may be its name; for digits of a name such as `acc-5`, which are not a
    separate number, those before the name."""
    before = one.text[tokens[at - 1].end() if at else one.begin : tokens[at].start()]
    if at and not before.strip(" :=|,"):
        earlier = one.text[tokens[at - 2].end() if at > 1 else one.begin : tokens[at - 1].start()]
        if re.search(r"[A-Za-z][-@]$", earlier):
            return _label(one, tokens, at - 1)
    words = re.findall(r"[A-Za-z]+", without_secrets(before).replace("_", " "))
    return " ".join(words[-3:]).lower()


SKIPPED = "{_}"
_FIELD = re.compile(r"(\{\w+(?::\w+)?\})")
_PLAIN = re.compile(r"[(\[]?[A-Za-z]+(?:'[a-z]+)?[)\].,:;!]*[(\[]?|[-|,:;=>()/\[\]*#&+]{1,12}|\"[A-Za-z_][\w./-]*\":")
_NAME = re.compile(r"[(\[]?[A-Za-z]+(?:_[A-Za-z]+)+[)\]:=]?")
"""A name before a value, such as `val_loss:`: lines with other values may lack it, so it is only used to tell lines
apart."""
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
        if after >= 0 and not inside and _NAME.fullmatch(example.text[begin:end]):
            parts.append(literal(example.text[begin:end]))
        else:
            parts.append(_word(example.text, begin, end, inside, names, len(tokens) if more else last))
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
        before = ahead[0] if ahead else text[max(0, one.begin - 3) : one.begin].lstrip(" 0123456789")
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

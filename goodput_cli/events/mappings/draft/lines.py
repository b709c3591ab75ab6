"""The lines of a log as messages with their times: what stands before a message is taken off.

Lines that differ in their numbers only, and what those numbers are called.

Templates of lines that are drafted: what differs from line to line is skipped, and so is what might.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from goodput_cli.events.mappings.times import find_time, pattern_of, read_time
from goodput_cli.events.text.log_lines import BadValueError
from goodput_cli.events.text.stamps import AMERICAN_STAMP, DATED, HEAD, Stamp, StampError, bare, stamp_of
from goodput_cli.vocabulary.secrets import HIDDEN, without_secrets
from goodput_cli.vocabulary.when import NS_PER_SECOND

FORMATS = (
    "%d/%m/%Y %H:%M:%S", "%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%H:%M:%S", "%d-%b-%Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y", "%b %d %Y %H:%M:%S", "%b %d, %Y %H:%M:%S", "%d %b %Y %H:%M:%S", "%y/%m/%d %H:%M:%S",
    "%Y.%m.%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y%m%d %H:%M:%S", "%Y%m%d-%H:%M:%S", "%Y%m%d-%H%M%S",
    "%m/%d/%y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%Y-%m-%d,%H:%M:%S", "%b %d %H:%M:%S", "%m-%d %H:%M:%S",
    "%m/%d %H:%M:%S",
)  # fmt: skip
"""Stamps that logs are not searched for, the likeliest first."""
AMERICAN = "%m/%d/%Y %H:%M:%S"
"""Every log is searched for it; whether the day comes first cannot be told before the 13th."""
_SINCE = 1_388_534_400 * NS_PER_SECOND
"""2014: two digits that would be an earlier year are the day or the month."""
_GLOG = re.compile(r"^\[?[IWEFDV]\d{4} \d\d:\d\d:\d\d\.\d+\s+(?:\d+ )?\S+:\d+\]")
_TRIED = 400
_LONGEST = 600
_SHARE = 0.2
_EPOCH = re.compile(r"(?<![\w.])1[4-9]\d{8}(?:\d{3})?(?:\.\d{1,9})?(?![\w.])")
_BEFORE = 40
_LEVEL = r"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL|SUCCESS|TRACE|NOTICE|[DIWE](?=[\] ]))"
_LOGGER = (
    r"(?:[A-Za-z_]\w*(?:[.:][A-Za-z_<]\w*>?)+(?::\d+)?|[\w./-]+\.py(?::\d+|:\w+)*|__\w+__|root"
    r"|\d++(?!\]\s+[A-Za-z_/][\w/.-]*[=:]))"
    r"(?:\[\d+\])?"
)
_OF_A_DAY = re.compile(r"(?:^|[\s\[(|])((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d{1,9})?)(?=[\s\])|,:-]|$)")
_AROUND = r"[\s\[\]()|:,>-]*"
_HEADER = re.compile(
    rf"{_AROUND}(?:[\w.]+\s+-\s+(?={_LEVEL}\b))?(?:{_LEVEL}\b{_AROUND})?"
    rf"(?:{_LOGGER}(?:\]:?|\)|\s*[|:>-])[\s\[\](|:>-]+(?:{_LEVEL}\b{_AROUND})?)*"
)


@dataclass(frozen=True)
class Entry:
    """A message."""

    line: str
    """As it stands in the log: what a sample holds."""
    text: str
    """Without prefixes of launchers."""
    begin: int
    """Where the message begins in the text, behind its stamp, level and logger."""
    ns: int | None
    """Its time, as written; None: it has none."""
    stamp: tuple[int, int] | None = None
    """Where a time stands in the text."""

    @property
    def message(self) -> str:
        """What was said."""
        return self.text[self.begin :]


@dataclass(frozen=True)
class Clock:
    """How the lines of a log say when they were written."""

    format: str = ""
    """Of `strptime`; "": as every log is searched for it."""
    epoch: bool = False
    """Seconds or milliseconds since 1970 stand in front."""

    def read(self, text: str) -> tuple[Stamp | None, tuple[int, int] | None]:
        """The stamp of a text, and where it stands."""
        try:
            if self.epoch:
                found = _EPOCH.search(text, 0, _BEFORE)
                return (None, None) if found is None else (_of_epoch(found[0]), found.span())
            if self.format:
                stamp = find_time(text, self.format)
                if stamp is not None and "%y" in self.format and stamp.ns < _SINCE:
                    return None, None
                return stamp, None if stamp is None else _span(text, self.format)
            stamp = stamp_of(text)
        except (StampError, BadValueError):
            return None, None
        shapes = (_GLOG, DATED, AMERICAN_STAMP) if stamp is not None else ()
        found = next((one for shape in shapes if (one := shape.search(text, 0, HEAD + _BEFORE))), None)
        return stamp, None if found is None else found.span()


def clock_of(texts: Sequence[str]) -> Clock:
    """The clock that most of the first lines have."""
    tried = texts[:_TRIED]
    usual = sum(Clock().read(text)[0] is not None for text in tried)
    counts: Counter[Clock] = Counter()
    for clock in (*(Clock(one) for one in FORMATS), Clock(epoch=True)):
        counts[clock] = sum(clock.read(text)[0] is not None for text in tried)
    best, count = max(counts.items(), key=lambda one: one[1])  # of equals the first
    return best if count > usual and count >= _SHARE * min(len(tried), 20) else Clock()


def entry_of(line: str, clock: Clock) -> Entry | None:
    """A line as a message; None for a blank one."""
    taken = bare(line[:_LONGEST])
    text = taken.text.rstrip()
    if not text.strip():
        return None
    stamp, span = clock.read(text)
    stamp = taken.collected or stamp
    begin = span[1] if span is not None and span[0] < _BEFORE else 0
    header = _HEADER.match(text, begin)
    begin = header.end() if header is not None and header.end() < len(text) else begin
    if text[begin - 1 : begin] == "[" and text[begin].isdigit():  # `[100] loss=…`: the bracket tells what is a step
        begin -= 1
    return Entry(line, text, begin, None if stamp is None else stamp.ns, span)


def time_of_day(entries: Sequence[Entry]) -> str:
    """A time of day without a date with which most lines begin, as one writes it; "": they begin with none."""
    found = [match[1] for one in entries[:_TRIED] if (match := _OF_A_DAY.search(one.text, 0, _BEFORE))]
    return found[0] if 2 * len(found) > len(entries[:_TRIED]) else ""


def _span(text: str, written: str) -> tuple[int, int] | None:
    found = pattern_of(written).search(text, 0, HEAD)
    return None if found is None else found.span()


def epoch_unit(entry: Entry) -> str:
    """The format of the stamp of a message that is seconds or milliseconds since 1970; "": it is none."""
    text = "" if entry.stamp is None else entry.text[slice(*entry.stamp)]
    if not _EPOCH.fullmatch(text):
        return ""
    return "epoch_ms" if len(text.partition(".")[0]) > 10 else "epoch_s"


def behind_epoch(entry: Entry, said: str) -> str:
    """A template of a message, behind a field for its stamp."""
    begin, end = entry.stamp or (0, 0)
    before = re.sub(r"\w+", _SKIPPED, _literal(entry.text[:begin].strip()))
    between = entry.text[end : entry.begin]
    closing = re.match(r"[\])|,:;]*", between)
    behind = closing[0] if closing is not None else ""
    starts = entry.message.lstrip().startswith(said.partition("{")[0].strip() or "\0")
    skipped = " " if starts and not between[len(behind) :].strip() else f" {_SKIPPED} "
    return f"{before}{{time:float}}{behind}{skipped}{said}"


def _of_epoch(text: str) -> Stamp:
    return read_time(text, "epoch_ms" if len(text.partition(".")[0]) > 10 else "epoch_s")


MOST = 5000
"""So many lines of a shape are looked at."""
_SHAPES = 5000
_TOKEN = re.compile(
    rf"(?P<stamp>{re.sub(r'[?]P<[a-z]+>', '?:', DATED.pattern)})"
    r"|(?P<quoted>(?<!\w)\"(?![-+.\d]+\")[^\"]{0,200}\"(?!:)|'[^']{0,200}')"
    r"|(?P<hex>0x[0-9a-fA-F]+|(?<![\w])(?=[0-9a-f]{7})(?=[0-9a-f-]{0,64}\d)(?=[0-9a-f-]{0,64}[a-f])"
    r"[0-9a-f]{7,}(?:-[0-9a-f]{4,})*(?!\w))"
    r"|(?P<clock>(?<![\w:])(?:\d+:)?\d{1,2}:\d\d(?:\.\d+)?(?![\w:]))"
    r"|(?P<number>(?:(?<![\w.)\]])[+-](?=\d)|(?<![A-Za-z.])|(?<=step)|(?<=iter)|(?<=epoch)|(?<=ckpt))"
    r"(?:\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\d.]*\.\d)|nan\b|inf\b))",
    re.ASCII,
)


@dataclass(frozen=True)
class Token:
    """What differs from line to line."""

    kind: str
    text: str
    begin: int
    end: int


@dataclass
class Shape:
    """Lines that differ in their tokens only."""

    example: Entry
    tokens: tuple[Token, ...]
    """Of the example."""
    count: int = 0
    rows: list[tuple[int, Entry, tuple[str, ...]]] = field(default_factory=list)
    """Of the first lines: their number, and the texts of their tokens."""

    @property
    def message(self) -> str:
        """That of the example."""
        return self.example.message

    @property
    def places(self) -> list[int]:
        """The numbers of its lines."""
        return [number for number, _, _ in self.rows]

    def column(self, at: int) -> list[str]:
        """The texts of a token."""
        return [texts[at] for _, _, texts in self.rows]

    def before(self, at: int) -> str:
        """The literal text before a token, from the token before it on."""
        begin = self.tokens[at - 1].end if at else self.example.begin
        return self.example.text[begin : self.tokens[at].begin]

    def after(self, at: int) -> str:
        """The literal text behind a token, up to the next one."""
        end = self.tokens[at + 1].begin if at + 1 < len(self.tokens) else len(self.example.text)
        return self.example.text[self.tokens[at].end : end]

    def label(self, at: int) -> str:
        """The words before a token that may be its name, in small letters; those before the digits of a name such as
        `acc-5`, which is no number of its own."""
        if at and not self.before(at).strip(" :=|,") and re.search(r"[A-Za-z][-@]$", self.before(at - 1)):
            return self.label(at - 1)
        words = re.findall(r"[A-Za-z][A-Za-z]*", without_secrets(self.before(at)).replace("_", " "))
        return " ".join(words[-3:]).lower()


def shapes_of(entries: Iterable[Entry]) -> list[Shape]:
    """The shapes of a log, the most frequent first."""
    found: dict[str, Shape] = {}
    for number, entry in enumerate(entries):
        tokens = tuple(_tokens(entry))
        key = _key(entry, tokens)
        shape = found.get(key)
        if shape is None:
            if len(found) >= _SHAPES:
                continue
            shape = found[key] = Shape(entry, tokens)
        shape.count += 1
        if len(shape.rows) < MOST:
            shape.rows.append((number, entry, tuple(token.text for token in tokens)))
    return sorted(found.values(), key=lambda shape: -shape.count)


def _tokens(entry: Entry) -> Iterable[Token]:
    for found in _TOKEN.finditer(entry.text, entry.begin):
        yield Token(found.lastgroup or "", found[0], found.start(), found.end())


def _key(entry: Entry, tokens: tuple[Token, ...]) -> str:
    parts: list[str] = []
    place = entry.begin
    for token in tokens:
        parts += [entry.text[place : token.begin], f"\0{token.kind}\0"]
        place = token.end
    return re.sub(r"[\s.=#█▏▎▍▌▋▊▉━╸╺>-]+", " ", "".join([*parts, entry.text[place:]]))


_SKIPPED = "{_}"
_FIELD = re.compile(r"(\{\w+(?::\w+)?\})")
_PLAIN = re.compile(r"[(\[]?[A-Za-z]+(?:'[a-z]+)?[)\].,:;!]*[(\[]?|[-|,:;=>()/\[\]*#&+]{1,12}|\"[A-Za-z_][\w./-]*\":")
_PAIR = re.compile(r"[\w./ -]{1,40}[=:]")
_WORD_BEFORE = re.compile(r"(?<!\S)[A-Za-z_]\S*\s$")
_MOST_WORDS = 6
_LEAST = 4


def template(shape: Shape, names: Mapping[int, str]) -> str:
    """A template of the lines of a shape; names: what its tokens are called, such as `step:int`."""
    if not names:
        return _without_secrets(phrase(shape))
    text, tokens = shape.example.text, shape.tokens
    last = max(names)
    parts: list[str] = []
    for begin, end in _words(text, shape.example.begin):
        inside = [(at, one) for at, one in enumerate(tokens) if one.begin < end and begin < one.end]
        parts.append(_word(text, begin, end, inside, names, last))
        if any(at == last for at, _ in inside):
            parts += _unit_behind(text, end)
            break
    return _without_secrets(_joined(parts))


def _without_secrets(template: str) -> str:
    """A template with what looks like a secret skipped, its fields left as they are."""
    parts = _FIELD.split(template)
    parts[::2] = [
        part if (said := without_secrets(part)) == part else said.replace(HIDDEN, _SKIPPED) for part in parts[::2]
    ]
    return _joined(["".join(parts)])


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
    later = "" if whole or _tells(said) else _later_phrase(shape)
    if later:
        return later
    while found and not re.search("[A-Za-z]", found[0]):
        said = said.removeprefix(found.pop(0)).lstrip()
    letters = len(re.findall("[A-Za-z]", said))
    if letters < _LEAST or (len(said.split()) == 1 and letters < 2 * _LEAST):  # one short word is in many lines
        ahead = _WORD_BEFORE.search(text, 0, shape.example.begin)
        before = ahead[0] if ahead else text[max(0, shape.example.begin - 3) : shape.example.begin].lstrip()
        said = f"{before}{said}" if said and before else said
    return _literal(said.strip())


def _tells(said: str) -> bool:
    """Whether words are so many that few other lines hold them."""
    letters = len(re.findall("[A-Za-z]", said))
    return letters >= 2 * _LEAST or (letters >= _LEAST and len(said.split()) > 1)


def _later_phrase(shape: Shape) -> str:
    """The first words of a message behind what may differ from line to line that few other lines hold; "": none."""
    text, tokens = shape.example.text, shape.tokens
    run: list[str] = []
    for begin, end in [*_words(text, shape.example.begin), (0, 0)]:
        differs = any(one.begin < end and begin < one.end for one in tokens)
        if end and len(run) < _MOST_WORDS and not differs and _PLAIN.fullmatch(text[begin:end]):
            run.append(text[begin:end])
            continue
        said = " ".join(run)
        if len(re.findall("[A-Za-z]", said)) >= 3 * _LEAST and len(re.findall("[A-Za-z]{2,}", said)) > 1:
            lead = re.search(r"[A-Za-z]", said)
            return _literal(said[lead.start() if lead else 0 :].rstrip(" .,:;=-|(["))
        run = []
    return ""


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
    of = re.match(r"\s(/|of)\s\d", text[end:])
    return [_literal(one[1]) for one in (found, of) if one is not None]


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

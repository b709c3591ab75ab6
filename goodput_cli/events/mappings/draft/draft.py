"""Drafts a mapping: TOML that reads the log that it was made of, with what to look at."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from goodput_cli.errors import UsageError
from goodput_cli.events.documents import cells
from goodput_cli.events.mappings.declared import mappings_in
from goodput_cli.events.mappings.draft.lines import clock_of, entry_of
from goodput_cli.events.mappings.draft.records import Row, flat, records_draft
from goodput_cli.events.mappings.draft.text import Draft, DraftedRule, quoted, text_draft
from goodput_cli.events.mappings.registry import Mappings, load_mapping
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.mappings.samples import read_line, record_of, shown
from goodput_cli.events.text.lines import LONGEST
from goodput_cli.events.text.log_lines import EventType
from goodput_cli.events.text.stamps import bare
from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.text import safe

_FIRST, _LAST = 50_000, 25_000
"""So many lines of the beginning and of the end of a log are looked at."""
_TRIED = 2_000
_LONGEST_SAMPLE = 500
_DELIMITERS = ",\t;|"
_SAMPLED = ("event", "step", "each", "took", "elapsed", "edge")
_FEW = 20
_HEAD = 200
_DIGITS = re.compile(r"\d+(?:\.\d+)?(?:e[+-]\d+)?")
_ONCE = ("start", "crashed", "finished", "terminated", "resume", "init", "prep")
_ODD = 3
"""So many more lines than a rule was made of may be worded otherwise."""
_LAUNCH = "each launch begins with a line"
_CLOSED = "\n]\n"


@dataclass(frozen=True)
class Suggestion:
    """A drafted mapping."""

    text: str
    """TOML to edit: rules that read the log, other candidates for steps commented out, and samples of its lines."""
    refused: tuple[str, ...]
    """Why it reads nothing, or would answer wrongly, and what to say by hand; its rules are commented out then."""


def suggest(lines: Iterable[str], name: str) -> Suggestion:
    """A mapping of a log."""
    texts = _of_one_rank(_some(lines))
    draft = _draft(texts)
    rules = _without_broad(draft, name, _that_read(draft, name), texts)
    if not draft.refused and not any(rule.active and rule.event == "step" for rule in rules):
        draft.refused.append("no rule that could be drafted reads a step: say what one looks like")
    if not draft.refused:
        draft.refused += _misread(draft, name, rules, texts)
    if draft.refused:
        rules = [replace(rule, active=False) for rule in rules]
    draft.refused, draft.notes = [*map(_shown, draft.refused)], [*map(_shown, draft.notes)]
    draft.assumed = [*map(without_secrets, draft.assumed)]
    return Suggestion(_written_whole(draft, name, rules, texts), tuple(draft.refused))


def _shown(sentence: str) -> str:
    """A sentence that names what the log says."""
    return safe(without_secrets(sentence))


def _of_one_rank(texts: list[str]) -> list[str]:
    """The lines of a log without those in which other ranks say what the one that says most does: each of them counts
    steps of its own."""
    streams = [bare(text[:LONGEST]).stream for text in texts]
    counts = Counter(stream for stream in streams if stream)
    if len(counts) < 2:
        return texts
    most = counts.most_common(1)[0][0]
    said = {_DIGITS.sub("0", bare(text[:_HEAD]).text) for text, one in zip(texts, streams, strict=True) if one == most}
    return [
        text for text, stream in zip(texts, streams, strict=True)
        if stream in ("", most) or _DIGITS.sub("0", bare(text[:_HEAD]).text) not in said
    ]  # fmt: skip


def _without_broad(draft: Draft, name: str, rules: Sequence[DraftedRule], texts: Sequence[str]) -> list[DraftedRule]:
    """The rules without those of starts, ends and the like that would read far more lines than they were made of."""
    active = [rule for rule in rules if rule.active]
    if len(active) < 2:
        return list(rules)
    made = _made(draft, name, rules)
    some = [part for text in (texts if len(texts) <= 2 * _TRIED else [*texts[:_TRIED], *texts[-_TRIED:]])
            for part in _split(text)[-1:]]  # fmt: skip
    counts = Counter(found.rule for found in (read_line(made, part) for part in some) if found is not None)
    broad = [
        rule for at, rule in enumerate(active) if rule.event in _ONCE and counts[at] > 2 * rule.lines + _ODD
    ]  # fmt: skip
    draft.assumed = [
        one for one in draft.assumed if not any(rule.event == "start" for rule in broad) or _LAUNCH not in one
    ]
    return [rule for rule in rules if not any(rule is one for one in broad)]


def refused_for(made: Suggestion, reason: str) -> Suggestion:
    """A draft that turned out to be of no use: its rules and samples are commented out."""
    reason = _shown(reason)
    head, rule, rest = made.text.partition("\n[[rule]]")
    before, _, assumed = head.partition("\nassumed = [")
    head = f"{before}\n{assumed.partition(_CLOSED)[2]}" if assumed else head
    rules = [f"# {line}" if line else "" for line in f"{rule}{rest}".split("\n")]
    return Suggestion(f"{head}# refused: {reason}\n" + "\n".join(rules), (*made.refused, reason))


def _misread(draft: Draft, name: str, rules: Sequence[DraftedRule], texts: Sequence[str]) -> Iterable[str]:
    """What the rule for steps reads otherwise than the lines that it was made of mean, and which others it reads."""
    made = _made(draft, name, rules)
    at = next(row for row, rule in enumerate(rule for rule in rules if rule.active) if rule.event == "step")
    wrong = [line for _, line, step in draft.expected if _step_in(made, line, at) != step]
    if 10 * len(wrong) > len(draft.expected):
        yield f"no rule that could be drafted reads the step of a line such as: {wrong[0].strip()[:120]}"
        return
    if made.declared.delimiter or not made.lines or not draft.expected:
        return
    own = {line: step for _, line, step in draft.expected}
    before, highest, waiting, fell = -1, -1, "", False
    other = None
    for line in (part for text in texts for part in _split(text)[-1:]):
        step = own.get(line)
        if step is None:
            found = _step_in(made, line, at)
            if found is not None:
                highest = max(highest, found)
                waiting = line if found <= before or found == highest else waiting
            fell = fell or (found is not None and found <= before)
            continue
        if step > before and (fell or highest >= step):  # the number jumped for one line alone
            other = waiting
            break
        before, highest, waiting, fell = step, -1, "", False
    if other is not None:
        yield f"a rule for steps would read other lines too, such as: {other.strip()[:120]}"


def _step_in(made: Mapped, line: str, rule: int) -> int | None:
    """The number of a step that a rule reads in a line; None if it does not read it."""
    read = read_line(made, line, overwritten=made.declared.split is not None)
    if read is None or read.rule != rule or read.event is None:
        return None
    return 0 if read.event.type is EventType.START else read.event.step


def _written_whole(draft: Draft, name: str, rules: Sequence[DraftedRule], texts: Sequence[str]) -> str:
    parts = [f'name = "{_plain(name)}"', *draft.top]
    if draft.assumed and not draft.refused:
        parts.append("assumed = [             # said under each answer; delete what you have looked at")
        parts += [f"  {quoted(sentence)}," for sentence in draft.assumed] + ["]"]
    parts += [f"# refused: {reason}" for reason in draft.refused]
    parts += [f"# {note}" for note in [*draft.notes, *_read_without(texts)]]
    for rule in rules:
        parts += ["", *_written(rule)]
    if not any(rule.active for rule in rules):
        parts += ["", "# [[rule]]", '# event = "step"', "# line = 'step {step:int} took {each:float}s'"]
    samples = _samples(_made(draft, name, rules), rules) if any(rule.active for rule in rules) else []
    return "\n".join([*parts, *samples, ""])


def _read_without(texts: Sequence[str]) -> Iterable[str]:
    """That a log needs no mapping, where it needs none."""
    rules = Mappings().ruleset
    some = (bare(text[:LONGEST]).text for text in texts if rules.anchors.search(text.encode(errors="replace")))
    read = {said.format for text in islice(some, _TRIED) for said in rules.read(text)[0] if said.type is EventType.STEP}
    if read:
        yield f"steps in this log are read without a mapping, as {' and '.join(sorted(read))}"


def _draft(texts: Sequence[str]) -> Draft:
    rows = _records(texts)
    if rows is not None:
        return records_draft(rows)
    table = _table(texts)
    if table is not None:
        delimiter, rows = table
        draft = records_draft(rows)
        draft.top.insert(0, "csv = true" if delimiter == "," else f"csv = {{ delimiter = {quoted(delimiter)} }}")
        return draft
    return _of_lines(texts)


def _of_lines(texts: Sequence[str]) -> Draft:
    """The rules of lines of text; of those with carriage returns each part is one where steps stand in them."""
    parts = [(part, at == len(split)) for text in texts for split in [_split(text)] for at, part in enumerate(split, 1)]
    clock = clock_of([bare(part).text for part, last in parts if last])
    entries = [(entry_of(part, clock), last) for part, last in parts]
    whole = text_draft([entry for entry, last in entries if entry is not None and last], clock)
    if all(last for _, last in parts):
        return whole
    split = text_draft([entry for entry, _ in entries if entry is not None], clock)
    if split.score < whole.score - 0.5 or _steps(split) <= 2 * _steps(whole):
        return whole
    split.top.append('split = "\\r"             # each state of a progress bar counts')
    return split


def _steps(draft: Draft) -> int:
    return sum(rule.lines for rule in draft.rules if rule.event == "step" and rule.active)


def _split(text: str) -> list[str]:
    return [part for part in text.split("\r") if part.strip()]


def _some(lines: Iterable[str]) -> list[str]:
    left = iter(lines)
    first = list(islice(left, _FIRST))
    return [*first, *deque(left, _LAST)]


def _records(texts: Sequence[str]) -> list[Row] | None:
    """The records of a log that mostly consists of JSON objects."""
    begun = [text for text in texts[:_FEW] if text.strip()]
    if not begun or sum(text.lstrip().startswith("{") for text in begun) <= len(begun) / 2:
        return None
    read = ((at, text, record_of(text)) for at, text in enumerate(texts))
    rows = [Row(at, dict(flat(record)), text) for at, text, record in read if record is not None]
    return rows if len(rows) > len(begun) / 2 else None


def _table(texts: Sequence[str]) -> tuple[str, list[Row]] | None:
    """The rows of a table with a header, and what parts its columns."""
    head = next((text for text in texts if text.strip()), "")
    for delimiter in _DELIMITERS:
        columns = cells(head, delimiter)
        if len(columns) < 2 or not all(re.fullmatch(r"[A-Za-z_@][\w /.@()-]*", column) for column in columns):
            continue
        rows = [(at, text, cells(text, delimiter)) for at, text in enumerate(texts) if text.strip() and text != head]
        fitting = [(at, text, row) for at, text, row in rows if len(row) == len(columns)]
        if rows and len(fitting) > 0.9 * len(rows):
            return delimiter, [
                Row(at, {key: value for key, value in zip(columns, row, strict=True) if value}, _as_json(columns, row))
                for at, _, row in fitting
            ]
    return None


def _as_json(columns: Sequence[str], row: Sequence[str]) -> str:
    import json

    return json.dumps(dict(zip(columns, row, strict=True)))


def _that_read(draft: Draft, name: str) -> list[DraftedRule]:
    """The rules that can be used: one without a text of its own is tried on every line, if it is that of steps; one
    whose lines an earlier rule would take stands before the others; one that reads nothing even there is left out."""
    kept: list[DraftedRule] = []
    for rule in draft.rules:
        if not rule.active:
            if read_line(_made(draft, name, kept), rule.example) is None:
                kept.append(rule)
            continue
        for keys in (rule.keys, [*rule.keys, "slow = true             # no text of four characters is in every line"]):
            tried = DraftedRule(rule.event, keys, rule.example, rule.lines, rule.note)
            orders = ([*kept, tried], [tried, *kept])
            fitting = next((order for order in orders if _reads(draft, name, order)), None)
            if fitting is not None:
                kept = fitting
                break
    return kept


def _reads(draft: Draft, name: str, rules: Sequence[DraftedRule]) -> bool:
    """Whether each of the rules is the one that reads its example."""
    active = [rule for rule in rules if rule.active]
    try:
        made = _made(draft, name, rules)
        read = [read_line(made, rule.example) for rule in active]
    except UsageError:
        return False
    return all(one is not None and not one.refused and one.rule == at for at, one in enumerate(read))


def _made(draft: Draft, name: str, rules: Sequence[DraftedRule]) -> Mapped:
    text = "\n".join([f'name = "{_plain(name)}"', *draft.top, *(line for rule in rules for line in _written(rule))])
    accounted = any(rule.active and rule.event in ("step", "start") for rule in rules)
    if not accounted:  # a rule that is never asked
        text += "\n[[rule]]\nevent = 'start'\nline = 'a rule of goodput that no line is of'\n"
    (mapping,) = mappings_in("draft.toml", text)
    return load_mapping(mapping)


def _written(rule: DraftedRule) -> list[str]:
    lines = [f"[[rule]]{' ' * 17}# {_count(rule)}", f'event = "{rule.event}"', *rule.keys]
    return lines if rule.active else [f"# {line}" for line in lines]


def _count(rule: DraftedRule) -> str:
    count = f"{rule.lines:,} lines like it" if rule.lines > 1 else "one line like it"
    return rule.note or count


def _samples(made: Mapped, rules: Sequence[DraftedRule]) -> list[str]:
    """A sample for each rule, with what it gives."""
    found: list[str] = []
    for rule in rules:
        if not rule.active or len(rule.example) > _LONGEST_SAMPLE:
            continue
        example = without_secrets(rule.example)
        read = read_line(made, example)
        if read is None or read.event is None:
            continue
        values = {
            key: value for key, value in shown(read.event, read.stamp).items() if key in _SAMPLED and value is not None
        }
        if values["edge"] == "point":
            del values["edge"]
        gives = ", ".join(
            f"{key} = {value if not isinstance(value, str) else quoted(value)}" for key, value in values.items()
        )
        head = "[[sample]]               # checked whenever the mapping is loaded" if not found else "[[sample]]"
        found += ["", head, f"line = {quoted(example)}", f"gives = {{ {gives} }}"]
    return found


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-._") or "my-log"

"""Write drafted rules as TOML: line templates or record keys with the meaning of their fields, and samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from goodput_cli.errors import UsageError
from goodput_cli.events.mappings.declared import mappings_in
from goodput_cli.events.mappings.draft.entries import NO_TIME, Entry, Group, Log, names_epoch, names_epoch_in, quoted
from goodput_cli.events.mappings.draft.guess import StepGuess
from goodput_cli.events.mappings.draft.templates import SKIPPED, literal, template
from goodput_cli.events.mappings.draft.words import EPOCH, is_of_one
from goodput_cli.events.mappings.registry import load_mapping
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.mappings.samples import read_line, shown
from goodput_cli.events.mappings.times import UNIX_TIME, epoch_format
from goodput_cli.events.text.log_lines import EventType
from goodput_cli.vocabulary.secrets import without_secrets

_LONGEST_SAMPLE = 500
_MOST_GROUPS = 200
_SAMPLED = ("event", "step", "each", "took", "elapsed", "edge")
SLOW = "slow = true             # no four characters are the same in every line"
_USUAL = 'each = { of = "usual" }  # time between lines beyond the usual step time is not training'
_CURSOR = 'time = "cursor"          # these lines have no timestamp: continue from the last one'


@dataclass(frozen=True)
class Rule:
    """A drafted rule: its keys as TOML, and a matching line."""

    event: str
    keys: tuple[str, ...]
    example: str
    lines: int
    note: str = ""


def loaded(head: Sequence[str], rules: Sequence[Rule]) -> Mapped | None:
    """Load rules; None if they are invalid. head: TOML above them."""
    text = "\n".join([*head, *(line for rule in rules for line in written(rule))])
    if not any(rule.event in ("step", "step_start", "start") for rule in rules):
        text += "\n[[rule]]\nevent = 'start'\nline = 'a rule of goodput that no line is of'\n"
    return _loaded(text)


@lru_cache(maxsize=64)
def _loaded(text: str) -> Mapped | None:
    try:
        (mapping,) = mappings_in("draft.toml", text)
        return load_mapping(mapping)
    except UsageError:
        return None


def written(rule: Rule) -> list[str]:
    """Return a rule as lines of TOML."""
    count = f"{rule.lines:,} lines like it" if rule.lines > 1 else "one line like it"
    return [f"[[rule]]{' ' * 17}# {rule.note or count}", f'event = "{rule.event}"', *rule.keys]


def samples(mapped: Mapped, rules: Sequence[Rule]) -> list[str]:
    """Return a sample for each rule, with its values."""
    found: list[str] = []
    for at, rule in enumerate(rules):
        example = without_secrets(rule.example)
        read = read_line(mapped, example) if len(rule.example) <= _LONGEST_SAMPLE else None
        if read is None or read.event is None or read.rule != at:
            continue
        values = [
            f"{key} = {quoted(value) if isinstance(value, str) else value}"
            for key, value in shown(read.event, read.stamp).items()
            if key in _SAMPLED and value is not None and (key, value) != ("edge", "point")
        ]
        head = "[[sample]]" if found else "[[sample]]               # checked whenever the mapping is loaded"
        found += ["", head, f"line = {quoted(example)}", f"gives = {{ {', '.join(values)} }}"]
    return found


def step_rules(log: Log, guess: StepGuess, more: int) -> list[Rule]:
    """Return the step rule, after rules for lines with the epoch. more: words after the last field."""
    columns = {"step:int": guess.step, "epoch:int": guess.epoch, "of:int": guess.of}
    names = {at: name for name, at in columns.items() if at is not None}
    names |= _totals(log, guess)
    if guess.group.only is not None:
        names[guess.group.only[0]] = f"={guess.group.only[1]}"
    keys: list[str] = []
    if guess.epoch is not None or guess.steps is not None:
        steps = f", steps = {guess.steps}" if guess.steps is not None else ""
        keys.append(f"epoch = {{ first = {guess.first}{steps} }}")
    elif "epoch:int" in names.values():
        keys += _first_epoch(guess.group, next(at for at, name in names.items() if name == "epoch:int"))
    timed = guess.group.has_all_times
    if guess.elapsed is not None:
        at, unit = guess.elapsed
        names[at] = "elapsed:float" if unit else "elapsed:clock"
        begins = "" if _is_of_epochs(guess.group, at) else ", begins = true"
        keys += [f'elapsed = {{ unit = "{unit}"{begins} }}'] if unit else []
    if guess.each is not None:
        at, unit, of = guess.each
        names[at] = "each:float"
        keys.append(f'each = {{ unit = "{unit}"{f", of = {quoted(of)}" if of != "mean" else ""} }}')
    keys += [_USUAL] if guess.each is None else []
    keys += [_CURSOR] if not timed else []
    step = line_rule(log, "step_start" if guess.begins else "step", guess.group, names, keys, more)
    if not log.records and not _has_text(step):
        step = replace(step, keys=(*step.keys, SLOW))
    return [*_epoch_rules(log, guess, *guess.carried), step] if guess.carried is not None else [step]


def _is_of_epochs(group: Group, at: int) -> bool:
    """Return True if a clock starts again in each epoch of the lines, and only there."""
    falls = np.diff(group.columns[at].numbers) < 0
    epochs = (column.numbers for column in group.columns if EPOCH.search(column.name))
    return bool(falls.any()) and any((np.diff(numbers)[falls] > 0).all() for numbers in epochs)


def _totals(log: Log, guess: StepGuess) -> dict[int, str]:
    """Return the columns of step lines with the total of steps or epochs, and with the epoch if steps continue across
    epochs."""
    if log.records:
        return {}
    columns, of = guess.group.columns, guess.column.of
    if guess.is_epoch:
        return {} if of is None else {of: "total:int"}
    if guess.epoch is not None:
        of = columns[guess.epoch].of
        return {} if of is None else {of: "epochs:int"}
    if guess.carried is not None or guess.counts_epochs:
        return {}
    at = numbered_epoch(guess.group)
    if at is not None:
        return {} if guess.elapsed is not None else {at: "epoch:int", columns[at].of or 0: "epochs:int"}
    if of is None or not guess.is_named or any(map(names_epoch, (guess.group, *log.groups[:_MOST_GROUPS]))):
        return {}
    return {of: "total:int"}


def numbered_epoch(group: Group) -> int | None:
    """Return the column of an epoch with a total: `Epoch 3/50`; None if there is none."""
    of_epochs = (at for at, one in enumerate(group.columns) if names_epoch_in(one) and one.of is not None)
    return next((at for at in of_epochs if group.columns[group.columns[at].of or 0].whole is not None), None)


def _first_epoch(group: Group, at: int) -> list[str]:
    """Return the key for the number of the first epoch, unless it is 1."""
    whole = group.columns[at].whole
    return ["epoch = { first = 0 }"] if whole is not None and whole.min() == 0 else []


def total_rule(log: Log, group: Group, at: int, words: int) -> Rule:
    """Return the rule for other lines with the total of epochs. at: column of the epoch."""
    names = {at: "epoch:int", group.columns[at].of or 0: "epochs:int"}
    return line_rule(log, "alive", group, names, _first_epoch(group, at), words)


def _has_text(rule: Rule) -> bool:
    """Return True if every line of a rule contains some literal text of four characters."""
    line = next((key for key in rule.keys if key.startswith("line = ")), "")
    return any(len(part) >= 4 for word in line[8:-1].split() for part in re.split(r"\{\w+(?::\w+)?\}", word))


def _epoch_rules(log: Log, guess: StepGuess, group: Group, at: int) -> list[Rule]:
    """Return the rules for lines with the epoch of the steps after them; the first epoch is the start of a process."""
    more = [f"epoch = {{ first = {guess.first} }}"] if guess.first != 1 else []
    of = group.columns[at].of
    names = {at: "epoch:int"} | ({} if of is None else {of: "epochs:int"})
    rule = replace(line_rule(log, "alive", group, names, more), example=group.entry(len(group) - 1).line)
    texts = group.columns[at].texts
    begins = [row for row, text in enumerate(texts) if text == str(guess.first)]
    if not begins or log.records or (np.diff(guess.done) < 0).any():
        return [rule]
    line = quoted(template(group, {at: "epoch:int"}).replace("{epoch:int}", str(guess.first)))
    keys = (f"line = {line}", "once = true", "also = true", *log.beside)
    return [Rule("start", keys, group.entry(begins[0]).line, len(begins)), rule]


def line_rule(
    log: Log, event: str, group: Group, names: Mapping[int, str], more: Sequence[str], words: int = 0
) -> Rule:  # fmt: skip
    """Return the rule for a group. names: fields of its columns, such as `step:int`. more: additional keys. words:
    number of words after the last field in a template."""
    example, count = group.first, len(group)
    if log.records and not group.is_text:
        named = {name.partition(":")[0]: group.columns[at].path for at, name in names.items()}
        named |= {"time": log.time} if log.time else {}
        keys = [f"keys = {{ {', '.join(f'{name} = {quoted(path)}' for name, path in named.items())} }}"]
        keys += [f"where = {group.where}"] if group.where else []
        return Rule(event, (*keys, *more), example.line, count)
    line, time = template(group, names, words), []
    stamp = "" if example.span is None else example.text[slice(*example.span)]
    if UNIX_TIME.fullmatch(stamp):
        line, time = _after_timestamp(example, line), [f'time = {{ format = "{epoch_format(stamp)}" }}']
    return Rule(event, (f"line = {quoted(line)}", *more, *time, *log.beside), example.line, count)


def _after_timestamp(one: Entry, said: str) -> str:
    """Return the template of a message after a field for its timestamp."""
    begin, end = one.span or (0, 0)
    before = re.sub(r"\w+", SKIPPED, literal(one.text[:begin].strip()))
    between = one.text[end : one.begin]
    behind = between[: len(between) - len(between.lstrip("])|,:;"))]
    starts = one.message.lstrip().startswith(said.partition("{")[0].strip() or "\0")
    skipped = " " if starts and not between[len(behind) :].strip() else f" {SKIPPED} "
    return f"{before}{{time:float}}{behind}{skipped}{said}"


def assumptions_of(guess: StepGuess) -> Iterator[str]:
    """Yield the assumptions of a draft that the log does not prove."""
    name = without_secrets(guess.name)
    unnamed = not guess.is_named and guess.stride > 1
    samples = ", and does not count samples" if unnamed else ""
    if guess.index:
        yield f"`{name}` is the index of the last step, from 0{samples}"
    elif (guess.stride == 1 or unnamed) and not guess.begins:
        yield f"`{name}` counts finished steps{samples}"
    timed = guess.group.columns[guess.each[0]] if guess.each is not None and guess.each[2] == "mean" else None
    one = timed is None or timed.is_step_time or is_of_one(timed.name)
    if timed is not None and not one and guess.stride > 1 and guess.group.ns[0] == NO_TIME:
        yield f"`{without_secrets(timed.name)}` is the time of one step, not of all {guess.stride}"
    if guess.elapsed is not None:
        column = guess.group.columns[guess.elapsed[0]]
        named, unit = without_secrets(column.name) or column.values.first, guess.elapsed[1] or "s"
        yield f"`{named}` never decreases: it is read as time since the start, in {unit}"


def reads_step(mapped: Mapped, one: Entry) -> bool:
    """Return True if rules read a line as a step."""
    read = read_line(mapped, one.line)
    return read is not None and mapped.declared.rule[read.rule].event in (EventType.STEP, EventType.STEP_START)


def reads_own(mapped: Mapped, at: int, rule: Rule) -> bool:
    """Return True if the example of a rule is read by it, or by one that leaves lines to others, without an error."""
    read = read_line(mapped, rule.example)
    return read is not None and not read.refused and (read.rule == at or mapped.declared.rule[read.rule].also)

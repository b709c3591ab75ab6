"""What may count steps, and what lines may say beside them: guesses, which `proof` tests.

One table of words for text, JSON and tables alike says what a number, a key or a line is about.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import median

from goodput_cli.events.mappings.declared import UNITS
from goodput_cli.events.mappings.draft.entries import Entry, Group, Log, ValueColumn, plain
from goodput_cli.events.text.stamps import have_one_fraction

STEP = re.compile(
    r"\b(?:(?:global |train(?:ing)? |optimi[sz]er )?steps?|(?:n )?iter(?:ation)?s?|updates?|it|batch(?:es)?"
    r"|batch idx|batch id)$"
)
EPOCH = re.compile(r"\b(?:epochs?|ep)(?: train(?:ing)?)?$")
_NO_STEP = re.compile(
    r"\b(?:rank|pid|process|port|micro\w*|accum\w*|substeps?|gpus?|devices?|nodes?|workers?|eta|lr|loss|seed|shards?"
    r"|tokens?|samples|examples|images|seq|size|line|mem|memory|bytes|layers?|consumed|world|batch size|eval|valid|val"
    r"|version|id|count|total|remaining|epochs?|ep|hosts?|scale|acc\w*|top|f1|map|auc|bleu|wer|ppl|perplexity|score"
    r"|reward|mfu|tflops|throughput|grad|norm|warmup|max|num|camera|file)\b"
)
_OF_EVALUATION = re.compile(r"\b(?:val|valid|validat\w*|eval\w*|test\w*|predict\w*|inference)\b")
_OF_LIVES = re.compile(r"\b(?:attempts?|tr(?:y|ies)|retr(?:y|ies)|restarts?|runs?|launch(?:es)?|lives|life|pid)\b")
_DURATION = re.compile(r"\b(?:dt|time|elapsed|took|duration|seconds|secs?|ms|step time|iter time|batch time|in)$")
_NO_DURATION = re.compile(r"\b(?:eta|remaining|left|timestamp|lr|loss)\b")
_STEPS_A_SECOND = re.compile(
    r"\b(?:its?|iters?|iterations?|steps?|batch(?:es)?)(?:/|[ _]per[ _])s(?:ec(?:ond)?s?)?\)?\s*+[:=]\s*+$", re.I
)
_RATE = re.compile(r"(?:/|(?<![A-Za-z])per[ _])\s*s(?:ec(?:ond)?s?)?\)?\s*+(?:[:=]\s*+)?$", re.I)
_UNIT_BEHIND = re.compile(
    r"\s?\(?(?:(?P<rate>(?:it|its|iters?|iterations?|steps?|batch(?:es)?)/s(?:ec(?:ond)?)?)\b"
    r"|(?P<unit>ms|msecs?|milliseconds|us|s|secs?|seconds?|min|mins|minutes|h|hours?)\b"
    r"(?:\s?(?:/|per )\s?(?P<per>it|iter|iteration|step|batch)\b)?)",
    re.I,
)
_UNIT_BEFORE = re.compile(
    r"(?<!/)(?<!per )(?<!per_)(?:\(|_|\b)(?<!/)(?P<unit>ms|us|s|sec|secs|seconds|msec)\)?\s?[:=]\s*$", re.I
)
_UNIT_PER = re.compile(
    r"\b(ms|us|s|secs?|seconds)(?:/|[ _]per[ _])(?:it|iter|iteration|step|batch)\)?\s*+(?:[:=]\s*+)?$", re.I
)
_UNITS = (("ms", "ms"), ("milli", "ms"), ("us", "us"), ("min", "min"), ("s", "s"), ("h", "h"))
_KEPT = r"(?:checkpoints?|ckpts?|state|states|model|weights|snapshots?)"
START = (
    r"\b(?:start\w*|launch\w*|initiali[sz]\w*|begin\w*|running (?:training|train)|world size|distributed environment"
    r"|spawn\w*|boot\w*)\b"
)
RESUME = (
    r"\b(?:resum\w*|restor\w*|reload\w*|continu\w* (?:training|from)|"
    r"load(?:ed|ing)? (?:\w+ ){0,4}?(?:checkpoint|ckpt|snapshot)|"
    r"(?:checkpoint|ckpt|snapshot) (?:re)?(?:load|restor)(?:ed|ing))\b"
)
SAVE = (
    rf"\b(?:sav(?:e|es|ed|ing)|writ(?:e|es|ing|ten)|wrote|dump\w*|stor(?:ed|ing))\b(?:.*\b{_KEPT}\b)"
    rf"|\b{_KEPT}\b(?:.*\b(?:sav(?:e|ed|ing)|written|writing|stored|dumped)\b)"
    rf"|^(?:\w+ )?{_KEPT}(?: (?:begin|began|start|started|end|ended|done|finished|complete|completed))?$|^saved?$"
    r"|^sav(?:ed|ing)(?: to\b|$)"
)
EVAL = r"\b(?:eval\w*|validat\w*|valid|val|test(?:ing)?)\b"
INIT = r"\binitiali[sz]\w*\b"
PREP = r"\b(?:load(?:ed|ing)?|built|build(?:ing)?|prepar\w*|tokeniz\w*|download\w*|creat(?:ed|ing))\b"
FINISHED = (
    r"\b(?:train(?:ing)?|run|job|fit|optimi[sz]ation|experiment)\b.*\b(?:finish(?:ed)?|complet(?:e|ed)|done|ended|end)\b"
    r"|\b(?:finished|completed|done)\b.*\b(?:train(?:ing)?|run|job)\b|^(?:all )?(?:done|finished|completed)\b"
    r"(?! (?:with )?(?:sav|writ|dump|stor|eval|validat|test|load|restor|prepar))"
    r"|\bmax (?:steps|iters|iterations|epochs) reached\b"
)
STOPPED = r"\b(?:exiting|stopping|will be requeued|requeu\w*|time limit reached)\b"
_CRASHED = (
    r"\b(?:traceback|exception|(?:\w+)?error|fatal|crash\w*|killed|segmentation fault|core dumped|aborted"
    r"|out of memory|oom)\b"
)
OF_TRAINING = re.compile(
    r"\b(?:train\w*|steps?|iter\w*|epochs?|batch\w*|loss\w*|lr|learning rate|grad\w*|optim\w*|tokens?|reward|episode"
    r"|ckpt\w*|checkpoint\w*|eval\w*|val|acc\w*|ppl|perplexity|mfu|tput|throughput|updates?|rounds?)\b"
)
OF_A_PROCESS = re.compile(r"\b(?:pid|attempt|restart|session|boot|launch|start\w*|uuid|host\w*|node|version|commit)\b")
_BEGINS = re.compile(
    r"\b(?:saving|writing|dumping|storing|start\w*|begin\w*|began|running|evaluating|validating|launch\w*)\b"
)
_ENDS = re.compile(
    r"\b(?:saved|written|wrote|dumped|stored|done|finish\w*|complet\w*|took|ends?|ended|loss|ppl|acc\w*)\b"
)
_BACKGROUND = re.compile(r"\b(?:async\w*|background|in parallel|non blocking)\b")
_MOST, _RISING, _NEAR, _FAR = 1_000_000_000, 0.6, 0.12, 5
"""Above the first a number counts tokens, samples or times, and no steps."""
MOST_GUESSES = 5


@dataclass(frozen=True)
class StepGuess:
    """A column that may count steps."""

    group: Group
    step: int
    score: float
    done: tuple[int, ...]
    """Of each entry, how many steps are done (`index`: the number of the last)."""
    index: bool = False
    """Whether it counts from 0."""
    epoch: int | None = None
    """The column that numbers the epoch within which it counts."""
    first: int = 1
    """The number of the first epoch."""
    of: int | None = None
    """The column that says how many steps an epoch has."""
    steps: int | None = None
    """How many they are, where no column says it."""
    carried: tuple[Group, int] | None = None
    """Other lines that number the epoch, and their column."""
    is_epoch: bool = False
    """Whether it counts epochs, of a log that names no other steps."""
    begins: bool = False
    """Whether its lines say that a step begins."""
    each: tuple[int, str, str] | None = None
    """The column of the time of a step, its unit, and of what it is: `mean`, `last`, or `all` since the last record."""
    elapsed: tuple[int, str] | None = None
    """The column of the time since something began, and its unit; "": a clock."""

    @cached_property
    def stride(self) -> int:
        """How many steps records mostly stand apart."""
        return usual_stride(self.done)[0]

    @property
    def column(self) -> ValueColumn:
        return self.group.columns[self.step]

    @property
    def name(self) -> str:
        """What stands before its number."""
        return self.column.name or f"{self.column.texts[0]}, …"


@dataclass(frozen=True)
class PhaseGuess:
    """What lines may say beside the steps. took: the columns that may be its length, with their units; edge: `begin` or
    `end` where other lines say the other."""

    event: str
    group: Group
    edge: str = ""
    took: tuple[tuple[int, str], ...] = ()
    background: bool = False


def unit_of(before: str, after: str) -> tuple[str, bool] | None:
    """The unit of a number by the text around it, and whether it is the time of one step. Of a key, which has nothing
    behind it, the same."""
    if not after and re.fullmatch(r"[\w./@ ()-]+", before) and not before[-1:].isspace():
        return _unit_of_key(before)
    if _STEPS_A_SECOND.search(before[-40:]):
        return "per_s", True
    if _NO_DURATION.search(plain(before)[-24:]) or _RATE.search(before[-24:]):
        return None
    behind = _UNIT_BEHIND.match(after)
    if behind is not None:
        return ("per_s", True) if behind["rate"] else (_unit(behind["unit"]), behind["per"] is not None)
    per = _UNIT_PER.search(before)
    if per is not None:
        return _unit(per[1]), True
    ahead = _UNIT_BEFORE.search(before)
    if ahead is not None:
        return _unit(ahead["unit"]), bool(re.search(r"\b(?:step|iter\w*|batch)\b", plain(before)))
    return ("s", False) if _DURATION.search(plain(before)) else None


def _unit_of_key(key: str) -> tuple[str, bool] | None:
    words = plain(key)
    if re.search(r"\b(?:its|iters|iterations|steps|it) per s(?:ec\w*)?\b", words):
        return "per_s", True
    named = re.search(r"\b(?:time|duration|elapsed|took|latency|dt|dur|seconds|secs?|ms|s|wall|wallclock)\b", words)
    if _NO_DURATION.search(words) or _RATE.search(key) or not named:
        return None
    unit = re.search(r"\b(ms|msecs?|milliseconds|us|ns|s|secs?|seconds|min|minutes)$", words)
    return (_unit(unit[1]) if unit else "s"), bool(re.search(r"\b(?:step|iter\w*|batch|it)\b", words))


def _unit(text: str) -> str:
    text = text.lower()
    return "ns" if text == "ns" else next(unit for start, unit in _UNITS if text.startswith(start))


def likeness(name: str) -> float:
    """How much the words before a number say that it counts steps."""
    if _OF_EVALUATION.search(name):
        return -4.0
    if STEP.search(name):
        return 1.0 if re.search(r"\b(?:warmup|max|total|num)\b", name) else 3.0
    return -4.0 if _NO_STEP.search(name) else 0.0


def step_guesses(log: Log) -> list[StepGuess]:
    """What may count steps, the likeliest first: at most `MOST_GUESSES`."""
    epochs = next((found for group in log.groups if (found := _epoch_lines(group)) is not None), None)
    guesses = [one for group in log.groups[:200] for one in _of_group(group, epochs)]
    guesses = [one for one in guesses if not any(_counts_for(one, other) for other in guesses)]
    ranked = sorted(guesses, key=lambda one: -one.score)
    most = max((len(one.done) for one in ranked if not is_other(one.group.about)), default=0)
    ranked.sort(key=lambda one: is_other(one.group.about) or 5 * len(one.done) <= most)  # a start may name a step, too
    of_epochs = [one for group in log.groups[:200] for one in _epochs_as_steps(group)]
    of_epochs.sort(key=lambda one: (is_other(one.group.about), -one.score))
    ranked = [*ranked[: MOST_GUESSES - min(2, len(of_epochs))], *of_epochs][:MOST_GUESSES]
    return [_ordered(one, [*guesses, *of_epochs]) for one in ranked]


def _counts_for(one: StepGuess, other: StepGuess) -> bool:
    """Whether the first counts so many of whatever for each one that the second counts, as samples for each step."""
    if one.group is not other.group or one.step == other.step or likeness(one.column.name) > 0:
        return False
    pairs = list(zip(one.done, other.done, strict=True))
    return all(b > 0 and a % b == 0 for a, b in pairs) and len({a // b for a, b in pairs} - {1}) == 1


def _ordered(one: StepGuess, guesses: Iterable[StepGuess]) -> StepGuess:
    """Of two wordings with one number the later one is the record; of one that says that a step begins, the other; else
    it is the begin."""
    if not _BEGINS.search(one.group.about[:60]) or _ENDS.search(one.group.about) or len(one.done) < 2:
        return one
    others = [
        other for other in guesses
        if other.group is not one.group and other.done == one.done and other.group.places[0] > one.group.places[0]
    ]  # fmt: skip
    return others[0] if others else replace(one, begins=True, index=False)


def is_other(about: str) -> bool:
    """Whether words are about an evaluation, a save or a load, and not about training."""
    said = about[:60]
    found = re.search(f"{EVAL}|{PREP}|{SAVE}|{RESUME}|^test$", said)
    of_both = found is not None and re.search(r"\btrain\w*\b", said) and re.match(EVAL, found[0])
    return found is not None and not of_both


def tells_end(about: str) -> bool:
    """Whether words say that something ended, failed or was saved: no launch begins with it."""
    return re.search(rf"{_CRASHED}|{FINISHED}|{STOPPED}|{SAVE}|\bwarn(?:ing)?\b", about[:200]) is not None


def names_epoch(group: Group) -> bool:
    """Whether lines number an epoch: they come again with each."""
    return any(EPOCH.search(column.name) and len(set(column.texts)) > 1 for column in group.columns)


def _of_group(group: Group, elsewhere: tuple[Group, int] | None) -> Iterator[StepGuess]:
    if len(group.entries) < 2 or re.search(f"{SAVE}|{RESUME}", group.about[:60]):
        return
    penalty = 2.0 if is_other(group.about) else 0.0
    for at, column in enumerate(group.columns):
        values = column.whole
        other = column.unit is not None or not column.counts or column.joined or EPOCH.search(column.name)
        if values is None or other or max(values) > _MOST:
            continue
        guess = _guess(group, at, values, elsewhere, penalty)
        if guess is not None:
            yield guess


def _guess(
    group: Group, at: int, values: list[int], elsewhere: tuple[Group, int] | None, penalty: float
) -> StepGuess | None:
    column = group.columns[at]
    made = _within_epochs(StepGuess(group, at, 0.0, tuple(values)), values, elsewhere)
    likely = likeness(column.name) + (1.5 if column.of is not None else 0.0)
    likely += 1.0 if "global" in column.name else 3.0 if column.name.endswith("num updates") else 0.0
    told = [b for a, b in zip([None, *made.done], made.done, strict=False) if a != b]
    rises = _rising(told)
    constant = len(set(values)) < 2 and column.of is None
    if constant or rises < _RISING or len(set(made.done)) < min(3, len(group.entries)) or likely < 0:
        return None
    regular = usual_stride(told)[1] / max(1, len(made.done) - 1)
    if likely == 0 and (penalty or regular < _RISING or len(group.entries) < 3):  # in lines about something else
        return None
    score = likely + regular + rises + math.log10(len(group.entries)) - penalty
    return _timed(replace(made, index=_is_index(made, values), score=score))


def _is_index(made: StepGuess, values: Sequence[int]) -> bool:
    """Whether numbers count from 0."""
    of = made.column.of
    total = None if of is None else next(iter(made.group.columns[of].whole or ()), None)
    stride, _ = usual_stride(values)
    index = min(values) == 0 or (total is not None and stride == 1 and max(values) == total - 1)
    index = index or (stride > 1 and all(value % stride == stride - 1 for value in values))
    drawn = any(one.is_elapsed for one in made.group.columns)
    return index and (total is None or max(values) != total) and not drawn


def _timed(made: StepGuess) -> StepGuess:
    """With what says how long steps took."""
    group, has_times = made.group, _has_times(made.group)
    each, elapsed = _each(made), None
    if not has_times:
        elapsed, each = _elapsed(made, each)
    timed = 0.5 if each is not None or elapsed is not None or has_times else -3.0
    if each is not None and elapsed is None and not has_times and _of_last(made, group.columns[each[0]]):
        each = (each[0], each[1], "last")
    return replace(made, score=made.score + timed, each=None if elapsed is not None else each, elapsed=elapsed)


def _of_last(made: StepGuess, column: ValueColumn) -> bool:
    """Whether times are those of the last step alone: one is far longer than others at an even distance, for an
    evaluation."""
    usual = median(column.numbers)
    far = [done for done, time in zip(made.done, column.numbers, strict=True) if time > _FAR * usual]
    ahead = [b - a for a, b in pairwise(far) if b > a]
    return made.stride > 1 and made.epoch is None and bool(ahead) and all(one % min(ahead) == 0 for one in ahead)


def _epochs_as_steps(group: Group) -> Iterator[StepGuess]:
    """The columns that count epochs: the steps of a log that names no others."""
    for at, column in enumerate(group.columns):
        values = column.whole if EPOCH.search(column.name) and not column.joined else None
        if values is not None and len(values) >= 2 and max(values) <= _MOST and _rising(values) >= _RISING:
            made = StepGuess(group, at, 1.0 + math.log10(len(values)), tuple(values), is_epoch=True)
            yield _timed(replace(made, index=_is_index(made, values)))


def _epoch_lines(group: Group) -> tuple[Group, int] | None:
    """Lines that name an epoch and no step, with the column of the epoch."""
    if any(likeness(column.name) > 0 and not column.joined for column in group.columns) or len(group.entries) < 2:
        return None
    found = [at for at, one in enumerate(group.columns) if EPOCH.search(one.name) and one.whole and not one.joined]
    return (group, found[0]) if found else None


def _within_epochs(made: StepGuess, values: list[int], elsewhere: tuple[Group, int] | None) -> StepGuess:
    """With the epoch within which steps begin anew, where they do."""
    group, at = made.group, made.step
    others = [(row, one) for row, one in enumerate(group.columns) if row != at and one.counts and one.unit is None]
    own = next((row for row, one in others if EPOCH.search(one.name) and one.whole), None)
    if own is None:
        own = next((row for row, one in others if _numbers_epochs(one, values)), None)
    if own is not None:
        named = group.columns[own].whole or []
    elif elsewhere is None or elsewhere[0] is group or group.places[0] < elsewhere[0].places[0]:
        return made  # lines that name an epoch where it ends
    else:
        places, numbers = elsewhere[0].places, elsewhere[0].columns[elsewhere[1]].whole or []
        named = [numbers[max(0, bisect_right(places, one) - 1)] for one in group.places]
    changes = [row for row, (a, b) in enumerate(pairwise(named)) if b > a]
    anew = [row for row in changes if values[row + 1] <= values[row]]
    if not changes or len(anew) < 0.8 * len(changes):
        return made
    first = 0 if min(named) == 0 else 1
    of = group.columns[at].of
    steps = None if of is not None else _steps_of_an_epoch(values)
    sizes = (group.columns[of].whole or [0] * len(values)) if of is not None else [steps or 0] * len(values)
    done = [max(0, epoch - first) * size + value for epoch, size, value in zip(named, sizes, values, strict=True)]
    return replace(
        made, done=tuple(done), epoch=own, first=first, of=of, steps=steps, carried=elsewhere if own is None else None
    )


def _numbers_epochs(column: ValueColumn, values: Sequence[int]) -> bool:
    """Whether numbers go up by one where values fall to where they began, and nowhere else: those of epochs, whatever
    they are called; not those of attempts and processes, which may redo a part only."""
    numbers = column.whole
    falls = [b < a for a, b in pairwise(values)]
    if numbers is None or not any(falls) or min(numbers) > 1 or _OF_LIVES.search(column.name):
        return False
    anew = all(b <= values[0] for a, b in pairwise(values) if b < a)
    return anew and [b - a for a, b in pairwise(numbers)] == [int(fall) for fall in falls]


def _steps_of_an_epoch(values: Sequence[int]) -> int:
    """How many steps an epoch has, by the greatest number that was printed and the usual distance between two."""
    stride, _ = usual_stride(values)
    greatest, least = max(values), min(values)
    if least == 0:
        return greatest + stride
    return greatest + 1 if stride > 1 and least % stride == stride - 1 else greatest


def usual_stride(numbers: Iterable[int]) -> tuple[int, int]:
    """By how much numbers mostly go up, and how often; (1, 0) where none does."""
    strides = Counter(b - a for a, b in pairwise(numbers) if b > a)
    return strides.most_common(1)[0] if strides else (1, 0)


def _rising(values: Sequence[int]) -> float:
    pairs = list(pairwise(values))
    return sum(b > a for a, b in pairs) / len(pairs) if pairs else 0.0


def _has_times(group: Group) -> bool:
    return sum(one.ns is not None for one in group.entries) > 0.8 * len(group.entries)


def usual_step(entries: Sequence[Entry], done: Sequence[int]) -> float | None:
    """The usual time of a step, s, by the times of entries; None where they have none. Where these are known to the
    second only, steps of 1.3 s mostly seem to take 1 s: then the mean of all that are near to what is usual."""
    found = [
        ((other.ns - one.ns) / 1e9, b - a)
        for (one, other), (a, b) in zip(pairwise(entries), pairwise(done), strict=False)
        if one.ns is not None and other.ns is not None and b > a and other.ns >= one.ns
    ]
    rates = [seconds / steps for seconds, steps in found if seconds > 0]
    usual = median(rates) if rates else None
    if usual is None or not have_one_fraction(one.ns for one in entries if one.ns is not None):
        return usual
    near = [(seconds, steps) for seconds, steps in found if abs(seconds - usual * steps) <= 1]
    return sum(seconds for seconds, _ in near) / sum(steps for _, steps in near) if near else usual


def _each(made: StepGuess) -> tuple[int, str, str] | None:
    """The column that is the time of one step: where entries have times, one that agrees with them."""
    columns, done = made.group.columns, made.done
    timed = [row for row, one in enumerate(columns) if one.unit is not None and row != made.step]
    timed = [row for row in timed if not _grows(columns[row].numbers, done)]
    timed = [row for row in timed if not any(_is_part(columns[row], columns[other]) for other in timed if other != row)]
    usual = usual_step(made.group.entries, done)
    if usual is None:
        timed.sort(key=lambda row: not (columns[row].unit or ("", False))[1])
        return (timed[0], (columns[timed[0]].unit or ("s", False))[0], "mean") if timed else None
    for row in timed:
        own = (columns[row].unit or ("s", False))[0]
        for unit in dict.fromkeys((own, "s", "ms")):
            seconds = [in_seconds(value, unit) for value in columns[row].numbers if value > 0]
            if seconds and abs(median(seconds) / usual - 1) < 2 * _NEAR:
                return row, unit, "mean"
        seconds = [in_seconds(value, own) for value in columns[row].numbers if value > 0]
        if seconds and made.stride > 1 and abs(median(seconds) / usual / made.stride - 1) < 2 * _NEAR:
            return row, own, "all"
        if seconds and made.is_epoch and 0.4 < median(seconds) / usual <= 1:  # beside an evaluation of each
            return row, own, "mean"
    return None


def in_seconds(value: float, unit: str) -> float:
    """Seconds of an amount in a unit; of a rate, of one step."""
    factor = UNITS[unit]
    return factor * value if factor > 0 else 1 / value if value > 0 else math.inf


def _elapsed(
    made: StepGuess, each: tuple[int, str, str] | None
) -> tuple[tuple[int, str] | None, tuple[int, str, str] | None]:
    """The column that is the time since something began, and that of one step: of several columns that grow the one
    with the greatest value; none where it says another time than all steps took by the time of one, in any unit."""
    columns, done = made.group.columns, made.done
    drawn = next((row for row, one in enumerate(columns) if one.is_elapsed), None)
    if drawn is not None:
        return (drawn, ""), each
    clocks = [
        (row, one) for row, one in enumerate(columns)
        if one.unit is not None and row != made.step and _is_clock(one.numbers, done) and not _is_of_a_step(one)
    ]  # fmt: skip
    if not clocks:
        return None, each
    row, column = max(clocks, key=lambda pair: in_seconds(pair[1].numbers[-1], (pair[1].unit or ("s", False))[0]))
    own = (column.unit or ("s", False))[0]
    if each is None:
        return (row, own), None
    pairs = zip(pairwise(done), columns[each[0]].numbers[1:], strict=False)
    took = sum((b - a) * in_seconds(one, each[1]) for (a, b), one in pairs if b > a and one > 0)
    values = column.numbers
    fitting = [
        one for one in dict.fromkeys((own, "s", "ms", "min", "h"))
        if took and 0.5 < UNITS[one] * (max(values) - min(values)) / took < 2
    ]  # fmt: skip
    return ((row, fitting[0]) if fitting else None), each


def _is_of_a_step(column: ValueColumn) -> bool:
    """Whether the words before a time say that it is that of one step, or of one thing."""
    unit = column.unit or ("s", False)
    named = re.search(r"\b(?:took|dt|duration|latency|mean|avg|average|in)$", column.name)
    return unit[0] == "per_s" or unit[1] or named is not None


def _grows(values: Sequence[float], done: Sequence[int]) -> bool:
    """Whether numbers never fall, but where the step falls, and rise: then they are no time of one step."""
    pairs = [(a, b) for (a, b), (one, other) in zip(pairwise(values), pairwise(done), strict=False) if other > one]
    return len(pairs) > 1 and all(b >= a for a, b in pairs) and any(b > a for a, b in pairs)


def _is_clock(values: Sequence[float], done: Sequence[int]) -> bool:
    """Whether numbers are the time since something began: they never fall, but where the step falls, rise from row to
    row, and come to a multiple of the usual distance of two rows."""
    ahead = [b - a for (a, b), (one, other) in zip(pairwise(values), pairwise(done), strict=False) if other > one]
    growing = _grows(values, done) and sum(one > 0 for one in ahead) >= len(ahead) / 2
    return growing and max(values) > 1.5 * median(ahead) and max(values) - min(values) > 0.3 * max(values)


def _is_part(column: ValueColumn, other: ValueColumn) -> bool:
    """Whether a time is below another one in all rows, of which it is a part then."""
    unit, whole = column.unit or ("", False), other.unit or ("", False)
    if unit[1] and not whole[1]:
        return False  # of one step, beside that of many
    values = [in_seconds(one, unit[0]) for one in column.numbers]
    others = [in_seconds(one, whole[0]) for one in other.numbers]
    return values != others and all(a <= b for a, b in zip(values, others, strict=True))


_PHASES: tuple[tuple[str, str], ...] = (
    ("finished", FINISHED), ("stopped", STOPPED), ("resume", RESUME), ("save", SAVE), ("eval", EVAL),
    ("init", INIT), ("start", START), ("prep", PREP),
)  # fmt: skip


def phase_guesses(log: Log, taken: Sequence[Group]) -> Iterator[PhaseGuess]:
    """What lines may say beside the steps: of each event those with the most words for it, begins and ends of one thing
    together. taken: groups that are steps or epochs."""
    left = [group for group in log.groups[:400] if not any(group is one for one in taken)]
    for event, pattern in _PHASES:
        those = [group for group in left if re.search(pattern, group.about[:200])]
        those = [group for group in those if event != "init" or any(_lengths(group))]  # else it is a start
        yield from _of_event(event, those)
        left = [group for group in left if not any(group is one for one in those)]


def _of_event(event: str, those: Sequence[Group]) -> Iterator[PhaseGuess]:
    for group in those:
        edge = ""
        if event in ("save", "eval"):
            is_begin = _BEGINS.search(group.about) and not _ENDS.search(group.about)
            pair = [one for one in those if one is not group and bool(_ENDS.search(one.about)) == bool(is_begin)]
            if any(abs(len(one.entries) - len(group.entries)) <= 0.2 * len(group.entries) for one in pair):
                edge = "begin" if is_begin else "end"
        yield PhaseGuess(event, group, edge, tuple(_lengths(group)), bool(_BACKGROUND.search(group.about)))


def _lengths(group: Group) -> Iterator[tuple[int, str]]:
    """The columns that may say how long something took, the likeliest first."""
    timed = [(at, one.unit) for at, one in enumerate(group.columns) if one.unit is not None and one.counts]
    for at, (unit, of_step) in sorted(timed, key=lambda pair: pair[1][1]):
        if unit != "per_s" and not (of_step and len(timed) > 1):
            yield at, unit

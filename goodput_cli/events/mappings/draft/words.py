"""The words by which lines and keys of a log say what they are about, and which lines say by them, and by where they
stand, that something began, was saved, was evaluated or ended."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_MOSTLY = 0.8
STEP = re.compile(
    r"\b(?:(?:global |train(?:ing)? |optimi[sz]er )?steps?|(?:n )?iter(?:ation)?s?|updates?|it|batch(?:es)?"
    r"|batch idx|batch id)$"
)
EPOCH = re.compile(r"\b(?:epochs?|ep)(?: train(?:ing)?)?$")
NO_STEP = re.compile(
    r"\b(?:rank|pid|micro\w*|accum\w*|substeps?|gpus?|devices?|nodes?|workers?|eta|lr|loss|seed|shards?|tokens?|samples|examples|images|seq|size"
    r"|port|line|mem|memory|bytes|layers?|consumed|world|batch size|eval|valid|val|version|id|count|total|remaining"
    r"|epochs?|ep|hosts?|scale|acc\w*|top|f1|map|auc|bleu|wer|ppl|perplexity|score|reward|mfu|tflops|throughput|grad|norm)\b"
)
_OF_EVALUATION = re.compile(r"\b(?:val|valid|validat\w*|eval\w*|test\w*|predict\w*|inference)\b")
DURATION = re.compile(r"\b(?:dt|time|elapsed|took|duration|seconds|secs?|ms|step time|iter time|batch time|in)$")
"""Words before a number that may be a time."""
_NO_DURATION = re.compile(r"\b(?:eta|remaining|left|timestamp|lr|loss)\b")
_STEPS_A_SECOND = re.compile(
    r"\b(?:its?|iters?|iterations?|steps?|batch(?:es)?)(?:/|[ _]per[ _])s(?:ec(?:ond)?s?)?\)?\s*+[:=]\s*+$",
    re.IGNORECASE,
)
"""Before a number that is so many steps a second."""
_RATE = re.compile(r"(?:/|(?<![A-Za-z])per[ _])\s*s(?:ec(?:ond)?s?)?\)?\s*+(?:[:=]\s*+)?$", re.IGNORECASE)
"""Before a number that is so many a second."""
_UNIT_BEHIND = re.compile(
    r"\s?\(?(?:(?P<rate>(?:it|its|iters?|iterations?|steps?|batch(?:es)?)/s(?:ec(?:ond)?)?)\b"
    r"|(?P<unit>ms|msecs?|milliseconds|us|s|secs?|seconds?|min|mins|minutes|h|hours?)\b"
    r"(?:\s?(?:/|per )\s?(?P<per>it|iter|iteration|step|batch)\b)?)",
    re.IGNORECASE,
)
_UNIT_BEFORE = re.compile(
    r"(?<!/)(?<!per )(?<!per_)(?:\(|_|\b)(?<!/)(?P<unit>ms|us|s|sec|secs|seconds|msec)\)?\s?[:=]\s*$", re.IGNORECASE
)
_UNITS = (("ms", "ms"), ("milli", "ms"), ("us", "us"), ("min", "min"), ("s", "s"), ("h", "h"))
START = (
    r"\b(?:start\w*|launch\w*|initiali[sz]\w*|begin\w*|running (?:training|train)|world size|distributed environment"
    r"|spawn\w*|boot\w*)\b"
)
RESUME = (
    r"\b(?:resum\w*|restor\w*|reload\w*|continu\w* (?:training|from)|"
    r"load(?:ed|ing)? (?:\w+ ){0,4}?(?:checkpoint|ckpt|snapshot)|"
    r"(?:checkpoint|ckpt|snapshot) (?:re)?(?:load|restor)(?:ed|ing))\b"
)
_KEPT = r"(?:checkpoints?|ckpts?|state|states|model|weights|snapshots?)"
SAVE = (
    rf"\b(?:sav(?:e|es|ed|ing)|writ(?:e|es|ing|ten)|wrote|dump\w*|stor(?:ed|ing))\b(?:.*\b{_KEPT}\b)"
    rf"|\b{_KEPT}\b(?:.*\b(?:sav(?:e|ed|ing)|written|writing|stored|dumped)\b)"
    rf"|^(?:\w+ )?{_KEPT}(?: (?:begin|began|start|started|end|ended|done|finished|complete|completed))?$|^saved?$"
)
"""The last as records name their kind: `ckpt_begin`, `save`."""
EVAL = r"\b(?:eval\w*|validat\w*|valid|val)\b"
PREP = r"\b(?:load(?:ed|ing)?|built|build(?:ing)?|prepar\w*|tokeniz\w*|download\w*|creat(?:ed|ing))\b"
INIT = r"\b(?:compil\w*|init (?:process|distributed)|nccl init\w*)\b"
FINISHED = (
    r"\b(?:train(?:ing)?|run|job|fit|optimi[sz]ation|experiment)\b.*\b(?:finish(?:ed)?|complet(?:e|ed)|done|ended|end)\b"
    r"|\b(?:finished|completed|done)\b.*\b(?:train(?:ing)?|run|job)\b|^(?:all )?(?:done|finished|completed)\b"
    r"|\bmax (?:steps|iters|iterations|epochs) reached\b"
)
TERMINATED = r"\b(?:sigterm|sigint|keyboardinterrupt|preempt\w*|time limit|received signal|evict\w*)\b"
CRASHED = (
    r"\b(?:traceback|exception|(?:\w+)?error|fatal|crash\w*|killed|segmentation fault|core dumped|aborted"
    r"|out of memory|oom)\b"
)
BEGINS = re.compile(r"\b(?:saving|writing|dumping|storing|start\w*|begin\w*|running|evaluating|validating|launch\w*)\b")
ENDS = re.compile(r"\b(?:saved|written|wrote|dumped|stored|done|finish\w*|complet\w*|took|end\w*|loss|ppl|acc\w*)\b")


@dataclass(frozen=True)
class Thing:
    """Similar lines or records."""

    at: int
    """Its number among all."""
    text: str
    """What is said, in small letters."""
    places: Sequence[int]
    """Where they stand in the log."""
    count: int
    took: bool
    """Whether one of its numbers is a duration."""


@dataclass(frozen=True)
class Chosen:
    """What lines or records say."""

    event: str
    at: int
    edge: str = ""
    uses_took: bool = False
    once: bool = False


@dataclass(frozen=True)
class Attempts:
    """Where in a log steps stand."""

    steps: Sequence[int]
    falls: frozenset[int]
    """The first steps of attempts but the first."""

    def begins(self, place: int) -> bool:
        """Whether the next step behind a place is the first of an attempt."""
        following = self._next(place)
        return following is not None and (following == self.steps[0] or following in self.falls)

    def ends(self, place: int) -> bool:
        """Whether the step before a place is the last of an attempt."""
        following = self._next(place)
        return bool(self.steps) and place > self.steps[0] and (following is None or following in self.falls)

    def inside(self, place: int) -> bool:
        """Whether a step stands before a place."""
        return bool(self.steps) and place > self.steps[0]

    def _next(self, place: int) -> int | None:
        at = bisect_right(self.steps, place)
        return self.steps[at] if at < len(self.steps) else None


def phases(things: Sequence[Thing], attempts: Attempts, timed: bool) -> list[Chosen]:
    """What lines say that are no steps. timed: whether lines have times, so that two of them are a begin and an end."""
    found: list[Chosen] = []
    left = list(things)
    head = _launch(things, attempts) if timed else None
    if head is not None:
        found.append(Chosen("start", head.at))
        left = [one for one in left if one is not head]
    for event, pattern, where in (
        ("terminated", TERMINATED, attempts.ends),
        ("finished", FINISHED, attempts.ends),
        ("crashed", CRASHED, attempts.ends),
        ("resume", RESUME, attempts.begins),
        ("save", SAVE, attempts.inside),
        ("eval", EVAL, attempts.inside),
        ("start", START, attempts.begins),
        ("init", INIT, attempts.begins),
        ("prep", PREP, attempts.begins),
    ):
        if event == "start" and head is not None:
            continue
        those = [one for one in left if re.search(pattern, one.text) and _mostly(one.places, where)]
        chosen = list(_chosen(event, those, timed, 1 + len(attempts.falls)))
        found += chosen
        used = {one.at for one in chosen}
        left = [one for one in left if one.at not in used]
    return found


def _launch(things: Sequence[Thing], attempts: Attempts) -> Thing | None:
    """The lines with which each launch of a program begins: the first of the log that come again, each time before the
    first step of an attempt, and behind a step, a crash or others that come again with them; None if there are none.
    So launches that died before a step are told apart."""
    candidates = [
        one for one in things
        if one.count == len(one.places) >= 2 and _mostly(one.places, attempts.begins, 1.0) and not _tells(one.text)
    ]  # fmt: skip
    crashes = sorted(place for one in things if re.search(CRASHED, one.text) for place in one.places)
    for head in sorted(candidates, key=lambda one: one.places[0]):
        others = [one for one in candidates if one is not head and one.places[0] > head.places[0]]
        if all(_is_launch(a, b, attempts, crashes, others) for a, b in pairwise(head.places)):
            return head
    return None


def _tells(text: str) -> bool:
    """Whether the words of a line say that something ended, failed or was saved: no launch begins with it."""
    said = (CRASHED, TERMINATED, FINISHED, SAVE, r"\bwarn(?:ing)?\b")
    return any(re.search(pattern, text) for pattern in said)


def _is_launch(
    before: int, at: int, attempts: Attempts, crashes: Sequence[int], others: Sequence[Thing]
) -> bool:  # fmt: skip
    """Whether a line is one of another launch than that before it."""
    if bisect_right(attempts.steps, before) < bisect_right(attempts.steps, at):
        return True
    if bisect_right(crashes, before) < bisect_right(crashes, at):
        return True
    return any(any(before < a < at < b for a, b in pairwise(one.places)) for one in others)


def _chosen(event: str, those: Sequence[Thing], timed: bool, attempts: int) -> Iterable[Chosen]:
    if not those:
        return
    if event == "start":
        yield Chosen(event, min(those, key=lambda one: (one.count < attempts, one.places[0])).at, once=True)
    elif event in ("save", "eval"):
        yield from _phase(event, those, timed)
    elif event in ("init", "prep"):
        yield from (Chosen(event, one.at, uses_took=True) for one in those[:3] if one.took)
    elif event == "crashed":
        yield Chosen(event, min(those, key=lambda one: one.places[0]).at)
    else:
        yield Chosen(event, max(those, key=lambda one: one.count).at, uses_took=event == "resume")


def _phase(event: str, those: Sequence[Thing], timed: bool) -> Iterable[Chosen]:
    """One line with its duration; else two, that something begins and that it ended; else one."""
    long = [one for one in those if one.took]
    if long:
        yield Chosen(event, max(long, key=lambda one: one.count).at, uses_took=True)
        return
    begins = [one for one in those if BEGINS.search(one.text) and not ENDS.search(one.text)]
    ends = [one for one in those if ENDS.search(one.text)]
    if begins and ends and timed:
        first, last = (max(some, key=lambda one: one.count) for some in (begins, ends))
        if abs(first.count - last.count) <= 0.2 * max(first.count, last.count):
            yield Chosen(event, first.at, "begin")
            yield Chosen(event, last.at, "end")
            return
    yield Chosen(event, max(ends or begins or those, key=lambda one: one.count).at)


def _mostly(places: Sequence[int], where: Callable[[int], bool], share: float = _MOSTLY) -> bool:
    return sum(map(where, places)) >= share * len(places)


def plain(text: str) -> str:
    """Small letters, with blanks for all that parts words."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", text)
    return re.sub(r"[\s_./:=\\-]+", " ", apart).lower().strip()


def step_likeness(label: str) -> float:
    """How much the words before a number say that it counts steps."""
    if _OF_EVALUATION.search(label):
        return -4.0
    if STEP.search(label):
        return 1.0 if re.search(r"\b(?:warmup|max|total|num)\b", label) else 3.0
    return -4.0 if NO_STEP.search(label) else 0.0


def unit_of(before: str, after: str) -> tuple[str, bool] | None:
    """The unit of a number by the text around it, and whether it is the time of one step."""
    if _STEPS_A_SECOND.search(before[-40:]):
        return "per_s", True
    if _NO_DURATION.search(plain(before)[-24:]) or _RATE.search(before[-24:]):
        return None
    behind = _UNIT_BEHIND.match(after)
    if behind is not None:
        if behind["rate"]:
            return "per_s", True
        return _unit(behind["unit"]), behind["per"] is not None
    ahead = _UNIT_BEFORE.search(before)
    if ahead is not None:
        return _unit(ahead["unit"]), bool(re.search(r"\b(?:step|iter\w*|batch)\b", plain(before)))
    return ("s", False) if DURATION.search(plain(before)) else None


def unit_of_key(key: str) -> tuple[str, bool] | None:
    """The same of the key of a number in a record."""
    words = plain(key)
    per_step = bool(re.search(r"\b(?:step|iter\w*|batch|it)\b", words))
    if re.search(r"\b(?:its|iters|iterations|steps|it) per s(?:ec\w*)?\b", words):
        return "per_s", True
    if (
        _NO_DURATION.search(words)
        or _RATE.search(key)
        or not re.search(r"\b(?:time|duration|elapsed|took|latency|dt|seconds|secs?|ms|s)\b", words)
    ):
        return None
    unit = re.search(r"\b(ms|msecs?|milliseconds|us|ns|s|secs?|seconds|min|minutes)$", words)
    return (_unit(unit[1]) if unit else "s"), per_step


def _unit(text: str) -> str:
    text = text.lower()
    return "ns" if text == "ns" else next(unit for start, unit in _UNITS if text.startswith(start))

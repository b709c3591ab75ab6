"""The words by which lines and keys say what they are about."""

from __future__ import annotations

import re

STEP = re.compile(
    r"\b(?:(?:global |train(?:ing)? |optimi[sz]er )?steps?|(?:n )?iter(?:ation)?s?|updates?|it|batch(?:es)?|batch idx)$"
)
EPOCH = re.compile(r"\b(?:epochs?|ep)(?: train(?:ing)?)?$")
NO_STEP = re.compile(
    r"\b(?:rank|pid|gpus?|devices?|nodes?|workers?|eta|lr|loss|seed|shards?|tokens?|samples|examples|images|seq|size"
    r"|port|line|mem|memory|bytes|layers?|consumed|world|batch size|eval|valid|val|version|id|count|total|remaining"
    r"|epochs?|ep|hosts?|scale)\b"
)
DURATION = re.compile(r"\b(?:dt|time|elapsed|took|duration|seconds|secs?|ms|step time|iter time|batch time|in)$")
"""Words before a number that may be a time."""
_NO_DURATION = re.compile(r"\b(?:eta|remaining|left|timestamp|lr|loss)\b")
_UNIT_BEHIND = re.compile(
    r"\s?\(?(?:(?P<rate>(?:it|its|iters?|iterations?|steps?|batch(?:es)?)/s(?:ec(?:ond)?)?)\b"
    r"|(?P<unit>ms|msecs?|milliseconds|us|s|secs?|seconds?|min|mins|minutes|h|hours?)\b"
    r"(?:\s?(?:/|per )\s?(?P<per>it|iter|iteration|step|batch)\b)?)",
    re.IGNORECASE,
)
_UNIT_BEFORE = re.compile(r"(?:\(|_|\b)(?P<unit>ms|us|s|sec|secs|seconds|msec)\)?\s?[:=]\s*$", re.IGNORECASE)
_UNITS = (("ms", "ms"), ("milli", "ms"), ("us", "us"), ("min", "min"), ("s", "s"), ("h", "h"))
START = (
    r"\b(?:start\w*|launch\w*|initiali[sz]\w*|begin\w*|running (?:training|train)|world size|distributed environment"
    r"|spawn\w*)\b"
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
)
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


def plain(text: str) -> str:
    """Small letters, with blanks for all that parts words."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", text)
    return re.sub(r"[\s_./:=\\-]+", " ", apart).lower().strip()


def step_likeness(label: str) -> float:
    """How much the words before a number say that it counts steps."""
    if STEP.search(label):
        return 1.0 if re.search(r"\b(?:val|valid|eval|test|warmup|max|total|num)\b", label) else 3.0
    return -4.0 if NO_STEP.search(label) else 0.0


def unit_of(before: str, after: str) -> tuple[str, bool] | None:
    """The unit of a number by the text around it, and whether it is the time of one step."""
    if _NO_DURATION.search(plain(before)[-24:]):
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
    if _NO_DURATION.search(words) or not re.search(
        r"\b(?:time|duration|elapsed|took|latency|dt|seconds|secs?|ms|s)\b", words
    ):
        return None
    unit = re.search(r"\b(ms|msecs?|milliseconds|us|ns|s|secs?|seconds|min|minutes)$", words)
    return (_unit(unit[1]) if unit else "s"), per_step


def _unit(text: str) -> str:
    text = text.lower()
    return "ns" if text == "ns" else next(unit for start, unit in _UNITS if text.startswith(start))

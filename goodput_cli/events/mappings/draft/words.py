"""Words that identify the meaning of a number, a key or a line, in text, JSON and tables."""

from __future__ import annotations

import re

STEP = re.compile(
    r"\b(?:(?:global |train(?:ing)? |optimi[sz]er )?steps?|(?:n )?iter(?:ation)?s?|up(?:dates?)?|it|batch(?:es)?"
    r"|batch idx|batch id)$"
)
EPOCH = re.compile(r"^(?!.*\b(?:num|number|total|max)\b).*\b(?:epochs?|ep)(?: train(?:ing)?)?$")
"""Before the number of an epoch; not before how many there are."""
_NO_STEP = re.compile(
    r"\b(?:rank|pid|process|port|micro\w*|accum\w*|substeps?|gpus?|cuda|cpu|tpu|npu|xpu|hpu|devices?|nodes?|workers?|eta|lr|loss|seed|shards?"
    r"|tokens?|samples|examples|images|seq|size|line|mem|memory|bytes|layers?|consumed|world|batch size|eval|valid|val"
    r"|version|id|count|total|remaining|epochs?|ep|hosts?|scale|acc\w*|top|f1|map|auc|bleu|wer|ppl|perplexity|score"
    r"|reward|mfu|tflops|throughput|grad|norm|warmup|max|num|camera|file)\b"
)
_OF_EVALUATION = re.compile(r"\b(?:val|valid|validat\w*|eval\w*|test\w*|predict\w*|inference)\b")
OF_LIVES = re.compile(r"\b(?:attempts?|tr(?:y|ies)|retr(?:y|ies)|restarts?|runs?|launch(?:es)?|lives|life|pid)\b")
OF_ANY_LIFE = re.compile(rf"{OF_LIVES.pattern}|\b(?:generation|incarnation|rendezvous|rdzv|resum\w*|reload\w*)\b")
OF_TRAINING = re.compile(
    r"\b(?:train\w*|steps?|iter\w*|epochs?|batch\w*|loss\w*|lr|learning rate|grad\w*|optim\w*|tokens?|reward|episode"
    r"|ckpt\w*|checkpoint\w*|eval\w*|val|acc\w*|ppl|perplexity|mfu|tput|throughput|updates?|rounds?)\b"
)
OF_INFERENCE = re.compile(
    r"\b(?:requests?|quer(?:y|ies)|prompts?|responses?|answers?|infer\w*|predict\w*|generat(?:e|es|ed|ing|ion)\w*"
    r"|decod(?:e|es|ed|ing)|sampl(?:ing|ers?)|translat\w*|transcrib\w*|embedding texts)\b"
)
"""Work of a model that is not trained by it."""
OF_PREPARATION = re.compile(
    r"\b(?:cluster(?:s|ed|ing)?|k ?means|extract\w*|embed(?:s|ded|ding)?|encod(?:es|ed|ing)|tokeni[sz]\w*|convert\w*"
    r"|(?:pre ?)?process(?:es|ed|ing)|download\w*|index(?:es|ed|ing)|render\w*|crawl\w*|scrap(?:es|ed|ing)"
    r"|resiz(?:es|ed|ing)|augmenting|filter(?:s|ed|ing)|scann(?:ed|ing)"
    r"|comput(?:es|ed|ing) (?:features?|embeddings?|stat\w*))\b"
)
"""Work on data before or after training."""
OF_LEARNING = re.compile(
    r"\b(?:train\w*|epochs?|ep|(?:\w+ )?loss\w*|lr|learning rate|grad\w*|optim\w*|rewards?|episodes?|ppl|perplexity"
    r"|elbo|kld?|acc\w*|mfu|returns?)\b"
)
"""Words that only training uses."""
OF_DATA = re.compile(
    r"\d\s?(?:(?!{0})[a-z]{{1,20}}/s|s/(?!{0})[a-z]{{1,20}})\b".format(
        r"(?:m?s|it|iters?|iterations?|steps?|ba|batch(?:es)?|epochs?|updates?|rounds?|episodes?|games?|frames?|toks?|tokens?|imgs?"
        r"|images?|seqs?)\b"
    ),
    re.IGNORECASE,
)
"""Rates of progress bars in units that training does not count, such as those of `datasets.map`."""
OF_A_PROCESS = re.compile(r"\b(?:pid|attempt|restart|session|boot|launch|start\w*|uuid|host\w*|node|version|commit)\b")
BEGINS = re.compile(
    r"\b(?:saving|writing|dumping|storing|start\w*|begin\w*|began|evaluating|validating|launch\w*"
    r"|running(?! (?:avg|average|mean|loss|acc\w*|reward|std|var\w*)\b))\b"
)
ENDS = re.compile(
    r"\b(?:saved|written|wrote|dumped|stored|done|finish\w*|complet\w*|took|ends?|ended|loss|ppl|acc\w*)\b"
)
OF_AN_END = re.compile(r"\b(?:done|finish\w*|complet\w*|ended|end of|summary|average epoch)\b")
BACKGROUND = re.compile(r"\b(?:async\w*|background|in parallel|non blocking)\b")
OF_A_STEP = re.compile(r"\b(?:took|dt|duration|latency|mean|avg|average|in)$")
"""Before a time: it is of one thing."""
OF_A_RECORD = re.compile(r"^(?:(?:train(?:ing)?|epoch|loop) )?(?:runtime|run time|time|took|takes|elapsed|duration)$")
"""Before a time: it is of the whole record."""
_KEPT = r"(?:checkpoints?|ckpts?|state|states|model|weights|snapshots?|pth?|safetensors)"
START = (
    r"\b(?:start\w*|launch\w*|initiali[sz]\w*|begin\w*|running (?:training|train)|world size|distributed environment"
    r"|spawn\w*|boot\w*)\b"
)
RESUME = (
    r"\b(?:resum\w*|restor\w*|reload\w*|continu\w* (?:training|from|at)|"
    r"load(?:ed|ing)? [^,;]{0,60}?(?:checkpoints?|ckpts?|snapshots?|state dict|weights|step|epoch|iter)\b|"
    r"load(?:ed|ing)? (?:\w+ ){0,4}?(?:checkpoint|ckpt|snapshot)|"
    r"(?:checkpoint|ckpt|snapshot) (?:re)?(?:load|restor)(?:ed|ing))\b"
)
SETUP = (
    r"\b(?:config\w*|namespace|arguments?|args|param(?:eter)?s|seed|cuda|gpus?|devices?|models?|version|host\w*|pid)\b"
)
"""What a process reports once, not at each epoch."""
ROLLBACK = r"\b(?:roll(?:ed|ing|s)? ?back|revert(?:ed|ing|s)?)\b"
SAVE = (
    rf"\b(?:sav(?:e|es|ed|ing)|writ(?:e|es|ing|ten)|wrote|dump\w*|stor(?:ed|ing))\b(?:.*\b{_KEPT}\b)"
    rf"|\b{_KEPT}\b(?:.*\b(?:sav(?:e|ed|ing)|written|writing|stored|dumped)\b)"
    rf"|^(?:(?:\w+ )?{_KEPT}|saved?)"
    r"(?:[ |]{1,3}(?:begin|began|start|started|end|ended|done|finished|complete|completed)"
    r"(?:[ |]{1,3}(?:at |for )?(?:step|iteration|iter|epoch) \d+)?)?$"
    r"|^sav(?:ed|ing)(?: to\b|$)"
)
EVAL = r"\b(?:eval\w*|validat\w*|valid|val|test(?:ing)?)\b"
BAR_OF_EVALUATION = rf"{EVAL}|\bmap\d"
"""Before the count of a progress bar: it is of an evaluation, such as one of `mAP50`."""
INIT = r"\binitiali[sz]\w*\b"
PREP = r"\b(?:load(?:ed|ing)?|built|build(?:ing)?|prepar\w*|tokeniz\w*|download\w*|creat(?:ed|ing))\b"
FINISHED = (
    r"\b(?:train(?:ing)?|run|job|fit|optimi[sz]ation|experiment)\b.*\b(?:finish(?:ed)?|complet(?:e|ed)|done|ended|end)\b"
    r"|\b(?:finished|completed|done)\b.*\b(?:train(?:ing)?|run|job)\b|^(?:all )?(?:done|finished|completed)\b"
    r"(?! (?:with )?(?:sav|writ|dump|stor|eval|validat|test|load|restor|prepar))"
    r"|\bmax (?:steps|iters|iterations|epochs) reached\b"
)
OF_LAUNCHERS = r"(?:srun|salloc|sbatch|slurmstepd|submitit|mpirun|prterun)\b"
"""First words of lines from launchers and schedulers: their reports about a job's end are read as such."""
_ABOUT_PROCESSES = re.compile(
    r"\b(?:kill\w*|terminat\w*|sending|signal\w*|launch\w*|spawn\w*|start\w*|stop\w*|exit\w*|wait\w*) "
    r"(?:the |child |worker |sub ?|main )*process(?:es)?\b|\bclosing signal\b|\bexit ?codes?\b",
)
_JSON_MEMBER = re.compile(r'"[^"]*+"\s*+:\s*+(?:"[^"]*+"\s*+|[^,"{}]*+),?|[-+.\deE]++\s*+,|[\[\]{},\s]++')
STOPPED = r"\b(?:exiting|stopping|will be requeued|requeu(?:ed|ing)|time limit reached)\b"
CRASHED = (
    r"\b(?:traceback|exception|(?:\w+)?error|fatal|crash\w*|killed|segmentation fault|core dumped|aborted"
    r"|out of memory|oom)\b"
)
_STEP_OR_LIKE = r"(?:its?|iters?|iterations?|steps?|batch(?:es)?)"
_SECONDS = r"(?P<unit>ms|msecs?|milliseconds|us|ns|s|secs?|seconds?|mins?|minutes|h|hours?)"
_DURATION = re.compile(
    r"\b(?:dt|time|elapsed|took|duration|seconds|secs?|ms|step time|iter time|batch time|in"
    r"|(?:batch|step|iter|reader|data) cost)$"
)
_DURATION_OF_KEY = re.compile(
    r"\b(?:(?:batch|step|iter|reader|data) cost|time|duration|elapsed|took|latency|dt|dur|seconds|secs?|ms|s|wall"
    r"|wallclock)\b"
)
_NO_DURATION = re.compile(r"\b(?:eta|remaining|left|timestamp|lr|loss)\b")
_STEPS_A_SECOND = re.compile(rf"\b{_STEP_OR_LIKE}(?:/|[ _]per[ _])s(?:ec(?:ond)?s?)?\)?\s*+(?:[:=]\s*+)?$")
_RATE = re.compile(r"(?:/|(?<![a-z])per[ _])\s*s(?:ec(?:ond)?s?)?\)?\s*+(?:[:=]\s*+)?$")
_UNIT_BEHIND = re.compile(
    rf"\s?\(?(?:(?P<rate>{_STEP_OR_LIKE}/s(?:ec(?:ond)?)?)\b"
    rf"|{_SECONDS}\b(?:\s?(?:/|per )\s?(?P<per>it|iter|iteration|step|batch)\b)?)",
)
_UNIT_BEFORE = re.compile(rf"(?<!/)(?<!per )(?<!per_)(?:\(|_|\b)(?<!/){_SECONDS}\)?\s?[:=]\s*$")
_UNIT_PER = re.compile(rf"\b{_SECONDS}(?:/|[ _]per[ _])(?:it|iter|iteration|step|batch)\)?\s*+(?:[:=]\s*+)?$")
_OF_ONE = re.compile(r"\b(?:step|iter\w*|batch|it)\b")
_UNITS = (("milli", "ms"), ("ms", "ms"), ("us", "us"), ("ns", "ns"), ("min", "min"), ("s", "s"), ("h", "h"))
_OF_NO_WORK = frozenset(("progress", "total", "overall", "all", "main"))
"""Words in names of progress bars that do not tell what these count."""
_VALUE = re.compile(r"[a-z]\w{0,40}[:=] ?[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\d%])")


def plain(text: str) -> str:
    """Return text in lowercase, with words separated by single blanks."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", text)
    return re.sub(r"[\s_./:=\\-]+", " ", apart).lower().strip()


def unit_of(before: str, after: str) -> tuple[str, bool] | None:
    """Return the unit of a number from the text around it, and True if it is a step time; None without a unit."""
    words = plain(before)
    # When Python ignores case, non-ASCII letters match `s`, `i` and `k`.
    before, after = before.lower(), after.lower()
    if _STEPS_A_SECOND.search(before[-40:]):
        return "per_s", True
    if _NO_DURATION.search(words[-24:]) or _RATE.search(before[-24:]):
        return None
    behind = _UNIT_BEHIND.match(after)
    if behind is not None:
        return ("per_s", True) if behind["rate"] else (_unit(behind["unit"]), behind["per"] is not None)
    per, ahead = _UNIT_PER.search(before), _UNIT_BEFORE.search(before)
    if per is not None:
        return _unit(per["unit"]), True
    if ahead is not None:
        return _unit(ahead["unit"]), _OF_ONE.search(words) is not None
    return ("s", False) if _DURATION.search(words) else None


def unit_of_key(key: str) -> tuple[str, bool] | None:
    """Return the same from the name of a value in records."""
    words = plain(key)
    if _STEPS_A_SECOND.search(words):
        return "per_s", True
    if _NO_DURATION.search(words) or _RATE.search(key.lower()) or not _DURATION_OF_KEY.search(words):
        return None
    unit = re.search(rf"\b{_SECONDS}$", words)
    return (_unit(unit["unit"]) if unit else "s"), _OF_ONE.search(words) is not None


def _unit(text: str) -> str:
    return next(unit for start, unit in _UNITS if text.startswith(start))


def likeness(name: str) -> float:
    """Return a score for the words before a number as a name of steps."""
    if _OF_EVALUATION.search(name):
        return -4.0
    if STEP.search(name):
        return 1.0 if re.search(r"\b(?:warmup|max|total|num)\b", name) else 3.0
    return -4.0 if _NO_STEP.search(name) else 0.0


def is_of_one(name: str) -> bool:
    """Return True if the words before a time are about a single step."""
    return _OF_ONE.search(name) is not None


def names_no_step(name: str) -> bool:
    """Return True if the word right before a number shows that it does not count steps or epochs, as in
    `world_size=8`."""
    last = name.rpartition(" ")[2]
    return _NO_STEP.fullmatch(last) is not None and EPOCH.fullmatch(last) is None


def is_not_step(text: str) -> bool:
    """Return True if a line is of a launcher about processes, is one member of a printed JSON object, or contains no
    letter."""
    if not any(char.isalnum() for char in text) or _JSON_MEMBER.fullmatch(text.strip()) is not None:
        return True
    about = plain(text)
    return re.match(OF_LAUNCHERS, about) is not None or _ABOUT_PROCESSES.search(about[:200]) is not None


def is_other(about: str) -> bool:
    """Return True if words are about an evaluation, a save or a load, but not about training."""
    found = re.search(f"{EVAL}|{PREP}|{SAVE}|{RESUME}|^test$", about[:60])
    of_both = found is not None and re.search(r"\btrain\w*\b", about[:60]) and re.match(EVAL, found[0])
    return found is not None and not of_both


def reports_save(about: str) -> bool:
    """Return True if words report a save."""
    return re.search(SAVE, about[:200]) is not None


def reports_end(about: str) -> bool:
    """Return True if words report an end, a failure or a save, which do not begin a launch."""
    return re.search(rf"{CRASHED}|{FINISHED}|{STOPPED}|{SAVE}|\bwarn(?:ing)?\b", about[:200]) is not None


def has_plain_name(bar: str) -> bool:
    """Return True if nothing before the numbers of a progress bar tells what it counts. Values do not, as in
    `d: 0.01, gen: 0.02: 3%|`."""
    name = re.split(r"\d", _VALUE.sub("", bar.lower()), maxsplit=1)[0]
    return _OF_NO_WORK.issuperset(re.findall(r"[a-z]+", name))

"""Read blocks of lines: tracebacks, and failure reports of torchrun agents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from goodput_cli.events.evidence import UntimedEvidence
from goodput_cli.events.text.causes import KILLS, TRACEBACK, by_exit
from goodput_cli.events.text.line_timestamps import read_or_none
from goodput_cli.vocabulary.categories import KILLED, PEER_LOST, UNKNOWN_CAUSE, Role

LONGEST_TRACEBACK = 200
"""Maximum number of lines of a traceback; without an exception by then, it is dropped."""
_LONGEST_AGENT = 20_000
_INNERMOST = 5
_EXCEPTION = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?:\([\w.]*\))?(?:: ?(?P<what>.*))?$")
_NAMES = re.compile(
    r"(?:Error|Exception|Interrupt|Exit|Warning|Timeout|Failure|Fault|Abort|Aborted|Iteration|Group|NotFound|Died)$"
    r"|^[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+$"
)
_FRAME = re.compile(r'\s+File "(?P<file>[^"]*)", line \d+(?:, in (?P<function>\S+))?')
_SHOWN_FRAME = re.compile(r' {2,4}File "[^"]+", line \d+, in \S')
_HANDLED = "During handling of the above exception"
CAUSED = "The above exception was the direct cause"
_UNHANDLED = re.compile(r"\[rank\d+\]:[ \t]?$")
_RAISED_AGAIN = re.compile(
    r"Caught \w+ in (?:DataLoader worker process|pin memory thread|replica) |CheckpointException ranks:"
)
_OF_RANK = re.compile(r"\(RANK (\d{1,8})\)$")
"""Suffix of the first line of a traceback that was raised on another rank."""
_BESIDE = re.compile(
    r"^(?:Exception in thread |Exception ignored in|--- Logging error ---|Task exception was never retrieved"
    r"|Exception in callback )"
)
"""Line before the traceback of an exception that does not end its process."""
_TASK = re.compile(r"\(pid=(?P<pid>\d{1,9}), ip=(?P<host>[\w.:]+)")
_OF_A_TASK = re.compile(r"^(?:\w+\.)*RayTaskError\(\w+\): ray::")
_DIGITS = re.compile(r"\d")

_LOST_TYPES = (
    "DistBackendError", "DistNetworkError", "DistStoreError", "ChildFailedError", "RayActorError", "ActorDiedError",
    "ActorUnavailableError", "WorkerCrashedError", "NodeDiedError", "KilledWorker", "CommClosedError",
    "RendezvousConnectionError", "RendezvousClosedError", "HorovodInternalError", "BrokenPipeError",
    "ConnectionResetError", "ConnectionAbortedError", "EngineDeadError", "BrokenProcessPool",
)  # fmt: skip
_NO_STORE = re.compile(
    r"^Gloo connectFullMesh failed|gloo/transport/tcp/pair\.cc:\d+\] connect "
    r"|^connect\(\) timed out\. Original timeout|connection to the C10d store has failed"
    r"|client socket has (?:timed out|failed to connect)|^Timed out trying to connect to .*TCPStore"
)
"""Rendezvous failures: before the first step, they show more than a lost peer."""
_PEER_LOST = re.compile(
    r"NCCL communicator was aborted|remote process exited|Connection reset by peer|Broken pipe|Connection closed by"
    r"|Connection refused|Socket closed|ncclRemoteError|recvmsg:Connection|NCCL [Ee]rror (?:in: |\\d)"
    r"|(?i:\b(?:worker|task|host|slice)\b.{0,60}"
    r"\b(?:lost its connection|has been terminated|is gone|disconnected|has died)\b)"
    r"|OPS function error: Hccl|Horovod has been shut down|different device incarnation"
)
_ELSEWHERE = re.compile(
    r"(?i)\bsee (?:the )?(?:root cause|stack ?trace|logs?|error)\w*(?: \(?above| for)|\bfor the root cause\b"
)
"""Words of an exception that refer to another one for the reason."""
_WAITED_TYPES = ("RendezvousTimeoutError",)
_WAITED = re.compile(
    r"Timed out (?:after \d+ seconds |while )?waiting|Socket Timeout|wait timeout after"
    r"|DEADLINE_EXCEEDED: (?:Barrier|GetKeyValue)|collective operation timeout|Timeout waiting for key"
    r"|Application timeout caused pair closure"
    r"|(?i:\b(?:ranks?|barrier|collectives?|peers?|workers?|actors?|rendezvous|broadcast|dispatch|group"
    r"|all[-_ ]?(?:reduce|gather|to[-_ ]?all))\b.{0,60}\b(?:timed out|timeout|time out)\b"
    r"|\b(?:timed out|timeout)\b.{0,60}\b(?:ranks?|barrier|collectives?|peers?|rendezvous|dispatch"
    r"|all[-_ ]?(?:reduce|gather))\b)"
)
_OF_SERVICES = re.compile(r"^(?:UNAVAILABLE|ABORTED|CANCELLED|DEADLINE_EXCEEDED): ")
_SERVICE_TYPES = ("XlaRuntimeError", "JaxRuntimeError")
_OWN_PEERS = re.compile(
    r"checkpoint|dataset|dataloader|/data/|http|urllib|requests|botocore|boto3|gcsfs|s3fs|fsspec"
    r"|/(?:wandb|mlflow|comet_ml|neptune|clearml|swanlab)/"
)
_ENVIRONMENT = re.compile(
    r"ddress already in use|No CUDA GPUs are available|no kernel image is available|NVIDIA driver on your system is"
    r"|Unable to initialize backend|Found no NVIDIA driver"
    r"|Torch not compiled with CUDA|CUDA driver initialization failed"
    r"|^40[13] (?:Client Error|GET|POST|PUT)\b|does not have storage\.|\] Device acquire failed"
)
"""Faults of a machine or an image, if logged before the first step."""
_MISSING_TYPES = ("ImportError", "ModuleNotFoundError", "FileNotFoundError")
_READER_TYPES = ("KeyError", "EOFError", "UnpicklingError", "BadZipFile", "JSONDecodeError", "SafetensorError")
_REFUSED = "Weights only load failed"
"""A newer torch may also refuse a valid file; the next lines show which."""
_READER_FILE = re.compile(r"checkpoint|serialization\.py|safetensors")
_OF_CHECKPOINT = re.compile(r"load_state_dict|(?:load|restore|read)_(?:checkpoint|ckpt)")
_RESUMES = re.compile(r"\bresume_from_\w{1,20}\b")
_READER_FUNCTION = re.compile(r"load|restore|read|unpickl|deserialize")


class Frame(NamedTuple):
    """A frame of a traceback."""

    file: str
    function: str
    code: str = ""
    """Source line, if shown."""


@dataclass(frozen=True)
class ExceptionCause:
    """Cause that an exception gives for a failure."""

    code: str
    role: Role
    row: str = "exception"
    before_steps: str = ""
    """Code that counts, as a root, in an attempt without a step."""
    by_frames: bool = False
    """True if its frames determine it rather than its words."""

    @property
    def is_vague(self) -> bool:
        """Return True if it shows only that something failed."""
        return self.code in ("python_error", UNKNOWN_CAUSE)


@dataclass
class Traceback:
    """A traceback of one stream while it is read."""

    prefix: str
    """Logger prefix of its lines, after launcher prefixes are removed."""
    indent: int
    unhandled: bool
    """True if the hook for unhandled exceptions printed it."""
    line: int
    chained: bool = False
    """True if it was raised while an earlier exception, its cause, was handled."""
    caused: bool = False
    """True if it repeats an earlier, vague exception: its words may be clearer."""
    host: str = ""
    pid: int | None = None
    rank: int | None = None
    """Host, pid and rank of the process that raised it, if another one prints it."""
    headless: bool = False
    """True if its first line is missing, so the process is unknown."""
    garbled: bool = False
    beside: bool = False
    """True if it was raised outside the main thread, or is ignored: it does not end the process."""
    seen: int = 0
    frames: list[Frame] = field(default_factory=list)
    """Innermost frames, the innermost last."""

    @property
    def frame_texts(self) -> list[str]:
        """Return the text of each frame: file, function and source line."""
        return [" ".join(frame) for frame in self.frames]

    @classmethod
    def begun(cls, text: str, raw: str, line: int, nested: bool) -> Traceback:
        """Return the traceback that begins with this line. text: the line without prefixes. nested: in the block of an
        agent."""
        if TRACEBACK not in text and _SHOWN_FRAME.match(text):
            block = cls("", 0, bool(_UNHANDLED.search(raw.partition("  File ")[0])), line, headless=True)
            block.take(text)
            return block
        if TRACEBACK not in text:
            task = _TASK.search(text)
            pid = int(task["pid"]) if task else None
            return cls("", 0, False, line, host=task["host"] if task else "", pid=pid)
        # Written in a worker; its parent raised it again.
        before = text[: text.index(TRACEBACK)].removesuffix("Original ")
        named = before.strip()
        unhandled = bool(_UNHANDLED.search(raw.partition(TRACEBACK)[0]))
        told = _OF_RANK.search(text)
        rank = int(told[1]) if told else None
        if nested:
            return cls("", max(len(before) - len(before.lstrip()), 2), unhandled, line, rank=rank)
        return cls(before if named else "", 0 if named else len(before), unhandled, line, rank=rank)

    def without_prefix(self, text: str) -> str:
        """Return a line without the logger prefix."""
        if not self.prefix or len(text) < len(self.prefix):
            return text
        head = text[: len(self.prefix)]
        same = head == self.prefix or _DIGITS.sub("0", head) == _DIGITS.sub("0", self.prefix)
        return text[len(self.prefix) :] if same else text

    def take(self, text: str) -> tuple[str, str] | None:
        """Read the next line of its stream; return (type, message) if it contains the exception."""
        self.seen += 1
        text = self.without_prefix(text)
        if not text.strip() or len(text) - len(text.lstrip()) > self.indent:
            frame = _FRAME.match(text)
            if frame is not None:
                self.frames = [*self.frames[1 - _INNERMOST :], Frame(frame["file"], frame["function"] or "")]
            elif self.frames and text.strip(" \t~^"):
                self.frames[-1] = self.frames[-1]._replace(code=text.strip())
            return None
        raised = exception_in(text.strip())
        if raised is None and text.strip().rstrip(":") not in ("", TRACEBACK) and not text.lstrip().startswith(_QUIET):
            self.garbled = True
        return raised


_QUIET = ("[Previous line repeated", "~", "^", "*** ")


def is_survivable(lines: Iterable[str]) -> bool:
    """Return True if the lines before a traceback show that its exception does not end the process."""
    return any(_BESIDE.match(line) for line in lines)


def begins_traceback(text: str) -> bool:
    """Return True if frames and an exception follow: at the first line of a traceback, at a frame if that is missing,
    and at the line in which Ray names a failed task."""
    return TRACEBACK in text or bool(_OF_A_TASK.match(text)) or bool(_SHOWN_FRAME.match(text))


def exception_in(text: str) -> tuple[str, str] | None:
    """Return type and message of the exception in a line; None if there is none."""
    match = _EXCEPTION.match(text)
    if match is None:
        return None
    kind = match["type"].rstrip(".")
    last = kind.rpartition(".")[2]
    dotted = "." in kind and (last[:1].isupper() or last in ("error", "timeout"))
    if kind.isupper() or not (dotted or _NAMES.search(last)):
        return None
    return kind, match["what"] or ""


def chains(text: str) -> str:
    """Return the words in a line that chain the next exception to the one before; empty if there are none."""
    return next((one for one in (_HANDLED, CAUSED) if text.strip().startswith(one)), "")


def cause_of_exception(kind: str, what: str, frames: list[Frame]) -> ExceptionCause | None:
    """Return the cause that an unhandled exception gives; None for a clean exit."""
    last = kind.rpartition(".")[2]
    if _RAISED_AGAIN.match(what):  # Its own traceback follows.
        return None
    if last in ("SystemExit", "GeneratorExit", "StopIteration"):
        return None if what.strip() in ("", "0", "None") else ExceptionCause(UNKNOWN_CAUSE, "exit")
    if _ELSEWHERE.search(what):
        return ExceptionCause(PEER_LOST, "echo", by_frames=True)
    return _by_frames(last, what, frames) or _by_words(last, what, frames)


def _by_words(last: str, what: str, frames: list[Frame]) -> ExceptionCause:
    if last == "KeyboardInterrupt":
        return ExceptionCause("cancelled", "exit", "interrupt")
    if last in ("SignalException", "SIGTERMException"):
        return ExceptionCause(KILLED, "teardown")
    if last == "CalledProcessError":
        return ExceptionCause(UNKNOWN_CAUSE, "exit") if _PROGRAM.search(what) else _OF_COMMAND
    lost = _peer_cause(last, what)
    if _ENVIRONMENT.search(what) and (lost is None or lost.code != "collective_timeout"):
        return ExceptionCause("python_error", "root", before_steps="environment")
    if lost is not None and not any(_OWN_PEERS.search(one.file) for one in frames):
        return lost
    if last in _READER_TYPES and _reads_checkpoint(frames) and not what.startswith(_REFUSED):
        return ExceptionCause("checkpoint_unreadable", "root")
    if last in _MISSING_TYPES:
        return ExceptionCause("python_error", "root", before_steps="environment")
    return ExceptionCause("python_error", "root")


_PROGRAM = re.compile(
    r"^Command '?\[?['\"]?(?:[^\s']*[/\\])?(?:python|torchrun|accelerate|deepspeed|(?:ba)?sh|srun|mpirun|ray)[\d.]*"
    r"(?:\.exe)?[ '\"]|died with <"
)
"""Commands that run the program itself: their exit does not explain the failure."""
_OF_COMMAND = ExceptionCause("python_error", "root", before_steps="environment", by_frames=True)
"""A command that a program runs: a compiler, a tool."""


def _by_frames(last: str, what: str, frames: list[Frame]) -> ExceptionCause | None:
    """Return the cause of an exception that its frames explain better than its words.

    For example, a lost terminal is not a disk error, a socket is not a mount, and data missing from a dead parent is
    not a checkpoint.
    """
    file, function, code = frames[-1] if frames else Frame("", "")
    if what.startswith("[Errno 5]") and "'" not in what and (_TERMINAL.search(code) or _TERMINAL_FILES.search(file)):
        return ExceptionCause("python_error", "root", "terminal", by_frames=True)
    if what.startswith("[Errno 107]") and "'" not in what:
        if not _SOCKET_FILES.search(file) and (_FILE_FUNCTION.search(function) or _FILE_CODE.search(code)):
            return ExceptionCause("storage_error", "root", by_frames=True)
        return ExceptionCause(PEER_LOST, "echo", by_frames=True)
    if last in ("UnpicklingError", "EOFError") and file.endswith("multiprocessing/spawn.py"):
        return ExceptionCause(PEER_LOST, "echo", SPAWNED, by_frames=True)
    return None


SPAWNED = "spawned worker"
"""Row of a worker whose parent was gone before the worker began."""
_TERMINAL = re.compile(r"^print\(|\bstd(?:out|err)\b|\btqdm\.write\(|^(?:self\.)?fp\.(?:write|flush)\(")
_TERMINAL_FILES = re.compile(r"/tqdm/|/logging/__init__\.py$|/(?:rich|loguru|absl/logging)/")
_SOCKET_FILES = re.compile(
    r"/(?:socket|ssl|selectors|asyncio/\w+|multiprocessing/connection|http/client)\.py$|/urllib3/"
)
_FILE_FUNCTION = re.compile(r"open|read|write|save|load|list|stat|exists|mkdir|makedirs|glob|copy|move|rename|flush")
_FILE_CODE = re.compile(
    r"\b(?:open|os\.\w{1,40}|shutil\.\w{1,40}|path\w{0,40}\.\w{1,40}|torch\.(?:load|save))\("
    r"|file\w{0,40}\.\w{1,40}\("
)


def _peer_cause(last: str, what: str) -> ExceptionCause | None:
    if _NO_STORE.search(what):
        return ExceptionCause(PEER_LOST, "echo", before_steps="network")
    if last in _WAITED_TYPES or _WAITED.search(what):
        return ExceptionCause("collective_timeout", "echo")
    if "invalid usage (run with" in what:
        return None
    if last in _LOST_TYPES or _PEER_LOST.search(what) or (last in _SERVICE_TYPES and _OF_SERVICES.search(what)):
        return ExceptionCause(PEER_LOST, "echo")
    return None


def _reads_checkpoint(frames: list[Frame]) -> bool:
    return any(
        _OF_CHECKPOINT.search(one.function)
        or (_READER_FILE.search(one.file) and _READER_FUNCTION.search(one.function))
        or _RESUMES.search(one.code)
        for one in frames
    )


_RULE = re.compile(r"\s*(?:=|-){5,}\s*$")
_ENTRY = re.compile(r"\s*\[(\d+)\]:\s*$")
_KEY = re.compile(r"\s{1,4}(?P<key>time|host|rank|exitcode|error_file|traceback)\s*: ?(?P<value>.*)$")
_RANK = re.compile(r"(\d{1,8}) \(local_rank: (\d{1,8})\)")
_EXIT = re.compile(r"(-?\d{1,9}) \(pid: (\d{1,9})\)")
ROOT_CAUSE = "Root Cause (first observed failure)"


@dataclass
class AgentBlock:
    """Failure report of an agent while it is read: how each process of its node ended, and the first to fail."""

    stream: str
    first: bool = False
    entry: UntimedEvidence | None = None
    failures: list[UntimedEvidence] = field(default_factory=list)
    over: bool = False
    seen: int = 0
    rules: int = 0

    def take(self, text: str, line: int) -> bool:
        """Read the next line of its stream; return True if it belongs to the block."""
        self.seen += 1
        if _RULE.match(text):
            self.rules += 1
            self.over = "=" in text and bool(self.failures)
            return True
        if ROOT_CAUSE in text:
            self.first, self.entry = True, None
            return True
        if (entry := _ENTRY.match(text)) is not None:
            cause: tuple[str, Role] = (UNKNOWN_CAUSE, "exit")
            first = self.first or entry[1] == "0"
            self.entry = UntimedEvidence(
                *cause, text.strip(), "agent block", "launcher", line, self.stream, first=first
            )
            self.entry.last_line = line
            if self.first:  # The root cause decides, not the number of an entry.
                for other in self.failures:
                    other.first = False
            self.failures.append(self.entry)
            return True
        key = _KEY.match(text)
        if key is not None and self.entry is not None:
            self._about(self.entry, key["key"], key["value"].strip(), text, line)
            return True
        self.over = self.over or self.seen >= _LONGEST_AGENT
        return text.startswith(" ") or not text.strip() or text.rstrip().endswith(("FAILED", "Failures:"))

    def _about(self, entry: UntimedEvidence, key: str, value: str, text: str, line: int) -> None:
        if key == "time":
            entry.stamp = read_or_none(value.replace("_", " "))
        elif key == "host":
            entry.host = value
        elif key == "rank" and (rank := _RANK.match(value)):
            entry.rank, entry.local_rank = int(rank[1]), int(rank[2])
        elif key == "exitcode" and (ended := _EXIT.match(value)):
            entry.exit, entry.pid, entry.text = int(ended[1]), int(ended[2]), text.strip()
            entry.line = entry.last_line = line

    def failures_with_causes(self) -> Iterator[UntimedEvidence]:
        """Yield the failures with their causes. The agent kills the remaining processes some seconds after the first
        failure, so a later kill is its own; so is any kill if the first failure is cut off."""
        first = next((one for one in self.failures if one.first), None)
        for one in self.failures:
            said = None if one.exit is None else by_exit(one.exit)
            if said is not None:
                one.code, one.role = said
                if one is not first and one.exit in KILLS and _is_later(one, first):
                    one.role = "teardown"
                yield one
            elif one is first and one.exit is None:  # The rest of it was cut off.
                yield one


def _is_later(one: UntimedEvidence, first: UntimedEvidence | None) -> bool:
    if first is None:
        return True
    return first.stamp is not None and one.stamp is not None and one.stamp.ns > first.stamp.ns

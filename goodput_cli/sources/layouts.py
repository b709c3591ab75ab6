"""Selection of the files to read in a folder, by the layouts that tools use."""

from __future__ import annotations

import os
import re
import zlib
from calendar import timegm
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import takewhile

from msgspec import Struct

from goodput_cli.errors import SourceError
from goodput_cli.sources.blocks import GZIP_MAGIC, is_event_file
from goodput_cli.sources.other_files import shown_path, similar_path
from goodput_cli.vocabulary.when import NS_PER_SECOND

RUN_FILE_ENDING = ".wandb"
LATEST_RUN = "latest-run"
"""A link to the folder of a run, which is read once, by its own name."""
DATABASE = "mlflow.db"
TABLES = ("results.csv", "progress.csv")
"""Tables of Ultralytics, and of a trial of Ray: the only tables that a walk reads."""
RUN_KEY = "mlflow_run"
"""The key of the run id in every record of an MLflow database."""
_RUN_FOLDER = re.compile(
    r"(?P<path>(?:.*/)?(?:offline-)?run-(?P<stamp>\d{8}_\d{6})-(?P<id>[^/]+))/(?P<inside>[^/].*)", re.DOTALL
)
_RUN_OF_STORE = re.compile(r"(?:.*/)?(?P<id>[0-9a-f]{32})/(?P<inside>meta\.yaml|metrics/.+)", re.DOTALL)
"""A run of MLflow in files."""
_RUN_FILE = re.compile(r"(?:.*/)?run-(?P<id>[^/]+)\.wandb", re.DOTALL)
_SCALARS = re.compile(r"(?P<run>(?:.*/)?(?P<stamp>\d{8}_\d{6}))/vis_data/(?P<file>[^/]+\.json)", re.DOTALL)
"""mmengine's scalars next to the log of a process, without a time of day."""
_LAUNCH = re.compile(r"attempt_\d{1,9}")
_OF_RANK = re.compile(r"(?:stdout|stderr)\.log(?:\.gz|\.zst)?|error\.json")
_LOG_FOLDERS = ("logs", "log", "torchelastic")
"""Usual names of torchrun's log folder, which is next to the agent's output."""
_TRACES = "structured_logs"
"""torchtitan's folder with a trace of each process, below the folder of its job."""
_SIDE_LOGS = {"logs/debug-internal.log": True, "logs/debug.log": False}
_OUTPUT = "files/output.log"
"""The output of a process of Weights & Biases."""


_CYCLE = re.compile(r"(?:.*/)?cycle_info\.[^/]*\.\d{1,9}\.\d{1,9}(?:\.gz|\.zst)?", re.DOTALL)
"""The file of NVRx' launcher for a cycle: `cycle_info.JOB.ATTEMPT.CYCLE`; `.current` is a link to the last one, and
`.tmp` is one being written."""
_CYCLES = "nvrx"
"""The name of its folder, which is next to the log."""


class RunFolder(Struct, frozen=True):
    """The parts of the path of a file of a Weights & Biases run."""

    path: str = ""
    """The folder of its process; "" without such a folder."""
    run_id: str = ""
    stamp: int | None = None
    """The creation time of the folder, in ns since 1970 of local time."""
    inside: str = ""
    """The path of the file in the folder."""


def wandb_folder(name: str) -> RunFolder:
    """Return the run in the name of a file."""
    name = name.replace("\\", "/")
    found = _RUN_FOLDER.fullmatch(name)
    if found is not None:
        return RunFolder(found["path"], found["id"], _epoch_ns(found["stamp"]), found["inside"])
    file = _RUN_FILE.fullmatch(name)
    return RunFolder(run_id="" if file is None else file["id"])


def store_file(name: str) -> tuple[str, str] | None:
    """Return the run of a file in a store of MLflow, and the path of the file in the folder of the run; None if it is
    not in a store."""
    found = _RUN_OF_STORE.fullmatch(name.replace("\\", "/"))
    return None if found is None else (found["id"], found["inside"])


def side_log(name: str) -> bool | None:
    """Return True for a log next to a run file with times in UTC, False for one with local times, None for other
    files."""
    return _SIDE_LOGS.get(wandb_folder(name).inside)


def is_output(name: str) -> bool:
    """Return True if a file is the output of the process of a run folder."""
    return wandb_folder(name).inside == _OUTPUT


def _epoch_ns(text: str) -> int | None:
    year, month, day = int(text[:4]), int(text[4:6]), int(text[6:8])
    hour, minute, second = int(text[9:11]), int(text[11:13]), int(text[13:])
    good = 1970 <= year < 2255 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61
    return timegm((year, month, day, hour, minute, second)) * NS_PER_SECOND if good else None


def is_cycle_file(name: str) -> bool:
    """Return True if a file was written by NVRx' launcher for a cycle."""
    return _CYCLE.fullmatch(name.replace("\\", "/")) is not None


class UnreadMember(Struct, frozen=True):
    """A file or directory below a named directory that cannot be read."""

    path: str
    reason: str
    """The reason without the path: equal for every member with this problem."""
    problem: str
    """The error message if the user names the member."""


class SourceListing(Struct, frozen=True):
    """Files of a folder's tree, or objects under a prefix."""

    logs: tuple[str, ...]
    tracked: tuple[str, ...]
    """Files of experiment trackers."""
    unread: tuple[UnreadMember, ...] = ()
    """Members that cannot be read."""
    outside: tuple[str, ...] = ()
    """Links that lead out of the directory and are followed."""

    @property
    def read(self) -> tuple[str, ...]:
        """Return the logs, or the tracker files if there is no log."""
        return self.logs or self.tracked


TIMELESS = ("trainer_state.json", "metrics.csv")
"""Files that Hugging Face's trainer and Lightning write without times."""
_WITH_TIMES = ("runs", "wandb", "mlruns", DATABASE, "trainer_log.jsonl", "lightning_logs")


def has_times(name: str) -> bool:
    """Return True if a file or folder of this name, next to one of `TIMELESS`, contains times."""
    return name in _WITH_TIMES or is_event_file(name)


DEVICE_HEAD = 4096
"""Number of bytes that show whether a file is a table of accelerators."""
_LONGEST_STAMP = 60
ENTITY = "entity"
_QUERIED = frozenset({"utilization.gpu", "power.draw", "memory.used"})
_MONITORED = frozenset({"sm", "pwr", "fb"})
_OF_DCGM = frozenset({"gputl", "power", "totec", "fbusd", "tenso"})


def device_heads(line: str) -> list[str]:
    """Return the headings of `nvidia-smi --query-gpu=timestamp,.. --format=csv`, `nvidia-smi dmon` and `dcgmi dmon` in
    a line, in lower case, also after a time; empty without any."""
    if "timestamp" in line:
        names = [one.strip().partition(" [")[0].lower() for one in line.split(",")]
        return names if "timestamp" in names and not _QUERIED.isdisjoint(names) else []
    place = line.find("#", 0, _LONGEST_STAMP)
    names = line[place + 1 :].lower().split() if place >= 0 else []
    if names[:1] in ([ENTITY], ["entityid"]):
        return [ENTITY, *names[1:]] if not _OF_DCGM.isdisjoint(names) else []
    return names if "gpu" in names and not _MONITORED.isdisjoint(names) else []


_HEADLESS = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}(?:, [^,]{1,100}){1,20}\r?")
"""A row as `nvidia-smi --query-gpu=timestamp,..` prints it."""


def is_headless_row(line: str) -> bool:
    """Return True if a line is a row of `nvidia-smi --query-gpu=timestamp,..`, whose headings may be missing."""
    return _HEADLESS.fullmatch(line) is not None


def is_device_table(head: bytes) -> bool:
    """Return True if a document that begins like this is such a table. The headings may follow a line with a time, or
    be missing (`--format=csv,noheader`)."""
    lines = head[:DEVICE_HEAD].removeprefix(b"\xef\xbb\xbf").decode(errors="replace").lstrip().split("\n", 3)[:2]
    return bool(device_heads(lines[0])) or (
        len(lines) > 1
        and ((len(lines[0]) < _LONGEST_STAMP and bool(device_heads(lines[1]))) or all(map(is_headless_row, lines)))
    )


def has_only_samples(head: bytes) -> bool:
    """Return True if a file that begins like this, packed or not, contains only samples of accelerators: such a table,
    or a response of Prometheus' query_range."""
    if head.startswith(GZIP_MAGIC):
        try:
            head = zlib.decompressobj(31).decompress(head, DEVICE_HEAD)
        except zlib.error:
            return False
    return is_device_table(head) or _ANSWER.match(head) is not None


_ANSWER = re.compile(rb'\s*\{\s*"status"\s*:\s*"success"\s*,\s*"data"\s*:\s*\{\s*"resultType"\s*:\s*"matrix"')
DEVICE_TABLES = (".csv", ".csv.gz")
"""Names of files whose first bytes a walk reads."""


def is_of_devices(path: str, *, whatever_its_name: bool = False) -> bool:
    """Return True if a file contains only samples of accelerators; without `whatever_its_name`, only if a walk would
    not read it by its name."""
    if not (whatever_its_name or path.lower().endswith(DEVICE_TABLES)):
        return False
    try:
        with open(path, "rb") as file:
            return has_only_samples(file.read(DEVICE_HEAD))
    except OSError:
        return False


_OF_RANK_DUMP = re.compile(r"[_.-](?:rank[_-]?)?\d{1,8}(?:\.json|\.pkl|\.pickle|\.txt|\.log|\.out)?$")
_STACK = re.compile(rb"Process \d{1,9}: .{1,4000}\r?\nPython v\d")
_PICKLED_DICT = b"\x80\x02}"
_DUMP_KEYS = (b'"pg_config"', b'"collective_seq_id"')
"""Keys of dumps in JSON. The recorder sorts them, so its list of operations comes first."""
DUMP_HEAD = 1 << 16
"""Number of bytes that show whether a file is a dump of a flight recorder."""


def has_name_of_dump(name: str) -> bool:
    """Return True if the name of a file ends in a rank, as that of a dump does."""
    return _OF_RANK_DUMP.search(name) is not None


def is_dump(name: str, head: bytes) -> bool:
    """Return True if a file is a dump of PyTorch's flight recorder or the output of py-spy: its name ends in a rank,
    and it begins like one."""
    if not has_name_of_dump(name):
        return False
    is_json = head.lstrip()[:1] == b"{" and any(key in head[:DUMP_HEAD] for key in _DUMP_KEYS)
    return is_stack(head) or is_json or head.startswith(_PICKLED_DICT)


def is_stack(head: bytes) -> bool:
    """Return True if a file begins like the output of `py-spy dump`."""
    return _STACK.match(head) is not None


def is_dump_file(path: str) -> bool:
    """Return True if a file is such a dump. A file is opened once, and again only if it changed."""
    if not has_name_of_dump(path):
        return False
    try:
        status = os.stat(path)
        return _begins_like_dump(path, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError:
        return False


@lru_cache(maxsize=1 << 14)
def _begins_like_dump(path: str, *_: int) -> bool:
    """Return True if a file is a dump, by its path, number, size and time of change."""
    with open(path, "rb") as file:
        return is_dump(path, file.read(DUMP_HEAD))


def is_of_tracker(name: str, *, in_bucket: bool = False) -> bool:
    """Return True if a file of this name may belong to a tracker, so that a walk must read it. in_bucket: True if
    databases cannot be opened."""
    name = name.replace("\\", "/")
    base = name.rpartition("/")[2]
    return (
        base.endswith(RUN_FILE_ENDING)
        or (base == DATABASE and not in_bucket)
        or base in TABLES
        or _RUN_OF_STORE.fullmatch(name) is not None
    )


def logs_and_runs(names: Iterable[str]) -> SourceListing:
    """Return logs, and tracker files with the output of a run inside them. Other files in the folder of a run (its
    summary, packages) are not logs; neither are mmengine's scalars if the text log of the same process is next to
    them."""
    every = [(name, name.replace("\\", "/")) for name in names]
    paths = {plain for _, plain in every}
    left = [(name, plain) for name, plain in every if not _is_redundant(plain, paths)]
    runs = {found for _, plain in left if (found := _folder_of_run(plain))}
    told = {wandb_folder(one).path for _, one in left if one.endswith(RUN_FILE_ENDING) or side_log(one) is not None}
    logs: list[str] = []
    tracked: list[str] = []
    for name, plain in left:
        above = _run_above(plain, runs)
        inside = "" if above is None else plain[len(above) + 1 :]
        if is_of_tracker(plain) or inside in _SIDE_LOGS or (inside == _OUTPUT and above in told):
            tracked.append(name)
        elif above is None and not _is_link_to_side_log(plain):
            logs.append(name)
    return SourceListing(tuple(logs), tuple(tracked))


def _is_redundant(name: str, names: set[str]) -> bool:
    """Return True for scalars of mmengine that another file has with times, or has as a copy."""
    found = _SCALARS.fullmatch(name)
    if found is None:
        return False
    run, stamp = found["run"], found["stamp"]
    copy = found["file"] == f"{stamp}.json" and f"{run}/vis_data/scalars.json" in names
    return copy or f"{run}/{stamp}.log" in names


def _folder_of_run(name: str) -> str:
    return wandb_folder(name).path or (name.rpartition("/")[0] if name.endswith(RUN_FILE_ENDING) else "")


def _run_above(name: str, runs: set[str]) -> str | None:
    """Return the folder of the run that contains a file; None if it is in none."""
    folder = name.rpartition("/")[0]
    while folder:
        if folder in runs:
            return folder
        folder = folder.rpartition("/")[0]
    return None


def _is_link_to_side_log(name: str) -> bool:
    """Return True for one of the links in `wandb/` to the logs of the latest run."""
    folder, _, base = name.rpartition("/")
    return f"logs/{base}" in _SIDE_LOGS and folder.rpartition("/")[2] in ("wandb", LATEST_RUN)


def home_of(name: str) -> str | None:
    """Return the folder that contains the folder of a file's tracker or launcher: it is read together with other logs
    there. None for other files."""
    plain = name.replace("\\", "/")
    store = _RUN_OF_STORE.fullmatch(plain)
    if store is not None:
        folder = plain[: store.start("id")].rstrip("/")  # the folder of an experiment
        return _parent(_parent(folder))
    launched = _launched(plain)
    if launched is not None:
        return launched
    folder = _parent(plain)
    if is_cycle_file(plain):
        return _parent(folder) if folder.rpartition("/")[2] == _CYCLES else folder
    if folder.rpartition("/")[2] == _TRACES:
        return _parent(folder)
    folder = wandb_folder(plain).path
    if folder:
        above = _parent(folder)
        return _parent(above) if above.rpartition("/")[2] == "wandb" else above
    return _parent(plain) if is_of_tracker(plain) else None


def shared_levels(paths: Iterable[Sequence[str]]) -> int:
    """Return how many levels, from the first on, all paths have in common: these do not distinguish them."""
    return sum(1 for _ in takewhile(lambda names: len({*names}) == 1, zip(*paths, strict=False)))


def _launched(name: str) -> str | None:
    """Return the folder that contains torchrun's log folder (`--log-dir`: DIR/RUN/attempt_N/RANK/stderr.log); None for
    a file of another name."""
    parts = name.split("/")
    if len(parts) < 3:
        return None
    launch, rank, file = parts[-3:]
    if not (_LAUNCH.fullmatch(launch) and rank.isdecimal() and _OF_RANK.fullmatch(file)):
        return None
    folder = "/".join(parts[:-4])
    return _parent(folder) if folder.rpartition("/")[2] in _LOG_FOLDERS else folder


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


class UnreadableError(SourceError):
    """Raised if the operating system refused to list, open or read a path."""


def unreadable(path: str, error: OSError | ValueError) -> UnreadableError:
    """Return the error for a path that cannot be read, with what to do about it."""
    shown = shown_path(path)
    if isinstance(error, FileNotFoundError) and os.path.islink(path):
        return UnreadableError(
            f"{shown}: is a link to {shown_path(os.readlink(path))}, which does not exist", tip="fix or remove the link"
        )
    if isinstance(error, FileNotFoundError):
        close = similar_path(path)
        meant = f"did you mean {close}?" if close else "check the path (relative paths start in the current folder)"
        return UnreadableError(f"{shown}: no such file", tip=meant)
    if isinstance(error, PermissionError):
        return UnreadableError(f"{shown}: permission denied", tip="ask for read access or copy the file")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UnreadableError(f"{shown}: cannot be read: {reason}")
